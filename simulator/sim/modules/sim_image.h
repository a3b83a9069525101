// sim_image.h: reads compiled code: names of kernels and variables, the resources that a kernel needs, and the target architecture. Nothing
// is executed.
//
// Code comes in three forms: a cubin (an ELF file), PTX text, or a container with several of both for various architectures. Code in a
// container may be compressed (sim_code.c). If it cannot be decompressed, its names are unknown and any name is accepted as one of its
// kernels (`open`).
#ifndef VR_SIM_MODULES_SIM_IMAGE_H
#define VR_SIM_MODULES_SIM_IMAGE_H

#include "base/base.h"
#include "driver/abi.h"

// An architecture is a number: 10 * major + minor of the compute capability (90, 103).

// Decompresses exactly to_bytes into `to`. Returns false if the output is not exactly that long or the input is malformed; `to` is then
// undefined.
typedef bool vr_sim_unpacking(void *to, size_t to_bytes, const void *from, size_t from_bytes);

struct vr_sim_parameter {
    uint32_t offset_bytes, size_bytes;
};

// The part of an argument that holds the addresses that a kernel writes (sim_outputs.h).
struct vr_sim_output {
    uint32_t parameter;
    uint32_t from, words;  // 8-byte words to search: index of the first, and count
    uint32_t first, count; // outputs: index of the first among the address words, and count
    uint32_t elements;     // parameter that holds the number of elements, plus one; 0: unknown
    uint32_t element_bytes;
};

// The part of an argument that holds addresses that a kernel uses for certain (sim_outputs.h).
struct vr_sim_operand {
    uint32_t parameter;
    uint32_t from, words;   // words of 8 bytes, each an address or 0
    int effect;             // enum vr_check_effect
    uint32_t elements;      // parameter with the number of contiguous elements behind each address, plus one; 0: unknown
    uint32_t element_bytes; // at least
    bool anywhere;          // which elements is unknown
};

// Properties of a kernel. Kernels of an open image have the properties of a small kernel.
struct vr_sim_kernel {
    char *name; // owned
    uint32_t registers;
    uint32_t shared_bytes, local_bytes; // static, per block and per thread
    uint32_t stack_bytes;               // per thread, of the kernel and what it calls
    uint32_t most_threads;              // per block; 0: no limit of its own
    uint32_t ordinal;                   // number of parameters seen so far while reading
    struct vr_sim_parameter *parameters;
    size_t parameter_count, parameters_capacity;
    bool has_parameters; // its parameters are known
    bool spins;          // it waits for the number of cycles given by its only argument
    bool has_outputs;    // `outputs` is filled in
    bool updates;        // its name reveals nothing, so outputs may be inputs too
    uint32_t counts;     // parameter that holds the number of elements examined by a counting kernel, plus one; 0: it does not count
    struct vr_sim_output *outputs;
    size_t output_count, outputs_capacity;
    uint8_t *effects;  // on the memory behind each parameter (sim_ptx.h), owned; NULL: unknown
    bool has_operands; // `operands` is filled in
    struct vr_sim_operand *operands;
    size_t operand_count, operands_capacity;
    bool meets;                // its code has instructions by which it can wait for kernels of other processes
    bool unseen;               // the checker knows that its memory is not known
    uint32_t fill_value_bytes; // it fills memory with a value of this length (vr_sim_launch_fill()); 0: it does not
};

struct vr_sim_variable {
    char *name; // owned
    uint64_t size_bytes;
    bool managed;
};

// Code for one architecture, shared by any number of modules.
struct vr_sim_image {
    uint32_t references;
    uint32_t binary_version, ptx_version; // architectures: that it is compiled for, and that its PTX targets
    uint32_t constant_bytes;              // of its variables in constant memory
    bool open;                            // its names are unknown
    bool jit;                             // compiled from PTX
    bool asks_effects;                    // of kernels: fill in `effects`
    struct vr_sim_kernel *kernels;
    size_t kernel_count, kernels_capacity;
    struct vr_sim_variable *variables;
    size_t variable_count, variables_capacity;
};

// --- sim_code.c ----------------------------------------------------------------------------------------------------

// Reads the code that a device of `architecture` would load. A cubin needs the same major capability and at most the same minor one; one
// compiled for an architecture's specific features needs that architecture. The highest suitable cubin wins; PTX is used only without a
// suitable cubin. `zstd` decompresses Zstandard; NULL: not supported. On SUCCESS, *image has one reference. INVALID_IMAGE,
// NO_BINARY_FOR_GPU, INVALID_PTX, OUT_OF_MEMORY.
// effects: also find what the kernels of PTX do with memory.
vr_cu_result vr_sim_image_read(const void *bytes, size_t size_bytes, uint32_t architecture, vr_sim_unpacking *zstd, bool effects,
                               struct vr_sim_image **image);
// Gets the length of an image in memory from its headers. If *bytes is nvcc's wrapper of a container, moves it to the container.
// INVALID_IMAGE.
vr_cu_result vr_sim_image_extent(const void **bytes, size_t *size_bytes);

// --- sim_image.c ----------------------------------------------------------------------------------------------------

void vr_sim_image_release(struct vr_sim_image *image); // drops one reference; NULL is allowed
// Return an index, or SIZE_MAX. A kernel of an open image is added at its first lookup; SIZE_MAX if the host is out of memory.
size_t vr_sim_image_kernel(struct vr_sim_image *image, const char *name);
size_t vr_sim_image_variable(const struct vr_sim_image *image, const char *name);
// For the readers. name need not be NUL-terminated. Return NULL or false if the host is out of memory.
struct vr_sim_kernel *vr_sim_image_add_kernel(struct vr_sim_image *image, const char *name, size_t length);
// Finds the effects of a kernel's code, which begins with the "(" of its parameters. If the host is out of memory they stay unknown.
void vr_sim_kernel_follow(struct vr_sim_kernel *kernel, const char *code, size_t length);
bool vr_sim_kernel_add_parameter(struct vr_sim_kernel *kernel, uint32_t ordinal, uint32_t offset_bytes, uint32_t size_bytes);

// --- sim_launch.c ----------------------------------------------------------------------------------------------

// Returns the length of the value with which a kernel of that name fills memory, or 0 if it is not a known fill.
uint32_t vr_sim_fill_value_bytes(const char *name);

// --- sim_image.c ----------------------------------------------------------------------------------------------------

// Gets the architecture of a cubin; *exact: it runs on no other one. Returns false if the bytes are not a cubin.
bool vr_sim_cubin_architecture(const void *bytes, size_t size_bytes, uint32_t *architecture, bool *exact);
bool vr_sim_ptx_architecture(const char *text, size_t length, uint32_t *architecture, bool *exact);
// Fill in the kernels and variables of an image.
vr_cu_result vr_sim_cubin_read(struct vr_sim_image *image, const void *bytes, size_t size_bytes);
vr_cu_result vr_sim_ptx_read(struct vr_sim_image *image, const char *text, size_t length);

#endif
