// bench_replay.c: nanoseconds per event of a replay: undoing the history, building the start, running, comparing; not the reading.
// usage: bench_replay RECORDING...   (plain files; those with few events mostly show the fixed cost of a run)
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vram/recordings.h"
#include "vram/vram.h"

enum { REPEATS = 15 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void run_exact(const struct vram_recording *recording) {
    struct vram_exact_result *result = NULL;
    if (vram_replay_exact(recording, NULL, &result, NULL) != VRAM_OK) exit(1);
    vram_exact_result_destroy(result);
}

static void run_whatif(const struct vram_recording *recording, const char *conf) {
    const struct vram_whatif_options options = {.conf = conf};
    struct vram_whatif_result *result = NULL;
    if (vram_replay_whatif(recording, &options, &result, NULL) != VRAM_OK) exit(1);
    vram_whatif_result_destroy(result);
}

static void measure(const struct vram_recording *recording, const char *file) {
    static const char *const confs[] = {"", "expandable_segments:True"};
    double least[3] = {1e300, 1e300, 1e300};
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        for (int way = 0; way < 3; way++) {
            const double start = now_ns();
            if (way == 0) {
                run_exact(recording);
            } else {
                run_whatif(recording, confs[way - 1]);
            }
            const double spent = now_ns() - start;
            if (spent < least[way]) least[way] = spent;
        }
    }
    const double events = (double)vram_recording_event_count(recording, VRAM_ALL_DEVICES);
    printf("%9.0f %10.0f %10.0f %10.0f   %s\n", events, least[0] / events, least[1] / events, least[2] / events, file);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench_replay RECORDING...\n");
        return 2;
    }
    printf("%9s %10s %10s %10s   ns per event, least of %d\n", "events", "exact", "default", "expandable", REPEATS);
    for (int i = 1; i < argc; i++) {
        struct vram_recording *recording = NULL;
        struct vram_error error;
        if (vram_recording_read_file(argv[i], &recording, &error) != VRAM_OK) {
            fprintf(stderr, "%s: %s\n", argv[i], error.message);
            return 3;
        }
        if (vram_recording_event_count(recording, VRAM_ALL_DEVICES) > 0) measure(recording, argv[i]);
        vram_recording_destroy(recording);
    }
    return 0;
}
