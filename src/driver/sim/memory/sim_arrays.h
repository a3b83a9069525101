// sim_arrays.h: arrays and mipmapped arrays: device memory in rows whose layout is the driver's own. Here they lie as their elements do in
// a program's loop, rows at multiples of 64 bytes, and take so much of their device.
#ifndef VR_DRIVER_SIM_MEMORY_SIM_ARRAYS_H
#define VR_DRIVER_SIM_MEMORY_SIM_ARRAYS_H

#include "driver/sim/sim.h"

struct vr_sim_array {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t address, pitch_bytes, plane_bytes; // first byte; from row to row and from plane to plane
    struct vr_cu_array3d shape;
    uint64_t element_bytes;
    uint64_t mipmaps; // handle of those whose level it is, which have the memory; 0: its own
    bool is_3d;       // made by cuArray3DCreate
};

#define VR_SIM_LEVELS_MAX 32
struct vr_sim_mipmaps {
    struct vr_sim_slot slot;
    uint64_t context, address;
    uint32_t level_count;
    uint32_t levels[VR_SIM_LEVELS_MAX]; // slots of arrays
};

// A texture or surface object: what it was made of.
struct vr_sim_texture {
    struct vr_sim_slot slot;
    uint64_t context;
    bool surface;
    struct vr_cu_resource resource;
    unsigned char texture[104]; // CUDA_TEXTURE_DESC
};

VR_INLINE struct vr_sim_array *vr_sim_array_find(const struct vr_sim *sim, uint64_t array) {
    return (struct vr_sim_array *)vr_sim_slots_find(&sim->arrays, array);
}
// Ends those of a context (0: of every one), with textures and surfaces.
void vr_sim_end_arrays(struct vr_sim *sim, uint64_t context);

#endif
