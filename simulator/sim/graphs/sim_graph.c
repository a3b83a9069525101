// Graphs: their nodes, their memory, and the user objects that they hold.
#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"
#include "sim/streams/sim_callbacks.h"

// ---- User objects and their references.

enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };

static struct vr_sim_user_object *object_of(const struct vr_sim *sim, uint64_t object) {
    return vr_sim_slots_find(&sim->user_objects, object);
}

// Drops references. The destructor is called like a host function, after those of launches that may use the object.
static void release_user_object(struct vr_sim *sim, struct vr_sim_user_object *object, uint64_t count) {
    object->references -= count;
    if (object->references > 0) return;
    vr_cu_host_function *destroy = object->destroy;
    void *argument = object->object;
    vr_sim_slots_give(&sim->user_objects, vr_sim_slots_index(&sim->user_objects, object));
    vr_sim_callback_call(sim, destroy, argument);
}

static struct vr_sim_holding *holding_of(const struct vr_sim_holdings *holdings, uint64_t object) {
    for (size_t i = 0; i < holdings->count; i++)
        if (holdings->items[i].object == object) return &holdings->items[i];
    return NULL;
}

static bool hold_user_object(struct vr_sim_holdings *holdings, uint64_t object, uint64_t count) {
    struct vr_sim_holding *found = holding_of(holdings, object);
    if (found != NULL) {
        found->count += count;
        return true;
    }
    if (VR_GROW(holdings, items, holdings->count + 1) != VRAM_OK) return false;
    holdings->items[holdings->count++] = (struct vr_sim_holding){object, count};
    return true;
}

void vr_sim_holdings_release(struct vr_sim *sim, struct vr_sim_holdings *holdings) {
    for (size_t i = 0; i < holdings->count; i++)
        release_user_object(sim, object_of(sim, holdings->items[i].object), holdings->items[i].count);
    free(holdings->items);
    *holdings = (struct vr_sim_holdings){0};
}

bool vr_sim_holdings_add(struct vr_sim *sim, struct vr_sim_holdings *to, const struct vr_sim_holdings *from) {
    for (size_t i = 0; i < from->count; i++) {
        if (!hold_user_object(to, from->items[i].object, from->items[i].count)) return false;
        object_of(sim, from->items[i].object)->references += from->items[i].count;
    }
    return true;
}

// --- calls ----------------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_user_object_create(struct vr_sim *sim, uint64_t *object, void *pointer, vr_cu_host_function *destroy, unsigned count,
                                       unsigned flags) {
    if (object == NULL || destroy == NULL || count == 0 || count > INT32_MAX || flags != NO_DESTRUCTOR_SYNC) return VR_CU_INVALID_VALUE;
    uint32_t index;
    if (vr_sim_slots_take(&sim->user_objects, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_user_object *made = (struct vr_sim_user_object *)(void *)vr_sim_slots_item(&sim->user_objects, index);
    made->object = pointer;
    made->destroy = destroy;
    made->references = count;
    *object = vr_sim_slots_handle(&sim->user_objects, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_user_object_retain(struct vr_sim *sim, uint64_t object, unsigned count) {
    struct vr_sim_user_object *found = object_of(sim, object);
    if (found == NULL || count == 0 || count > INT32_MAX) return VR_CU_INVALID_VALUE;
    found->references += count;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_user_object_release(struct vr_sim *sim, uint64_t object, unsigned count) {
    struct vr_sim_user_object *found = object_of(sim, object);
    if (found == NULL || count == 0 || count > found->references) return VR_CU_INVALID_VALUE;
    release_user_object(sim, found, count);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_retain_user_object(struct vr_sim *sim, uint64_t graph, uint64_t object, unsigned count, unsigned flags) {
    struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    struct vr_sim_user_object *kept = object_of(sim, object);
    if (found == NULL || kept == NULL || count == 0 || count > INT32_MAX || flags > MOVE) return VR_CU_INVALID_VALUE;
    if (!hold_user_object(&found->holdings, object, count)) return VR_CU_OUT_OF_MEMORY;
    if (flags != MOVE) kept->references += count; // moved references were the program's
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_release_user_object(struct vr_sim *sim, uint64_t graph, uint64_t object, unsigned count) {
    struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    struct vr_sim_holding *holding = found == NULL ? NULL : holding_of(&found->holdings, object);
    if (holding == NULL || count == 0 || count > holding->count) return VR_CU_INVALID_VALUE;
    holding->count -= count;
    if (holding->count == 0) *holding = found->holdings.items[--found->holdings.count];
    release_user_object(sim, object_of(sim, object), count);
    return VR_CU_SUCCESS;
}

// ---- Memory allocated by a captured stream. The graph owns the address for good. Memory backs it from the launch that allocates it until
// it is freed by a node of the graph, outside of the graph, or by the next launch with AUTO_FREE_ON_LAUNCH. Accesses to the address are
// always allowed: only frees and launches check whether it is allocated.

static struct vr_sim_graph_memory *memory_of(const struct vr_sim *sim, uint64_t memory) {
    return (struct vr_sim_graph_memory *)(void *)vr_sim_slots_item(&sim->graph_memories, (uint32_t)memory);
}

struct vr_sim_graph_memory *vr_sim_graph_memory_at(const struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    return range == NULL || range->kind != VR_SIM_GRAPH_MEMORY ? NULL : memory_of(sim, range->owner);
}

// Drops the contents.
static void drop_graph_memory(struct vr_sim *sim, const struct vr_sim_graph_memory *memory) {
    if (vr_sim_keeps(sim)) vr_sim_back_drop(sim, vr_sim_ranges_at(&sim->spaces, memory->address), memory->address, memory->span);
}

// Frees the address once nothing refers to it.
static void collect_graph_memory(struct vr_sim *sim, struct vr_sim_graph_memory *memory) {
    if (memory->references > 0 || memory->live) return;
    drop_graph_memory(sim, memory);
    vr_sim_back_remove(sim, memory->address, memory->span);
    vr_sim_ranges_remove(&sim->spaces, memory->address);
    vr_sim_place_freed(sim, memory->device, memory->address, memory->span);
    vr_sim_slots_give(&sim->graph_memories, vr_sim_slots_index(&sim->graph_memories, memory));
}

static void end_life(struct vr_sim *sim, struct vr_sim_graph_memory *memory) {
    memory->live = false;
    sim->devices[memory->device].used_bytes -= memory->span;
    drop_graph_memory(sim, memory);
    collect_graph_memory(sim, memory);
}

void vr_sim_graph_memory_reference(struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC) memory_of(sim, work->memory)->references++;
}

void vr_sim_graph_memory_unreference(struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->type != VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC) return;
    memory_of(sim, work->memory)->references--;
    collect_graph_memory(sim, memory_of(sim, work->memory));
}

// --- making and freeing ---------------------------------------------------------------------------------------------

vr_cu_result vr_sim_graph_memory_make(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, uint32_t *index, uint64_t *address) {
    if (size_bytes > VR_SIM_LIMIT) return VR_CU_OUT_OF_MEMORY;
    if (vr_sim_slots_take(&sim->graph_memories, index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_place place = {0};
    vr_cu_result result = vr_sim_place_chunk(sim, device, vr_round_up(size_bytes, VR_SIM_GRANULARITY), &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, true);
    if (result == VR_CU_SUCCESS) {
        const struct vr_sim_range range = {.base = place.address,
                                           .span = place.span,
                                           .size_bytes = size_bytes,
                                           .kind = VR_SIM_GRAPH_MEMORY,
                                           .owner = *index,
                                           .read_mask = vr_sim_back_keep(sim, place.span)};
        if (vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) {
            vr_sim_back_remove(sim, place.address, place.span);
            vr_sim_place_lost(sim, &place);
            result = VR_CU_OUT_OF_MEMORY;
        }
    }
    if (result != VR_CU_SUCCESS) {
        vr_sim_slots_give(&sim->graph_memories, *index);
        return result;
    }
    struct vr_sim_graph_memory *made = memory_of(sim, *index);
    made->device = device;
    made->address = place.address;
    made->span = place.span;
    made->size_bytes = size_bytes;
    *address = place.address;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_memory_free(struct vr_sim *sim, uint64_t address) {
    struct vr_sim_graph_memory *memory = vr_sim_graph_memory_at(sim, address);
    if (memory == NULL || !memory->live || memory->freed_here) return VR_CU_INVALID_VALUE;
    end_life(sim, memory);
    return VR_CU_SUCCESS;
}

// --- executable graphs ----------------------------------------------------------------------------------------------

static bool allocates(const struct vr_sim_step *step) { return step->work.type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC; }

vr_cu_result vr_sim_exec_claim(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    for (size_t i = 0; i < exec->step_count; i++)
        if (allocates(&exec->steps[i]) && memory_of(sim, exec->steps[i].work.memory)->busy) return VR_CU_NOT_SUPPORTED;
    for (size_t i = 0; i < exec->step_count; i++) {
        vr_sim_graph_memory_reference(sim, &exec->steps[i].work);
        if (allocates(&exec->steps[i])) memory_of(sim, exec->steps[i].work.memory)->busy = true;
    }
    return VR_CU_SUCCESS;
}

void vr_sim_exec_disclaim(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    for (size_t i = 0; i < exec->step_count; i++) {
        if (allocates(&exec->steps[i])) memory_of(sim, exec->steps[i].work.memory)->busy = false;
        vr_sim_graph_memory_unreference(sim, &exec->steps[i].work);
    }
}

vr_cu_result vr_sim_exec_allocate(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    uint64_t needed[VR_SIM_MAX_DEVICES] = {0};
    for (size_t i = 0; i < exec->step_count; i++) {
        if (!allocates(&exec->steps[i])) continue;
        const struct vr_sim_graph_memory *memory = memory_of(sim, exec->steps[i].work.memory);
        if (memory->live && !exec->auto_free) return VR_CU_INVALID_VALUE;
        if (!memory->live) needed[memory->device] += memory->span;
    }
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        if (!vr_sim_has_room(&sim->devices[i], needed[i])) return VR_CU_OUT_OF_MEMORY;
    for (size_t i = 0; i < exec->step_count; i++) {
        if (!allocates(&exec->steps[i])) continue;
        struct vr_sim_graph_memory *memory = memory_of(sim, exec->steps[i].work.memory);
        if (!memory->live) sim->devices[memory->device].used_bytes += memory->span;
        memory->live = true;
    }
    return VR_CU_SUCCESS;
}

void vr_sim_exec_free(struct vr_sim *sim, const struct vr_sim_exec *exec) {
    for (size_t i = 0; i < exec->step_count; i++)
        if (exec->steps[i].work.type == VR_CU_GRAPH_NODE_TYPE_MEM_FREE) end_life(sim, memory_of(sim, exec->steps[i].work.memory));
}

bool vr_sim_exec_has_memory(const struct vr_sim_exec *exec) {
    bool has = false;
    for (size_t i = 0; i < exec->step_count; i++) has = has || allocates(&exec->steps[i]);
    return has;
}

uint64_t vr_sim_graph_memory_bytes(const struct vr_sim *sim, uint32_t device) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->graph_memories.used; i++) {
        const struct vr_sim_graph_memory *memory = memory_of(sim, i);
        if (memory->slot.live && memory->live && memory->device == device) sum += memory->span;
    }
    return sum;
}

// ---- Graphs and their nodes.

bool vr_sim_nodes_merge(struct vr_sim *sim, struct vr_sim_nodes *to, const uint64_t *nodes, size_t count) {
    if (!vr_sim_nodes_reserve(to, count)) return false;
    const uint64_t mark = ++sim->last_mark;
    for (size_t i = 0; i < to->count; i++) vr_sim_node_find(sim, to->items[i])->mark = mark;
    for (size_t i = 0; i < count; i++) {
        struct vr_sim_node *node = vr_sim_node_find(sim, nodes[i]);
        if (node->mark != mark) to->items[to->count++] = nodes[i];
        node->mark = mark;
    }
    return true;
}

// --- nodes ----------------------------------------------------------------------------------------------------------

static struct vr_sim_node *node_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_node *)(void *)vr_sim_slots_item(&sim->nodes, index);
}

struct vr_sim_node *vr_sim_node_find(const struct vr_sim *sim, uint64_t node) {
    return vr_sim_slots_find(&sim->nodes, node);
}

bool vr_sim_are_nodes_of(struct vr_sim *sim, uint32_t graph, const uint64_t *nodes, size_t count) {
    if (count != 0 && nodes == NULL) return false;
    const uint64_t mark = ++sim->last_mark;
    for (size_t i = 0; i < count; i++) {
        struct vr_sim_node *node = vr_sim_node_find(sim, nodes[i]);
        if (node == NULL || node->graph != graph || node->mark == mark) return false;
        node->mark = mark;
    }
    return true;
}

static struct vr_sim_condition_payload *condition_of(struct vr_sim_payload *payload) {
    return (struct vr_sim_condition_payload *)(void *)payload;
}

static uint32_t body_at(const struct vr_sim *sim, uint64_t body) {
    return vr_sim_slots_index(&sim->graphs, vr_sim_slots_find(&sim->graphs, body));
}

// Returns the depth of nested graphs in the work: 0 if it has no child graph.
static uint32_t depth_of(const struct vr_sim *sim, const struct vr_sim_work *work) {
    if (work->type == VR_CU_GRAPH_NODE_TYPE_GRAPH) return vr_sim_graph_at(sim, work->child)->depth;
    if (work->type != VR_CU_GRAPH_NODE_TYPE_CONDITIONAL) return 0;
    const struct vr_sim_condition_payload *condition = condition_of(work->payload);
    uint32_t depth = 0;
    for (uint32_t i = 0; i < condition->size; i++) {
        const uint32_t of = vr_sim_graph_at(sim, body_at(sim, condition->bodies[i]))->depth;
        if (of > depth) depth = of;
    }
    return depth;
}

// Returns whether adding the work would exceed the depth limit of the enclosing graphs.
static bool is_too_deep(const struct vr_sim *sim, uint32_t graph, const struct vr_sim_work *work) {
    uint32_t depth = depth_of(sim, work);
    if (depth == 0) return false;
    for (uint32_t at = graph + 1; at != 0 && depth <= VR_SIM_MAX_DEPTH; at = vr_sim_graph_at(sim, at - 1)->parent) depth++;
    return depth > VR_SIM_MAX_DEPTH;
}

// Sets the parent of the work's child graphs and updates the depths of the enclosing graphs.
static void adopt_work(struct vr_sim *sim, uint32_t graph, const struct vr_sim_work *work) {
    uint32_t depth = depth_of(sim, work);
    if (work->type == VR_CU_GRAPH_NODE_TYPE_GRAPH) vr_sim_graph_at(sim, work->child)->parent = graph + 1;
    if (work->type == VR_CU_GRAPH_NODE_TYPE_CONDITIONAL)
        for (uint32_t i = 0; i < condition_of(work->payload)->size; i++)
            vr_sim_graph_at(sim, body_at(sim, condition_of(work->payload)->bodies[i]))->parent = graph + 1;
    for (uint32_t at = graph + 1; depth != 0 && at != 0; at = vr_sim_graph_at(sim, at - 1)->parent) {
        struct vr_sim_graph *around = vr_sim_graph_at(sim, at - 1);
        if (around->depth < ++depth) around->depth = depth;
    }
}

vr_cu_result vr_sim_node_add(struct vr_sim *sim, uint32_t graph, const struct vr_sim_work *work, const uint64_t *dependencies, size_t count,
                             uint64_t *node) {
    const struct vr_sim_nodes list = {.items = (uint64_t *)(uintptr_t)dependencies, .count = count};
    const struct vr_sim_work copy = *work; // `work` may be in a node that moves below
    struct vr_sim_nodes own = {0};
    uint32_t index;
    if (is_too_deep(sim, graph, work)) return VR_CU_INVALID_VALUE;
    if (!vr_sim_nodes_reserve(&vr_sim_graph_at(sim, graph)->nodes, 1) || !vr_sim_nodes_copy(&own, &list)) return VR_CU_OUT_OF_MEMORY;
    if (vr_sim_slots_take(&sim->nodes, &index) != VRAM_OK) {
        vr_sim_nodes_free(&own);
        return VR_CU_OUT_OF_MEMORY;
    }
    struct vr_sim_graph *owner = vr_sim_graph_at(sim, graph);
    struct vr_sim_node *made = node_at(sim, index);
    made->graph = graph;
    made->place = (uint32_t)owner->nodes.count;
    made->work = copy;
    made->dependencies = own;
    made->work.cost_ns = vr_sim_work_cost_ns(sim, &copy);
    if (made->work.stack == 0) made->work.stack = sim->stack;
    if (VR_UNLIKELY(sim->checking != NULL) && made->work.lives == 0) made->work.lives = vr_check_lives(sim->checking->check);
    vr_sim_graph_memory_reference(sim, &copy);
    vr_sim_payload_keep(copy.payload);
    *node = vr_sim_slots_handle(&sim->nodes, index);
    owner->nodes.items[owner->nodes.count++] = *node;
    adopt_work(sim, graph, &copy);
    return VR_CU_SUCCESS;
}

static void end_node(struct vr_sim *sim, uint64_t node) {
    struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found->work.type == VR_CU_GRAPH_NODE_TYPE_GRAPH) vr_sim_graph_end(sim, found->work.child);
    if (found->work.type == VR_CU_GRAPH_NODE_TYPE_CONDITIONAL) vr_sim_bodies_end(sim, found->work.payload);
    vr_sim_graph_memory_unreference(sim, &found->work);
    vr_sim_payload_drop(found->work.payload);
    vr_sim_nodes_free(&found->dependencies);
    vr_sim_slots_give(&sim->nodes, vr_sim_slots_index(&sim->nodes, found));
}

bool vr_sim_mark_past(struct vr_sim *sim, const struct vr_sim_nodes *nodes, uint64_t *mark) {
    struct vr_sim_nodes open = {0};
    *mark = ++sim->last_mark;
    bool fits = vr_sim_nodes_copy(&open, nodes);
    for (size_t i = 0; i < open.count; i++) vr_sim_node_find(sim, open.items[i])->mark = *mark;
    while (fits && open.count != 0) {
        const struct vr_sim_node *node = vr_sim_node_find(sim, open.items[--open.count]);
        for (size_t i = 0; i < node->dependencies.count && fits; i++) {
            struct vr_sim_node *before = vr_sim_node_find(sim, node->dependencies.items[i]);
            if (before->mark == *mark) continue;
            before->mark = *mark;
            fits = vr_sim_nodes_add(&open, node->dependencies.items[i]);
        }
    }
    vr_sim_nodes_free(&open);
    return fits;
}

// --- graphs ---------------------------------------------------------------------------------------------------------

struct vr_sim_graph *vr_sim_graph_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_graph *)(void *)vr_sim_slots_item(&sim->graphs, index);
}

vr_cu_result vr_sim_graph_make(struct vr_sim *sim, uint32_t *index) {
    if (vr_sim_slots_take(&sim->graphs, index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    vr_sim_graph_at(sim, *index)->depth = 1;
    return VR_CU_SUCCESS;
}

void vr_sim_graph_own(struct vr_sim *sim, uint32_t index) {
    struct vr_sim_graph *graph = vr_sim_graph_at(sim, index);
    graph->owned = true;
}

void vr_sim_graph_end(struct vr_sim *sim, uint32_t index) {
    struct vr_sim_graph *graph = vr_sim_graph_at(sim, index);
    for (size_t i = 0; i < graph->nodes.count; i++) end_node(sim, graph->nodes.items[i]);
    vr_sim_nodes_free(&graph->nodes);
    vr_sim_holdings_release(sim, &graph->holdings);
    vr_sim_slots_give(&sim->graphs, index);
}

void vr_sim_bodies_end(struct vr_sim *sim, struct vr_sim_payload *payload) {
    struct vr_sim_condition_payload *condition = condition_of(payload);
    for (uint32_t i = 0; i < condition->size; i++) vr_sim_graph_end(sim, body_at(sim, condition->bodies[i]));
    condition->size = 0;
}

// Body 0 runs if the value is not 0, otherwise body 1, if there is one. A switch runs the body numbered by the value.
bool vr_sim_body_to_run(const struct vr_sim *sim, const struct vr_sim_payload *payload, uint32_t *graph) {
    const struct vr_sim_condition_payload *condition = (const struct vr_sim_condition_payload *)(const void *)payload;
    uint64_t body = condition->value != 0 ? 0 : 1;
    if (condition->type == VR_SIM_CONDITION_SWITCH) body = condition->value;
    if (body >= condition->size) return false;
    *graph = body_at(sim, condition->bodies[body]);
    return true;
}

// Makes a payload with copies of all bodies.
static vr_cu_result copy_bodies(struct vr_sim *sim, const struct vr_sim_payload *payload, struct vr_sim_payload **copy) {
    const struct vr_sim_condition_payload *from = (const struct vr_sim_condition_payload *)(const void *)payload;
    struct vr_sim_condition_payload *to = malloc(sizeof *to + from->size * sizeof to->bodies[0]);
    if (to == NULL) return VR_CU_OUT_OF_MEMORY;
    *to = *from;
    to->head.references = 1;
    for (to->size = 0; to->size < from->size; to->size++) {
        uint32_t body;
        const vr_cu_result result = vr_sim_graph_copy(sim, body_at(sim, from->bodies[to->size]), &body);
        if (result != VR_CU_SUCCESS) {
            vr_sim_bodies_end(sim, &to->head);
            vr_sim_payload_drop(&to->head);
            return result;
        }
        vr_sim_graph_own(sim, body);
        to->bodies[to->size] = vr_sim_slots_handle(&sim->graphs, body);
    }
    *copy = &to->head;
    return VR_CU_SUCCESS;
}

// Copies the edges. A copy's node is at the same place as its original. Nodes may precede their dependencies.
static bool copy_dependencies(struct vr_sim *sim, uint32_t from, uint32_t to) {
    const struct vr_sim_nodes *old = &vr_sim_graph_at(sim, from)->nodes, *made = &vr_sim_graph_at(sim, to)->nodes;
    for (size_t i = 0; i < old->count; i++) {
        const struct vr_sim_nodes *before = &vr_sim_node_find(sim, old->items[i])->dependencies;
        struct vr_sim_node *node = vr_sim_node_find(sim, made->items[i]);
        for (size_t d = 0; d < before->count; d++) {
            const uint32_t place = vr_sim_node_find(sim, before->items[d])->place;
            if (!vr_sim_nodes_add(&node->dependencies, made->items[place])) return false;
        }
    }
    return true;
}

static vr_cu_result copy_node(struct vr_sim *sim, uint64_t node, uint32_t to) {
    struct vr_sim_work work = vr_sim_node_find(sim, node)->work;
    const bool is_graph = work.type == VR_CU_GRAPH_NODE_TYPE_GRAPH;
    if (is_graph) {
        const vr_cu_result result = vr_sim_graph_copy(sim, work.child, &work.child);
        if (result != VR_CU_SUCCESS) return result;
        vr_sim_graph_own(sim, work.child);
    }
    const bool is_condition = work.type == VR_CU_GRAPH_NODE_TYPE_CONDITIONAL;
    if (is_condition) {
        const vr_cu_result result = copy_bodies(sim, work.payload, &work.payload);
        if (result != VR_CU_SUCCESS) return result;
    }
    uint64_t made;
    const vr_cu_result result = vr_sim_node_add(sim, to, &work, NULL, 0, &made);
    if (result == VR_CU_SUCCESS)
        vr_sim_node_find(sim, made)->original = node;
    else if (is_graph)
        vr_sim_graph_end(sim, work.child);
    else if (is_condition)
        vr_sim_bodies_end(sim, work.payload);
    if (is_condition) vr_sim_payload_drop(work.payload);
    return result;
}

vr_cu_result vr_sim_graph_copy(struct vr_sim *sim, uint32_t from, uint32_t *copy) {
    uint32_t made;
    vr_cu_result result = vr_sim_graph_make(sim, &made);
    if (result != VR_CU_SUCCESS) return result;
    for (size_t i = 0; i < vr_sim_graph_at(sim, from)->nodes.count && result == VR_CU_SUCCESS; i++)
        result = copy_node(sim, vr_sim_graph_at(sim, from)->nodes.items[i], made);
    if (result == VR_CU_SUCCESS && !copy_dependencies(sim, from, made)) result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS && !vr_sim_holdings_add(sim, &vr_sim_graph_at(sim, made)->holdings, &vr_sim_graph_at(sim, from)->holdings))
        result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS)
        *copy = made;
    else
        vr_sim_graph_end(sim, made);
    return result;
}

// --- calls about whole graphs ---------------------------------------------------------------------------------------

vr_cu_result vr_sim_graph_create(struct vr_sim *sim, uint64_t *graph, unsigned flags) {
    if (graph == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    uint32_t index;
    const vr_cu_result result = vr_sim_graph_make(sim, &index);
    if (result == VR_CU_SUCCESS) *graph = vr_sim_slots_handle(&sim->graphs, index);
    return result;
}

// Destroys a graph, unless a capture is filling it.
vr_cu_result vr_sim_graph_destroy(struct vr_sim *sim, uint64_t graph) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    if (found == NULL || found->capture != 0 || found->owned) return VR_CU_INVALID_VALUE;
    vr_sim_graph_end(sim, vr_sim_slots_index(&sim->graphs, found));
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_clone(struct vr_sim *sim, uint64_t *clone, uint64_t graph) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    if (clone == NULL || found == NULL) return VR_CU_INVALID_VALUE;
    if (vr_sim_graph_has_memory(sim, vr_sim_slots_index(&sim->graphs, found))) return VR_CU_NOT_SUPPORTED;
    uint32_t made;
    const vr_cu_result result = vr_sim_graph_copy(sim, vr_sim_slots_index(&sim->graphs, found), &made);
    if (result == VR_CU_SUCCESS) *clone = vr_sim_slots_handle(&sim->graphs, made);
    return result;
}

vr_cu_result vr_sim_graph_node_find_in_clone(struct vr_sim *sim, uint64_t *node, uint64_t original, uint64_t clone) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, clone);
    if (node == NULL || found == NULL || vr_sim_node_find(sim, original) == NULL) return VR_CU_INVALID_VALUE;
    for (size_t i = 0; i < found->nodes.count; i++) {
        if (vr_sim_node_find(sim, found->nodes.items[i])->original != original) continue;
        *node = found->nodes.items[i];
        return VR_CU_SUCCESS;
    }
    return VR_CU_INVALID_VALUE;
}

// Destroys a node and its edges.
vr_cu_result vr_sim_graph_destroy_node(struct vr_sim *sim, uint64_t node) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || vr_sim_graph_at(sim, found->graph)->capture != 0) return VR_CU_INVALID_VALUE;
    const bool memory = found->work.type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC || found->work.type == VR_CU_GRAPH_NODE_TYPE_MEM_FREE;
    if (memory) return VR_CU_NOT_SUPPORTED; // the driver does not allow it
    struct vr_sim_nodes *nodes = &vr_sim_graph_at(sim, found->graph)->nodes;
    vr_sim_nodes_remove_at(nodes, found->place);
    for (size_t i = 0; i < nodes->count; i++) {
        struct vr_sim_node *other = vr_sim_node_find(sim, nodes->items[i]);
        other->place = (uint32_t)i;
        (void)vr_sim_nodes_remove(&other->dependencies, node);
    }
    end_node(sim, node);
    return VR_CU_SUCCESS;
}

bool vr_sim_graph_has_memory(const struct vr_sim *sim, uint32_t graph) {
    const struct vr_sim_nodes *nodes = &vr_sim_graph_at(sim, graph)->nodes;
    for (size_t i = 0; i < nodes->count; i++) {
        const int type = vr_sim_node_find(sim, nodes->items[i])->work.type;
        if (type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == VR_CU_GRAPH_NODE_TYPE_MEM_FREE) return true;
    }
    return false;
}
