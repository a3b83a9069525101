// sim_node_params.h: the parameters of nodes, as programs give and ask them, and the work that they mean.
#ifndef VR_SIM_GRAPHS_SIM_NODE_PARAMS_H
#define VR_SIM_GRAPHS_SIM_NODE_PARAMS_H

#include "sim/graphs/sim_graphs.h"

// What a node of copies keeps: the call's own words.
struct vr_sim_copy_payload {
    struct vr_sim_payload head;
    struct vr_cu_memcpy_node params;
};

// The work of a node with such parameters, and with a reference of its payload that the caller drops. NOT_SUPPORTED for kinds that are not
// simulated; graphs, memory requests and conditions are made by their own functions.
vr_cu_result vr_sim_params_work(struct vr_sim *sim, const struct vr_cu_node_params *params, struct vr_sim_work *work);
// The parameters of a node.
vr_cu_result vr_sim_params_of(struct vr_sim *sim, const struct vr_sim_node *node, struct vr_cu_node_params *params);

// --- sim_graph_nodes.c ----------------------------------------------------------------------------------------------

// A conditional node's payload with its bodies, which belong to no node yet. SUCCESS, INVALID_VALUE, OUT_OF_MEMORY.
vr_cu_result vr_sim_condition_make(struct vr_sim *sim, uint64_t graph, const struct vr_cu_conditional_node *params,
                                   struct vr_sim_payload **made);

#endif
