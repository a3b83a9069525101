#include "core/capture/captures.h"
#include "core/device.h"

// A walk over nodes that were not visited before.
struct past_walk {
    struct vr_past *past;
    uint64_t *stack;
    size_t count, stack_capacity;
    size_t met; // ends of the previous walk that were reached
};

static void chain_is_due(struct vr_past *past, uint64_t first) {
    struct vr_deferred *chain = (struct vr_deferred *)(uintptr_t)first;
    chain->chains = past->due;
    past->due = chain;
}

static enum vram_status visit_node(struct past_walk *walk, uint64_t node) {
    const uint64_t known = vr_map_get(&walk->past->nodes, node);
    walk->met += known == VR_PAST_END;
    if (known == VR_PAST_NODE) return VRAM_OK;
    VR_TRY(vr_map_set(&walk->past->nodes, node, VR_PAST_NODE));
    if (known == VR_PAST_END) return VRAM_OK; // its predecessors were visited too
    if (known != 0) chain_is_due(walk->past, known);
    VR_TRY(VR_GROW(walk, stack, walk->count + 1));
    walk->stack[walk->count++] = node;
    return VRAM_OK;
}

static enum vram_status visit_dependencies(struct vram_driver *driver, struct past_walk *walk, uint64_t node) {
    uint64_t count = 0;
    VR_TRY(vr_driver_status(vr_cu(driver, graph_node_get_dependencies, node, NULL, &count)));
    if (count == 0) return VRAM_OK;
    uint64_t *nodes = malloc((size_t)count * sizeof *nodes);
    if (nodes == NULL) return VRAM_NO_HOST_MEMORY;
    enum vram_status status = vr_driver_status(vr_cu(driver, graph_node_get_dependencies, node, nodes, &count));
    for (uint64_t i = 0; i < count && status == VRAM_OK; i++) status = visit_node(walk, nodes[i]);
    free(nodes);
    return status;
}

static enum vram_status walk_back(struct vram_driver *driver, struct past_walk *walk, const uint64_t *ends, uint64_t count) {
    enum vram_status status = VRAM_OK;
    for (uint64_t i = 0; i < count && status == VRAM_OK; i++) status = visit_node(walk, ends[i]);
    while (walk->count != 0 && status == VRAM_OK) status = visit_dependencies(driver, walk, walk->stack[--walk->count]);
    free(walk->stack);
    return status;
}

static void forget_past(struct vr_past *past) {
    vr_map_clear(&past->nodes);
    past->ends = 0;
    past->fresh = past->due = NULL;
    past->unchained = true;
}

// Walks back from the nodes that the stream's next node would depend on. Starts over if the stream no longer depends on all the previous
// ones (cuStreamUpdateCaptureDependencies).
static enum vram_status go_on(struct vram_driver *driver, struct vr_past *past, const uint64_t *ends, uint64_t count) {
    struct past_walk walk = {.past = past};
    VR_TRY(walk_back(driver, &walk, ends, count));
    if (walk.met < past->ends) {
        forget_past(past);
        walk = (struct past_walk){.past = past};
        VR_TRY(walk_back(driver, &walk, ends, count));
    }
    past->ends = 0;
    for (uint64_t i = 0; i < count; i++) {
        past->ends += vr_map_get(&past->nodes, ends[i]) == VR_PAST_NODE;
        VR_TRY(vr_map_set(&past->nodes, ends[i], VR_PAST_END));
    }
    return VRAM_OK;
}

struct vr_past *vr_past_of(const struct vr_pasts *pasts, uint64_t stream) {
    const uint64_t place = vr_map_get(&pasts->places, stream);
    return place == 0 ? NULL : &pasts->items[place - 1];
}

enum vram_status vr_past_make(struct vr_pasts *pasts, uint64_t stream, struct vr_past **past) {
    *past = vr_past_of(pasts, stream);
    if (*past != NULL) return VRAM_OK;
    VR_TRY(VR_GROW(pasts, items, pasts->count + 1));
    VR_TRY(vr_map_set(&pasts->places, stream, pasts->count + 1));
    *past = &pasts->items[pasts->count++];
    **past = (struct vr_past){.stream = stream, .unchained = true};
    return VRAM_OK;
}

enum vram_status vr_past_go_on(const struct vr_device *device, struct vr_past *past) {
    struct vram_driver *driver = device->allocator->driver;
    int state = 0;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *ends = NULL;
    VR_TRY(vr_driver_status(vr_cu(driver, stream_get_capture_info, past->stream, &state, &id, &graph, &ends, &count)));
    if (past->capture != id) forget_past(past);
    past->capture = id;
    const enum vram_status status = go_on(driver, past, ends, count);
    if (status != VRAM_OK) forget_past(past); // some nodes are marked although their predecessors were not visited
    return status;
}

void vr_pasts_release(struct vr_pasts *pasts) {
    for (size_t i = 0; i < pasts->count; i++) vr_map_release(&pasts->items[i].nodes);
    free(pasts->items);
    vr_map_release(&pasts->places);
    *pasts = (struct vr_pasts){0};
}
