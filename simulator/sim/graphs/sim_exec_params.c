// sim_exec_params.c: executable graphs that change: the parameters of one node, all of them from another graph of the same shape, nodes
// that are switched off; and what else programs ask of them.
#include "sim/graphs/sim_node_params.h"

enum update_result { // CUgraphExecUpdateResult
    UPDATE_SUCCESS,
    UPDATE_ERROR,
    UPDATE_TOPOLOGY_CHANGED,
    UPDATE_TYPE_CHANGED,
    UPDATE_PARAMETERS_CHANGED = 5,
    UPDATE_NOT_SUPPORTED = 6
};
enum instantiate_result { INSTANTIATE_SUCCESS, INSTANTIATE_ERROR, INSTANTIATE_INVALID_STRUCTURE, INSTANTIATE_NOT_SUPPORTED };

static struct vr_sim_exec *exec_of(const struct vr_sim *sim, uint64_t exec) { return vr_sim_slots_find(&sim->execs, exec); }

static struct vr_sim_step *step_of(const struct vr_sim_exec *exec, uint64_t node) {
    for (size_t i = 0; exec != NULL && node != 0 && i < exec->step_count; i++)
        if (exec->steps[i].node == node) return &exec->steps[i];
    return NULL;
}

static void replace_step_work(struct vr_sim_exec *exec, struct vr_sim_step *step, const struct vr_sim_work *work) {
    vr_sim_payload_keep(work->payload);
    vr_sim_payload_drop(step->work.payload);
    step->work = *work;
    exec->calls = exec->calls || work->function != NULL;
}

// --- one node -------------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_graph_exec_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node, const struct vr_cu_node_params *params) {
    struct vr_sim_exec *found = exec_of(sim, exec);
    struct vr_sim_step *step = step_of(found, node);
    if (step == NULL || params == NULL || params->type != step->work.type) return VR_CU_INVALID_VALUE;
    struct vr_sim_work work;
    const vr_cu_result result = vr_sim_params_work(sim, params, &work);
    if (result == VR_CU_SUCCESS) {
        work.cost_ns = vr_sim_work_cost_ns(sim, &work);
        replace_step_work(found, step, &work);
    }
    vr_sim_payload_drop(work.payload);
    return result;
}

vr_cu_result vr_sim_graph_exec_kernel_node_set_params_v2(struct vr_sim *sim, uint64_t exec, uint64_t node,
                                                         const struct vr_cu_kernel_node *kernel) {
    if (kernel == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_KERNEL, .of.kernel = *kernel};
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

// The first version's struct ends before `kernel`.
vr_cu_result vr_sim_graph_exec_kernel_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node,
                                                      const struct vr_cu_kernel_node *kernel) {
    struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_KERNEL};
    if (kernel == NULL) return VR_CU_INVALID_VALUE;
    memcpy(&params.of.kernel, kernel, offsetof(struct vr_cu_kernel_node, kernel));
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

vr_cu_result vr_sim_graph_exec_memcpy_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node, const struct vr_cu_memcpy3d *copy,
                                                      uint64_t context) {
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_MEMCPY, .of.memcpy = {.context = context, .copy = *copy}};
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

vr_cu_result vr_sim_graph_exec_memset_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node, const struct vr_cu_memset_node *set,
                                                      uint64_t context) {
    if (set == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_MEMSET, .of.memset = {.set = *set, .context = context}};
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

vr_cu_result vr_sim_graph_exec_host_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node, const struct vr_cu_host_node *host) {
    if (host == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_HOST, .of.host.call = *host};
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

vr_cu_result vr_sim_graph_exec_batch_mem_op_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node,
                                                            const struct vr_cu_batch_node *batch) {
    if (batch == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .of.batch = *batch};
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

vr_cu_result vr_sim_graph_exec_event_record_node_set_event(struct vr_sim *sim, uint64_t exec, uint64_t node, uint64_t event) {
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD, .of.event.event = event};
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

vr_cu_result vr_sim_graph_exec_event_wait_node_set_event(struct vr_sim *sim, uint64_t exec, uint64_t node, uint64_t event) {
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT, .of.event.event = event};
    return vr_sim_graph_exec_node_set_params(sim, exec, node, &params);
}

// --- a graph inside ---------------------------------------------------------------------------------------------------

// Do the steps of `fresh` come after each other as those behind the step `entry` do?
static bool is_same_shape(const struct vr_sim_exec *old, size_t entry, const struct vr_sim_exec *fresh) {
    if (old->steps[entry].exit - entry - 1 != fresh->step_count) return false;
    for (size_t i = 0; i < fresh->step_count; i++) {
        const struct vr_sim_step *a = &old->steps[entry + 1 + i], *b = &fresh->steps[i];
        if (a->work.type != b->work.type) return false;
        if (b->dependency_count == 0) { // it waits for the step `entry`
            if (a->dependency_count != 1 || old->dependencies[a->first_dependency] != entry) return false;
            continue;
        }
        if (a->dependency_count != b->dependency_count) return false;
        const size_t *before = &old->dependencies[a->first_dependency], *wanted = &fresh->dependencies[b->first_dependency];
        for (size_t d = 0; d < b->dependency_count; d++)
            if (before[d] != wanted[d] + entry + 1) return false;
    }
    return true;
}

// All of its parameters, from a graph of the same shape; memory of graphs cannot be inside of one.
vr_cu_result vr_sim_graph_exec_child_graph_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node, uint64_t child) {
    struct vr_sim_exec *found = exec_of(sim, exec);
    const struct vr_sim_step *step = step_of(found, node);
    const struct vr_sim_graph *source = vr_sim_slots_find(&sim->graphs, child);
    if (step == NULL || step->exit == 0 || source == NULL) return VR_CU_INVALID_VALUE;
    const size_t entry = (size_t)(step - found->steps);
    struct vr_sim_exec fresh = {0};
    vr_cu_result result = vr_sim_exec_lay(sim, &fresh, vr_sim_slots_index(&sim->graphs, source));
    if (result == VR_CU_SUCCESS && !is_same_shape(found, entry, &fresh)) result = VR_CU_INVALID_VALUE;
    for (size_t i = 0; result == VR_CU_SUCCESS && i < fresh.step_count; i++)
        replace_step_work(found, &found->steps[entry + 1 + i], &fresh.steps[i].work);
    vr_sim_exec_unlay(sim, &fresh);
    return result;
}

// --- nodes that are switched off ------------------------------------------------------------------------------------

static bool can_rest(const struct vr_sim_step *step) {
    const int type = step->work.type;
    return type == VR_CU_GRAPH_NODE_TYPE_KERNEL || type == VR_CU_GRAPH_NODE_TYPE_MEMCPY || type == VR_CU_GRAPH_NODE_TYPE_MEMSET;
}

vr_cu_result vr_sim_graph_node_set_enabled(struct vr_sim *sim, uint64_t exec, uint64_t node, unsigned enabled) {
    struct vr_sim_step *step = step_of(exec_of(sim, exec), node);
    if (step == NULL || !can_rest(step)) return VR_CU_INVALID_VALUE;
    step->disabled = enabled == 0;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_node_get_enabled(struct vr_sim *sim, uint64_t exec, uint64_t node, unsigned *enabled) {
    const struct vr_sim_step *step = step_of(exec_of(sim, exec), node);
    if (step == NULL || enabled == NULL || !can_rest(step)) return VR_CU_INVALID_VALUE;
    *enabled = !step->disabled;
    return VR_CU_SUCCESS;
}

// --- all nodes ------------------------------------------------------------------------------------------------------

// Why the steps of another graph cannot take the places of these; *at: the first that differs.
static enum update_result compare_execs(const struct vr_sim_exec *old, const struct vr_sim_exec *fresh, size_t *at) {
    *at = SIZE_MAX;
    if (old->step_count != fresh->step_count || old->dependency_count != fresh->dependency_count) return UPDATE_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < old->step_count; i++) {
        const struct vr_sim_step *a = &old->steps[i], *b = &fresh->steps[i];
        *at = i;
        if (a->dependency_count != b->dependency_count) return UPDATE_TOPOLOGY_CHANGED;
        for (size_t d = 0; d < a->dependency_count; d++)
            if (old->dependencies[a->first_dependency + d] != fresh->dependencies[b->first_dependency + d]) return UPDATE_TOPOLOGY_CHANGED;
        if (a->work.type != b->work.type) return UPDATE_TYPE_CHANGED;
        const bool memory = a->work.type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC || a->work.type == VR_CU_GRAPH_NODE_TYPE_MEM_FREE;
        if (memory && a->work.memory != b->work.memory) return UPDATE_NOT_SUPPORTED;
    }
    return UPDATE_SUCCESS;
}

// Handles of nodes stay those of the graph that the executable one was made of.
static void take_steps(struct vr_sim_exec *exec, const struct vr_sim_exec *fresh) {
    for (size_t i = 0; i < exec->step_count; i++) replace_step_work(exec, &exec->steps[i], &fresh->steps[i].work);
}

vr_cu_result vr_sim_graph_exec_update_v2(struct vr_sim *sim, uint64_t exec, uint64_t graph, struct vr_cu_update_info *info) {
    struct vr_sim_exec *found = exec_of(sim, exec);
    const struct vr_sim_graph *source = vr_sim_slots_find(&sim->graphs, graph);
    if (found == NULL || source == NULL || info == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_exec fresh = {0};
    vr_cu_result result = vr_sim_exec_lay(sim, &fresh, vr_sim_slots_index(&sim->graphs, source));
    *info = (struct vr_cu_update_info){.result = UPDATE_ERROR};
    if (result == VR_CU_SUCCESS) {
        size_t at;
        info->result = (int32_t)compare_execs(found, &fresh, &at);
        if (info->result == UPDATE_SUCCESS)
            take_steps(found, &fresh);
        else if (at != SIZE_MAX)
            info->node = fresh.steps[at].node;
        result = info->result == UPDATE_SUCCESS ? VR_CU_SUCCESS : VR_CU_GRAPH_EXEC_UPDATE_FAILURE;
    }
    vr_sim_exec_unlay(sim, &fresh);
    return result;
}

vr_cu_result vr_sim_graph_exec_update(struct vr_sim *sim, uint64_t exec, uint64_t graph, uint64_t *node, int *outcome) {
    struct vr_cu_update_info info = {0};
    if (node == NULL || outcome == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_graph_exec_update_v2(sim, exec, graph, &info);
    if (result == VR_CU_INVALID_VALUE) return result;
    *node = info.node;
    *outcome = info.result;
    return result;
}

// --- making and asking ----------------------------------------------------------------------------------------------

// Graphs lie where they are launched from: an upload is work that does nothing.
vr_cu_result vr_sim_graph_upload(struct vr_sim *sim, uint64_t exec, uint64_t stream) {
    struct vr_sim_stream *queue;
    if (exec_of(sim, exec) == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    return queue->capture != 0 ? VR_CU_STREAM_CAPTURE_UNSUPPORTED : vr_sim_enqueue(sim, queue, 0, NULL);
}

vr_cu_result vr_sim_graph_instantiate_with_params(struct vr_sim *sim, uint64_t *exec, uint64_t graph,
                                                  struct vr_cu_instantiate_params *params) {
    if (params == NULL) return VR_CU_INVALID_VALUE;
    const uint64_t flags = params->flags & ~(uint64_t)VR_CU_GRAPH_INSTANTIATE_UPLOAD;
    const vr_cu_result result = vr_sim_graph_instantiate(sim, exec, graph, flags);
    params->error_node = 0;
    params->result = INSTANTIATE_SUCCESS;
    if (result == VR_CU_NOT_SUPPORTED) params->result = INSTANTIATE_NOT_SUPPORTED;
    if (result == VR_CU_INVALID_VALUE) params->result = INSTANTIATE_INVALID_STRUCTURE;
    if (result != VR_CU_SUCCESS && params->result == INSTANTIATE_SUCCESS) params->result = INSTANTIATE_ERROR;
    return result;
}

vr_cu_result vr_sim_graph_instantiate_logged(struct vr_sim *sim, uint64_t *exec, uint64_t graph, uint64_t *node, char *log,
                                             uint64_t size_bytes) {
    if (node != NULL) *node = 0;
    if (log != NULL && size_bytes > 0) log[0] = '\0';
    return vr_sim_graph_instantiate(sim, exec, graph, 0);
}

vr_cu_result vr_sim_graph_instantiate_logged_v2(struct vr_sim *sim, uint64_t *exec, uint64_t graph, uint64_t *node, char *log,
                                                uint64_t size_bytes) {
    return vr_sim_graph_instantiate_logged(sim, exec, graph, node, log, size_bytes);
}

vr_cu_result vr_sim_graph_exec_get_flags(struct vr_sim *sim, uint64_t exec, uint64_t *flags) {
    const struct vr_sim_exec *found = exec_of(sim, exec);
    if (found == NULL || flags == NULL) return VR_CU_INVALID_VALUE;
    *flags = found->flags;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_exec_get_id(struct vr_sim *sim, uint64_t exec, unsigned *id) {
    const struct vr_sim_exec *found = exec_of(sim, exec);
    if (found == NULL || id == NULL) return VR_CU_INVALID_VALUE;
    *id = vr_sim_slots_index(&sim->execs, found);
    return VR_CU_SUCCESS;
}
