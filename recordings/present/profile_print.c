// The largest groups of what is live at a moment, for people and for programs.
#include "present/chart.h"
#include "present/group_names.h"
#include "present/text_parts.h"

enum { DEFAULT_TOP = 10, BAR_COLUMNS = 16 };

const char *vram_profile_grouping(size_t index) { return index < VR_GROUP_COUNT ? vr_grouping_words[index] : NULL; }

struct profile {
    struct vr_profile subject;
    struct vr_grouping grouping;
    struct vr_group *groups;
    size_t count, top;
    struct vr_role_totals totals; // by role
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

static const struct vr_table_column columns[] = {
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

// What lies past the first `top` groups, together.
static void put_rest(struct vr_table *table, const struct profile *profile, const struct vram_style *style) {
    uint64_t bytes = 0, count = 0;
    for (size_t i = profile->top; i < profile->count; i++) {
        bytes += profile->groups[i].bytes;
        count += profile->groups[i].count;
    }
    if (profile->count <= profile->top) return;
    struct vr_text name = {0};
    vr_text_printf(&name, "%s other%s", vr_count(profile->count - profile->top).text, profile->count - profile->top == 1 ? "" : "s");
    put_profile_row(table, profile, style, bytes, count, &name);
    vr_text_release(&name);
}

static void print_groups(const struct profile *profile, const struct vram_style *style, struct vr_text *text) {
    struct vr_table_column headed[VR_COUNT_OF(columns)];
    memcpy(headed, columns, sizeof columns);
    headed[VR_COUNT_OF(columns) - 1].title = vr_grouping_heading(profile->grouping.by);
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

// Of roles also what is not live at the moment: the most that each had, and all that was made.
static void print_totals(const struct profile *profile, const struct vram_style *style, struct vr_text *text) {
    static const struct vr_table_column headed[] = {
        {.title = "highest", .align = VR_RIGHT},
        {.title = "made in all", .align = VR_RIGHT},
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
    vr_text_printf(&text, ": %s in %s allocation%s\n", vr_bytes(profile.subject.bytes).text, vr_count(profile.subject.count).text,
                   profile.subject.count == 1 ? "" : "s");
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

static void put_totals(const struct profile *profile, struct vr_json *json) {
    vr_json_array(json, "totals");
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) {
        const struct vram_report_sum *made = &profile->totals.made[role], *highest = &profile->totals.highest[role];
        if (made->count == 0) continue;
        vr_json_object(json, NULL);
        vr_json_string(json, "name", vram_role_word(role));
        vr_json_u64(json, "highest_bytes", highest->bytes);
        vr_json_u64(json, "highest_count", highest->count);
        vr_json_u64(json, "made_bytes", made->bytes);
        vr_json_u64(json, "made_count", made->count);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static enum vram_status put_profile_json(const struct profile *profile, struct vr_json *json) {
    vr_json_u64(json, "device", profile->subject.view->device);
    vr_json_i64(json, "event", profile->subject.event);
    vr_json_u64(json, "bytes", profile->subject.bytes);
    vr_json_u64(json, "allocations", profile->subject.count);
    vr_json_string(json, "by", vr_grouping_words[profile->grouping.by]);
    vr_json_u64(json, "distinct", profile->count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < profile->count && i < profile->top; i++) {
        vr_json_object(json, NULL);
        VR_TRY(vr_group_name_json(&profile->grouping, profile->groups[i].key, json));
        vr_json_u64(json, "bytes", profile->groups[i].bytes);
        vr_json_u64(json, "count", profile->groups[i].count);
        vr_json_u64(json, "largest_bytes", profile->groups[i].largest_bytes);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    if (profile->grouping.by == VR_GROUP_ROLE) put_totals(profile, json);
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
    vr_json_string(&json, "file", title);
    enum vram_status status = put_profile_json(&profile, &json);
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
