// vram/verify.h: a sanitizer for device memory: the option verify:True (docs/guides/verify.md).
//
// With the option, every block has a redzone before it and after it. Memory outside of blocks is filled with a poison byte, and a
// freed block waits in a quarantine before it is reused. The allocator reads redzones and quarantined blocks back and reports changes. It
// also reports invalid frees. Each report has the call stacks of the allocation and of the free. It goes to the program's handler or,
// without one, to the standard error stream; then the process aborts, unless the option verify_halt:False is set. These are the only texts
// that the library prints, and the only calls that end the process.
//
// The option is read by vram_create() only. Without it no call takes longer, and the functions below return UNSUPPORTED.
#ifndef VRAM_VERIFY_H
#define VRAM_VERIFY_H

#include "vram/allocator.h"
#include "vram/stack.h"

#ifdef __cplusplus
extern "C" {
#endif

// The byte in redzones and freed memory. Repeated, it is NaN in 16-bit floating point and a large negative number in the other formats.
#define VRAM_POISON_BYTE 0xFD

// X(CONSTANT, name in reports, sentence)
#define VRAM_FAULT_MAP(X)                                                                                                                  \
    X(OVERFLOW, "buffer-overflow", "something wrote past the end of the block")                                                            \
    X(UNDERFLOW, "buffer-underflow", "something wrote before the start of the block")                                                      \
    X(USE_AFTER_FREE, "use-after-free", "the block was used after it was freed")                                                           \
    X(DOUBLE_FREE, "double-free", "the block was freed twice")                                                                             \
    X(INNER_FREE, "inner-free", "the freed address is inside a block, not at its first byte")                                              \
    X(FOREIGN_FREE, "foreign-free", "the block belongs to another allocator")                                                              \
    X(UNKNOWN_FREE, "unknown-free", "no allocator handed the address out")                                                                 \
    X(LEAK, "leak", "blocks were never freed")

enum vram_fault_kind {
#define VRAM_FAULT_ENUM(constant, name, sentence) VRAM_FAULT_##constant,
    VRAM_FAULT_MAP(VRAM_FAULT_ENUM)
#undef VRAM_FAULT_ENUM
        VRAM_FAULT_KINDS
};

struct vram_fault {
    enum vram_fault_kind kind;
    uint32_t device;
    uint64_t address;       // first wrong byte, or the address that the call got
    uint64_t wrong_bytes;   // from the first to the last wrong byte; 0: the fault is a call
    uint64_t block_address; // 0: there is no block
    uint64_t block_bytes;   // as requested; LEAK: of all blocks with this stack
    uint64_t blocks;        // LEAK: their number; otherwise 1, or 0 without a block
    uint64_t stream;        // the block's own stream
    // Stacks of `stacks`; 0: none. `current` is that of the call that found the fault.
    uint32_t allocated, freed, current;
    struct vram_stacks *stacks; // borrowed from the allocator
    const char *text;           // the whole report with resolved stacks, several lines, with a newline at the end; borrowed for the call
};

// Called on the thread that found the fault, possibly under locks of the allocator: must not call the allocator.
typedef void (*vram_fault_handler)(const struct vram_fault *fault, void *user);
// Passes later faults to the handler, which decides what happens: nothing is printed, and the process continues. NULL: prints and halts
// again. UNSUPPORTED without verify:True.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_set_fault_handler(struct vram_allocator *allocator,
                                                                                  vram_fault_handler handler, void *user);

// Checks the redzones of all live blocks and the bytes of all quarantined ones now, after a wait for their streams. Reports each fault once
// and repairs the poison. *faults (may be NULL) is the number found by this call. During a capture nothing is checked. UNSUPPORTED without
// verify:True.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_verify(struct vram_allocator *allocator, uint64_t *faults);

struct vram_verify_counts {
    uint64_t faults;            // reported so far
    uint64_t live_blocks;       // handed out and not freed
    uint64_t unguarded_blocks;  // of these, without redzones that can be checked: used by graphs, or the driver keeps no bytes
    uint64_t quarantined_bytes; // in freed blocks that are not yet reusable
};
// UNSUPPORTED without verify:True.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_get_verify_counts(struct vram_allocator *allocator,
                                                                                  struct vram_verify_counts *counts);

// Returns the name of a kind ("double-free"). Never NULL. Any thread.
VRAM_API VRAM_EXPERIMENTAL const char *vram_fault_name(enum vram_fault_kind kind);

#ifdef __cplusplus
}
#endif
#endif
