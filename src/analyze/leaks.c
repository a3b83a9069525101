// What grows from step to step, for people and for programs.
#include <math.h>

#include "analyze/growth.h"
#include "analyze/subject.h"
#include "base/json.h"

enum { DEFAULT_TOP = 10 };

struct hunt {
    struct vr_subject subject;
    struct vr_grouping grouping;
    struct vr_steps steps;
    struct vr_growth growth;
    size_t leaks, top;
};

static void close_hunt(struct hunt *hunt) {
    vr_growth_release(&hunt->growth);
    vr_steps_release(&hunt->steps);
    vr_grouping_release(&hunt->grouping);
    vr_subject_close(&hunt->subject);
}

// What of the hunt depends on how allocations are grouped. Nothing stays to be released after a failure.
static enum vram_status hunt_by(struct hunt *hunt, const struct vram_profile_options *options, struct vram_error *error) {
    VR_TRY(vr_subject_grouping(&hunt->subject, options, &hunt->grouping, error));
    const enum vram_status status = vr_growth_find(&hunt->grouping, &hunt->steps, hunt->top, &hunt->growth);
    if (status != VRAM_OK) {
        vr_grouping_release(&hunt->grouping);
        return status;
    }
    hunt->leaks = 0;
    for (size_t i = 0; i < hunt->growth.count; i++) hunt->leaks += hunt->growth.grower[i].verdict == VR_VERDICT_LEAK;
    return VRAM_OK;
}

// Programs in C and C++ often allocate through a function of their own, which is the call site of everything: what leaks is lost in what
// does not. So where no call site leaks, and nothing else was asked for, whole stacks may.
static enum vram_status hunt_by_stack(struct hunt *hunt, const struct vram_profile_options *options, struct vram_error *error) {
    struct vram_profile_options by_stack = *options;
    struct vr_grouping sites = hunt->grouping;
    struct vr_growth growth = hunt->growth;
    by_stack.by = "stack";
    hunt->grouping = (struct vr_grouping){.by = VR_GROUP_STACK};
    hunt->growth = (struct vr_growth){.count = 0};
    const enum vram_status status = hunt_by(hunt, &by_stack, error);
    const bool found = status == VRAM_OK && hunt->leaks != 0;
    vr_growth_release(found ? &growth : &hunt->growth);
    vr_grouping_release(found ? &sites : &hunt->grouping);
    if (found) return VRAM_OK;
    hunt->grouping = sites;
    hunt->growth = growth;
    return status;
}

static enum vram_status open_hunt(const struct vram_recording *recording, const struct vram_profile_options *options, struct hunt *hunt,
                                  struct vram_error *error) {
    *hunt = (struct hunt){.top = options == NULL || options->top == 0 ? DEFAULT_TOP : options->top};
    VR_TRY(vr_subject_open(recording, options, &hunt->subject, error));
    const struct vr_step_wish wish = {.name = options->step, .every = options->every_events};
    enum vram_status status = vr_steps_find(hunt->subject.view, &wish, &hunt->steps);
    if (status == VRAM_OK) status = hunt_by(hunt, options, error);
    if (status == VRAM_OK && hunt->leaks == 0 && options->by == NULL) status = hunt_by_stack(hunt, options, error);
    if (status != VRAM_OK) close_hunt(hunt);
    return status;
}

static void print_steps(const struct hunt *hunt, struct vr_text *text) {
    static const char *const found[VR_STEP_SOURCE_COUNT] = {[VR_STEPS_MARKED] = "marked by the program",
                                                            [VR_STEPS_GIVEN] = "as given",
                                                            [VR_STEPS_REPEATED] = "guessed from how allocations repeat"};
    if (hunt->steps.count == 0) {
        vr_text_puts(
            text, "no steps: nothing is marked as a step, and allocations do not repeat; --every N or --step NAME says where they begin\n");
        return;
    }
    vr_text_printf(text, "%s step%s, %s", vr_count(hunt->steps.count).text, hunt->steps.count == 1 ? "" : "s", found[hunt->steps.source]);
    if (hunt->steps.name != 0) {
        const char *name = vr_model_string(hunt->subject.model, hunt->steps.name);
        vr_text_puts(text, " (");
        vr_text_printable(text, name, strlen(name));
        vr_text_puts(text, ")");
    }
    vr_text_puts(text, hunt->steps.unsure ? "; they may be the layers of a model\n" : "\n");
}

// A column per point, at most twenty: how high the bytes were there.
static void put_course(struct vr_text *text, const struct vram_style *style, const uint64_t *bytes, size_t points) {
    static const char *const marks[] = {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char ascii[] = "_.-~=+*#";
    const size_t shown = points < 20 ? points : 20;
    uint64_t most = 1;
    for (size_t p = 0; p < points; p++) most = bytes[p] > most ? bytes[p] : most;
    for (size_t i = 0; i < shown; i++) {
        const size_t mark = (size_t)((double)bytes[shown < 2 ? 0 : i * (points - 1) / (shown - 1)] / (double)most * 7.0 + 0.5);
        if (style->unicode)
            vr_text_puts(text, marks[mark]);
        else
            vr_text_append(text, &ascii[mark], 1);
    }
}

static void put_row(struct vr_table *table, const struct hunt *hunt, const struct vram_style *style, const struct vr_grower *grower) {
    struct vr_text course = {0}, name = {0};
    put_course(&course, style, grower->bytes, hunt->growth.point_count);
    vr_group_title(&hunt->grouping, grower->key, &name);
    vr_table_cell(table, "%s", vr_verdict_word(grower->verdict));
    vr_table_cell(table, "+%s", vr_bytes((uint64_t)grower->bytes_per_step).text);
    vr_table_cell(table, "%.2f", grower->objects_per_step);
    vr_table_cell(table, "%.0f %%", 100 * grower->confidence);
    vr_table_cell(table, "%s", vr_bytes(grower->last_bytes).text);
    vr_table_cell_bytes(table, vr_text_string(&course), course.length);
    vr_table_cell_bytes(table, vr_text_string(&name), name.length);
    table->cells.failed = table->cells.failed || course.failed || name.failed;
    vr_text_release(&course);
    vr_text_release(&name);
}

static void print_growers(const struct hunt *hunt, const struct vram_style *style, struct vr_text *text) {
    const struct vr_table_column columns[] = {
        {.title = "", .align = VR_LEFT, .colour = hunt->leaks != 0 ? VR_RED : VR_PLAIN},
        {.title = "per step", .align = VR_RIGHT, .colour = VR_BOLD},
        {.title = "objects", .align = VR_RIGHT},
        {.title = "sure", .align = VR_RIGHT},
        {.title = "last step", .align = VR_RIGHT},
        {.title = "course", .align = VR_LEFT, .colour = VR_CYAN},
        {.title = vr_grouping_heading(hunt->grouping.by), .align = VR_LEFT, .flexible = true},
    };
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < hunt->growth.count; i++) {
        if (hunt->growth.grower[i].verdict != VR_VERDICT_STEADY) put_row(&table, hunt, style, &hunt->growth.grower[i]);
    }
    if (table.cell_count != 0) {
        vr_text_puts(text, "\n");
        vr_table_print(&table, text, style, 2);
    }
    vr_table_release(&table);
}

static void print_stacks(const struct hunt *hunt, const struct vram_style *style, struct vr_text *text) {
    if (hunt->grouping.by != VR_GROUP_STACK) return;
    for (size_t i = 0; i < hunt->leaks; i++) {
        vr_text_printf(text, "\n  stack %llu\n", (unsigned long long)hunt->growth.grower[i].key);
        vr_stack_print(hunt->subject.model, hunt->growth.grower[i].key, style, text);
    }
}

static void print_verdict(const struct hunt *hunt, const struct vram_style *style, struct vr_text *text) {
    double rate = 0;
    for (size_t i = 0; i < hunt->leaks; i++) rate += hunt->growth.grower[i].bytes_per_step;
    if (hunt->steps.count == 0) return;
    vr_text_colour(text, style, hunt->leaks != 0 ? VR_RED : VR_GREEN);
    if (hunt->leaks == 0)
        vr_text_puts(text, "no leak: nothing grows steadily from step to step");
    else
        vr_text_printf(text, "%zu leak%s: %s more in every step", hunt->leaks, hunt->leaks == 1 ? "" : "s", vr_bytes((uint64_t)rate).text);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, "\n");
}

enum vram_status vram_leaks_text(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                 const struct vram_style *style, vram_write write, void *user, size_t *leaks, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct hunt hunt;
    struct vr_text text = {0};
    VR_TRY(open_hunt(recording, options, &hunt, error));
    vr_text_colour(&text, shown, VR_BOLD);
    if (title != NULL) vr_text_printable(&text, title, strlen(title));
    vr_text_colour(&text, shown, VR_PLAIN);
    vr_text_printf(&text, "%s%s, ", title == NULL ? "" : ": ", vr_view_name(hunt.subject.view).text);
    print_steps(&hunt, &text);
    print_verdict(&hunt, shown, &text);
    print_growers(&hunt, shown, &text);
    print_stacks(&hunt, shown, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = hunt.leaks;
    vr_text_release(&text);
    close_hunt(&hunt);
    return status;
}

// To a thousandth: what lies behind it is the arithmetic's, not the recording's.
static double rounded(double value) { return round(value * 1000) / 1000; }

static enum vram_status put_json(const struct hunt *hunt, struct vr_json *json) {
    vr_json_u64(json, "device", hunt->subject.view->device);
    vr_json_string(json, "steps_from", vr_step_source_word(hunt->steps.source));
    vr_json_bool(json, "steps_sure", !hunt->steps.unsure);
    vr_json_string(json, "step_name", hunt->steps.name == 0 ? NULL : vr_model_string(hunt->subject.model, hunt->steps.name));
    vr_json_u64(json, "steps", hunt->steps.count);
    vr_json_u64(json, "leaks", hunt->leaks);
    vr_json_string(json, "by", vr_grouping_words[hunt->grouping.by]);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < hunt->growth.count; i++) {
        const struct vr_grower *grower = &hunt->growth.grower[i];
        vr_json_object(json, NULL);
        VR_TRY(vr_group_name_json(&hunt->grouping, grower->key, json));
        vr_json_string(json, "verdict", vr_verdict_word(grower->verdict));
        vr_json_double(json, "bytes_per_step", rounded(grower->bytes_per_step));
        vr_json_double(json, "objects_per_step", rounded(grower->objects_per_step));
        vr_json_double(json, "confidence", rounded(grower->confidence));
        vr_json_u64(json, "first_bytes", grower->first_bytes);
        vr_json_u64(json, "last_bytes", grower->last_bytes);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return VRAM_OK;
}

enum vram_status vram_leaks_json(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                 vram_write write, void *user, size_t *leaks, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    struct hunt hunt;
    struct vr_text text = {0};
    struct vr_json json;
    VR_TRY(open_hunt(recording, options, &hunt, error));
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    vr_json_string(&json, "file", title);
    enum vram_status status = put_json(&hunt, &json);
    vr_json_object_end(&json);
    if (status == VRAM_OK) status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = hunt.leaks;
    vr_text_release(&text);
    close_hunt(&hunt);
    return status;
}
