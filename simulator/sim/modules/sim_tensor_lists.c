// The first argument of multi_tensor_apply_kernel has the addresses of lists of tensors, as in
// aten/src/ATen/native/cuda/MultiTensorApply.cuh of PyTorch 2.0 to 2.15. All lists have the same number of tensors:
//
//     addresses of each list's tensors     words
//     elements of each tensor              words
//     addresses of steps, or scalars       of some kinds only: one for each tensor
//     tensor of each block                 bytes, or 16 bits in the large form
//     chunk of each block                  32 bits: a block works on CHUNK_ELEMENTS of a tensor
//     number of the first tensor           32 bits, of some kinds only
//
// There is room for a fixed number of tensors and blocks, and what is not used holds values of earlier launches.
#include "sim/modules/sim_tensor_lists.h"

#include <stdio.h>

enum { WORD = 8, LISTS_MOST = 5, CHUNK_ELEMENTS = 65536 };

void vr_sim_accesses_add(struct vr_sim_accesses *accesses, struct vr_check_access access) {
    if (VR_GROW(accesses, items, accesses->count + 1) == VRAM_OK) accesses->items[accesses->count++] = access;
}

// ---- The layout.

struct list_layout {
    uint32_t lists, tensors, blocks; // room for this many
    uint32_t extra_bytes;            // for each tensor, after its number of elements
    uint32_t block_width;            // bytes of a block's tensor
    bool has_first;                  // it ends with the number of the first tensor
};

// The layout has a small form, and a large one with seven times the capacity.
static const struct { uint32_t factor, blocks, block_width; } forms[] = {{1, 320, 1}, {7, 2240, 2}};

static uint32_t tensors_of(uint32_t lists, bool has_scalars) {
    static const uint32_t most[LISTS_MOST] = {110, 64, 48, 36, 30};
    return lists == 1 && has_scalars ? 96 : most[lists - 1];
}

// Returns whether the layout takes exactly these bytes.
static bool fits(const struct list_layout *layout, uint32_t bytes) {
    const uint32_t words = (layout->lists + 1) * WORD + layout->extra_bytes;
    const uint32_t whole = layout->tensors * words + layout->blocks * (layout->block_width + 4);
    return bytes == whole + (layout->has_first ? WORD : 0); // padded
}

// Reads the digits after `part`. Returns 0 if the name does not have it.
static uint32_t number_behind(const char *name, const char *part) {
    const char *found = strstr(name, part);
    unsigned number = 0;
    return found != NULL && sscanf(found + strlen(part), "%u", &number) == 1 ? number : 0;
}

static bool find_layout(const char *name, uint32_t bytes, struct list_layout *layout) {
    const bool optimizer = strstr(name, "FusedOptimizerTensorListMetadataILi") != NULL;
    const char *scalars = strstr(name, "TensorListScalarListMetadataI"), *metadata = strstr(name, "ListMetadataI");
    layout->lists = metadata == NULL ? 0 : number_behind(metadata + strlen("ListMetadataI"), "Li");
    layout->has_first = scalars == NULL;
    if (layout->lists == 0 || layout->lists > LISTS_MOST) return false;
    for (size_t i = 0; i < VR_COUNT_OF(forms); i++) {
        layout->tensors = forms[i].factor * tensors_of(layout->lists, scalars != NULL);
        layout->blocks = forms[i].blocks;
        layout->block_width = forms[i].block_width;
        const uint32_t least = optimizer ? WORD : scalars != NULL ? 4 : 0, most = scalars != NULL ? 2 * WORD : least;
        for (layout->extra_bytes = least; layout->extra_bytes <= most; layout->extra_bytes += 4)
            if (fits(layout, bytes)) return true;
    }
    return false;
}

// ---- The effects on each list.

// Gets them from the functor's numbers of lists, of those that it reads, and of the one that it writes: "FunctorIfLi2ELi1ELi1EE".
static bool effects_by_numbers(const char *name, const struct list_layout *layout, enum vr_check_effect effects[LISTS_MOST]) {
    unsigned lists, read, written;
    const char *functor = strstr(name, "FunctorI");
    for (const char *at = functor; at != NULL && (at = strstr(at, "Li")) != NULL; at++) {
        if (sscanf(at, "Li%uELi%uELi%uE", &lists, &read, &written) != 3 || lists != layout->lists) continue;
        if (read > lists || written >= lists) return false;
        for (unsigned i = 0; i < read; i++) effects[i] = VR_CHECK_READ;
        if (strstr(name, "LpNormFunctor") == NULL) effects[written] = VR_CHECK_WRITE; // norms go to memory outside of the lists
        return true;
    }
    return false;
}

// Fused optimizers write the parameters and their own state, and read the gradients, which are the second list.
static bool is_optimizer(const char *name) {
    return strstr(name, "FusedAdamMathFunctor") != NULL || strstr(name, "FusedSgdMathFunctor") != NULL ||
           strstr(name, "FusedAdagradMathFunctor") != NULL;
}

static void find_effects(const char *name, const struct list_layout *layout, enum vr_check_effect effects[LISTS_MOST]) {
    const bool optimizer = is_optimizer(name);
    for (uint32_t i = 0; i < layout->lists; i++) effects[i] = !optimizer ? VR_CHECK_USE : i == 1 ? VR_CHECK_READ : VR_CHECK_WRITE;
    if (!optimizer) (void)effects_by_numbers(name, layout, effects);
}

// ---- The tensors.

struct launch {
    const unsigned char *argument;
    struct list_layout layout;
};

static uint64_t word_at(const unsigned char *argument, uint32_t index) {
    uint64_t word;
    memcpy(&word, argument + (size_t)index * WORD, sizeof word);
    return word;
}

static uint32_t tensor_of_block(const struct launch *launch, uint32_t block) {
    const struct list_layout *layout = &launch->layout;
    const unsigned char *at =
        launch->argument + layout->tensors * ((layout->lists + 1) * WORD + layout->extra_bytes) + block * layout->block_width;
    return layout->block_width == 1 ? at[0] : (uint32_t)(at[0] | at[1] << 8);
}

static uint32_t chunk_of_block(const struct launch *launch, uint32_t block) {
    const struct list_layout *layout = &launch->layout;
    uint32_t chunk;
    memcpy(&chunk,
           launch->argument + layout->tensors * ((layout->lists + 1) * WORD + layout->extra_bytes) + layout->blocks * layout->block_width +
               block * sizeof chunk,
           sizeof chunk);
    return chunk;
}

// Adds a tensor's accesses if the blocks from `first` to `end` begin with its first chunk.
static void add_tensor(const struct launch *launch, uint32_t first, uint32_t end, uint32_t least, const enum vr_check_effect *effects,
                       struct vr_sim_accesses *accesses) {
    const uint32_t tensor = tensor_of_block(launch, first);
    if (tensor >= launch->layout.tensors || chunk_of_block(launch, first) != 0) return;
    const uint64_t all = word_at(launch->argument, launch->layout.lists * launch->layout.tensors + tensor);
    const uint64_t most = (uint64_t)(end - first) * CHUNK_ELEMENTS;
    for (uint32_t list = 0; list < launch->layout.lists; list++)
        vr_sim_accesses_add(accesses, (struct vr_check_access){.address = word_at(launch->argument, list * launch->layout.tensors + tensor),
                                                               .size_bytes = (all < most ? all : most) * least,
                                                               .effect = effects[list],
                                                               .open = true});
}

bool vr_sim_tensor_lists(const char *name, const unsigned char *argument, uint32_t argument_bytes, uint32_t blocks, uint32_t least,
                         struct vr_sim_accesses *accesses) {
    struct launch launch = {.argument = argument};
    enum vr_check_effect effects[LISTS_MOST] = {VR_CHECK_USE};
    if (strncmp(name, "_ZN2at6native", 13) != 0 || strstr(name, "multi_tensor_apply_kernel") == NULL) return false;
    if (!find_layout(name, argument_bytes, &launch.layout) || blocks > launch.layout.blocks) return false;
    find_effects(name, &launch.layout, effects);
    for (uint32_t first = 0, end; first < blocks; first = end) {
        end = first + 1;
        while (end < blocks && tensor_of_block(&launch, end) == tensor_of_block(&launch, first)) end++;
        add_tensor(&launch, first, end, least, effects, accesses);
    }
    return true;
}
