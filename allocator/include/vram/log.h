// vram/log.h: a recording file (.vram), written event by event while the program runs, and read while it grows.
//
// The file is append-only; docs/reference/formats/recording.md describes it. It consists of blocks of events. Each block is readable by
// itself and carries the strings, frames, stacks and modules that it is the first to name. An appended event is in the file's pages before
// the call returns, so a killed program loses nothing that the system still writes back. Full blocks are packed. vram_recording_read()
// reads the whole file, even while it grows. All functions on a log may be called from any thread; one lock keeps the order of the calls.
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

// A zeroed struct means every default.
struct vram_log_options {
    uint64_t block_events; // events per packed block; 0: 4096
    uint64_t max_bytes;    // file size at which recording stops (further calls return LIMIT, the file stays valid); 0: no limit
    const char *producer;  // the program that made the file ("vram run"); NULL: "vram"
    bool replace;          // replace an existing file; otherwise the call fails with IO
    // Host memory for distinct strings, frames and stacks; new ones beyond it get LIMIT and no id. 0: 1 GiB.
    uint64_t table_bytes;
    bool serialized; // the caller serializes all calls under a lock of its own; the log then takes no lock
};

// Creates the file at `path`. The caller owns *log and ends it with vram_log_close(). IO with the reason in *error, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_create(const char *path, const struct vram_log_options *options, struct vram_log **log,
                                                         struct vram_error *error);
// Packs the rest, writes the index and closes the file. NULL is ignored. IO if something could not be written; the log is destroyed even
// then.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_close(struct vram_log *log);
// For a child after fork(): drops the log without touching the file, which stays the parent's.
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

// One event. Ids are those of this log; 0 always means none.
struct vram_log_event {
    uint64_t address;    // OOM: the driver's free bytes
    uint64_t size_bytes; // as in PyTorch's snapshots: blocks as requested, segments in full
    uint64_t stream;
    uint64_t time_ns; // since the epoch; 0: now
    struct vram_pool_id pool;
    uint32_t device;
    uint32_t action; // enum vram_log_action
    uint32_t thread; // the system's thread id; 0: unknown
    uint32_t stack;
    uint32_t context;  // string: compile context
    uint32_t metadata; // string: the user's metadata
    uint32_t tag;      // string: purpose or kind of the memory
};

// The next functions give ids. Equal contents get equal ids. The bytes are copied. NO_HOST_MEMORY, IO, LIMIT.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_string(struct vram_log *log, const char *bytes, size_t length, uint32_t *id);
// A resolved frame: strings and a line (0: unknown).
VRAM_API VRAM_NODISCARD enum vram_status vram_log_frame(struct vram_log *log, uint32_t name, uint32_t filename, int64_t line, uint32_t *id);
// A program file or shared library: its path and build id (hexadecimal text; "" or NULL: no id).
VRAM_API VRAM_NODISCARD enum vram_status vram_log_module(struct vram_log *log, const char *path, const char *build_id, uint32_t *id);
// A frame of machine code, to be resolved later: the offset of the return address from the module's load address.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_code(struct vram_log *log, uint32_t module, uint64_t offset, uint32_t *frame);
// A stack of `count` frames, innermost first.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_stack(struct vram_log *log, const uint32_t *frames, size_t count, uint32_t *id);

// Appends events. INVALID_ARGUMENT for an id that the log did not give; IO, LIMIT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_append(struct vram_log *log, const struct vram_log_event *events, size_t count);
// Appends a FREE_REQUESTED and its FREE_COMPLETED, which differ only in the action. Same statuses; INVALID_ARGUMENT is also returned for an
// event with another action.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_append_free(struct vram_log *log, const struct vram_log_event *event);
// Appends a mark: "START" and "END" of a named range, or "STEP" for a step of the program. time_ns 0: now.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_annotation(struct vram_log *log, uint32_t device, const char *stage, const char *name,
                                                             uint64_t time_ns);
// Appends a setting in force; `json` is its value as JSON text. The last value of a key counts.
VRAM_API VRAM_NODISCARD enum vram_status vram_log_setting(struct vram_log *log, const char *key, const char *json);

// The current state: every segment and its blocks, of all devices. A reader uses the last state; without one (the program was killed) it
// derives the state from the events.
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
    const struct vram_log_block *blocks; // ascending; ranges that no block covers are free
    size_t block_count;
};
VRAM_API VRAM_NODISCARD enum vram_status vram_log_state(struct vram_log *log, const struct vram_log_segment *segments, size_t count);

// Packs the events so far into a block, for a reader that follows the file.
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
// Each event is delivered once, in the order of the file, as soon as it is appended: from the file's open tail, and not again from the
// block that the tail becomes. The writer need not cooperate and may be killed at any time. One thread at a time.

struct vram_follow;

// Opens the file for its events at or after `from_ns` (since the epoch; 0: all). Of earlier blocks only the headers and dictionaries are
// read. The caller owns *follow and ends it with vram_follow_close(). IO, BAD_INPUT for another kind of file, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_follow_open(const char *path, uint64_t from_ns, struct vram_follow **follow,
                                                          struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_follow_close(struct vram_follow *follow);

// Gets the next events, at most `capacity`; *count 0: no events at present. Never waits. BAD_INPUT for a damaged file, IO, LIMIT,
// NO_HOST_MEMORY; *error (may be NULL) has the message.
VRAM_API VRAM_NODISCARD enum vram_status vram_follow_next(struct vram_follow *follow, struct vram_log_event *events, size_t capacity,
                                                          size_t *count, struct vram_error *error);
// Returns whether all events were delivered and no more will come: the writer has closed the file, or its process, if on this system, is
// gone.
VRAM_API bool vram_follow_ended(const struct vram_follow *follow);

// Returns the string for an id of a delivered event; "" for an unknown id. Borrowed until the next vram_follow_next().
VRAM_API const char *vram_follow_string(const struct vram_follow *follow, uint32_t id);
// Writes the frames of a stack, innermost first, at most `capacity`, and returns their full number. A frame of machine code has the name
// "0x" plus its offset in the module whose path is `filename`. Strings as above.
VRAM_API size_t vram_follow_stack(const struct vram_follow *follow, uint32_t stack, struct vram_frame *frames, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
