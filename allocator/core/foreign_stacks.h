// foreign_stacks.h: contexts of a client's event listener, as numbers that fit where blocks and segments keep their stack.
//
// One table of the process, because a thread keeps the number of its last call, on whatever allocator. An entry pairs the client's context
// with the history's stack of the same call; it has one reference of the context, and is counted itself: by the thread whose call it is, by
// blocks, by segments.
#ifndef VR_CORE_FOREIGN_STACKS_H
#define VR_CORE_FOREIGN_STACKS_H

#include "base/base.h"
#include "vram/events.h"

// Numbers with this bit are of this table; those without are the history's own.
enum { VR_FOREIGN_STACK = 1 << 30 };

VR_INLINE bool vr_stack_is_foreign(uint32_t number) { return (number & VR_FOREIGN_STACK) != 0; }

// Makes an entry with one reference, which takes the context over. Without memory for it: the history's number, and the context was
// released. owner: lives until vr_foreign_stacks_forget().
uint32_t vr_foreign_stack_make(const struct vram_event_listener *owner, void *context, uint32_t history_stack);
void vr_foreign_stack_keep(uint32_t number);
void vr_foreign_stack_drop(uint32_t number);
// The client's context, borrowed while the caller has a reference or what it looks at does; NULL for a number that is not of this table.
// whose: only if it is that client's, whose functions know it; NULL: anybody's.
void *vr_foreign_stack_context(uint32_t number, const struct vram_event_listener *whose);
// The same with a reference more for a client.
void *vr_foreign_stack_retain(uint32_t number);
// The history's stack of the call; the number itself where it is not of this table.
uint32_t vr_history_stack(uint32_t number);
// Releases what is left of an owner's: threads that have its numbers still keep empty entries.
void vr_foreign_stacks_forget(const struct vram_event_listener *owner);

// The same for a number that may be of either kind.
VR_INLINE uint32_t vr_stack_keep(uint32_t number) {
    if (VR_UNLIKELY(vr_stack_is_foreign(number))) vr_foreign_stack_keep(number);
    return number;
}
VR_INLINE void vr_stack_drop(uint32_t number) {
    if (VR_UNLIKELY(vr_stack_is_foreign(number))) vr_foreign_stack_drop(number);
}

#endif
