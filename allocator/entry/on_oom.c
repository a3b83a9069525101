#include "entry/on_oom.h"

#include "core/state.h"
#include "live/oom_snapshot.h"
#include "live/file.h"
#include "live/recordings_library.h"
#include "live/tracer.h"
#include "vram/accounts.h"

enum { MOST_FAILURES = 16, UUID_BYTES = 16 };

// Finds the other holders of the device. Of this process's contexts only the sum is known, because they were made before they could be
// measured.
static void find_oom_facts(struct vram_allocator *allocator, const struct vram_oom *oom, struct vram_processes *processes,
                           struct vr_oom_facts *oom_facts, struct vram_error *error) {
    unsigned char uuid[UUID_BYTES];
    *error = (struct vram_error){.message = "the driver does not report the device's identity"};
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

static bool streams_history(struct vram_allocator *allocator) {
    struct vr_tracer *tracer = vr_tracer_of(allocator);
    for (size_t i = 0; tracer != NULL && i < VR_TRACER_RINGS; i++)
        if (atomic_load_explicit(&tracer->streams[i], memory_order_relaxed) != NULL) return true;
    return false;
}

static bool put_sentence(struct vr_file *file, const char *text) { return vr_file_write(file, text, strlen(text)); }

// Writes the reason for a missing report: there is no library for recordings.
static enum vram_status write_why_not(struct vr_file *file, const struct vram_error *why) {
    return put_sentence(file, "\n  No report: ") && put_sentence(file, why->message) && put_sentence(file, "\n") ? VRAM_OK : VRAM_IO;
}

static enum vram_status write_report(struct vr_watch *watch, const struct vram_oom *oom, const struct vr_oom_facts *oom_facts,
                                     struct vr_file *file, struct vram_error *error) {
    char text[2048];
    struct vram_recording *recording = NULL;
    const size_t length = vram_oom_text(oom, text, sizeof text);
    if (!vr_file_write(file, text, length < sizeof text ? length : sizeof text - 1) || !put_sentence(file, "\n\n")) return VRAM_IO;
    const struct vr_recordings_library *library;
    struct vram_error why;
    if (vr_recordings_library_find(&library, &why) != VRAM_OK) return write_why_not(file, &why);
    enum vram_status status = vr_snapshot_at_oom(watch->allocator, oom_facts, &recording, error);
    if (status == VRAM_OK) status = library->write_oom_report(recording, streams_history(watch->allocator), vr_file_write, file, error);
    vram_recording_destroy(recording);
    return status;
}

void vr_on_oom(const struct vram_oom *oom, void *user) {
    struct vr_watch *watch = user;
    if (atomic_fetch_add_explicit(&watch->failures, 1, memory_order_relaxed) >= MOST_FAILURES) return;
    struct vram_error why;
    struct vr_oom_facts oom_facts;
    struct vram_processes *processes = malloc(sizeof *processes); // too large for the stack
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
