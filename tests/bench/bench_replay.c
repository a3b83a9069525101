// bench_replay.c: measures a replay: undoing the history, building the start, running, comparing. Reading is not included.
// usage: bench_replay RECORDING...      nanoseconds per event (plain files; with few events mostly the fixed cost of a run)
//        bench_replay made [NAME...]    nanoseconds of CPU time per event, of recordings made here; NAME: only these
//        bench_replay tune [NAME...]    the search of settings for them, seconds of CPU time
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/driver.h"
#include "vram/recordings.h"
#include "vram/sim.h"
#include "vram/vram.h"

enum { REPEATS = 15 };
#define MIB ((uint64_t)1 << 20)

static double now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void need(enum vram_status status, const char *what) {
    if (status == VRAM_OK) return;
    fprintf(stderr, "bench_replay: %s: %s\n", what, vram_status_text(status));
    exit(4);
}

static void run_exact(const struct vram_recording *recording, bool must_agree) {
    struct vram_exact_result *result = NULL;
    need(vram_replay_exact(recording, NULL, &result, NULL), "exact replay");
    if (must_agree && !result->agrees) need(VRAM_MISMATCH, "exact replay");
    vram_exact_result_destroy(result);
}

static void run_whatif(const struct vram_recording *recording, const char *conf) {
    const struct vram_whatif_options options = {.conf = conf};
    struct vram_whatif_result *result = NULL;
    need(vram_replay_whatif(recording, &options, &result, NULL), "what-if replay");
    vram_whatif_result_destroy(result);
}

// Stops after two seconds of each.
static void measure(const struct vram_recording *recording, const char *name, clockid_t clock, bool made) {
    static const char *const confs[] = {"", "expandable_segments:True"};
    double least[3] = {1e300, 1e300, 1e300}, all = 0;
    for (int repeat = 0; repeat < REPEATS && all < 6e9; repeat++) {
        for (int way = 0; way < 3; way++) {
            const double start = now_ns(clock);
            if (way == 0) {
                run_exact(recording, made);
            } else {
                run_whatif(recording, confs[way - 1]);
            }
            const double spent = now_ns(clock) - start;
            if (spent < least[way]) least[way] = spent;
            all += spent;
        }
    }
    const double events = (double)vram_recording_event_count(recording, VRAM_ALL_DEVICES);
    printf("%9.0f %10.0f %10.0f %10.0f   %s\n", events, least[0] / events, least[1] / events, least[2] / events, name);
}

// --- made recordings ------------------------------------------------------------------------------------------------------------
struct program {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    uint64_t *streams;
    uint64_t *live; // addresses
};

static uint64_t take(struct program *program, uint64_t bytes, uint64_t stream) {
    uint64_t address = 0;
    need(vram_malloc(program->allocator, 0, bytes, stream, &address), "vram_malloc");
    return address;
}

static void give(struct program *program, uint64_t address) { need(vram_free(program->allocator, address), "vram_free"); }

static void record(struct program *program) {
    const struct vram_history_options options = {.context = VRAM_HISTORY_NONE, .max_entries = 1 << 22};
    need(vram_history_start(program->allocator, &options, NULL), "history");
}

static void make_streams(struct program *program, size_t count) {
    uint64_t context = 0;
    program->streams = calloc(count, sizeof *program->streams);
    if (vr_cu(program->driver, primary_ctx_retain, &context, 0) != VR_CU_SUCCESS ||
        vr_cu(program->driver, ctx_set_current, context) != VR_CU_SUCCESS)
        need(VRAM_DRIVER, "context");
    for (size_t i = 1; i < count; i++) {
        if (vr_cu(program->driver, stream_create, &program->streams[i], VR_CU_STREAM_NON_BLOCKING) != VR_CU_SUCCESS)
            need(VRAM_DRIVER, "stream");
    }
}

// Uses the streams in turn, at the device's peak: after every free, the next stream makes a request.
static void streams_in_turn(struct program *program, size_t streams, size_t requests) {
    const size_t window = streams / 2;
    make_streams(program, streams);
    program->live = calloc(requests, sizeof *program->live);
    record(program);
    for (size_t i = 0; i < requests; i++) {
        if (i >= window) give(program, program->live[i - window]);
        program->live[i] = take(program, (1 + i % 3) * MIB / 2, program->streams[i % streams]);
    }
}

static void hundred_streams(struct program *program) { streams_in_turn(program, 100, 70000); }
static void many_streams(struct program *program) { streams_in_turn(program, 5000, 7500); }

// Blocks live from the start, with a few events among them.
static void live_blocks(struct program *program, uint64_t bytes) {
    enum { LIVE = 100000, CHANGES = 6600 };
    program->live = calloc(LIVE, sizeof *program->live);
    for (size_t i = 0; i < LIVE; i++) program->live[i] = take(program, bytes + i % 7 * 512, 0);
    record(program);
    for (size_t i = 0; i < CHANGES; i++) {
        const size_t at = i * 7919 % LIVE;
        give(program, program->live[at]);
        program->live[at] = take(program, bytes + (i + 3) % 7 * 512, 0);
    }
}

static void large_blocks(struct program *program) { live_blocks(program, 3 * MIB); }
static void small_blocks(struct program *program) { live_blocks(program, 2048); }

// Blocks live from the first event, each in its own segment.
static void segments(struct program *program) {
    enum { LIVE = 100000, CHANGES = 50000 };
    program->live = calloc(LIVE, sizeof *program->live);
    record(program);
    for (size_t i = 0; i < LIVE; i++) program->live[i] = take(program, (20 + i % 7) * MIB, 0);
    for (size_t i = 0; i < CHANGES; i++) {
        const size_t at = i * 7919 % LIVE;
        give(program, program->live[at]);
        program->live[at] = take(program, (20 + (at + 7 - i % 2) % 7) * MIB, 0);
    }
}

// Requests on a full device that no free block serves: each releases the largest free block.
static void releases(struct program *program) {
    enum { SEGMENTS = 15000, REQUESTS = 4000 };
    program->live = calloc(SEGMENTS, sizeof *program->live);
    for (size_t i = 0; i < SEGMENTS; i++) program->live[i] = take(program, 30 * MIB + i % 8 * 2 * MIB, 0);
    need(vram_sim_set_memory(program->driver, 0, vram_sim_memory_used(program->driver, 0) + MIB), "memory");
    record(program);
    for (size_t i = 0; i < SEGMENTS; i++) give(program, program->live[i]);
    for (size_t i = 0; i < REQUESTS; i++) (void)take(program, 46 * MIB, 0);
}

static const struct workload {
    const char *name;
    void (*run)(struct program *program);
    const char *conf;
} workloads[] = {
    {"100 streams", hundred_streams, ""},
    {"5,000 streams", many_streams, ""},
    {"100,000 large", large_blocks, ""},
    {"100,000 small", small_blocks, ""},
    {"100,000 segments", segments, ""},
    {"releases (max_split_size)", releases, "max_split_size_mb:24"},
    {"releases (collection)", releases, "max_split_size_mb:24,garbage_collection_threshold:0.9"},
};

static struct vram_recording *make(const struct workload *workload) {
    struct program program = {0};
    struct vram_recording *recording = NULL;
    need(vram_sim_create(&(struct vram_sim_options){.profile = VRAM_SIM_FREE, .memory_bytes = (uint64_t)1 << 43}, &program.driver), "sim");
    const struct vram_create_info info = {.driver = program.driver, .conf = workload->conf, .ignore_environment = true};
    need(vram_create(&info, &program.allocator, NULL), "allocator");
    workload->run(&program);
    need(vram_snapshot(program.allocator, NULL, &recording, NULL), "snapshot");
    vram_destroy(program.allocator);
    vram_driver_destroy(program.driver);
    free(program.streams);
    free(program.live);
    return recording;
}

static void measure_tune(const struct vram_recording *recording, const char *name) {
    const struct vram_recording *const one = recording;
    struct vram_tune_result *result = NULL;
    const double start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    need(vram_tune(&one, 1, NULL, &result, NULL), "tune");
    printf("%9.2f s of CPU time, %4llu replays of %zu settings   %s\n", (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / 1e9,
           (unsigned long long)result->runs, result->setting_count, name);
    vram_tune_result_destroy(result);
}

static bool named(const char *name, char **names, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return count == 0;
}

static void measure_made(bool tune, char **names, int count) {
    for (size_t i = 0; i < VR_COUNT_OF(workloads); i++) {
        if (!named(workloads[i].name, names, count)) continue;
        struct vram_recording *recording = make(&workloads[i]);
        if (tune) {
            measure_tune(recording, workloads[i].name);
        } else {
            measure(recording, workloads[i].name, CLOCK_PROCESS_CPUTIME_ID, true);
        }
        vram_recording_destroy(recording);
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv) {
    const bool made = argc > 1 && strcmp(argv[1], "made") == 0, tune = argc > 1 && strcmp(argv[1], "tune") == 0;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_replay RECORDING... | made [NAME...] | tune [NAME...]\n");
        return 2;
    }
    if (!tune) printf("%9s %10s %10s %10s   ns per event, least of %d at most\n", "events", "exact", "default", "expandable", REPEATS);
    if (made || tune) {
        measure_made(tune, argv + 2, argc - 2);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        struct vram_recording *recording = NULL;
        struct vram_error error;
        if (vram_recording_read_file(argv[i], &recording, &error) != VRAM_OK) {
            fprintf(stderr, "%s: %s\n", argv[i], error.message);
            return 3;
        }
        if (vram_recording_event_count(recording, VRAM_ALL_DEVICES) > 0) measure(recording, argv[i], CLOCK_MONOTONIC, false);
        vram_recording_destroy(recording);
    }
    return 0;
}
