// Measures reading a recording: bench_read FILE [RUNS]. Prints the shortest run and the peak of resident memory, as JSON. bench_read.py
// compares with CPython's unpickler.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vram/recording.h"

static double now_s(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Returns this process's peak resident memory. Unlike getrusage(), excludes the parent's memory before the exec.
static uint64_t peak_rss_bytes(void) {
    char line[256];
    unsigned long long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (status == NULL) return 0;
    while (fgets(line, sizeof line, status) != NULL && sscanf(line, "VmHWM: %llu", &kib) != 1) continue;
    (void)fclose(status);
    return (uint64_t)kib * 1024;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: bench_read FILE [RUNS]\n");
        return 2;
    }
    int runs = argc == 3 ? atoi(argv[2]) : 1;
    double best = 1e300;
    uint64_t events = 0;
    for (int i = 0; i < runs; i++) {
        struct vram_recording *recording;
        struct vram_error error;
        double begin = now_s();
        enum vram_status status = vram_recording_read_file(argv[1], &recording, &error);
        if (status != VRAM_OK) {
            fprintf(stderr, "%s\n", error.message);
            return 3;
        }
        double elapsed = now_s() - begin;
        if (elapsed < best) best = elapsed;
        events = vram_recording_event_count(recording, VRAM_ALL_DEVICES);
        vram_recording_destroy(recording);
    }
    printf("{\"seconds\": %.6f, \"events\": %" PRIu64 ", \"peak_rss_bytes\": %" PRIu64 "}\n", best, events, peak_rss_bytes());
    return 0;
}
