// sim_graph_print.c: cuGraphDebugDotPrint: a graph as text of Graphviz.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/graphs/sim_node_params.h"
#include "sim/modules/sim_launch.h"

static const char *const types[] = {"KERNEL",    "MEMCPY",     "MEMSET",       "HOST",           "GRAPH",
                                    "EMPTY",     "EVENT_WAIT", "EVENT_RECORD", "EXT_SEM_SIGNAL", "EXT_SEM_WAIT",
                                    "MEM_ALLOC", "MEM_FREE",   "BATCH_MEM_OP", "CONDITIONAL"};

static const char *type_name(int type) { return type >= 0 && (size_t)type < VR_COUNT_OF(types) ? types[type] : "OTHER"; }

// A piece of text of a few numbers and short words.
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

// What is inside of a node follows it.
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
    (void)flags; // how much is said of each node
    if (found == NULL || path == NULL) return VR_CU_INVALID_VALUE;
    const size_t capacity = strlen(path) + VR_NEW_FILE_EXTRA + 1;
    char *made = malloc(capacity);
    if (made == NULL) return VR_CU_OUT_OF_MEMORY;
    bool whole = vr_os_file_create_beside(path, made, capacity, &stream) == VRAM_OK;
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
