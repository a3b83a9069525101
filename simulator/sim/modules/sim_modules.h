// sim_modules.h: compiled code loaded by a program: modules (of one context), libraries (of all contexts), kernels, functions and their
// launches. Kernels are not executed: a launch is checked, its arguments are read, and time passes on the device.
#ifndef VR_SIM_MODULES_SIM_MODULES_H
#define VR_SIM_MODULES_SIM_MODULES_H

#include "sim/graphs/sim_graphs.h"
#include "sim/modules/sim_image.h"

// Code loaded in one context. Its variables are in one piece of device memory. The code itself takes no memory of its own: a driver loads
// it into memory that the context already has.
struct vr_sim_module {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t library; // handle of the library it belongs to, or 0
    struct vr_sim_image *image;
    uint64_t variables;  // address of the first variable, or 0; the others follow at multiples of VR_SIM_VARIABLE_ALIGNMENT
    uint32_t *functions; // by kernel of the image: slot of the function plus one, 0 until it is requested
    size_t function_count, functions_capacity;
};

#define VR_SIM_VARIABLE_ALIGNMENT 256

// Code for all contexts; each context that uses it gets a module.
struct vr_sim_library {
    struct vr_sim_slot slot;
    struct vr_sim_library_image { // one per architecture of the devices for which the library has code
        uint32_t architecture;
        struct vr_sim_image *image;
    } images[VR_SIM_MAX_DEVICES];
    uint32_t image_count; // at least 1; the first image numbers the kernels
    uint32_t *kernels;    // like `functions` of a module
    size_t kernel_count, kernels_capacity;
};

// Settings of a kernel. A function of a library's module shares those of its kernel.
struct vr_sim_function_settings {
    int32_t dynamic_shared_bytes; // upper limit
    int32_t carveout;             // -1: the driver's choice
    int32_t cluster[3];           // required cluster size; 0: no requirement
    int32_t wide_clusters;        // allows more than 8 blocks
    int32_t scheduling;
    int32_t cache;
    int32_t block[3], parameter_bytes; // for the launch calls of CUDA 2
    uint32_t old_shared_bytes;
};

// A function of a module, or a library's kernel (module is then 0).
struct vr_sim_function {
    struct vr_sim_slot slot;
    uint64_t module, library;
    struct vr_sim_image *image; // borrowed from the module or library
    uint32_t kernel;            // index in the image
    uint32_t base;              // slot of the kernel whose settings it shares, plus one; 0: it has its own
    bool loaded;
    struct vr_sim_function_settings settings;
};

// A linker in use.
struct vr_sim_link {
    struct vr_sim_slot slot;
    char *bytes; // its output; PTX text ends with a NUL
    size_t size_bytes, bytes_capacity;
    bool has_code; // the output is a cubin or a container, not PTX
    bool complete;
};

// --- sim_module.c ---------------------------------------------------------------------------------------------------

// Returns the library's code for a device, or NULL.
struct vr_sim_image *vr_sim_library_image(struct vr_sim *sim, const struct vr_sim_library *library, uint32_t device);
void vr_sim_end_modules(struct vr_sim *sim, uint64_t context);
void vr_sim_end_libraries(struct vr_sim *sim);
void vr_sim_end_links(struct vr_sim *sim);

// --- sim_kernel.c ---------------------------------------------------------------------------------------------------

#define VR_SIM_USUAL_SHARED_BYTES 49152 // per block without opt-in

// Returns the architecture of a device, numbered as in sim_image.h.
uint32_t vr_sim_architecture(struct vr_sim *sim, uint32_t device);
// Returns an attribute of a device, or `otherwise` if the device does not have it or it is 0.
int vr_sim_device_value(struct vr_sim *sim, uint32_t device, int attribute, int otherwise);

// Returns the function or kernel of a handle, or NULL.
VR_INLINE struct vr_sim_function *vr_sim_function_find(const struct vr_sim *sim, uint64_t function) {
    return (struct vr_sim_function *)vr_sim_slots_find(&sim->functions, function);
}
struct vr_sim_function_settings *vr_sim_function_settings_of(const struct vr_sim *sim, struct vr_sim_function *function);
VR_INLINE const struct vr_sim_kernel *vr_sim_function_kernel(const struct vr_sim_function *function) {
    return &function->image->kernels[function->kernel];
}
// Returns the maximum threads per block, limited by the kernel and by its registers.
uint32_t vr_sim_function_most_threads(const struct vr_sim_function *function);
vr_cu_result vr_sim_function_make(struct vr_sim *sim, const struct vr_sim_function *function, uint64_t *handle);

// Returns the number of blocks that a multiprocessor of the device can run at the same time.
int vr_sim_active_blocks(struct vr_sim *sim, uint32_t device, struct vr_sim_function *function, uint64_t threads, uint64_t dynamic_bytes);

#endif
