// vram/log.h: a recording file (.vram), written event by event while the program runs, and read while it grows.
//
// The file is append-only and described in docs/reference/formats/recording.md: blocks of events, each readable by itself, with the
// strings, frames, stacks and modules that they are the first to name. What has been appended is in the file's pages before the call
// returns, so that a program that is killed loses nothing that the system still writes back; blocks that are full are packed.
// vram_recording_read() reads it whole, also while it grows. All functions on a log may be called from any thread; it has one lock and
// keeps the order of the calls.
#ifndef VRAM_LOG_H
#define VRAM_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/allocator.h"
#include "vram/stack.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_log;

// All-zero means every default.
struct vram_log_options {
    uint64_t block_events; // events per packed block; 0: 4096
    uint64_t max_bytes;    // the file's size at which recording stops (further calls give LIMIT, what is there stays whole); 0: none
    const char *producer;  // what made the file ("vram run"); NULL: "vram"
    bool replace;          // a file that is there is replaced; else the call fails with IO
    uint64_t table_bytes;  // of host memory for distinct strings, frames and stacks; what is new beyond gets LIMIT and no id; 0: 1 GiB
    bool serialized;       // the caller lets one call at a time in, under a lock of its own: the log then takes none
};

// Makes the file at `path`. *log is given to the caller: vram_log_close(). IO with the reason in *error, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_create(const char *path, const struct vram_log_options *options, struct vram_log **log,
                                                         struct vram_error *error);
// Packs what is left, writes the index and closes the file. NULL is ignored. IO when something could not be written; the log is gone all
// the same.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_close(struct vram_log *log);
// In a child after fork(): forgets the log without touching the file, which stays the parent's.
VRAM_API void vram_log_abandon(struct vram_log *log);

// The actions of a history; the values are those of the file. X(CONSTANT, "name in PyTorch's snapshots")
#define VRAM_LOG_ACTIONS(X)                                                                                                                \
    X(ALLOC, "alloc")                                                                                                                      \
    X(FREE_REQUESTED, "free_requested")                                                                                                    \
    X(FREE_COMPLETED, "free_completed")                                                                                                    \
    X(FREE, "free")                                                                                                                        \
    X(SEGMENT_ALLOC, "segment_alloc")                                                                                                      \
    X(SEGMENT_FREE, "segment_free")                                                                                                        \
    X(SEGMENT_MAP, "segment_map")                                                                                                          \
    X(SEGMENT_UNMAP, "segment_unmap")                                                                                                      \
    X(SNAPSHOT, "snapshot")                                                                                                                \
    X(OOM, "oom")                                                                                                                          \
    X(USER_DEFINED, "user_defined")                                                                                                        \
    X(ANNOTATE, "annotate")

enum vram_log_action {
#define VRAM_LOG_ACTION_ENUM(name, text) VRAM_LOG_##name,
    VRAM_LOG_ACTIONS(VRAM_LOG_ACTION_ENUM)
#undef VRAM_LOG_ACTION_ENUM
        VRAM_LOG_ACTION_COUNT
};

#define VRAM_LOG_HOST UINT32_MAX // `device` of pinned host memory

// One event. Ids are those of this log; 0 is none everywhere.
struct vram_log_event {
    uint64_t address;    // OOM: the driver's free bytes
    uint64_t size_bytes; // as in PyTorch's snapshots: what was asked for; of segments what they have
    uint64_t stream;
    uint64_t time_ns; // since the epoch; 0: now
    struct vram_pool_id pool;
    uint32_t device;
    uint32_t action; // enum vram_log_action
    uint32_t thread; // the system's number; 0: none
    uint32_t stack;
    uint32_t context;  // string: compile context
    uint32_t metadata; // string: the user's words
    uint32_t tag;      // string: what the memory is for, or its kind
};

// Ids. Equal contents give equal ids. The bytes are copied. NO_HOST_MEMORY, IO, LIMIT.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_string(struct vram_log *log, const char *bytes, size_t length, uint32_t *id);
// A frame with a name: strings, and a line (0: unknown).
VRAM_API VRAM_NODISCARD enum vram_status vram_log_frame(struct vram_log *log, uint32_t name, uint32_t filename, int64_t line, uint32_t *id);
// A program file or shared library: its path and build id (hexadecimal text; "" or NULL for none).
VRAM_API VRAM_NODISCARD enum vram_status vram_log_module(struct vram_log *log, const char *path, const char *build_id, uint32_t *id);
// A frame of machine code that is resolved later: the offset of the return address from the module's load address.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_code(struct vram_log *log, uint32_t module, uint64_t offset, uint32_t *frame);
// A stack of `count` frames, innermost first.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_stack(struct vram_log *log, const uint32_t *frames, size_t count, uint32_t *id);

// Appends events. INVALID_ARGUMENT for an id that the log has not given out; IO, LIMIT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_append(struct vram_log *log, const struct vram_log_event *events, size_t count);
// Appends a FREE_REQUESTED and its FREE_COMPLETED, which differ in the action alone. The same statuses; INVALID_ARGUMENT also for an event
// of another action.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_append_free(struct vram_log *log, const struct vram_log_event *event);
// A mark: "START" and "END" of something named, or "STEP" for a step of the program. time_ns 0: now.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_annotation(struct vram_log *log, uint32_t device, const char *stage, const char *name,
                                                             uint64_t time_ns);
// A setting in force; `json` is its value as JSON text. The last one of a key counts.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_setting(struct vram_log *log, const char *key, const char *json);

// The state at this moment: every segment and its blocks, of all devices. A reader takes the last one; where there is none (the program
// was killed) it is made from the events.
struct vram_log_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes;
    uint32_t stack;
    uint32_t state; // enum vram_block_state
};
struct vram_log_segment {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    uint64_t counter; // order of registration; 0: unknown
    struct vram_pool_id pool;
    uint32_t device;
    uint32_t stack;
    bool small;
    bool expandable;
    const struct vram_log_block *blocks; // ascending, gap-free, or fewer: what no block covers is free
    size_t block_count;
};
VRAM_API VRAM_NODISCARD enum vram_status vram_log_state(struct vram_log *log, const struct vram_log_segment *segments, size_t count);

// Packs the events so far into a block, for a reader that follows.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_flush(struct vram_log *log);

struct vram_log_counts {
    uint64_t events;
    uint64_t bytes; // of the file
    uint64_t stacks;
};
VRAM_API void vram_get_log_counts(struct vram_log *log, struct vram_log_counts *counts);

// --- reading while it grows --------------------------------------------------------------------------------------------------------------
// Reads a recording file (.vram) while another program writes it.
//
// Each event is given once, in the order of the file, as soon as it is appended: from the file's open tail, and later never again from the
// block that the tail becomes. Nothing is asked of the writer, which may be killed at any time. One thread at a time.

struct vram_follow;

// Opens the file for its events at or after `from_ns` (since the epoch; 0: all). Blocks that lie before it are stepped over by their
// headers: of them only the dictionaries are read. *follow is given to the caller: vram_follow_close(). IO, BAD_INPUT for another kind of
// file, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_follow_open(const char *path, uint64_t from_ns, struct vram_follow **follow,
                                                          struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_follow_close(struct vram_follow *follow);

// Gives the next events, at most `capacity`; *count 0: there are none at present. Never waits. BAD_INPUT for a damaged file, IO, LIMIT,
// NO_HOST_MEMORY; *error (may be NULL) says what.
VRAM_API VRAM_NODISCARD enum vram_status vram_follow_next(struct vram_follow *follow, struct vram_log_event *events, size_t capacity,
                                                          size_t *count, struct vram_error *error);
// Whether every event was given and no more will come: the writer has closed the file, or its process, if that was on this system, is gone.
VRAM_API bool vram_follow_ended(const struct vram_follow *follow);

// The string of an id of an event that was given; "" for one that is none. Borrowed until the next vram_follow_next().
VRAM_API const char *vram_follow_string(const struct vram_follow *follow, uint32_t id);
// The frames of a stack, innermost first: at most `capacity`, and returns how many there are. Machine code has the name "0x" and its offset
// in the module that `filename` is the path of. Strings as above.
VRAM_API size_t vram_follow_stack(const struct vram_follow *follow, uint32_t stack, struct vram_frame *frames, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
