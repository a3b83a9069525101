// vram/report.h: what a recording says: peaks, lifetimes, where reserved memory went, why memory ran out, and what is missing.
//
// A report is plain data, computed once from a recording by pure functions; it owns all it points to and never changes. Bytes of
// allocations are what the program asked for (requested), as a history records them, unless a sentence says otherwise. Event indices
// count from 0 in the device's own list; -1 means "before the first event". Times are microseconds since the epoch.
#ifndef VRAM_REPORT_H
#define VRAM_REPORT_H

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;
struct vram_cure;
struct vram_paged_saving;
struct vram_report_demand;

// So many things of so many bytes together.
struct vram_report_sum {
    uint64_t count;
    uint64_t bytes;
};

// A call site ("file:line:function"), a call stack (16 hex digits) or an action of the history, and what belongs to it.
struct vram_report_group {
    const char *name; // bytes as the recording has them (not checked for control characters), NUL-terminated
    uint64_t bytes;
    uint64_t count;
};

// An allocation that was made and freed inside the history.
struct vram_report_lifetime {
    uint64_t birth_event;
    uint64_t death_event;
    uint64_t address;
    uint64_t size_bytes;
    int64_t elapsed_us; // between the two events, where has_time
    bool has_time;
    const char *site;
};

// How the history and the final state disagree. X(constant, JSON name, what happened)
#define VRAM_REPORT_ANOMALIES(X)                                                                                                           \
    X(END_BLOCK_NOT_LIVE, end_block_not_live_in_replay, "blocks of the final state that are not live at the end of the history")           \
    X(END_LIVE_NOT_BLOCK, end_replay_live_not_block, "allocations live at the end of the history, without a block")                        \
    X(ALLOC_ON_LIVE, replay_alloc_on_live, "allocations at an address that is live already")                                               \
    X(FREE_NOT_LIVE, replay_free_not_live, "frees of an address that is not live")                                                         \
    X(FREE_SIZE_DIFFERS, replay_free_size_differs, "frees of another size than the allocation's")                                          \
    X(UNDO_ALLOC_NOT_LIVE, undo_alloc_not_live, "allocations that are neither freed later nor in the final state")                         \
    X(UNDO_ALLOC_SIZE_DIFFERS, undo_alloc_size_differs, "allocations of another size than their free or block")                            \
    X(UNDO_FREE_ALREADY_LIVE, undo_free_already_live, "addresses freed twice without an allocation between")

enum vram_report_anomaly {
#define VRAM_REPORT_ANOMALY(constant, name, text) VRAM_ANOMALY_##constant,
    VRAM_REPORT_ANOMALIES(VRAM_REPORT_ANOMALY)
#undef VRAM_REPORT_ANOMALY
        VRAM_ANOMALY_COUNT
};

// What was live over the history, for one of two notions. Allocated: from alloc to free_requested. Active: from alloc to
// free_completed, when the block can be used again.
struct vram_report_live {
    struct vram_report_sum start; // before event 0
    struct vram_report_sum peak;
    int64_t peak_event;                 // the first event after which the total equals the peak
    struct vram_report_sum end;         // after the last event
    struct vram_report_sum final_state; // by the final blocks: the same as end in a consistent recording
    uint64_t anomalies[VRAM_ANOMALY_COUNT];
    bool consistent;                       // all anomalies are 0
    const struct vram_report_group *sites; // largest at the peak
    size_t site_count;
    uint64_t distinct_sites;
    const struct vram_report_group *stacks; // largest at the peak
    size_t stack_count;
    uint64_t distinct_stacks;
    struct vram_report_sum born_and_freed; // by where the ends of their lives lie
    struct vram_report_sum born_and_kept;
    struct vram_report_sum inherited_and_freed;
    struct vram_report_sum inherited_and_kept;
    const struct vram_report_lifetime *longest;
    size_t longest_count;
    uint64_t largest_bytes; // largest allocation made in the history
};

// Memory held from the driver over the history.
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

// Where the bytes held from the driver were at the end. All but `unaccounted` add up to the sizes of all blocks.
struct vram_report_usage {
    uint64_t reserved_bytes;
    uint64_t requested_bytes;  // asked for, in allocated blocks
    uint64_t rounding_bytes;   // given on top of that
    uint64_t pending_bytes;    // freed, waiting for other streams
    uint64_t free_block_bytes; // free blocks in segments that are partly in use
    uint64_t cached_bytes;     // segments that are wholly free: empty_cache would release them
    int64_t unaccounted_bytes; // reserved minus the sum of all blocks; 0 in a sound recording
    uint64_t largest_free_bytes;
    uint64_t free_blocks;
    uint64_t page_bytes; // whole free pages in free_block_bytes of expandable segments: empty_cache would release these too
};

enum vram_report_kind { VRAM_REPORT_KIND_UNKNOWN, VRAM_REPORT_KIND_SMALL, VRAM_REPORT_KIND_LARGE };

// The segments of one stream, pool and size class at the end: free memory of one row serves requests of that row only.
struct vram_report_pool {
    int64_t stream;
    uint64_t pool_id[2]; // 0, 0: the default pool
    enum vram_report_kind kind;
    uint64_t segments;
    uint64_t expandable_segments;
    uint64_t reserved_bytes;
    uint64_t allocated_bytes; // sizes of the blocks in use
    uint64_t pending_bytes;
    uint64_t free_bytes;
    uint64_t free_blocks;
    uint64_t largest_free_bytes;
    uint64_t cached_bytes; // part of free_bytes, in wholly free segments
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
    const char *name; // "" where it is not known; printable ASCII
    uint64_t bytes;   // UINT64_MAX: not known
};

// Who held what lies outside (vram_report_oom.outside_bytes), as far as the recording says. context, module, driver, other and unknown
// bytes add up to outside_bytes.
struct vram_report_accounts {
    bool has_context;        // context_bytes was measured
    uint64_t context_bytes;  // of this process's contexts
    bool has_modules;        // module_bytes was measured
    uint64_t module_bytes;   // of this process's modules: code and variables
    bool has_self;           // NVML told what this process held in all
    uint64_t driver_bytes;   // with has_self: what else the driver took for this process; contexts where they were not measured
    uint64_t at_start_bytes; // in use on the device when the process had just made its first context; UINT64_MAX: not known
    bool has_processes;      // NVML told the processes of the device
    bool apart;              // this process could be told apart from the others; else it may be one of them
    const char *why;         // without has_processes: why; "" where that is not known either
    uint64_t other_bytes;    // of other processes
    const struct vram_report_process *processes; // most bytes first
    size_t process_count;
    uint64_t left_out;      // processes beyond those
    uint64_t unknown_bytes; // nobody said whose
};

// An out-of-memory event. The picture at that moment is rebuilt from the final state and the events after it; sizes of blocks that
// are gone by the end are their requests, rounded to 512 bytes.
struct vram_report_oom {
    uint64_t event;
    uint64_t size_bytes;        // the request, rounded
    uint64_t device_free_bytes; // by the driver
    bool has_device_free;
    int64_t stream;
    bool has_time;
    int64_t time_us;
    bool has_picture;       // what follows is known (only for the last VRAM_REPORT_OOM_PICTURES events)
    uint64_t segment_bytes; // what the driver would have been asked for
    uint64_t reserved_bytes;
    uint64_t allocated_bytes; // requested bytes in use
    uint64_t pending_bytes;   // freed by then, not yet reusable
    uint64_t free_bytes;      // free in segments, all streams and pools
    uint64_t largest_free_bytes;
    uint64_t usable_bytes; // free where the request could look: its stream, size class and pool
    uint64_t usable_largest_bytes;
    uint64_t usable_pieces;
    uint64_t other_stream_bytes; // free for other streams, in the request's pool
    uint64_t other_pool_bytes;   // free for the other size class, on the same stream and in the same pool
    uint64_t private_pool_bytes; // free in other pools than the request's
    uint64_t device_total_bytes; // 0: neither the recording nor the options say
    uint64_t outside_bytes;      // where the total is known: of the device, neither free nor held by what was recorded
    uint64_t limit_bytes;        // what the process was allowed to hold; 0: no limit is known
    uint64_t room_bytes;         // what the recorded program could hold in all: what it held and what was free, within the limit
    uint64_t pin_bytes;          // the least that would have to go so that enough free memory comes together; 0: no such blocks
    uint64_t pin_blocks;         // in so many blocks
    const char *pin_site;        // who asked for the largest of them; NULL: no such blocks
    const char *held_site;       // of what was free but out of reach, or waited, and is the cause: who asked for it; NULL: not known
    const struct vram_report_accounts *accounts; // who held what lies outside; NULL: the recording does not say
    const struct vram_report_group *libraries;   // in recordings of `vram run`: who asked for what was allocated then, most first
    size_t library_count;
    const struct vram_report_group *holders; // call sites of what was allocated then, largest first, at most 5
    size_t holder_count;
    enum vram_report_oom_cause cause;
    const char *site;   // who asked
    const char *text;   // the cause as a sentence
    const char *advice; // what could have helped, "" if the recording does not tell
    // Of the last one of a device: what the memory in use was made of, and what would lower it (vram/demand.h); NULL: nothing can be said.
    const struct vram_report_demand *demand;
    // Of pinned host memory, whose "driver" is the system: device_free_bytes is what was available, device_total_bytes all there is.
    bool is_host;
    bool of_own_pool;           // of a whole program: asked from a pool of the driver's that the program made
    uint64_t driver_pool_bytes; // free in the driver's own pools (cudaMallocAsync), in pieces or not yet passed by streams
    bool has_held_stream;       // OTHER_STREAMS: `held_stream` has the largest segment of what lay free
    bool held_stream_is_idle;   // and nothing was asked for on it any more before the request failed
    int64_t held_stream;
};
#define VRAM_REPORT_OOM_PICTURES 16

#define VRAM_REPORT_STATES     5
#define VRAM_REPORT_MISMATCHES 5

struct vram_report_state {
    uint64_t count;
    uint64_t bytes;
    uint64_t requested_bytes;
};

// One device: those without events and without segments are left out.
struct vram_report_device {
    uint32_t device;
    bool is_host; // pinned host memory, which has the number after the last device's

    uint64_t events;
    uint64_t events_with_frames;
    uint64_t max_frames;
    const struct vram_report_group *actions; // name, events, sum of their sizes; by name
    size_t action_count;
    const int64_t *trace_streams; // ascending
    size_t trace_stream_count;
    bool has_times;
    bool times_monotonic;
    int64_t first_time_us;
    int64_t last_time_us;
    const struct vram_report_oom *ooms; // in the order of events
    size_t oom_count;

    uint64_t segments;
    uint64_t segments_of_kind[3]; // by enum vram_report_kind
    uint64_t expandable_segments;
    const int64_t *segment_streams;
    size_t segment_stream_count;
    const uint64_t (*pool_ids)[2]; // distinct, ascending, where the recording names them
    size_t pool_id_count;
    uint64_t blocks;
    struct vram_report_state states[VRAM_REPORT_STATES]; // by vram_report_state_name()
    struct vram_report_sum inactive;
    uint64_t largest_inactive_bytes;
    struct vram_report_sum wholly_inactive;      // segments
    uint64_t mismatches[VRAM_REPORT_MISMATCHES]; // segments whose blocks do not fit their own figures, by vram_report_mismatch_name()
    struct vram_report_usage usage;
    const struct vram_report_pool *pools; // reserved bytes descending
    size_t pool_count;

    struct vram_report_reserved reserved;
    struct vram_report_live allocated;
    struct vram_report_live active;
    const struct vram_report_demand *demand; // where nothing failed and the caller's memory is less than the peak: as of an out of memory
    bool expandable;                         // segments were made of pages, in the history, at the end or by the settings
    bool whole_program; // a recording of `vram run`: what libraries asked the driver for; blocks and segments are one thing there
    const struct vram_report_group *libraries; // of what was allocated at the peak, who asked; only in recordings of `vram run`
    size_t library_count;
    const struct vram_report_group *kinds; // the same by kind of memory ("device", "managed", "async", ...)
    size_t kind_count;
    const struct vram_report_point *timeline; // at most VRAM_REPORT_POINTS, equal runs of events
    size_t timeline_count;
    struct vram_report_sum waiting;          // freed, and waited for other streams, when most did
    uint64_t waiting_event;                  // after which that was
    const char *waiting_site;                // who allocated most of it; NULL: nothing waited
    bool has_waited_for;                     // the recording has one other stream than the one that most was allocated on: it is
    int64_t waited_for;                      // this one
    bool python;                             // some stack has Python frames
    const char *platform;                    // as that of the report
    bool windows;                            // frames name paths of Windows, where PyTorch ignores expandable_segments (as of 2.9)
    struct vram_report_sum private_inactive; // part of wholly_inactive: segments of private pools, which empty_cache() leaves to them
};
#define VRAM_REPORT_POINTS 240

enum vram_report_note_kind {
    VRAM_NOTE_MISSING,       // something the recording does not contain
    VRAM_NOTE_CONTRADICTION, // parts of the recording that do not fit together
    VRAM_NOTE_ADVICE         // of `advice`: what is held in vain, and what gives it back
};
// A remark about the recording itself.
struct vram_report_note {
    enum vram_report_note_kind kind;
    int64_t device;   // -1: the whole recording
    const char *code; // stable, for programs
    const char *text; // one sentence
};

// A setting as found: its value is JSON text.
struct vram_report_setting {
    const char *key;
    const char *value;
};

struct vram_report {
    const char *form;                  // "dict" or "segment_list"
    const char *generation;            // "G1" to "G7", or "list": told by the keys alone
    const char *era;                   // PyTorch versions that write such files, as far as known; "" if not
    const char *platform;              // "CUDA", "ROCm" or "Ascend", where frames or settings name it; "" if nothing tells
    const char *const *top_level_keys; // ascending
    size_t top_level_key_count;
    uint64_t annotations;
    uint64_t trace_lists; // device lists in the file, also empty ones
    bool has_settings;
    const struct vram_report_setting *settings;
    size_t setting_count;
    const char *odd_settings;                 // as JSON, where allocator_settings is neither a dictionary nor None; else NULL
    const struct vram_report_device *devices; // ascending
    size_t device_count;
    const struct vram_report_note *notes;
    size_t note_count;
    const struct vram_report_note *advice; // what needs no failed request to be worth a change
    size_t advice_count;
};

// All-zero means every default.
struct vram_report_options {
    unsigned top;          // rows of the lists of sites, stacks and longest lived; 0: 10
    uint64_t memory_bytes; // of each device, where the recording does not say; 0: not known
    // A call site is the innermost Python frame outside torch, else the innermost frame, also where that only recorded the stack: what
    // other tools make of the same file. Without it such a stack is told by the frame that says most of it (docs/guides/profile.md).
    bool plain_sites;
};

// Computes the report; n log n in the number of events. options may be NULL. The recording is only borrowed during the call.
// *report is given to the caller: vram_report_destroy(). NO_HOST_MEMORY, LIMIT (more devices or events than can be told apart).
VRAM_API VRAM_NODISCARD enum vram_status vram_report_create(const struct vram_recording *recording,
                                                            const struct vram_report_options *options, struct vram_report **report,
                                                            struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_report_destroy(struct vram_report *report);

// The device that an answer is about where none is named: the one with the most requests that ran out of memory, else the highest peak; of
// equals a device before pinned host memory, then the one with more events. Part of the report; NULL where that is NULL or has no device.
VRAM_API const struct vram_report_device *vram_report_worst_device(const struct vram_report *report);

// What the reader of the file knows about it. Any member may be NULL or 0.
struct vram_report_source {
    const char *file;              // how it is called
    uint64_t bytes;                // its size, decompressed
    const struct vram_cure *cures; // what would have let it fit (vram/oom.h), for the device and event each one names
    size_t cure_count;
    const struct vram_paged_saving *savings; // what paged:True would have saved (vram/replay.h), for the device each one names
    size_t saving_count;
    // For replays that take their time: vram_report_text() calls it once, before the first sentence that cures or savings decide, when what
    // comes before that has been written. Returns a source with them, which must outlive the call. NULL: this one has all there are.
    const struct vram_report_source *(*replay)(void *user);
    void *replay_user;
};
// The report as one JSON object, keys as in docs/reference/json.md. source may be NULL. IO when `write` returned false; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_report_json(const struct vram_report *report, const struct vram_report_source *source,
                                                          vram_write write, void *user);
// The report for people. style and source may be NULL. As above.
VRAM_API VRAM_NODISCARD enum vram_status vram_report_text(const struct vram_report *report, const struct vram_report_source *source,
                                                          const struct vram_style *style, vram_write write, void *user);

// Names under which things appear in JSON; NULL past the last.
VRAM_API const char *vram_report_state_name(size_t state);
VRAM_API const char *vram_report_mismatch_name(size_t mismatch);

#ifdef __cplusplus
}
#endif
#endif
