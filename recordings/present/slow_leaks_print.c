// Prints what grows over hours in a server's recording, as text and as JSON.
#include <math.h>

#include "analyze/slow_leaks.h"
#include "base/json_rows.h"
#include "present/shared_texts.h"
#include "vram/profile.h"

#define HOURS_PER_DAY 24

static struct vr_formatted duration(uint64_t seconds) { return vr_duration_ns(vr_us_to_ns(seconds * 1000000)); }

static uint64_t since_start(const struct vr_slow_leaks *leaks, int64_t time_us) {
    return time_us > leaks->first_us ? ((uint64_t)time_us - (uint64_t)leaks->first_us) / 1000000 : 0;
}

static struct vr_formatted rate_of(double bytes) { return vr_bytes((uint64_t)(bytes + 0.5)); }

// ---- Sentences, without a full stop.

static void put_too_short(const struct vr_slow_leaks *leaks, struct vr_text *text) {
    vr_text_printf(text, "cannot tell: %s is too short, at least an hour is needed",
                   leaks->seconds == 0 ? "less than a second" : duration(leaks->seconds).text);
    if (leaks->steps.count == 0) return;
    const bool repeats = leaks->steps.pass_frame != 0 || leaks->steps.unsure; // "allocations repeat", which may not be steps
    vr_text_puts(text, repeats ? "; the recording's " : "; the recording has ");
    vr_leak_steps_text(leaks->view->model, &leaks->steps, text);
    vr_text_puts(text, ": leave out --serving");
}

static void put_end(const struct vr_slow_leaks *leaks, struct vr_text *text) {
    if (leaks->hours_left < 0) return;
    vr_text_puts(text, "; memory runs out in ");
    if (leaks->hours_left < 2 * HOURS_PER_DAY)
        vr_text_printf(text, "%.1f hours", leaks->hours_left);
    else
        vr_text_printf(text, "%.1f days", leaks->hours_left / HOURS_PER_DAY);
    vr_text_printf(text, ", at the next peak as high as %s", vr_bytes(leaks->peak_bytes).text);
}

static void put_slow_answer(const struct vr_slow_leaks *leaks, struct vr_text *text) {
    switch (leaks->answer) {
    case VR_SLOW_ANSWER_NO_TIMES: vr_text_puts(text, "cannot tell: the recording has no events with times"); break;
    case VR_SLOW_ANSWER_TOO_SHORT: put_too_short(leaks, text); break;
    case VR_SLOW_ANSWER_NONE: vr_text_puts(text, "no leak: no old memory keeps growing until the end"); break;
    default:
        vr_text_printf(text, "%s: %s more per hour", vr_counted(leaks->leaks, "leak").text, rate_of(leaks->bytes_per_hour).text);
        put_end(leaks, text);
    }
}

static void put_lifetime(const struct vr_slow_course *course, struct vr_text *text) {
    if (course->lifetime_seconds == 0)
        vr_text_puts(text, "no memory of this group was ever freed");
    else
        vr_text_printf(text, "99 %% of what was freed was freed within %s", duration(course->lifetime_seconds).text);
}

// Prints the reason for the verdict.
static void put_grounds(const struct vr_slow_leaks *leaks, const struct vr_slow_course *course, struct vr_text *text) {
    switch (course->verdict) {
    case VR_SLOW_LEAK:
        vr_text_printf(text, "%s: since %s after the start, old memory grew in %u of %u parts of the recording; %s older than ",
                       course->sure ? "sure" : "likely", duration(since_start(leaks, course->since_us)).text, course->grew_parts,
                       course->parts, vr_counted(course->blocks, "allocation").text);
        vr_text_printf(text, "%s stayed; ", duration(course->old_seconds).text);
        put_lifetime(course, text);
        break;
    case VR_SLOW_FILLED:
        vr_text_printf(text, "old memory grew until %s after the start, then stopped: a warm-up, or a cache that is full",
                       duration(since_start(leaks, course->last_us)).text);
        break;
    case VR_SLOW_SLOWING: vr_text_puts(text, "old memory grows ever more slowly: a cache that is filling"); break;
    case VR_SLOW_EVICTS: vr_text_puts(text, "old memory is freed: a cache that stays within its limit, or long sessions"); break;
    default: vr_text_puts(text, "only young memory grew, with the requests; "); put_lifetime(course, text);
    }
}

// Prints the group's name: of the call site, or of the call site of a stack.
static void put_group_name(struct vr_slow_leaks *leaks, const struct vr_slow_leak *leak, struct vr_text *text) {
    struct vr_arena arena = {0};
    const char *name = NULL;
    const uint32_t frame = leak->by_stack ? vr_sites_frame(leaks->sites, leak->stack) : (uint32_t)leak->course.key;
    if (vr_sites_name(leaks->sites, frame, &arena, &name) == VRAM_OK)
        vr_text_puts(text, name);
    else
        text->failed = true;
    vr_arena_release(&arena);
}

// ---- Text.

static void put_course(struct vr_text *text, const struct vram_style *style, const uint64_t parts[VR_SLOW_PARTS]) {
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t p = 0; p < VR_SLOW_PARTS; p++) {
        least = parts[p] < least ? parts[p] : least;
        most = parts[p] > most ? parts[p] : most;
    }
    for (size_t p = 0; p < VR_SLOW_PARTS; p++) vr_text_level(text, style, parts[p] - least, most > least ? most - least : 1);
}

static void put_row(struct vr_table *table, struct vr_slow_leaks *leaks, const struct vram_style *style, const struct vr_slow_leak *leak) {
    const struct vr_slow_course *course = &leak->course;
    struct vr_text bars = {0}, name = {0}, title = {0};
    put_course(&bars, style, course->verdict >= VR_SLOW_SLOWING ? course->old : course->least);
    put_group_name(leaks, leak, &name);
    vr_title_print(VR_GROUP_SITE, vr_text_string(&name), name.length, &title);
    vr_table_cell(table, "%s", vr_slow_verdict_word(course->verdict));
    vr_table_cell(table, "+%s", rate_of(course->bytes_per_hour).text);
    vr_table_cell(table, "%s", vr_bytes(course->grown_bytes).text);
    vr_table_cell_bytes(table, vr_text_string(&bars), bars.length);
    vr_table_cell_bytes(table, vr_text_string(&title), title.length);
    table->cells.failed = table->cells.failed || bars.failed || name.failed || title.failed;
    vr_text_release(&title);
    vr_text_release(&name);
    vr_text_release(&bars);
}

static size_t shown_of(const struct vr_slow_leaks *leaks, const struct vram_profile_options *options) {
    enum { DEFAULT_TOP = 10 };
    const size_t top = options->top == 0 ? DEFAULT_TOP : options->top;
    return leaks->count < top ? leaks->count : top;
}

static void print_rows(struct vr_slow_leaks *leaks, size_t shown, const struct vram_style *style, struct vr_text *text) {
    const struct vr_table_column columns[] = {
        {.title = "", .align = VR_LEFT, .colour = leaks->leaks != 0 ? VR_RED : VR_PLAIN},
        {.title = "per hour", .align = VR_RIGHT, .colour = VR_BOLD},
        {.title = "grew by", .align = VR_RIGHT},
        {.title = "course", .align = VR_LEFT, .colour = VR_CYAN},
        {.title = "call site", .align = VR_LEFT, .flexible = true},
    };
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < shown; i++) put_row(&table, leaks, style, &leaks->groups[i]);
    if (table.cell_count != 0) {
        vr_text_puts(text, "\n");
        vr_table_print(&table, text, style, 2);
    }
    vr_table_release(&table);
}

// Prints the grounds of each row, and the stack of each leak.
static void print_grounds(struct vr_slow_leaks *leaks, size_t shown, const struct vram_style *style, struct vr_text *text) {
    for (size_t i = 0; i < shown; i++) {
        const struct vr_slow_leak *leak = &leaks->groups[i];
        struct vr_text line = {0}, name = {0};
        put_group_name(leaks, leak, &name);
        vr_text_puts(text, "\n  ");
        vr_title_print(VR_GROUP_SITE, vr_text_string(&name), name.length, &line);
        vr_text_puts(&line, leak->by_stack ? ", one of its call stacks: " : ": ");
        put_grounds(leaks, &leak->course, &line);
        vr_text_flow(text, style, 2, 4, vr_text_string(&line));
        vr_text_puts(text, "\n");
        text->failed = text->failed || line.failed || name.failed;
        if (leak->course.verdict == VR_SLOW_LEAK && leak->stack != 0) vr_stack_print(leaks->sites, leak->stack, style, text);
        vr_text_release(&name);
        vr_text_release(&line);
    }
}

static void print_head(const struct vr_slow_leaks *leaks, const char *title, const struct vram_style *style, struct vr_text *text) {
    const struct vr_profile device = {.model = leaks->view->model, .view = leaks->view, .why = leaks->why};
    struct vr_text line = {0};
    vr_text_colour(text, style, VR_BOLD);
    if (title != NULL) vr_text_printable(text, title, strlen(title));
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, title == NULL ? "" : ": ");
    vr_profile_device(&device, &line);
    if (leaks->seconds != 0) vr_text_printf(&line, ", %s", duration(leaks->seconds).text);
    const unsigned at = title == NULL ? 0 : (unsigned)vr_text_width(title, strlen(title)) + 2;
    vr_text_flow(text, style, at, 2, vr_text_string(&line));
    vr_text_puts(text, "\n");
    vr_text_release(&line);
    vr_text_colour(text, style, leaks->answer == VR_SLOW_ANSWER_LEAK ? VR_RED : leaks->answer == VR_SLOW_ANSWER_NONE ? VR_GREEN : VR_PLAIN);
    line = (struct vr_text){0};
    put_slow_answer(leaks, &line);
    vr_text_flow(text, style, 0, 2, vr_text_string(&line));
    vr_text_puts(text, "\n");
    vr_text_colour(text, style, VR_PLAIN);
    text->failed = text->failed || line.failed;
    vr_text_release(&line);
}

enum vram_status vram_slow_leaks_text(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                      const struct vram_style *style, vram_write write, void *user, size_t *leaks,
                                      struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct vr_slow_leaks found;
    struct vr_text text = {0};
    VR_TRY(vr_slow_leaks_open(recording, options, &found, error));
    print_head(&found, title, shown, &text);
    print_rows(&found, shown_of(&found, options), shown, &text);
    print_grounds(&found, shown_of(&found, options), shown, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = found.leaks;
    vr_text_release(&text);
    vr_slow_leaks_close(&found);
    return status;
}

// ---- JSON.

static double round_to_bytes(double value) { return round(value * 1000) / 1000; }

static void put_name(struct vr_json *json, const char *key, struct vr_slow_leaks *leaks, const struct vr_slow_leak *leak) {
    struct vr_text name = {0};
    put_group_name(leaks, leak, &name);
    vr_json_string(json, key, vr_text_string(&name));
    vr_text_release(&name);
}

static void put_frames(struct vr_json *json, const char *key, const struct vr_slow_leaks *leaks, uint32_t stack) {
    const struct vr_model *model = leaks->view->model;
    struct vr_arena arena = {0};
    vr_json_array(json, key);
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1]; i++) {
        const char *name = NULL;
        if (vr_sites_name(leaks->sites, model->stacks.frame[i], &arena, &name) == VRAM_OK) vr_json_string(json, NULL, name);
    }
    vr_json_array_end(json);
    vr_arena_release(&arena);
}

static void put_parts(struct vr_json *json, const char *key, const uint64_t parts[VR_SLOW_PARTS]) {
    vr_json_array(json, key);
    for (size_t p = 0; p < VR_SLOW_PARTS; p++) vr_json_u64(json, NULL, parts[p]);
    vr_json_array_end(json);
}

#define SLOW_GROUP_FACTS(X)                                                                                                                \
    X(NAME, "name", put_name(json, key, leaks, leak), ALWAYS, "call site")                                                                 \
    X(TEXT, "by", leak->by_stack ? "stack" : "site", ALWAYS, "`stack`: one call stack of the site leaks, and others hide it")              \
    X(TEXT, "verdict", vr_slow_verdict_word(it->verdict), ALWAYS, "`leak`, `filled`, `slowing`, `evicts` or `traffic`")                    \
    X(TEXT, "reason", vr_text_string(&grounds), ALWAYS, "the reason for the verdict, as in the command")                                   \
    X(BOOL, "sure", it->sure, ALWAYS, "of a leak: true: sure; false: likely")                                                              \
    X(DOUBLE, "bytes_per_hour", round_to_bytes(it->bytes_per_hour), ALWAYS, "growth since it began")                                       \
    X(U64, "grown_bytes", it->grown_bytes, ALWAYS, "the same in bytes")                                                                    \
    X(I64, "since_us", it->since_us, NULL_UNLESS(it->since_us != 0), "when the growth began, in the recording's clock")                    \
    X(I64, "last_us", it->last_us, NULL_UNLESS(it->last_us != 0), "when it last went on")                                                  \
    X(U64, "allocations", it->blocks, ALWAYS, "allocations since then that are old and were never freed")                                  \
    X(U64, "old_seconds", it->old_seconds, ALWAYS, "age from which memory of this group counts as old")                                    \
    X(U64, "lifetime_seconds", it->lifetime_seconds, ALWAYS,                                                                               \
      "99 % of the group's freed allocations had a shorter lifetime; 0: none was freed")                                                   \
    X(U64, "grew_parts", it->grew_parts, ALWAYS, "number of `parts` in which old memory grew")                                             \
    X(U64, "parts", it->parts, ALWAYS, "24ths of the recording since the growth began")                                                    \
    X(DOUBLE, "trend", round_to_bytes(it->trend), ALWAYS, "Mann-Kendall's statistic of `old_bytes`, in standard deviations")               \
    X(ARRAY, "live_bytes", put_parts(json, key, it->least), ALWAYS, "fewest live bytes in each 24th of the recording")                     \
    X(ARRAY, "old_bytes", put_parts(json, key, it->old), ALWAYS, "fewest old bytes in each; 0: memory becomes old too late to tell")       \
    X(ARRAY, "frames", put_frames(json, key, leaks, leak->stack), ALWAYS, "a call stack that leaks, innermost frame first")

static void put_slow_groups(struct vr_json *json, const char *name, struct vr_slow_leaks *leaks, size_t shown) {
    vr_json_array(json, name);
    for (size_t i = 0; i < shown; i++) {
        const struct vr_slow_leak *leak = &leaks->groups[i];
        const struct vr_slow_course *it = &leak->course;
        struct vr_text grounds = {0};
        put_grounds(leaks, it, &grounds);
        vr_json_object(json, NULL);
        SLOW_GROUP_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
        vr_text_release(&grounds);
    }
    vr_json_array_end(json);
}

#define SLOW_LEAK_FACTS(X)                                                                                                                 \
    X(TEXT, "file", title, ALWAYS, "file name without its folder")                                                                         \
    X(U64, "device", it->view->device, ALWAYS,                                                                                             \
      "without `--device`, the one that ran out of memory, else the one with the highest peak, else the first that leaks")                 \
    X(TEXT, "answer", vr_slow_answer_word(it->answer), ALWAYS, "`leak`, `none`, `too_short` or `no_times`")                                \
    X(TEXT, "text", vr_text_string(&sentence), ALWAYS, "the answer as a sentence, as in the command and `vram mcp`")                       \
    X(U64, "seconds", it->seconds, ALWAYS, "from the first event to the last")                                                             \
    X(U64, "leaks", it->leaks, ALWAYS, "number of groups that leak")                                                                       \
    X(DOUBLE, "bytes_per_hour", round_to_bytes(it->bytes_per_hour), ALWAYS, "sum over the leaks")                                          \
    X(DOUBLE, "hours_left", round_to_bytes(it->hours_left), NULL_UNLESS(it->hours_left >= 0),                                              \
      "until the peak reaches the memory of `--memory`; null: no leak, or without `--memory`")                                             \
    X(ARRAY, "groups", put_slow_groups(json, key, it, shown), ALWAYS, "leaks first, then what grew without leaking (see below)")

enum vram_status vram_slow_leaks_json(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                      vram_write write, void *user, size_t *leaks, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    struct vr_slow_leaks found, *it = &found;
    struct vr_text text = {0}, sentence = {0};
    struct vr_json json_of_text, *json = &json_of_text;
    VR_TRY(vr_slow_leaks_open(recording, options, &found, error));
    const size_t shown = shown_of(&found, options);
    put_slow_answer(&found, &sentence);
    vr_json_init(json, &text, true);
    vr_json_object(json, NULL);
    SLOW_LEAK_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    if (status == VRAM_OK && leaks != NULL) *leaks = found.leaks;
    vr_text_release(&sentence);
    vr_text_release(&text);
    vr_slow_leaks_close(&found);
    return status;
}
