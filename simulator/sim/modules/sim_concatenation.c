// The arguments of CatArrayBatchedCopy and its variants, as in aten/src/ATen/native/cuda/Shape.cu of PyTorch 2.0 to 2.15: the output, the
// inputs, the output's shape, the dimension, and the output's stride in that dimension. The inputs have room for a number of tensors, and
// what is not used holds values of earlier launches:
//
//     address of each tensor                             words
//     place in the output, size there, and elements      32 or 64 bits each
//     whether it is contiguous                           bytes
//     shapes                                             4 sizes and 4 strides, of 32 or 64 bits, for one tensor or for each
#include "sim/modules/sim_concatenation.h"

#include <stdio.h>

enum { WORD = 8, OUTPUT = 0, INPUTS = 1, STRIDE = 4, PARAMETERS = 5, SHAPE_NUMBERS = 8 };

struct inputs_layout {
    uint32_t tensors, shapes;
    uint32_t element_bytes, number_bytes;
};

// Reads the layout from the template's arguments, as in "OpaqueTypeILj4EEEjLi2ELi128ELi1E": the element's size, the type of numbers, the
// dimensions, the room for tensors, and that for shapes.
static bool find_layout(const struct vr_sim_kernel *kernel, struct inputs_layout *layout) {
    char number;
    const char *type = strstr(kernel->name, "OpaqueTypeILj");
    if (strncmp(kernel->name, "_ZN2at6native", 13) != 0 || strstr(kernel->name, "CatArrayBatchedCopy") == NULL || type == NULL)
        return false;
    if (kernel->parameter_count != PARAMETERS || kernel->parameters[OUTPUT].size_bytes != WORD) return false;
    if (sscanf(type, "OpaqueTypeILj%uEEE%cLi%*uELi%uELi%uE", &layout->element_bytes, &number, &layout->tensors, &layout->shapes) != 4)
        return false;
    layout->number_bytes = number == 'j' ? 4 : 8;
    if (layout->tensors > 4096 || layout->shapes > 4096 || kernel->parameters[STRIDE].size_bytes != layout->number_bytes) return false;
    const uint64_t before = vr_round_up(layout->tensors * (uint64_t)(WORD + 3 * layout->number_bytes + 1), layout->number_bytes);
    const uint64_t whole = before + (uint64_t)layout->shapes * SHAPE_NUMBERS * layout->number_bytes;
    return vr_round_up(whole, WORD) == kernel->parameters[INPUTS].size_bytes;
}

static uint64_t number_at(const unsigned char *from, uint32_t bytes) {
    uint64_t number = 0;
    memcpy(&number, from, bytes);
    return number;
}

// Returns a number of one tensor. column 0: its place in the output; 1: its size there; 2: its elements.
static uint64_t number_of(const struct inputs_layout *layout, const unsigned char *inputs, uint32_t column, uint32_t tensor) {
    const uint64_t before = (uint64_t)layout->tensors * WORD + ((uint64_t)column * layout->tensors + tensor) * layout->number_bytes;
    return number_at(inputs + before, layout->number_bytes);
}

// Adds the reading of a tensor, and the writing of its first row in the output. `row`: the elements of the output for each place; 0:
// unknown.
static void add_tensor(const struct inputs_layout *layout, const unsigned char *inputs, uint32_t tensor, uint64_t output, uint64_t row,
                       struct vr_sim_accesses *accesses) {
    const bool contiguous = inputs[(uint64_t)layout->tensors * (WORD + 3 * layout->number_bytes) + tensor] != 0;
    const uint64_t place = number_of(layout, inputs, 0, tensor), size = number_of(layout, inputs, 1, tensor);
    const uint64_t elements = number_of(layout, inputs, 2, tensor);
    if (elements == 0) return;
    vr_sim_accesses_add(accesses, (struct vr_check_access){.address = number_at(inputs + (size_t)tensor * WORD, WORD),
                                                           .size_bytes = contiguous ? elements * layout->element_bytes : 0,
                                                           .effect = VR_CHECK_READ,
                                                           .open = true});
    if (row == 0 && place != 0) return;
    vr_sim_accesses_add(accesses, (struct vr_check_access){.address = output + place * row * layout->element_bytes,
                                                           .size_bytes = size * row * layout->element_bytes,
                                                           .effect = VR_CHECK_WRITE,
                                                           .open = true});
}

bool vr_sim_concatenation(const struct vr_sim_kernel *kernel, const struct vr_sim_arguments *arguments, uint32_t inputs,
                          struct vr_sim_accesses *accesses) {
    struct inputs_layout layout;
    uint64_t output, row;
    if (!find_layout(kernel, &layout) || inputs > layout.tensors) return false;
    const unsigned char *list = vr_sim_argument_at(arguments, kernel, INPUTS);
    if (list == NULL || !vr_sim_argument_number(arguments, kernel, OUTPUT, &output) ||
        !vr_sim_argument_number(arguments, kernel, STRIDE, &row))
        return false;
    if (strstr(kernel->name, "_vectorized") != NULL) row = 0; // counts vectors
    for (uint32_t i = 0; i < inputs; i++) add_tensor(&layout, list, i, output, row, accesses);
    return true;
}
