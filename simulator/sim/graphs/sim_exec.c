// Executable graphs: instantiation, launch and update.
#include "sim/graphs/sim_graphs.h"
#include "sim/modules/sim_launch.h"
#include "sim/modules/sim_operands.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_guards.h"

// ---- Executable graphs: the steps of a graph in topological order, with child graphs expanded.

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

static struct vr_sim_exec *exec_of(const struct vr_sim *sim, uint64_t exec) { return vr_sim_slots_find(&sim->execs, exec); }

// --- layout ---------------------------------------------------------------------------------------------------------

#define NO_STEP SIZE_MAX

static bool depend_on(struct vr_sim_exec *exec, size_t step) {
    const size_t needed = exec->dependency_count + 1;
    if (VR_GROW(exec, dependencies, needed) != VRAM_OK) return false;
    exec->dependencies[exec->dependency_count++] = step;
    return true;
}

// Adds a step that depends on the list's entries from `first` on. Returns NO_STEP if the host is out of memory.
static size_t add_step(struct vr_sim_exec *exec, const struct vr_sim_work *work, size_t first) {
    const size_t needed = exec->step_count + 1;
    if (VR_GROW(exec, steps, needed) != VRAM_OK) return NO_STEP;
    exec->steps[exec->step_count] =
        (struct vr_sim_step){.work = *work, .first_dependency = first, .dependency_count = exec->dependency_count - first};
    vr_sim_payload_keep(work->payload);
    exec->calls = exec->calls || work->function != NULL;
    return exec->step_count++;
}

// State of laying out one graph. Each array has one element per node, by place; `starts` has one more.
struct layout {
    const struct vr_sim *sim;
    const struct vr_sim_nodes *nodes;
    size_t *steps;   // last step of the node
    size_t *waiting; // number of dependencies that have no step yet
    size_t *starts;  // start of the node's successors in `after`
    uint32_t *after; // places of successors
    uint32_t *ready; // places whose dependencies all have steps, in that order
    size_t ready_count;
};

static const struct vr_sim_node *node_in(const struct layout *layout, size_t place) {
    return vr_sim_node_find(layout->sim, layout->nodes->items[place]);
}

static void close_layout(struct layout *layout) {
    free(layout->steps);
    free(layout->waiting);
    free(layout->starts);
    free(layout->after);
    free(layout->ready);
}

static bool open_layout(struct layout *layout) {
    const size_t count = layout->nodes->count;
    size_t edges = 0;
    for (size_t i = 0; i < count; i++) edges += node_in(layout, i)->dependencies.count;
    layout->steps = calloc(count + 1, sizeof *layout->steps);
    layout->waiting = calloc(count + 1, sizeof *layout->waiting);
    layout->starts = calloc(count + 2, sizeof *layout->starts);
    layout->after = calloc(edges + 1, sizeof *layout->after);
    layout->ready = calloc(count + 1, sizeof *layout->ready);
    return layout->steps != NULL && layout->waiting != NULL && layout->starts != NULL && layout->after != NULL && layout->ready != NULL;
}

// Fills waiting, starts and after, and finds the nodes without dependencies. While filling, starts[p + 1] is where the next successor of p
// goes; in the end it is where those of p + 1 start.
static void sort_edges(struct layout *layout) {
    const size_t count = layout->nodes->count;
    for (size_t i = 0; i < count; i++) {
        const struct vr_sim_nodes *before = &node_in(layout, i)->dependencies;
        layout->waiting[i] = before->count;
        if (before->count == 0) layout->ready[layout->ready_count++] = (uint32_t)i;
        for (size_t d = 0; d < before->count; d++) layout->starts[vr_sim_node_find(layout->sim, before->items[d])->place + 2]++;
    }
    for (size_t i = 2; i <= count + 1; i++) layout->starts[i] += layout->starts[i - 1];
    for (size_t i = 0; i < count; i++) {
        const struct vr_sim_nodes *before = &node_in(layout, i)->dependencies;
        for (size_t d = 0; d < before->count; d++)
            layout->after[layout->starts[vr_sim_node_find(layout->sim, before->items[d])->place + 1]++] = (uint32_t)i;
    }
}

static vr_cu_result lay_graph(struct vr_sim *sim, struct vr_sim_exec *exec, uint32_t graph, size_t entry, size_t *exit);

// Adds the steps of a node's dependencies as dependencies of the next step.
static bool lay_dependencies(struct vr_sim_exec *exec, const struct layout *layout, const struct vr_sim_node *node, size_t entry) {
    if (node->dependencies.count == 0) return entry == NO_STEP || depend_on(exec, entry);
    for (size_t d = 0; d < node->dependencies.count; d++)
        if (!depend_on(exec, layout->steps[vr_sim_node_find(layout->sim, node->dependencies.items[d])->place])) return false;
    return true;
}

// Lays out one node whose dependencies have steps. A child graph becomes an empty step, its own steps, and another empty step.
static vr_cu_result lay_node(struct vr_sim *sim, struct vr_sim_exec *exec, struct layout *layout, uint32_t place, size_t entry) {
    const struct vr_sim_node *node = node_in(layout, place);
    const struct vr_sim_work empty = {.type = VR_CU_GRAPH_NODE_TYPE_EMPTY};
    uint32_t inside = node->work.child;
    const bool is_condition = node->work.type == VR_CU_GRAPH_NODE_TYPE_CONDITIONAL;
    const bool has_graph =
        node->work.type == VR_CU_GRAPH_NODE_TYPE_GRAPH || (is_condition && vr_sim_body_to_run(sim, node->work.payload, &inside));
    const size_t first = exec->dependency_count;
    const struct vr_sim_work *work = has_graph || is_condition ? &empty : &node->work;
    const size_t step = lay_dependencies(exec, layout, node, entry) ? add_step(exec, work, first) : NO_STEP;
    if (step == NO_STEP) return VR_CU_OUT_OF_MEMORY;
    exec->steps[step].node = layout->nodes->items[place];
    layout->steps[place] = step;
    const vr_cu_result result = has_graph ? lay_graph(sim, exec, inside, step, &layout->steps[place]) : VR_CU_SUCCESS;
    if (result == VR_CU_SUCCESS && has_graph && !is_condition) exec->steps[step].exit = layout->steps[place];
    return result;
}

// Adds a step after all nodes that have no successors.
static vr_cu_result lay_exit(struct vr_sim_exec *exec, const struct layout *layout, size_t entry, size_t *exit) {
    const struct vr_sim_work empty = {.type = VR_CU_GRAPH_NODE_TYPE_EMPTY};
    const size_t first = exec->dependency_count;
    bool fits = depend_on(exec, entry);
    for (size_t i = 0; i < layout->nodes->count && fits; i++)
        if (layout->starts[i] == layout->starts[i + 1]) fits = depend_on(exec, layout->steps[i]);
    const size_t step = fits ? add_step(exec, &empty, first) : NO_STEP;
    if (step == NO_STEP) return VR_CU_OUT_OF_MEMORY;
    *exit = step;
    return VR_CU_SUCCESS;
}

static vr_cu_result lay_nodes(struct vr_sim *sim, struct vr_sim_exec *exec, struct layout *layout, size_t entry) {
    sort_edges(layout);
    for (size_t i = 0; i < layout->ready_count; i++) {
        const uint32_t place = layout->ready[i];
        const vr_cu_result result = lay_node(sim, exec, layout, place, entry);
        if (result != VR_CU_SUCCESS) return result;
        for (size_t s = layout->starts[place]; s < layout->starts[place + 1]; s++)
            if (--layout->waiting[layout->after[s]] == 0) layout->ready[layout->ready_count++] = layout->after[s];
    }
    return layout->ready_count == layout->nodes->count ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// Lays out the steps of a graph. INVALID_VALUE if its edges form a cycle. A child graph's steps come after `entry`, and *exit comes after
// them.
static vr_cu_result lay_graph(struct vr_sim *sim, struct vr_sim_exec *exec, uint32_t graph, size_t entry, size_t *exit) {
    struct layout layout = {.sim = sim, .nodes = &vr_sim_graph_at(sim, graph)->nodes};
    if (!vr_sim_holdings_add(sim, &exec->holdings, &vr_sim_graph_at(sim, graph)->holdings)) return VR_CU_OUT_OF_MEMORY;
    vr_cu_result result = open_layout(&layout) ? lay_nodes(sim, exec, &layout, entry) : VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS && entry != NO_STEP) result = lay_exit(exec, &layout, entry, exit);
    close_layout(&layout);
    return result;
}

// --- creation and destruction ---------------------------------------------------------------------------------------

static void sim_exec_unlay(struct vr_sim *sim, struct vr_sim_exec *exec) {
    for (size_t i = 0; i < exec->step_count; i++) vr_sim_payload_drop(exec->steps[i].work.payload);
    free(exec->steps);
    free(exec->dependencies);
    vr_sim_holdings_release(sim, &exec->holdings);
    free(exec->ends_ns);
}

void vr_sim_exec_end(struct vr_sim *sim, struct vr_sim_exec *exec) {
    vr_sim_event_forget(sim, &exec->launch);
    if (exec->claimed) vr_sim_exec_disclaim(sim, exec);
    vr_sim_exec_give_memory(sim, exec);
    sim_exec_unlay(sim, exec);
    vr_sim_slots_give(&sim->execs, vr_sim_slots_index(&sim->execs, exec));
}

// Lays out a graph for comparison. Undo with sim_exec_unlay(), even after a failure.
static vr_cu_result sim_exec_lay(struct vr_sim *sim, struct vr_sim_exec *exec, uint32_t graph) {
    return lay_graph(sim, exec, graph, NO_STEP, NULL);
}

vr_cu_result vr_sim_graph_instantiate(struct vr_sim *sim, uint64_t *exec, uint64_t graph, uint64_t flags) {
    const uint64_t known = VR_CU_GRAPH_INSTANTIATE_AUTO_FREE_ON_LAUNCH | VR_CU_GRAPH_INSTANTIATE_USE_NODE_PRIORITY;
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    if (flags == VR_CU_GRAPH_INSTANTIATE_DEVICE_LAUNCH) return VR_CU_NOT_SUPPORTED;
    if (exec == NULL || found == NULL || (flags & ~known) != 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    uint32_t index;
    if (vr_sim_slots_take(&sim->execs, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_exec *made = (struct vr_sim_exec *)(void *)vr_sim_slots_item(&sim->execs, index);
    result = lay_graph(sim, made, vr_sim_slots_index(&sim->graphs, found), NO_STEP, NULL);
    if (result == VR_CU_SUCCESS) {
        made->ends_ns = calloc(made->step_count + 1, sizeof *made->ends_ns);
        if (made->ends_ns == NULL) result = VR_CU_OUT_OF_MEMORY;
    }
    if (result == VR_CU_SUCCESS && !vr_sim_exec_take_memory(sim, made)) result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS) result = vr_sim_exec_claim(sim, made);
    made->claimed = result == VR_CU_SUCCESS;
    made->flags = flags;
    made->auto_free = (flags & VR_CU_GRAPH_INSTANTIATE_AUTO_FREE_ON_LAUNCH) != 0;
    if (result == VR_CU_SUCCESS)
        *exec = vr_sim_slots_handle(&sim->execs, index);
    else
        vr_sim_exec_end(sim, made);
    return result;
}

// Work of earlier launches continues: it does not use the executable graph.
vr_cu_result vr_sim_graph_exec_destroy(struct vr_sim *sim, uint64_t exec) {
    struct vr_sim_exec *found = exec_of(sim, exec);
    if (found == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_unsafe(sim);
    if (result == VR_CU_SUCCESS) vr_sim_exec_end(sim, found);
    return result;
}

// --- launching ------------------------------------------------------------------------------------------------------

static struct vr_sim_event *event_of(const struct vr_sim *sim, const struct vr_sim_step *step, int type) {
    return step->work.type == type ? vr_sim_slots_find(&sim->events, step->work.event) : NULL;
}

// Checks that all steps can run. ILLEGAL_ADDRESS if memory was freed, INVALID_VALUE if an event was destroyed or the launch would take too
// long.
static vr_cu_result check_steps(const struct vr_sim *sim, const struct vr_sim_exec *exec, uint32_t device) {
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < exec->step_count; i++) {
        const struct vr_sim_work *work = &exec->steps[i].work;
        const bool is_event = work->type == VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT || work->type == VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD;
        if (is_event && vr_sim_slots_find(&sim->events, work->event) == NULL) return VR_CU_INVALID_VALUE;
        if (!exec->steps[i].disabled && !vr_sim_work_is_valid(sim, work)) return VR_CU_ILLEGAL_ADDRESS;
        if (!vr_add_u64(sum_ns, work->cost_ns, &sum_ns)) return VR_CU_INVALID_VALUE;
    }
    return vr_sim_fits_in_time(sim, sim->devices[device].tail_ns, sum_ns) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// Computes the start of a launch, which comes after the stream's work and the previous launch. With manual completion, the whole launch
// also comes after the events that its steps wait for.
static vr_cu_result enqueue_start(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_exec *exec, uint64_t *start_ns) {
    vr_cu_result result = exec->launch.recorded ? vr_sim_enqueue_wait(sim, stream, &exec->launch) : VR_CU_SUCCESS;
    for (size_t i = 0; i < exec->step_count && sim->options.manual_completion && result == VR_CU_SUCCESS; i++) {
        const struct vr_sim_event *event = event_of(sim, &exec->steps[i], VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT);
        if (event != NULL && event->recorded) result = vr_sim_enqueue_wait(sim, stream, event);
    }
    return result == VR_CU_SUCCESS ? vr_sim_enqueue(sim, stream, 0, start_ns) : result;
}

// Computes the end of each step and returns the last one. A step starts when all of its dependencies have ended.
static uint64_t time_steps(const struct vr_sim *sim, const struct vr_sim_exec *exec, uint64_t start_ns) {
    uint64_t last_ns = start_ns;
    for (size_t i = 0; i < exec->step_count; i++) {
        const struct vr_sim_step *step = &exec->steps[i];
        uint64_t at_ns = start_ns;
        for (size_t d = 0; d < step->dependency_count; d++)
            at_ns = later_of(at_ns, exec->ends_ns[exec->dependencies[step->first_dependency + d]]);
        const struct vr_sim_event *event = event_of(sim, step, VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT);
        if (event != NULL && event->recorded) at_ns = later_of(at_ns, event->complete_ns);
        exec->ends_ns[i] = at_ns + (step->disabled ? 0 : step->work.cost_ns);
        last_ns = later_of(last_ns, exec->ends_ns[i]);
    }
    return last_ns;
}

static vr_cu_result do_step(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    if (work->type != VR_CU_GRAPH_NODE_TYPE_KERNEL || work->payload == NULL)
        return vr_sim_work_run(sim, stream, &(struct vr_sim_callback){.work = *work});
    const struct vr_sim_launch *kernel = &((const struct vr_sim_kernel_payload *)(const void *)work->payload)->launch;
    vr_sim_launch_pass(sim, kernel);
    return vr_sim_launch_fill(sim, stream, work->device, kernel);
}

// Reports the launch to the checker. Events that its steps wait for or record count for the whole launch.
static void sim_exec_check(struct vr_sim *sim, const struct vr_sim_stream *stream, struct vr_sim_exec *exec) {
    struct vr_check *check = sim->checking->check;
    for (size_t i = 0; i < exec->step_count; i++) {
        const struct vr_sim_event *event = event_of(sim, &exec->steps[i], VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT);
        if (event != NULL) vr_check_wait(check, stream->serial, event->point);
    }
    uint64_t last = 0;
    for (size_t i = 0; i < exec->step_count; i++)
        if (exec->steps[i].work.lives > last) last = exec->steps[i].work.lives;
    const struct vr_check_place place = {.stack = sim->stack, .work = "the launch of a graph"};
    vr_check_launch_begin(check, stream->serial, exec->step_count, last, place);
    for (size_t i = 0; i < exec->step_count; i++) {
        const struct vr_sim_step *step = &exec->steps[i];
        const size_t *after = step->dependency_count == 0 ? NULL : exec->dependencies + step->first_dependency;
        vr_sim_operands_check_step(sim, step->disabled ? NULL : &step->work, after, step->dependency_count);
    }
    vr_check_launch_end(check);
    vr_check_mark(check, stream->serial, &exec->launch.point);
}

static vr_cu_result launch_exec(struct vr_sim *sim, struct vr_sim_stream *stream, struct vr_sim_exec *exec) {
    vr_cu_result result = check_steps(sim, exec, vr_sim_context_find(sim, stream->context)->device);
    uint64_t start_ns, end_ns;
    if (result == VR_CU_SUCCESS && (exec->calls || !vr_sim_callback_done(sim, stream->callback)))
        result = vr_sim_callbacks_reserve(sim, exec->step_count);
    if (result == VR_CU_SUCCESS) result = vr_sim_exec_allocate(sim, exec);
    if (result == VR_CU_SUCCESS) result = enqueue_start(sim, stream, exec, &start_ns);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_sim_enqueue(sim, stream, time_steps(sim, exec, start_ns) - start_ns, &end_ns);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_event_set(sim, &exec->launch, stream, end_ns);
    if (VR_UNLIKELY(sim->checking != NULL)) sim_exec_check(sim, stream, exec);
    for (size_t i = 0; i < exec->step_count; i++) {
        if (exec->steps[i].disabled) continue;
        struct vr_sim_event *event = event_of(sim, &exec->steps[i], VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD);
        if (event != NULL) vr_sim_event_set(sim, event, stream, exec->ends_ns[i]);
        const struct vr_sim_work *work = &exec->steps[i].work;
        const vr_cu_result done = do_step(sim, stream, work);
        if (VR_UNLIKELY(sim->checking != NULL) && work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY) vr_sim_guards_add(sim, stream, work);
        if (result == VR_CU_SUCCESS) result = done;
    }
    vr_sim_exec_free(sim, exec);
    return result;
}

// Adds nodes to a graph that do the same as the executable graph.
static vr_cu_result add_steps(struct vr_sim *sim, const struct vr_sim_exec *exec, uint32_t graph) {
    struct vr_sim_nodes before = {0};
    vr_cu_result result = VR_CU_SUCCESS;
    for (size_t i = 0; i < exec->step_count && result == VR_CU_SUCCESS; i++) {
        const struct vr_sim_step *step = &exec->steps[i];
        before.count = 0;
        bool fits = true;
        for (size_t d = 0; d < step->dependency_count && fits; d++) {
            const size_t place = exec->dependencies[step->first_dependency + d];
            fits = vr_sim_nodes_add(&before, vr_sim_graph_at(sim, graph)->nodes.items[place]);
        }
        uint64_t node;
        result = fits ? vr_sim_node_add(sim, graph, &step->work, before.items, before.count, &node) : VR_CU_OUT_OF_MEMORY;
    }
    vr_sim_nodes_free(&before);
    return result;
}

// Captures a launch as a child graph of the captured graph.
static vr_cu_result capture_launch(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_exec *exec) {
    struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_GRAPH};
    vr_cu_result result = vr_sim_graph_make(sim, &work.child);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_graph_own(sim, work.child);
    result = add_steps(sim, exec, work.child);
    if (result == VR_CU_SUCCESS) result = vr_sim_capture_add(sim, stream, &work);
    if (result != VR_CU_SUCCESS) vr_sim_graph_end(sim, work.child);
    return result;
}

vr_cu_result vr_sim_graph_launch(struct vr_sim *sim, uint64_t exec, uint64_t stream) {
    struct vr_sim_exec *found = exec_of(sim, exec);
    if (found == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->capture == 0) return launch_exec(sim, queue, found);
    return vr_sim_exec_has_memory(found) ? VR_CU_NOT_SUPPORTED : capture_launch(sim, queue, found);
}

// ---- Changes to executable graphs: parameters of one node, parameters of all nodes from a graph of the same shape, disabled nodes; and
// other queries.

enum update_result { // CUgraphExecUpdateResult
    UPDATE_SUCCESS,
    UPDATE_ERROR,
    UPDATE_TOPOLOGY_CHANGED,
    UPDATE_TYPE_CHANGED,
    UPDATE_PARAMETERS_CHANGED = 5,
    UPDATE_NOT_SUPPORTED = 6
};
enum instantiate_result { INSTANTIATE_SUCCESS, INSTANTIATE_ERROR, INSTANTIATE_INVALID_STRUCTURE, INSTANTIATE_NOT_SUPPORTED };

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

// The struct of the first version ends before `kernel`.
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

// --- child graphs ---------------------------------------------------------------------------------------------------

// Returns whether the steps of `fresh` have the same types and dependencies as those after step `entry`.
static bool is_same_shape(const struct vr_sim_exec *old, size_t entry, const struct vr_sim_exec *fresh) {
    if (old->steps[entry].exit - entry - 1 != fresh->step_count) return false;
    for (size_t i = 0; i < fresh->step_count; i++) {
        const struct vr_sim_step *a = &old->steps[entry + 1 + i], *b = &fresh->steps[i];
        if (a->work.type != b->work.type) return false;
        if (b->dependency_count == 0) { // then it must depend on the step `entry`
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

// Replaces the parameters of a child graph from a graph of the same shape. A child graph has no memory nodes.
vr_cu_result vr_sim_graph_exec_child_graph_node_set_params(struct vr_sim *sim, uint64_t exec, uint64_t node, uint64_t child) {
    struct vr_sim_exec *found = exec_of(sim, exec);
    const struct vr_sim_step *step = step_of(found, node);
    const struct vr_sim_graph *source = vr_sim_slots_find(&sim->graphs, child);
    if (step == NULL || step->exit == 0 || source == NULL) return VR_CU_INVALID_VALUE;
    const size_t entry = (size_t)(step - found->steps);
    struct vr_sim_exec fresh = {0};
    vr_cu_result result = sim_exec_lay(sim, &fresh, vr_sim_slots_index(&sim->graphs, source));
    if (result == VR_CU_SUCCESS && !is_same_shape(found, entry, &fresh)) result = VR_CU_INVALID_VALUE;
    for (size_t i = 0; result == VR_CU_SUCCESS && i < fresh.step_count; i++)
        replace_step_work(found, &found->steps[entry + 1 + i], &fresh.steps[i].work);
    sim_exec_unlay(sim, &fresh);
    return result;
}

// --- disabled nodes -------------------------------------------------------------------------------------------------

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

// Returns why the steps of another graph cannot replace these. *at is the first that differs.
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

// Replaces the work of all steps. Node handles stay those of the original graph.
static void take_steps(struct vr_sim_exec *exec, const struct vr_sim_exec *fresh) {
    for (size_t i = 0; i < exec->step_count; i++) replace_step_work(exec, &exec->steps[i], &fresh->steps[i].work);
}

vr_cu_result vr_sim_graph_exec_update_v2(struct vr_sim *sim, uint64_t exec, uint64_t graph, struct vr_cu_update_info *info) {
    struct vr_sim_exec *found = exec_of(sim, exec);
    const struct vr_sim_graph *source = vr_sim_slots_find(&sim->graphs, graph);
    if (found == NULL || source == NULL || info == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_exec fresh = {0};
    vr_cu_result result = sim_exec_lay(sim, &fresh, vr_sim_slots_index(&sim->graphs, source));
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
    sim_exec_unlay(sim, &fresh);
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

// --- instantiation and queries --------------------------------------------------------------------------------------

// An upload does nothing: graphs need not be moved to the device.
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
