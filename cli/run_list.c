// run_list.c: the end of `vram run`.
#include "run_list.h"

#include <inttypes.h>
#include <string.h>

#include "ui.h"
#include "vram/recording.h"
#include "vram/explain.h"
#include "vram/report.h"
#include "vram/symbols.h"

#define LINE_MAX_BYTES 9000

static bool write_error(void *user, const char *bytes, size_t length) {
    (void)user;
    return fwrite(bytes, 1, length, stderr) == length;
}

static void print_devices(const struct vram_recording *recording, const struct vram_report *report) {
    char size[UI_SIZE_CAPACITY];
    uint64_t events = 0;
    for (size_t i = 0; i < report->device_count; i++) events += report->devices[i].events;
    fprintf(stderr, ", %" PRIu64 " event%s", events, events == 1 ? "" : "s");
    for (size_t i = 0; i < report->device_count; i++) {
        const struct vram_report_device *device = &report->devices[i];
        fprintf(stderr, i == 0 ? "; peak " : ", ");
        fprintf(stderr, "%s", ui_size(device->allocated.peak.bytes, size));
        if (vram_recording_device_is_host(recording, device->device))
            fprintf(stderr, " of pinned host memory");
        else
            fprintf(stderr, " on device %" PRIu32, device->device);
        if (device->oom_count != 0) fprintf(stderr, ", out of memory %zu time%s", device->oom_count, device->oom_count == 1 ? "" : "s");
    }
    fprintf(stderr, "\n");
}

static bool has_oom(const struct vram_report *report) {
    for (size_t i = 0; i < report->device_count; i++)
        if (report->devices[i].oom_count != 0) return true;
    return false;
}

static void print_report(const char *path, struct vram_recording *recording) {
    struct vram_report *report = NULL;
    struct vram_cures *cures = NULL;
    // Machine code gets the names that this machine knows; without memory for them it stays as it is.
    (void)!vram_recording_symbolize(recording, NULL, NULL);
    if (vram_report_create(recording, NULL, &report, NULL) != VRAM_OK) return;
    // Without a cure the report says why all the same.
    (void)!vram_cures_find(recording, report, &cures, NULL);
    const struct vram_report_source source = {
        .file = path, .cures = cures == NULL ? NULL : cures->cures, .cure_count = cures == NULL ? 0 : cures->count};
    const struct vram_style style = {.columns = 100};
    if (vram_report_text(report, &source, &style, write_error, NULL) != VRAM_OK) fprintf(stderr, "\n");
    vram_cures_destroy(cures);
    vram_report_destroy(report);
}

static void summarize(const char *path, bool wants_report) {
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    fprintf(stderr, "vram run: ");
    ui_put(stderr, path);
    enum vram_status status = vram_recording_read_file(path, &recording, &error);
    if (status == VRAM_OK) {
        status = vram_report_create(recording, NULL, &report, &error);
        if (status != VRAM_OK) vram_recording_destroy(recording);
    }
    if (status != VRAM_OK) {
        fprintf(stderr, "\n");
        (void)ui_error(path, &error);
        return;
    }
    print_devices(recording, report);
    if (wants_report && has_oom(report)) print_report(path, recording);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
}

// A line is three fields with tabs between: what, and two details.
static bool split(char *line, char *fields[3]) {
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 0; i < 3; i++) {
        fields[i] = line;
        char *tab = strchr(line, '\t');
        if (tab == NULL) return i == 2;
        *tab = '\0';
        line = tab + 1;
    }
    return true;
}

void run_list_summary(FILE *list, const char *program, bool wants_report) {
    char line[LINE_MAX_BYTES];
    size_t files = 0;
    while (fgets(line, sizeof line, list) != NULL) {
        char *fields[3];
        if (!split(line, fields)) continue;
        if (strcmp(fields[0], "file") == 0) {
            files++;
            summarize(fields[1], wants_report);
        } else if (strcmp(fields[0], "dump") == 0) {
            ui_say("vram run: at an out of memory: %s", fields[1]);
        } else if (strcmp(fields[0], "missed") == 0) {
            ui_say("vram run: not seen: %s %s", fields[1], fields[2]);
        }
    }
    if (files == 0) ui_say("vram run: %s asked a CUDA driver for no memory that could be seen; no file was made", program);
}
