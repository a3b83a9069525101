// sim_stream_attributes.c: what programs ask and set of streams that orders nothing here.
#include "sim/graphs/sim_graphs.h"

enum { ACCESS_POLICY_WINDOW = 1, SYNCHRONIZATION_POLICY = 3, MEMORY_DOMAIN_MAP = 9, MEMORY_DOMAIN = 10 };

// The place of an attribute of VR_SIM_STREAM_ATTRIBUTES, or -1.
static int attribute_place(int attribute) {
    static const int kept[VR_SIM_STREAM_ATTRIBUTES] = {ACCESS_POLICY_WINDOW, SYNCHRONIZATION_POLICY, MEMORY_DOMAIN_MAP, MEMORY_DOMAIN};
    for (int i = 0; i < VR_SIM_STREAM_ATTRIBUTES; i++)
        if (kept[i] == attribute) return i;
    return -1;
}

vr_cu_result vr_sim_stream_get_attribute(struct vr_sim *sim, uint64_t stream, int attribute, void *value) {
    struct vr_sim_stream *found;
    const int place = attribute_place(attribute);
    if (value == NULL || (place < 0 && attribute != VR_CU_LAUNCH_ATTRIBUTE_PRIORITY)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (place < 0)
        memcpy(value, &found->priority, sizeof found->priority);
    else
        memcpy(value, found->attributes[place], sizeof found->attributes[place]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_set_attribute(struct vr_sim *sim, uint64_t stream, int attribute, const void *value) {
    struct vr_sim_stream *found;
    const int place = attribute_place(attribute);
    if (value == NULL || (place < 0 && attribute != VR_CU_LAUNCH_ATTRIBUTE_PRIORITY)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (place < 0)
        memcpy(&found->priority, value, sizeof found->priority);
    else
        memcpy(found->attributes[place], value, sizeof found->attributes[place]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_copy_attributes(struct vr_sim *sim, uint64_t to, uint64_t from) {
    struct vr_sim_stream *source, *target;
    vr_cu_result result = vr_sim_stream_find(sim, from, &source);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, to, &target);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, from, &source); // the search may have moved it
    if (result == VR_CU_SUCCESS && target != source) memcpy(target->attributes, source->attributes, sizeof target->attributes);
    return result;
}

vr_cu_result vr_sim_stream_get_flags(struct vr_sim *sim, uint64_t stream, unsigned *flags) {
    struct vr_sim_stream *found;
    if (flags == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *flags = found->kind == VR_SIM_STREAM_NON_BLOCKING ? VR_CU_STREAM_NON_BLOCKING : 0;
    return result;
}

vr_cu_result vr_sim_stream_get_id(struct vr_sim *sim, uint64_t stream, uint64_t *id) {
    struct vr_sim_stream *found;
    if (id == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *id = found->serial;
    return result;
}

vr_cu_result vr_sim_stream_get_device(struct vr_sim *sim, uint64_t stream, int *device) {
    struct vr_sim_stream *found;
    if (device == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *device = (int)vr_sim_context_find(sim, found->context)->device;
    return result;
}

// There are no green contexts.
vr_cu_result vr_sim_stream_get_ctx_v2(struct vr_sim *sim, uint64_t stream, uint64_t *context, uint64_t *green) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_get_ctx(sim, stream, context);
    if (result == VR_CU_SUCCESS && green != NULL) *green = 0;
    return result;
}
