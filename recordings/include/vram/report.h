// vram/report.h: the facts of a recording: peaks, lifetimes, use of reserved memory, why memory ran out, and what is missing.
//
// A report is plain data, computed once from a recording by pure functions; it owns everything it points to and never changes. Bytes of
// allocations are requested bytes, as a history records them, unless a comment says otherwise. Event indices count from 0 in the device's
// own list; -1 means "before the first event". Times are microseconds since the epoch.
#ifndef VRAM_REPORT_H
#define VRAM_REPORT_H

#include "vram/facts.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;
struct vram_cure;
struct vram_paged_saving;
struct vram_report_demand;

// A number of things and their total bytes.
struct vram_report_sum {
    uint64_t count;
    uint64_t bytes;
};

// A call site ("file:line:function"), a call stack (16 hex digits) or an action of the history, with its totals.
struct vram_report_group {
    const char *name; // bytes as in the recording (may contain control characters), NUL-terminated
    uint64_t bytes;
    uint64_t count;
};

// An allocation that was made and freed inside the history.
struct vram_report_lifetime {
    uint64_t birth_event;
    uint64_t death_event;
    uint64_t address;
    uint64_t size_bytes;
    int64_t elapsed_us; // between the two events, if has_time
    bool has_time;
    const char *site;
};

// Ways in which the history and the final state disagree. X(constant, JSON name, description)
#define VRAM_REPORT_ANOMALIES(X)                                                                                                           \
    X(END_BLOCK_NOT_LIVE, end_block_not_live_in_replay, "blocks of the final state that are not live at the end of the history")           \
    X(END_LIVE_NOT_BLOCK, end_replay_live_not_block, "allocations live at the end of the history, without a block")                        \
    X(ALLOC_ON_LIVE, replay_alloc_on_live, "allocations at an address that is already live")                                               \
    X(FREE_NOT_LIVE, replay_free_not_live, "frees of an address that is not live")                                                         \
    X(FREE_SIZE_DIFFERS, replay_free_size_differs, "frees whose size differs from the allocation's")                                       \
    X(UNDO_ALLOC_NOT_LIVE, undo_alloc_not_live, "allocations that are neither freed later nor in the final state")                         \
    X(UNDO_ALLOC_SIZE_DIFFERS, undo_alloc_size_differs, "allocations whose size differs from that of their free or block")                 \
    X(UNDO_FREE_ALREADY_LIVE, undo_free_already_live, "addresses that were freed twice without an allocation in between")

enum vram_report_anomaly {
#define VRAM_REPORT_ANOMALY(constant, name, text) VRAM_ANOMALY_##constant,
    VRAM_REPORT_ANOMALIES(VRAM_REPORT_ANOMALY)
#undef VRAM_REPORT_ANOMALY
        VRAM_ANOMALY_COUNT
};

// Live memory over the history, by one of two definitions. Allocated: from alloc to free_requested. Active: from alloc to free_completed,
// when the block can be used again.
struct vram_report_live {
    struct vram_report_sum start; // before event 0
    struct vram_report_sum peak;
    int64_t peak_event;                 // the first event after which the total equals the peak
    struct vram_report_sum end;         // after the last event
    struct vram_report_sum final_state; // from the final blocks: equals `end` in a consistent recording
    uint64_t anomalies[VRAM_ANOMALY_COUNT];
    bool consistent;                       // all anomalies are 0
    const struct vram_report_group *sites; // largest at the peak
    size_t site_count;
    uint64_t distinct_sites;
    const struct vram_report_group *stacks; // largest at the peak
    size_t stack_count;
    uint64_t distinct_stacks;
    struct vram_report_sum born_and_freed; // the four classes of lifetimes: begun or ended in the history, or not
    struct vram_report_sum born_and_kept;
    struct vram_report_sum inherited_and_freed;
    struct vram_report_sum inherited_and_kept;
    const struct vram_report_lifetime *longest;
    size_t longest_count;
    uint64_t largest_bytes; // largest allocation of the history
};

// Memory reserved from the driver over the history.
struct vram_report_reserved {
    int64_t start_bytes;
    int64_t peak_bytes;
    int64_t peak_event;
    int64_t end_bytes; // the sum of the final segments
    bool consistent;   // never below 0
};

// The largest values within a run of events.
struct vram_report_point {
    uint64_t first_event;
    uint64_t event_count;
    uint64_t allocated_bytes;
    uint64_t active_bytes;
    int64_t reserved_bytes;
};

// The final use of the bytes held from the driver. All but `unaccounted` add up to the sizes of all blocks.
// X(type, member, absent, sentence): vram/facts.h
#define VRAM_REPORT_USAGE_FACTS(X)                                                                                                         \
    X(U64, reserved_bytes, ALWAYS, "the sum of the segments")                                                                              \
    X(U64, requested_bytes, ALWAYS, "requested bytes of live allocations")                                                                 \
    X(U64, rounding_bytes, ALWAYS, "rounding: the bytes by which their blocks exceed the requests")                                        \
    X(U64, pending_bytes, ALWAYS, "freed, waiting for other streams")                                                                      \
    X(U64, free_block_bytes, ALWAYS, "free blocks in partly used segments")                                                                \
    X(U64, cached_bytes, ALWAYS, "entirely free segments, which `empty_cache()` returns")                                                  \
    X(I64, unaccounted_bytes, ALWAYS, "reserved minus the sum of all blocks; 0 in a sound recording")                                      \
    X(U64, free_blocks, ALWAYS, "number of free blocks")                                                                                   \
    X(U64, largest_free_bytes, ALWAYS, "the largest of them")                                                                              \
    X(U64, page_bytes, ALWAYS, "the part of `free_block_bytes` in free pages of expandable segments, which `empty_cache()` also returns")

struct vram_report_usage {
    VRAM_REPORT_USAGE_FACTS(VRAM_FACT_MEMBER)
};

enum vram_report_kind { VRAM_REPORT_KIND_UNKNOWN, VRAM_REPORT_KIND_SMALL, VRAM_REPORT_KIND_LARGE };

// The segments of one stream, pool and size class at the end: free memory of one row serves requests of that row only.
#define VRAM_REPORT_POOL_FACTS(X)                                                                                                          \
    X(U64, segments, ALWAYS, "number of segments")                                                                                         \
    X(U64, expandable_segments, ALWAYS, "number of these that are expandable")                                                             \
    X(U64, reserved_bytes, ALWAYS, "their size")                                                                                           \
    X(U64, allocated_bytes, ALWAYS, "blocks in use, including rounding")                                                                   \
    X(U64, pending_bytes, ALWAYS, "freed, waiting for other streams")                                                                      \
    X(U64, free_bytes, ALWAYS, "free blocks")                                                                                              \
    X(U64, free_blocks, ALWAYS, "number of free blocks")                                                                                   \
    X(U64, largest_free_bytes, ALWAYS, "the largest of them")                                                                              \
    X(U64, cached_bytes, ALWAYS, "the part of `free_bytes` in entirely free segments")

struct vram_report_pool {
    int64_t stream;
    uint64_t pool_id[2]; // 0, 0: the default pool
    enum vram_report_kind kind;
    VRAM_REPORT_POOL_FACTS(VRAM_FACT_MEMBER)
};

// X(constant, JSON name)
#define VRAM_REPORT_OOM_CAUSES(X)                                                                                                          \
    X(LIMIT, limit)                                                                                                                        \
    X(FRAGMENTED, fragmented)                                                                                                              \
    X(PINNED, pinned)                                                                                                                      \
    X(OTHER_STREAMS, other_streams)                                                                                                        \
    X(OTHER_POOLS, other_pools)                                                                                                            \
    X(PRIVATE_POOLS, private_pools)                                                                                                        \
    X(PENDING, pending)                                                                                                                    \
    X(OUTSIDE, outside)                                                                                                                    \
    X(FULL, full)                                                                                                                          \
    X(GROWTH, growth)                                                                                                                      \
    X(CONTRADICTORY, contradictory)                                                                                                        \
    X(UNKNOWN, unknown)                                                                                                                    \
    X(DRIVER_POOLS, driver_pools)                                                                                                          \
    X(ROOM_UNKNOWN, room_unknown)

enum vram_report_oom_cause {
#define VRAM_REPORT_OOM_CAUSE(constant, name) VRAM_OOM_##constant,
    VRAM_REPORT_OOM_CAUSES(VRAM_REPORT_OOM_CAUSE)
#undef VRAM_REPORT_OOM_CAUSE
        VRAM_OOM_CAUSE_COUNT
};

// Another process with memory on the device.
struct vram_report_process {
    uint64_t id;
    const char *name; // "" if unknown; printable ASCII
    uint64_t bytes;   // UINT64_MAX: unknown
};

// The users of the memory outside the recorded program (vram_report_oom.outside_bytes), as far as they are recorded. context, module,
// driver, other and unknown bytes add up to outside_bytes.
struct vram_report_accounts {
    bool has_context;        // context_bytes was measured
    uint64_t context_bytes;  // this process's contexts
    bool has_modules;        // module_bytes was measured
    uint64_t module_bytes;   // this process's modules: code and variables
    bool has_self;           // NVML reported this process's total
    uint64_t driver_bytes;   // with has_self: the driver's other memory for this process, including contexts if they were not measured
    uint64_t at_start_bytes; // in use on the device just after the process made its first context; UINT64_MAX: unknown
    bool has_processes;      // NVML reported the device's processes
    bool apart;              // this process could be identified among the processes; otherwise it may be one of them
    const char *why;         // without has_processes: the reason; "" if that is unknown, too
    uint64_t other_bytes;    // other processes
    const struct vram_report_process *processes; // largest first
    size_t process_count;
    uint64_t left_out;      // processes beyond those listed
    uint64_t unknown_bytes; // of unknown owner
};

// The picture of an out-of-memory error at that moment.
#define VRAM_REPORT_OOM_FACTS(X)                                                                                                           \
    X(U64, segment_bytes, ALWAYS, "size of the segment that the driver was asked for")                                                     \
    X(U64, reserved_bytes, ALWAYS, "held from the driver")                                                                                 \
    X(U64, allocated_bytes, ALWAYS, "requested bytes in use")                                                                              \
    X(U64, pending_bytes, ALWAYS, "freed, but not yet reusable")                                                                           \
    X(U64, free_bytes, ALWAYS, "free in segments, over all streams and pools")                                                             \
    X(U64, largest_free_bytes, ALWAYS, "the largest free block of those")                                                                  \
    X(U64, usable_bytes, ALWAYS, "free for the request: in its stream, size class and pool")                                               \
    X(U64, usable_largest_bytes, ALWAYS, "the largest free block there")                                                                   \
    X(U64, usable_pieces, ALWAYS, "free blocks there")                                                                                     \
    X(U64, other_stream_bytes, ALWAYS, "free in the request's pool, but only for other streams")                                           \
    X(U64, other_pool_bytes, ALWAYS, "free in the same stream and pool, but only for the other size class")                                \
    X(U64, private_pool_bytes, ALWAYS, "free in other pools than the request's")                                                           \
    X(U64, driver_pool_bytes, OMIT_IF_EMPTY,                                                                                               \
      "free in the driver's own pools (`cudaMallocAsync`), fragmented or still waiting for streams")                                       \
    X(U64, outside_bytes, ALWAYS,                                                                                                          \
      "the part of the device's memory that is not free and not held by the recorded allocator; 0 if the total is not known")              \
    X(U64, device_total_bytes, NULL_IF_EMPTY, "size of the device; null: not known")                                                       \
    X(U64, limit_bytes, NULL_IF_EMPTY, "memory limit of the process; null: no limit is known")                                             \
    X(U64, room_bytes, NULL_IF_EMPTY,                                                                                                      \
      "memory available to the program: what it held plus what was free, within the limit; null: not known")                               \
    X(U64, pin_bytes, ALWAYS, "fewest bytes of blocks that would have to be freed to make a large enough gap; 0: no such blocks")          \
    X(U64, pin_blocks, ALWAYS, "number of these blocks")                                                                                   \
    X(TEXT, pin_site, ALWAYS, "call site of the largest of them; null: no such blocks")                                                    \
    X(TEXT, held_site, ALWAYS,                                                                                                             \
      "if the cause is waiting memory, or free memory that the request could not use: call site of its largest part; else null")

// An out-of-memory event. The state at that moment is rebuilt from the final state and the later events; the size of a block that is gone
// by the end is its request, rounded to 512 bytes.
struct vram_report_oom {
    uint64_t event;
    uint64_t size_bytes;        // the request, rounded
    uint64_t device_free_bytes; // as reported by the driver
    bool has_device_free;
    int64_t stream;
    bool has_time;
    int64_t time_us;
    bool has_picture; // VRAM_REPORT_OOM_FACTS are known (only for the last VRAM_REPORT_OOM_PICTURES events)
    VRAM_REPORT_OOM_FACTS(VRAM_FACT_MEMBER)
    const struct vram_report_accounts *accounts; // NULL: the recording does not say
    const struct vram_report_group *libraries;   // in recordings of `vram run`: the libraries that requested the memory allocated then,
                                                 // largest first
    size_t library_count;
    const struct vram_report_group *holders; // call sites of the allocated memory, largest first, at most 5
    size_t holder_count;
    enum vram_report_oom_cause cause;
    const char *site;   // call site of the request
    const char *text;   // the cause as a sentence
    const char *advice; // what could have helped; "" if the recording does not show that
    // For a device's last out-of-memory event: what used the memory, and what would lower the need (vram/demand.h); NULL: unknown.
    const struct vram_report_demand *demand;
    // For pinned host memory, the system is the "driver": device_free_bytes was available, device_total_bytes is all of it.
    bool is_host;
    bool of_own_pool;         // whole programs: the request went to one of the driver's pools that the program had made
    bool has_held_stream;     // OTHER_STREAMS: `held_stream` has the largest segment of that free memory
    bool held_stream_is_idle; // nothing more was requested on it before the request failed
    int64_t held_stream;
};
#define VRAM_REPORT_OOM_PICTURES 16

#define VRAM_REPORT_STATES     5
#define VRAM_REPORT_MISMATCHES 5

#define VRAM_REPORT_STATE_FACTS(X)                                                                                                         \
    X(U64, count, ALWAYS, "number of blocks")                                                                                              \
    X(U64, bytes, ALWAYS, "their sizes")                                                                                                   \
    X(U64, requested_bytes, ALWAYS, "requested bytes in them")

struct vram_report_state {
    VRAM_REPORT_STATE_FACTS(VRAM_FACT_MEMBER)
};

// One device with events or segments; others are left out.
struct vram_report_device {
    uint32_t device;
    bool is_host; // pinned host memory, numbered after the last device

    uint64_t events;
    uint64_t events_with_frames;
    uint64_t max_frames;
    const struct vram_report_group *actions; // name, number of events, sum of their sizes; sorted by name
    size_t action_count;
    const int64_t *trace_streams; // ascending
    size_t trace_stream_count;
    bool has_times;
    bool times_monotonic;
    int64_t first_time_us;
    int64_t last_time_us;
    const struct vram_report_oom *ooms; // in order of their events
    size_t oom_count;

    uint64_t segments;
    uint64_t segments_of_kind[3]; // indexed by enum vram_report_kind
    uint64_t expandable_segments;
    const int64_t *segment_streams;
    size_t segment_stream_count;
    const uint64_t (*pool_ids)[2]; // distinct, ascending, if the recording names them
    size_t pool_id_count;
    uint64_t blocks;
    struct vram_report_state states[VRAM_REPORT_STATES]; // indexed as in vram_report_state_name()
    struct vram_report_sum inactive;
    uint64_t largest_inactive_bytes;
    struct vram_report_sum wholly_inactive;      // segments
    uint64_t mismatches[VRAM_REPORT_MISMATCHES]; // segments whose blocks contradict their totals, indexed as in vram_report_mismatch_name()
    struct vram_report_usage usage;
    const struct vram_report_pool *pools; // by reserved bytes, descending
    size_t pool_count;

    struct vram_report_reserved reserved;
    struct vram_report_live allocated;
    struct vram_report_live active;
    const struct vram_report_demand *demand; // at the peak, if nothing failed and the caller's memory is less than the peak
    bool expandable;                         // segments consist of pages: in the history, at the end or by the settings
    bool whole_program; // a recording of `vram run`: libraries' requests to the driver, in which every block is a segment
    const struct vram_report_group *libraries; // libraries of the memory allocated at the peak; only in recordings of `vram run`
    size_t library_count;
    const struct vram_report_group *kinds; // the same memory by kind ("device", "managed", "async", ...)
    size_t kind_count;
    const struct vram_report_point *timeline; // at most VRAM_REPORT_POINTS, equal runs of events
    size_t timeline_count;
    struct vram_report_sum waiting;          // most memory that was freed and waited for other streams
    uint64_t waiting_event;                  // the event after which it waited
    const char *waiting_site;                // call site of most of it; NULL: nothing waited
    bool has_waited_for;                     // the recording has exactly one stream other than the one with the most allocations
    int64_t waited_for;                      // that stream
    bool python;                             // some stack has a Python frame
    const char *platform;                    // as in struct vram_report
    bool windows;                            // frames name Windows paths; PyTorch ignores expandable_segments there (as of 2.9)
    struct vram_report_sum private_inactive; // part of wholly_inactive: segments of private pools, which empty_cache() does not release
    uint64_t slow_leaks;                     // call sites whose memory grows over hours (vram_slow_leaks_text()); 0 in less than an hour
    double slow_bytes_per_hour;              // their growth
    const char *slow_site;                   // the one that grows fastest; NULL: none
};
#define VRAM_REPORT_POINTS 240

enum vram_report_note_kind {
    VRAM_NOTE_MISSING,       // something the recording does not contain
    VRAM_NOTE_CONTRADICTION, // parts of the recording that contradict each other
    VRAM_NOTE_ADVICE         // for `advice`: unused memory, and how to release it
};
// A remark about the recording itself.
struct vram_report_note {
    enum vram_report_note_kind kind;
    int64_t device;   // -1: the whole recording
    const char *code; // stable, for programs
    const char *text; // one sentence
};

// A setting as in the file: its value is JSON text.
struct vram_report_setting {
    const char *key;
    const char *value;
};

struct vram_report {
    const char *form;                  // "dict" or "segment_list"
    const char *generation;            // "G1" to "G7", or "list": detected by the keys alone
    const char *era;                   // PyTorch versions that write such files; "" if unknown
    const char *platform;              // "CUDA", "ROCm" or "Ascend", if frames or settings name it; otherwise ""
    const char *const *top_level_keys; // ascending
    size_t top_level_key_count;
    uint64_t annotations;
    uint64_t trace_lists; // device lists in the file, including empty ones
    bool has_settings;
    const struct vram_report_setting *settings;
    size_t setting_count;
    const char *odd_settings;                 // JSON text of allocator_settings if it is neither a dictionary nor None; otherwise NULL
    const struct vram_report_device *devices; // ascending
    size_t device_count;
    const struct vram_report_note *notes;
    size_t note_count;
    const struct vram_report_note *advice; // changes that are worthwhile although no request failed
    size_t advice_count;
};

// A zeroed struct selects the defaults.
struct vram_report_options {
    unsigned top;          // rows in lists of sites, stacks and longest lifetimes; 0: 10
    uint64_t memory_bytes; // of each device, if the recording does not say; 0: unknown
    // Take the innermost Python frame outside torch, otherwise the innermost frame, as the call site, even if that frame only recorded the
    // stack: this matches other tools. If false, such stacks get their most informative frame (docs/guides/profile.md).
    bool plain_sites;
};

// Computes the report in n log n of the number of events. options may be NULL. The recording is borrowed during the call. The caller owns
// *report: vram_report_destroy(). NO_HOST_MEMORY, LIMIT (more devices or events than can be numbered).
VRAM_API VRAM_NODISCARD enum vram_status vram_report_create(const struct vram_recording *recording,
                                                            const struct vram_report_options *options, struct vram_report **report,
                                                            struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_report_destroy(struct vram_report *report);

// Returns the device to report on if none is named: the one with the most out-of-memory events, then the highest peak, then a device before
// pinned host memory, then the most events. Part of the report; NULL if the report is NULL or has no device.
VRAM_API const struct vram_report_device *vram_report_worst_device(const struct vram_report *report);

// The caller's facts about the recording's file. Any member may be NULL or 0.
struct vram_report_source {
    const char *file;              // its name
    uint64_t bytes;                // its size, decompressed
    const struct vram_cure *cures; // settings that would have avoided an out-of-memory error (vram/oom.h), for the device and event in each
    size_t cure_count;
    const struct vram_paged_saving *savings; // what paged:True would have saved (vram/replay.h), for the device in each
    size_t saving_count;
    // Runs slow replays. vram_report_text() calls it once, before the first sentence that depends on cures or savings, after writing
    // everything before it. Returns a source with the results, which must outlive the call. NULL: this source is complete.
    const struct vram_report_source *(*replay)(void *user);
    void *replay_user;
};
// Writes the report as one JSON object with the keys of docs/reference/json.md. source may be NULL. IO if `write` returns false;
// NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_report_json(const struct vram_report *report, const struct vram_report_source *source,
                                                          vram_write write, void *user);
// Writes the report as text. style and source may be NULL. Otherwise as above.
VRAM_API VRAM_NODISCARD enum vram_status vram_report_text(const struct vram_report *report, const struct vram_report_source *source,
                                                          const struct vram_style *style, vram_write write, void *user);

// Return the JSON name of a block state or mismatch; NULL past the last.
VRAM_API const char *vram_report_state_name(size_t state);
VRAM_API const char *vram_report_mismatch_name(size_t mismatch);

#ifdef __cplusplus
}
#endif
#endif
