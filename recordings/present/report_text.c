// Prints the report as text: the recording, its peaks, the use of memory and by whom, failures, and what is missing.
#include "analyze/report_parts.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"
#include "analyze/device_view.h"
#include "config/recorded_options.h"

struct report_printer {
    struct vr_text *text;
    struct vram_style style;
    const struct vram_report *report;
    struct vr_report_output *output;
};

static bool is_events_alone(const struct vram_report *report) { return strcmp(report->generation, VR_EVENTS_ALONE) == 0; }

// --- the recording ---------------------------------------------------------------------------------------------------------
static const struct vram_report_device *report_device_of(const struct vram_report *report, int64_t number) {
    for (size_t d = 0; d < report->device_count; d++) {
        if (report->devices[d].device == number) return &report->devices[d];
    }
    return NULL;
}

static void print_title(struct report_printer *printer, const struct vram_report_source *source) {
    const struct vram_report *report = printer->report;
    struct vr_text *text = printer->text;
    uint64_t events = 0, longest_us = 0;
    size_t devices = 0;
    for (size_t d = 0; d < report->device_count; d++) {
        const struct vram_report_device *device = &report->devices[d];
        events += device->events;
        devices += !device->is_host;
        if (!device->has_times || device->last_time_us < device->first_time_us) continue;
        const uint64_t us = (uint64_t)device->last_time_us - (uint64_t)device->first_time_us;
        if (us > longest_us) longest_us = us;
    }
    vr_text_colour(text, &printer->style, VR_BOLD);
    if (source != NULL && source->file != NULL) {
        vr_text_printable(text, source->file, strlen(source->file));
    } else {
        vr_text_puts(text, "recording");
    }
    vr_text_colour(text, &printer->style, VR_PLAIN);
    struct vr_text about = {0};
    const bool dict = strcmp(report->form, "dict") == 0;
    if (report->device_count != 0 && report->devices[0].whole_program) {
        vr_text_puts(&about, "A whole program, recorded by vram run");
    } else if (is_events_alone(report)) {
        vr_text_puts(&about, "A log or trace of allocations");
    } else if (dict && report->top_level_key_count == 0) {
        vr_text_puts(&about, "A recording file, written event by event");
    } else {
        vr_text_printf(&about, "PyTorch %s%s", dict ? "snapshot " : "segment list", dict ? report->generation : "");
        if (report->era[0] != '\0') vr_text_printf(&about, " (%s)", report->era);
        const bool other = report->platform[0] != '\0' && strcmp(report->platform, "CUDA") != 0;
        if (other) vr_text_printf(&about, " for %s", report->platform);
    }
    if (source != NULL && source->bytes != 0) vr_text_printf(&about, ", %s", vr_bytes(source->bytes).text);
    vr_text_printf(&about, ", %zu device%s%s, %s", devices, devices == 1 ? "" : "s",
                   devices < report->device_count ? " and pinned host memory" : "", vr_counted(events, "event").text);
    if (longest_us != 0) vr_text_printf(&about, " over %s", vr_duration_ns(vr_us_to_ns(longest_us)).text);
    vr_text_puts(text, "\n");
    vr_text_flow(text, &printer->style, 0, 2, vr_text_string(&about));
    vr_text_puts(text, "\n");
    text->failed = text->failed || about.failed;
    vr_text_release(&about);
}

// Prints a line for each device that ran out of memory, before the sections of several devices.
static void print_ran_out(struct report_printer *printer) {
    const struct vram_report *report = printer->report;
    if (report->device_count < 2) return;
    for (size_t d = 0; d < report->device_count; d++) {
        const struct vram_report_device *device = &report->devices[d];
        if (device->oom_count == 0) continue;
        const struct vram_report_oom *last = &device->ooms[device->oom_count - 1];
        vr_text_colour(printer->text, &printer->style, VR_RED);
        vr_text_printf(printer->text, "Out of memory on %s", vr_device_name(device->device, device->is_host).text);
        vr_text_colour(printer->text, &printer->style, VR_PLAIN);
        vr_text_printf(printer->text, ": %s requested at event %s; details below\n", vr_bytes(last->size_bytes).text,
                       vr_count(last->event).text);
    }
}

// Returns whether an earlier note says the same about another device.
static bool is_repeated(const struct vram_report *report, size_t note) {
    for (size_t i = 0; i < note; i++) {
        if (report->notes[i].kind == report->notes[note].kind && strcmp(report->notes[i].text, report->notes[note].text) == 0) return true;
    }
    return false;
}

// Prints "device 0: ", "devices 0, 1, 3: " or "device 0, pinned host memory: "; nothing for a single device.
static void name_devices(const struct vram_report *report, size_t note, struct vr_text *prefix) {
    struct vr_text numbers = {0};
    size_t devices = 0;
    bool host = false;
    if (report->device_count < 2 || report->notes[note].device < 0) return;
    for (size_t i = note; i < report->note_count; i++) {
        if (report->notes[i].kind != report->notes[note].kind || strcmp(report->notes[i].text, report->notes[note].text) != 0) continue;
        const struct vram_report_device *device = report_device_of(report, report->notes[i].device);
        if (device == NULL || !device->is_host)
            vr_text_printf(&numbers, "%s%lld", devices++ == 0 ? "" : ", ", (long long)report->notes[i].device);
        else
            host = true;
    }
    if (devices != 0) vr_text_printf(prefix, "device%s %s", devices == 1 ? "" : "s", vr_text_string(&numbers));
    if (host) vr_text_printf(prefix, "%spinned host memory", devices == 0 ? "" : ", ");
    vr_text_puts(prefix, ": ");
    prefix->failed = prefix->failed || numbers.failed;
    vr_text_release(&numbers);
}

static void print_notes(struct report_printer *printer, enum vram_report_note_kind kind, const char *title, enum vr_colour colour) {
    const struct vram_report *report = printer->report;
    bool any = false;
    for (size_t i = 0; i < report->note_count; i++) {
        if (report->notes[i].kind != kind || is_repeated(report, i)) continue;
        if (!any) vr_text_heading(printer->text, &printer->style, title, "");
        any = true;
        struct vr_text prefix = {0};
        name_devices(report, i, &prefix);
        vr_text_bullet(printer->text, &printer->style, colour, vr_text_string(&prefix), report->notes[i].text);
        printer->text->failed = printer->text->failed || prefix.failed;
        vr_text_release(&prefix);
    }
}

// --- one device ------------------------------------------------------------------------------------------------------------
// Adds a cell with the moment of an event: "after event 2,040 of 3,000", "before the first event" or "in the final state".
static void moment_cell(struct vr_table *table, const struct vram_report_device *device, int64_t event) {
    if (device->events == 0) {
        vr_table_cell(table, "in the final state");
    } else if (event < 0) {
        vr_table_cell(table, "before the first event");
    } else {
        vr_table_cell(table, "after event %s of %s", vr_count((uint64_t)event).text, vr_count(device->events).text);
    }
}

static void reserved_row(struct vr_table *table, const struct vram_report_device *device) {
    const struct vram_report_reserved *reserved = &device->reserved;
    vr_table_cell(table, "reserved");
    vr_table_cell(table, "%s", vr_bytes(reserved->peak_bytes < 0 ? 0 : (uint64_t)reserved->peak_bytes).text);
    moment_cell(table, device, reserved->peak_event);
    vr_table_cell(table, "%s", vr_bytes(reserved->start_bytes < 0 ? 0 : (uint64_t)reserved->start_bytes).text);
    vr_table_cell(table, "%s", vr_bytes(reserved->end_bytes < 0 ? 0 : (uint64_t)reserved->end_bytes).text);
    vr_table_cell(table, "%s", "");
}

// Prints the demand of a device without failures. If the caller named a limit, the peak exceeds it.
static void print_demand(struct report_printer *printer, const struct vram_report_device *device) {
    const struct vram_report_demand *demand = device->demand;
    struct vr_text rest = {0};
    if (demand == NULL) return;
    if (!demand->room_is_named) {
        vr_demand_at_peak(printer->text, &printer->style, demand);
        return;
    }
    vr_text_printf(&rest, "  for %s: %s too much", vr_bytes(demand->room_bytes).text,
                   vr_bytes(demand->wanted_bytes - demand->room_bytes).text);
    vr_text_heading(printer->text, &printer->style, "The peak is too high", vr_text_string(&rest));
    vr_text_release(&rest);
    vr_text_item(printer->text, &printer->style, VR_RED, "why", 5, demand->text);
    vr_demand_list(printer->text, &printer->style, demand);
}

static void print_peaks(struct report_printer *printer, const struct vram_report_device *device) {
    static const struct vr_table_column columns[] = {
        {"", VR_LEFT, VR_PLAIN, false},          {"peak", VR_RIGHT, VR_BOLD, false},    {"moment", VR_LEFT, VR_PLAIN, false},
        {"at start", VR_RIGHT, VR_PLAIN, false}, {"at end", VR_RIGHT, VR_PLAIN, false}, {"allocations at peak", VR_RIGHT, VR_PLAIN, false}};
    const struct {
        const char *name;
        const struct vram_report_live *live;
    } rows[] = {{"allocated", &device->allocated}, {"active", &device->active}};
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        // Active equals allocated unless other streams delayed frees.
        if (i == 1 && rows[1].live->peak.bytes == rows[0].live->peak.bytes && rows[1].live->end.bytes == rows[0].live->end.bytes) continue;
        vr_table_cell(&table, "%s", rows[i].name);
        vr_table_cell(&table, "%s", vr_bytes(rows[i].live->peak.bytes).text);
        moment_cell(&table, device, rows[i].live->peak_event);
        vr_table_cell(&table, "%s", vr_bytes(rows[i].live->start.bytes).text);
        vr_table_cell(&table, "%s", vr_bytes(rows[i].live->end.bytes).text);
        vr_table_cell(&table, "%s", vr_count(rows[i].live->peak.count).text);
    }
    if (vr_shows_reserved(printer->report, device)) reserved_row(&table, device);
    vr_text_puts(printer->text, "\n");
    vr_table_print(&table, printer->text, &printer->style, 4);
    vr_table_release(&table);
}

// Prints the notes on memory that is reserved without need.
static void print_advice(struct report_printer *printer, const struct vram_report_device *device) {
    const struct vram_report *report = printer->report;
    for (size_t i = 0; i < report->advice_count; i++) {
        if (report->advice[i].device != (int64_t)device->device) continue;
        vr_text_puts(printer->text, "\n");
        vr_text_item(printer->text, &printer->style, VR_YELLOW, "note", 6, report->advice[i].text);
    }
}

// Prints the saving by paged memory, unless the device ran out of memory.
static void print_saving(struct report_printer *printer, const struct vram_report_device *device) {
    if (device->oom_count != 0) return; // printed with the cure instead
    struct vr_text sentences = {0};
    vr_paged_of_report(vr_report_replayed(printer->output), device->device, &sentences);
    if (sentences.length != 0) {
        vr_text_puts(printer->text, "\n");
        vr_text_item(printer->text, &printer->style, VR_GREEN, "less", 6, vr_text_string(&sentences));
    }
    printer->text->failed = printer->text->failed || sentences.failed;
    vr_text_release(&sentences);
}

static void print_timeline(struct report_printer *printer, const struct vram_report_device *device) {
    if (device->timeline_count < 8) return;
    static const char *const legends[2][2] = {{"  # allocated  . reserved", "  # allocated"},
                                              {"  █ allocated  ░ reserved", "  █ allocated"}};
    vr_text_heading(printer->text, &printer->style, "Timeline",
                    legends[printer->style.unicode][!vr_shows_reserved(printer->report, device)]);
    vr_chart_timeline(printer->text, &printer->style, device, 8, 4);
}

// Describes the wholly free segments. empty_cache() does not return those of a live private pool.
static void explain_cached(const struct vram_report_device *device, struct vr_text *note) {
    const uint64_t own = device->private_inactive.count, all = device->wholly_inactive.count;
    vr_text_printf(note, "%s wholly free", vr_counted(all, "segment").text);
    if (own == 0)
        vr_text_printf(note, ": empty_cache() returns %s", all == 1 ? "it" : "them");
    else if (own == all)
        vr_text_printf(note, " in private pools (MemPool, CUDA graphs), which keep %s", all == 1 ? "it" : "them");
    else
        vr_text_printf(note, ": empty_cache() returns %s, private pools keep %s (%s)", vr_count(all - own).text, vr_count(own).text,
                       vr_bytes(device->private_inactive.bytes).text);
}

static void print_usage(struct report_printer *printer, const struct vram_report_device *device) {
    const struct vram_report_usage *usage = &device->usage;
    if (usage->reserved_bytes == 0 || !vr_shows_reserved(printer->report, device)) return;
    const struct vr_part parts[] = {
        {usage->requested_bytes, "█", "#", VR_CYAN},
        {usage->rounding_bytes, "▓", "+", VR_BLUE},
        {usage->pending_bytes, "▚", "w", VR_MAGENTA},
        {usage->free_block_bytes, "▒", "o", VR_YELLOW},
        {usage->cached_bytes, "░", ".", VR_GREEN},
        {usage->unaccounted_bytes > 0 ? (uint64_t)usage->unaccounted_bytes : 0, "?", "?", VR_RED},
    };
    static const char *const names[] = {"in use", "rounding", "waiting", "free blocks", "cached", "unknown"};
    struct vr_text notes[VR_COUNT_OF(parts)] = {{0}};
    vr_text_printf(&notes[0], "requested by %s", vr_counted(device->allocated.final_state.count, "live allocation").text);
    vr_text_puts(&notes[1], "blocks are larger than requested");
    vr_text_puts(&notes[2], "freed, waiting for other streams");
    vr_text_puts(&notes[3], "free in segments partly in use");
    if (usage->page_bytes != 0) vr_text_printf(&notes[3], "; %s in whole pages", vr_bytes(usage->page_bytes).text);
    explain_cached(device, &notes[4]);
    vr_text_puts(&notes[5], "in segments, but not in a block");

    vr_text_heading(printer->text, &printer->style, "Reserved at the end  ", vr_bytes(usage->reserved_bytes).text);
    vr_text_puts(printer->text, "    ");
    vr_chart_bar(printer->text, &printer->style, parts, VR_COUNT_OF(parts), printer->style.columns - 4);
    vr_text_puts(printer->text, "\n");
    static const struct vr_table_column columns[] = {{"", VR_LEFT, VR_PLAIN, false},
                                                     {"", VR_LEFT, VR_PLAIN, false},
                                                     {"", VR_RIGHT, VR_BOLD, false},
                                                     {"", VR_RIGHT, VR_PLAIN, false},
                                                     {"", VR_LEFT, VR_DIM, false}};
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < VR_COUNT_OF(parts); i++) {
        if (parts[i].bytes != 0) {
            vr_table_cell(&table, "%s", vr_part_mark(&parts[i], &printer->style));
            vr_table_cell(&table, "%s", names[i]);
            vr_table_cell(&table, "%s", vr_bytes(parts[i].bytes).text);
            vr_table_cell(&table, "%s", vr_percent(parts[i].bytes, usage->reserved_bytes).text);
            vr_table_cell(&table, "%s", vr_text_string(&notes[i]));
        }
        vr_text_release(&notes[i]);
    }
    vr_table_print(&table, printer->text, &printer->style, 4);
    vr_table_release(&table);
    const uint64_t free_bytes = usage->free_block_bytes + usage->cached_bytes;
    if (free_bytes != 0) {
        struct vr_text free_text = {0};
        vr_text_printf(&free_text, "free in %s; the largest is %s (%s of the free memory)", vr_counted(usage->free_blocks, "block").text,
                       vr_bytes(usage->largest_free_bytes).text, vr_percent(usage->largest_free_bytes, free_bytes).text);
        vr_text_item(printer->text, &printer->style, VR_PLAIN, vr_bytes(free_bytes).text, (unsigned)strlen(vr_bytes(free_bytes).text),
                     vr_text_string(&free_text));
        printer->text->failed = printer->text->failed || free_text.failed;
        vr_text_release(&free_text);
    }
}

static void print_pools(struct report_printer *printer, const struct vram_report_device *device) {
    static const struct vr_table_column columns[] = {{"stream", VR_RIGHT, VR_PLAIN, false},  {"pool", VR_LEFT, VR_PLAIN, false},
                                                     {"requests", VR_LEFT, VR_PLAIN, false}, {"segments", VR_RIGHT, VR_PLAIN, false},
                                                     {"reserved", VR_RIGHT, VR_BOLD, false}, {"in use", VR_RIGHT, VR_PLAIN, false},
                                                     {"free", VR_RIGHT, VR_PLAIN, false},    {"largest free", VR_RIGHT, VR_PLAIN, false}};
    static const char *const kinds[] = {"?", "small", "large"};
    const size_t most = 12;
    if (device->pool_count < 2 || is_events_alone(printer->report)) return;
    vr_text_heading(printer->text, &printer->style, "Pools at the end", "  Free memory of a row serves only requests of the same row.");
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < device->pool_count && i < most; i++) {
        const struct vram_report_pool *pool = &device->pools[i];
        const bool is_private = pool->pool_id[0] != 0 || pool->pool_id[1] != 0;
        vr_table_cell(&table, pool->stream > 0xFFFF || pool->stream < 0 ? "0x%llx" : "%lld", (long long)pool->stream);
        if (is_private) {
            vr_table_cell(&table, "%llu,%llu", (unsigned long long)pool->pool_id[0], (unsigned long long)pool->pool_id[1]);
        } else {
            vr_table_cell(&table, "default");
        }
        vr_table_cell(&table, "%s%s", kinds[pool->kind], pool->expandable_segments != 0 ? ", expandable" : "");
        vr_table_cell(&table, "%s", vr_count(pool->segments).text);
        vr_table_cell(&table, "%s", vr_bytes(pool->reserved_bytes).text);
        vr_table_cell(&table, "%s", vr_bytes(pool->allocated_bytes).text);
        vr_table_cell(&table, "%s", vr_bytes(pool->free_bytes).text);
        vr_table_cell(&table, "%s", vr_bytes(pool->largest_free_bytes).text);
    }
    vr_table_print(&table, printer->text, &printer->style, 4);
    vr_table_release(&table);
    if (device->pool_count > most) vr_text_printf(printer->text, "    ... and %zu more\n", device->pool_count - most);
}

// Hints at --stack if one call site holds most memory and several callers share it. C and C++ programs often allocate through a function of
// their own.
static void print_callers_hint(struct report_printer *printer, const struct vram_report_live *live) {
    const struct vram_report_group *site = &live->sites[0];
    const bool most = site->bytes >= live->peak.bytes / 4 * 3, several = live->stacks[0].bytes < site->bytes / 10 * 9;
    const char *const hint = "Several callers share the first one; `vram report --stack` shows them.";
    if (!most || !several) return;
    vr_text_puts(printer->text, "    ");
    vr_text_flow(printer->text, &printer->style, 4, 4, hint);
    vr_text_puts(printer->text, "\n");
}

static void print_sites(struct report_printer *printer, const struct vram_report_device *device) {
    static const struct vr_table_column columns[] = {{"bytes", VR_RIGHT, VR_BOLD, false},
                                                     {"share", VR_RIGHT, VR_PLAIN, false},
                                                     {"count", VR_RIGHT, VR_PLAIN, false},
                                                     {"", VR_LEFT, VR_CYAN, false},
                                                     {"call site", VR_LEFT, VR_PLAIN, true}};
    const struct vram_report_live *live = &device->allocated;
    if (live->site_count == 0 || live->peak.bytes == 0) return;
    struct vr_text rest = {0};
    vr_text_printf(&rest, "  %zu of %s", live->site_count, vr_counted(live->distinct_sites, "call site").text);
    vr_text_heading(printer->text, &printer->style, "Live at the peak", vr_text_string(&rest));
    vr_text_release(&rest);
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < live->site_count; i++) {
        struct vr_text bar = {0};
        vr_text_bar(&bar, &printer->style, live->sites[i].bytes, live->sites[0].bytes, 12);
        vr_table_cell(&table, "%s", vr_bytes(live->sites[i].bytes).text);
        vr_table_cell(&table, "%s", vr_percent(live->sites[i].bytes, live->peak.bytes).text);
        vr_table_cell(&table, "%s", vr_count(live->sites[i].count).text);
        vr_table_cell_bytes(&table, vr_text_string(&bar), bar.length);
        vr_table_site(printer->text, &table, live->sites[i].name);
        vr_text_release(&bar);
    }
    vr_table_print(&table, printer->text, &printer->style, 4);
    vr_table_release(&table);
    print_callers_hint(printer, live);
}

static void print_kinds(struct report_printer *printer, const struct vram_report_device *device) {
    if (device->kind_count == 0) return;
    vr_text_puts(printer->text, "    as");
    for (size_t i = 0; i < device->kind_count; i++) {
        vr_text_printf(printer->text, "%s ", i == 0 ? "" : ",");
        vr_text_printable(printer->text, device->kinds[i].name, strlen(device->kinds[i].name));
        vr_text_printf(printer->text, " %s", vr_bytes(device->kinds[i].bytes).text);
    }
    vr_text_puts(printer->text, "\n");
}

// Prints the bytes of each library at the peak, largest first; the smallest ones share a row.
static void print_libraries(struct report_printer *printer, const struct vram_report_device *device) {
    static const char *const marks[][2] = {{"█", "#"}, {"▓", "+"}, {"▒", "o"}, {"░", "."}, {"▚", "x"}, {"·", "-"}};
    static const enum vr_colour colours[] = {VR_CYAN, VR_BLUE, VR_YELLOW, VR_GREEN, VR_MAGENTA, VR_PLAIN};
    static const struct vr_table_column columns[] = {{"", VR_LEFT, VR_PLAIN, false},
                                                     {"", VR_RIGHT, VR_BOLD, false},
                                                     {"", VR_RIGHT, VR_PLAIN, false},
                                                     {"", VR_RIGHT, VR_PLAIN, false},
                                                     {"", VR_LEFT, VR_PLAIN, true}};
    const size_t most = VR_COUNT_OF(marks), shown = device->library_count < most ? device->library_count : most;
    const uint64_t whole = device->allocated.peak.bytes;
    if (shown == 0 || whole == 0) return;
    struct vr_part parts[VR_COUNT_OF(marks)] = {{0}};
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < shown; i++) {
        uint64_t bytes = 0, count = 0;
        const bool rest = i == most - 1 && device->library_count > most;
        for (size_t l = i; l < (rest ? device->library_count : i + 1); l++) {
            bytes += device->libraries[l].bytes;
            count += device->libraries[l].count;
        }
        parts[i] = (struct vr_part){bytes, marks[i][0], marks[i][1], colours[i]};
        vr_table_cell(&table, "%s", vr_part_mark(&parts[i], &printer->style));
        vr_table_cell(&table, "%s", vr_bytes(bytes).text);
        vr_table_cell(&table, "%s", vr_percent(bytes, whole).text);
        vr_table_cell(&table, "%s", vr_count(count).text);
        const char *name = device->libraries[i].name;
        vr_table_foreign(printer->text, &table, rest ? "others" : name[0] == '\0' ? "not known" : name);
    }
    vr_text_heading(printer->text, &printer->style, "Allocated by, at the peak  ", vr_bytes(whole).text);
    vr_text_puts(printer->text, "    ");
    vr_chart_bar(printer->text, &printer->style, parts, shown, printer->style.columns - 4);
    vr_text_puts(printer->text, "\n");
    vr_table_print(&table, printer->text, &printer->style, 4);
    vr_table_release(&table);
    print_kinds(printer, device);
}

static void print_device(struct report_printer *printer, const struct vram_report_device *device) {
    struct vr_text *text = printer->text;
    struct vr_text title = {0};
    if (device->is_host)
        vr_text_puts(&title, "Pinned host memory ");
    else
        vr_text_printf(&title, "Device %u ", (unsigned)device->device);
    vr_text_puts(text, "\n");
    vr_text_colour(text, &printer->style, VR_BOLD);
    vr_text_puts(text, vr_text_string(&title));
    vr_text_repeat(text, printer->style.unicode ? "━" : "=", printer->style.columns - title.length);
    vr_text_colour(text, &printer->style, VR_PLAIN);
    vr_text_release(&title);
    print_peaks(printer, device);
    vr_oom_report(printer->output, &printer->style, device);
    print_demand(printer, device);
    print_advice(printer, device);
    print_saving(printer, device);
    print_timeline(printer, device);
    print_libraries(printer, device);
    print_usage(printer, device);
    print_pools(printer, device);
    print_sites(printer, device);
}

// --- settings --------------------------------------------------------------------------------------------------------------
static void print_settings(struct report_printer *printer) {
    const struct vram_report *report = printer->report;
    if (!report->has_settings) return;
    static const struct vr_table_column columns[] = {{"", VR_LEFT, VR_PLAIN, false}, {"", VR_LEFT, VR_PLAIN, true}};
    struct vr_table table;
    size_t shown = 0, facts = 0;
    for (size_t i = 0; i < report->setting_count; i++) facts += vr_is_fact(report->settings[i].key);
    if (facts != 0 && facts == report->setting_count) return; // a rewritten recording of a whole program: no allocator was queried
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    if (report->odd_settings != NULL) {
        vr_table_foreign(printer->text, &table, "allocator_settings");
        vr_table_foreign(printer->text, &table, report->odd_settings);
        shown++;
    }
    for (size_t i = 0; i < report->setting_count; i++) {
        if (vr_recorded_is_usual(report->settings[i].key, report->settings[i].value) || vr_is_fact(report->settings[i].key)) continue;
        vr_table_foreign(printer->text, &table, report->settings[i].key);
        vr_table_foreign(printer->text, &table, report->settings[i].value);
        shown++;
    }
    vr_text_heading(printer->text, &printer->style, "Settings", shown == 0 ? "  all at their defaults" : "  not at their defaults");
    vr_table_print(&table, printer->text, &printer->style, 4);
    vr_table_release(&table);
}

enum vram_status vram_report_text(const struct vram_report *report, const struct vram_report_source *source, const struct vram_style *style,
                                  vram_write write, void *user) {
    VR_REQUIRE(report && write);
    struct vr_text text = {0};
    struct vr_report_output output = {.text = &text, .source = source, .write = write, .user = user};
    struct report_printer printer = {
        .text = &text, .style = style == NULL ? (struct vram_style){0} : *style, .report = report, .output = &output};
    if (printer.style.columns == 0) printer.style.columns = 100;
    if (printer.style.columns < 60) printer.style.columns = 60;
    print_title(&printer, source);
    print_ran_out(&printer);
    print_notes(&printer, VRAM_NOTE_CONTRADICTION, "Contradictions in the recording", VR_RED);
    const struct vram_report_device *worst = vram_report_worst_device(report);
    if (worst != NULL) print_device(&printer, worst);
    for (size_t d = 0; d < report->device_count; d++) {
        if (&report->devices[d] != worst) print_device(&printer, &report->devices[d]);
    }
    print_settings(&printer);
    print_notes(&printer, VRAM_NOTE_MISSING, "Not in this recording", VR_YELLOW);
    const enum vram_status status = vr_text_finish(&text, write, user);
    return output.refused ? VRAM_IO : status;
}
