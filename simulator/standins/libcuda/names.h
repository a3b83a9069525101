// names.h: table of all names of the driver API.
#ifndef VR_STANDINS_LIBCUDA_NAMES_H
#define VR_STANDINS_LIBCUDA_NAMES_H

#include <stddef.h>

typedef void vr_libcuda_function(void);

// One ABI version: base name that programs look up, exported name, and entry point.
struct vr_libcuda_name {
    const char *base, *exported;
    vr_libcuda_function *entry;
    int first, last; // first and last version of CUDA that has it
};

// Sorted by base name.
extern const struct vr_libcuda_name vr_libcuda_names[];
extern const size_t vr_libcuda_name_count;

#endif
