// sim_kernel_attributes.c: launch attributes of kernel nodes, and what a device says of the memory of graphs.
#include <stdlib.h>

#include "sim/graphs/sim_node_params.h"
#include "sim/modules/sim_launch.h"

static const struct vr_sim_kernel_payload *payload_of(const struct vr_sim_node *node) {
    if (node == NULL || node->work.type != VR_CU_GRAPH_NODE_TYPE_KERNEL) return NULL;
    return (const struct vr_sim_kernel_payload *)(const void *)node->work.payload;
}

// What was never set is all zero.
vr_cu_result vr_sim_graph_kernel_node_get_attribute(struct vr_sim *sim, uint64_t node, int attribute, void *value) {
    const struct vr_sim_kernel_payload *payload = payload_of(vr_sim_node_find(sim, node));
    if (payload == NULL || value == NULL || attribute <= 0 || attribute >= VR_CU_LAUNCH_ATTRIBUTE_MOST) return VR_CU_INVALID_VALUE;
    const struct vr_cu_launch_attribute none = {0}, *found = &none;
    for (uint32_t i = 0; i < payload->launch.attribute_count; i++)
        if (payload->launch.attributes[i].id == attribute) found = &payload->launch.attributes[i];
    memcpy(value, &found->value, sizeof found->value);
    return VR_CU_SUCCESS;
}

// A node's launch with other attributes.
static vr_cu_result set_attributes(struct vr_sim *sim, struct vr_sim_node *node, const struct vr_cu_launch_attribute *attributes,
                                   uint32_t count) {
    struct vr_sim_launch launch = payload_of(node)->launch;
    struct vr_sim_work work;
    launch.attributes = attributes;
    launch.attribute_count = count;
    const vr_cu_result result = vr_sim_launch_work(sim, node->work.device, &launch, &work);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_payload_drop(node->work.payload);
    node->work.payload = work.payload;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_kernel_node_set_attribute(struct vr_sim *sim, uint64_t node, int attribute, const void *value) {
    struct vr_sim_node *found = vr_sim_node_find(sim, node);
    const struct vr_sim_kernel_payload *payload = payload_of(found);
    if (payload == NULL || value == NULL || attribute <= 0 || attribute >= VR_CU_LAUNCH_ATTRIBUTE_MOST) return VR_CU_INVALID_VALUE;
    struct vr_cu_launch_attribute attributes[VR_CU_LAUNCH_ATTRIBUTE_MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < payload->launch.attribute_count && count < VR_CU_LAUNCH_ATTRIBUTE_MOST - 1; i++)
        if (payload->launch.attributes[i].id != attribute) attributes[count++] = payload->launch.attributes[i];
    attributes[count] = (struct vr_cu_launch_attribute){.id = attribute};
    memcpy(&attributes[count].value, value, sizeof attributes[count].value);
    return set_attributes(sim, found, attributes, count + 1);
}

vr_cu_result vr_sim_graph_kernel_node_copy_attributes(struct vr_sim *sim, uint64_t to, uint64_t from) {
    struct vr_sim_node *target = vr_sim_node_find(sim, to);
    const struct vr_sim_kernel_payload *source = payload_of(vr_sim_node_find(sim, from));
    if (source == NULL || payload_of(target) == NULL) return VR_CU_INVALID_VALUE;
    return set_attributes(sim, target, source->launch.attributes, source->launch.attribute_count);
}

// --- memory of graphs -----------------------------------------------------------------------------------------------

enum { USED_NOW, USED_HIGH, RESERVED_NOW, RESERVED_HIGH };

// What a graph frees goes back to the device at once: nothing is reserved beyond what is used. The highest values are those now.
vr_cu_result vr_sim_device_get_graph_mem_attribute(struct vr_sim *sim, int device, int attribute, uint64_t *value) {
    if (value == NULL || attribute < USED_NOW || attribute > RESERVED_HIGH) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    *value = vr_sim_graph_memory_bytes(sim, (uint32_t)device);
    return VR_CU_SUCCESS;
}

// Only the highest values can be set, and only to 0.
vr_cu_result vr_sim_device_set_graph_mem_attribute(struct vr_sim *sim, int device, int attribute, const uint64_t *value) {
    if (value == NULL || *value != 0 || (attribute != USED_HIGH && attribute != RESERVED_HIGH)) return VR_CU_INVALID_VALUE;
    return vr_sim_is_device(sim, device) ? VR_CU_SUCCESS : VR_CU_INVALID_DEVICE;
}

vr_cu_result vr_sim_device_graph_mem_trim(struct vr_sim *sim, int device) {
    return vr_sim_is_device(sim, device) ? VR_CU_SUCCESS : VR_CU_INVALID_DEVICE;
}
