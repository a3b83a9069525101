// run_list.c: the end of `vram run`.
#define _POSIX_C_SOURCE 200809L // getdelim()
#include "run_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui.h"
#include "vram/driver.h"
#include "vram/oom.h"
#include "vram/recording.h"
#include "vram/report.h"

#define PATH_CAPACITY 4096

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

// A record is three texts, each with a NUL at its end. False at the end of the list.
static bool read_record(FILE *list, char *fields[3]) {
    size_t capacity;
    for (size_t i = 0; i < 3; i++) {
        free(fields[i]);
        fields[i] = NULL;
        capacity = 0;
        if (getdelim(&fields[i], &capacity, '\0', list) < 0) return false;
    }
    return true;
}

// A path as the user would write it here.
static const char *shown(const char *path) {
    char folder[PATH_CAPACITY];
    if (getcwd(folder, sizeof folder) == NULL) return path;
    const size_t length = strlen(folder);
    return length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

// One that cannot be used, for lack of a device or of rights, is one.
static bool has_driver(void) {
    struct vram_driver *driver = NULL;
    const enum vram_status status = vram_driver_cuda(&driver, NULL);
    vram_driver_destroy(driver);
    return status != VRAM_NO_DRIVER;
}

void run_list_summary(FILE *list, const char *program, bool wants_report) {
    char *fields[3] = {NULL};
    size_t files = 0;
    while (read_record(list, fields)) {
        if (strcmp(fields[0], "file") == 0) {
            files++;
            summarize(shown(fields[1]), wants_report);
        } else if (strcmp(fields[0], "dump") == 0) {
            ui_say("vram run: at an out of memory: %s", shown(fields[1]));
        } else if (strcmp(fields[0], "missed") == 0) {
            ui_say("vram run: not seen: %s %s", fields[1], fields[2]);
        }
    }
    for (size_t i = 0; i < 3; i++) free(fields[i]);
    if (files != 0) return;
    // A process that may write no file cannot say so either.
    ui_say("vram run: no file was made: %s asked a CUDA driver for no memory that could be seen, or may write no files", program);
    if (!has_driver()) ui_say("vram run: there is no CUDA driver here; `vram sim -- vram run -- %s` runs it on a simulated one", program);
}
