// Prints the largest groups of live memory at one moment, or at two moments compared, as text and as JSON.
#include "analyze/group_diff.h"
#include "base/json_rows.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"

void vr_profile_moment(const struct vr_profile *subject, const struct vram_profile_options *options, struct vr_text *text) {
    if (options->moment == VRAM_PROFILE_PEAK) vr_text_puts(text, "the peak, ");
    if (options->moment == VRAM_PROFILE_END) vr_text_puts(text, "the end, ");
    if (subject->event < 0)
        vr_text_puts(text, "before the first event");
    else
        vr_text_printf(text, "after event %s", vr_count((uint64_t)subject->event).text);
}

void vr_profile_device(const struct vr_profile *subject, struct vr_text *text) {
    static const char *const reasons[] = {
        [VR_CHOICE_OOM] = " (out of memory)", [VR_CHOICE_PEAK] = " (highest peak)", [VR_CHOICE_EVENTS] = " (most events)"};
    const char *why = subject->why < VR_COUNT_OF(reasons) ? reasons[subject->why] : NULL;
    vr_text_printf(text, "%s%s", vr_view_name(subject->view).text, why == NULL ? "" : why);
}

// Returns the title of the role with this word.
static const char *role_title(const char *word, size_t length) {
    size_t role = 0;
    while (vram_role_word(role) != NULL && (strlen(vram_role_word(role)) != length || memcmp(vram_role_word(role), word, length) != 0))
        role++;
    return vram_role_title(role);
}

void vr_title_print(enum vr_group_by by, const char *name, size_t length, struct vr_text *text) {
    if (by == VR_GROUP_SITE || by == VR_GROUP_STACK) {
        vr_text_site(text, name, length);
    } else if (by == VR_GROUP_ROLE && role_title(name, length) != NULL) {
        vr_text_puts(text, role_title(name, length));
    } else if (by == VR_GROUP_FUNCTION) {
        vr_text_function(text, name, length);
    } else {
        vr_text_printable(text, name, length);
    }
}

void vr_group_title(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text) {
    struct vr_text name = {0};
    vr_grouping_name(grouping, key, &name);
    vr_title_print(grouping->by, vr_text_string(&name), name.length, text);
    text->failed = text->failed || name.failed;
    vr_text_release(&name);
}

enum vram_status vr_group_name_json(const struct vr_grouping *grouping, uint64_t key, struct vr_json *json) {
    struct vr_text name = {0};
    vr_grouping_name(grouping, key, &name);
    const enum vram_status status = vr_text_status(&name);
    vr_json_string_bytes(json, "name", vr_text_string(&name), name.length);
    vr_text_release(&name);
    return status;
}

static void frame_line(const struct vr_model *model, uint32_t frame, const char *before, struct vr_text *text) {
    const uint32_t name = model->frames.name[frame], file = model->frames.filename[frame];
    const size_t name_length = vr_model_string_length(model, name);
    vr_text_puts(text, before);
    if (vr_text_unnamed(text, vr_model_string(model, file), vr_model_string_length(model, file), vr_model_string(model, name),
                        name_length)) {
        vr_text_puts(text, "\n");
        return;
    }
    vr_text_printable(text, vr_model_string(model, name), name_length);
    vr_text_puts(text, "  ");
    vr_text_printable(text, vr_model_string(model, file), vr_model_string_length(model, file));
    vr_text_printf(text, ":%lld\n", (long long)model->frames.line[frame]);
}

// Returns whether an earlier kind that also occurs has the same word.
static bool is_repeated(const bool *has, size_t kind) {
    for (size_t before = 0; before < kind; before++) {
        if (has[before] && strcmp(vr_frame_kind_word((enum vr_frame_kind)before), vr_frame_kind_word((enum vr_frame_kind)kind)) == 0)
            return true;
    }
    return false;
}

// Prints one line for the folded frames [from, to): their number and their kinds, in the table's order.
static void fold_line(struct vr_sites *sites, uint64_t from, uint64_t to, struct vr_text *text) {
    bool has[VR_FRAME_KIND_COUNT] = {false};
    const char *between = "";
    for (uint64_t i = from; i < to; i++) has[vr_sites_kind(sites, sites->model->stacks.frame[i])] = true;
    vr_text_printf(text, "       (%llu frames: ", (unsigned long long)(to - from));
    for (size_t kind = 0; kind < VR_FRAME_KIND_COUNT; kind++) {
        if (!has[kind] || is_repeated(has, kind)) continue;
        vr_text_printf(text, "%s%s", between, vr_frame_kind_word((enum vr_frame_kind)kind));
        between = ", ";
    }
    vr_text_puts(text, ")\n");
}

void vr_stack_print(struct vr_sites *sites, uint32_t stack, const struct vram_style *style, struct vr_text *text) {
    enum { STACK_LINES = 12 };
    const struct vr_model *model = sites->model;
    const uint64_t first = model->stacks.offset[stack], end = model->stacks.offset[stack + 1];
    if (first == end) return;
    frame_line(model, vr_sites_frame(sites, stack), style->unicode ? "     \xe2\x86\x92 " : "    -> ", text);
    vr_text_colour(text, style, VR_DIM);
    uint64_t at = first;
    for (unsigned lines = 0; at < end && lines < STACK_LINES; lines++) {
        uint64_t next = at;
        while (next < end && vr_sites_folds(sites, stack, model->stacks.frame[next])) next++;
        if (next - at > 1)
            fold_line(sites, at, next, text);
        else
            frame_line(model, model->stacks.frame[at], "       ", text);
        at = next - at > 1 ? next : at + 1;
    }
    if (at < end) vr_text_printf(text, "       and %s\n", vr_counted(end - at, "more frame").text);
    vr_text_colour(text, style, VR_PLAIN);
}

// ---- one moment ----

enum { DEFAULT_TOP = 10, BAR_COLUMNS = 16 };

const char *vram_profile_grouping(size_t index) { return index < VR_GROUP_COUNT ? vr_grouping_words[index] : NULL; }

struct profile {
    struct vr_profile subject;
    struct vr_grouping grouping;
    struct vr_group *groups;
    size_t count, top;
    struct vr_role_totals totals; // indexed by role
};

static enum vram_status count_roles(struct profile *profile) {
    if (profile->grouping.by != VR_GROUP_ROLE) return VRAM_OK;
    const struct vr_profile *subject = &profile->subject;
    return vr_roles_count(&profile->grouping.roles, &subject->lifetimes, subject->view->history->count, &profile->totals);
}

static enum vram_status open_profile(const struct vram_recording *recording, const struct vram_profile_options *options,
                                     struct profile *profile, struct vram_error *error) {
    *profile = (struct profile){.top = options == NULL || options->top == 0 ? DEFAULT_TOP : options->top};
    VR_TRY(vr_profile_open(recording, options, &profile->subject, error));
    enum vram_status status = vr_profile_grouping(&profile->subject, options, &profile->grouping, error);
    if (status == VRAM_OK) {
        status = vr_grouping_sum(&profile->grouping, profile->subject.rows, profile->subject.count, &profile->groups, &profile->count);
        if (status == VRAM_OK) status = count_roles(profile);
        if (status != VRAM_OK) {
            free(profile->groups);
            vr_grouping_release(&profile->grouping);
        }
    }
    if (status != VRAM_OK) vr_profile_close(&profile->subject);
    return status;
}

static void close_profile(struct profile *profile) {
    free(profile->groups);
    vr_grouping_release(&profile->grouping);
    vr_profile_close(&profile->subject);
}

static const struct vr_table_column profile_columns[] = {
    {.title = "bytes", .align = VR_RIGHT, .colour = VR_BOLD}, {.title = "share", .align = VR_RIGHT},
    {.title = "", .align = VR_LEFT, .colour = VR_CYAN},       {.title = "count", .align = VR_RIGHT},
    {.title = NULL, .align = VR_LEFT, .flexible = true},
};

static void put_profile_row(struct vr_table *table, const struct profile *profile, const struct vram_style *style, uint64_t bytes,
                            uint64_t count, const struct vr_text *name) {
    struct vr_text bar = {0};
    const uint64_t most = profile->count == 0 ? 0 : profile->groups[0].bytes;
    const struct vram_style plain = {.unicode = style->unicode};
    vr_text_bar(&bar, &plain, bytes, most, BAR_COLUMNS);
    vr_table_cell(table, "%s", vr_bytes(bytes).text);
    vr_table_cell(table, "%s", vr_percent(bytes, profile->subject.bytes).text);
    vr_table_cell_bytes(table, vr_text_string(&bar), bar.length);
    vr_table_cell(table, "%s", vr_count(count).text);
    vr_table_cell_bytes(table, vr_text_string(name), name->length);
    table->cells.failed = table->cells.failed || bar.failed || name->failed;
    vr_text_release(&bar);
}

// Prints the groups after the first `top` as one row.
static void put_rest(struct vr_table *table, const struct profile *profile, const struct vram_style *style) {
    uint64_t bytes = 0, count = 0;
    for (size_t i = profile->top; i < profile->count; i++) {
        bytes += profile->groups[i].bytes;
        count += profile->groups[i].count;
    }
    if (profile->count <= profile->top) return;
    struct vr_text name = {0};
    vr_text_printf(&name, "%s", vr_counted(profile->count - profile->top, "other").text);
    put_profile_row(table, profile, style, bytes, count, &name);
    vr_text_release(&name);
}

static void print_groups(const struct profile *profile, const struct vram_style *style, struct vr_text *text) {
    struct vr_table_column headed[VR_COUNT_OF(profile_columns)];
    memcpy(headed, profile_columns, sizeof profile_columns);
    headed[VR_COUNT_OF(profile_columns) - 1].title = vr_grouping_heading(profile->grouping.by);
    struct vr_table table;
    vr_table_init(&table, headed, VR_COUNT_OF(headed));
    for (size_t i = 0; i < profile->count && i < profile->top; i++) {
        struct vr_text name = {0};
        vr_group_title(&profile->grouping, profile->groups[i].key, &name);
        put_profile_row(&table, profile, style, profile->groups[i].bytes, profile->groups[i].count, &name);
        vr_text_release(&name);
    }
    put_rest(&table, profile, style);
    vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
    if (profile->grouping.by != VR_GROUP_STACK) return;
    for (size_t i = 0; i < profile->count && i < profile->top; i++) {
        vr_text_printf(text, "\n  %s in stack %llu\n", vr_bytes(profile->groups[i].bytes).text, (unsigned long long)profile->groups[i].key);
        vr_stack_print(profile->grouping.sites, (uint32_t)profile->groups[i].key, style, text);
    }
}

// Prints totals by role over the whole history: the highest total of each and the sum of all its allocations.
static void print_totals(const struct profile *profile, const struct vram_style *style, struct vr_text *text) {
    static const struct vr_table_column headed[] = {
        {.title = "highest", .align = VR_RIGHT},
        {.title = "allocated in all", .align = VR_RIGHT},
        {.title = "count", .align = VR_RIGHT},
        {.title = "role", .align = VR_LEFT, .flexible = true},
    };
    struct vr_table table;
    vr_table_init(&table, headed, VR_COUNT_OF(headed));
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) {
        const struct vram_report_sum *made = &profile->totals.made[role], *highest = &profile->totals.highest[role];
        if (made->count == 0) continue;
        vr_table_cell(&table, "%s", vr_bytes(highest->bytes).text);
        vr_table_cell(&table, "%s", vr_bytes(made->bytes).text);
        vr_table_cell(&table, "%s", vr_count(made->count).text);
        vr_table_cell(&table, "%s", vram_role_title(role));
    }
    vr_text_puts(text, "\n");
    vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
}

enum vram_status vram_profile_text(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                   const struct vram_style *style, vram_write write, void *user, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct profile profile;
    struct vr_text text = {0};
    VR_TRY(open_profile(recording, options, &profile, error));
    vr_text_colour(&text, shown, VR_BOLD);
    if (title != NULL) vr_text_printable(&text, title, strlen(title));
    vr_text_colour(&text, shown, VR_PLAIN);
    vr_text_puts(&text, title == NULL ? "" : ": ");
    vr_profile_device(&profile.subject, &text);
    vr_text_puts(&text, ", ");
    vr_profile_moment(&profile.subject, options, &text);
    vr_text_printf(&text, ": %s in %s\n", vr_bytes(profile.subject.bytes).text, vr_counted(profile.subject.count, "allocation").text);
    if (profile.count != 0) {
        vr_text_puts(&text, "\n");
        print_groups(&profile, shown, &text);
    }
    if (profile.grouping.by == VR_GROUP_ROLE) print_totals(&profile, shown, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    close_profile(&profile);
    return status;
}

#define ROLE_TOTAL_FACTS(X)                                                                                                                \
    X(TEXT, "name", vram_role_word(role), ALWAYS, "name of the role")                                                                      \
    X(U64, "highest_bytes", highest->bytes, ALWAYS, "highest live bytes, each role at its own moment")                                     \
    X(U64, "highest_count", highest->count, ALWAYS, "number of allocations at that moment")                                                \
    X(U64, "made_bytes", made->bytes, ALWAYS, "bytes of all allocations with this role")                                                   \
    X(U64, "made_count", made->count, ALWAYS, "number of all allocations with this role")

static void put_totals(struct vr_json *json, const char *key, const struct profile *profile) {
    vr_json_array(json, key);
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) {
        const struct vram_report_sum *made = &profile->totals.made[role], *highest = &profile->totals.highest[role];
        if (made->count == 0) continue;
        vr_json_object(json, NULL);
        ROLE_TOTAL_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define PROFILE_GROUP_FACTS(X)                                                                                                             \
    X(NAME, "name", VR_TRY(vr_group_name_json(&profile->grouping, it->key, json)), ALWAYS,                                                 \
      "name of the group; with `--by role`, one of the roles below")                                                                       \
    X(U64, "bytes", it->bytes, ALWAYS, "live bytes at that moment")                                                                        \
    X(U64, "count", it->count, ALWAYS, "number of allocations")                                                                            \
    X(U64, "largest_bytes", it->largest_bytes, ALWAYS, "bytes of the largest of them")

static enum vram_status put_profile_groups(struct vr_json *json, const char *name, const struct profile *profile) {
    vr_json_array(json, name);
    for (size_t i = 0; i < profile->count && i < profile->top; i++) {
        const struct vr_group *it = &profile->groups[i];
        vr_json_object(json, NULL);
        PROFILE_GROUP_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return VRAM_OK;
}

#define PROFILE_FACTS(X)                                                                                                                   \
    X(TEXT, "file", title, ALWAYS, "file name without its folder")                                                                         \
    X(U64, "device", it->subject.view->device, ALWAYS,                                                                                     \
      "without `--device`, the one that ran out of memory, else the one with the highest peak")                                            \
    X(I64, "event", it->subject.event, ALWAYS, "the moment: after this event; -1: before the first event")                                 \
    X(U64, "bytes", it->subject.bytes, ALWAYS, "live bytes at that moment; at the peak, the `peak_bytes` of the report")                   \
    X(U64, "allocations", it->subject.count, ALWAYS, "number of live allocations at that moment")                                          \
    X(TEXT, "by", vr_grouping_words[it->grouping.by], ALWAYS, "the grouping")                                                              \
    X(U64, "distinct", it->count, ALWAYS, "number of groups")                                                                              \
    X(ARRAY, "groups", VR_TRY(put_profile_groups(json, key, it)), ALWAYS, "the largest groups (see below)")                                \
    X(ARRAY, "totals", put_totals(json, key, it), OMIT_UNLESS(it->grouping.by == VR_GROUP_ROLE),                                           \
      "with `--by role`: each role in the history (see below)")

static enum vram_status put_profile_json(const struct profile *it, const char *title, struct vr_json *json) {
    PROFILE_FACTS(VR_FACT_JSON)
    return VRAM_OK;
}

enum vram_status vram_profile_json(const struct vram_recording *recording, const struct vram_profile_options *options, const char *title,
                                   vram_write write, void *user, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && options && write);
    struct profile profile;
    struct vr_text text = {0};
    struct vr_json json;
    VR_TRY(open_profile(recording, options, &profile, error));
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    enum vram_status status = put_profile_json(&profile, title, &json);
    vr_json_object_end(&json);
    if (status == VRAM_OK) status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    close_profile(&profile);
    return status;
}

enum { LEAST_COLUMNS = 60, USUAL_COLUMNS = 100, LEAST_ROWS = 4 };

enum vram_status vram_timeline_text(const struct vram_report *report, const char *title, unsigned rows, const struct vram_style *style,
                                    vram_write write, void *user) {
    VR_REQUIRE(report && write);
    struct vram_style shown = style == NULL ? (struct vram_style){.columns = 0} : *style;
    struct vr_text text = {0};
    if (shown.columns == 0) shown.columns = USUAL_COLUMNS;
    if (shown.columns < LEAST_COLUMNS) shown.columns = LEAST_COLUMNS;
    vr_text_colour(&text, &shown, VR_BOLD);
    if (title != NULL) vr_text_printable(&text, title, strlen(title));
    vr_text_colour(&text, &shown, VR_PLAIN);
    vr_text_puts(&text, title == NULL ? "" : "\n");
    for (size_t d = 0; d < report->device_count; d++) {
        const struct vram_report_device *device = &report->devices[d];
        vr_text_printf(&text, "%s%s: allocated up to %s", d == 0 ? "" : "\n", vr_device_name(device->device, device->is_host).text,
                       vr_bytes(device->allocated.peak.bytes).text);
        if (vr_shows_reserved(report, device) && device->reserved.peak_bytes >= 0)
            vr_text_printf(&text, ", reserved up to %s", vr_bytes((uint64_t)device->reserved.peak_bytes).text);
        vr_text_puts(&text, "\n");
        if (device->timeline_count == 0)
            vr_text_puts(&text, "  no history: only the final state was recorded\n");
        else
            vr_chart_timeline(&text, &shown, device, rows < LEAST_ROWS ? LEAST_ROWS : rows, 2);
    }
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    return status;
}

// ---- two moments compared ----

// Formats signed bytes: "+1.5 GiB", "-20.0 MiB", "0 B".
static struct vr_formatted signed_bytes(int64_t bytes) {
    struct vr_formatted plain = vr_bytes(bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes), made = plain;
    if (bytes == 0) return made;
    made.text[0] = bytes < 0 ? '-' : '+';
    memcpy(made.text + 1, plain.text, VR_FORMAT_CAPACITY - 2);
    made.text[VR_FORMAT_CAPACITY - 1] = '\0';
    return made;
}

static const char *pair_remark(const struct vr_pair *pair) {
    if (pair->row[0] == VR_PAIR_NO_ROW) return "new";
    if (pair->row[1] == VR_PAIR_NO_ROW) return "gone";
    return pair->moved ? "moved" : "";
}

static void print_pairs(const struct vr_comparison *comparison, const struct vram_style *style, struct vr_text *text) {
    const struct vr_table_column columns[] = {
        {.title = "before", .align = VR_RIGHT},
        {.title = "after", .align = VR_RIGHT},
        {.title = "change", .align = VR_RIGHT, .colour = VR_BOLD},
        {.title = "count", .align = VR_RIGHT},
        {.title = "", .align = VR_LEFT, .colour = VR_YELLOW},
        {.title = vr_grouping_heading(comparison->by), .align = VR_LEFT, .flexible = true},
    };
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    size_t shown = 0;
    for (size_t i = 0; i < comparison->pairs.count && shown < comparison->top; i++) {
        const struct vr_pair *pair = &comparison->pairs.pair[i];
        if (vr_pair_change(pair) == 0 && pair->count[0] == pair->count[1]) continue;
        shown++;
        struct vr_text name = {0};
        vr_title_print(comparison->by, pair->name, strlen(pair->name), &name);
        vr_table_cell(&table, "%s", vr_bytes(pair->bytes[0]).text);
        vr_table_cell(&table, "%s", vr_bytes(pair->bytes[1]).text);
        vr_table_cell(&table, "%s", signed_bytes(vr_pair_change(pair)).text);
        vr_table_cell(&table, "%s > %s", vr_count(pair->count[0]).text, vr_count(pair->count[1]).text);
        vr_table_cell(&table, "%s", pair_remark(pair));
        vr_table_cell_bytes(&table, vr_text_string(&name), name.length);
        table.cells.failed = table.cells.failed || name.failed;
        vr_text_release(&name);
    }
    vr_text_puts(text, shown == 0 ? "no group differs\n" : "\n");
    if (shown != 0) vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
}

static void print_side(const struct vram_diff *diff, const struct vr_comparison *comparison, unsigned side, const struct vram_style *style,
                       struct vr_text *text) {
    const struct vr_profile *subject = &comparison->side[side];
    struct vr_text rest = {0};
    vr_text_puts(text, side == 0 ? "before  " : "after   ");
    vr_text_colour(text, style, VR_BOLD);
    if (diff->title[side] != NULL) vr_text_printable(text, diff->title[side], strlen(diff->title[side]));
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, ", ");
    vr_profile_device(subject, &rest);
    vr_text_puts(&rest, ", ");
    vr_profile_moment(subject, &diff->options[side], &rest);
    vr_text_printf(&rest, ": %s in %s", vr_bytes(subject->bytes).text, vr_counted(subject->count, "allocation").text);
    const size_t title = diff->title[side] == NULL ? 0 : vr_text_width(diff->title[side], strlen(diff->title[side]));
    vr_text_flow(text, style, (unsigned)title + 10, 8, vr_text_string(&rest));
    vr_text_puts(text, "\n");
    text->failed = text->failed || rest.failed;
    vr_text_release(&rest);
}

// Prints the change relative to the bytes before, as "+0.1 %". A change too small for the digits keeps its sign.
static void print_share(const uint64_t bytes[2], struct vr_text *text) {
    if (bytes[0] == 0 || bytes[0] == bytes[1]) return;
    const bool more = bytes[1] > bytes[0];
    const double share = 100.0 * (double)(more ? bytes[1] - bytes[0] : bytes[0] - bytes[1]) / (double)bytes[0];
    vr_text_printf(text, share < 0.05 ? ", %s<0.1 %%" : ", %s%.1f %%", more ? "+" : "-", share);
}

enum vram_status vram_diff_text(const struct vram_diff *diff, const struct vram_style *style, vram_write write, void *user,
                                struct vram_diff_result *result, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, diff && write && diff->recording[0] && diff->recording[1]);
    const struct vram_style plain = {.columns = 0};
    const struct vram_style *shown = style == NULL ? &plain : style;
    struct vr_comparison comparison;
    struct vr_text text = {0};
    VR_TRY(vr_comparison_open(diff, &comparison, error));
    const uint64_t *bytes = comparison.pairs.bytes;
    for (unsigned side = 0; side < 2; side++) print_side(diff, &comparison, side, shown, &text);
    vr_text_puts(&text, "change  ");
    vr_text_colour(&text, shown, VR_BOLD);
    vr_text_puts(&text, signed_bytes((int64_t)(bytes[1] - bytes[0])).text);
    vr_text_colour(&text, shown, VR_PLAIN);
    print_share(bytes, &text);
    vr_text_puts(&text, "\n");
    print_pairs(&comparison, shown, &text);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    if (status == VRAM_OK && result != NULL) vr_comparison_result(&comparison, result);
    vr_comparison_close(&comparison);
    return status;
}

#define DIFF_SIDE_FACTS(X)                                                                                                                 \
    X(TEXT, "file", diff->title[side], ALWAYS, "file name without its folder")                                                             \
    X(U64, "device", it->side[side].view->device, ALWAYS, "the device")                                                                    \
    X(I64, "event", it->side[side].event, ALWAYS, "the moment: after this event")                                                          \
    X(U64, "bytes", it->pairs.bytes[side], ALWAYS, "live bytes at that moment")                                                            \
    X(U64, "allocations", it->pairs.allocations[side], ALWAYS, "number of live allocations at that moment")

static void put_side(struct vr_json *json, const char *name, const struct vram_diff *diff, const struct vr_comparison *it, unsigned side) {
    vr_json_object(json, name);
    DIFF_SIDE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define DIFF_GROUP_FACTS(X)                                                                                                                \
    X(TEXT, "name", it->name, ALWAYS, "name of the group")                                                                                 \
    X(U64, "before_bytes", it->bytes[0], ALWAYS, "live before")                                                                            \
    X(U64, "after_bytes", it->bytes[1], ALWAYS, "live after")                                                                              \
    X(I64, "change_bytes", vr_pair_change(it), ALWAYS, "after minus before")                                                               \
    X(U64, "before_count", it->count[0], ALWAYS, "number of allocations before")                                                           \
    X(U64, "after_count", it->count[1], ALWAYS, "number of allocations after")                                                             \
    X(TEXT, "remark", pair_remark(it), ALWAYS, "`new`, `gone`, `moved` (the same function at another line), or empty")

static void put_pairs(struct vr_json *json, const char *name, const struct vr_comparison *comparison) {
    vr_json_array(json, name);
    for (size_t i = 0; i < comparison->pairs.count && i < comparison->top; i++) {
        const struct vr_pair *it = &comparison->pairs.pair[i];
        vr_json_object(json, NULL);
        DIFF_GROUP_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define DIFF_FACTS(X)                                                                                                                      \
    X(OBJECT, "before", put_side(json, key, diff, it, 0), ALWAYS, "live memory at the first moment (see below)")                           \
    X(OBJECT, "after", put_side(json, key, diff, it, 1), ALWAYS, "live memory at the second moment (see below)")                           \
    X(I64, "change_bytes", (int64_t)(it->pairs.bytes[1] - it->pairs.bytes[0]), ALWAYS, "after minus before")                               \
    X(TEXT, "by", vr_grouping_words[it->by], ALWAYS, "the grouping")                                                                       \
    X(U64, "distinct", it->pairs.count, ALWAYS, "number of groups in either")                                                              \
    X(ARRAY, "groups", put_pairs(json, key, it), ALWAYS, "the largest changes in either direction (see below)")

static void put_diff_json(const struct vram_diff *diff, const struct vr_comparison *it, struct vr_json *json) { DIFF_FACTS(VR_FACT_JSON) }

enum vram_status vram_diff_json(const struct vram_diff *diff, vram_write write, void *user, struct vram_diff_result *result,
                                struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, diff && write && diff->recording[0] && diff->recording[1]);
    struct vr_comparison comparison;
    struct vr_text text = {0};
    struct vr_json json;
    VR_TRY(vr_comparison_open(diff, &comparison, error));
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    put_diff_json(diff, &comparison, &json);
    vr_json_object_end(&json);
    const enum vram_status status = vr_text_hand_over(&text, write, user);
    vr_text_release(&text);
    if (status == VRAM_OK && result != NULL) vr_comparison_result(&comparison, result);
    vr_comparison_close(&comparison);
    return status;
}
