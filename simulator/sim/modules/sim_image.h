// sim_image.h: what a simulated driver reads of compiled code: names of kernels and variables, what a kernel takes of a multiprocessor, and
// for which architecture it was compiled. Nothing of it is executed.
//
// Three forms: a cubin (an ELF file), PTX text, and a container of several of both for various architectures. Code in a container may be
// compressed (sim_code.c). Where it cannot be unpacked, its names are not known, and every name is taken for one of its kernels (`open`).
#ifndef VR_SIM_MODULES_SIM_IMAGE_H
#define VR_SIM_MODULES_SIM_IMAGE_H

#include "base/base.h"
#include "driver/abi.h"

// An architecture is a number: 10 times major plus minor of the compute capability (90, 103).

// Undoes a compression: true when `from` gives exactly to_bytes, and nothing is known of `to` otherwise.
typedef bool vr_sim_unpacking(void *to, size_t to_bytes, const void *from, size_t from_bytes);

struct vr_sim_parameter {
    uint32_t offset_bytes, size_bytes;
};

// Where a kernel's arguments say what it writes: words of one argument (sim_outputs.h).
struct vr_sim_output {
    uint32_t parameter;
    uint32_t from, words;  // which of its words, of eight bytes each, are looked at
    uint32_t first, count; // of the words that are addresses: which are written
    uint32_t elements;     // the argument that says how many elements there are, plus one; 0: not known
    uint32_t element_bytes;
};

// What is known of a kernel. Fields of an open image's kernels are what a small kernel has.
struct vr_sim_kernel {
    char *name; // owned
    uint32_t registers;
    uint32_t shared_bytes, local_bytes; // static, of a block and of a thread
    uint32_t most_threads;              // of a block, 0: no bound of its own
    uint32_t ordinal;                   // parameters seen so far while reading
    struct vr_sim_parameter *parameters;
    size_t parameter_count, parameters_capacity;
    bool has_parameters; // they are known
    bool spins;          // waits for as many cycles as its only argument says
    bool has_outputs;    // they were looked for
    bool updates;        // its name says nothing: outputs may be inputs, too
    uint32_t counts;     // the argument that says among how many elements some are counted, plus one; 0: it does not count
    struct vr_sim_output *outputs;
    size_t output_count, outputs_capacity;
    uint32_t fill_value_bytes; // it fills memory with a value of that length (vr_sim_launch_fill()); 0: it does not
};

struct vr_sim_variable {
    char *name; // owned
    uint64_t size_bytes;
    bool managed;
};

// Code for one architecture. Several modules may have it.
struct vr_sim_image {
    uint32_t references;
    uint32_t binary_version, ptx_version; // architectures: that it runs as, that it was written for
    uint32_t constant_bytes;              // of variables in constant memory
    bool open;                            // its names are not known
    bool jit;                             // made of PTX
    struct vr_sim_kernel *kernels;
    size_t kernel_count, kernels_capacity;
    struct vr_sim_variable *variables;
    size_t variable_count, variables_capacity;
};

// --- sim_code.c ----------------------------------------------------------------------------------------------------

// Reads the code that a device of `architecture` takes. A cubin is taken by devices of the same major capability and no smaller minor one,
// one that was compiled for the features of one architecture by that alone; of several the highest is taken, and PTX where none is.
// `zstd` unpacks Zstandard, NULL: nobody does.
// SUCCESS, and *image has one reference; INVALID_IMAGE; NO_BINARY_FOR_GPU; INVALID_PTX; OUT_OF_MEMORY.
vr_cu_result vr_sim_image_read(const void *bytes, size_t size_bytes, uint32_t architecture, vr_sim_unpacking *zstd,
                               struct vr_sim_image **image);
// The length of an image in memory, by its own headers; also follows the wrapper that nvcc puts around a container, and *bytes is then
// what it names. INVALID_IMAGE.
vr_cu_result vr_sim_image_extent(const void **bytes, size_t *size_bytes);

// --- sim_image.c ----------------------------------------------------------------------------------------------------

void vr_sim_image_release(struct vr_sim_image *image); // one reference; NULL is allowed
// Indexes, or SIZE_MAX. A kernel of an open image is added when it is first asked for; SIZE_MAX then when the host has no memory.
size_t vr_sim_image_kernel(struct vr_sim_image *image, const char *name);
size_t vr_sim_image_variable(const struct vr_sim_image *image, const char *name);
// For the readers. name need not end with a NUL. NULL when the host has no memory.
struct vr_sim_kernel *vr_sim_image_add_kernel(struct vr_sim_image *image, const char *name, size_t length);
bool vr_sim_kernel_add_parameter(struct vr_sim_kernel *kernel, uint32_t ordinal, uint32_t offset_bytes, uint32_t size_bytes);

// --- sim_launch.c ----------------------------------------------------------------------------------------------

// How long the value is that a kernel of that name fills memory with; 0: it is not known to do that.
uint32_t vr_sim_fill_value_bytes(const char *name);

// --- sim_image.c, sim_image.c -----------------------------------------------------------------------------------------

// The architecture of a cubin; *exact: it runs on no other. False when it is none.
bool vr_sim_cubin_architecture(const void *bytes, size_t size_bytes, uint32_t *architecture, bool *exact);
bool vr_sim_ptx_architecture(const char *text, size_t length, uint32_t *architecture, bool *exact);
// Fill kernels and variables.
vr_cu_result vr_sim_cubin_read(struct vr_sim_image *image, const void *bytes, size_t size_bytes);
vr_cu_result vr_sim_ptx_read(struct vr_sim_image *image, const char *text, size_t length);

#endif
