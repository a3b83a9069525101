// Tools for an overview: open, summary, why.
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

#include "input.h"
#include "mcp.h"
#include "vram/demand.h"
#include "vram/oom.h"
#include "vram/report.h"

#define BYTES(bytes)          mcp_bytes((bytes), (char[MCP_BYTES_CAPACITY]){0})
#define NUMBER(number)        mcp_number((number), (char[MCP_BYTES_CAPACITY]){0})
#define COUNTED(number, noun) mcp_counted((number), (noun), (char[MCP_BYTES_CAPACITY]){0})

static void say_time(struct mcp_answer *answer, const struct vram_report_device *device, const char *name) {
    if (!device->has_times || device->last_time_us < device->first_time_us)
        mcp_line(answer, "%s: %s, without times", name, COUNTED(device->events, "event"));
    else
        mcp_line(answer, "%s: %s in %.6f s", name, COUNTED(device->events, "event"),
                 (double)(device->last_time_us - device->first_time_us) / 1e6);
}

static const char *name_of(const struct vram_report_device *device, char text[32]) {
    if (device->is_host) return "pinned host memory";
    (void)snprintf(text, 32, "device %" PRIu32, device->device);
    return text;
}

static void say_peaks(struct mcp_answer *answer, const struct vram_report_device *device) {
    mcp_line(answer, "  allocated: peak %s in %s after event %" PRId64 "; at the start %s, at the end %s",
             BYTES(device->allocated.peak.bytes), COUNTED(device->allocated.peak.count, "allocation"), device->allocated.peak_event,
             BYTES(device->allocated.start.bytes), BYTES(device->allocated.end.bytes));
    if (device->whole_program || device->reserved.peak_bytes <= 0) return;
    mcp_line(answer, "  reserved: peak %s after event %" PRId64 "; at the end %s", BYTES((uint64_t)device->reserved.peak_bytes),
             device->reserved.peak_event, BYTES(device->reserved.end_bytes < 0 ? 0 : (uint64_t)device->reserved.end_bytes));
}

static void say_ooms(struct mcp_answer *answer, const struct vram_report_device *device) {
    if (device->oom_count == 0) return;
    const struct vram_report_oom *last = &device->ooms[device->oom_count - 1];
    mcp_line(answer, "  out of memory %zu time%s, the last at event %" PRIu64 ": %s requested by %s", device->oom_count,
             device->oom_count == 1 ? "" : "s", last->event, BYTES(last->size_bytes), last->site == NULL ? "an unknown place" : last->site);
}

void mcp_tool_open(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    const struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    if (open == NULL) return;
    const struct vram_report *report = open->report;
    char text[32];
    mcp_line(answer, "r%u is %s: %s read%s%s%s%s", open->id, input_base_name(open->path), BYTES(open->bytes),
             report->era[0] == '\0' ? "" : ", written by ", report->era, report->annotations == 0 ? "" : ", with annotations of ranges",
             report->device_count == 0 ? "; it has no device with events or segments" : "");
    for (size_t i = 0; i < report->device_count; i++) {
        const struct vram_report_device *device = &report->devices[i];
        say_time(answer, device, name_of(device, text));
        say_peaks(answer, device);
        say_ooms(answer, device);
    }
    for (size_t i = 0; i < report->note_count; i++) {
        const struct vram_report_note *note = &report->notes[i];
        mcp_line(answer, "%s: %s", note->kind == VRAM_NOTE_MISSING ? "missing" : "contradiction", note->text);
    }
    const struct vram_report_device *worst = vram_report_worst_device(report);
    if (worst != NULL && report->device_count > 1) mcp_about(answer, worst->device);
    if (worst != NULL && worst->oom_count != 0)
        mcp_next(answer, "why {\"file\": \"r%u\"} - the out-of-memory error, explained", open->id);
    else
        mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"role\"} - what holds the peak", open->id);
}

// Adds the cached bytes. Those of a live private pool stay with the pool.
static void say_cached(struct mcp_answer *answer, const struct vram_report_device *device) {
    const uint64_t own = device->private_inactive.bytes, all = device->wholly_inactive.bytes;
    if (all > own) mcp_line(answer, "  empty_cache() returns %s of it", BYTES(all - own));
    if (own != 0) mcp_line(answer, "  private pools (MemPool, CUDA graphs) keep %s of it", BYTES(own));
}

// Adds the report's advice for this device: which memory is wasted, and how to return it.
static void say_advice(struct mcp_answer *answer, const struct vram_report *report, const struct vram_report_device *device) {
    for (size_t i = 0; i < report->advice_count; i++) {
        if (report->advice[i].device == (int64_t)device->device) mcp_line(answer, "note: %s", report->advice[i].text);
    }
}

static void say_usage(struct mcp_answer *answer, const struct vram_report_device *device) {
    const struct vram_report_usage *usage = &device->usage;
    if (usage->reserved_bytes == 0) return;
    mcp_line(answer, "held at the end: %s, of which", BYTES(usage->reserved_bytes));
    mcp_line(answer, "  in use (requested) %s; rounding %s; freed and waiting for streams %s", BYTES(usage->requested_bytes),
             BYTES(usage->rounding_bytes), BYTES(usage->pending_bytes));
    mcp_line(answer, "  free %s in %s, the largest %s: in segments partly in use %s, in whole free segments %s",
             BYTES(usage->free_block_bytes + usage->cached_bytes), COUNTED(usage->free_blocks, "block"), BYTES(usage->largest_free_bytes),
             BYTES(usage->free_block_bytes), BYTES(usage->cached_bytes));
    say_cached(answer, device);
    if (usage->unaccounted_bytes != 0) mcp_line(answer, "  not accounted for %" PRId64 " B", usage->unaccounted_bytes);
}

static void say_groups(struct mcp_answer *answer, const struct vram_report_group *groups, size_t count, uint64_t total) {
    for (size_t i = 0; i < count; i++) {
        mcp_line(answer, "  %s, %.1f %%, %s x: %s", BYTES(groups[i].bytes),
                 total == 0 ? 0.0 : 100.0 * (double)groups[i].bytes / (double)total, NUMBER(groups[i].count), groups[i].name);
    }
}

void mcp_tool_summary(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    const struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    const struct vram_report_device *device = open == NULL ? NULL : mcp_device(open, arguments, answer);
    if (device == NULL) return;
    char text[32];
    say_time(answer, device, name_of(device, text));
    say_peaks(answer, device);
    say_ooms(answer, device);
    say_usage(answer, device);
    say_advice(answer, open->report, device);
    mcp_line(answer, "segments: %s, %s of them expandable; pools: %zu; streams that allocated: %zu", NUMBER(device->segments),
             NUMBER(device->expandable_segments), device->pool_count, device->trace_stream_count);
    mcp_line(answer, "live at the peak, the largest of %s:", COUNTED(device->allocated.distinct_sites, "call site"));
    say_groups(answer, device->allocated.sites, device->allocated.site_count, device->allocated.peak.bytes);
    for (size_t i = 0; i < open->report->setting_count; i++) {
        const struct vram_report_setting *setting = &open->report->settings[i];
        if (strcmp(setting->key, "PYTORCH_CUDA_ALLOC_CONF") == 0 && strlen(setting->value) > 2)
            mcp_line(answer, "PYTORCH_CUDA_ALLOC_CONF was %s", setting->value);
    }
    const uint64_t idle = device->usage.free_block_bytes + device->usage.cached_bytes;
    if (idle > device->usage.reserved_bytes / 8)
        mcp_next(answer, "tune {\"file\": \"r%u\"} - %s of what is held is free: would other settings need less?", open->id, BYTES(idle));
    else
        mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"role\"} - what kind of memory the peak is", open->id);
}

enum { MOST_LIBRARIES = 5, MOST_REMEDIES = 3 };

static void say_oom(struct mcp_answer *answer, const struct vram_report_oom *oom) {
    mcp_line(answer, "event %" PRIu64 ": %s requested on stream %" PRId64 " by %s", oom->event, BYTES(oom->size_bytes), oom->stream,
             oom->site == NULL ? "an unknown place" : oom->site);
    mcp_line(answer, "why: %s", oom->text);
    if (oom->advice[0] != '\0') mcp_line(answer, "advice: %s", oom->advice);
    if (oom->has_device_free)
        mcp_line(answer, "%s %s", oom->is_host ? "available to the system" : "free in the driver", BYTES(oom->device_free_bytes));
    if (oom->driver_pool_bytes != 0) mcp_line(answer, "free in the driver's own pools %s", BYTES(oom->driver_pool_bytes));
    if (!oom->has_picture) return;
    mcp_line(answer, "held %s: in use %s, waiting for streams %s, free %s (the largest piece %s)", BYTES(oom->reserved_bytes),
             BYTES(oom->allocated_bytes), BYTES(oom->pending_bytes), BYTES(oom->free_bytes), BYTES(oom->largest_free_bytes));
    mcp_line(answer, "free for this request %s in %s (the largest %s); for other streams %s, other pools %s", BYTES(oom->usable_bytes),
             COUNTED(oom->usable_pieces, "piece"), BYTES(oom->usable_largest_bytes), BYTES(oom->other_stream_bytes),
             BYTES(oom->other_pool_bytes + oom->private_pool_bytes));
    if (oom->device_total_bytes != 0)
        mcp_line(answer, "the %s has %s; %s held %s", oom->is_host ? "system" : "device", BYTES(oom->device_total_bytes),
                 oom->is_host ? "other uses and unpinned memory" : "other processes and this process's contexts",
                 BYTES(oom->outside_bytes));
    if (oom->demand != NULL && oom->cause != VRAM_OOM_FULL && oom->cause != VRAM_OOM_GROWTH)
        mcp_line(answer, "in use: %s", oom->demand->text);
    if (oom->limit_bytes != 0) mcp_line(answer, "the process may hold %s", BYTES(oom->limit_bytes));
    if (oom->pin_blocks != 0 && (oom->cause == VRAM_OOM_PINNED || oom->cause == VRAM_OOM_FRAGMENTED))
        mcp_line(answer, "without %s (%s in total) the request would have fit; the largest was allocated by %s",
                 COUNTED(oom->pin_blocks, "block"), BYTES(oom->pin_bytes), oom->pin_site == NULL ? "an unknown place" : oom->pin_site);
    if (oom->library_count != 0) {
        mcp_line(answer, "allocated by libraries:");
        say_groups(answer, oom->libraries, oom->library_count < MOST_LIBRARIES ? oom->library_count : MOST_LIBRARIES, oom->allocated_bytes);
    }
    mcp_line(answer, "in use then, the largest call sites:");
    say_groups(answer, oom->holders, oom->holder_count, oom->allocated_bytes);
}

// Analyzes the causes again for a device size that the recording does not contain.
static struct vram_report *with_memory(const struct mcp_recording *open, uint64_t memory, struct mcp_answer *answer) {
    struct vram_report *report = NULL;
    struct vram_error error;
    if (vram_report_create(open->recording, &(struct vram_report_options){.memory_bytes = memory}, &report, &error) == VRAM_OK)
        return report;
    mcp_fail(answer, "%s", error.message);
    return NULL;
}

static void say_demand(struct mcp_answer *answer, const struct vram_report_demand *demand) {
    if (demand == NULL || demand->of_role[VRAM_ROLE_UNKNOWN].bytes == demand->in_use_bytes) return;
    if (demand->phase[0] != '\0') mcp_line(answer, "the peak is in the phase: %s", demand->phase);
    if (demand->remedy_count != 0) mcp_line(answer, "what would lower the peak:");
    mcp_say_remedies(answer, demand, MOST_REMEDIES);
}

static void say_gap(struct mcp_answer *answer, const struct vram_report *report, const struct vram_report_device *device, unsigned id) {
    mcp_line(answer, "no request failed on this device");
    say_peaks(answer, device);
    say_usage(answer, device);
    say_advice(answer, report, device);
    say_demand(answer, device->demand);
    mcp_next(answer, "tune {\"file\": \"r%u\", \"memory\": \"24GiB\"} - would it fit into less, and with which settings", id);
}

void mcp_tool_why(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    uint64_t memory = 0;
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    if (open == NULL || !mcp_size(arguments, "memory", &memory, answer)) return;
    struct mcp_recording judged = *open;
    if (memory != 0) judged.report = with_memory(open, memory, answer);
    if (judged.report == NULL) return;
    const struct vram_report_device *device = mcp_device(&judged, arguments, answer);
    if (device != NULL && device->oom_count == 0) {
        say_gap(answer, judged.report, device, open->id);
        mcp_say_saving(answer, open, device->device);
    }
    if (device != NULL && device->oom_count != 0) {
        if (device->oom_count > 1) mcp_line(answer, "%zu requests failed; the last one:", device->oom_count);
        say_oom(answer, &device->ooms[device->oom_count - 1]);
        mcp_next(answer, "cure {\"file\": \"r%u\"} - the setting with which it would have fit, by replaying the history", open->id);
    }
    if (memory != 0) vram_report_destroy(judged.report);
}
