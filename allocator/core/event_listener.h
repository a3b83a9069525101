// event_listener.h: the client's listener (vram/events.h) inside the allocator.
#ifndef VR_CORE_EVENT_LISTENER_H
#define VR_CORE_EVENT_LISTENER_H

#include "core/foreign_stacks.h"
#include "core/record.h"

struct vr_client_listener;

// Gives every context back and frees the listener. At the allocator's end, while devices and blocks are there.
void vr_client_listener_end(struct vram_allocator *allocator);

// The current call's stack, kept for a block or a segment; and its end there: what remains is the history's.
VR_INLINE uint32_t vr_current_stack_kept(void) { return vr_stack_keep(vr_current_stack); }
VR_INLINE uint32_t vr_stack_end(uint32_t number) {
    if (!vr_stack_is_foreign(number)) return number;
    const uint32_t history = vr_history_stack(number);
    vr_foreign_stack_drop(number);
    return history;
}
// The calling thread is in another call now.
VR_INLINE void vr_current_stack_set(uint32_t number) {
    vr_stack_drop(vr_current_stack);
    vr_current_stack = number;
}

#endif
