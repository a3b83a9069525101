// sim_conditional.c: conditions of graphs and the bodies of conditional nodes. No kernel runs, so none sets a condition: a launch does what
// the default value says, and a loop whose default is not 0 runs once.
#include "sim/graphs/sim_node_params.h"

#include <stdlib.h>

enum { ASSIGN_DEFAULT = 1, TYPE_IF = 0, TYPE_WHILE = 1, TYPE_SWITCH = 2, BODIES_MOST = 256 };

vr_cu_result vr_sim_graph_conditional_handle_create(struct vr_sim *sim, uint64_t *handle, uint64_t graph, uint64_t context, unsigned value,
                                                    unsigned flags) {
    if (handle == NULL || vr_sim_slots_find(&sim->graphs, graph) == NULL || flags > ASSIGN_DEFAULT) return VR_CU_INVALID_VALUE;
    if (context != 0 && vr_sim_context_find(sim, context) == NULL) return VR_CU_INVALID_CONTEXT;
    uint32_t index;
    if (vr_sim_slots_take(&sim->conditions, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_condition *made = (struct vr_sim_condition *)(void *)vr_sim_slots_item(&sim->conditions, index);
    made->graph = graph;
    made->value = flags == ASSIGN_DEFAULT ? value : 0;
    *handle = vr_sim_slots_handle(&sim->conditions, index);
    return VR_CU_SUCCESS;
}

static bool is_size(int type, uint32_t size) {
    if (type == TYPE_IF) return size == 1 || size == 2;
    return type == TYPE_WHILE ? size == 1 : type == TYPE_SWITCH && size >= 1 && size <= BODIES_MOST;
}

vr_cu_result vr_sim_condition_make(struct vr_sim *sim, uint64_t graph, const struct vr_cu_conditional_node *params,
                                   struct vr_sim_payload **made) {
    const struct vr_sim_condition *condition = vr_sim_slots_find(&sim->conditions, params->handle);
    if (condition == NULL || condition->graph != graph || !is_size(params->type, params->size)) return VR_CU_INVALID_VALUE;
    struct vr_sim_condition_payload *payload = calloc(1, sizeof *payload + params->size * sizeof payload->bodies[0]);
    if (payload == NULL) return VR_CU_OUT_OF_MEMORY;
    payload->head.references = 1;
    payload->handle = params->handle;
    payload->type = params->type;
    payload->value = condition->value;
    for (; payload->size < params->size; payload->size++) {
        uint32_t body;
        if (vr_sim_graph_make(sim, &body) != VR_CU_SUCCESS) {
            vr_sim_bodies_end(sim, &payload->head);
            vr_sim_payload_drop(&payload->head);
            return VR_CU_OUT_OF_MEMORY;
        }
        vr_sim_graph_own(sim, body);
        payload->bodies[payload->size] = vr_sim_slots_handle(&sim->graphs, body);
    }
    *made = &payload->head;
    return VR_CU_SUCCESS;
}
