// vram/stack.h: call stacks that are cheap to capture: addresses only, each distinct stack stored once, names resolved later.
//
// A stack is a number; 0 is "no stack". Capturing one walks the frames of the calling thread, looks them up in a table, and returns the
// number of an equal stack or a new number. Machine code is walked by the unwind tables of its modules, whose rules are cached per address,
// or by frame pointers where a module has no tables; Python by reading the interpreter's own frames, if the process has an interpreter
// (CPython 3.8 to 3.15, default builds). Nothing is formatted. For a known stack nothing is allocated and no lock is taken, except briefly
// the loader's if the stack runs through libraries that may be unloaded. See docs/guides/stacks.md.
//
// All functions may be called from any thread, with or without Python's lock, and in the child of a fork(), but not from signal handlers
// that may interrupt one of them.
#ifndef VRAM_STACK_H
#define VRAM_STACK_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_log;
struct vram_stacks;

// The frames to capture.
enum vram_stack_kind { VRAM_STACK_NONE, VRAM_STACK_PYTHON, VRAM_STACK_C, VRAM_STACK_ALL /* both, merged as PyTorch merges them */ };

// A zeroed struct means every default.
struct vram_stack_options {
    uint32_t max_frames; // per stack, innermost kept; 0: 128; at most 1024
};

// Creates a table of stacks. The caller owns *stacks and ends it with vram_stacks_destroy(). NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_stacks_create(const struct vram_stack_options *options, struct vram_stacks **stacks);
// NULL is ignored. No call on the table may be in progress.
VRAM_API void vram_stacks_destroy(struct vram_stacks *stacks);

// Captures the caller's stack without its `skip` innermost frames of machine code (0: the caller of this function is the innermost). Python
// frames are not skipped. Never fails: returns 0 if nothing can be captured (no memory, VRAM_STACK_NONE, a Python-only request on a thread
// without Python). Safe under the caller's locks, as long as the interpreter does not take them.
VRAM_API uint32_t vram_stack_take(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip);
// Captures the stack from the caller of an outer function of this thread, which has not returned and keeps a frame pointer: `frame_address`
// is __builtin_frame_address(0) in that function. A library that is many calls deep can thus skip its own frames without walking them.
// NULL: as vram_stack_take() without a skip.
VRAM_API uint32_t vram_stack_take_at(struct vram_stacks *stacks, enum vram_stack_kind kind, const void *frame_address);

// A resolved frame. Strings are borrowed from the table and live as long as it does.
struct vram_frame {
    const char *name;     // function; "": unknown
    const char *filename; // source file, or the module's path if the source is unknown; "": unknown
    int64_t line;         // 0: unknown
};
// Resolves the frames of a stack, innermost first. Inlined functions are included, so there may be more frames than were captured. Writes
// at most `capacity` frames and returns their full number. The first call for an address reads the module's symbols.
VRAM_API size_t vram_stack_frames(struct vram_stacks *stacks, uint32_t stack, struct vram_frame *frames, size_t capacity);

// Gets the id of the stack in `log`. Writes new frames and stacks into the log, with machine code unresolved (module and offset). A table
// serves one log at a time; another log starts over. Returns the statuses of vram_log_stack().
VRAM_API VRAM_NODISCARD enum vram_status vram_stack_log(struct vram_stacks *stacks, uint32_t stack, struct vram_log *log, uint32_t *id);
// Returns the module ("libtorch_cuda.so") of the innermost frame outside the modules named in `skip`; "" if none exists. Borrowed.
VRAM_API const char *vram_stack_module(struct vram_stacks *stacks, uint32_t stack, const char *const *skip, size_t skip_count);

// Calls the function on a separate stack of 256 KiB with all signals blocked, for callers whose stack may be small: signal handlers have 8
// KiB. Functions of this header and of vram/log.h already do so for rare, deep work. The function must return. Without memory for a stack,
// or when a sanitizer watches the thread's own stack, the caller's stack is used.
VRAM_API void vram_stack_spare(void (*function)(void *argument), void *argument);

struct vram_stacks_counts {
    uint64_t stacks; // distinct stacks
    uint64_t frames; // distinct frames
    uint64_t bytes;  // host memory
};
VRAM_API void vram_get_stacks_counts(struct vram_stacks *stacks, struct vram_stacks_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
