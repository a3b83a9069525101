// event_listener.h: the client's event listener (vram/events.h) inside the allocator.
#ifndef VR_CORE_EVENT_LISTENER_H
#define VR_CORE_EVENT_LISTENER_H

#include "core/foreign_stacks.h"
#include "core/record.h"

struct vr_client_listener;

// Releases every context and frees the listener. Call it when the allocator is destroyed, while its devices and blocks exist.
void vr_client_listener_end(struct vram_allocator *allocator);

// vr_current_stack_kept() returns the current call's stack with a reference for a block or segment. vr_stack_end() drops that reference and
// returns the history's stack, which remains.
VR_INLINE uint32_t vr_current_stack_kept(void) { return vr_stack_keep(vr_current_stack); }
VR_INLINE uint32_t vr_stack_end(uint32_t number) {
    if (!vr_stack_is_foreign(number)) return number;
    const uint32_t history = vr_history_stack(number);
    vr_foreign_stack_drop(number);
    return history;
}
// Sets the stack of the calling thread's current call, taking over the caller's reference. Drops that of the previous call.
VR_INLINE void vr_current_stack_set(uint32_t number) {
    vr_stack_drop(vr_current_stack);
    vr_current_stack = number;
}

#endif
