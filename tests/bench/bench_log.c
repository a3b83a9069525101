// bench_log [EVENTS [random]]: measures a recording file: appending an event (with and without packing), its bytes, and reading.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "vram/log.h"
#include "vram/recording.h"

// Returns the process's CPU time, which excludes other work on the machine.
static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Returns the process's peak memory in MiB, from /proc.
static double peak_mib(void) {
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmHWM: %lf", &kib) == 1) break;
    }
    if (file != NULL) (void)fclose(file);
    return kib / 1024;
}

// Makes events of a training loop, with repeating addresses and sizes; or random ones that never repeat.
static struct vram_log_event event_of(uint64_t i, bool random) {
    uint64_t round = i / 3, mixed = vr_mix64(round);
    uint64_t slot = random ? mixed : round % 1500;
    return (struct vram_log_event){
        .address = 0x7f0000000000u + slot % 150000000 * 512,
        .size_bytes = vr_mix64(slot) % 20000000,
        .time_ns = 1700000000000000000u + i * 2300 + vr_mix64(i) % 2000,
        .action = i % 3 == 0   ? VRAM_LOG_ALLOC
                  : i % 3 == 1 ? VRAM_LOG_FREE_REQUESTED
                               : VRAM_LOG_FREE_COMPLETED,
        .thread = 4711,
    };
}

int main(int argc, char **argv) {
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    bool random = argc > 2 && strcmp(argv[2], "random") == 0;
    const char *path = "bench_log.vram";
    struct vram_log_options options = {.replace = true, .producer = "bench"};
    struct vram_log *log;
    struct vram_error error;
    struct vram_log_counts counts;
    struct vram_recording *recording;
    if (vram_log_create(path, &options, &log, &error) != VRAM_OK) return 1;
    double begin = seconds(), made = 0;
    for (uint64_t i = 0; i < count; i++) {
        volatile uint64_t sink = event_of(i, random).address;
        (void)sink;
    }
    made = seconds() - begin;
    begin = seconds();
    for (uint64_t i = 0; i < count; i++) {
        struct vram_log_event event = event_of(i, random);
        if (vram_log_append(log, &event, 1) != VRAM_OK) return 1;
    }
    double appended = seconds() - begin - made;
    vram_get_log_counts(log, &counts);
    double peak = peak_mib();
    if (vram_log_close(log) != VRAM_OK) return 1;
    (void)printf("%s: %llu events, %.2f bytes each; append and pack %.1f ns each; peak of memory %.1f MiB\n", random ? "random" : "loop",
                 (unsigned long long)count, (double)counts.bytes / (double)count, appended * 1e9 / (double)count, peak);
    begin = seconds();
    if (count <= 20000000) {
        if (vram_recording_read_file(path, &recording, &error) != VRAM_OK) {
            (void)fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        double read = seconds() - begin;
        (void)printf("read: %.2f s, %.1f ns each\n", read, read * 1e9 / (double)count);
        vram_recording_destroy(recording);
    }
    (void)remove(path);
    return 0;
}
