// The services of libvram-recordings for a running allocator: snapshot files, and the report after an out-of-memory error.
#include <string.h>

#include "live/recordings_library.h"
#include "vram/oom.h"
#include "vram/report.h"
#include "vram/vram.h"

#define MOST_SEARCH_NS     2000000000u
#define MOST_SEARCH_EVENTS 1000000u // about the most that one replay can process in that time

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

// Returns a hint about what the report cannot say, and how to record it.
static const char *oom_hint(const struct vram_report *report, bool streams) {
    if (!has_event(report) && streams)
        return "\n  The history is in the file that VRAM_HISTORY names; run `vram report` on it for the cause and the cure.\n";
    if (!has_event(report)) return "\n  No history was recorded. With VRAM_HISTORY=all, this page gives the cause and the cure.\n";
    if (!is_short(report))
        return "\n  The history is too long to replay here. Keep it with VRAM_ON_OOM=dump; `vram report` then finds the cure.\n";
    return "";
}

static enum vram_status write_oom_report(const struct vram_recording *recording, bool streams, vram_write write, void *user,
                                         struct vram_error *error) {
    struct vram_report *report = NULL;
    struct vram_cures *cures = NULL;
    enum vram_status status = vram_report_create(recording, NULL, &report, error);
    if (status != VRAM_OK) return status;
    // Without a cure, the report still has the cause.
    if (has_event(report) && is_short(report)) (void)!vram_cures_find_within(recording, report, MOST_SEARCH_NS, &cures, NULL);
    const struct vram_report_source source = {.cures = cures == NULL ? NULL : cures->cures, .cure_count = cures == NULL ? 0 : cures->count};
    status = vram_report_text(report, &source, NULL, write, user);
    const char *text = oom_hint(report, streams);
    if (status == VRAM_OK && !write(user, text, strlen(text))) status = VRAM_IO;
    vram_cures_destroy(cures);
    vram_report_destroy(report);
    return status;
}

VRAM_API const struct vr_recordings_library vram_recordings_library = {
    .version = VRAM_VERSION_STRING, .write_recording = vram_recording_write, .write_oom_report = write_oom_report};
