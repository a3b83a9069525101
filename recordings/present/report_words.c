// Builds a report: its facts, the sentences about them, notes on the recording, and hints.
#include "analyze/advice.h"
#include "analyze/report_parts.h"
#include "base/text.h"
#include "model/recording.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"

struct note_writer {
    struct vr_arena *arena;
    struct vram_report_note *notes;
    size_t count;
    size_t capacity;
    enum vram_status status;
};

// Appends a note. A failure is kept in writer->status. device -1: the whole recording.
static void write_note(struct note_writer *writer, enum vram_report_note_kind kind, int64_t device, const char *code, const char *text) {
    if (writer->status != VRAM_OK) return;
    writer->status = vr_grow((void **)&writer->notes, &writer->capacity, writer->count + 1, sizeof *writer->notes);
    if (writer->status != VRAM_OK) return;
    struct vram_report_note *added = &writer->notes[writer->count];
    *added = (struct vram_report_note){.kind = kind, .device = device, .code = code};
    writer->status = vr_arena_copy(writer->arena, text, strlen(text), &added->text);
    writer->count += writer->status == VRAM_OK;
}

static void note_text(struct note_writer *writer, enum vram_report_note_kind kind, int64_t device, const char *code, struct vr_text *text) {
    if (text->failed) writer->status = VRAM_NO_HOST_MEMORY;
    write_note(writer, kind, device, code, vr_text_string(text));
    vr_text_release(text);
}

static uint64_t action_count(const struct vram_report_device *device, enum vr_action action) {
    for (size_t i = 0; i < device->action_count; i++) {
        if (strcmp(device->actions[i].name, vr_action_name(action)) == 0) return device->actions[i].count;
    }
    return 0;
}

static void missing_stacks(struct note_writer *writer, const struct vram_report_device *device) {
    const uint64_t without = device->events - device->events_with_frames;
    struct vr_text text = {0};
    if (device->events_with_frames == 0) {
        write_note(writer, VRAM_NOTE_MISSING, device->device, "no_stacks", "no event has a call stack, so call sites are not known");
        return;
    }
    if (without * 100 <= device->events) return;
    vr_text_printf(&text, "%s of %s events have no call stack", vr_count(without).text, vr_count(device->events).text);
    note_text(writer, VRAM_NOTE_MISSING, device->device, "few_stacks", &text);
}

// Returns whether the recording has segments. Logs of other allocators and of profilers have none: reserved memory can only be estimated
// from live memory.
static bool knows_segments(const struct vram_report_device *device) {
    static const enum vr_action actions[] = {VR_ACTION_SEGMENT_ALLOC, VR_ACTION_SEGMENT_FREE, VR_ACTION_SEGMENT_MAP,
                                             VR_ACTION_SEGMENT_UNMAP};
    uint64_t count = 0;
    for (size_t i = 0; i < VR_COUNT_OF(actions); i++) count += action_count(device, actions[i]);
    return device->events == 0 || count != 0 || device->segments_of_kind[VR_KIND_UNKNOWN] != device->segments;
}

static void missing_segments(struct note_writer *writer, const struct vram_report_device *device) {
    if (knows_segments(device)) return;
    write_note(writer, VRAM_NOTE_MISSING, device->device, "no_segments",
               "no segments were recorded: memory held from the driver is not known, and live blocks are shown as segments");
}

static void missing_actions(struct note_writer *writer, const struct vram_report_device *device) {
    const uint64_t allocs = action_count(device, VR_ACTION_ALLOC), requested = action_count(device, VR_ACTION_FREE_REQUESTED);
    const uint64_t completed = action_count(device, VR_ACTION_FREE_COMPLETED);
    if (allocs == 0) {
        write_note(writer, VRAM_NOTE_MISSING, device->device, "no_allocations",
                   "the history has no allocations: only the final state shows live memory");
    } else if (requested == 0 && completed != 0) {
        write_note(writer, VRAM_NOTE_MISSING, device->device, "filtered",
                   "free_completed events without free_requested ones: not all actions were recorded");
    } else if (completed == 0 && requested != 0 && device->usage.pending_bytes == 0) { // frees pending at the end never completed
        write_note(writer, VRAM_NOTE_MISSING, device->device, "filtered",
                   "free_requested events without free_completed ones: not all actions were recorded");
    }
}

static bool has_private_pool(const struct vram_report_device *device) {
    for (size_t i = 0; i < device->pool_id_count; i++) {
        if (device->pool_ids[i][0] != 0 || device->pool_ids[i][1] != 0) return true;
    }
    return false;
}

static void missing_of_device(struct note_writer *writer, const struct vr_model *model, const struct vram_report_device *device) {
    if (device->events == 0) {
        write_note(writer, VRAM_NOTE_MISSING, device->device, "no_history",
                   "no history: only the final state is known. torch.cuda.memory._record_memory_history() was not called, was called after "
                   "the last allocation, or was switched off before the dump, which clears the history");
        return;
    }
    const struct vram_report_live *live = &device->allocated;
    missing_segments(writer, device);
    missing_actions(writer, device);
    missing_stacks(writer, device);
    if (live->start.count != 0 && action_count(device, VR_ACTION_ALLOC) != 0) {
        struct vr_text text = {0};
        vr_text_printf(&text, "the history starts late: %s (%s) from before its first event",
                       vr_counted(live->start.count, "live allocation").text, vr_bytes(live->start.bytes).text);
        note_text(writer, VRAM_NOTE_MISSING, device->device, "starts_late", &text);
    }
    if (!device->has_times) write_note(writer, VRAM_NOTE_MISSING, device->device, "no_times", "events have no times");
    const struct vr_history *history = &model->histories[device->device];
    if (has_private_pool(device) && (vr_entry_has(history, 0) & VR_HAS_POOL_ID) == 0) {
        write_note(writer, VRAM_NOTE_MISSING, device->device, "no_pool_ids",
                   "events do not name their private pool, so the pool of memory freed before the end is not known");
    }
}

static bool setting_is_set(const char *value) {
    return value != NULL && (strstr(value, "true") != NULL || strpbrk(value, "123456789") != NULL);
}

// Notes that pinned host memory is missing. A PyTorch snapshot has it only if the host allocator's history was enabled too.
static void missing_host(struct note_writer *writer, const struct vram_report *report) {
    bool python = false;
    for (size_t d = 0; d < report->device_count; d++) {
        const struct vram_report_device *device = &report->devices[d];
        if (device->is_host || device->whole_program) return;
        python = python || device->python;
    }
    if (python && strcmp(report->form, "dict") == 0 && report->top_level_key_count != 0)
        write_note(writer, VRAM_NOTE_MISSING, -1, "no_host",
                   "pinned host memory was not recorded: the snapshot has no trace of the host's allocator");
}

static void missing_of_recording(struct note_writer *writer, const struct vr_model *model, const struct vram_report *report) {
    if (report->device_count == 0)
        write_note(writer, VRAM_NOTE_MISSING, -1, "empty",
                   "no device has segments or events: nothing was allocated, or nothing was recorded. Call "
                   "torch.cuda.memory._record_memory_history() before the first allocation, and torch.cuda.memory._dump_snapshot() while "
                   "the memory is in use and recording is on");
    const bool program = vr_model_setting(model, "vram_run_process") != NULL; // it may lack a caching allocator
    missing_host(writer, report);
    if (!report->has_settings && !program)
        write_note(writer, VRAM_NOTE_MISSING, -1, "no_settings", "the allocator's settings are not in the file");
    if (setting_is_set(vr_model_setting(model, "trace_alloc_overflowed"))) {
        write_note(writer, VRAM_NOTE_MISSING, -1, "overflow", "the ring of events overflowed: the oldest events are lost");
        return;
    }
    const char *ring = vr_model_setting(model, "trace_alloc_max_entries");
    const unsigned long long entries = ring == NULL ? 0 : strtoull(ring, NULL, 10);
    for (size_t d = 0; d < report->device_count && entries > 1; d++) {
        if (report->devices[d].events == entries) {
            write_note(writer, VRAM_NOTE_MISSING, report->devices[d].device, "ring_full",
                       "the ring of events is exactly full: older events are probably lost");
        }
    }
}

// --- contradictions ------------------------------------------------------------------------------------------------------------
static void contradicting_history(struct note_writer *writer, const struct vram_report_device *device) {
    static const char *const texts[] = {
#define ANOMALY_TEXT(constant, name, text) text,
        VRAM_REPORT_ANOMALIES(ANOMALY_TEXT)
#undef ANOMALY_TEXT
    };
    // The active history repeats the anomalies of the allocated one; use it only if the allocated one is consistent.
    const struct vram_report_live *live = device->allocated.consistent ? &device->active : &device->allocated;
    if (live->consistent) return;
    struct vr_text text = {0};
    vr_text_puts(&text, "the history does not lead to the final state:");
    const char *comma = " ";
    for (size_t a = 0; a < VRAM_ANOMALY_COUNT; a++) {
        if (live->anomalies[a] == 0) continue;
        vr_text_printf(&text, "%s%s (%s)", comma, texts[a], vr_count(live->anomalies[a]).text);
        comma = "; ";
    }
    if (live->end.bytes != live->final_state.bytes) {
        vr_text_printf(&text, "; the history ends with %s live, but the final blocks hold %s", vr_bytes(live->end.bytes).text,
                       vr_bytes(live->final_state.bytes).text);
    }
    note_text(writer, VRAM_NOTE_CONTRADICTION, device->device, "history_and_state", &text);
}

static void contradicting_sums(struct note_writer *writer, const struct vram_report_device *device) {
    struct vr_text text = {0};
    for (size_t m = 0; m < VRAM_REPORT_MISMATCHES; m++) {
        if (device->mismatches[m] == 0) continue;
        vr_text_printf(&text, "%s with %s in %s", text.length == 0 ? "the blocks disagree" : ",", vram_report_mismatch_name(m),
                       vr_count(device->mismatches[m]).text);
    }
    if (text.length != 0) {
        vr_text_printf(&text, " of %s", vr_counted(device->segments, "segment").text);
        note_text(writer, VRAM_NOTE_CONTRADICTION, device->device, "segment_sums", &text);
    }
    vr_text_release(&text);
}

static void contradictions(struct note_writer *writer, const struct vram_report_device *device) {
    const struct vram_report_reserved *reserved = &device->reserved;
    contradicting_history(writer, device);
    contradicting_sums(writer, device);
    if (!reserved->consistent) {
        write_note(writer, VRAM_NOTE_CONTRADICTION, device->device, "reserved_negative",
                   "reserved memory falls below zero during the history");
    }
    if (reserved->peak_bytes >= 0 && knows_segments(device) && !device->whole_program &&
        device->allocated.peak.bytes > (uint64_t)reserved->peak_bytes) {
        struct vr_text text = {0};
        vr_text_printf(&text, "live memory (%s) exceeds the peak of reserved memory (%s)", vr_bytes(device->allocated.peak.bytes).text,
                       vr_bytes((uint64_t)reserved->peak_bytes).text);
        note_text(writer, VRAM_NOTE_CONTRADICTION, device->device, "peak_above_reserved", &text);
    }
    if (device->has_times && !device->times_monotonic) {
        write_note(writer, VRAM_NOTE_CONTRADICTION, device->device, "times_backwards", "times go backwards");
    }
}

static void note_trace_end(struct note_writer *writer, const struct vr_model *model) {
    struct vr_text text = {0};
    if (model->ending == VR_ENDING_OPEN) {
        write_note(
            writer, VRAM_NOTE_MISSING, -1, "not_closed",
            "the recording was not closed (the program was killed or is still running): segments and blocks are derived from the events");
    } else if (model->damaged_at != 0) {
        vr_text_printf(&text, "the recording is damaged at byte %llu; the rest is missing", (unsigned long long)model->damaged_at);
        note_text(writer, VRAM_NOTE_MISSING, -1, "damaged", &text);
    } else if (model->ending == VR_ENDING_CUT) {
        write_note(writer, VRAM_NOTE_MISSING, -1, "cut", "the recording was cut short; the rest is missing");
    }
}

enum vram_status vr_report_notes(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report) {
    struct note_writer writer = {.arena = arena};
    for (size_t d = 0; d < report->device_count; d++) contradictions(&writer, &report->devices[d]);
    for (size_t d = 0; d < report->device_count; d++) missing_of_device(&writer, model, &report->devices[d]);
    missing_of_recording(&writer, model, report);
    note_trace_end(&writer, model);
    void *room;
    if (writer.status == VRAM_OK) writer.status = vr_arena_array(arena, writer.count, sizeof *writer.notes, &room);
    if (writer.status == VRAM_OK) {
        if (writer.count != 0) memcpy(room, writer.notes, writer.count * sizeof *writer.notes);
        report->notes = room;
        report->note_count = writer.count;
    }
    free(writer.notes);
    return writer.status;
}

// ---- hints: the sentences for the VR_HINT rows of analyze/advice.def ----

// --- sentences ---------------------------------------------------------------------------------------------------------------------------

static void say_slow_leak(const struct vram_report_device *device, struct vr_text *out) {
    vr_text_printf(out, "Memory leaks at %s: %s more per hour. ", vr_counted(device->slow_leaks, "call site").text,
                   vr_bytes((uint64_t)(device->slow_bytes_per_hour + 0.5)).text);
    vr_text_puts(out, device->slow_leaks == 1 ? "It is " : "The fastest is ");
    vr_text_site(out, device->slow_site, strlen(device->slow_site));
    vr_text_puts(out, ". `vram leaks --serving` shows the evidence and the stack.");
}

static void say_waits(const struct vram_report_device *device, struct vr_text *out) {
    vr_text_printf(
        out, "%s in %s waited for another stream at event %s; at most %s was in use at once. It was freed, but marked with record_stream. ",
        vr_bytes(device->waiting.bytes).text, vr_counted(device->waiting.count, "block").text, vr_count(device->waiting_event).text,
        vr_bytes(device->allocated.peak.bytes).text);
    if (device->waiting_site != NULL) {
        vr_text_puts(out, "Most of it was allocated by ");
        vr_text_site(out, device->waiting_site, strlen(device->waiting_site));
        vr_text_puts(out, ". ");
    }
    if (device->has_waited_for)
        vr_text_printf(out, "The only other stream in the recording is %lld. ", (long long)device->waited_for);
    else
        vr_text_puts(out, "The recording does not say which stream. ");
    vr_text_puts(out, "Instead of calling record_stream, let the program's stream wait for that one (wait_stream, or an event) before it "
                      "frees the memory, or synchronize more often.");
}

static void say_rounding(const struct vram_report_device *device, struct vr_text *out) {
    const struct vram_report_usage *usage = &device->usage;
    vr_text_printf(out,
                   "%s was requested, but %s is pinned: sizes are rounded up to powers of two. Request sizes just below a power of two, or "
                   "split large buffers.",
                   vr_bytes(usage->requested_bytes).text, vr_bytes(usage->requested_bytes + usage->rounding_bytes).text);
}

static void put_stream(int64_t stream, struct vr_text *out) {
    vr_text_printf(out, stream > 0xFFFF || stream < 0 ? "0x%llx" : "%lld", (long long)stream);
}

static void say_idle_streams(const struct vram_report_device *device, struct vr_text *out) {
    const struct vr_idle_streams idle = vr_idle_streams(device);
    vr_text_printf(out, "%s is cached on %s with nothing in use (", vr_bytes(idle.bytes).text, vr_counted(idle.count, "stream").text);
    put_stream(idle.largest, out);
    vr_text_printf(out,
                   "%s), where no other stream can use it. Reuse streams instead of creating new ones, or call empty_cache() when the work "
                   "on a stream is done.",
                   idle.count == 1 ? "" : " has most");
}

// --- the table ---------------------------------------------------------------------------------------------------------------------------

static const struct {
    const char *code;
    uint32_t grounds;
    void (*say)(const struct vram_report_device *device, struct vr_text *out);
} rows[] = {
#define VR_CAUSE_REMEDY(constant, grounds, find)
#define VR_REMEDY(constant, grounds, find)
#define VR_AFTER(cause, grounds, sentence)
#define VR_HINT(code, grounds, say) {#code, grounds, say},
#include "analyze/advice.def"
};

static enum vram_status add_hint(struct vr_arena *arena, const struct vram_report_device *device, size_t row,
                                 struct vram_report_note *note) {
    struct vr_text text = {0};
    rows[row].say(device, &text);
    *note = (struct vram_report_note){.kind = VRAM_NOTE_ADVICE, .device = device->device, .code = rows[row].code};
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = vr_arena_copy(arena, vr_text_string(&text), text.length, &note->text);
    vr_text_release(&text);
    return status;
}

// Sets the report's advice: the rows VR_HINT of analyze/advice.def whose grounds hold. NO_HOST_MEMORY.
static enum vram_status report_hints(struct vr_arena *arena, struct vram_report *report) {
    void *room;
    VR_TRY(vr_arena_array(arena, report->device_count * VR_COUNT_OF(rows), sizeof(struct vram_report_note), &room));
    struct vram_report_note *notes = room;
    for (size_t d = 0; d < report->device_count; d++) {
        const uint32_t grounds = vr_grounds_of_device(&report->devices[d]);
        for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
            if (vr_grounds_hold(grounds, rows[i].grounds)) VR_TRY(add_hint(arena, &report->devices[d], i, &notes[report->advice_count++]));
        }
    }
    report->advice = notes;
    return VRAM_OK;
}

// ---- the report ----

static enum vram_status put_words(const struct vr_model *model, struct vr_report_facts *facts) {
    for (size_t d = 0; d < facts->report.device_count; d++) VR_TRY(vr_oom_sentences(&facts->arena, &facts->report.devices[d]));
    VR_TRY(report_hints(&facts->arena, &facts->report));
    return vr_report_notes(model, &facts->arena, &facts->report);
}

enum vram_status vram_report_create(const struct vram_recording *recording, const struct vram_report_options *options,
                                    struct vram_report **report, struct vram_error *error) {
    if (recording == NULL || report == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and report must not be NULL");
    struct vr_report_facts *facts = calloc(1, sizeof *facts);
    if (facts == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the report");
    enum vram_status status = vr_report_facts_find(recording, options, facts, error);
    if (status == VRAM_OK) status = put_words(vr_recording_model(recording), facts);
    if (status != VRAM_OK) {
        vram_report_destroy(&facts->report);
        if (status == VRAM_NO_HOST_MEMORY) return vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the report");
        return status;
    }
    *report = &facts->report;
    return VRAM_OK;
}

void vram_report_destroy(struct vram_report *report) {
    if (report == NULL) return;
    struct vr_report_facts *facts = (struct vr_report_facts *)(void *)report;
    vr_arena_release(&facts->arena);
    free(facts);
}
