// sim_set.c: sets of elements of 1, 2 and 4 bytes, in one row or many.
#include "driver/sim/streams/sim_copies.h"

struct fill {
    uint64_t address, pitch, width, height; // elements of a row
    uint32_t value, element_bytes;
};

static vr_cu_result set_async(struct vr_sim *sim, const struct fill *fill, uint64_t stream) {
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS || fill->width == 0 || fill->height == 0) return result;
    struct vr_sim_work work = vr_sim_set_work(fill->address, 0, 0);
    if (fill->address % fill->element_bytes != 0 || !vr_mul_u64(fill->width, fill->element_bytes, &work.width_bytes))
        return VR_CU_INVALID_VALUE;
    if (fill->height > 1 && (fill->pitch < work.width_bytes || fill->pitch % fill->element_bytes != 0)) return VR_CU_INVALID_VALUE;
    work.value = fill->value;
    work.element_bytes = fill->element_bytes;
    work.rows = fill->height;
    work.to_pitch = fill->pitch;
    return vr_sim_submit_bytes(sim, queue, &work);
}

// A set needs no wait: it is asynchronous to the host, as its documents say.
// clang-format off
#define SET(name, type, element)                                                                                                          \
    vr_cu_result vr_sim_memset_##name##_async(struct vr_sim *sim, uint64_t address, type value, uint64_t count, uint64_t stream) {        \
        const struct fill fill = {address, 0, count, 1, value, element};                                                                   \
        return set_async(sim, &fill, stream);                                                                                              \
    }                                                                                                                                      \
    vr_cu_result vr_sim_memset_##name(struct vr_sim *sim, uint64_t address, type value, uint64_t count) {                                 \
        return vr_sim_memset_##name##_async(sim, address, value, count, 0);                                                                \
    }
#define SET_ROWS(name, type, element)                                                                                                     \
    vr_cu_result vr_sim_memset_##name##_async(struct vr_sim *sim, uint64_t address, uint64_t pitch, type value, uint64_t width,           \
                                              uint64_t height, uint64_t stream) {                                                          \
        const struct fill fill = {address, pitch, width, height, value, element};                                                          \
        return set_async(sim, &fill, stream);                                                                                              \
    }                                                                                                                                      \
    vr_cu_result vr_sim_memset_##name(struct vr_sim *sim, uint64_t address, uint64_t pitch, type value, uint64_t width,                   \
                                      uint64_t height) {                                                                                   \
        return vr_sim_memset_##name##_async(sim, address, pitch, value, width, height, 0);                                                 \
    }
SET(d16, uint16_t, 2)
SET(d32, uint32_t, 4)
SET_ROWS(d2d8, uint8_t, 1)
SET_ROWS(d2d16, uint16_t, 2)
SET_ROWS(d2d32, uint32_t, 4)
// clang-format on
