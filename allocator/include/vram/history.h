// vram/history.h: records every event of an allocator, with stacks and words, in a ring or in a file.
//
// The counterpart of torch.cuda.memory._record_memory_history() and its companions. A history that is off costs nothing. Read the ring
// through vram/snapshot.h; a streamed history is a file (vram/log.h). Without code: set the environment variables VRAM_HISTORY and
// VRAM_ON_OOM (docs/guides/history.md), which vram_create() reads.
#ifndef VRAM_HISTORY_H
#define VRAM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/allocator.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_host;

// The values of PyTorch's arguments `enabled` and `context`; 0 is PyTorch's default.
enum vram_history_level {
    VRAM_HISTORY_ALL,   // enabled: events and the facts of live blocks; context: stacks, including those of frees
    VRAM_HISTORY_ALLOC, // context: stacks of allocations, in the events too; enabled: same as all
    VRAM_HISTORY_STATE, // enabled: only the facts of live blocks (one event is kept); context: stacks of live blocks, none in events
    VRAM_HISTORY_NONE,  // enabled: stops the history; context: no stacks
};
enum vram_history_stacks { VRAM_HISTORY_STACKS_ALL, VRAM_HISTORY_STACKS_PYTHON, VRAM_HISTORY_STACKS_C };

// A zeroed struct means every default; the defaults are PyTorch's.
struct vram_history_options {
    enum vram_history_level enabled;
    enum vram_history_level context;
    enum vram_history_stacks stacks;
    uint64_t max_entries;            // events kept per device; the oldest are overwritten; 0: 2^28
    uint32_t max_frames;             // per stack; 0: 128; only the first start of an allocator's history sets it
    uint64_t devices;                // bit n: device n is recorded; 0: all
    const char *const *skip_actions; // names of actions ("free_completed") that are not stored; borrowed for the call
    size_t skip_count;
    bool clear_history;        // forget the events of an earlier start
    bool compile_context;      // events carry vram_push_context()'s name; false: "N/A"
    bool own_annotations_only; // marks of the calling thread only; false: of every thread (global_record_annotations=True)
    bool no_device_memory;     // record_cuda=False
    // record_pinned_host_memory=True: the pinned memory to record; NULL: none. Must outlive the allocator's history.
    struct vram_host *host;
    // Events go into a new file (vram/log.h), without bound, instead of the ring; NULL: the ring.
    const char *file;
    uint64_t max_file_bytes; // 0: no limit
};

// Turns the history on, or changes what is recorded; options may be NULL. Earlier events stay unless clear_history is set. Any thread, also
// while others allocate: each event is recorded by either the old or the new options. INVALID_ARGUMENT (with a message) for an unknown
// action, IO for the file, NO_HOST_MEMORY; on failure nothing changes. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_history_start(struct vram_allocator *allocator, const struct vram_history_options *options,
                                                            struct vram_error *error);
// Starts the history from a text in the language of the variable VRAM_HISTORY (docs/guides/history.md), without `dump`; "off" and "" stop
// it. BAD_OPTION gives the position in the text.
VRAM_API VRAM_NODISCARD enum vram_status vram_history_start_text(struct vram_allocator *allocator, const char *text,
                                                                 struct vram_error *error);
// Turns the history off, forgets its events and closes the file. Live blocks keep their stacks. IO if the file could not be finished.
VRAM_API VRAM_NODISCARD enum vram_status vram_history_stop(struct vram_allocator *allocator);

struct vram_history_counts {
    uint64_t events; // since the history was last cleared; all devices and pinned memory
    uint64_t kept;   // of these, still in the rings
    uint64_t lost;   // not recorded, because host memory ran out or the file could not take them
    bool recording;  // now
};
VRAM_API void vram_get_history_counts(struct vram_allocator *allocator, struct vram_history_counts *counts);

// --- metadata of the calling thread: added to every event that it causes, on all allocators -------------------------------------------
// Each distinct text is kept until the process ends. LIMIT, with nothing changed, beyond 2^20 texts or 64 MiB; NO_HOST_MEMORY.

// Sets `user_metadata`; "" or NULL removes it.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_metadata(const char *text);
// Copies the current metadata. Always NUL-terminated; returns the full length, without the NUL; text may be NULL if capacity is 0.
VRAM_API size_t vram_metadata(char *text, size_t capacity);
// Sets `category`, the purpose of memory ("weights"; "" or NULL: none); the innermost tag applies. LIMIT beyond a depth of 32. A pop
// without a push is ignored.
VRAM_API VRAM_NODISCARD enum vram_status vram_push_tag(const char *tag);
VRAM_API void vram_pop_tag(void);
// Sets `compile_context`, the region of compiled code that is running, in the same way.
VRAM_API VRAM_NODISCARD enum vram_status vram_push_context(const char *name);
VRAM_API void vram_pop_context(void);
// Copy the innermost tag and compile context, as vram_metadata() does.
VRAM_API size_t vram_tag(char *text, size_t capacity);
VRAM_API size_t vram_compile_context(char *text, size_t capacity);

// --- marks ------------------------------------------------------------------------------------------------------------------------------
// Names the live block at `address` (snapshots show the name with the block) and records the action `annotate`. Works without a history,
// too. INVALID_POINTER, LIMIT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_annotate(struct vram_allocator *allocator, uint64_t address, const char *text);
// Mark the begin or end of a named range, or a step of the program, on the timeline of `device`. Ignored while the history is off. LIMIT,
// NO_HOST_MEMORY, IO.
VRAM_API VRAM_NODISCARD enum vram_status vram_annotation_begin(struct vram_allocator *allocator, uint32_t device, const char *name);
VRAM_API VRAM_NODISCARD enum vram_status vram_annotation_end(struct vram_allocator *allocator, uint32_t device, const char *name);
VRAM_API VRAM_NODISCARD enum vram_status vram_step(struct vram_allocator *allocator, uint32_t device, const char *name);

// Records key-value pairs for this moment, as PyTorch's recordAnnotation() does: a dictionary in `external_annotations`, with the device
// and the time. Begin and end marks write "name" and "stage"; a history with a file keeps only these two keys. Each distinct set of pairs
// counts as one text. INVALID_ARGUMENT for an empty set, for a key that is empty, "device" or "time_us", and for characters below space;
// otherwise statuses of the marks above.
struct vram_pair {
    const char *key, *value;
};
VRAM_API VRAM_NODISCARD enum vram_status vram_annotation_pairs(struct vram_allocator *allocator, uint32_t device,
                                                               const struct vram_pair *pairs, size_t count);

// --- file names ----------------------------------------------------------------------------------------------------------------------
// Expands a pattern: %p (process), %r (rank: RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK; else 0), %h (host), %t (time,
// 20260131T235959Z), %% (a percent sign). Always NUL-terminated; *length (may be NULL) is the full length, without the NUL.
// INVALID_ARGUMENT for another letter.
VRAM_API VRAM_NODISCARD enum vram_status vram_expand_path(const char *pattern, char *path, size_t capacity, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
