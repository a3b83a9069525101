// sim_launch_pass.c: what a launch makes a kernel write: what lay there before is not there afterwards.
#include "sim/modules/sim_launch.h"
#include "sim/modules/sim_outputs.h"
#include "sim/streams/sim_answers.h"

// Where the argument of a parameter lies, as one of a list or in one piece. NULL: nowhere.
struct arguments {
    void *const *list;
    const unsigned char *buffer;
    uint64_t buffer_bytes;
};

static struct arguments arguments_of(const struct vr_sim_launch *launch) {
    struct arguments arguments = {.list = (void *const *)launch->parameters};
    for (unsigned i = 0; launch->extra != NULL && i < 8 && (uint64_t)(uintptr_t)launch->extra[i] != VR_CU_LAUNCH_PARAM_END; i += 2) {
        if ((uint64_t)(uintptr_t)launch->extra[i] == VR_CU_LAUNCH_PARAM_BUFFER_POINTER) arguments.buffer = launch->extra[i + 1];
        if ((uint64_t)(uintptr_t)launch->extra[i] == VR_CU_LAUNCH_PARAM_BUFFER_SIZE && launch->extra[i + 1] != NULL)
            arguments.buffer_bytes = *(const uint64_t *)launch->extra[i + 1];
    }
    return arguments;
}

static const unsigned char *argument_at(const struct arguments *arguments, const struct vr_sim_kernel *kernel, uint32_t index) {
    const struct vr_sim_parameter *parameter = &kernel->parameters[index];
    if (arguments->list != NULL) return arguments->list[index];
    const bool inside = arguments->buffer != NULL && (uint64_t)parameter->offset_bytes + parameter->size_bytes <= arguments->buffer_bytes;
    return inside ? arguments->buffer + parameter->offset_bytes : NULL;
}

// A number that is an argument; false where it is none.
static bool number_at(const struct arguments *arguments, const struct vr_sim_kernel *kernel, uint32_t index, uint64_t *number) {
    const uint32_t size = kernel->parameters[index].size_bytes;
    const unsigned char *from = argument_at(arguments, kernel, index);
    if (from == NULL || size > sizeof *number) return false;
    *number = 0;
    memcpy(number, from, size);
    return true;
}

// The bytes that are written one after the other, by the argument that counts them. UINT64_MAX: not known.
static uint64_t written_bytes(const struct arguments *arguments, const struct vr_sim_kernel *kernel, const struct vr_sim_output *output) {
    if (output->elements == 0) return UINT64_MAX;
    uint64_t elements;
    if (!number_at(arguments, kernel, output->elements - 1, &elements)) return UINT64_MAX;
    return elements > VR_SIM_LIMIT ? UINT64_MAX : elements * output->element_bytes;
}

// Called with each place that a kernel writes, and the bytes there; UINT64_MAX: not known.
typedef void visit_output(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool updates);

static void find_output(struct vr_sim *sim, const struct arguments *arguments, const struct vr_sim_kernel *kernel,
                        const struct vr_sim_output *output, visit_output *visit) {
    const unsigned char *bytes = argument_at(arguments, kernel, output->parameter);
    uint32_t found = 0;
    if (bytes == NULL) return;
    for (uint32_t i = 0; i < output->words && found < output->first + output->count; i++) {
        uint64_t word;
        memcpy(&word, bytes + (output->from + i) * sizeof word, sizeof word);
        if (!vr_sim_is_near(&sim->allocated, word) && !vr_sim_is_near(&sim->reserved, word)) continue;
        if (found++ >= output->first && !vr_sim_is_shielded(sim, word))
            visit(sim, word, written_bytes(arguments, kernel, output), kernel->updates);
    }
}

static void note_output(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool updates) {
    (void)updates;
    vr_sim_captured_note(sim, address, size_bytes);
}

// How arguments lie, only the code says; of a kernel whose code is closed nothing is known.
static bool knows_outputs(struct vr_sim_kernel *kernel, const struct vr_sim_launch *launch) {
    if (!kernel->has_parameters || kernel->fill_value_bytes != 0) return false; // what fills is done (vr_sim_launch_fill())
    if (VR_UNLIKELY(!kernel->has_outputs) && !vr_sim_kernel_find_outputs(kernel)) return false;
    return launch->parameters != NULL || launch->extra != NULL;
}

static struct vr_sim_kernel *kernel_of(struct vr_sim *sim, const struct vr_sim_launch *launch) {
    struct vr_sim_function *function = vr_sim_function_find(sim, launch->function);
    return function == NULL ? NULL : &function->image->kernels[function->kernel];
}

void vr_sim_launch_pass(struct vr_sim *sim, const struct vr_sim_launch *launch) {
    struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    if (!vr_sim_keeps(sim) || kernel == NULL) return;
    vr_sim_content_count_launch(&sim->content);
    if (launch->computed || !knows_outputs(kernel, launch)) return;
    const struct arguments arguments = arguments_of(launch);
    if (VR_UNLIKELY(kernel->counts != 0)) (void)number_at(&arguments, kernel, kernel->counts - 1, &sim->counted);
    for (size_t i = 0; i < kernel->output_count; i++) find_output(sim, &arguments, kernel, &kernel->outputs[i], vr_sim_transfer_pass);
}

void vr_sim_launch_note(struct vr_sim *sim, const struct vr_sim_launch *launch) {
    struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    if (!vr_sim_keeps(sim) || kernel == NULL || !knows_outputs(kernel, launch)) return;
    const struct arguments arguments = arguments_of(launch);
    for (size_t i = 0; i < kernel->output_count; i++) find_output(sim, &arguments, kernel, &kernel->outputs[i], note_output);
}
