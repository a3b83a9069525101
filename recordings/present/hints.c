// The sentences of the rows VR_HINT of analyze/advice.def.
#include "present/hints.h"

#include "analyze/advice.h"
#include "base/text.h"
#include "present/text_parts.h"

// --- sentences ---------------------------------------------------------------------------------------------------------------------------

static void say_waits(const struct vram_report_device *device, struct vr_text *out) {
    vr_text_printf(out,
                   "%s in %s block%s waited for another stream at event %s, while at most %s was in use at once: freed, but marked with "
                   "record_stream. ",
                   vr_bytes(device->waiting.bytes).text, vr_count(device->waiting.count).text, device->waiting.count == 1 ? "" : "s",
                   vr_count(device->waiting_event).text, vr_bytes(device->allocated.peak.bytes).text);
    if (device->waiting_site != NULL) {
        vr_text_puts(out, "Most of it is by ");
        vr_text_site(out, device->waiting_site, strlen(device->waiting_site));
        vr_text_puts(out, ". ");
    }
    if (device->has_waited_for)
        vr_text_printf(out, "The only other stream in the recording is %lld. ", (long long)device->waited_for);
    else
        vr_text_puts(out, "The recording does not say which stream. ");
    vr_text_puts(
        out,
        "Let the program's stream wait for that one (wait_stream, or an event) before it frees the memory, in place of record_stream, or "
        "synchronize more often.");
}

static void say_rounding(const struct vram_report_device *device, struct vr_text *out) {
    const struct vram_report_usage *usage = &device->usage;
    vr_text_printf(out,
                   "%s was asked for and %s is pinned: sizes are rounded up to powers of two. Ask for sizes just below a power of two, or "
                   "split large buffers.",
                   vr_bytes(usage->requested_bytes).text, vr_bytes(usage->requested_bytes + usage->rounding_bytes).text);
}

static void put_stream(int64_t stream, struct vr_text *out) {
    vr_text_printf(out, stream > 0xFFFF || stream < 0 ? "0x%llx" : "%lld", (long long)stream);
}

static void say_idle_streams(const struct vram_report_device *device, struct vr_text *out) {
    const struct vr_idle_streams idle = vr_idle_streams(device);
    vr_text_printf(out, "%s is cached on %s stream%s with nothing in use (", vr_bytes(idle.bytes).text, vr_count(idle.count).text,
                   idle.count == 1 ? "" : "s");
    put_stream(idle.largest, out);
    vr_text_printf(out,
                   "%s), where no other stream can take it. Use the same streams again in place of new ones, or call empty_cache() when "
                   "the work on a stream is done.",
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

enum vram_status vr_report_hints(struct vr_arena *arena, struct vram_report *report) {
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
