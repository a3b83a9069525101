// Parameters and attributes of nodes: getting, setting and printing.
#include "sim/graphs/sim_graphs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/modules/sim_launch.h"
#include "sim/streams/sim_memory_ops.h"

// --- from parameters to work ----------------------------------------------------------------------------------------

// Gets the device of a context, or of the calling thread's current context if `context` is 0.
static vr_cu_result device_of_context(struct vr_sim *sim, uint64_t context, uint32_t *device) {
    struct vr_sim_context *found = vr_sim_context_find(sim, context);
    if (context != 0 && found == NULL) return VR_CU_INVALID_CONTEXT;
    const vr_cu_result result = found == NULL ? vr_sim_current(sim, &found) : VR_CU_SUCCESS;
    if (result == VR_CU_SUCCESS) *device = found->device;
    return result;
}

static vr_cu_result kernel_work(struct vr_sim *sim, const struct vr_cu_kernel_node *params, struct vr_sim_work *work) {
    const struct vr_sim_launch launch = {.function = params->function != 0 ? params->function : params->kernel,
                                         .grid = {params->grid[0], params->grid[1], params->grid[2]},
                                         .block = {params->block[0], params->block[1], params->block[2]},
                                         .shared_bytes = params->shared_bytes,
                                         .parameters = params->parameters,
                                         .extra = params->extra};
    uint32_t device;
    const vr_cu_result result = device_of_context(sim, params->context, &device);
    return result == VR_CU_SUCCESS ? vr_sim_launch_work(sim, device, &launch, work) : result;
}

static vr_cu_result copy_work(struct vr_sim *sim, const struct vr_cu_memcpy_node *params, struct vr_sim_work *work) {
    const struct vr_cu_memcpy3d *copy = &params->copy;
    if (copy->width_bytes == 0 || copy->rows == 0 || copy->planes == 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_copy_shape(sim, copy, work);
    if (result == VR_CU_SUCCESS) result = device_of_context(sim, params->context, &work->device);
    if (result != VR_CU_SUCCESS) return result;
    if (!vr_sim_work_is_valid(sim, work)) return VR_CU_INVALID_VALUE;
    struct vr_sim_copy_payload *payload = malloc(sizeof *payload);
    if (payload == NULL) return VR_CU_OUT_OF_MEMORY;
    *payload = (struct vr_sim_copy_payload){{1}, *params};
    work->payload = &payload->head;
    return VR_CU_SUCCESS;
}

static vr_cu_result set_work(struct vr_sim *sim, const struct vr_cu_memset_node *set, uint64_t context, struct vr_sim_work *work) {
    const uint32_t element = set->element_bytes;
    if (set->width_elements == 0 || set->rows == 0) return VR_CU_INVALID_VALUE;
    if ((element != 1 && element != 2 && element != 4) || set->address % element != 0) return VR_CU_INVALID_VALUE;
    *work = vr_sim_set_work(set->address, 0, 0);
    if (!vr_mul_u64(set->width_elements, element, &work->width_bytes)) return VR_CU_INVALID_VALUE;
    if (set->rows > 1 && (set->pitch_bytes < work->width_bytes || set->pitch_bytes % element != 0)) return VR_CU_INVALID_VALUE;
    work->value = set->value;
    work->element_bytes = element;
    work->rows = set->rows;
    work->to_pitch = set->pitch_bytes;
    const vr_cu_result result = device_of_context(sim, context, &work->device);
    if (result != VR_CU_SUCCESS) return result;
    return vr_sim_work_is_valid(sim, work) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

static vr_cu_result event_work(const struct vr_sim *sim, int type, uint64_t event, struct vr_sim_work *work) {
    if (vr_sim_slots_find(&sim->events, event) == NULL) return VR_CU_INVALID_VALUE;
    *work = (struct vr_sim_work){.type = type, .event = event};
    return VR_CU_SUCCESS;
}

static vr_cu_result batch_work(struct vr_sim *sim, const struct vr_cu_batch_node *params, struct vr_sim_work *work) {
    *work = (struct vr_sim_work){.type = VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    vr_cu_result result = device_of_context(sim, params->context, &work->device);
    if (result == VR_CU_SUCCESS) result = vr_sim_ops_keep(params->ops, params->count, params->flags, params->context, &work->payload);
    if (result != VR_CU_SUCCESS || vr_sim_ops_are_valid(sim, params->ops, params->count, work->device)) return result;
    vr_sim_payload_drop(work->payload);
    work->payload = NULL;
    return VR_CU_INVALID_VALUE;
}

vr_cu_result vr_sim_params_work(struct vr_sim *sim, const struct vr_cu_node_params *params, struct vr_sim_work *work) {
    *work = (struct vr_sim_work){.type = params->type};
    switch (params->type) {
    case VR_CU_GRAPH_NODE_TYPE_KERNEL: return kernel_work(sim, &params->of.kernel, work);
    case VR_CU_GRAPH_NODE_TYPE_MEMCPY: return copy_work(sim, &params->of.memcpy, work);
    case VR_CU_GRAPH_NODE_TYPE_MEMSET: return set_work(sim, &params->of.memset.set, params->of.memset.context, work);
    case VR_CU_GRAPH_NODE_TYPE_HOST:
        work->function = params->of.host.call.function;
        work->argument = params->of.host.call.argument;
        return work->function == NULL ? VR_CU_INVALID_VALUE : VR_CU_SUCCESS;
    case VR_CU_GRAPH_NODE_TYPE_EMPTY: return VR_CU_SUCCESS;
    case VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD: return event_work(sim, params->type, params->of.event.event, work);
    case VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return batch_work(sim, &params->of.batch, work);
    default: return VR_CU_NOT_SUPPORTED;
    }
}

// --- from work to parameters ----------------------------------------------------------------------------------------

static void kernel_params(const struct vr_sim_work *work, struct vr_cu_kernel_node *params) {
    const struct vr_sim_kernel_payload *payload = (const struct vr_sim_kernel_payload *)(const void *)work->payload;
    if (payload == NULL) return; // a kernel of vram_sim_launch()
    *params = (struct vr_cu_kernel_node){.function = payload->launch.function,
                                         .shared_bytes = payload->launch.shared_bytes,
                                         .parameters = payload->launch.parameters,
                                         .extra = payload->launch.extra};
    memcpy(params->grid, payload->launch.grid, sizeof params->grid);
    memcpy(params->block, payload->launch.block, sizeof params->block);
}

static struct vr_cu_memcpy_side side_of_work(const struct vr_sim *sim, const struct vr_sim_work *work, uint64_t address, uint64_t pitch) {
    bool host;
    (void)vr_sim_is_memory(sim, address, 1, work->device, false, &host);
    struct vr_cu_memcpy_side side = {.memory_type = host ? VR_CU_MEMORY_TYPE_HOST : VR_CU_MEMORY_TYPE_DEVICE, .rows = work->rows};
    side.pitch_bytes = pitch == 0 ? work->width_bytes : pitch;
    if (host)
        side.host = address;
    else
        side.device = address;
    return side;
}

static void copy_params(const struct vr_sim *sim, const struct vr_sim_work *work, struct vr_cu_memcpy_node *params) {
    const struct vr_sim_copy_payload *payload = (const struct vr_sim_copy_payload *)(const void *)work->payload;
    if (payload != NULL) {
        *params = payload->params;
        return;
    }
    params->copy = (struct vr_cu_memcpy3d){.from = side_of_work(sim, work, work->from, work->from_pitch),
                                           .to = side_of_work(sim, work, work->to, work->to_pitch),
                                           .width_bytes = work->width_bytes,
                                           .rows = work->rows,
                                           .planes = work->planes};
}

static void alloc_params(const struct vr_sim *sim, const struct vr_sim_work *work, struct vr_cu_alloc_node *params) {
    const struct vr_sim_graph_memory *memory =
        (const struct vr_sim_graph_memory *)(const void *)vr_sim_slots_item(&sim->graph_memories, work->memory);
    params->pool.type = VR_CU_MEM_ALLOCATION_TYPE_PINNED;
    params->pool.location = (struct vr_cu_location){VR_CU_MEM_LOCATION_TYPE_DEVICE, (int32_t)memory->device};
    params->size_bytes = memory->size_bytes;
    params->address = memory->address;
}

vr_cu_result vr_sim_params_of(struct vr_sim *sim, const struct vr_sim_node *node, struct vr_cu_node_params *params) {
    const struct vr_sim_work *work = &node->work;
    *params = (struct vr_cu_node_params){.type = work->type};
    switch (work->type) {
    case VR_CU_GRAPH_NODE_TYPE_KERNEL: kernel_params(work, &params->of.kernel); break;
    case VR_CU_GRAPH_NODE_TYPE_MEMCPY: copy_params(sim, work, &params->of.memcpy); break;
    case VR_CU_GRAPH_NODE_TYPE_MEMSET:
        params->of.memset.set = (struct vr_cu_memset_node){work->to,
                                                           work->to_pitch,
                                                           (uint32_t)work->value,
                                                           work->element_bytes,
                                                           work->element_bytes == 0 ? 0 : work->width_bytes / work->element_bytes,
                                                           work->rows};
        break;
    case VR_CU_GRAPH_NODE_TYPE_HOST: params->of.host.call = (struct vr_cu_host_node){work->function, work->argument}; break;
    case VR_CU_GRAPH_NODE_TYPE_GRAPH: params->of.child.graph = vr_sim_slots_handle(&sim->graphs, work->child); break;
    case VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD: params->of.event.event = work->event; break;
    case VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC: alloc_params(sim, work, &params->of.alloc); break;
    case VR_CU_GRAPH_NODE_TYPE_MEM_FREE:
        params->of.freed =
            ((const struct vr_sim_graph_memory *)(const void *)vr_sim_slots_item(&sim->graph_memories, work->memory))->address;
        break;
    case VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
        const struct vr_sim_ops_payload *ops = (const struct vr_sim_ops_payload *)(const void *)work->payload;
        params->of.batch = (struct vr_cu_batch_node){ops->context, ops->count, ops->ops, ops->flags};
        break;
    }
    case VR_CU_GRAPH_NODE_TYPE_CONDITIONAL: {
        const struct vr_sim_condition_payload *condition = (const struct vr_sim_condition_payload *)(const void *)work->payload;
        params->of.conditional = (struct vr_cu_conditional_node){condition->handle, condition->type, condition->size, condition->bodies, 0};
        break;
    }
    default: break;
    }
    return VR_CU_SUCCESS;
}

// ---- Launch attributes of kernel nodes, and attributes of a device's graph memory.

static const struct vr_sim_kernel_payload *payload_of(const struct vr_sim_node *node) {
    if (node == NULL || node->work.type != VR_CU_GRAPH_NODE_TYPE_KERNEL) return NULL;
    return (const struct vr_sim_kernel_payload *)(const void *)node->work.payload;
}

// An attribute that was never set is all zero.
vr_cu_result vr_sim_graph_kernel_node_get_attribute(struct vr_sim *sim, uint64_t node, int attribute, void *value) {
    const struct vr_sim_kernel_payload *payload = payload_of(vr_sim_node_find(sim, node));
    if (payload == NULL || value == NULL || attribute <= 0 || attribute >= VR_CU_LAUNCH_ATTRIBUTE_MOST) return VR_CU_INVALID_VALUE;
    const struct vr_cu_launch_attribute none = {0}, *found = &none;
    for (uint32_t i = 0; i < payload->launch.attribute_count; i++)
        if (payload->launch.attributes[i].id == attribute) found = &payload->launch.attributes[i];
    memcpy(value, &found->value, sizeof found->value);
    return VR_CU_SUCCESS;
}

// Replaces the attributes of a node's launch.
static vr_cu_result set_attributes(struct vr_sim *sim, struct vr_sim_node *node, const struct vr_cu_launch_attribute *attributes,
                                   uint32_t count) {
    struct vr_sim_launch launch = payload_of(node)->launch;
    struct vr_sim_work work;
    launch.attributes = attributes;
    launch.attribute_count = count;
    const vr_cu_result result = vr_sim_launch_work(sim, node->work.device, &launch, &work);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_payload_drop(node->work.payload);
    node->work.payload = work.payload;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_kernel_node_set_attribute(struct vr_sim *sim, uint64_t node, int attribute, const void *value) {
    struct vr_sim_node *found = vr_sim_node_find(sim, node);
    const struct vr_sim_kernel_payload *payload = payload_of(found);
    if (payload == NULL || value == NULL || attribute <= 0 || attribute >= VR_CU_LAUNCH_ATTRIBUTE_MOST) return VR_CU_INVALID_VALUE;
    struct vr_cu_launch_attribute attributes[VR_CU_LAUNCH_ATTRIBUTE_MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < payload->launch.attribute_count && count < VR_CU_LAUNCH_ATTRIBUTE_MOST - 1; i++)
        if (payload->launch.attributes[i].id != attribute) attributes[count++] = payload->launch.attributes[i];
    attributes[count] = (struct vr_cu_launch_attribute){.id = attribute};
    memcpy(&attributes[count].value, value, sizeof attributes[count].value);
    return set_attributes(sim, found, attributes, count + 1);
}

vr_cu_result vr_sim_graph_kernel_node_copy_attributes(struct vr_sim *sim, uint64_t to, uint64_t from) {
    struct vr_sim_node *target = vr_sim_node_find(sim, to);
    const struct vr_sim_kernel_payload *source = payload_of(vr_sim_node_find(sim, from));
    if (source == NULL || payload_of(target) == NULL) return VR_CU_INVALID_VALUE;
    return set_attributes(sim, target, source->launch.attributes, source->launch.attribute_count);
}

// --- graph memory ---------------------------------------------------------------------------------------------------

enum { USED_NOW, USED_HIGH, RESERVED_NOW, RESERVED_HIGH };

// A graph's freed memory returns to the device at once, so reserved equals used. High-water marks report the current value.
vr_cu_result vr_sim_device_get_graph_mem_attribute(struct vr_sim *sim, int device, int attribute, uint64_t *value) {
    if (value == NULL || attribute < USED_NOW || attribute > RESERVED_HIGH) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    *value = vr_sim_graph_memory_bytes(sim, (uint32_t)device);
    return VR_CU_SUCCESS;
}

// Only the high-water marks can be set, and only to 0.
vr_cu_result vr_sim_device_set_graph_mem_attribute(struct vr_sim *sim, int device, int attribute, const uint64_t *value) {
    if (value == NULL || *value != 0 || (attribute != USED_HIGH && attribute != RESERVED_HIGH)) return VR_CU_INVALID_VALUE;
    return vr_sim_is_device(sim, device) ? VR_CU_SUCCESS : VR_CU_INVALID_DEVICE;
}

vr_cu_result vr_sim_device_graph_mem_trim(struct vr_sim *sim, int device) {
    return vr_sim_is_device(sim, device) ? VR_CU_SUCCESS : VR_CU_INVALID_DEVICE;
}

// ---- cuGraphDebugDotPrint: a graph as Graphviz text.

static const char *const types[] = {"KERNEL",    "MEMCPY",     "MEMSET",       "HOST",           "GRAPH",
                                    "EMPTY",     "EVENT_WAIT", "EVENT_RECORD", "EXT_SEM_SIGNAL", "EXT_SEM_WAIT",
                                    "MEM_ALLOC", "MEM_FREE",   "BATCH_MEM_OP", "CONDITIONAL"};

static const char *type_name(int type) { return type >= 0 && (size_t)type < VR_COUNT_OF(types) ? types[type] : "OTHER"; }

// Prints formatted text of at most 511 characters.
static void put_dot_line(FILE *stream, const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (length > 0 && (size_t)length < sizeof text) (void)fwrite(text, 1, (size_t)length, stream);
}

static void print_kernel(const struct vr_sim *sim, const struct vr_sim_work *work, FILE *stream) {
    const struct vr_sim_kernel_payload *payload = (const struct vr_sim_kernel_payload *)(const void *)work->payload;
    const struct vr_sim_function *function = payload == NULL ? NULL : vr_sim_function_find(sim, payload->launch.function);
    if (function == NULL) return;
    const uint32_t *grid = payload->launch.grid, *block = payload->launch.block;
    const char *name = vr_sim_function_kernel(function)->name;
    put_dot_line(stream, "\\n");
    (void)fwrite(name, 1, strlen(name), stream);
    put_dot_line(stream, "\\n<<<%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ">>>", grid[0], grid[1],
                 grid[2], block[0], block[1], block[2], payload->launch.shared_bytes);
}

static void print_graph(const struct vr_sim *sim, uint32_t index, FILE *stream);

// Prints a node, followed by its child graphs.
static void print_node(const struct vr_sim *sim, uint32_t graph, uint32_t place, const struct vr_sim_node *node, FILE *stream) {
    put_dot_line(stream, "\"graph_%" PRIu32 "_node_%" PRIu32 "\"[shape=\"%s\" label=\"%" PRIu32 "\\n%s", graph, place,
                 node->work.type == VR_CU_GRAPH_NODE_TYPE_KERNEL ? "octagon" : "rectangle", place, type_name(node->work.type));
    if (node->work.type == VR_CU_GRAPH_NODE_TYPE_KERNEL) print_kernel(sim, &node->work, stream);
    if (node->work.to != 0 || node->work.width_bytes != 0) put_dot_line(stream, "\\n%" PRIu64 " bytes", node->work.width_bytes);
    put_dot_line(stream, "\"];\n");
    for (size_t d = 0; d < node->dependencies.count; d++)
        put_dot_line(stream, "\"graph_%" PRIu32 "_node_%" PRIu32 "\" -> \"graph_%" PRIu32 "_node_%" PRIu32 "\";\n", graph,
                     vr_sim_node_find(sim, node->dependencies.items[d])->place, graph, place);
    if (node->work.type == VR_CU_GRAPH_NODE_TYPE_GRAPH) print_graph(sim, node->work.child, stream);
    if (node->work.type != VR_CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
    const struct vr_sim_condition_payload *condition = (const struct vr_sim_condition_payload *)(const void *)node->work.payload;
    for (uint32_t i = 0; i < condition->size; i++)
        print_graph(sim, vr_sim_slots_index(&sim->graphs, vr_sim_slots_find(&sim->graphs, condition->bodies[i])), stream);
}

static void print_graph(const struct vr_sim *sim, uint32_t index, FILE *stream) {
    put_dot_line(stream, "subgraph cluster_%" PRIu32 " {\nlabel=\"graph_%" PRIu32 "\" graph[style=\"dashed\"];\n", index, index);
    const struct vr_sim_nodes *nodes = &vr_sim_graph_at(sim, index)->nodes;
    for (size_t i = 0; i < nodes->count; i++) print_node(sim, index, (uint32_t)i, vr_sim_node_find(sim, nodes->items[i]), stream);
    put_dot_line(stream, "}\n");
}

vr_cu_result vr_sim_graph_debug_dot_print(struct vr_sim *sim, uint64_t graph, const char *path, unsigned flags) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    FILE *stream;
    (void)flags; // level of detail, ignored
    if (found == NULL || path == NULL) return VR_CU_INVALID_VALUE;
    const size_t capacity = strlen(path) + VR_NEW_FILE_EXTRA + 1;
    char *made = malloc(capacity);
    if (made == NULL) return VR_CU_OUT_OF_MEMORY;
    bool whole = vr_os_file_create_temporary(path, made, capacity, &stream) == VRAM_OK;
    if (whole) {
        put_dot_line(stream, "digraph dot {\n");
        print_graph(sim, vr_sim_slots_index(&sim->graphs, found), stream);
        put_dot_line(stream, "}\n");
        whole = ferror(stream) == 0;
        whole = fclose(stream) == 0 && whole && rename(made, path) == 0;
        if (!whole) (void)remove(made);
    }
    free(made);
    return whole ? VR_CU_SUCCESS : VR_CU_OPERATING_SYSTEM;
}
