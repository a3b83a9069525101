// sim_context_life.c: how contexts begin and end, and what waits for all that one has under way. What lives in a context ends with it, so
// this file calls those of all models, and none of them calls it.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_arrays.h"
#include "sim/memory/sim_managed.h"
#include "sim/memory/sim_pools.h"
#include "sim/modules/sim_modules.h"
#include "sim/streams/sim_callbacks.h"

// Lets a context that has nothing, new or reset, take its memory and have its default stream.
static vr_cu_result begin_context(struct vr_sim *sim, uint64_t context) {
    struct vr_sim_context *begun = vr_sim_context_find(sim, context);
    struct vr_sim_device *device = &sim->devices[begun->device];
    uint32_t legacy;
    if (!vr_sim_has_room(device, device->context_bytes)) return VR_CU_OUT_OF_MEMORY;
    if (vr_sim_stream_make(sim, context, VR_SIM_STREAM_LEGACY, &legacy) != VR_CU_SUCCESS) return VR_CU_OUT_OF_MEMORY;
    device->used_bytes += device->context_bytes;
    begun->legacy = legacy;
    begun->inactive = false;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_context_create(struct vr_sim *sim, uint32_t device, bool primary, uint64_t *context) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->contexts, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_context *made = (struct vr_sim_context *)(void *)vr_sim_slots_item(&sim->contexts, index);
    made->device = device;
    made->primary = primary;
    made->settings = vr_sim_context_defaults(sim, primary ? sim->devices[device].primary_flags : 0);
    const uint64_t handle = vr_sim_slots_handle(&sim->contexts, index);
    const vr_cu_result result = begin_context(sim, handle);
    if (result == VR_CU_SUCCESS)
        *context = handle;
    else
        vr_sim_slots_give(&sim->contexts, index);
    return result;
}

// All that lives in the context, and the memory that it takes.
static void end_context(struct vr_sim *sim, uint64_t context) {
    vr_sim_wait_context(sim, context);
    vr_sim_end_events(sim, context);
    vr_sim_end_streams(sim, context);
    vr_sim_end_modules(sim, context);
    vr_sim_end_arrays(sim, context);
    vr_sim_end_managed(sim, context);
    vr_sim_free_allocations(sim, context);
    vr_sim_pools_end_context(sim, context);
    vr_sim_close_imports(sim, context);
    vr_sim_free_hosts(sim, context);
    struct vr_sim_context *ended = vr_sim_context_find(sim, context);
    if (ended->primary) vr_sim_pool_imports_end(sim, ended->device);
    sim->devices[ended->device].used_bytes -= sim->devices[ended->device].context_bytes;
    ended->peer_count = 0;
    ended->inactive = true;
}

void vr_sim_context_destroy(struct vr_sim *sim, uint64_t context) {
    vr_sim_callback_wait(sim, sim->callbacks.posted);
    if (vr_sim_context_find(sim, context) == NULL) return; // another thread was faster
    struct vr_sim_context *ended = vr_sim_context_find(sim, context);
    if (!ended->inactive) end_context(sim, context);
    free(ended->peers);
    vr_sim_slots_give(&sim->contexts, vr_sim_slots_index(&sim->contexts, ended));
}

void vr_sim_primary_reset(struct vr_sim *sim, uint32_t device) {
    const uint64_t primary = sim->devices[device].primary;
    if (primary != 0 && !vr_sim_context_find(sim, primary)->inactive) end_context(sim, primary);
}

vr_cu_result vr_sim_primary_ctx_retain(struct vr_sim *sim, uint64_t *context, int device) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    struct vr_sim_device *owner = &sim->devices[device];
    vr_cu_result result = VR_CU_SUCCESS;
    if (owner->primary == 0)
        result = vr_sim_context_create(sim, (uint32_t)device, true, &owner->primary);
    else if (vr_sim_context_find(sim, owner->primary)->inactive)
        result = begin_context(sim, owner->primary);
    if (result != VR_CU_SUCCESS) return result;
    owner->primary_references++;
    *context = owner->primary;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_primary_ctx_release(struct vr_sim *sim, int device) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    struct vr_sim_device *owner = &sim->devices[device];
    if (owner->primary_references == 0) return VR_CU_INVALID_CONTEXT;
    owner->primary_references--;
    if (owner->primary_references == 0 && owner->primary != 0) {
        vr_sim_context_destroy(sim, owner->primary);
        owner->primary = 0;
    }
    return VR_CU_SUCCESS;
}

// A value that a stream of the context waits for, or NULL.
static const struct vr_sim_hold *hold_in(const struct vr_sim *sim, uint64_t context) {
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        const bool held = stream->slot.live && stream->context == context && stream->hold.width != 0;
        if (held && !vr_sim_hold_is_over(sim, &stream->hold)) return &stream->hold;
    }
    return NULL;
}

static void wait_for_values(struct vr_sim *sim, uint64_t context) {
    for (const struct vr_sim_hold *hold = hold_in(sim, context); hold != NULL; hold = hold_in(sim, context)) vr_sim_hold_wait(sim, hold);
}

vr_cu_result vr_sim_ctx_synchronize(struct vr_sim *sim, int unused) {
    (void)unused;
    struct vr_sim_context *context;
    vr_sim_callback_wait(sim, sim->callbacks.posted);
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    const uint64_t handle = vr_sim_context_handle(sim, context);
    result = vr_sim_context_for_waiting(sim, handle);
    if (result != VR_CU_SUCCESS) return result;
    wait_for_values(sim, handle);
    if (vr_sim_context_find(sim, handle) == NULL) return VR_CU_CONTEXT_IS_DESTROYED; // by another thread
    vr_sim_wait_context(sim, handle);
    vr_sim_pools_synchronized(sim);
    return VR_CU_SUCCESS;
}

// As if the context were the current one for the time of the call; none is the current one.
vr_cu_result vr_sim_ctx_synchronize_of(struct vr_sim *sim, uint64_t context) {
    if (context == 0) return vr_sim_ctx_synchronize(sim, 0);
    vr_cu_result result = vr_sim_ctx_push(sim, context);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_sim_ctx_synchronize(sim, 0);
    vr_sim_ctx_drop(sim);
    return result;
}
