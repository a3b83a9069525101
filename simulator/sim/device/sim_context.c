// sim_context.c: contexts, and which one is current in which thread.
#include <stdatomic.h>

#include "sim/sim.h"

uint64_t vr_sim_context_handle(const struct vr_sim *sim, const struct vr_sim_context *context) {
    return vr_sim_slots_handle(&sim->contexts, vr_sim_slots_index(&sim->contexts, context));
}

// A number of the calling thread that no other thread of the process ever has, unlike ids that the system reuses.
static uint64_t this_thread_number(void) {
    static atomic_uint_fast64_t last;
    static _Thread_local uint64_t number;
    if (number == 0) number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number;
}

static struct vr_sim_thread *add_thread(struct vr_sim *sim, uint64_t number) {
    if (VR_GROW(sim, threads, sim->thread_count + 1) != VRAM_OK) return NULL;
    struct vr_sim_thread *thread = &sim->threads[sim->thread_count++];
    *thread = (struct vr_sim_thread){.number = number};
    return thread;
}

struct vr_sim_thread *vr_sim_this_thread(struct vr_sim *sim) {
    // Where the thread was found last; true for as long as the instance lives, as records never move down.
    static _Thread_local struct {
        uint64_t serial;
        size_t index;
    } last;
    if (VR_LIKELY(last.serial == sim->serial)) return &sim->threads[last.index];
    uint64_t number = this_thread_number();
    size_t index = 0;
    while (index < sim->thread_count && sim->threads[index].number != number) index++;
    if (index == sim->thread_count && add_thread(sim, number) == NULL) return NULL;
    last.serial = sim->serial;
    last.index = index;
    return &sim->threads[index];
}

vr_cu_result vr_sim_current(struct vr_sim *sim, struct vr_sim_context **context) {
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    if (thread->context_count == 0) return VR_CU_INVALID_CONTEXT;
    struct vr_sim_context *found = vr_sim_context_find(sim, thread->contexts[thread->context_count - 1]);
    if (found == NULL || found->inactive) return VR_CU_CONTEXT_IS_DESTROYED;
    *context = found;
    return VR_CU_SUCCESS;
}

// The calling thread's current context as vr_sim_ctx_get_current() found it last; serial 0: not known. Only the thread itself changes it.
static _Thread_local struct { uint64_t serial, context; } cached;

bool vr_sim_ctx_cached(const struct vr_sim *sim, uint64_t *context) {
    if (cached.serial != sim->serial) return false;
    *context = cached.context;
    return true;
}

void vr_sim_ctx_drop(struct vr_sim *sim) {
    cached.serial = 0;
    vr_sim_this_thread(sim)->context_count--;
}

vr_cu_result vr_sim_ctx_push(struct vr_sim *sim, uint64_t context) {
    cached.serial = 0;
    if (vr_sim_context_find(sim, context) == NULL) return VR_CU_INVALID_CONTEXT;
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    size_t needed = thread->context_count + 1;
    if (VR_GROW(thread, contexts, needed) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    thread->contexts[thread->context_count++] = context;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_current(struct vr_sim *sim, uint64_t *context) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    *context = thread->context_count == 0 ? 0 : thread->contexts[thread->context_count - 1];
    cached.context = *context;
    cached.serial = sim->serial;
    return VR_CU_SUCCESS;
}

// Replaces the top of the thread's stack; no context (0) takes the top away.
vr_cu_result vr_sim_ctx_set_current(struct vr_sim *sim, uint64_t context) {
    cached.serial = 0;
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    if (context != 0 && vr_sim_context_find(sim, context) == NULL) return VR_CU_INVALID_CONTEXT;
    if (context == 0) {
        if (thread->context_count > 0) vr_sim_ctx_drop(sim);
        return VR_CU_SUCCESS;
    }
    if (thread->context_count == 0) return vr_sim_ctx_push(sim, context);
    thread->contexts[thread->context_count - 1] = context;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_device(struct vr_sim *sim, int *device) {
    if (device == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *device = (int)context->device;
    return result;
}
