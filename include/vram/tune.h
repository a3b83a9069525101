// vram/tune.h: which settings would have let a recorded program run in the least memory.
//
// Every candidate setting is replayed on the simulated driver, with the smallest memory in which it completes found by bisection. What a
// replay cannot know: memory outside the allocator, and what a program would do differently when its requests take longer or fail.
#ifndef VRAM_TUNE_H
#define VRAM_TUNE_H

#include "vram/replay.h"

#ifdef __cplusplus
extern "C" {
#endif

// All-zero means every default.
struct vram_tune_options {
    uint64_t memory_bytes; // of each device: the question is then what fits in it; 0: what needs the least
    unsigned threads;      // that replay; 0: one per processor
    enum vram_whatif_start start;
    enum vram_sim_profile profile;
    void (*progress)(uint64_t done, uint64_t total, void *user); // after each candidate, on any thread, one call at a time; NULL: none
    void *user;
};

// What a setting comes to, over all recordings and devices: of sizes the largest, of calls and times the sum.
struct vram_tune_setting {
    char *conf;                   // option string; "" are the defaults
    bool today;                   // what the recording says was in force (conf is the first recording's)
    bool fits;                    // completes with memory_bytes; true when none were given
    bool fits_with_room;          // would complete with a sixteenth less of it
    uint64_t needed_bytes;        // smallest memory per device in which it completes, to 1/1024 or 2 MiB; 0: not found
    uint64_t peak_active_bytes;   // with memory to spare: what was live, as blocks
    uint64_t peak_reserved_bytes; // with memory to spare: what was held
    uint64_t driver_calls;        // that get memory or give it back: with memory_bytes, or with memory to spare
    uint64_t driver_time_ns;      // of these runs, on the simulator's clock
    uint64_t retries;             // of these runs: releases of the whole cache because nothing fitted
};

#define VRAM_TUNE_NONE SIZE_MAX

struct vram_tune_result {
    struct vram_tune_setting *settings; // in the order in which they were tried: today's first, then the defaults
    size_t setting_count;
    size_t best;             // needs the least (of those that fit with room: the one with the least driver time)
    size_t cheaper;          // needs at most 1 % more than the best and at least a tenth less driver time; VRAM_TUNE_NONE: no such
    uint64_t memory_bytes;   // of the options
    uint64_t runs;           // replays made
    uint64_t devices;        // whose history was replayed
    uint64_t contradictions; // devices whose history cannot be replayed; they were left out
};

// Tries settings on the recordings (ranks of one job, say: one setting for all). options may be NULL. *result is given to the caller.
// BAD_INPUT when no device of any recording has a history that can be replayed; NO_HOST_MEMORY, and what vram_replay_whatif() gives.
VRAM_API VRAM_NODISCARD enum vram_status vram_tune(const struct vram_recording *const *recordings, size_t count,
                                                   const struct vram_tune_options *options, struct vram_tune_result **result,
                                                   struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_tune_result_destroy(struct vram_tune_result *result);
// As one JSON object / for people. Parameters and statuses as for vram_exact_json().
VRAM_API VRAM_NODISCARD enum vram_status vram_tune_json(const struct vram_tune_result *result, const char *file, vram_write write,
                                                        void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_tune_text(const struct vram_tune_result *result, const char *file,
                                                        const struct vram_style *style, vram_write write, void *user);

#ifdef __cplusplus
}
#endif
#endif
