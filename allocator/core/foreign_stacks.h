// foreign_stacks.h: gives numbers to the contexts that a client's event listener returns. Blocks and segments store such a number instead
// of a stack.
//
// The table is global, because a thread keeps the number of its last call on any allocator. An entry pairs the client's context, of which
// it holds one reference, with the history's stack of the same call. The entry itself is reference-counted by the thread that made the
// call, by blocks and by segments.
#ifndef VR_CORE_FOREIGN_STACKS_H
#define VR_CORE_FOREIGN_STACKS_H

#include "base/base.h"
#include "vram/events.h"

// Numbers with this bit are in this table; the others are the history's own.
enum { VR_FOREIGN_STACK = 1 << 30 };

VR_INLINE bool vr_stack_is_foreign(uint32_t number) { return (number & VR_FOREIGN_STACK) != 0; }

// Makes an entry with one reference, which takes over the context. Without memory, releases the context and returns the history's number.
// `owner` must live until vr_foreign_stacks_forget().
uint32_t vr_foreign_stack_make(const struct vram_event_listener *owner, void *context, uint32_t history_stack);
void vr_foreign_stack_keep(uint32_t number);
void vr_foreign_stack_drop(uint32_t number);
// Returns the client's context, borrowed while the caller, or the block or segment it reads, has a reference; NULL if the number is not in
// this table. whose: returns only contexts of this client; NULL: of any.
void *vr_foreign_stack_context(uint32_t number, const struct vram_event_listener *whose);
// Like vr_foreign_stack_context() for any client, but adds a reference to the context for the client.
void *vr_foreign_stack_retain(uint32_t number);
// Returns the history's stack of the call, or the number itself if it is not in this table.
uint32_t vr_history_stack(uint32_t number);
// Releases the contexts that an owner still has. Threads that have their numbers keep empty entries.
void vr_foreign_stacks_forget(const struct vram_event_listener *owner);

// Add or drop a reference if the number is in this table; otherwise do nothing.
VR_INLINE uint32_t vr_stack_keep(uint32_t number) {
    if (VR_UNLIKELY(vr_stack_is_foreign(number))) vr_foreign_stack_keep(number);
    return number;
}
VR_INLINE void vr_stack_drop(uint32_t number) {
    if (VR_UNLIKELY(vr_stack_is_foreign(number))) vr_foreign_stack_drop(number);
}

#endif
