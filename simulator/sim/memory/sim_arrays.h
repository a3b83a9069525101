// sim_arrays.h: arrays and mipmapped arrays, and the texture and surface objects through which kernels read them. An array is inner memory
// of its context, stored row by row: NVIDIA's tiling is not known, so an array takes the bytes of its rows.
#ifndef VR_SIM_MEMORY_SIM_ARRAYS_H
#define VR_SIM_MEMORY_SIM_ARRAYS_H

#include "sim/sim.h"

// An array, a mipmapped array, or one level of a mipmapped array.
struct vr_sim_array {
    struct vr_sim_slot slot;
    uint64_t context;
    struct vr_cu_array3d_descriptor descriptor;
    uint64_t address;                // of the first byte; a level is in its mipmap's memory
    uint64_t row_bytes, pitch_bytes; // length of a row, and distance between rows
    uint64_t rows, planes;           // at least 1 each
    uint64_t mipmap;                 // of a level: handle of its mipmap
    uint64_t *levels;                // of a mipmap: handles of its levels; otherwise NULL
    uint32_t level_count;
};

// A texture object (with settings) or a surface object.
struct vr_sim_view {
    struct vr_sim_slot slot;
    uint64_t context;
    bool is_texture, has_view;
    struct vr_cu_resource resource;
    struct vr_cu_texture texture;
    struct vr_cu_resource_view view;
};

// Returns the array or level of a handle, or NULL. Borrowed until the next array is created.
const struct vr_sim_array *vr_sim_array_find(const struct vr_sim *sim, uint64_t array);
// Destroys the arrays, textures and surfaces of a context (0: of all contexts).
void vr_sim_end_arrays(struct vr_sim *sim, uint64_t context);

#endif
