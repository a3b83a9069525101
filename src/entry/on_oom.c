#include "entry/on_oom.h"

#include "core/state.h"
#include "live/oom_snapshot.h"
#include "live/file.h"
#include "live/tracer.h"
#include "vram/oom.h"
#include "vram/report.h"

enum { MOST_FAILURES = 16, UUID_BYTES = 16 };
#define MOST_SEARCH_NS     2000000000u
#define MOST_SEARCH_EVENTS 1000000u // about the most that one replay gets through in the time

// Who else holds the device. Nothing but this process's sum is known of its contexts: they were made before anybody could ask.
static void find_oom_facts(struct vram_allocator *allocator, const struct vram_oom *oom, struct vram_processes *processes,
                           struct vr_oom_facts *oom_facts, struct vram_error *error) {
    unsigned char uuid[UUID_BYTES];
    *error = (struct vram_error){.message = "the driver does not say which device it is"};
    const bool named = vr_cu(allocator->driver, device_get_uuid, uuid, (int)oom->device) == VR_CU_SUCCESS;
    const bool found = processes != NULL && named && vram_processes_find(uuid, NULL, processes, error) == VRAM_OK;
    *oom_facts = (struct vr_oom_facts){.accounts = {.device = oom->device,
                                                    .time_us = INT64_MIN,
                                                    .context_bytes = VRAM_NOT_KNOWN,
                                                    .module_bytes = VRAM_NOT_KNOWN,
                                                    .at_start_bytes = VRAM_NOT_KNOWN,
                                                    .processes = found ? processes : NULL,
                                                    .why = error->message},
                                       .device_total_bytes = oom->device_total_bytes,
                                       .limit_bytes = oom->limit_bytes};
}

static bool is_short(const struct vram_report *report) {
    for (size_t i = 0; i < report->device_count; i++)
        if (report->devices[i].events > MOST_SEARCH_EVENTS) return false;
    return true;
}

static bool has_event(const struct vram_report *report) {
    for (size_t i = 0; i < report->device_count; i++)
        if (report->devices[i].oom_count != 0) return true;
    return false;
}

static bool put(struct vr_file *file, const char *text) { return vr_file_write(file, text, strlen(text)); }

// What the page cannot say, and what would let it.
static bool write_hint(struct vr_file *file, struct vram_allocator *allocator, const struct vram_report *report) {
    struct vr_tracer *tracer = vr_tracer_of(allocator);
    bool streams = false;
    for (size_t i = 0; tracer != NULL && i < VR_TRACER_RINGS; i++)
        streams = streams || atomic_load_explicit(&tracer->streams[i], memory_order_relaxed) != NULL;
    if (!has_event(report) && streams)
        return put(file, "\n  The history is in the file that VRAM_HISTORY names: `vram report` says why it came to this, and the cure.\n");
    if (!has_event(report))
        return put(file,
                   "\n  No history was recorded: with VRAM_HISTORY=all this page says why it came to this, and what would have helped.\n");
    if (!is_short(report))
        return put(
            file, "\n  The history is too long to be replayed here: with VRAM_ON_OOM=dump it is kept, and `vram report` finds the cure.\n");
    return true;
}

static enum vram_status write_page(struct vr_file *file, struct vram_allocator *allocator, const struct vram_recording *recording,
                                   struct vram_error *error) {
    struct vram_report *report = NULL;
    struct vram_cures *cures = NULL;
    enum vram_status status = vram_report_create(recording, NULL, &report, error);
    if (status != VRAM_OK) return status;
    // Without a cure the page says why all the same.
    if (has_event(report) && is_short(report)) (void)!vram_cures_find_within(recording, report, MOST_SEARCH_NS, &cures, NULL);
    const struct vram_report_source source = {.cures = cures == NULL ? NULL : cures->cures, .cure_count = cures == NULL ? 0 : cures->count};
    status = vram_report_text(report, &source, NULL, vr_file_write, file);
    if (status == VRAM_OK && !write_hint(file, allocator, report)) status = VRAM_IO;
    vram_cures_destroy(cures);
    vram_report_destroy(report);
    return status;
}

static enum vram_status write_report(struct vr_watch *watch, const struct vram_oom *oom, const struct vr_oom_facts *oom_facts,
                                     struct vr_file *file, struct vram_error *error) {
    char text[2048];
    struct vram_recording *recording = NULL;
    const size_t length = vram_oom_text(oom, text, sizeof text);
    if (!vr_file_write(file, text, length < sizeof text ? length : sizeof text - 1) || !put(file, "\n\n")) return VRAM_IO;
    enum vram_status status = vr_snapshot_at_oom(watch->allocator, oom_facts, &recording, error);
    if (status == VRAM_OK) status = write_page(file, watch->allocator, recording, error);
    vram_recording_destroy(recording);
    return status;
}

void vr_on_oom(const struct vram_oom *oom, void *user) {
    struct vr_watch *watch = user;
    if (atomic_fetch_add_explicit(&watch->failures, 1, memory_order_relaxed) >= MOST_FAILURES) return;
    struct vram_error why;
    struct vr_oom_facts oom_facts;
    struct vram_processes *processes = malloc(sizeof *processes); // too much for a stack
    find_oom_facts(watch->allocator, oom, processes, &oom_facts, &why);
    (void)!vr_history_at_oom(watch->allocator, &oom_facts);
    if (watch->report) {
        struct vr_file file;
        if (vr_file_open(&file, watch->pattern, NULL) == VRAM_OK)
            (void)!vr_file_close(&file, write_report(watch, oom, &oom_facts, &file, NULL), NULL);
    } else {
        (void)!vr_snapshot_save_at_oom(watch->allocator, &oom_facts, watch->pattern, NULL);
    }
    free(processes);
}
