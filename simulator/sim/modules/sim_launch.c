// Launches of kernels and their outputs. A launch outside of a capture copies and allocates nothing.
#include "sim/modules/sim_launch.h"

#include <stdlib.h>
#include <string.h>

#include "sim/modules/sim_arguments.h"
#include "sim/modules/sim_operands.h"
#include "sim/modules/sim_outputs.h"
#include "sim/streams/sim_callbacks.h"

// ---- Outputs of a launch: data there becomes unknown.

// Returns the number of contiguous bytes written, from the argument that holds the number of elements. UINT64_MAX: unknown.
static uint64_t written_bytes(const struct vr_sim_arguments *arguments, const struct vr_sim_kernel *kernel,
                              const struct vr_sim_output *output) {
    if (output->elements == 0) return UINT64_MAX;
    uint64_t elements;
    if (!vr_sim_argument_number(arguments, kernel, output->elements - 1, &elements)) return UINT64_MAX;
    return elements > VR_SIM_LIMIT ? UINT64_MAX : elements * output->element_bytes;
}

// Called with the address of each output and its size; UINT64_MAX: unknown.
typedef void visit_output(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool updates);

static void find_output(struct vr_sim *sim, const struct vr_sim_arguments *arguments, const struct vr_sim_kernel *kernel,
                        const struct vr_sim_output *output, visit_output *visit) {
    const unsigned char *bytes = vr_sim_argument_at(arguments, kernel, output->parameter);
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

// Returns whether the kernel's outputs are known. They are unknown if its code cannot be read, because only the code gives the layout of
// arguments.
static bool knows_outputs(struct vr_sim_kernel *kernel, const struct vr_sim_launch *launch) {
    if (!kernel->has_parameters || kernel->fill_value_bytes != 0) return false; // fills are executed (vr_sim_launch_fill())
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
    const struct vr_sim_arguments arguments = vr_sim_arguments_of(launch);
    if (VR_UNLIKELY(kernel->counts != 0)) (void)vr_sim_argument_number(&arguments, kernel, kernel->counts - 1, &sim->counted);
    for (size_t i = 0; i < kernel->output_count; i++) find_output(sim, &arguments, kernel, &kernel->outputs[i], vr_sim_transfer_pass);
}

// Notes the outputs of a captured kernel for vr_sim_captured_take().
static void sim_launch_note(struct vr_sim *sim, const struct vr_sim_launch *launch) {
    struct vr_sim_kernel *kernel = kernel_of(sim, launch);
    if (!vr_sim_keeps(sim) || kernel == NULL || !knows_outputs(kernel, launch)) return;
    const struct vr_sim_arguments arguments = vr_sim_arguments_of(launch);
    for (size_t i = 0; i < kernel->output_count; i++) find_output(sim, &arguments, kernel, &kernel->outputs[i], note_output);
}

// ---- Kernels that only fill memory, recognized by name, are executed: their values decide how many tokens a server sampled, or which
// elements a mask selects. They are PyTorch's `template<..., FillFunctor<T>, array<char *, 1>, ...> kernel(int count, FillFunctor<T> value,
// array<char *, 1> to, ...)`, which write T `count` times. Names are mangled by the Itanium C++ ABI.

// Limit on a fill whose value is not a repeated four bytes; memory after it reads as never written.
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

// Returns the rest of the name after `word`, or NULL if it does not occur.
static const char *name_behind(const char *name, const char *word) {
    const char *found = strstr(name, word);
    return found == NULL ? NULL : found + strlen(word);
}

uint32_t vr_sim_fill_value_bytes(const char *name) {
    const char *type = name_behind(name, "11FillFunctorI");
    if (type == NULL || !begins_with(name, "_ZN2at6native")) return 0;
    const char *kernel = name + strlen("_ZN2at6native");
    // Other kernels compute an element's place with an offset calculator, or convert the values they write.
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

// Returns whether the value is at most four bytes long, or a repetition of four bytes.
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

// Returns whether the range is device memory or pinned host memory. An invalid write by a kernel is ignored.
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
    // If the stream waits for host functions, the fill is done later; it is then newer than the outputs of kernels launched before it was
    // done.
    if (fill.size_bytes <= VR_SIM_SMALL_FILL_BYTES && sim->content.writes == writes + 1) vr_sim_content_note_fill(&sim->content);
    return result;
}

// ---- Launches.

// Limits of every device since compute capability 3.0.
#define GRID_X_MAX      2147483647u
#define GRID_YZ_MAX     65535u
#define BLOCK_XY_MAX    1024u
#define BLOCK_Z_MAX     64u
#define SPIN_MOST_NS    ((uint64_t)1 << 50) // upper limit of a kernel's duration (13 days)
#define NS_OF_SECOND    1000000u            // ns = cycles * NS_OF_SECOND / kHz
#define ATTRIBUTES_MOST 64u

// --- checks ---------------------------------------------------------------------------------------------------------

static bool fits_limits(const struct vr_sim_launch *launch) {
    const uint32_t *grid = launch->grid, *block = launch->block;
    const bool some = grid[0] != 0 && grid[1] != 0 && grid[2] != 0 && block[0] != 0 && block[1] != 0 && block[2] != 0;
    return some && grid[0] <= GRID_X_MAX && grid[1] <= GRID_YZ_MAX && grid[2] <= GRID_YZ_MAX && block[0] <= BLOCK_XY_MAX &&
           block[1] <= BLOCK_XY_MAX && block[2] <= BLOCK_Z_MAX;
}

static uint64_t product_of(const uint32_t numbers[3]) { return (uint64_t)numbers[0] * numbers[1] * numbers[2]; }

// Checks that all blocks can run at the same time. The product of a grid's dimensions does not overflow: it is at most 2^63.
static vr_cu_result check_cooperative(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch,
                                      struct vr_sim_function *function) {
    const int blocks = vr_sim_active_blocks(sim, device, function, product_of(launch->block), launch->shared_bytes);
    const int all = vr_sim_device_value(sim, device, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
    return product_of(launch->grid) <= (uint64_t)blocks * (uint64_t)all ? VR_CU_SUCCESS : VR_CU_COOPERATIVE_LAUNCH_TOO_LARGE;
}

static vr_cu_result check_cluster(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch, struct vr_sim_function *function,
                                  const uint32_t cluster[3]) {
    if (cluster[0] == 0 || cluster[1] == 0 || cluster[2] == 0) return VR_CU_INVALID_VALUE;
    if (cluster[0] > 16 || cluster[1] > 16 || cluster[2] > 16) return VR_CU_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++)
        if (launch->grid[i] % cluster[i] != 0) return VR_CU_INVALID_VALUE;
    const uint64_t blocks = product_of(cluster);
    if (blocks == 1) return VR_CU_SUCCESS;
    if (vr_sim_architecture(sim, device) < 90) return VR_CU_NOT_SUPPORTED;
    return blocks <= (vr_sim_function_settings_of(sim, function)->wide_clusters ? 16 : 8) ? VR_CU_SUCCESS : VR_CU_INVALID_CLUSTER_SIZE;
}

static vr_cu_result check_attributes(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch,
                                     struct vr_sim_function *function) {
    if (launch->attributes == NULL || launch->attribute_count > ATTRIBUTES_MOST) return VR_CU_INVALID_VALUE;
    for (uint32_t i = 0; i < launch->attribute_count; i++) {
        const struct vr_cu_launch_attribute *attribute = &launch->attributes[i];
        vr_cu_result result = VR_CU_SUCCESS;
        if (attribute->id < 0 || attribute->id >= VR_CU_LAUNCH_ATTRIBUTE_MOST) return VR_CU_INVALID_VALUE;
        if (attribute->id == VR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            result = check_cluster(sim, device, launch, function, attribute->value.cluster);
        if (attribute->id == VR_CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute->value.number != 0)
            result = check_cooperative(sim, device, launch, function);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

// Checks that a device can run the launch. INVALID_HANDLE, INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES, INVALID_CLUSTER_SIZE,
// COOPERATIVE_LAUNCH_TOO_LARGE.
static vr_cu_result sim_launch_check(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch,
                                     struct vr_sim_function *function) {
    if (!fits_limits(launch)) return VR_CU_INVALID_VALUE;
    const uint64_t threads = product_of(launch->block);
    if (threads > BLOCK_XY_MAX) return VR_CU_INVALID_VALUE;
    if (threads > vr_sim_function_most_threads(function)) return VR_CU_LAUNCH_OUT_OF_RESOURCES;
    const struct vr_sim_function_settings *settings = vr_sim_function_settings_of(sim, function);
    if (launch->shared_bytes > (uint32_t)settings->dynamic_shared_bytes) return VR_CU_INVALID_VALUE;
    if (launch->parameters != NULL && launch->extra != NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = launch->cooperative ? check_cooperative(sim, device, launch, function) : VR_CU_SUCCESS;
    return result != VR_CU_SUCCESS || launch->attribute_count == 0 ? result : check_attributes(sim, device, launch, function);
}

// --- duration -------------------------------------------------------------------------------------------------------

// Returns the value of BUFFER_POINTER or BUFFER_SIZE in `extra`.
static void *extra_value(void *const *extra, uint64_t key) {
    for (unsigned i = 0; extra != NULL && i < 8 && (uint64_t)(uintptr_t)extra[i] != VR_CU_LAUNCH_PARAM_END; i += 2)
        if ((uint64_t)(uintptr_t)extra[i] == key) return extra[i + 1];
    return NULL;
}

// Returns the first argument of a spinning kernel, which has 8 bytes, or 0 without arguments.
static uint64_t first_argument(const struct vr_sim_launch *launch) {
    const void *at = launch->parameters != NULL ? launch->parameters[0] : extra_value(launch->extra, VR_CU_LAUNCH_PARAM_BUFFER_POINTER);
    int64_t value = 0;
    if (at != NULL) memcpy(&value, at, sizeof value);
    return value < 0 ? 0 : (uint64_t)value;
}

// Returns the kernel's duration.
static uint64_t sim_launch_cost_ns(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch,
                                   const struct vr_sim_function *function) {
    if (sim->options.kernel_ns == 0 || VR_LIKELY(!vr_sim_function_kernel(function)->spins)) return sim->options.kernel_ns;
    const uint64_t cycles = first_argument(launch);
    const uint64_t khz = (uint64_t)vr_sim_device_value(sim, device, VR_CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000);
    return cycles >= SPIN_MOST_NS / NS_OF_SECOND ? SPIN_MOST_NS : cycles * NS_OF_SECOND / khz;
}

// --- copies in nodes ------------------------------------------------------------------------------------------------

static size_t parameter_bytes(const struct vr_sim_kernel *kernel) {
    size_t end = 0;
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const size_t last = (size_t)kernel->parameters[i].offset_bytes + kernel->parameters[i].size_bytes;
        if (last > end) end = last;
    }
    return end;
}

struct copied {
    size_t attributes, list, values; // bytes of each part
};

static void copy_parameters(struct vr_sim_kernel_payload *payload, const struct vr_sim_launch *launch, const struct vr_sim_kernel *kernel,
                            char *at, const struct copied *copied) {
    void **list = (void **)(void *)at;
    char *values = at + copied->list;
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        list[i] = values + kernel->parameters[i].offset_bytes;
        memcpy(list[i], launch->parameters[i], kernel->parameters[i].size_bytes);
    }
    payload->launch.parameters = list;
    payload->has_parameters = true;
}

static void copy_buffer(struct vr_sim_kernel_payload *payload, const void *buffer, size_t size_bytes, char *at) {
    memcpy(at, buffer, size_bytes);
    payload->buffer_bytes = size_bytes;
    payload->extra_list[0] = (void *)(uintptr_t)VR_CU_LAUNCH_PARAM_BUFFER_POINTER;
    payload->extra_list[1] = at;
    payload->extra_list[2] = (void *)(uintptr_t)VR_CU_LAUNCH_PARAM_BUFFER_SIZE;
    payload->extra_list[3] = &payload->buffer_bytes;
    payload->extra_list[4] = NULL;
    payload->launch.extra = payload->extra_list;
    payload->has_parameters = true;
}

// Copies a launch into a payload. Only the code gives the number and sizes of parameters: if it cannot be read, they are not copied.
static vr_cu_result sim_launch_keep(const struct vr_sim_launch *launch, const struct vr_sim_function *function,
                                    struct vr_sim_payload **made) {
    const struct vr_sim_kernel *kernel = vr_sim_function_kernel(function);
    const void *buffer = extra_value(launch->extra, VR_CU_LAUNCH_PARAM_BUFFER_POINTER);
    const uint64_t *length = extra_value(launch->extra, VR_CU_LAUNCH_PARAM_BUFFER_SIZE);
    struct copied copied = {.attributes = launch->attribute_count * sizeof *launch->attributes};
    if (launch->parameters != NULL && kernel->has_parameters) {
        copied.list = (kernel->parameter_count + 1) * sizeof(void *);
        copied.values = parameter_bytes(kernel);
    } else if (buffer != NULL && length != NULL) {
        if (*length > 65536) return VR_CU_INVALID_VALUE;
        copied.values = (size_t)*length;
    }
    struct vr_sim_kernel_payload *payload = malloc(sizeof *payload + copied.attributes + copied.list + copied.values);
    if (payload == NULL) return VR_CU_OUT_OF_MEMORY;
    *payload = (struct vr_sim_kernel_payload){.head = {1}, .launch = *launch};
    payload->launch.parameters = payload->launch.extra = NULL;
    char *at = (char *)(payload + 1);
    if (copied.attributes > 0) memcpy(at, launch->attributes, copied.attributes);
    payload->launch.attributes = copied.attributes == 0 ? NULL : (const struct vr_cu_launch_attribute *)(const void *)at;
    at += copied.attributes;
    if (copied.list > 0)
        copy_parameters(payload, launch, kernel, at, &copied);
    else if (copied.values > 0)
        copy_buffer(payload, buffer, copied.values, at);
    *made = &payload->head;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_launch_work(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch, struct vr_sim_work *work) {
    struct vr_sim_function *function = vr_sim_function_find(sim, launch->function);
    if (function == NULL) return VR_CU_INVALID_HANDLE;
    vr_cu_result result = sim_launch_check(sim, device, launch, function);
    if (result != VR_CU_SUCCESS) return result;
    *work = (struct vr_sim_work){.type = VR_CU_GRAPH_NODE_TYPE_KERNEL, .device = device};
    work->cost_ns = sim_launch_cost_ns(sim, device, launch, function);
    return sim_launch_keep(launch, function, &work->payload);
}

// --- launching ------------------------------------------------------------------------------------------------------

static vr_cu_result capture_launch(struct vr_sim *sim, struct vr_sim_stream *queue, uint32_t device, const struct vr_sim_launch *launch) {
    struct vr_sim_work work;
    struct vr_sim_launch kept = *launch;
    kept.computed = vr_sim_computes(sim);
    vr_cu_result result = vr_sim_launch_work(sim, device, &kept, &work);
    if (result != VR_CU_SUCCESS) return result;
    if (sim->captured_asked && !kept.computed) sim_launch_note(sim, launch);
    result = vr_sim_capture_add(sim, queue, &work);
    vr_sim_payload_drop(work.payload);
    return result;
}

// Records the events of the launch's attributes, which mark its start or its completion.
static void record_events(struct vr_sim *sim, const struct vr_sim_stream *queue, const struct vr_sim_launch *launch, uint64_t end_ns) {
    for (uint32_t i = 0; i < launch->attribute_count; i++) {
        const int id = launch->attributes[i].id;
        if (id != VR_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT && id != VR_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) continue;
        struct vr_sim_event *event = vr_sim_slots_find(&sim->events, launch->attributes[i].value.event);
        if (event != NULL) vr_sim_event_set(sim, event, queue, end_ns);
    }
}

static vr_cu_result launch_on(struct vr_sim *sim, const struct vr_sim_launch *launch, uint64_t stream) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (VR_UNLIKELY(result != VR_CU_SUCCESS)) return result;
    struct vr_sim_function *function = vr_sim_function_find(sim, launch->function);
    if (VR_UNLIKELY(function == NULL)) return VR_CU_INVALID_HANDLE;
    struct vr_sim_context *context = vr_sim_context_find(sim, queue->context);
    const uint32_t device = context->device, stack_bytes = vr_sim_function_kernel(function)->stack_bytes;
    if (VR_UNLIKELY(queue->capture != 0)) {
        result = capture_launch(sim, queue, device, launch);
        return result == VR_CU_SUCCESS ? vr_sim_context_need_stack(sim, context, stack_bytes) : result;
    }
    result = sim_launch_check(sim, device, launch, function);
    if (VR_LIKELY(result == VR_CU_SUCCESS)) result = vr_sim_context_need_stack(sim, context, stack_bytes);
    if (VR_UNLIKELY(result != VR_CU_SUCCESS)) return result;
    const uint64_t cost_ns = sim_launch_cost_ns(sim, device, launch, function);
    if (VR_UNLIKELY(!vr_sim_fits_in_time(sim, queue->tail_ns, cost_ns))) return VR_CU_INVALID_VALUE;
    uint64_t end_ns;
    function->loaded = true;
    vr_sim_launch_pass(sim, launch);
    result = vr_sim_enqueue(sim, queue, cost_ns, &end_ns);
    if (VR_UNLIKELY(vr_sim_function_kernel(function)->fill_value_bytes != 0) && result == VR_CU_SUCCESS)
        result = vr_sim_launch_fill(sim, queue, device, launch);
    if (VR_UNLIKELY(sim->checking != NULL) && result == VR_CU_SUCCESS) vr_sim_operands_check(sim, queue, launch);
    if (VR_UNLIKELY(launch->attribute_count > 0) && result == VR_CU_SUCCESS) record_events(sim, queue, launch, end_ns);
    return result;
}

vr_cu_result vr_sim_launch_kernel(struct vr_sim *sim, uint64_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, uint64_t stream,
                                  void **parameters, void **extra) {
    const struct vr_sim_launch launch = {.function = function,
                                         .grid = {grid_x, grid_y, grid_z},
                                         .block = {block_x, block_y, block_z},
                                         .shared_bytes = shared_bytes,
                                         .parameters = parameters,
                                         .extra = extra};
    return launch_on(sim, &launch, stream);
}

vr_cu_result vr_sim_launch_kernel_ex(struct vr_sim *sim, const struct vr_cu_launch_config *config, uint64_t function, void **parameters,
                                     void **extra) {
    if (config == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_sim_launch launch = {.function = function,
                                         .grid = {config->grid[0], config->grid[1], config->grid[2]},
                                         .block = {config->block[0], config->block[1], config->block[2]},
                                         .shared_bytes = config->shared_bytes,
                                         .parameters = parameters,
                                         .extra = extra,
                                         .attributes = config->attributes,
                                         .attribute_count = config->attribute_count};
    return launch_on(sim, &launch, config->stream);
}

vr_cu_result vr_sim_launch_cooperative_kernel(struct vr_sim *sim, uint64_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, uint64_t stream,
                                              void **parameters) {
    const struct vr_sim_launch launch = {.function = function,
                                         .grid = {grid_x, grid_y, grid_z},
                                         .block = {block_x, block_y, block_z},
                                         .shared_bytes = shared_bytes,
                                         .parameters = parameters,
                                         .cooperative = true};
    return launch_on(sim, &launch, stream);
}

// Launches on several devices, each on its own stream.
vr_cu_result vr_sim_launch_cooperative_kernel_multi_device(struct vr_sim *sim, struct vr_cu_launch_params *list, unsigned count,
                                                           unsigned flags) {
    if (list == NULL || count == 0 || count > sim->options.device_count || flags > 3) return VR_CU_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const struct vr_sim_launch launch = {.function = list[i].function,
                                             .grid = {list[i].grid[0], list[i].grid[1], list[i].grid[2]},
                                             .block = {list[i].block[0], list[i].block[1], list[i].block[2]},
                                             .shared_bytes = list[i].shared_bytes,
                                             .parameters = list[i].parameters,
                                             .cooperative = true};
        const vr_cu_result result = launch_on(sim, &launch, list[i].stream);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

// --- launch calls of CUDA 2 -----------------------------------------------------------------------------------------

vr_cu_result vr_sim_launch_grid_async(struct vr_sim *sim, uint64_t function, int width, int height, uint64_t stream) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (width <= 0 || height <= 0) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const struct vr_sim_function_settings *settings = vr_sim_function_settings_of(sim, found);
    const int32_t *block = settings->block;
    const struct vr_sim_launch launch = {.function = function,
                                         .grid = {(uint32_t)width, (uint32_t)height, 1},
                                         .block = {(uint32_t)block[0], (uint32_t)block[1], (uint32_t)block[2]},
                                         .shared_bytes = settings->old_shared_bytes};
    return launch_on(sim, &launch, stream);
}

vr_cu_result vr_sim_launch_grid(struct vr_sim *sim, uint64_t function, int width, int height) {
    return vr_sim_launch_grid_async(sim, function, width, height, 0);
}

vr_cu_result vr_sim_launch_one(struct vr_sim *sim, uint64_t function) { return vr_sim_launch_grid(sim, function, 1, 1); }
