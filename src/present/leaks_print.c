// What grows from step to step, for people and for programs.
#include <math.h>

#include "analyze/leaks.h"
#include "present/group_names.h"
#include "present/text_parts.h"

static void print_steps(const struct vr_leaks *leaks, struct vr_text *text) {
    static const char *const found[VR_STEP_SOURCE_COUNT] = {[VR_STEPS_MARKED] = "marked by the program",
                                                            [VR_STEPS_EVERY] = "as given",
                                                            [VR_STEPS_REPEATED] = "guessed from how allocations repeat"};
    if (leaks->steps.count == 0) {
        vr_text_puts(
            text, "no steps: nothing is marked as a step, and allocations do not repeat; --every N or --step NAME says where they begin\n");
        return;
    }
    vr_text_printf(text, "%s step%s, %s", vr_count(leaks->steps.count).text, leaks->steps.count == 1 ? "" : "s",
                   found[leaks->steps.source]);
    if (leaks->steps.name != 0) {
        const char *name = vr_model_string(leaks->profile.model, leaks->steps.name);
        vr_text_puts(text, " (");
        vr_text_printable(text, name, strlen(name));
        vr_text_puts(text, ")");
    }
    vr_text_puts(text, leaks->steps.unsure ? "; they may be the layers of a model\n" : "\n");
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

static void put_row(struct vr_table *table, const struct vr_leaks *leaks, const struct vram_style *style, const struct vr_grower *grower) {
    struct vr_text course = {0}, name = {0};
    put_course(&course, style, grower->bytes, leaks->growth.point_count);
    vr_group_title(&leaks->grouping, grower->key, &name);
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

static void print_growers(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    const struct vr_table_column columns[] = {
        {.title = "", .align = VR_LEFT, .colour = leaks->count != 0 ? VR_RED : VR_PLAIN},
        {.title = "per step", .align = VR_RIGHT, .colour = VR_BOLD},
        {.title = "objects", .align = VR_RIGHT},
        {.title = "sure", .align = VR_RIGHT},
        {.title = "last step", .align = VR_RIGHT},
        {.title = "course", .align = VR_LEFT, .colour = VR_CYAN},
        {.title = vr_grouping_heading(leaks->grouping.by), .align = VR_LEFT, .flexible = true},
    };
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < leaks->growth.count; i++) {
        if (leaks->growth.grower[i].verdict != VR_VERDICT_STEADY) put_row(&table, leaks, style, &leaks->growth.grower[i]);
    }
    if (table.cell_count != 0) {
        vr_text_puts(text, "\n");
        vr_table_print(&table, text, style, 2);
    }
    vr_table_release(&table);
}

static void print_stacks(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    if (leaks->grouping.by != VR_GROUP_STACK) return;
    for (size_t i = 0; i < leaks->count; i++) {
        vr_text_printf(text, "\n  stack %llu\n", (unsigned long long)leaks->growth.grower[i].key);
        vr_stack_print(leaks->grouping.sites, (uint32_t)leaks->growth.grower[i].key, style, text);
    }
}

// Nothing is a leak, but rows below may look like one: what keeps them from being called so.
static void print_no_leak(const struct vr_leaks *leaks, struct vr_text *text) {
    enum { LEAST_POINTS = 4 };
    size_t grow = 0;
    double surest = 0;
    for (size_t i = 0; i < leaks->growth.count; i++) {
        const struct vr_grower *grower = &leaks->growth.grower[i];
        if (grower->verdict != VR_VERDICT_GROWTH || grower->confidence < VR_LEAK_CONFIDENCE) continue;
        grow++;
        if (grower->confidence > surest) surest = grower->confidence;
    }
    if (grow == 0) {
        vr_text_puts(text, "no leak: nothing grows steadily from step to step");
        return;
    }
    vr_text_printf(text, "perhaps a leak: %zu group%s, the surest %.0f %%, but %s", grow, grow == 1 ? " grows" : "s grow", 100 * surest,
                   leaks->steps.unsure                        ? "where steps begin is not sure; --every N or --step NAME says it"
                   : leaks->growth.point_count < LEAST_POINTS ? "there are too few steps to tell"
                                                              : "not until the end, or in too few steps to tell");
}

static void print_never_freed(const struct vr_leaks *leaks, struct vr_text *text) {
    const struct vram_report_sum end = leaks->profile.lifetimes.end;
    if (end.bytes == 0) return;
    vr_text_printf(text, "never freed: %s; vram report --site --at end says by whom\n", vr_bytes(end.bytes).text);
}

static void print_verdict(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    double rate = 0;
    for (size_t i = 0; i < leaks->count; i++) rate += leaks->growth.grower[i].bytes_per_step;
    if (leaks->steps.count == 0) return;
    vr_text_colour(text, style, leaks->count != 0 ? VR_RED : VR_GREEN);
    if (leaks->count == 0)
        print_no_leak(leaks, text);
    else
        vr_text_printf(text, "%zu leak%s: %s more in every step", leaks->count, leaks->count == 1 ? "" : "s",
                       vr_bytes((uint64_t)rate).text);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, "\n");
}

enum vram_status vram_leaks_text(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                 const struct vram_style *style, vram_write write, void *user, size_t *leaks, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct vr_leaks found;
    struct vr_text text = {0};
    VR_TRY(vr_leaks_open(recording, options, &found, error));
    vr_text_colour(&text, shown, VR_BOLD);
    if (title != NULL) vr_text_printable(&text, title, strlen(title));
    vr_text_colour(&text, shown, VR_PLAIN);
    vr_text_printf(&text, "%s%s, ", title == NULL ? "" : ": ", vr_view_name(found.profile.view).text);
    print_steps(&found, &text);
    print_verdict(&found, shown, &text);
    print_growers(&found, shown, &text);
    print_stacks(&found, shown, &text);
    print_never_freed(&found, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = found.count;
    vr_text_release(&text);
    vr_leaks_close(&found);
    return status;
}

// To a thousandth: what lies behind it is the arithmetic's, not the recording's.
static double rounded(double value) { return round(value * 1000) / 1000; }

static enum vram_status put_json(const struct vr_leaks *leaks, struct vr_json *json) {
    vr_json_u64(json, "device", leaks->profile.view->device);
    vr_json_string(json, "steps_from", vr_step_source_word(leaks->steps.source));
    vr_json_bool(json, "steps_sure", !leaks->steps.unsure);
    vr_json_string(json, "step_name", leaks->steps.name == 0 ? NULL : vr_model_string(leaks->profile.model, leaks->steps.name));
    vr_json_u64(json, "steps", leaks->steps.count);
    vr_json_u64(json, "leaks", leaks->count);
    vr_json_string(json, "by", vr_grouping_words[leaks->grouping.by]);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < leaks->growth.count; i++) {
        const struct vr_grower *grower = &leaks->growth.grower[i];
        vr_json_object(json, NULL);
        VR_TRY(vr_group_name_json(&leaks->grouping, grower->key, json));
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
    struct vr_leaks found;
    struct vr_text text = {0};
    struct vr_json json;
    VR_TRY(vr_leaks_open(recording, options, &found, error));
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    vr_json_string(&json, "file", title);
    enum vram_status status = put_json(&found, &json);
    vr_json_object_end(&json);
    if (status == VRAM_OK) status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = found.count;
    vr_text_release(&text);
    vr_leaks_close(&found);
    return status;
}
