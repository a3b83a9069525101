#include "sim/modules/sim_outputs.h"

#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "sim/modules/sim_operands.h"
#include "sim/modules/sim_ptx.h"

enum { WORD = 8, ALL = 1 << 20, LAST = -1, USUAL_ELEMENT = 8 };

// --- families -------------------------------------------------------------------------------------------------------

// Places of addresses in an argument. Unset fields may contain anything, even addresses, so nothing else is searched.
enum where {
    EVERYWHERE,
    BEHIND_STRIDES, // the first word after an OffsetCalculator with as many operands as fit
    AFTER_STRIDES,  // after an OffsetCalculator of three operands, or of two if the argument is short
    RESULTS         // of a ReduceOp: five words before its last two
};

// Kernels with a struct or lambda argument: which argument holds the addresses, and which of these the kernel writes.
struct family {
    const char *part; // part of the name
    int parameter;    // index; LAST: the last one; ALL: each one
    enum where place;
    uint32_t first, count;
    int elements; // parameter with the number of contiguous elements written; -1: unknown
};

// PyTorch's families (aten/src/ATen/native/cuda: Loops.cuh, CUDALoops.cuh, Reduce.cuh, DistributionTemplates.h, ScatterGatherKernel.cu,
// IndexKernel.cu, MultiTensorApply.cuh), as of 2.6 and 2.15. An iterator's outputs are its first operands; if a kernel has their strides,
// the operands follow those. Norms of a list of tensors are written through pointers outside of the list.
static const struct family families[] = {
    {"unrolled_elementwise_kernel_for_multi_outputsILi2E", 2, EVERYWHERE, 0, 2, 0},
    {"unrolled_elementwise_kernel_for_multi_outputsILi3E", 2, EVERYWHERE, 0, 3, 0},
    {"unrolled_elementwise_kernel_for_multi_outputs", 2, EVERYWHERE, 0, 4, 0},
    {"vectorized_elementwise_kernel", 2, EVERYWHERE, 0, 1, 0},
    {"unrolled_elementwise_kernel", 2, EVERYWHERE, 0, 1, 0},
    {"vectorized_templated_elementwise_kernel", 2, EVERYWHERE, 0, 1, 0},
    {"vectorized_gather_kernel", 0, EVERYWHERE, 0, 1, -1},
    {"index_elementwise_kernel", 1, AFTER_STRIDES, 0, 1, -1},
    {"distribution_elementwise_grid_stride_kernel", LAST, BEHIND_STRIDES, 0, 1, -1},
    {"elementwise_kernel_with_index", LAST, EVERYWHERE, 0, 1, 0},
    {"_scatter_gather_elementwise_kernel", 1, AFTER_STRIDES, 1, 1, -1},
    {"18elementwise_kernelI", 1, BEHIND_STRIDES, 0, 1, -1},
    {"legacy_elementwise_kernel", 1, BEHIND_STRIDES, 0, 1, -1},
    {"13reduce_kernelI", 0, RESULTS, 0, ALL, -1},
    {"LpNormFunctor", ALL, EVERYWHERE, 0, 0, -1},
    {"multi_tensor_apply_kernel", ALL, EVERYWHERE, 0, ALL, -1},
};

// Returns the size of an OffsetCalculator with 32-bit indices: a number of dimensions, 25 divisors of 12 bytes, and 25 strides per operand.
static uint32_t strides_bytes(uint32_t operands) { return (uint32_t)vr_round_up(4 + 25 * 12 + operands * 25 * 4, WORD); }

// Limits the search to the words that `place` means. If the argument has another form, the whole argument is searched.
static void choose_words(struct vr_sim_output *output, enum where place) {
    const uint32_t all = output->words, two = strides_bytes(2) / WORD, three = strides_bytes(3) / WORD;
    uint32_t operands = 4;
    if (place == AFTER_STRIDES && all > two) output->from = all > three + 3 ? three : two;
    if (place == RESULTS && all > 8) output->from = all - 7;
    while (operands > 0 && strides_bytes(operands) / WORD + operands > all) operands--;
    if (place == BEHIND_STRIDES && operands > 0) output->from = strides_bytes(operands) / WORD;
    output->words = all - output->from;
    if (output->from > 0 && place == BEHIND_STRIDES) output->words = 1;
    if (output->from > 0 && place == RESULTS) output->words = 5;
}

static const struct family *family_of(const char *name) {
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strstr(name, families[i].part) != NULL) return &families[i];
    return NULL;
}

// Guesses the size of an element from the first type of a functor in the name, as in FillFunctorIfE. Returns the widest usual one if there
// is no such type.
static uint32_t element_bytes(const char *name) {
    static const struct {
        const char *part;
        uint32_t bytes;
    } widths[] = {{"FunctorIfE", 4},
                  {"FunctorIdE", 8},
                  {"FunctorIiE", 4},
                  {"FunctorIlE", 8},
                  {"FunctorIsE", 2},
                  {"FunctorIaE", 1},
                  {"FunctorIhE", 1},
                  {"FunctorIbE", 1},
                  {"addIfE", 4},
                  {"FunctorIN3c104HalfEE", 2},
                  {"FunctorIN3c108BFloat16EE", 2}};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        if (strstr(name, widths[i].part) != NULL) return widths[i].bytes;
    return strstr(name, "complexIdE") != NULL ? 2 * USUAL_ELEMENT : USUAL_ELEMENT;
}

// --- rows -----------------------------------------------------------------------------------------------------------

static bool add_output(struct vr_sim_kernel *kernel, size_t parameter, uint32_t first, uint32_t count) {
    const uint32_t words = kernel->parameters[parameter].size_bytes / WORD;
    if (words == 0 || count == 0) return true;
    if (VR_GROW(kernel, outputs, kernel->output_count + 1) != VRAM_OK) return false;
    kernel->outputs[kernel->output_count++] =
        (struct vr_sim_output){.parameter = (uint32_t)parameter, .words = words, .first = first, .count = count};
    return true;
}

static bool add_family(struct vr_sim_kernel *kernel, const struct family *family) {
    const size_t count = kernel->parameter_count;
    if (family->parameter == ALL) {
        for (size_t i = 0; i < count; i++)
            if (!add_output(kernel, i, family->first, family->count)) return false;
        return true;
    }
    const size_t parameter = family->parameter == LAST ? count - 1 : (size_t)family->parameter;
    if (parameter >= count) return true;
    if (!add_output(kernel, parameter, family->first, family->count)) return false;
    if (kernel->output_count == 0) return true;
    struct vr_sim_output *output = &kernel->outputs[kernel->output_count - 1];
    choose_words(output, family->place);
    if (family->elements < 0) return true;
    output->elements = (uint32_t)family->elements + 1;
    output->element_bytes = element_bytes(kernel->name);
    return true;
}

// --- by the types of parameters -------------------------------------------------------------------------------------

enum access { READ, WRITTEN, TENSOR, UNKNOWN }; // TENSOR: its first word points to data that is written

// Returns the text after the first occurrence of `part`, or NULL.
static const char *find_text(const char *text, size_t length, const char *part) {
    const size_t width = strlen(part);
    for (size_t at = 0; at + width <= length; at++)
        if (memcmp(text + at, part, width) == 0) return text + at + width;
    return NULL;
}

// Returns the element type if the type is one of ATen's tensor structs, else NULL. Their first word is the address; later words may be
// unset.
static const char *element_of(const struct vr_sim_mangled_type *type) {
    static const char *const tensors[] = {"10TensorInfo", "TensorAccessor", "TensorAccessor32", "TensorAccessor64"};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const char *own = find_text(type->text, type->length, tensors[i]);
        const bool known = type->template_text != NULL && find_text(type->template_text, type->template_length, tensors[i]) != NULL;
        if (known && own == NULL) own = memchr(type->text, 'I', type->length);
        if (own != NULL && own + 1 < type->text + type->length && *own == 'I') return own + 1;
    }
    return NULL;
}

static enum access access_of(const struct vr_sim_mangled_type *type) {
    if (type->pack) return UNKNOWN;
    if (type->pointer) return type->to_constant ? READ : WRITTEN;
    const char *element = element_of(type);
    if (element != NULL) return *element == 'K' ? READ : TENSOR;
    return type->length == 1 ? READ : UNKNOWN; // a number
}

// Returns whether the kernel's code is known, and only reads the memory behind a parameter or leaves it alone.
static bool is_only_read(const struct vr_sim_kernel *kernel, size_t parameter) {
    const uint8_t effects = kernel->effects != NULL && parameter < VR_SIM_PTX_PARAMETERS ? kernel->effects[parameter] : 0;
    return (effects & VR_SIM_PTX_KNOWN) != 0 && (effects & (VR_SIM_PTX_WRITES | VR_SIM_PTX_ESCAPES)) == 0;
}

static bool add_by_types(struct vr_sim_kernel *kernel, const struct vr_sim_mangled_type *types, size_t count) {
    bool some = false;
    for (size_t i = 0; i < kernel->parameter_count && i < count; i++) {
        const enum access access = access_of(&types[i]);
        some = some || access == WRITTEN || access == TENSOR;
    }
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const enum access access = i < count ? access_of(&types[i]) : UNKNOWN; // parameters of a pack
        if (access == READ || (access == UNKNOWN && some) || is_only_read(kernel, i)) continue;
        const size_t before = kernel->output_count;
        if (!add_output(kernel, i, 0, ALL)) return false;
        if (access == TENSOR && kernel->output_count > before) kernel->outputs[before].words = 1;
    }
    return true;
}

// Matches CUB's kernels with which PyTorch counts nonzero or unique elements, as of 2.6 and 2.15. Returns the parameter with the number of
// elements, plus one, or 0. The second kernel also moves the elements, which were counted before.
static uint32_t counting_argument(const char *name) {
    const bool nonzero = strstr(name, "Nonzero") != NULL || strstr(name, "NonZero") != NULL;
    if (nonzero && strstr(name, "DeviceReduce") != NULL) return 2 + 1;
    return !nonzero && strstr(name, "DeviceSelectSweepKernel") != NULL ? 7 + 1 : 0;
}

// Reads the types of the kernel's parameters from its name. Returns their number, 0 if the name does not fit the parameters.
static size_t known_types(const struct vr_sim_kernel *kernel, struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST]) {
    const size_t count = vr_sim_signature(kernel->name, types);
    if (count == SIZE_MAX || (count != kernel->parameter_count && (count == 0 || !types[count - 1].pack))) return 0;
    return count > kernel->parameter_count ? kernel->parameter_count : count;
}

// Returns whether this is an attention kernel of FlashAttention 2 or 3, or of FlashInfer, whose only argument is a struct. Most of its
// addresses are those of inputs that a program reads again: lengths of sequences and tables of blocks. Its result is a large tensor.
static bool is_attention_of_struct(const struct vr_sim_kernel *kernel) {
    static const char *const parts[] = {"N5flash", "PagedKVCacheKernel", "RaggedKVCacheKernel"};
    for (size_t i = 0; i < VR_COUNT_OF(parts) && kernel->parameter_count == 1; i++)
        if (strstr(kernel->name, parts[i]) != NULL) return true;
    return false;
}

static bool find_outputs(struct vr_sim_kernel *kernel) {
    struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST];
    const struct family *family = family_of(kernel->name);
    kernel->counts = counting_argument(kernel->name);
    if (kernel->counts > kernel->parameter_count) kernel->counts = 0;
    kernel->updates = strncmp(kernel->name, "_Z", 2) != 0;
    if (kernel->parameter_count == 0 || !kernel->has_parameters) return true;
    if (strcmp(kernel->name, VR_SIM_LIBRARY_KERNEL) == 0) return true; // a library writes its results itself
    if (family != NULL) return add_family(kernel, family);
    if (is_attention_of_struct(kernel)) return true;
    return add_by_types(kernel, types, known_types(kernel, types));
}

bool vr_sim_kernel_find_outputs(struct vr_sim_kernel *kernel) {
    if (kernel->has_outputs) return true;
    if (!find_outputs(kernel)) {
        kernel->output_count = 0;
        return false;
    }
    kernel->has_outputs = true;
    return true;
}

// --- operands -------------------------------------------------------------------------------------------------------

static bool add_operand(struct vr_sim_kernel *kernel, size_t parameter, uint32_t from, uint32_t words, enum vr_check_effect effect) {
    if (words == 0 || (from + words) * WORD > kernel->parameters[parameter].size_bytes) return true;
    if (VR_GROW(kernel, operands, kernel->operand_count + 1) != VRAM_OK) return false;
    kernel->operands[kernel->operand_count++] =
        (struct vr_sim_operand){.parameter = (uint32_t)parameter, .from = from, .words = words, .effect = effect};
    return true;
}

// Returns the number of operands whose strides an argument holds before its addresses, or 0.
static uint32_t operands_behind_strides(uint32_t words) {
    uint32_t operands = 4;
    while (operands > 0 && strides_bytes(operands) / WORD + operands > words) operands--;
    return operands;
}

// Adds an iterator's addresses: the outputs come before the inputs.
static bool add_iterator(struct vr_sim_kernel *kernel, size_t parameter, uint32_t from, uint32_t outputs, uint32_t all) {
    return add_operand(kernel, parameter, from, outputs < all ? outputs : all, VR_CHECK_WRITE) &&
           (all <= outputs || add_operand(kernel, parameter, from + outputs, all - outputs, VR_CHECK_READ));
}

// Reads a type of a mangled name and moves past it. Returns its size, 0 if it is no element's. *of_class: the size of the last class, which
// a substitution ("S5_") repeats.
static uint32_t take_element(const char **at, uint32_t *of_class) {
    static const struct {
        const char *type;
        uint32_t bytes;
    } types[] = {{"f", 4}, {"d", 8}, {"i", 4}, {"l", 8},           {"s", 2},
                 {"a", 1}, {"h", 1}, {"b", 1}, {"N3c104HalfE", 2}, {"N3c108BFloat16E", 2}};
    const size_t substitution = **at == 'S' ? strcspn(*at, "_") + 1 : 0;
    if (substitution > 0 && substitution <= 4) {
        *at += substitution;
        return *of_class;
    }
    for (size_t i = 0; i < VR_COUNT_OF(types); i++) {
        const size_t length = strlen(types[i].type);
        if (strncmp(*at, types[i].type, length) != 0) continue;
        *at += length;
        if (length > 1) *of_class = types[i].bytes;
        return types[i].bytes;
    }
    return 0;
}

// The first template arguments of a functor are the types of its operands: BinaryFunctor<float, float, bool, ...> is
// "BinaryFunctorIffb". Without them, 1 is a lower bound; so it is for CompareFunctor<T>, whose result is a bool.
uint32_t vr_sim_least_element_bytes(const char *name) {
    const char *at = strstr(name, "FunctorI");
    uint32_t least = USUAL_ELEMENT, of_class = 1;
    bool known = false;
    if (at == NULL || strstr(name, "WithCast") != NULL || strstr(name, "Compare") != NULL) return 1;
    at += strlen("FunctorI");
    for (uint32_t bytes = take_element(&at, &of_class); bytes != 0; bytes = take_element(&at, &of_class)) {
        known = true;
        if (bytes < least) least = bytes;
    }
    return known ? least : 1;
}

// Notes that the operands from `first` on have as many contiguous elements as an argument says.
static void count_elements(struct vr_sim_kernel *kernel, size_t first, int parameter) {
    for (size_t i = first; i < kernel->operand_count; i++) {
        kernel->operands[i].elements = (uint32_t)parameter + 1;
        kernel->operands[i].element_bytes = vr_sim_least_element_bytes(kernel->name);
    }
}

// Words with the operands of kernels that index (IndexKernel.cu, ScatterGatherKernel.cu). After the strides of three operands, which end at
// word 76, a lambda has their addresses, and those of indices.
static const struct indexing {
    const char *part; // of the name
    uint32_t parameter, words, word;
    enum vr_check_effect effect;
    bool anywhere;
} indexing[] = {
    {"24vectorized_gather_kernelI", 0, 1, 0, VR_CHECK_WRITE, false},
    {"24vectorized_gather_kernelI", 1, 1, 0, VR_CHECK_READ, true},
    {"24vectorized_gather_kernelI", 2, 1, 0, VR_CHECK_READ, false},
    {"17index_kernel_impl", 1, 155, 76, VR_CHECK_WRITE, false},
    {"17index_kernel_impl", 1, 155, 77, VR_CHECK_READ, true},
    {"21index_put_kernel_impl", 1, 155, 76, VR_CHECK_WRITE, true},
    {"21index_put_kernel_impl", 1, 155, 77, VR_CHECK_READ, false},
    {"36_cuda_scatter_gather_internal_kernelILb0E", 1, 83, 76, VR_CHECK_READ, false},
    {"36_cuda_scatter_gather_internal_kernelILb0E", 1, 83, 79, VR_CHECK_WRITE, false},
    {"36_cuda_scatter_gather_internal_kernelILb0E", 1, 83, 82, VR_CHECK_READ, true},
    {"36_cuda_scatter_gather_internal_kernelILb1E", 1, 83, 76, VR_CHECK_READ, false},
    {"36_cuda_scatter_gather_internal_kernelILb1E", 1, 83, 79, VR_CHECK_WRITE, true},
    {"36_cuda_scatter_gather_internal_kernelILb1E", 1, 83, 82, VR_CHECK_READ, false},
};

static bool add_indexing(struct vr_sim_kernel *kernel) {
    for (size_t i = 0; i < VR_COUNT_OF(indexing); i++) {
        const struct indexing *row = &indexing[i];
        if (strstr(kernel->name, row->part) == NULL || row->parameter >= kernel->parameter_count) continue;
        if (kernel->parameters[row->parameter].size_bytes / WORD != row->words) continue;
        if (!add_operand(kernel, row->parameter, row->word, 1, row->effect)) return false;
        kernel->operands[kernel->operand_count - 1].anywhere = row->anywhere;
    }
    return true;
}

// Words with the operands of PyTorch's attention kernels, whose only argument is a struct: flash attention's Flash_fwd_params and
// Flash_bwd_params, and the Params of memory-efficient attention, as of 2.6 (the shorter ones) and 2.15. What is unset is 0.
#define END (-1)
static const struct attention {
    const char *part; // of the name
    uint32_t words;   // of the argument
    int8_t read[8], written[5];
} attentions[] = {
    {"16flash_fwd_kernelI", 57, {0, 1, 2, END}, {14, 20, END}},
    {"16flash_fwd_kernelI", 59, {0, 1, 2, END}, {14, 20, END}},
    {"25flash_bwd_dot_do_o_kernelI", 79, {14, 57, END}, {76, END}},
    {"25flash_bwd_dot_do_o_kernelI", 81, {14, 59, END}, {78, END}},
    {"44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI", 79, {0, 1, 2, 20, 57, 76, END}, {59, 60, 61, END}},
    {"44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI", 81, {0, 1, 2, 20, 59, 78, END}, {61, 62, 63, END}},
    {"27flash_bwd_convert_dq_kernelI", 79, {61, END}, {58, END}},
    {"27flash_bwd_convert_dq_kernelI", 81, {63, END}, {60, END}},
    {"fmha_cutlassF_", 33, {0, 1, 2, 3, END}, {8, 10, END}},
    {"fmha_cutlassF_", 35, {0, 1, 2, 3, END}, {8, 10, END}},
    {"fmha_cutlassB_", 54, {0, 1, 2, 3, 4, 5, 6, END}, {10, 11, 12, END}},
    {"fmha_cutlassB_", 60, {0, 1, 2, 3, 4, 5, 6, END}, {10, 11, 12, END}},
};

static bool add_words(struct vr_sim_kernel *kernel, const int8_t *words, enum vr_check_effect effect) {
    for (; *words != END; words++)
        if (!add_operand(kernel, 0, (uint32_t)*words, 1, effect)) return false;
    return true;
}

static bool add_attention(struct vr_sim_kernel *kernel) {
    for (size_t i = 0; i < VR_COUNT_OF(attentions); i++) {
        const struct attention *row = &attentions[i];
        if (strstr(kernel->name, row->part) == NULL || kernel->parameters[0].size_bytes / WORD != row->words) continue;
        return add_words(kernel, row->read, VR_CHECK_READ) && add_words(kernel, row->written, VR_CHECK_WRITE);
    }
    return true;
}

static bool add_family_operands(struct vr_sim_kernel *kernel, const struct family *family) {
    const size_t parameter = family->parameter == LAST ? kernel->parameter_count - 1 : (size_t)family->parameter;
    if (family->parameter == ALL || parameter >= kernel->parameter_count) return true;
    const uint32_t words = kernel->parameters[parameter].size_bytes / WORD;
    // An argument of addresses only. Arrays of more than 8 are other structs.
    if (family->place == EVERYWHERE && family->elements >= 0 && words <= 8) {
        const size_t first = kernel->operand_count;
        const bool added = add_iterator(kernel, parameter, 0, family->count, words);
        if (strstr(kernel->name, "16OffsetCalculatorI") == NULL) count_elements(kernel, first, family->elements); // else they have strides
        return added;
    }
    const uint32_t operands = operands_behind_strides(words);
    if (family->place == BEHIND_STRIDES && operands > 0)
        return add_iterator(kernel, parameter, strides_bytes(operands) / WORD, family->count, operands);
    // A lambda of contiguous tensors captures its output first.
    if (family->place == BEHIND_STRIDES && family->parameter == LAST && words <= 4)
        return add_operand(kernel, parameter, 0, 1, VR_CHECK_WRITE);
    if (family->place == RESULTS && words > 8)
        return add_operand(kernel, parameter, words - 8, 1, VR_CHECK_READ) && add_operand(kernel, parameter, words - 7, 1, VR_CHECK_WRITE);
    return true;
}

// Returns whether the types tell what the kernel writes. They do in two cases. If some of its pointers are to const, the others are
// written, or they would be to const as well. If it has a single pointer, that is written, because a kernel that writes nothing does
// nothing.
static bool types_show_writes(const struct vr_sim_kernel *kernel, const struct vr_sim_mangled_type *types, size_t count) {
    size_t pointers = 0, unknown = kernel->parameter_count - count;
    for (size_t i = 0; i < count; i++) {
        const bool pointer = (types[i].pointer && !types[i].pack) || element_of(&types[i]) != NULL;
        if (pointer && access_of(&types[i]) == READ) return true;
        pointers += pointer;
        unknown += !pointer && access_of(&types[i]) == UNKNOWN;
    }
    return pointers == 1 && unknown == 0;
}

// Returns the effect of a kernel on the memory behind a parameter, according to its code. Without code, returns `otherwise`, which the
// types tell.
static enum vr_check_effect effect_of(const struct vr_sim_kernel *kernel, size_t parameter, enum vr_check_effect otherwise) {
    const uint8_t effects = kernel->effects != NULL && parameter < VR_SIM_PTX_PARAMETERS ? kernel->effects[parameter] : 0;
    if ((effects & VR_SIM_PTX_KNOWN) == 0) return otherwise;
    if ((effects & VR_SIM_PTX_WRITES) != 0) return VR_CHECK_WRITE;
    return (effects & VR_SIM_PTX_ESCAPES) == 0 ? VR_CHECK_READ : VR_CHECK_USE;
}

// Returns whether the code leaves the memory behind a parameter alone.
static bool is_unused(const struct vr_sim_kernel *kernel, size_t parameter) {
    return kernel->effects != NULL && parameter < VR_SIM_PTX_PARAMETERS && kernel->effects[parameter] == VR_SIM_PTX_KNOWN;
}

static bool add_operands_by_types(struct vr_sim_kernel *kernel, const struct vr_sim_mangled_type *types, size_t count) {
    const enum vr_check_effect other = types_show_writes(kernel, types, count) ? VR_CHECK_WRITE : VR_CHECK_USE;
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const enum access access = i < count ? access_of(&types[i]) : UNKNOWN;
        const bool word = kernel->parameters[i].size_bytes == WORD, pointer = i < count && types[i].pointer && !types[i].pack;
        const bool tensor = i < count && element_of(&types[i]) != NULL;
        if ((!pointer && !tensor && (count > 0 || !word)) || is_unused(kernel, i)) continue;
        if (!add_operand(kernel, i, 0, 1, effect_of(kernel, i, access == READ ? VR_CHECK_READ : other))) return false;
    }
    return true;
}

static bool find_operands(struct vr_sim_kernel *kernel) {
    struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST];
    const struct family *family = family_of(kernel->name);
    if (kernel->parameter_count == 0 || !kernel->has_parameters) return true;
    if (!add_attention(kernel)) return false;
    if (kernel->operand_count > 0) return true;
    if (family != NULL) return add_indexing(kernel) && (kernel->operand_count > 0 || add_family_operands(kernel, family));
    return add_operands_by_types(kernel, types, known_types(kernel, types));
}

bool vr_sim_kernel_find_operands(struct vr_sim_kernel *kernel) {
    if (!kernel->has_operands && !find_operands(kernel)) {
        kernel->operand_count = 0;
        return false;
    }
    kernel->has_operands = true;
    return true;
}
