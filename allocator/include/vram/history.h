// vram/history.h: the memory history: every event of an allocator, with stacks and words, in a ring or in a file.
//
// The counterpart of torch.cuda.memory._record_memory_history() and its companions. While no history is on, nothing of it costs anything.
// What was recorded comes out by vram/snapshot.h, or, streamed, lies in a file (vram/log.h). Without code: the environment variables
// VRAM_HISTORY and VRAM_ON_OOM (docs/guides/history.md), read by vram_create().
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

// The words of PyTorch's arguments `enabled` and `context`; its defaults are 0.
enum vram_history_level {
    VRAM_HISTORY_ALL,   // enabled: events and what live blocks know; context: stacks also of frees
    VRAM_HISTORY_ALLOC, // context: stacks of allocations, in the events too. As `enabled`: the same as all
    VRAM_HISTORY_STATE, // enabled: only what live blocks know (one event is kept); context: stacks of live blocks, none in the events
    VRAM_HISTORY_NONE,  // enabled: stops the history; context: no stacks
};
enum vram_history_stacks { VRAM_HISTORY_STACKS_ALL, VRAM_HISTORY_STACKS_PYTHON, VRAM_HISTORY_STACKS_C };

// All-zero means every default, which are PyTorch's.
struct vram_history_options {
    enum vram_history_level enabled;
    enum vram_history_level context;
    enum vram_history_stacks stacks;
    uint64_t max_entries;            // events kept per device, the oldest are overwritten; 0: 2^28
    uint32_t max_frames;             // per stack; 0: 128. Counts at the first start of an allocator's history
    uint64_t devices;                // bit n: device n is recorded; 0: all
    const char *const *skip_actions; // names of actions ("free_completed") that are not stored; borrowed for the call
    size_t skip_count;
    bool clear_history;        // forgets what an earlier start recorded
    bool compile_context;      // events carry vram_push_context()'s name; false: "N/A"
    bool own_annotations_only; // marks of the calling thread only; false: of every thread (global_record_annotations=True)
    bool no_device_memory;     // record_cuda=False
    struct vram_host *host; // record_pinned_host_memory=True: the pinned memory to record; NULL: none. Must outlive the allocator's history
    const char *file;       // events go into a new file (vram/log.h) without bound, not into the ring; NULL: the ring
    uint64_t max_file_bytes; // 0: no limit
};

// Turns the history on, or changes what is recorded; options may be NULL. What was recorded before stays unless clear_history. Any thread,
// also while others allocate: each event is recorded by the old or by the new options. INVALID_ARGUMENT (with a sentence) for an unknown
// action, IO for the file, NO_HOST_MEMORY; *error may be NULL; then nothing changed.
VRAM_API VRAM_NODISCARD enum vram_status vram_history_start(struct vram_allocator *allocator, const struct vram_history_options *options,
                                                            struct vram_error *error);
// The same with the words of the variable VRAM_HISTORY (docs/guides/history.md), all but `dump`; "off" and "" stop it. BAD_OPTION names the
// character.
VRAM_API VRAM_NODISCARD enum vram_status vram_history_start_text(struct vram_allocator *allocator, const char *text,
                                                                 struct vram_error *error);
// Turns it off, forgets the events and closes the file. Live blocks keep their stacks. IO when the file could not be finished.
VRAM_API VRAM_NODISCARD enum vram_status vram_history_stop(struct vram_allocator *allocator);

struct vram_history_counts {
    uint64_t events; // since the history was last cleared, all devices and pinned memory
    uint64_t kept;   // of them in the rings
    uint64_t lost;   // for lack of host memory, or because the file could not take them
    bool recording;  // now
};
VRAM_API void vram_get_history_counts(struct vram_allocator *allocator, struct vram_history_counts *counts);

// --- words of the calling thread: they stand in every event that it causes, on all allocators -----------------------------------------
// Each distinct text is kept until the process ends; beyond 2^20 of them, or 64 MiB, LIMIT, and nothing changes. NO_HOST_MEMORY.

// `user_metadata`; "" or NULL: none.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_metadata(const char *text);
// What is set. Always NUL-terminated; returns the length it wanted, without the NUL; text may be NULL for a capacity of 0.
VRAM_API size_t vram_metadata(char *text, size_t capacity);
// `category`: what memory is for ("weights"; "" or NULL: none); the innermost counts. At most 32 deep: LIMIT. A pop without push is
// ignored.
VRAM_API VRAM_NODISCARD enum vram_status vram_push_tag(const char *tag);
VRAM_API void vram_pop_tag(void);
// `compile_context`: the same for the region of compiled code that runs.
VRAM_API VRAM_NODISCARD enum vram_status vram_push_context(const char *name);
VRAM_API void vram_pop_context(void);
// The innermost of each. As vram_metadata().
VRAM_API size_t vram_tag(char *text, size_t capacity);
VRAM_API size_t vram_compile_context(char *text, size_t capacity);

// --- marks ------------------------------------------------------------------------------------------------------------------------------
// Writes a name onto the live block at `address` (it stands at the block in snapshots) and records the action `annotate`. Also without a
// history. INVALID_POINTER, LIMIT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_annotate(struct vram_allocator *allocator, uint64_t address, const char *text);
// Begin and end of something named, on the time line of `device`; a step of the program. Ignored while no history is on.
// LIMIT, NO_HOST_MEMORY, IO.
VRAM_API VRAM_NODISCARD enum vram_status vram_annotation_begin(struct vram_allocator *allocator, uint32_t device, const char *name);
VRAM_API VRAM_NODISCARD enum vram_status vram_annotation_end(struct vram_allocator *allocator, uint32_t device, const char *name);
VRAM_API VRAM_NODISCARD enum vram_status vram_step(struct vram_allocator *allocator, uint32_t device, const char *name);

// Something that a program says of this moment in pairs of its own, as PyTorch's recordAnnotation() takes them: a dictionary in
// `external_annotations`, with the device and the time. "name" and "stage" are what begin and end write; a history with a file keeps these
// two alone. Each distinct set of pairs counts as one text. INVALID_ARGUMENT without a pair, for a key that is empty, "device" or
// "time_us", and for characters below space; else as the marks above.
struct vram_pair {
    const char *key, *value;
};
VRAM_API VRAM_NODISCARD enum vram_status vram_annotation_pairs(struct vram_allocator *allocator, uint32_t device,
                                                               const struct vram_pair *pairs, size_t count);

// --- file names ----------------------------------------------------------------------------------------------------------------------
// Replaces %p (process), %r (rank: RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK; 0 without), %h (host), %t (time,
// 20260131T235959Z), %% (a percent sign). Always NUL-terminated; *length (may be NULL) is what it wanted, without the NUL.
// INVALID_ARGUMENT for another letter.
VRAM_API VRAM_NODISCARD enum vram_status vram_expand_path(const char *pattern, char *path, size_t capacity, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
