// Exports a recording as tables: its events, the frames of its stacks, the peaks of its devices, and the call sites that held them.
#include <inttypes.h>

#include "analyze/sites.h"
#include "export/export.h"

// Numbers the texts that occur in a column (strings or frames), in the order of their first row.
struct words {
    uint32_t *number; // by string or frame id: 1 + index in `occurring`; 0: does not occur
    uint32_t *occurring;
    size_t count, occurring_capacity;
};

static void release_words(struct words *words) {
    free(words->number);
    free(words->occurring);
}

static enum vram_status note_word(struct words *words, uint32_t what) {
    if (words->number[what] != 0) return VRAM_OK;
    VR_TRY(VR_GROW(words, occurring, words->count + 1));
    words->occurring[words->count++] = what;
    words->number[what] = (uint32_t)words->count;
    return VRAM_OK;
}

static void append_string(const struct vr_model *model, uint32_t string, struct vr_text *out) {
    vr_text_append(out, vr_model_string(model, string), vr_model_string_length(model, string));
}

static enum vram_status make_words(struct words *words, size_t room) {
    words->number = calloc(room + 1, sizeof *words->number);
    return words->number == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

static void set_cell(struct vr_arrow_cell *cell, bool is_there, uint64_t value) { *cell = (struct vr_arrow_cell){value, is_there}; }

static void set_word(struct vr_arrow_cell *cell, bool is_there, const struct words *words, uint32_t what) {
    if (is_there && words->number[what] != 0) set_cell(cell, true, words->number[what] - 1);
}

static void append_frame(const struct vr_model *model, uint32_t frame, struct vr_text *out) {
    append_string(model, model->frames.filename[frame], out);
    vr_text_printf(out, ":%" PRId64 ":", model->frames.line[frame]);
    append_string(model, model->frames.name[frame], out);
}

// --- events ----------------------------------------------------------------------------------------------------------------------------

struct events {
    const struct vr_model *model;
    const struct vr_view *views;
    size_t row_count;
    bool by_device;      // has a device column
    struct words sites;  // frames that are call sites
    uint32_t *site;      // by stack: 1 + frame of its call site; 0: no site
    struct words texts;  // strings
    struct words others; // names of unknown actions, as strings
};

static const struct vr_history *at_row(const struct events *events, size_t *row, uint32_t *device) {
    const struct vr_view *view = events->views;
    for (; *row >= view->history->count; view++) *row -= view->history->count;
    *device = view->device;
    return view->history;
}

static void fill_event(const void *table, size_t row, struct vr_arrow_cell *cell) {
    const struct events *events = table;
    uint32_t device;
    const struct vr_history *history = at_row(events, &row, &device);
    const uint32_t has = vr_entry_has(history, row), stack = history->stack[row];
    const bool is_oom = history->action[row] == VR_ACTION_OOM, has_pool = (has & VR_HAS_POOL_ID) != 0;
    if (events->by_device) set_cell(cell++, true, device);
    set_cell(cell++, true, row);
    set_cell(cell++, (has & VR_HAS_TIME) != 0, (uint64_t)history->time_us[row]);
    if (history->action[row] == VR_ACTION_UNKNOWN) {
        set_cell(cell++, true, VR_ACTION_COUNT + events->others.number[history->unknown[row]] - 1);
    } else {
        set_cell(cell++, true, history->action[row]);
    }
    set_cell(cell++, !is_oom, history->address[row]);
    set_cell(cell++, true, history->size_bytes[row]);
    set_cell(cell++, true, vr_entry_stream(history, row));
    set_cell(cell++, is_oom, history->address[row]);
    set_cell(cell++, has_pool, history->pool_first[row]);
    set_cell(cell++, has_pool, history->pool_second[row]);
    set_cell(cell++, history->thread[row] != 0, history->thread[row]);
    set_word(cell++, history->tag[row] != 0, &events->texts, history->tag[row]);
    set_word(cell++, history->context[row] != 0, &events->texts, history->context[row]);
    set_word(cell++, history->metadata[row] != 0, &events->texts, history->metadata[row]);
    set_cell(cell++, stack != 0, stack);
    if (events->site[stack] != 0) set_word(cell, true, &events->sites, events->site[stack] - 1);
}

static void append_action(const void *table, size_t index, struct vr_text *out) {
    const struct events *events = table;
    if (index < VR_ACTION_COUNT) {
        vr_text_puts(out, vr_action_name((enum vr_action)index));
    } else {
        append_string(events->model, events->others.occurring[index - VR_ACTION_COUNT], out);
    }
}
static void append_text(const void *table, size_t index, struct vr_text *out) {
    const struct events *events = table;
    append_string(events->model, events->texts.occurring[index], out);
}
static void append_site(const void *table, size_t index, struct vr_text *out) {
    const struct events *events = table;
    append_frame(events->model, events->sites.occurring[index], out);
}

static enum vram_status note_event(struct events *events, const struct vr_history *history, size_t i, struct vr_sites *sites) {
    const uint32_t texts[] = {history->tag[i], history->context[i], history->metadata[i]}, stack = history->stack[i];
    for (size_t t = 0; t < VR_COUNT_OF(texts); t++) {
        if (texts[t] != 0) VR_TRY(note_word(&events->texts, texts[t]));
    }
    if (history->action[i] == VR_ACTION_UNKNOWN) VR_TRY(note_word(&events->others, history->unknown[i]));
    const uint32_t frame = vr_sites_frame(sites, stack);
    if (frame == VR_NO_SITE) return VRAM_OK;
    events->site[stack] = frame + 1;
    return note_word(&events->sites, frame);
}

static enum vram_status note_events(struct events *events, size_t view_count) {
    struct vr_sites sites;
    VR_TRY(vr_sites_init(&sites, events->model));
    enum vram_status status = VRAM_OK;
    for (size_t v = 0; v < view_count; v++) {
        const struct vr_history *history = events->views[v].history;
        for (size_t i = 0; i < history->count && status == VRAM_OK; i++) status = note_event(events, history, i, &sites);
        events->row_count += history->count;
    }
    vr_sites_release(&sites);
    return status;
}

static enum vram_status write_events(const struct vr_exporting *from, const struct vr_view *views, size_t view_count,
                                     struct vr_output *out) {
    struct events events = {.model = from->model, .views = views, .by_device = from->options->device == NULL};
    enum vram_status status = make_words(&events.texts, from->model->strings.count);
    if (status == VRAM_OK) status = make_words(&events.others, from->model->strings.count);
    if (status == VRAM_OK) status = make_words(&events.sites, from->model->frames.count);
    events.site = calloc(from->model->stacks.count, sizeof *events.site);
    if (events.site == NULL) status = VRAM_NO_HOST_MEMORY;
    if (status == VRAM_OK) status = note_events(&events, view_count);
    if (status == VRAM_OK) {
        const struct vr_arrow_words texts = {events.texts.count, append_text};
        const struct vr_arrow_column columns[] = {
            {"device", VR_ARROW_UINT32, {0}},          {"event", VR_ARROW_UINT64, {0}},
            {"time_us", VR_ARROW_INT64, {0}},          {"action", VR_ARROW_TEXT, {VR_ACTION_COUNT + events.others.count, append_action}},
            {"address", VR_ARROW_UINT64, {0}},         {"size_bytes", VR_ARROW_UINT64, {0}},
            {"stream", VR_ARROW_UINT64, {0}},          {"device_free_bytes", VR_ARROW_UINT64, {0}},
            {"pool_first", VR_ARROW_UINT64, {0}},      {"pool_second", VR_ARROW_UINT64, {0}},
            {"thread", VR_ARROW_UINT32, {0}},          {"category", VR_ARROW_TEXT, texts},
            {"compile_context", VR_ARROW_TEXT, texts}, {"user_metadata", VR_ARROW_TEXT, texts},
            {"stack", VR_ARROW_UINT32, {0}},           {"site", VR_ARROW_TEXT, {events.sites.count, append_site}},
        };
        const size_t skipped = events.by_device ? 0 : 1;
        const struct vr_arrow_table table = {columns + skipped, VR_COUNT_OF(columns) - skipped, events.row_count, fill_event, &events};
        status = vr_arrow_write(&table, out);
    }
    release_words(&events.texts);
    release_words(&events.others);
    release_words(&events.sites);
    free(events.site);
    return status;
}

// --- stacks ----------------------------------------------------------------------------------------------------------------------------

struct stacks {
    const struct vr_model *model;
    struct words strings; // files and functions
    uint32_t *stack;      // by row
};

static void fill_frame(const void *table, size_t row, struct vr_arrow_cell *cell) {
    const struct stacks *stacks = table;
    const struct vr_model *model = stacks->model;
    const uint32_t stack = stacks->stack[row], frame = model->stacks.frame[row];
    set_cell(cell++, true, stack);
    set_cell(cell++, true, row - model->stacks.offset[stack]);
    set_word(cell++, true, &stacks->strings, model->frames.filename[frame]);
    set_cell(cell++, true, (uint64_t)model->frames.line[frame]);
    set_word(cell, true, &stacks->strings, model->frames.name[frame]);
}

static void append_part(const void *table, size_t index, struct vr_text *out) {
    const struct stacks *stacks = table;
    append_string(stacks->model, stacks->strings.occurring[index], out);
}

static enum vram_status write_stacks(const struct vr_exporting *from, struct vr_output *out) {
    const struct vr_model *model = from->model;
    const size_t rows = (size_t)model->stacks.offset[model->stacks.count];
    struct stacks stacks = {.model = model, .stack = malloc((rows + 1) * sizeof *stacks.stack)};
    enum vram_status status = make_words(&stacks.strings, model->strings.count);
    if (stacks.stack == NULL) status = VRAM_NO_HOST_MEMORY;
    for (uint32_t stack = 0; stack < model->stacks.count && status == VRAM_OK; stack++) {
        for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1] && status == VRAM_OK; i++) {
            stacks.stack[i] = stack;
            const uint32_t frame = model->stacks.frame[i];
            status = note_word(&stacks.strings, model->frames.filename[frame]);
            if (status == VRAM_OK) status = note_word(&stacks.strings, model->frames.name[frame]);
        }
    }
    if (status == VRAM_OK) {
        const struct vr_arrow_words strings = {stacks.strings.count, append_part};
        const struct vr_arrow_column columns[] = {
            {"stack", VR_ARROW_UINT32, {0}}, {"depth", VR_ARROW_UINT32, {0}},      {"file", VR_ARROW_TEXT, strings},
            {"line", VR_ARROW_INT64, {0}},   {"function", VR_ARROW_TEXT, strings},
        };
        const struct vr_arrow_table table = {columns, VR_COUNT_OF(columns), rows, fill_frame, &stacks};
        status = vr_arrow_write(&table, out);
    }
    release_words(&stacks.strings);
    free(stacks.stack);
    return status;
}

// --- peaks and sites, as in the report

struct facts {
    const struct vr_model *model;
    const struct vram_report_device *const *devices;
    size_t device_count;
    bool by_device;
};

static int64_t time_of(const struct vr_model *model, uint32_t device, int64_t event, bool *has) {
    *has = event >= 0 && device < model->history_count && (uint64_t)event < model->histories[device].count &&
           (vr_entry_has(&model->histories[device], (size_t)event) & VR_HAS_TIME) != 0;
    return *has ? model->histories[device].time_us[event] : 0;
}

static void fill_peak(const void *table, size_t row, struct vr_arrow_cell *cell) {
    const struct facts *facts = table;
    const struct vram_report_device *device = facts->devices[row];
    bool has;
    if (facts->by_device) set_cell(cell++, true, device->device);
    set_cell(cell++, true, device->events);
    set_cell(cell++, device->has_times, (uint64_t)device->first_time_us);
    set_cell(cell++, device->has_times, (uint64_t)device->last_time_us);
    set_cell(cell++, true, device->oom_count);
    set_cell(cell++, true, device->allocated.peak.bytes);
    set_cell(cell++, device->allocated.peak_event >= 0, (uint64_t)device->allocated.peak_event);
    const int64_t when = time_of(facts->model, device->device, device->allocated.peak_event, &has);
    set_cell(cell++, has, (uint64_t)when);
    set_cell(cell++, true, device->allocated.end.bytes);
    set_cell(cell++, true, (uint64_t)device->reserved.peak_bytes);
    set_cell(cell++, true, (uint64_t)device->reserved.end_bytes);
    set_cell(cell, device->allocated.site_count != 0, row);
}

static void append_first_site(const void *table, size_t index, struct vr_text *out) {
    const struct vram_report_device *device = ((const struct facts *)table)->devices[index];
    if (device->allocated.site_count != 0) vr_text_puts(out, device->allocated.sites[0].name);
}

static enum vram_status write_peaks(const struct facts *facts, struct vr_output *out) {
    const struct vr_arrow_column columns[] = {
        {"device", VR_ARROW_UINT32, {0}},
        {"events", VR_ARROW_UINT64, {0}},
        {"first_time_us", VR_ARROW_INT64, {0}},
        {"last_time_us", VR_ARROW_INT64, {0}},
        {"ooms", VR_ARROW_UINT64, {0}},
        {"allocated_peak_bytes", VR_ARROW_UINT64, {0}},
        {"allocated_peak_event", VR_ARROW_UINT64, {0}},
        {"allocated_peak_time_us", VR_ARROW_INT64, {0}},
        {"allocated_end_bytes", VR_ARROW_UINT64, {0}},
        {"reserved_peak_bytes", VR_ARROW_INT64, {0}},
        {"reserved_end_bytes", VR_ARROW_INT64, {0}},
        {"largest_site", VR_ARROW_TEXT, {facts->device_count, append_first_site}},
    };
    const size_t skipped = facts->by_device ? 0 : 1;
    const struct vr_arrow_table table = {columns + skipped, VR_COUNT_OF(columns) - skipped, facts->device_count, fill_peak, facts};
    return vr_arrow_write(&table, out);
}

// Returns a call site by its row; rows of all devices are numbered consecutively.
static const struct vram_report_group *site_at(const struct facts *facts, size_t row, const struct vram_report_device **device) {
    const struct vram_report_device *const *next = facts->devices;
    for (; row >= (*next)->allocated.site_count; next++) row -= (*next)->allocated.site_count;
    *device = *next;
    return &(*next)->allocated.sites[row];
}

static void fill_site(const void *table, size_t row, struct vr_arrow_cell *cell) {
    const struct facts *facts = table;
    const struct vram_report_device *device;
    const struct vram_report_group *site = site_at(facts, row, &device);
    if (facts->by_device) set_cell(cell++, true, device->device);
    set_cell(cell++, true, row);
    set_cell(cell++, true, site->bytes);
    set_cell(cell, true, site->count);
}

static void append_site_name(const void *table, size_t index, struct vr_text *out) {
    const struct vram_report_device *device;
    vr_text_puts(out, site_at(table, index, &device)->name);
}

static enum vram_status write_sites(const struct facts *facts, struct vr_output *out) {
    size_t rows = 0;
    for (size_t i = 0; i < facts->device_count; i++) rows += facts->devices[i]->allocated.site_count;
    const struct vr_arrow_column columns[] = {
        {"device", VR_ARROW_UINT32, {0}},
        {"site", VR_ARROW_TEXT, {rows, append_site_name}},
        {"bytes", VR_ARROW_UINT64, {0}},
        {"blocks", VR_ARROW_UINT64, {0}},
    };
    const size_t skipped = facts->by_device ? 0 : 1;
    const struct vr_arrow_table table = {columns + skipped, VR_COUNT_OF(columns) - skipped, rows, fill_site, facts};
    return vr_arrow_write(&table, out);
}

static enum vram_status write_facts(const struct vr_exporting *from, bool sites, struct vr_output *out) {
    struct vram_report *report;
    const struct vram_report_options all = {.top = UINT32_MAX};
    VR_TRY(vram_report_create(from->recording, &all, &report, NULL));
    const struct vram_report_device **devices = calloc(report->device_count + 1, sizeof *devices);
    struct facts facts = {.model = from->model, .devices = devices, .by_device = from->options->device == NULL};
    for (size_t i = 0; devices != NULL && i < report->device_count; i++) {
        if (facts.by_device || report->devices[i].device == *from->options->device) devices[facts.device_count++] = &report->devices[i];
    }
    enum vram_status status = VRAM_NO_HOST_MEMORY;
    if (devices != NULL) status = sites ? write_sites(&facts, out) : write_peaks(&facts, out);
    free(devices);
    vram_report_destroy(report);
    return status;
}

enum vram_status vr_export_arrow(const struct vr_exporting *from, struct vr_output *out) {
    const struct vr_view *views = from->views->view;
    size_t count = from->views->count;
    if (from->options->device != NULL) {
        while (count != 0 && views->device != *from->options->device) views++, count--;
        count = count != 0;
    }
    switch (from->options->table) {
    case VRAM_TABLE_EVENTS: return write_events(from, views, count, out);
    case VRAM_TABLE_STACKS: return write_stacks(from, out);
    case VRAM_TABLE_PEAKS: return write_facts(from, false, out);
    case VRAM_TABLE_SITES: return write_facts(from, true, out);
    default: return VRAM_INVALID_ARGUMENT;
    }
}
