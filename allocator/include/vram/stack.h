// vram/stack.h: call stacks that are cheap to take: addresses only, each distinct stack kept once, names found later.
//
// A stack is a number. Taking one walks the frames of the calling thread (machine code by the unwind tables of its modules, whose rules
// are kept per address, by frame pointers where there are none; Python by reading the interpreter's own frames when one is in the process:
// CPython 3.8 to 3.13, default builds), looks them up in a table and gives back the number of an equal stack, or a new one. Number 0 is
// "no stack". Nothing is formatted; for a stack seen before, nothing is allocated and no lock is taken but, where a stack runs through
// libraries that could be unloaded, the loader's for a moment. docs/guides/stacks.md says more.
//
// All functions may be called from any thread, whether or not it holds Python's lock, and in the child of a fork(). Not from signal
// handlers that may interrupt one of them.
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

// Which frames are taken.
enum vram_stack_kind { VRAM_STACK_NONE, VRAM_STACK_PYTHON, VRAM_STACK_C, VRAM_STACK_ALL /* both, merged as PyTorch merges them */ };

// All-zero means every default.
struct vram_stack_options {
    uint32_t max_frames; // per stack, innermost kept; 0: 128, at most 1024
};

// A table of stacks. *stacks is given to the caller: vram_stacks_destroy(). NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_stacks_create(const struct vram_stack_options *options, struct vram_stacks **stacks);
// NULL is ignored. Not while a call on it is under way.
VRAM_API void vram_stacks_destroy(struct vram_stacks *stacks);

// The stack of the caller, without its `skip` innermost frames of machine code (0: the caller of this function is the innermost); frames of
// Python are not skipped. Gives 0 where nothing can be taken (no memory, VRAM_STACK_NONE, a Python-only request on a thread without
// Python). Never fails. Safe under the caller's locks as long as they are not taken by the interpreter.
VRAM_API uint32_t vram_stack_take(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip);
// The same from the caller of a function of this thread that has not returned and keeps a frame pointer: `frame_address` is what
// __builtin_frame_address(0) says in that function. A library that is many calls deep takes its user's stack so without walking over its
// own frames. NULL: as vram_stack_take() without a skip.
VRAM_API uint32_t vram_stack_take_at(struct vram_stacks *stacks, enum vram_stack_kind kind, const void *frame_address);

// A frame, resolved. Strings are borrowed from the table and live as long as it.
struct vram_frame {
    const char *name;     // function; "" unknown
    const char *filename; // source file, or the module's path where no source is known; "" unknown
    int64_t line;         // 0 unknown
};
// Resolves the frames of a stack, innermost first, inlined functions included (they make it more than were taken). Gives at most `capacity`
// and returns how many there are. The first call for an address costs a look into the module's symbols.
VRAM_API size_t vram_stack_frames(struct vram_stacks *stacks, uint32_t stack, struct vram_frame *frames, size_t capacity);

// The id that `log` has for the stack; writes what is new into the log, machine code unresolved (module and offset). A table
// may be used with one log at a time; another log starts anew. As vram_log_stack().
VRAM_API VRAM_NODISCARD enum vram_status vram_stack_log(struct vram_stacks *stacks, uint32_t stack, struct vram_log *log, uint32_t *id);
// The module ("libtorch_cuda.so") that the innermost frame outside the modules named in `skip` lies in; "" when there is none. Borrowed.
VRAM_API const char *vram_stack_module(struct vram_stacks *stacks, uint32_t stack, const char *const *skip, size_t skip_count);

// Calls the function on a stack of 256 KiB of its own, with all signals held back, for callers that may run on a small one: handlers of
// signals have 8 KiB. What is seldom done and deep in this header and vram/log.h goes there by itself. The function must return. Where
// there is no memory for a stack, or a sanitizer watches the thread's own, it is called on the caller's.
VRAM_API void vram_stack_spare(void (*function)(void *argument), void *argument);

struct vram_stacks_counts {
    uint64_t stacks; // distinct
    uint64_t frames; // distinct
    uint64_t bytes;  // of host memory
};
VRAM_API void vram_get_stacks_counts(struct vram_stacks *stacks, struct vram_stacks_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
