// What a launch writes: fills by kernels that are known, and how far the answers in outputs are known.
#include <stdlib.h>
#include <string.h>

#include "sim/modules/sim_launch.h"
#include "sim/modules/sim_outputs.h"
#include "sim/streams/sim_answers.h"
#include "sim/streams/sim_callbacks.h"

// ---- What a launch makes a kernel write: what lay there before is not there afterwards.

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

// ---- Kernels that only fill memory, known by their names, are done: their values decide how many tokens a server sampled, or which
// elements a mask has. They are PyTorch's `template<..., FillFunctor<T>, array<char *, 1>, ...> kernel(int count, FillFunctor<T> value,
// array<char *, 1> to, ...)`, which write `count` times T. Names are mangled as the Itanium C++ ABI says.

// No more is kept of a fill by a value longer than four bytes that are repeated; the rest is as if nobody had written it.
#define WIDE_MOST_BYTES VR_SIM_SMALL_COPY_BYTES

// --- names ----------------------------------------------------------------------------------------------------------

struct type {
    const char *mangled;
    uint32_t size_bytes;
};

static const struct type types[] = {
    {"b", 1},
    {"a", 1},
    {"h", 1},
    {"s", 2},
    {"t", 2},
    {"i", 4},
    {"j", 4},
    {"l", 8},
    {"m", 8},
    {"x", 8},
    {"y", 8},
    {"f", 4},
    {"d", 8},
    {"N3c104HalfE", 2},
    {"N3c108BFloat16E", 2},
    {"N3c1013Float8_e4m3fnE", 1},
    {"N3c1015Float8_e4m3fnuzE", 1},
    {"N3c1011Float8_e5m2E", 1},
    {"N3c1015Float8_e5m2fnuzE", 1},
    {"N3c1014Float8_e8m0fnuE", 1},
    {"N3c107complexINS3_4HalfEEE", 4},
    {"N3c107complexIfEE", 8},
    {"N3c107complexIdEE", 16},
};

static bool begins_with(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

// What of the name comes behind `word`; NULL when it is not in it.
static const char *name_behind(const char *name, const char *word) {
    const char *found = strstr(name, word);
    return found == NULL ? NULL : found + strlen(word);
}

uint32_t vr_sim_fill_value_bytes(const char *name) {
    const char *type = name_behind(name, "11FillFunctorI");
    if (type == NULL || !begins_with(name, "_ZN2at6native")) return 0;
    const char *kernel = name + strlen("_ZN2at6native");
    // The others find an element's place by a calculator of offsets, or convert what they write.
    if (!begins_with(kernel, "29vectorized_elementwise_kernelI") && !begins_with(kernel, "27unrolled_elementwise_kernelI")) return 0;
    if (strstr(type, "WithCast") != NULL) return 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t length = strlen(types[i].mangled);
        if (!begins_with(type, types[i].mangled) || !begins_with(type + length, "EE")) continue;
        const char *array = type + length + strlen("EE");
        return begins_with(array, "St5arrayIPcLm1EE") || begins_with(array, "NS_6detail5ArrayIPcLi1EE") ? types[i].size_bytes : 0;
    }
    return 0;
}

// --- filling --------------------------------------------------------------------------------------------------------

struct fill {
    uint64_t to, size_bytes;
    uint32_t value_bytes;
    unsigned char value[16];
};

struct bytes_payload {
    struct vr_sim_payload head;
    unsigned char bytes[];
};

static vr_cu_result run_fill(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    vr_cu_result result = VR_CU_SUCCESS;
    if (!vr_sim_callback_done(sim, stream->callback)) result = vr_sim_callbacks_reserve(sim, 1);
    return result == VR_CU_SUCCESS ? vr_sim_work_run(sim, stream, &(struct vr_sim_callback){.work = *work}) : result;
}

// A value of up to four bytes, or of the same four bytes over and over.
static bool is_narrow(const struct fill *fill) {
    return fill->value_bytes <= 4 || memcmp(fill->value, fill->value + 4, fill->value_bytes - 4) == 0;
}

static vr_cu_result fill_narrow(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct fill *fill) {
    struct vr_sim_work work = vr_sim_set_work(fill->to, 0, fill->size_bytes);
    work.device = device;
    work.element_bytes = fill->value_bytes > 4 ? 4 : fill->value_bytes;
    memcpy(&work.value, fill->value, work.element_bytes);
    return run_fill(sim, stream, &work);
}

static vr_cu_result fill_wide(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct fill *fill) {
    if (fill->size_bytes > WIDE_MOST_BYTES) {
        vr_sim_transfer_pass(sim, fill->to, fill->size_bytes, false);
        return VR_CU_SUCCESS;
    }
    struct bytes_payload *payload = malloc(sizeof *payload + (size_t)fill->size_bytes);
    if (payload == NULL) return VR_CU_OUT_OF_MEMORY;
    payload->head = (struct vr_sim_payload){1};
    for (uint64_t at = 0; at < fill->size_bytes; at += fill->value_bytes) memcpy(payload->bytes + at, fill->value, fill->value_bytes);
    struct vr_sim_work work = vr_sim_copy_work(fill->to, (uint64_t)(uintptr_t)payload->bytes, fill->size_bytes);
    work.device = device;
    work.payload = &payload->head;
    const vr_cu_result result = run_fill(sim, stream, &work);
    vr_sim_payload_drop(&payload->head);
    return result;
}

// Device memory, or host memory that devices reach: a wild write of a kernel is not found out, and not done.
static bool may_fill(const struct vr_sim *sim, uint32_t device, const struct fill *fill) {
    bool host;
    if (!vr_sim_is_memory(sim, fill->to, fill->size_bytes, device, true, &host)) return false;
    return !host || vr_sim_is_pinned(sim, fill->to, fill->size_bytes);
}

vr_cu_result vr_sim_launch_fill(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct vr_sim_launch *launch) {
    const struct vr_sim_function *function = vr_sim_function_find(sim, launch->function);
    void **const parameters = launch->parameters;
    if (!vr_sim_keeps(sim) || function == NULL || parameters == NULL) return VR_CU_SUCCESS;
    struct fill fill = {.value_bytes = vr_sim_function_kernel(function)->fill_value_bytes};
    if (fill.value_bytes == 0) return VR_CU_SUCCESS;
    int32_t count;
    memcpy(&count, parameters[0], sizeof count);
    memcpy(fill.value, parameters[1], fill.value_bytes);
    memcpy(&fill.to, parameters[2], sizeof fill.to);
    if (count <= 0) return VR_CU_SUCCESS;
    fill.size_bytes = (uint64_t)count * fill.value_bytes;
    if (!may_fill(sim, device, &fill)) return VR_CU_SUCCESS;
    const uint64_t writes = sim->content.writes;
    const vr_cu_result result = is_narrow(&fill) ? fill_narrow(sim, stream, device, &fill) : fill_wide(sim, stream, device, &fill);
    // It is not done yet where the stream waits for the host; then it is newer than what kernels are given until then.
    if (fill.size_bytes <= VR_SIM_SMALL_FILL_BYTES && sim->content.writes == writes + 1) vr_sim_content_note_fill(&sim->content);
    return result;
}
