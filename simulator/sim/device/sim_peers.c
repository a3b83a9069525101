// sim_peers.c: which device may use the memory of which other.
#include "sim/sim.h"

bool vr_sim_are_peers(const struct vr_sim *sim, uint32_t device, uint32_t peer) {
    return vr_sim_options_peers(&sim->options, sim->devices[device].ordinal, sim->devices[peer].ordinal);
}

vr_cu_result vr_sim_device_can_access_peer(struct vr_sim *sim, int *can, int device, int peer) {
    if (can == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device) || !vr_sim_is_device(sim, peer)) return VR_CU_INVALID_DEVICE;
    *can = vr_sim_are_peers(sim, (uint32_t)device, (uint32_t)peer);
    return VR_CU_SUCCESS;
}

static size_t position_of(const struct vr_sim_context *context, uint64_t peer) {
    size_t at = 0;
    while (at < context->peer_count && context->peers[at] != peer) at++;
    return at;
}

static bool has_peer(const struct vr_sim_context *context, uint64_t peer) { return position_of(context, peer) < context->peer_count; }

// The current context and the one that `peer` names, which must be another.
static vr_cu_result find_pair(struct vr_sim *sim, uint64_t peer, struct vr_sim_context **context, struct vr_sim_context **other) {
    const vr_cu_result result = vr_sim_current(sim, context);
    if (result != VR_CU_SUCCESS) return result;
    *other = vr_sim_context_find(sim, peer);
    return *other == NULL || (*other)->inactive || *other == *context ? VR_CU_INVALID_CONTEXT : VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_enable_peer_access(struct vr_sim *sim, uint64_t peer, unsigned flags) {
    if (flags != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context, *other;
    const vr_cu_result result = find_pair(sim, peer, &context, &other);
    if (result != VR_CU_SUCCESS) return result;
    if (!vr_sim_are_peers(sim, context->device, other->device)) return VR_CU_PEER_ACCESS_UNSUPPORTED;
    if (has_peer(context, peer)) return VR_CU_PEER_ACCESS_ALREADY_ENABLED;
    if (VR_GROW(context, peers, context->peer_count + 1) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    context->peers[context->peer_count++] = peer;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_disable_peer_access(struct vr_sim *sim, uint64_t peer) {
    struct vr_sim_context *context, *other;
    const vr_cu_result result = find_pair(sim, peer, &context, &other);
    if (result != VR_CU_SUCCESS) return result;
    const size_t at = position_of(context, peer);
    if (at == context->peer_count) return VR_CU_PEER_ACCESS_NOT_ENABLED;
    context->peers[at] = context->peers[--context->peer_count];
    return VR_CU_SUCCESS;
}

bool vr_sim_reaches(const struct vr_sim *sim, uint32_t device, const struct vr_sim_range *range) {
    const struct vr_sim_context *owner = vr_sim_context_find(sim, range->owner);
    if (owner == NULL || owner->device == device) return true;
    for (uint32_t i = 0; i < sim->contexts.used; i++) {
        const struct vr_sim_context *context = (const struct vr_sim_context *)(const void *)vr_sim_slots_item(&sim->contexts, i);
        if (context->slot.live && context->device == device && has_peer(context, range->owner)) return true;
    }
    return false;
}
