// sim_views.c: texture and surface objects: what they read must be there, and what they were made with is kept.
#include "sim/memory/sim_arrays.h"
#include "sim/graphs/sim_graphs.h"

static vr_cu_result check_resource(const struct vr_sim *sim, const struct vr_cu_resource *resource, uint32_t device) {
    const struct vr_sim_array *found = vr_sim_slots_find(&sim->arrays, resource->array);
    switch (resource->kind) {
    case VR_CU_RESOURCE_ARRAY: return found != NULL && found->levels == NULL ? VR_CU_SUCCESS : VR_CU_INVALID_HANDLE;
    case VR_CU_RESOURCE_MIPMAPPED_ARRAY: return found != NULL && found->levels != NULL ? VR_CU_SUCCESS : VR_CU_INVALID_HANDLE;
    case VR_CU_RESOURCE_LINEAR:
    case VR_CU_RESOURCE_PITCH2D: {
        bool host;
        if (!vr_sim_is_memory(sim, resource->array, 1, device, false, &host)) return VR_CU_INVALID_VALUE;
        return !host || vr_sim_is_pinned(sim, resource->array, 1) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
    }
    default: return VR_CU_INVALID_VALUE;
    }
}

static vr_cu_result make_view(struct vr_sim *sim, uint64_t *object, const struct vr_cu_resource *resource, const struct vr_sim_view *with) {
    struct vr_sim_context *context;
    if (object == NULL || resource == NULL) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = check_resource(sim, resource, context->device);
    if (result != VR_CU_SUCCESS) return result;
    const uint64_t owner = vr_sim_context_handle(sim, context);
    uint32_t index;
    if (vr_sim_slots_take(&sim->views, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_view *made = (struct vr_sim_view *)(void *)vr_sim_slots_item(&sim->views, index);
    const struct vr_sim_slot slot = made->slot;
    *made = *with;
    made->slot = slot;
    made->context = owner;
    made->resource = *resource;
    *object = vr_sim_slots_handle(&sim->views, index);
    return VR_CU_SUCCESS;
}

static struct vr_sim_view *find_view(const struct vr_sim *sim, uint64_t object, bool is_texture) {
    struct vr_sim_view *found = vr_sim_slots_find(&sim->views, object);
    return found != NULL && found->is_texture == is_texture ? found : NULL;
}

vr_cu_result vr_sim_tex_object_create(struct vr_sim *sim, uint64_t *object, const struct vr_cu_resource *resource,
                                      const struct vr_cu_texture *texture, const struct vr_cu_resource_view *view) {
    if (texture == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_view with = {.is_texture = true, .has_view = view != NULL, .texture = *texture};
    if (view != NULL) with.view = *view;
    return make_view(sim, object, resource, &with);
}

vr_cu_result vr_sim_surf_object_create(struct vr_sim *sim, uint64_t *object, const struct vr_cu_resource *resource) {
    const struct vr_sim_view with = {.is_texture = false};
    if (resource != NULL && resource->kind != VR_CU_RESOURCE_ARRAY) return VR_CU_INVALID_VALUE;
    return make_view(sim, object, resource, &with);
}

static vr_cu_result destroy_view(struct vr_sim *sim, uint64_t object, bool is_texture) {
    const struct vr_sim_view *found = find_view(sim, object, is_texture);
    if (found == NULL) return VR_CU_INVALID_VALUE;
    vr_sim_slots_give(&sim->views, vr_sim_slots_index(&sim->views, found));
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_tex_object_destroy(struct vr_sim *sim, uint64_t object) { return destroy_view(sim, object, true); }
vr_cu_result vr_sim_surf_object_destroy(struct vr_sim *sim, uint64_t object) { return destroy_view(sim, object, false); }

static vr_cu_result resource_of(const struct vr_sim_view *found, struct vr_cu_resource *resource) {
    if (found == NULL || resource == NULL) return VR_CU_INVALID_VALUE;
    *resource = found->resource;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_tex_object_get_resource_desc(struct vr_sim *sim, struct vr_cu_resource *resource, uint64_t object) {
    return resource_of(find_view(sim, object, true), resource);
}

vr_cu_result vr_sim_surf_object_get_resource_desc(struct vr_sim *sim, struct vr_cu_resource *resource, uint64_t object) {
    return resource_of(find_view(sim, object, false), resource);
}

vr_cu_result vr_sim_tex_object_get_texture_desc(struct vr_sim *sim, struct vr_cu_texture *texture, uint64_t object) {
    const struct vr_sim_view *found = find_view(sim, object, true);
    if (found == NULL || texture == NULL) return VR_CU_INVALID_VALUE;
    *texture = found->texture;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_tex_object_get_resource_view_desc(struct vr_sim *sim, struct vr_cu_resource_view *view, uint64_t object) {
    const struct vr_sim_view *found = find_view(sim, object, true);
    if (found == NULL || view == NULL || !found->has_view) return VR_CU_INVALID_VALUE;
    *view = found->view;
    return VR_CU_SUCCESS;
}
