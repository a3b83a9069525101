// vram/replay.h: a recorded history driven through the real allocator on the simulated driver.
//
// Two questions. vram_replay_exact(): does this allocator do, event by event and address by address, what the recorded program's
// allocator did? vram_replay_whatif(): what would the same program have needed with other settings or less memory? Results are
// plain data, given to the caller; a recording is only read. No function here keeps state: any thread, also at the same time.
#ifndef VRAM_REPLAY_H
#define VRAM_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/allocator.h"
#include "vram/driver.h"
#include "vram/sim.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

// --- exact ------------------------------------------------------------------------------------------------------------------
enum vram_exact_verdict {
    VRAM_EXACT_EQUAL,         // every allocation, segment event, release and the final picture agree
    VRAM_EXACT_NO_HISTORY,    // there is no event to replay; the final picture agrees
    VRAM_EXACT_PARTIAL,       // what was replayed agrees, but segments were left out that may be of any private pool
    VRAM_EXACT_DIFFERENT,     // something differs: see the differences
    VRAM_EXACT_CONTRADICTION, // the history cannot have led to the final picture: nothing was replayed, `reason` says why
    VRAM_EXACT_UNTOLD,        // it cannot be told: by the recorded settings it differs, but they were changed on the way, `reason` says how
};
// One word for programs ("equal", "no_history", ...). Never NULL.
VRAM_API const char *vram_exact_verdict_name(enum vram_exact_verdict verdict);

enum vram_difference_kind {
    VRAM_DIFFERENT_ADDRESS,     // another free block was chosen
    VRAM_DIFFERENT_CACHE_HIT,   // a cached block would have served, the recorded program asked the driver
    VRAM_DIFFERENT_CACHE_MISS,  // no cached block fits, the recorded program had one
    VRAM_DIFFERENT_SEGMENT,     // another segment (or range) was asked for
    VRAM_DIFFERENT_RELEASE,     // another segment (or range) was given back, or in another order
    VRAM_DIFFERENT_FREE,        // a free of something that is not live
    VRAM_DIFFERENT_OOM,         // the recorded program ran out of memory, this allocator would not have (or not so)
    VRAM_DIFFERENT_FINAL_BLOCK, // a block of the final picture
};
// One sentence without a full stop. Never NULL.
VRAM_API const char *vram_difference_text(enum vram_difference_kind kind);

struct vram_difference {
    enum vram_difference_kind kind;
    uint64_t event_index; // in the device's history; VRAM_NO_OFFSET for the final picture
    uint64_t stream;
    uint64_t size_bytes;       // of the recorded event or block
    uint64_t recorded_address; // 0: none
    uint64_t our_address;      // 0: none, or in a segment that the recording does not have
    uint64_t our_size_bytes;   // of segments and blocks; 0 otherwise
};

struct vram_placement {
    uint64_t event_index; // of an alloc event in the device's history
    uint64_t address;     // where this allocator put it; 0 where it found no cached block and the recording had one
};

// What became of one device's history.
struct vram_exact_device {
    uint32_t device;
    enum vram_exact_verdict verdict;
    char reason[512]; // why the history contradicts the picture, or what was left out; "" otherwise
    uint64_t events;
    uint64_t allocations; // alloc events replayed
    uint64_t at_recorded_address;
    uint64_t segment_events; // segment_alloc and segment_map
    uint64_t segment_events_agreeing;
    uint64_t releases; // segment_free and segment_unmap
    uint64_t releases_agreeing;
    uint64_t releases_as_recorded; // of these, done because recorded: garbage collection goes by ages that no recording tells
    uint64_t release_runs;
    uint64_t oom_events;
    uint64_t oom_events_agreeing;
    uint64_t final_blocks;        // of the recorded final picture
    uint64_t final_blocks_equal;  // by address, size, state and pool
    uint64_t final_blocks_extra;  // ours that the recorded picture has not
    uint64_t start_blocks;        // live before the first event
    uint64_t start_sizes_unknown; // of these, freed inside the history: their sizes had to be inferred
    uint64_t start_sizes_from_neighbour;
    uint64_t start_ages_inferred;  // segments of the start whose ages were inferred from choices between equal blocks
    uint64_t private_allocations;  // of the allocations, those in private pools
    uint64_t left_out_allocations; // alloc events that were not replayed, because their pool is not known
    uint64_t ignored_events;       // actions this version does not know
    uint64_t difference_count;     // all of them; the first few are in `differences`
    struct vram_difference *differences;
    size_t differences_kept;
    struct vram_placement *placements; // one per replayed allocation, in order; NULL unless asked for
    size_t placement_count;
};

struct vram_exact_options {
    size_t keep_differences; // per device; 0 means 16
    bool keep_placements;
    const char *conf; // option string; NULL: the recording's own settings; "pytorch:2.6" alone: these, with that version's rules
};

// What told whose rules a recorded program followed where PyTorch's versions differ.
enum vram_rules_source {
    VRAM_RULES_BY_KEYS,   // what keys the recording has
    VRAM_RULES_BY_EVENTS, // by the rules that the keys tell more of its events differ
    VRAM_RULES_BY_CONF,   // the option string names the version
};
// One word for programs ("keys", "events", "conf"). Never NULL.
VRAM_API const char *vram_rules_source_name(enum vram_rules_source source);

struct vram_exact_result {
    struct vram_exact_device *devices; // those with events or segments, ascending
    size_t device_count;
    bool agrees;        // every device's verdict is EQUAL or NO_HISTORY
    char *conf;         // the option string that was in force
    bool recorded_conf; // it is the recording's own, but for a version that was asked for
    bool inferred_conf; // recorded_conf, but the recording has no settings: they were inferred from its segments
    char pytorch[16];   // the version whose rules were followed, as "2.15"
    enum vram_rules_source pytorch_by;
};

// Replays every device's history at the recorded addresses. options may be NULL. *result is given to the caller: also when things
// differ, which is not a failure of this function. BAD_OPTION for a malformed conf; NO_HOST_MEMORY; BAD_INPUT for histories beyond the
// limits of this library.
VRAM_API VRAM_NODISCARD enum vram_status vram_replay_exact(const struct vram_recording *recording, const struct vram_exact_options *options,
                                                           struct vram_exact_result **result, struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_exact_result_destroy(struct vram_exact_result *result);
// The result as one JSON object (keys as in docs/reference/json.md) / for people. file is how the recording is called; it and style may be
// NULL. IO when `write` returned false; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_exact_json(const struct vram_exact_result *result, const char *file, vram_write write,
                                                         void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_exact_text(const struct vram_exact_result *result, const char *file,
                                                         const struct vram_style *style, vram_write write, void *user);
// The placements as lines `device,event_index,address` under a line of titles; addresses in hex. Empty unless they were kept.
VRAM_API VRAM_NODISCARD enum vram_status vram_exact_placements(const struct vram_exact_result *result, vram_write write, void *user);

// --- what if ------------------------------------------------------------------------------------------------------------------
enum vram_whatif_start {
    VRAM_WHATIF_COLD,     // blocks live before the first event are allocated first, in address order
    VRAM_WHATIF_RECORDED, // the recorded start picture is reproduced, with its segments and holes
};

// All-zero means every default.
struct vram_whatif_options {
    const char *conf;      // option string; NULL: the recording's own settings; "pytorch:2.6" alone: these, with that version's rules
    uint64_t memory_bytes; // of each device; 0: more than the program can need
    enum vram_whatif_start start;
    enum vram_sim_profile profile; // costs of driver calls
    bool ignore_releases;          // do not turn recorded releases of the cache into vram_empty_cache() calls
    bool one_device;               // only the history of `device` is replayed
    uint32_t device;
    uint64_t most_ns; // of real time that the events may take: past it the replay ends with LIMIT; 0: any
};

#define VRAM_WHATIF_CALLS 96

struct vram_whatif_call {
    const char *name; // of the driver function; static
    uint64_t count;
    uint64_t cost_ns; // virtual time spent in it
};

struct vram_whatif_device {
    uint32_t device;
    bool contradiction; // the history cannot be rolled back, or no device holds what is live: `reason` says why, nothing was run
    char reason[512];
    uint64_t events; // replayed; fewer than the history has after an OOM
    uint64_t allocations;
    uint64_t peak_allocated_bytes; // block sizes
    uint64_t peak_active_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t peak_reserved_event; // the event after which it was first reached; VRAM_NO_OFFSET: before the first
    uint64_t final_reserved_bytes;
    uint64_t retries;                                 // num_alloc_retries
    uint64_t driver_time_ns;                          // virtual time of all driver calls of the replay itself
    struct vram_whatif_call calls[VRAM_WHATIF_CALLS]; // with count > 0
    size_t call_count;
    bool out_of_memory; // the run stopped there
    uint64_t oom_event; // index of the alloc event; VRAM_NO_OFFSET: while the start state was allocated
    struct vram_oom oom;
    uint64_t recorded_ooms;        // requests that failed in the recorded program
    uint64_t recorded_ooms_served; // of these, granted here; they are tried, and freed at once, only when memory_bytes is given
    uint64_t private_allocations;  // of the allocations, those in private pools
};

struct vram_whatif_result {
    char *conf;            // the option string that was in force
    bool recorded_conf;    // it is the recording's own
    uint64_t memory_bytes; // the options of the run
    enum vram_whatif_start start;
    enum vram_sim_profile profile;
    struct vram_whatif_device *devices;
    size_t device_count;
    bool finished;      // no device ran out of memory or had a contradictory history
    bool inferred_conf; // recorded_conf, but the recording has no settings: they were inferred from its segments
};

// Runs every device's history once. options may be NULL. *result is given to the caller, also after an OOM, which is not a failure
// of this function. BAD_OPTION for a malformed conf, NO_HOST_MEMORY, BAD_INPUT.
VRAM_API VRAM_NODISCARD enum vram_status vram_replay_whatif(const struct vram_recording *recording,
                                                            const struct vram_whatif_options *options, struct vram_whatif_result **result,
                                                            struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_whatif_result_destroy(struct vram_whatif_result *result);
// Several runs of one recording side by side: as one JSON object / as tables for people. Parameters and statuses as for vram_exact_json().
VRAM_API VRAM_NODISCARD enum vram_status vram_whatif_json(const struct vram_whatif_result *const *results, size_t count, const char *file,
                                                          vram_write write, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_whatif_text(const struct vram_whatif_result *const *results, size_t count, const char *file,
                                                          const struct vram_style *style, vram_write write, void *user);

// --- the search of settings --------------------------------------------------------------------------------------------------------------
// Which settings would have let a recorded program run in the least memory.
//
// Every candidate setting is replayed on the simulated driver, with the smallest memory in which it completes found by bisection. What a
// replay cannot know: memory outside the allocator, and what a program would do differently when its requests take longer or fail.

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
    bool inferred;                // today's, from the segments: the first recording has no settings
    bool today;                   // what the recording says was in force (conf is the first recording's)
    bool beyond;                  // today's and one option that this allocator has and PyTorch has not: never the best or the cheaper one
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
    size_t best;         // neither needs nor holds more than today's, and needs the least; with memory_bytes today's where that fits, else
                         // one that does, else (fits is false) the one that comes nearest
    size_t cheaper;      // as good, needs at most 1 % more than the best and at least a tenth less driver time; VRAM_TUNE_NONE: no such
    size_t holds_less;   // as good, and holds the least, by a tenth at least; VRAM_TUNE_NONE: no such, or memory_bytes were given
    uint64_t live_bytes; // of the device with most: the most that the recorded program had allocated at once; no setting goes below it
    uint64_t active_bytes;        // the same with what was freed and waited for other streams
    enum vram_whatif_start start; // of the replays: the options', or RECORDED where only that shows an out of memory of the recording
    uint64_t memory_bytes;        // of the options
    uint64_t runs;                // replays made
    uint64_t devices;             // whose history was replayed
    uint64_t contradictions;      // devices whose history cannot be replayed; they were left out
    const char *variable;         // that PyTorch reads a setting from: PYTORCH_CUDA_ALLOC_CONF, or PYTORCH_HIP_ALLOC_CONF
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

// --- paged memory ------------------------------------------------------------------------------------------------------------------------
// What paged memory would have saved: `paged:True`, an option of this allocator that PyTorch's own has not.
//
// The history is replayed with the setting that was in force, with expandable_segments:True (the nearest that PyTorch has) and with
// paged:True, where more than a little lies between what was live and what was held. What a replay cannot know: waits of one stream for
// another, memory outside the allocator, and what the program would do differently.

struct vram_report;

// X(constant, JSON name)
#define VRAM_PAGED_VERDICTS(X)                                                                                                             \
    X(LESS, less)       /* the history needs less memory with it */                                                                        \
    X(AS_MUCH, as_much) /* it needs as much, to 1 %, or more */                                                                            \
    X(LITTLE, little)   /* not replayed: of what was held a twentieth or 64 MiB was not live at the peak, or what grows fills any room */  \
    X(LONG, long)       /* not replayed, or not to the end: more than 200,000 events, or the time was over */                              \
    X(WINDOWS, windows) /* not replayed: recorded on Windows, where neither option is to be had */                                         \
    X(NO_REPLAY, no_replay) /* the history cannot be replayed, or there is none */                                                         \
    X(ALREADY, already)     /* it was in force */

#define VRAM_PAGED_MOST_EVENTS 200000 // of a device's history that is compared

enum vram_paged_verdict {
#define VRAM_PAGED_VERDICT(constant, name) VRAM_PAGED_##constant,
    VRAM_PAGED_VERDICTS(VRAM_PAGED_VERDICT)
#undef VRAM_PAGED_VERDICT
        VRAM_PAGED_VERDICT_COUNT
};

// What the history comes to with one setting.
struct vram_paged_side {
    bool known;              // it was replayed
    bool fits;               // in room_bytes, the requests that failed included; true where nothing failed
    uint64_t needed_bytes;   // the smallest memory in which it completes, to 1/1024 or 2 MiB; 0: not looked for (more than 25,000 events)
    uint64_t held_bytes;     // the most that is reserved with memory to spare
    uint64_t driver_calls;   // with memory to spare: calls that get memory or give it back
    uint64_t driver_time_ns; // of these runs, on the simulator's clock
};

// One device.
struct vram_paged_saving {
    uint32_t device;
    enum vram_paged_verdict verdict;
    uint64_t room_bytes;               // after an out of memory: of the last one, vram_report_oom.room_bytes; 0: nothing failed
    uint64_t live_bytes;               // with memory to spare: the most that was live at once, as blocks
    struct vram_paged_side today;      // LESS, AS_MUCH; of AS_MUCH the next two only where they had to be replayed
    struct vram_paged_side expandable; // with expandable_segments:True on top; not known where that was in force
    struct vram_paged_side paged;      // with paged:True on top
    uint64_t events;                   // of the device's history
};

struct vram_paged_savings {
    struct vram_paged_saving *savings; // of each device of the report that is no host memory, ascending
    size_t count;
};

// One word for programs ("less", "as_much", ...). Never NULL.
VRAM_API const char *vram_paged_verdict_name(enum vram_paged_verdict verdict);

// Compares on every device, in about most_ns of real time for each (0: as long as it takes); the report must be the recording's. At most
// some 60 replays of up to 25,000 events, or 3 of up to 200,000. *savings is given to the caller. NO_HOST_MEMORY, and what
// vram_replay_whatif() gives. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_paged_savings_find(const struct vram_recording *recording, const struct vram_report *report,
                                                                 uint64_t most_ns, struct vram_paged_savings **savings,
                                                                 struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_paged_savings_destroy(struct vram_paged_savings *savings);
// What it comes to in two or three sentences, as the report has it; nothing where there is nothing to gain (LESS alone has something to
// say, after an out of memory only where paged:True decides). Statuses as for vram_exact_json().
VRAM_API VRAM_NODISCARD enum vram_status vram_paged_saving_text(const struct vram_paged_saving *saving, vram_write write, void *user);

#ifdef __cplusplus
}
#endif
#endif
