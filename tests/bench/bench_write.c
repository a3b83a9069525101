// Measures writing a recording: bench_write FILE [pickle|json] [RUNS]. Prints the shortest run, as JSON. bench_write.py compares with
// CPython, which pickles the same dictionary.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vram/export.h"

static double now_s(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Writes into an in-memory file, as CPython does.
static bool write_to_file(void *user, const char *bytes, size_t length) { return fwrite(bytes, 1, length, user) == length; }

int main(int argc, char **argv) {
    struct vram_recording *recording;
    struct vram_error error;
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: bench_write FILE [pickle|json] [RUNS]\n");
        return 2;
    }
    const enum vram_recording_format format = argc > 2 && strcmp(argv[2], "json") == 0 ? VRAM_FORMAT_JSON : VRAM_FORMAT_PICKLE;
    enum vram_status status = vram_recording_read_file(argv[1], &recording, &error);
    double best = 1e300;
    long bytes = 0;
    for (int i = 0; status == VRAM_OK && i < (argc > 3 ? atoi(argv[3]) : 3); i++) {
        FILE *file = tmpfile();
        if (file == NULL) return 3;
        (void)setvbuf(file, NULL, _IONBF, 0);
        const double begin = now_s();
        status = vram_recording_write(recording, format, write_to_file, file, &error);
        const double elapsed = now_s() - begin;
        if (elapsed < best) best = elapsed;
        bytes = ftell(file);
        (void)fclose(file);
    }
    if (status != VRAM_OK) {
        fprintf(stderr, "%s\n", error.message);
        return status == VRAM_OK ? 0 : 3;
    }
    printf("{\"seconds\": %.6f, \"bytes\": %ld, \"events\": %" PRIu64 "}\n", best, bytes,
           vram_recording_event_count(recording, VRAM_ALL_DEVICES));
    vram_recording_destroy(recording);
    return 0;
}
