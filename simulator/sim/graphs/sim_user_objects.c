// sim_user_objects.c: user objects and who holds them.
#include "sim/graphs/sim_user_objects.h"

#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"
#include "sim/streams/sim_callbacks.h"

enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };

static struct vr_sim_user_object *object_of(const struct vr_sim *sim, uint64_t object) {
    return vr_sim_slots_find(&sim->user_objects, object);
}

// The destructor runs where host functions do: behind those of launches that may use the object.
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

// --- the rows of the table ------------------------------------------------------------------------------------------

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
    if (flags != MOVE) kept->references += count; // moved ones were the program's
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
