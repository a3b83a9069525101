// copy.c: copies and sets. Bytes move at the call, where bytes stand behind the addresses; the stream gets a piece of work that
// takes no time. Ranges are checked in every simulator.
#include "driver/sim/sim.h"

enum place { ON_HOST, ON_DEVICE, NOWHERE };

static bool mappings_allow(const struct vr_sim *sim, uint64_t address, uint64_t end, uint32_t device, bool write) {
    uint64_t bit = (uint64_t)1 << device;
    while (address < end) {
        const struct vr_range *mapping = vr_ranges_holding(&sim->mappings, address);
        if (mapping == NULL || ((write ? mapping->write_mask : mapping->read_mask) & bit) == 0) return false;
        address = vr_range_end(mapping);
    }
    return true;
}

// What [address, address + size_bytes) is for `device`. What no device address ever lay near is taken for host memory.
static enum place place_of(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint32_t device, bool write) {
    if (address > UINT64_MAX - size_bytes) return NOWHERE;
    const struct vr_range *range = vr_ranges_holding(&sim->spaces, address);
    if (range == NULL) return address >= sim->lowest_device && address < sim->highest_device ? NOWHERE : ON_HOST;
    if (range->kind == VR_SIM_RESERVATION) return mappings_allow(sim, address, address + size_bytes, device, write) ? ON_DEVICE : NOWHERE;
    return size_bytes <= range->size_bytes - (address - range->base) ? ON_DEVICE : NOWHERE;
}

static bool has_bytes(const struct vr_sim *sim, enum place place) { return place == ON_HOST || sim->options.backed; }

static vr_cu_result copy(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes, enum place to_place, enum place from_place,
                         struct vr_sim_stream *stream) {
    vr_cu_result result = vr_sim_enqueue(sim, stream, 0, NULL);
    if (result != VR_CU_SUCCESS) return result;
    if (has_bytes(sim, to_place) && has_bytes(sim, from_place)) memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size_bytes);
    return VR_CU_SUCCESS;
}

static uint32_t device_of(const struct vr_sim *sim, const struct vr_sim_stream *stream) {
    return vr_sim_context_find(sim, stream->context)->device;
}

vr_cu_result vr_sim_memcpy_async(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_find(sim, stream, &queue);
    if (result != VR_CU_SUCCESS || size_bytes == 0) return result;
    enum place to_place = place_of(sim, to, size_bytes, device_of(sim, queue), true);
    enum place from_place = place_of(sim, from, size_bytes, device_of(sim, queue), false);
    if (to == 0 || from == 0 || to_place == NOWHERE || from_place == NOWHERE) return VR_CU_INVALID_VALUE;
    return copy(sim, to, from, size_bytes, to_place, from_place, queue);
}

vr_cu_result vr_sim_memcpy_htod(struct vr_sim *sim, uint64_t to, const void *from, uint64_t size_bytes) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_find(sim, 0, &queue);
    if (result != VR_CU_SUCCESS || size_bytes == 0) return result;
    if (from == NULL || place_of(sim, to, size_bytes, device_of(sim, queue), true) != ON_DEVICE) return VR_CU_INVALID_VALUE;
    result = copy(sim, to, (uint64_t)(uintptr_t)from, size_bytes, ON_DEVICE, ON_HOST, queue);
    if (result == VR_CU_SUCCESS) vr_sim_wait_stream(sim, queue);
    return result;
}

vr_cu_result vr_sim_memcpy_dtoh(struct vr_sim *sim, void *to, uint64_t from, uint64_t size_bytes) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_find(sim, 0, &queue);
    if (result != VR_CU_SUCCESS || size_bytes == 0) return result;
    if (to == NULL || place_of(sim, from, size_bytes, device_of(sim, queue), false) != ON_DEVICE) return VR_CU_INVALID_VALUE;
    result = copy(sim, (uint64_t)(uintptr_t)to, from, size_bytes, ON_HOST, ON_DEVICE, queue);
    if (result == VR_CU_SUCCESS) vr_sim_wait_stream(sim, queue);
    return result;
}

vr_cu_result vr_sim_memset_d8_async(struct vr_sim *sim, uint64_t address, uint8_t value, uint64_t size_bytes, uint64_t stream) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_find(sim, stream, &queue);
    if (result != VR_CU_SUCCESS || size_bytes == 0) return result;
    if (place_of(sim, address, size_bytes, device_of(sim, queue), true) != ON_DEVICE) return VR_CU_INVALID_VALUE;
    result = vr_sim_enqueue(sim, queue, 0, NULL);
    if (result == VR_CU_SUCCESS && sim->options.backed) memset((void *)(uintptr_t)address, value, size_bytes);
    return result;
}

vr_cu_result vr_sim_memset_d8(struct vr_sim *sim, uint64_t address, uint8_t value, uint64_t size_bytes) {
    return vr_sim_memset_d8_async(sim, address, value, size_bytes, 0);
}
