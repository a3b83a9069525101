// Prints the groups that leak or grow from step to step, as text and as JSON.
#include <math.h>

#include "analyze/leaks.h"
#include "base/json_rows.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"

static void put_row_name(const struct vr_model *model, uint32_t name, struct vr_text *text) {
    const char *string = vr_model_string(model, name);
    vr_text_puts(text, " (");
    vr_text_printable(text, string, strlen(string));
    vr_text_puts(text, ")");
}

void vr_leak_steps_text(const struct vr_model *model, const struct vr_steps *steps, struct vr_text *text) {
    static const char *const found[VR_STEP_SOURCE_COUNT] = {[VR_STEPS_MARKED] = "marked by the program",
                                                            [VR_STEPS_EVERY] = "as given",
                                                            [VR_STEPS_REPEATED] = "inferred from repeating allocations"};
    if (steps->count == 0) {
        vr_text_puts(text, "no steps");
    } else if (steps->pass_frame != 0 || steps->unsure) {
        vr_text_printf(text, "allocations repeat %s times", vr_count(steps->count).text);
    } else {
        vr_text_printf(text, "%s, %s", vr_counted(steps->count, "step").text, found[steps->source]);
        if (steps->name != 0) put_row_name(model, steps->name, text);
    }
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/'), *backslash = strrchr(path, '\\');
    if (slash == NULL || (backslash != NULL && backslash > slash)) slash = backslash;
    return slash == NULL ? path : slash + 1;
}

static void put_pass(const struct vr_model *model, const struct vr_steps *steps, struct vr_text *text) {
    const uint32_t frame = steps->pass_frame - 1;
    const char *file = base_name(vr_model_string(model, model->frames.filename[frame]));
    const char *name = vr_model_string(model, model->frames.name[frame]);
    const int64_t line = model->frames.line[frame];
    vr_text_printf(text, "one step of %s layers, all in one ", vr_count(steps->count).text);
    if (line > 0 && strcmp(name, "forward") == 0) {
        vr_text_puts(text, "forward pass (");
        vr_text_printable(text, file, strlen(file));
        vr_text_printf(text, ":%lld)", (long long)line);
    } else {
        vr_text_puts(text, strcmp(name, "__call__") == 0 ? "forward pass" : "backward pass");
    }
    vr_text_puts(text, "; record several steps");
}

static struct vr_formatted format_rate(double bytes) { return vr_bytes(bytes <= 0 ? 0 : (uint64_t)(bytes + 0.5)); }

// Prints the answer as a sentence without a full stop.
static void leak_answer_text(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *finding,
                             struct vr_text *text) {
    switch (finding->answer) {
    case VR_LEAKS_NO_STEPS:
        vr_text_puts(text, steps->asked ? "cannot tell: fewer than three marks have that name"
                                        : "cannot tell: no marks, and allocations do not repeat");
        break;
    case VR_LEAKS_ONE_PASS: put_pass(model, steps, text); break;
    case VR_LEAKS_UNSURE:
        vr_text_puts(text, "cannot tell: repeating allocations may be steps or the layers of one step; record several steps, or mark them");
        break;
    case VR_LEAKS_FEW_STEPS:
        vr_text_printf(text, "cannot tell: %zu step%s too few, at least %d are needed", steps->count, steps->count == 1 ? " is" : "s are",
                       VR_LEAST_STEPS);
        break;
    case VR_LEAKS_NONE: vr_text_puts(text, "no leak: nothing accumulates from step to step"); break;
    case VR_LEAKS_GROWING:
        vr_text_printf(text, "no leak: nothing accumulates, but requests grow by %s per step", format_rate(finding->bytes_per_step).text);
        break;
    case VR_LEAKS_RELEASED:
        vr_text_printf(text, "no leak: %s accumulated per step, but was freed after the last step",
                       format_rate(finding->bytes_per_step).text);
        break;
    default:
        vr_text_printf(text, "%zu leak%s: %s more per step", finding->leaks, finding->leaks == 1 ? "" : "s",
                       format_rate(finding->bytes_per_step).text);
    }
}

// Prints "3 of 12": of the points since the growth began, the number that exceed the point before.
static void leak_points_grown(const struct vr_grower *grower, struct vr_text *text) {
    vr_text_printf(text, "%zu of %zu", grower->grew_points, grower->course_points);
}

// ---- text and JSON ----

// Prints a bar of the bytes at each point, at most twenty.
static void put_course(struct vr_text *text, const struct vram_style *style, const uint64_t *bytes, size_t points) {
    const size_t shown = points < 20 ? points : 20;
    uint64_t most = 1;
    for (size_t p = 0; p < points; p++) most = bytes[p] > most ? bytes[p] : most;
    for (size_t i = 0; i < shown; i++) vr_text_level(text, style, bytes[shown < 2 ? 0 : i * (points - 1) / (shown - 1)], most);
}

static void put_leak_row(struct vr_table *table, const struct vr_leaks *leaks, const struct vram_style *style,
                         const struct vr_grower *grower) {
    struct vr_text course = {0}, name = {0}, grown = {0};
    put_course(&course, style, grower->bytes, leaks->growth.point_count);
    leak_points_grown(grower, &grown);
    vr_group_title(&leaks->grouping, grower->key, &name);
    vr_table_cell(table, "%s", vr_verdict_word(grower->verdict));
    vr_table_cell(table, "+%s", vr_bytes((uint64_t)grower->bytes_per_step).text);
    vr_table_cell(table, "%.2f", grower->objects_per_step);
    vr_table_cell_bytes(table, vr_text_string(&grown), grown.length);
    vr_table_cell(table, "%s", vr_bytes(grower->last_bytes).text);
    vr_table_cell_bytes(table, vr_text_string(&course), course.length);
    vr_table_cell_bytes(table, vr_text_string(&name), name.length);
    table->cells.failed = table->cells.failed || course.failed || name.failed || grown.failed;
    vr_text_release(&grown);
    vr_text_release(&course);
    vr_text_release(&name);
}

static void print_growers(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    const struct vr_table_column columns[] = {
        {.title = "", .align = VR_LEFT, .colour = leaks->finding.leaks != 0 ? VR_RED : VR_PLAIN},
        {.title = "per step", .align = VR_RIGHT, .colour = VR_BOLD},
        {.title = "objects", .align = VR_RIGHT},
        {.title = "grew", .align = VR_RIGHT},
        {.title = "last step", .align = VR_RIGHT},
        {.title = "course", .align = VR_LEFT, .colour = VR_CYAN},
        {.title = vr_grouping_heading(leaks->grouping.by), .align = VR_LEFT, .flexible = true},
    };
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < leaks->finding.shown; i++) put_leak_row(&table, leaks, style, &leaks->growth.grower[i]);
    if (table.cell_count != 0) {
        vr_text_puts(text, "\n");
        vr_table_print(&table, text, style, 2);
    }
    vr_table_release(&table);
}

static void print_stacks(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    if (leaks->grouping.by != VR_GROUP_STACK) return;
    for (size_t i = 0; i < leaks->finding.leaks; i++) {
        vr_text_printf(text, "\n  stack %llu\n", (unsigned long long)leaks->growth.grower[i].key);
        vr_stack_print(leaks->grouping.sites, (uint32_t)leaks->growth.grower[i].key, style, text);
    }
}

// Prints the text in lines of the style's width, and releases it.
static void flow_line(struct vr_text *text, const struct vram_style *style, struct vr_text *line) {
    vr_text_flow(text, style, 0, 2, vr_text_string(line));
    vr_text_puts(text, "\n");
    text->failed = text->failed || line->failed;
    vr_text_release(line);
}

static void print_never_freed(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    const struct vram_report_sum end = leaks->profile.lifetimes.end;
    if (end.bytes == 0) return;
    struct vr_text line = {0};
    vr_text_printf(&line, "never freed: %s; `vram report --site --at end` shows what holds it", vr_bytes(end.bytes).text);
    flow_line(text, style, &line);
}

enum { MARKS_SHOWN = 8 };

// For steps that were not found or are uncertain: prints how to name them, and which marks could begin them.
static void print_how_steps_begin(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    struct vr_text line = {0};
    const struct vr_step_marks *marks = &leaks->marks;
    if (leaks->finding.answer > VR_LEAKS_UNSURE) return;
    vr_text_puts(&line, "--step NAME or --every N sets where steps begin; ");
    if (marks->count == 0) {
        vr_text_puts(&line, "the recording has no marks");
    } else {
        vr_text_puts(&line, "the recording's marks: ");
    }
    for (size_t i = 0; i < marks->count && i < MARKS_SHOWN; i++) {
        const char *name = vr_model_string(leaks->profile.model, marks->mark[i].name);
        vr_text_puts(&line, i == 0 ? "" : ", ");
        vr_text_printable(&line, name, strlen(name));
        vr_text_printf(&line, " (%s)", vr_count(marks->mark[i].count).text);
    }
    if (marks->count > MARKS_SHOWN) vr_text_printf(&line, ", and %s more", vr_count(marks->count - MARKS_SHOWN).text);
    flow_line(text, style, &line);
}

static void print_answer(const struct vr_leaks *leaks, const struct vram_style *style, struct vr_text *text) {
    const enum vr_leak_answer answer = leaks->finding.answer;
    struct vr_text line = {0};
    vr_text_colour(text, style, answer == VR_LEAKS_LEAK ? VR_RED : answer >= VR_LEAKS_NONE ? VR_GREEN : VR_PLAIN);
    leak_answer_text(leaks->profile.model, &leaks->steps, &leaks->finding, &line);
    flow_line(text, style, &line);
    vr_text_colour(text, style, VR_PLAIN);
    print_how_steps_begin(leaks, style, text);
}

enum vram_status vram_leaks_text(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                 const struct vram_style *style, vram_write write, void *user, size_t *leaks, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct vr_leaks found;
    struct vr_text text = {0}, line = {0};
    VR_TRY(vr_leaks_open(recording, options, &found, error));
    vr_text_colour(&text, shown, VR_BOLD);
    if (title != NULL) vr_text_printable(&text, title, strlen(title));
    vr_text_colour(&text, shown, VR_PLAIN);
    vr_text_puts(&text, title == NULL ? "" : ": ");
    vr_profile_device(&found.profile, &line);
    vr_text_puts(&line, ", ");
    vr_leak_steps_text(found.profile.model, &found.steps, &line);
    const unsigned at = title == NULL ? 0 : (unsigned)vr_text_width(title, strlen(title)) + 2;
    vr_text_flow(&text, shown, at, 2, vr_text_string(&line));
    vr_text_puts(&text, "\n");
    text.failed = text.failed || line.failed;
    vr_text_release(&line);
    print_answer(&found, shown, &text);
    print_growers(&found, shown, &text);
    print_stacks(&found, shown, &text);
    print_never_freed(&found, shown, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = found.finding.leaks;
    vr_text_release(&text);
    vr_leaks_close(&found);
    return status;
}

// Rounds to a thousandth. Further digits come from the arithmetic, not from the recording.
static double round_to_bytes(double value) { return round(value * 1000) / 1000; }

#define LEAK_MARK_FACTS(X)                                                                                                                 \
    X(TEXT, "name", vr_model_string(model, it->name), ALWAYS, "name of the mark")                                                          \
    X(U64, "count", it->count, ALWAYS, "number of occurrences")

static void put_marks(struct vr_json *json, const char *key, const struct vr_leaks *leaks) {
    const struct vr_model *model = leaks->profile.model;
    vr_json_array(json, key);
    for (size_t i = 0; i < leaks->marks.count && i < MARKS_SHOWN; i++) {
        const struct vr_step_mark *it = &leaks->marks.mark[i];
        vr_json_object(json, NULL);
        LEAK_MARK_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define LEAK_GROUP_FACTS(X)                                                                                                                \
    X(NAME, "name", VR_TRY(vr_group_name_json(&leaks->grouping, it->key, json)), ALWAYS, "name of the group")                              \
    X(TEXT, "verdict", vr_verdict_word(it->verdict), ALWAYS, "`leak` or `growth`")                                                         \
    X(DOUBLE, "bytes_per_step", round_to_bytes(it->bytes_per_step), ALWAYS,                                                                \
      "of a leak: bytes that remain per step since it began; else the slope of a line through the starts of the steps")                    \
    X(DOUBLE, "objects_per_step", round_to_bytes(it->objects_per_step), ALWAYS, "the same in allocations")                                 \
    X(U64, "grew_points", it->grew_points, ALWAYS, "number of `course_points` that are higher than the one before")                        \
    X(U64, "course_points", it->course_points, ALWAYS, "starts of steps since the growth began, at most 256")                              \
    X(U64, "first_bytes", it->first_bytes, ALWAYS, "live bytes at the start of the second step")                                           \
    X(U64, "last_bytes", it->last_bytes, ALWAYS, "live bytes at the start of the last step")

static enum vram_status put_growers(struct vr_json *json, const char *name, const struct vr_leaks *leaks) {
    vr_json_array(json, name);
    for (size_t i = 0; i < leaks->finding.shown; i++) {
        const struct vr_grower *it = &leaks->growth.grower[i];
        vr_json_object(json, NULL);
        LEAK_GROUP_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return VRAM_OK;
}

#define LEAK_ANSWER_FACTS(X)                                                                                                               \
    X(TEXT, "answer", vr_leak_answer_word(it->answer), ALWAYS, "see the table below")                                                      \
    X(TEXT, "text", vr_text_string(&sentence), ALWAYS, "the answer as a sentence, as in the command, `vram mcp` and the page")

void vr_leak_answer_json(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *it,
                         struct vr_json *json) {
    struct vr_text sentence = {0};
    leak_answer_text(model, steps, it, &sentence);
    LEAK_ANSWER_FACTS(VR_FACT_JSON)
    vr_text_release(&sentence);
}

#define LEAK_STEP_FACTS(X)                                                                                                                 \
    X(TEXT, "file", title, ALWAYS, "file name without its folder")                                                                         \
    X(U64, "device", it->profile.view->device, ALWAYS,                                                                                     \
      "without `--device`, the one that ran out of memory, else the one with the highest peak")                                            \
    X(TEXT, "steps_text", vr_text_string(&steps), ALWAYS, "where steps begin, as a phrase")                                                \
    X(TEXT, "steps_from", vr_step_source_word(it->steps.source), ALWAYS,                                                                   \
      "`marked` (by the program), `given`, `repeated` (inferred from repeating allocations), `none`")                                      \
    X(BOOL, "steps_sure", !it->steps.unsure, ALWAYS, "false: repeated steps that may be layers of a model")                                \
    X(TEXT, "step_name", vr_model_string(it->profile.model, it->steps.name), NULL_UNLESS(it->steps.name != 0), "name of the marks")        \
    X(U64, "steps", it->steps.count, ALWAYS, "number of steps")

#define LEAK_FACTS(X)                                                                                                                      \
    X(U64, "leaks", it->finding.leaks, ALWAYS, "number of groups that leak: 0 unless the answer is `leak`")                                \
    X(DOUBLE, "bytes_per_step", round_to_bytes(it->finding.bytes_per_step), ALWAYS, "sum over the groups below")                           \
    X(TEXT, "by", vr_grouping_words[it->grouping.by], ALWAYS,                                                                              \
      "the grouping; also `stack` if none was requested and a call stack leaks but no call site does")                                     \
    X(ARRAY, "marks", put_marks(json, key, it), ALWAYS, "the most frequent marks of the recording, at most 8 (see below)")                 \
    X(ARRAY, "groups", VR_TRY(put_growers(json, key, it)), ALWAYS,                                                                         \
      "groups by descending slope (see below); empty unless the answer is `leak` or `growing`")

static enum vram_status put_leaks_json(const struct vr_leaks *it, const char *title, struct vr_json *json) {
    struct vr_text steps = {0};
    vr_leak_steps_text(it->profile.model, &it->steps, &steps);
    LEAK_STEP_FACTS(VR_FACT_JSON)
    vr_text_release(&steps);
    vr_leak_answer_json(it->profile.model, &it->steps, &it->finding, json);
    LEAK_FACTS(VR_FACT_JSON)
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
    enum vram_status status = put_leaks_json(&found, title, &json);
    vr_json_object_end(&json);
    if (status == VRAM_OK) status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = found.finding.leaks;
    vr_text_release(&text);
    vr_leaks_close(&found);
    return status;
}
