// sim_modules.h: compiled code as a program loads it: modules (of a context), libraries (of all), kernels and functions, and their
// launches. Nothing is computed: a launch is checked, its arguments are taken, and time passes on the device.
#ifndef VR_SIM_MODULES_SIM_MODULES_H
#define VR_SIM_MODULES_SIM_MODULES_H

#include "sim/graphs/sim_graphs.h"
#include "sim/modules/sim_image.h"

// Code in one context. Its variables lie in one piece of device memory; the code itself takes none that is accounted (a driver loads
// it into memory that the context has anyway).
struct vr_sim_module {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t library; // handle of the library whose part it is, 0: none
    struct vr_sim_image *image;
    uint64_t variables;  // address of the first variable, 0: there is none; the others follow at multiples of VR_SIM_VARIABLE_ALIGNMENT
    uint32_t *functions; // by kernel of the image: slot of the function plus one, 0 until somebody asked for it
    size_t function_count, functions_capacity;
};

#define VR_SIM_VARIABLE_ALIGNMENT 256

// Code for every context: a module for each one that needs it.
struct vr_sim_library {
    struct vr_sim_slot slot;
    struct vr_sim_library_image { // for each architecture of the devices, where the library has code for it
        uint32_t architecture;
        struct vr_sim_image *image;
    } images[VR_SIM_MAX_DEVICES];
    uint32_t image_count; // at least 1; kernels are numbered by the first
    uint32_t *kernels;    // as `functions` of a module
    size_t kernel_count, kernels_capacity;
};

// What a program may set of a kernel; a function of a library's module has those of its kernel.
struct vr_sim_function_settings {
    int32_t dynamic_shared_bytes; // at most
    int32_t carveout;             // -1: the driver's own
    int32_t cluster[3];           // required, 0: none
    int32_t wide_clusters;        // more than 8 blocks are allowed
    int32_t scheduling;
    int32_t cache;
    int32_t block[3], parameter_bytes; // of the launches of CUDA 2
    uint32_t old_shared_bytes;
};

// A function of a module, or the kernel of a library (then it has no module).
struct vr_sim_function {
    struct vr_sim_slot slot;
    uint64_t module, library;
    struct vr_sim_image *image; // borrowed of the module or library
    uint32_t kernel;            // in the image
    uint32_t base;              // slot of the kernel whose settings it has, plus one; 0: its own
    bool loaded;
    struct vr_sim_function_settings settings;
};

// The linker at work.
struct vr_sim_link {
    struct vr_sim_slot slot;
    char *bytes; // what it gives; a text ends with a NUL
    size_t size_bytes, bytes_capacity;
    bool has_code; // a cubin or a container, not PTX
    bool complete;
};

// --- sim_module.c, sim_module.c ------------------------------------------------------------------------------------

// The library's code for a device, NULL: none.
struct vr_sim_image *vr_sim_library_image(struct vr_sim *sim, const struct vr_sim_library *library, uint32_t device);
void vr_sim_end_modules(struct vr_sim *sim, uint64_t context);
void vr_sim_end_libraries(struct vr_sim *sim);
void vr_sim_end_links(struct vr_sim *sim); // sim_module.c

// --- sim_kernel.c ---------------------------------------------------------------------------------------------------

#define VR_SIM_USUAL_SHARED_BYTES 49152 // of a block that asks for no more

// The architecture of a device, as sim_image.h writes it.
uint32_t vr_sim_architecture(struct vr_sim *sim, uint32_t device);
// One attribute of a device; `otherwise` where the device's table has none.
int vr_sim_device_value(struct vr_sim *sim, uint32_t device, int attribute, int otherwise);

// A function or a kernel by its handle, NULL: none.
VR_INLINE struct vr_sim_function *vr_sim_function_find(const struct vr_sim *sim, uint64_t function) {
    return (struct vr_sim_function *)vr_sim_slots_find(&sim->functions, function);
}
struct vr_sim_function_settings *vr_sim_function_settings_of(const struct vr_sim *sim, struct vr_sim_function *function);
VR_INLINE const struct vr_sim_kernel *vr_sim_function_kernel(const struct vr_sim_function *function) {
    return &function->image->kernels[function->kernel];
}
// Threads that a block may have, by the kernel's bound and by its registers.
uint32_t vr_sim_function_most_threads(const struct vr_sim_function *function);
vr_cu_result vr_sim_function_make(struct vr_sim *sim, const struct vr_sim_function *function, uint64_t *handle);

// --- sim_kernel.c ------------------------------------------------------------------------------------------------

// Blocks that a multiprocessor of the device holds at a time.
int vr_sim_active_blocks(struct vr_sim *sim, uint32_t device, struct vr_sim_function *function, uint64_t threads, uint64_t dynamic_bytes);

#endif
