// bench_capacity.c: measures the smallest device on which each recorded history completes, divided by the least that any allocator needs
// (the peak of active bytes, each block rounded to 512, the sum rounded up to 2 MiB).
// usage: bench_capacity [--passes N] [--repeat | --calls | --time | --fragmentation | --cold] [--only SETTING]... RECORDING...
//   --passes N       repeats each history N times (default 1; with --time 30)
//   --time           instead: CPU time of a served pair, in the quickest pass; the settings take turns, ten each
//   --repeat         instead: driver calls per pass, with 6 passes in 1.01 times the bound, of histories with a bound of at least 1 GiB
//   --calls          the same on a large device, of all histories: of the first pass, of the second, and of the others together
//   --fragmentation  instead: the peak of reserved bytes minus that of allocated bytes, on a large device: as a share of the reserved bytes
//                    (the measure of STAlloc, arXiv 2507.16274: 1 - allocated / reserved), and the saving over the default
//   --cold           instead: milliseconds of the simulated driver's time for one history without a cache, on a large device, at cheap
//                    and at dear prices: of the requesting thread, and of all threads
//   --only SETTING   only this setting and the default (default: only the default)
// The setting "ahead" is paged:True,grow_ahead:True. Between two requests its thread does all its work, as if the program computed for
// longer than that takes.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/allocator.h"
#include "core/device.h"
#include "core/source/paged.h"
#include "driver/driver.h"
#include "replay/script.h"
#include "vram/driver.h"
#include "vram/recordings.h"
#include "vram/sim.h"
#include "vram/vram.h"

enum { PASSES = 6, PASSES_TIMED = 30, TURNS = 10, MOST_PASSES = 1000, SETTINGS = 5, MOST = 256 };

static const char *const confs[SETTINGS] = {"", "expandable_segments:True", "max_split_size_mb:128", "paged:True",
                                            "paged:True,grow_ahead:True"};
static const char *const names[SETTINGS] = {"default", "expandable", "max_split", "paged", "ahead"};
static bool skipped[SETTINGS];

// One device's history as operations: requests and frees of numbered allocations, releases.
struct operation {
    uint32_t name;
    uint64_t size_bytes; // 0: a free; UINT64_MAX: releases the cache
    uint32_t stream;     // index
};

struct job {
    const char *file;
    uint32_t device;
    struct operation *start, *pass;
    size_t start_count, pass_count, pass_capacity;
    size_t name_count;
    uint64_t streams[64];
    uint32_t stream_count;
    uint64_t peak; // of active bytes
    uint64_t bound;
    uint64_t *ours; // addresses during the replay
    unsigned char *is_live;
};

static void *check(void *memory) {
    if (memory != NULL) return memory;
    fprintf(stderr, "no memory\n");
    exit(1);
}

// --- reading ----------------------------------------------------------------------------------------------------------------------------

static uint32_t stream_index(struct job *job, uint64_t stream) {
    for (uint32_t i = 0; i < job->stream_count; i++)
        if (job->streams[i] == stream) return i;
    if (job->stream_count == 64) return 0;
    job->streams[job->stream_count] = stream;
    return job->stream_count++;
}

static void push(struct job *job, uint32_t name, uint64_t size_bytes, uint32_t stream) {
    if (job->pass_count == job->pass_capacity) {
        job->pass_capacity = job->pass_capacity * 2 + 1024;
        job->pass = check(realloc(job->pass, job->pass_capacity * sizeof *job->pass));
    }
    job->pass[job->pass_count++] = (struct operation){name, size_bytes, stream};
}

static uint64_t rounded(uint64_t size_bytes) { return size_bytes == 0 ? 0 : (size_bytes + 511) / 512 * 512; }

static void find_bound(struct job *job) {
    uint64_t *sizes = check(calloc(job->name_count + 1, sizeof *sizes)), live = 0, peak = 0;
    for (size_t i = 0; i < job->start_count; i++) live += sizes[job->start[i].name] = rounded(job->start[i].size_bytes);
    peak = live;
    for (size_t i = 0; i < job->pass_count; i++) {
        const struct operation *op = &job->pass[i];
        if (op->size_bytes == UINT64_MAX) continue;
        live -= sizes[op->name];
        sizes[op->name] = rounded(op->size_bytes);
        live += sizes[op->name];
        if (live > peak) peak = live;
    }
    job->peak = peak;
    job->bound = (peak + 2 * VR_MIB - 1) / (2 * VR_MIB) * (2 * VR_MIB);
    free(sizes);
}

// The differences between the start and the end of a pass are part of the operations: see prepare_passes().
static bool make_job(const struct vr_script_device *device, const char *file, bool releases, struct job *job) {
    const struct vr_history *history = device->recorded.history;
    *job = (struct job){.file = file, .device = device->recorded.device, .name_count = device->name_count};
    if (device->start.anomaly_total > 0 || history->count < 2) return false;
    job->start = check(calloc(device->start.block_count + 1, sizeof *job->start));
    for (size_t i = 0; i < device->start.block_count; i++) {
        const struct vr_start_block *block = &device->start.blocks[i];
        if (block->requested == 0) continue;
        job->start[job->start_count++] =
            (struct operation){(uint32_t)i, block->requested, stream_index(job, device->start.segments[block->segment].stream)};
    }
    bool in_releases = false;
    for (size_t i = 0; i < history->count; i++) {
        const enum vr_step step = device->steps[i];
        if (step == VR_STEP_ALLOC) push(job, device->names[i], history->size_bytes[i], stream_index(job, vr_entry_stream(history, i)));
        if (step == VR_STEP_FREE || step == VR_STEP_FREE_COMPLETED) push(job, device->names[i], 0, 0);
        if (step == VR_STEP_RELEASE && !in_releases && releases) push(job, 0, UINT64_MAX, 0);
        if (step != VR_STEP_NOTHING) in_releases = step == VR_STEP_RELEASE;
    }
    find_bound(job);
    job->ours = check(calloc(job->name_count + 1, sizeof *job->ours));
    job->is_live = check(calloc(job->name_count + 1, 1));
    return job->pass_count != 0 && job->bound != 0;
}

static void release_job(struct job *job) {
    free(job->start);
    free(job->pass);
    free(job->ours);
    free(job->is_live);
}

// --- playing ----------------------------------------------------------------------------------------------------------------------------

struct play {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    uint64_t streams[64];
    bool steps;        // the setting grows ahead
    uint64_t ahead_ns; // of the simulated driver's time
};

static uint64_t driver_time(struct vram_driver *driver) {
    uint64_t sum = 0, cost = 0;
    for (uint32_t i = 0; vram_sim_call_at(driver, i, NULL, NULL, &cost); i++) sum += cost;
    return sum;
}

// Does what the thread of grow_ahead would do meanwhile.
static void work_ahead(struct play *play) {
    struct vr_device *device = vr_device_if_used(play->allocator, 0);
    if (device == NULL || !device->options.grow_ahead) return;
    const uint64_t before_ns = driver_time(play->driver);
    while (vr_paged_ahead_step(device)) continue;
    play->ahead_ns += driver_time(play->driver) - before_ns;
}

static enum vram_sim_profile prices; // of the simulated driver

static bool open_play(const struct job *job, const char *conf, uint64_t memory_bytes, struct play *play) {
    const struct vram_sim_options sim = {.memory_bytes = (uint64_t)1 << 40, .profile = prices};
    *play = (struct play){.steps = strstr(conf, "grow_ahead") != NULL};
    if (vram_sim_create(&sim, &play->driver) != VRAM_OK) return false;
    uint64_t context = 0;
    for (uint32_t i = 0; i < job->stream_count; i++) {
        if (job->streams[i] == 0) continue;
        if (context == 0 && vr_cu(play->driver, primary_ctx_retain, &context, 0) != VR_CU_SUCCESS) return false;
        if (vr_cu(play->driver, ctx_set_current, context) != VR_CU_SUCCESS) return false;
        if (vr_cu(play->driver, stream_create, &play->streams[i], VR_CU_STREAM_NON_BLOCKING) != VR_CU_SUCCESS) return false;
    }
    const struct vram_create_info info = {.driver = play->driver, .conf = conf, .ignore_environment = true};
    if (vr_allocator_create(&info, &play->allocator, NULL) != VRAM_OK) return false;
    vr_allocator_without_threads(play->allocator);
    // Set the device up while its memory is large, so that address space is not the limit.
    if (vram_set_memory_limit(play->allocator, 0, UINT64_MAX) != VRAM_OK) return false;
    return vram_sim_set_memory(play->driver, 0, memory_bytes) == VRAM_OK;
}

static void close_play(struct play *play) {
    if (play->allocator != NULL) vr_allocator_destroy(play->allocator);
    vram_driver_destroy(play->driver);
}

static bool do_operation(struct job *job, struct play *play, const struct operation *op) {
    if (op->size_bytes == UINT64_MAX) return vram_empty_cache_device(play->allocator, 0) == VRAM_OK;
    if (op->size_bytes == 0) {
        const uint64_t address = job->ours[op->name];
        job->ours[op->name] = 0;
        return address == 0 || vram_free(play->allocator, address) == VRAM_OK;
    }
    if (vram_malloc(play->allocator, 0, op->size_bytes, play->streams[op->stream], &job->ours[op->name]) != VRAM_OK) return false;
    if (play->steps) work_ahead(play);
    return true;
}

// Frees what the history allocated, and reallocates the initial blocks that it freed.
static bool rewind_job(struct job *job, struct play *play) {
    memset(job->is_live, 0, job->name_count + 1);
    for (size_t i = 0; i < job->start_count; i++) job->is_live[job->start[i].name] = 1;
    for (size_t i = 0; i < job->pass_count; i++)
        if (job->pass[i].size_bytes != UINT64_MAX) job->is_live[job->pass[i].name] = 2; // used by the pass
    for (size_t name = 0; name < job->name_count; name++) {
        if (job->is_live[name] != 2 || job->ours[name] == 0) continue;
        if (vram_free(play->allocator, job->ours[name]) != VRAM_OK) return false;
        job->ours[name] = 0;
    }
    for (size_t i = 0; i < job->start_count; i++)
        if (job->ours[job->start[i].name] == 0 && !do_operation(job, play, &job->start[i])) return false;
    return true;
}

static uint64_t count_calls(struct vram_driver *driver) {
    static const char *const calls[] = {"cuMemAlloc", "cuMemFree",  "cuMemCreate",   "cuMemRelease",
                                        "cuMemMap",   "cuMemUnmap", "cuMemSetAccess"};
    uint64_t sum = 0, count = 0, cost = 0;
    const char *name = NULL;
    for (uint32_t i = 0; vram_sim_call_at(driver, i, &name, &count, &cost); i++)
        for (size_t k = 0; k < VR_COUNT_OF(calls); k++) sum += strcmp(name, calls[k]) == 0 ? count : 0;
    return sum;
}

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

// The cost of a completed job.
struct taken {
    uint64_t calls[MOST_PASSES];  // of each pass
    double least_ns;              // of a pass
    uint64_t reserved;            // at the peak
    uint64_t driver_ns, ahead_ns; // the simulated driver's time, and the part for growth ahead
};

static uint64_t reserved_at_peak(const struct play *play) {
    struct vram_stats stats;
    return vram_get_stats(play->allocator, 0, &stats) == VRAM_OK ? (uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].peak : 0;
}

// Returns whether the passes complete.
static bool play_job(struct job *job, const char *conf, uint64_t memory_bytes, unsigned passes, struct taken *taken) {
    struct play play;
    memset(job->ours, 0, (job->name_count + 1) * sizeof *job->ours);
    bool complete = open_play(job, conf, memory_bytes, &play);
    uint64_t before = 0;
    const uint64_t opened_ns = complete ? driver_time(play.driver) : 0;
    for (size_t i = 0; i < job->start_count && complete; i++) complete = do_operation(job, &play, &job->start[i]);
    for (unsigned pass = 0; pass < passes && complete; pass++) {
        if (pass != 0) complete = rewind_job(job, &play);
        const double start_ns = now_ns();
        for (size_t i = 0; i < job->pass_count && complete; i++) complete = do_operation(job, &play, &job->pass[i]);
        const double spent_ns = now_ns() - start_ns;
        if (pass == 0 || spent_ns < taken->least_ns) taken->least_ns = spent_ns;
        const uint64_t now = count_calls(play.driver);
        taken->calls[pass] = now - before;
        before = now;
    }
    if (complete) taken->driver_ns = driver_time(play.driver) - opened_ns;
    taken->ahead_ns = play.ahead_ns;
    if (complete) taken->reserved = reserved_at_peak(&play);
    close_play(&play);
    return complete;
}

static uint64_t capacity_of(struct job *job, const char *conf, unsigned passes) {
    struct taken taken;
    const uint64_t step = 2 * VR_MIB;
    uint64_t low = job->bound / step - 1, high = job->bound / step; // low fails, high completes
    for (uint64_t more = 1; !play_job(job, conf, high * step, passes, &taken); more *= 2) {
        low = high;
        high += more;
        if (high * step > (uint64_t)1 << 40) return 0;
    }
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (play_job(job, conf, middle * step, passes, &taken)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high * step;
}

// --- printing ---------------------------------------------------------------------------------------------------------------------------

struct sums {
    double ratio[SETTINGS][MOST];
    double large[SETTINGS][MOST]; // of bounds from 4 GiB on
    uint64_t lost[SETTINGS];      // reserved but not live, over all histories
    double cold_ms[2][SETTINGS];  // by prices, of all threads
    double asked_ms[2][SETTINGS]; // of the requesting thread
    size_t count, large_count;
    unsigned complete[SETTINGS], jobs;
    uint64_t calls[SETTINGS][PASSES];
};

enum mode { CAPACITY, REPEAT, CALLS, TIME, FRAGMENTATION, COLD };

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, double *values, size_t count) {
    if (count == 0) return;
    qsort(values, count, sizeof *values, ascending);
    const size_t p90 = (count * 9 + 9) / 10 - 1;
    printf("%-24s n %2zu  median %.4f  90%% %.4f  largest %.4f\n", what, count, values[count / 2], values[p90], values[count - 1]);
}

static void note(struct sums *sums, int setting, double value) {
    sums->ratio[setting][sums->count] = value;
    sums->large[setting][sums->large_count] = value;
    fflush(stdout);
}

static void measure(struct job *job, unsigned passes, struct sums *sums) {
    printf("%9.0f MiB", (double)job->bound / (double)VR_MIB);
    for (int s = 0; s < SETTINGS; s++) {
        if (skipped[s]) continue;
        const double ratio = (double)capacity_of(job, confs[s], passes) / (double)job->bound;
        printf(" %10.4f", ratio);
        note(sums, s, ratio);
    }
    sums->count++;
    sums->large_count += job->bound >= 4 * VR_GIB;
    printf("   %s device %u\n", job->file, job->device);
}

static void repeat(struct job *job, bool is_large, struct sums *sums) {
    if (job->bound < VR_GIB && !is_large) return;
    const uint64_t memory = is_large ? (uint64_t)1 << 40 : (uint64_t)((double)job->bound * 1.01);
    sums->jobs++;
    printf("%9.0f MiB", (double)job->bound / (double)VR_MIB);
    for (int s = 0; s < SETTINGS; s++) {
        if (skipped[s]) continue;
        struct taken taken = {0};
        const bool complete = play_job(job, confs[s], memory, PASSES, &taken);
        const uint64_t *calls = taken.calls;
        sums->complete[s] += complete;
        for (int p = 0; p < PASSES && complete; p++) sums->calls[s][p] += calls[p];
        if (complete) {
            if (is_large) printf(" %10" PRIu64 " %10" PRIu64, calls[0], calls[1]);
            printf(" %10" PRIu64, calls[2] + calls[3] + calls[4] + calls[5]);
        } else {
            printf(" %10s", "-");
        }
    }
    printf("   %s device %u\n", job->file, job->device);
    fflush(stdout);
}

static void time_pairs(struct job *job, unsigned passes, struct sums *sums) {
    size_t pairs = 0;
    for (size_t i = 0; i < job->pass_count; i++) pairs += job->pass[i].size_bytes != 0 && job->pass[i].size_bytes != UINT64_MAX;
    if (pairs < 200) return;
    double least_ns[SETTINGS] = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        for (int s = 0; s < SETTINGS; s++) {
            struct taken taken = {0};
            if (skipped[s]) continue;
            if (!play_job(job, confs[s], (uint64_t)1 << 40, passes / TURNS + 1, &taken)) return;
            if (turn == 0 || taken.least_ns < least_ns[s]) least_ns[s] = taken.least_ns;
        }
    }
    printf("%9.0f MiB", (double)job->bound / (double)VR_MIB);
    for (int s = 0; s < SETTINGS; s++) {
        if (skipped[s]) continue;
        printf(" %10.1f", least_ns[s] / (double)pairs);
        note(sums, s, least_ns[s] / least_ns[0]);
    }
    sums->count++;
    sums->large_count += job->bound >= 4 * VR_GIB;
    printf("   %s device %u\n", job->file, job->device);
    fflush(stdout);
}

// Prints the loss as a share of reserved bytes; the sums are in bytes.
static void fragment(struct job *job, struct sums *sums) {
    printf("%9.0f MiB", (double)job->bound / (double)VR_MIB);
    for (int s = 0; s < SETTINGS; s++) {
        if (skipped[s]) continue;
        struct taken taken = {0};
        if (!play_job(job, confs[s], (uint64_t)1 << 40, 1, &taken)) return;
        const uint64_t lost = taken.reserved - job->peak;
        sums->lost[s] += lost;
        printf(" %9.2f%%", 100 * (double)lost / (double)taken.reserved);
        note(sums, s, 100 * (double)lost / (double)taken.reserved);
    }
    sums->count++;
    sums->large_count += job->bound >= 4 * VR_GIB;
    printf("   %s device %u\n", job->file, job->device);
}

static void cold(struct job *job, struct sums *sums) {
    printf("%9.0f MiB", (double)job->bound / (double)VR_MIB);
    for (prices = VRAM_SIM_CHEAP; prices <= VRAM_SIM_DEAR; prices++) {
        for (int s = 0; s < SETTINGS; s++) {
            if (skipped[s]) continue;
            struct taken taken = {0};
            if (!play_job(job, confs[s], (uint64_t)1 << 40, 1, &taken)) return;
            const double all_ms = (double)taken.driver_ns / 1e6, asked_ms = all_ms - (double)taken.ahead_ns / 1e6;
            printf(" %10.2f", asked_ms);
            sums->cold_ms[prices][s] += all_ms;
            sums->asked_ms[prices][s] += asked_ms;
        }
    }
    printf("   %s device %u\n", job->file, job->device);
}

static int play_file(const char *file, unsigned passes, enum mode mode, struct sums *sums) {
    struct vram_recording *recording = NULL;
    struct vram_error error;
    struct vr_script script;
    if (vram_recording_read_file(file, &recording, &error) != VRAM_OK) {
        fprintf(stderr, "%s: %s\n", file, error.message);
        return 3;
    }
    if (vr_script_init(&script, recording, false, 0, &error) == VRAM_OK) {
        for (size_t i = 0; i < script.device_count && sums->count < MOST; i++) {
            struct job job;
            if (make_job(&script.devices[i], file, mode != REPEAT && mode != CALLS && mode != TIME, &job)) {
                switch (mode) {
                case CAPACITY: measure(&job, passes, sums); break;
                case REPEAT:
                case CALLS: repeat(&job, mode == CALLS, sums); break;
                case TIME: time_pairs(&job, passes == 1 ? PASSES_TIMED : passes, sums); break;
                case FRAGMENTATION: fragment(&job, sums); break;
                case COLD: cold(&job, sums); break;
                }
            }
            release_job(&job);
        }
        vr_script_release(&script);
    }
    vram_recording_destroy(recording);
    return 0;
}

static void tell_calls(const struct sums *sums, int s) {
    printf("%-12s %u of %u complete; calls per pass:", names[s], sums->complete[s], sums->jobs);
    for (int p = 0; p < PASSES; p++) printf(" %" PRIu64, sums->calls[s][p]);
    printf("\n");
}

static void tell_cold(const struct sums *sums, int s) {
    printf("%-12s", names[s]);
    for (int p = 0; p < 2 && skipped[1]; p++)
        printf("%s %10.2f ms, of all threads %10.2f", p == 0 ? " cheap" : ";  dear", sums->asked_ms[p][s], sums->cold_ms[p][s]);
    for (int p = 0; p < 2 && !skipped[1]; p++)
        printf("%s %10.2f ms, of all threads %10.2f: %.2f and %.2f times expandable's", p == 0 ? " cheap" : ";  dear", sums->asked_ms[p][s],
               sums->cold_ms[p][s], sums->asked_ms[p][s] / sums->cold_ms[p][1], sums->cold_ms[p][s] / sums->cold_ms[p][1]);
    printf("\n");
}

static void tell_all(struct sums *sums, enum mode mode) {
    for (int s = 0; s < SETTINGS; s++) {
        char what[64];
        if (skipped[s]) continue;
        if (mode == REPEAT || mode == CALLS) {
            tell_calls(sums, s);
            continue;
        }
        if (mode == COLD) {
            tell_cold(sums, s);
            continue;
        }
        tell(names[s], sums->ratio[s], sums->count);
        snprintf(what, sizeof what, "%s, from 4 GiB", names[s]);
        tell(what, sums->large[s], sums->large_count);
        if (mode != FRAGMENTATION) continue;
        printf("%-24s %10.1f MiB in all, %.2f %% less than by default\n", "", (double)sums->lost[s] / (double)VR_MIB,
               100 * (1 - (double)sums->lost[s] / (double)sums->lost[0]));
    }
}

static bool skip_all_but(const char *name) {
    static bool any;
    bool known = false;
    for (int s = 0; s < SETTINGS; s++) {
        if (!any && s != 0) skipped[s] = true;
        if (strcmp(names[s], name) != 0) continue;
        skipped[s] = false;
        known = true;
    }
    any = true;
    return known;
}

// Returns the index of the first recording; 0 if the arguments are wrong.
static int read_options(int argc, char **argv, unsigned *passes, enum mode *mode) {
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        const bool has_value = at + 1 < argc;
        if (strcmp(argv[at], "--repeat") == 0) {
            *mode = REPEAT;
        } else if (strcmp(argv[at], "--calls") == 0) {
            *mode = CALLS;
        } else if (strcmp(argv[at], "--time") == 0) {
            *mode = TIME;
        } else if (strcmp(argv[at], "--fragmentation") == 0) {
            *mode = FRAGMENTATION;
        } else if (strcmp(argv[at], "--cold") == 0) {
            *mode = COLD;
        } else if (strcmp(argv[at], "--passes") == 0 && has_value) {
            *passes = (unsigned)strtoul(argv[++at], NULL, 10);
        } else if (strcmp(argv[at], "--only") != 0 || !has_value || !skip_all_but(argv[++at])) {
            return 0;
        }
    }
    return *passes == 0 || *passes > MOST_PASSES || at == argc ? 0 : at;
}

int main(int argc, char **argv) {
    static const char *const heads[] = {"bound", "calls 3 to 6", "calls", "ns per pair", "not alive", "ms, 2 prices"};
    static struct sums sums;
    unsigned passes = 1;
    enum mode mode = CAPACITY;
    int at = read_options(argc, argv, &passes, &mode);
    if (at == 0) {
        fprintf(stderr, "usage: bench_capacity [--passes N] [--repeat | --calls | --time | --fragmentation | --cold] [--only SETTING]... "
                        "RECORDING...\n");
        return 2;
    }
    skipped[SETTINGS - 1] |= mode == TIME; // its pairs equal those of paged:True, and its work would interfere
    printf("%13s", heads[mode]);
    for (int s = 0; s < SETTINGS; s++)
        if (!skipped[s]) printf(" %10s", names[s]);
    printf("\n");
    for (; at < argc; at++) {
        const int failed = play_file(argv[at], passes, mode, &sums);
        if (failed != 0) return failed;
    }
    tell_all(&sums, mode);
    return 0;
}
