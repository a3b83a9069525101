// sim_arrays.h: arrays and mipmaps, and the texture and surface objects through which kernels read them. An array is inner memory of its
// context, row after row: how a device tiles it is not known, so what it takes is the bytes of its rows.
#ifndef VR_SIM_MEMORY_SIM_ARRAYS_H
#define VR_SIM_MEMORY_SIM_ARRAYS_H

#include "sim/sim.h"

// An array, a mipmap, or one level of a mipmap.
struct vr_sim_array {
    struct vr_sim_slot slot;
    uint64_t context;
    struct vr_cu_array3d_descriptor descriptor;
    uint64_t address;                // of its first byte; a level's lies in its mipmap's memory
    uint64_t row_bytes, pitch_bytes; // of a row, and from row to row
    uint64_t rows, planes;           // at least 1 each
    uint64_t mipmap;                 // of a level: the handle it belongs to
    uint64_t *levels;                // of a mipmap: handles; NULL otherwise
    uint32_t level_count;
};

// A texture (has settings) or a surface.
struct vr_sim_view {
    struct vr_sim_slot slot;
    uint64_t context;
    bool is_texture, has_view;
    struct vr_cu_resource resource;
    struct vr_cu_texture texture;
    struct vr_cu_resource_view view;
};

// The array (or level) of a handle, NULL where there is none. Borrowed until the next array is made.
const struct vr_sim_array *vr_sim_array_find(const struct vr_sim *sim, uint64_t array);
// Ends what lives in the context (0: in every one).
void vr_sim_end_arrays(struct vr_sim *sim, uint64_t context);

#endif
