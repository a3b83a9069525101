// vram/replay.h: drives a recorded history through the real allocator on the simulated driver.
//
// Two questions. vram_replay_exact(): does this allocator do, event by event and address by address, the same as the recorded program's
// allocator? vram_replay_whatif(): what would the same program need with other settings or less memory? Results are plain data owned by the
// caller; recordings are only read. The functions keep no state: call them from any thread, also concurrently.
#ifndef VRAM_REPLAY_H
#define VRAM_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/allocator.h"
#include "vram/driver.h"
#include "vram/facts.h"
#include "vram/sim.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

// --- exact ------------------------------------------------------------------------------------------------------------------
enum vram_exact_verdict {
    VRAM_EXACT_EQUAL,         // all allocations, segment events, releases and the final state agree
    VRAM_EXACT_NO_HISTORY,    // there is no event to replay; the final state agrees
    VRAM_EXACT_PARTIAL,       // the replayed events agree, but segments of unknown private pools were left out
    VRAM_EXACT_DIFFERENT,     // something differs: see `differences`
    VRAM_EXACT_CONTRADICTION, // the history cannot have led to the final state: nothing was replayed, see `reason`
    VRAM_EXACT_UNTOLD,        // undecidable: with the recorded settings it differs, but they were changed in between, see `reason`
};
// Returns the JSON name ("equal", "no_history", ...). Never NULL.
VRAM_API const char *vram_exact_verdict_name(enum vram_exact_verdict verdict);

enum vram_difference_kind {
    VRAM_DIFFERENT_ADDRESS,     // this allocator chose another free block
    VRAM_DIFFERENT_CACHE_HIT,   // this allocator used a cached block; the recorded program asked the driver
    VRAM_DIFFERENT_CACHE_MISS,  // this allocator found no cached block; the recorded program did
    VRAM_DIFFERENT_SEGMENT,     // this allocator requested another segment (or range)
    VRAM_DIFFERENT_RELEASE,     // this allocator released another segment (or range), or in another order
    VRAM_DIFFERENT_FREE,        // a free of an address that is not live
    VRAM_DIFFERENT_OOM,         // the recorded program ran out of memory; this allocator did not, or not the same way
    VRAM_DIFFERENT_FINAL_BLOCK, // a block of the final state differs
};
// Returns a sentence without a full stop. Never NULL.
VRAM_API const char *vram_difference_text(enum vram_difference_kind kind);

struct vram_difference {
    enum vram_difference_kind kind;
    uint64_t event_index; // in the device's history; VRAM_NO_OFFSET for the final state
    uint64_t stream;
    uint64_t size_bytes;       // of the recorded event or block
    uint64_t recorded_address; // 0: none
    uint64_t our_address;      // 0: none, or in a segment that the recording does not have
    uint64_t our_size_bytes;   // for segments and blocks; otherwise 0
};

struct vram_placement {
    uint64_t event_index; // of an alloc event in the device's history
    uint64_t address;     // this allocator's address; 0 if it found no cached block but the recorded program did
};

// The result of replaying one device's history, in numbers. X(type, member, absent, sentence): vram/facts.h
#define VRAM_EXACT_FACTS(X)                                                                                                                \
    X(U64, events, ALWAYS, "number of events of the device")                                                                               \
    X(U64, allocations, ALWAYS, "number of `alloc` events replayed")                                                                       \
    X(U64, at_recorded_address, ALWAYS, "number of these at the recorded address")                                                         \
    X(U64, segment_events, ALWAYS, "`segment_alloc` and `segment_map`")                                                                    \
    X(U64, segment_events_agreeing, ALWAYS, "number of these requested at the same point, with the same size, address and stream")         \
    X(U64, releases, ALWAYS, "`segment_free` and `segment_unmap`")                                                                         \
    X(U64, releases_agreeing, ALWAYS, "number of these that agree in order, address and size")                                             \
    X(U64, releases_as_recorded, ALWAYS,                                                                                                   \
      "number of releases done only because they were recorded: they depend on ages or waits that the recording lacks")                    \
    X(U64, release_runs, ALWAYS, "runs of releases")                                                                                       \
    X(U64, oom_events, ALWAYS, "out-of-memory events")                                                                                     \
    X(U64, oom_events_agreeing, ALWAYS, "number of these where this allocator also fails, with nothing left to release")                   \
    X(U64, final_blocks, ALWAYS, "blocks of the recorded final state")                                                                     \
    X(U64, final_blocks_equal, ALWAYS, "number of these with equal address, size, state and pool")                                         \
    X(U64, final_blocks_extra, ALWAYS, "blocks that only this allocator has")                                                              \
    X(U64, start_blocks, ALWAYS, "blocks live before the first event")                                                                     \
    X(U64, start_sizes_unknown, ALWAYS, "number of these freed later, whose sizes were inferred")                                          \
    X(U64, start_sizes_from_neighbour, ALWAYS, "number of these whose size followed from a neighbour")                                     \
    X(U64, start_ages_inferred, ALWAYS,                                                                                                    \
      "segments from before the first event whose age was inferred from recorded choices between equal "                                   \
      "blocks")                                                                                                                            \
    X(U64, private_allocations, ALWAYS, "number of the allocations in private pools")                                                      \
    X(U64, left_out_allocations, ALWAYS, "`alloc` events not replayed because their pool is not known (verdict `partial`)")                \
    X(U64, ignored_events, ALWAYS, "events of unknown kind")                                                                               \
    X(U64, difference_count, ALWAYS, "number of differences")

struct vram_exact_device {
    uint32_t device;
    enum vram_exact_verdict verdict;
    char reason[512]; // how the history contradicts the final state, or what was left out; otherwise ""
    VRAM_EXACT_FACTS(VRAM_FACT_MEMBER)
    struct vram_difference *differences; // the first few
    size_t differences_kept;
    struct vram_placement *placements; // one per replayed allocation, in order; NULL unless requested
    size_t placement_count;
};

struct vram_exact_options {
    size_t keep_differences; // per device; 0: 16
    bool keep_placements;
    const char
        *conf; // option string; NULL: the recording's settings; "pytorch:2.6" alone: the recording's settings with that version's rules
};

// The source of the PyTorch version whose rules apply.
enum vram_rules_source {
    VRAM_RULES_BY_KEYS,   // by the keys in the recording
    VRAM_RULES_BY_EVENTS, // by the events, because they differ from those of the version that the keys suggest
    VRAM_RULES_BY_CONF,   // the option string names the version
};
// Returns the JSON name ("keys", "events", "conf"). Never NULL.
VRAM_API const char *vram_rules_source_name(enum vram_rules_source source);

struct vram_exact_result {
    struct vram_exact_device *devices; // devices with events or segments, ascending
    size_t device_count;
    bool agrees;        // every device's verdict is EQUAL or NO_HISTORY
    char *conf;         // the option string in force
    bool recorded_conf; // it is the recording's own, except for a requested version
    bool inferred_conf; // recorded_conf, but the recording has no settings: they were inferred from its segments
    char pytorch[16];   // version whose rules were followed, such as "2.15"
    enum vram_rules_source pytorch_by;
};

// Replays every device's history at the recorded addresses. options may be NULL. The caller owns *result, even if something differs, which
// is not an error. BAD_OPTION for a malformed conf; NO_HOST_MEMORY; BAD_INPUT for histories beyond this library's limits.
VRAM_API VRAM_NODISCARD enum vram_status vram_replay_exact(const struct vram_recording *recording, const struct vram_exact_options *options,
                                                           struct vram_exact_result **result, struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_exact_result_destroy(struct vram_exact_result *result);
// Write the result as one JSON object (keys in docs/reference/json.md) or as text. `file` names the recording; it and style may be NULL. IO
// if `write` returns false; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_exact_json(const struct vram_exact_result *result, const char *file, vram_write write,
                                                         void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_exact_text(const struct vram_exact_result *result, const char *file,
                                                         const struct vram_style *style, vram_write write, void *user);
// Writes the placements as lines `device,event_index,address` below a header line; addresses are in hex. Header only, unless they were
// kept.
VRAM_API VRAM_NODISCARD enum vram_status vram_exact_placements(const struct vram_exact_result *result, vram_write write, void *user);

// --- what if ------------------------------------------------------------------------------------------------------------------
enum vram_whatif_start {
    VRAM_WHATIF_COLD,     // first allocates the blocks live before the first event, in address order
    VRAM_WHATIF_RECORDED, // reproduces the recorded initial state, with its segments and holes
};

// A zeroed struct selects the defaults.
struct vram_whatif_options {
    const char
        *conf; // option string; NULL: the recording's settings; "pytorch:2.6" alone: the recording's settings with that version's rules
    uint64_t memory_bytes; // of each device; 0: more than the program can need
    enum vram_whatif_start start;
    enum vram_sim_profile profile; // costs of driver calls
    bool ignore_releases;          // do not turn recorded releases of the cache into vram_empty_cache() calls
    bool one_device;               // replay only the history of `device`
    uint32_t device;
    uint64_t most_ns; // limit for the real time of the events, after which the replay ends with LIMIT; 0: no limit
};

#define VRAM_WHATIF_CALLS 96

struct vram_whatif_call {
    const char *name; // the driver function; static
    uint64_t count;
    uint64_t cost_ns; // virtual time spent in it
};

struct vram_whatif_device {
    uint32_t device;
    bool contradiction; // the history cannot be undone, or the live bytes exceed any device: see `reason`, nothing was run
    char reason[512];
    uint64_t events; // replayed; fewer than in the history after an OOM
    uint64_t allocations;
    uint64_t peak_allocated_bytes; // block sizes
    uint64_t peak_active_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t peak_reserved_event; // event after which the peak was first reached; VRAM_NO_OFFSET: before the first event
    uint64_t final_reserved_bytes;
    uint64_t retries;                                 // num_alloc_retries
    uint64_t driver_time_ns;                          // virtual time of all driver calls of the replay
    struct vram_whatif_call calls[VRAM_WHATIF_CALLS]; // with count > 0
    size_t call_count;
    bool out_of_memory; // the run stopped at an OOM
    uint64_t oom_event; // index of the alloc event; VRAM_NO_OFFSET: while the initial state was allocated
    struct vram_oom oom;
    uint64_t recorded_ooms;        // requests that failed in the recorded program
    uint64_t recorded_ooms_served; // of these, how many succeed here; they are tried, and freed at once, only if memory_bytes is given
    uint64_t private_allocations;  // number of the allocations in private pools
};

struct vram_whatif_result {
    char *conf;            // the option string in force
    bool recorded_conf;    // it is the recording's own
    uint64_t memory_bytes; // the options of the run
    enum vram_whatif_start start;
    enum vram_sim_profile profile;
    struct vram_whatif_device *devices;
    size_t device_count;
    bool finished;      // no device ran out of memory or had a contradictory history
    bool inferred_conf; // recorded_conf, but the recording has no settings: they were inferred from its segments
};

// Runs every device's history once. options may be NULL. The caller owns *result, even after an OOM, which is not an error. BAD_OPTION for
// a malformed conf, NO_HOST_MEMORY, BAD_INPUT.
VRAM_API VRAM_NODISCARD enum vram_status vram_replay_whatif(const struct vram_recording *recording,
                                                            const struct vram_whatif_options *options, struct vram_whatif_result **result,
                                                            struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_whatif_result_destroy(struct vram_whatif_result *result);
// Write several runs of one recording, as one JSON object or as tables of text. Parameters and statuses as for vram_exact_json().
VRAM_API VRAM_NODISCARD enum vram_status vram_whatif_json(const struct vram_whatif_result *const *results, size_t count, const char *file,
                                                          vram_write write, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_whatif_text(const struct vram_whatif_result *const *results, size_t count, const char *file,
                                                          const struct vram_style *style, vram_write write, void *user);

// --- tuning ------------------------------------------------------------------------------------------------------------------------------
// Finds the settings with which a recorded program needs the least memory. Replays every candidate on the simulated driver, and finds by
// bisection the smallest memory in which it completes. A replay does not know memory outside the allocator, or how a program would behave
// differently if its requests took longer or failed.

// A zeroed struct selects the defaults.
struct vram_tune_options {
    uint64_t memory_bytes; // of each device: find settings that fit in it; 0: find the setting that needs the least
    unsigned threads;      // number of replaying threads; 0: one per processor
    enum vram_whatif_start start;
    enum vram_sim_profile profile;
    void (*progress)(uint64_t done, uint64_t total,
                     void *user); // called after each candidate, on any thread, one call at a time; may be NULL
    void *user;
};

// The result for a setting over all recordings and devices: the largest of sizes, the sums of calls and times.
struct vram_tune_setting {
    char *conf;                   // option string; "": the defaults
    bool inferred;                // today's, but inferred from the segments, because the first recording has no settings
    bool today;                   // the settings in force, according to the recordings (conf is the first recording's)
    bool beyond;                  // today's plus an option that PyTorch does not have: never the best or the cheaper one
    bool fits;                    // completes with memory_bytes; true if none were given
    bool fits_with_room;          // would still complete with a sixteenth less memory
    uint64_t needed_bytes;        // smallest memory per device in which it completes, to 1/1024 or 2 MiB; 0: not found
    uint64_t peak_active_bytes;   // with ample memory: peak of live bytes, as blocks
    uint64_t peak_reserved_bytes; // with ample memory: peak of reserved bytes
    uint64_t driver_calls;        // calls that get or release memory, with memory_bytes if given, otherwise with ample memory
    uint64_t driver_time_ns;      // virtual time of these runs
    uint64_t retries;             // in these runs: releases of the whole cache because nothing fitted
};

#define VRAM_TUNE_NONE SIZE_MAX

struct vram_tune_result {
    struct vram_tune_setting *settings; // in the order in which they were tried: today's first, then the defaults
    size_t setting_count;
    size_t best;    // needs and holds no more than today's, and needs the least; with memory_bytes: today's if it fits, otherwise one that
                    // fits, otherwise (`fits` is false) the one that comes closest
    size_t cheaper; // as good, needs at most 1 % more than the best and at least a tenth less driver time; VRAM_TUNE_NONE: no such setting
    size_t holds_less;     // as good, and holds the least, by at least a tenth; VRAM_TUNE_NONE: no such setting, or memory_bytes were given
    uint64_t live_bytes;   // peak of the bytes allocated by the recorded program, on the device with the most; no setting needs less
    uint64_t active_bytes; // the same, including freed bytes that waited for other streams
    enum vram_whatif_start start; // of the replays: the options', or RECORDED if only that reproduces a recorded out-of-memory error
    uint64_t memory_bytes;        // from the options
    uint64_t runs;                // number of replays
    uint64_t devices;             // number of devices whose history was replayed
    uint64_t contradictions;      // devices whose history cannot be replayed and was left out
    const char *variable; // environment variable from which PyTorch reads a setting: PYTORCH_CUDA_ALLOC_CONF or PYTORCH_HIP_ALLOC_CONF
};

// Tries settings on the recordings (such as the ranks of one job, for which one setting is chosen). options may be NULL. The caller owns
// *result. BAD_INPUT if no device of any recording has a history that can be replayed; NO_HOST_MEMORY, and statuses of
// vram_replay_whatif().
VRAM_API VRAM_NODISCARD enum vram_status vram_tune(const struct vram_recording *const *recordings, size_t count,
                                                   const struct vram_tune_options *options, struct vram_tune_result **result,
                                                   struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_tune_result_destroy(struct vram_tune_result *result);
// Write the result as one JSON object or as text. Parameters and statuses as for vram_exact_json().
VRAM_API VRAM_NODISCARD enum vram_status vram_tune_json(const struct vram_tune_result *result, const char *file, vram_write write,
                                                        void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_tune_text(const struct vram_tune_result *result, const char *file,
                                                        const struct vram_style *style, vram_write write, void *user);

// --- paged memory ------------------------------------------------------------------------------------------------------------------------
// The savings of paged memory: `paged:True`, an option of this allocator that PyTorch does not have. The history is replayed with
// the settings in force, with expandable_segments:True (PyTorch's closest option) and with paged:True, if reserved bytes exceed live bytes
// by more than a little. A replay does not know waits of one stream for another, memory outside the allocator, or how the program would
// behave differently.

struct vram_report;

// X(constant, JSON name)
#define VRAM_PAGED_VERDICTS(X)                                                                                                             \
    X(LESS, less)       /* the history needs less memory with it */                                                                        \
    X(AS_MUCH, as_much) /* it needs as much, to 1 %, or more */                                                                            \
    X(LITTLE, little) /* not replayed: at most a twentieth or 64 MiB of the reserved memory was not live, or memory grows in every step */ \
    X(LONG, long)     /* not replayed, or not to the end: more than 200,000 events, or time ran out */                                     \
    X(WINDOWS, windows)     /* not replayed: recorded on Windows, where neither option is available */                                     \
    X(NO_REPLAY, no_replay) /* the history cannot be replayed, or does not exist */                                                        \
    X(ALREADY, already)     /* it was in force */

#define VRAM_PAGED_MOST_EVENTS 200000 // longest history of a device that is compared

enum vram_paged_verdict {
#define VRAM_PAGED_VERDICT(constant, name) VRAM_PAGED_##constant,
    VRAM_PAGED_VERDICTS(VRAM_PAGED_VERDICT)
#undef VRAM_PAGED_VERDICT
        VRAM_PAGED_VERDICT_COUNT
};

// The result of the history with one setting.
struct vram_paged_side {
    bool known;              // it was replayed
    bool fits;               // in room_bytes, including the requests that failed; true if none failed
    uint64_t needed_bytes;   // smallest memory in which it completes, to 1/1024 or 2 MiB; 0: not searched (more than 25,000 events)
    uint64_t held_bytes;     // peak of reserved bytes with ample memory
    uint64_t driver_calls;   // with ample memory: calls that get or release memory
    uint64_t driver_time_ns; // virtual time of these runs
};

// One device.
struct vram_paged_saving {
    uint32_t device;
    enum vram_paged_verdict verdict;
    uint64_t room_bytes;               // after an out-of-memory error: vram_report_oom.room_bytes of the last one; 0: no request failed
    uint64_t live_bytes;               // with ample memory: peak of live bytes, as blocks
    struct vram_paged_side today;      // for LESS and AS_MUCH; for AS_MUCH, the next two only if they had to be replayed
    struct vram_paged_side expandable; // with expandable_segments:True added; unknown if that was in force
    struct vram_paged_side paged;      // with paged:True added
    uint64_t events;                   // number of events in the device's history
};

struct vram_paged_savings {
    struct vram_paged_saving *savings; // of each device of the report, except host memory, ascending
    size_t count;
};

// Returns the JSON name ("less", "as_much", ...). Never NULL.
VRAM_API const char *vram_paged_verdict_name(enum vram_paged_verdict verdict);

// Compares the settings on every device, in about most_ns of real time each (0: no limit); the report must be of this recording. Makes at
// most about 60 replays of up to 25,000 events, or 3 of up to 200,000. The caller owns *savings. NO_HOST_MEMORY, and statuses of
// vram_replay_whatif(). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_paged_savings_find(const struct vram_recording *recording, const struct vram_report *report,
                                                                 uint64_t most_ns, struct vram_paged_savings **savings,
                                                                 struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_paged_savings_destroy(struct vram_paged_savings *savings);
// Writes the saving in two or three sentences, as in the report. Writes nothing if there is nothing to gain (only LESS has sentences, and
// after an out-of-memory error only if paged:True makes the difference). Statuses as for vram_exact_json().
VRAM_API VRAM_NODISCARD enum vram_status vram_paged_saving_text(const struct vram_paged_saving *saving, vram_write write, void *user);

#ifdef __cplusplus
}
#endif
#endif
