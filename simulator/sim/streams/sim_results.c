#include "sim/streams/sim_results.h"

#include "sim/graphs/sim_graphs.h"
#include "sim/streams/sim_callbacks.h"

// A thread that has not called the driver yet has no context current: then the device's primary one is meant.
static vr_cu_result find_stream(struct vr_sim *sim, uint32_t device, uint64_t stream, struct vr_sim_stream **queue) {
    struct vr_sim_context *context;
    if (vr_sim_current(sim, &context) == VR_CU_SUCCESS && context->device == device) return vr_sim_stream_find(sim, stream, queue);
    if (device >= sim->options.device_count || sim->devices[device].primary == 0) return VR_CU_INVALID_CONTEXT;
    return vr_sim_stream_in(sim, sim->devices[device].primary, stream, queue);
}

vr_cu_result vr_sim_results_after(struct vr_sim *sim, uint32_t device, uint64_t stream) {
    struct vr_sim_stream *queue;
    if (!vr_sim_keeps(sim)) return VR_CU_NOT_SUPPORTED;
    const vr_cu_result result = find_stream(sim, device, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->capture != 0) return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    if (!vr_sim_callback_done(sim, queue->callback) && !vr_sim_is_callback_thread(sim)) vr_sim_callback_wait(sim, queue->callback);
    return VR_CU_SUCCESS;
}

// The thread may have another device current than that of the memory.
static bool is_there(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, bool write, uint64_t *size_bytes) {
    if (!vr_mul_u64(elements, element_bytes, size_bytes)) return false;
    for (uint32_t device = 0; device < sim->options.device_count; device++)
        if (vr_sim_is_reached(sim, address, *size_bytes, device, write)) return true;
    return false;
}

// The level of an element is that of its least known byte; it takes the place of the first ones, which are read before.
static void join_levels(uint8_t *levels, uint64_t elements, uint32_t element_bytes) {
    for (uint64_t i = 0; i < elements; i++) {
        uint8_t level = VR_SIM_KNOWN;
        for (uint32_t j = 0; j < element_bytes; j++)
            if (levels[i * element_bytes + j] > level) level = levels[i * element_bytes + j];
        levels[i] = level;
    }
}

vr_cu_result vr_sim_results_look(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes,
                                 uint8_t *levels) {
    uint64_t size_bytes;
    if (!vr_sim_keeps(sim)) return VR_CU_NOT_SUPPORTED;
    if (elements == 0) return VR_CU_SUCCESS;
    if (!is_there(sim, address, elements, element_bytes, false, &size_bytes)) return VR_CU_INVALID_VALUE;
    if (!vr_sim_transfer_look(sim, address, size_bytes, bytes, levels)) return VR_CU_OUT_OF_MEMORY;
    join_levels(levels, elements, element_bytes);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_results_put(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes,
                                const uint8_t *levels) {
    const unsigned char *from = bytes;
    uint64_t size_bytes;
    if (!vr_sim_keeps(sim)) return VR_CU_NOT_SUPPORTED;
    if (elements == 0) return VR_CU_SUCCESS;
    if (!is_there(sim, address, elements, element_bytes, true, &size_bytes)) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0, run; i < elements; i += run) {
        const uint8_t level = levels == NULL ? VR_SIM_KNOWN : levels[i];
        for (run = levels == NULL ? elements : 1; i + run < elements && levels[i + run] == level; run++) {
        }
        if (level >= VR_SIM_LEVELS) continue;
        const uint64_t at = i * element_bytes;
        if (!vr_sim_transfer_result(sim, address + at, run * element_bytes, from == NULL ? NULL : from + at, level))
            return VR_CU_OUT_OF_MEMORY;
    }
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_results_forget(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (!is_there(sim, address, size_bytes, 1, true, &size_bytes)) return VR_CU_INVALID_VALUE;
    vr_sim_transfer_pass(sim, address, size_bytes, false);
    return VR_CU_SUCCESS;
}
