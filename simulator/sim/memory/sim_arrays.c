// Arrays and mipmapped arrays, and texture and surface objects.
#include "sim/memory/sim_arrays.h"

#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_memory.h"

// ---- Arrays and mipmaps.

enum { PITCH = 512, MOST_SIDE = 1 << 17, MOST_LEVELS = 18 }; // MOST_SIDE: the longest side on any device is 131072 elements

static struct vr_sim_array *find_array(const struct vr_sim *sim, uint64_t handle) { return vr_sim_slots_find(&sim->arrays, handle); }

const struct vr_sim_array *vr_sim_array_find(const struct vr_sim *sim, uint64_t array) {
    const struct vr_sim_array *found = find_array(sim, array);
    return found != NULL && found->levels == NULL ? found : NULL;
}

// Returns the bytes of one channel of a format, 0 for an unknown format. Block-compressed and video formats count as the type of their
// channels.
static uint32_t channel_bytes(int32_t format) {
    switch (format) {
    case 0x01:
    case 0x08: return 1; // 8 bit
    case 0x02:
    case 0x09:
    case 0x10: return 2; // 16 bit, half
    case 0x03:
    case 0x0a:
    case 0x20: return 4; // 32 bit, float
    case 0xb0: return 1; // NV12
    default: break;
    }
    if (format >= 0xc0 && format <= 0xcb) return (format - 0xc0) % 6 < 3 ? 1 : 2;          // normalized 8 and 16 bit
    if (format >= 0x91 && format <= 0x9e) return format == 0x9b || format == 0x9c ? 2 : 1; // block-compressed
    return 0;
}

static bool is_shape(const struct vr_cu_array3d_descriptor *shape) {
    const bool layered = (shape->flags & VR_CU_ARRAY3D_LAYERED) != 0;
    if (channel_bytes(shape->format) == 0 || shape->channels < 1 || shape->channels > 4) return false;
    if (shape->channels == 3 && shape->format != 0xb0 && shape->format < 0x91) return false;
    if (shape->width == 0 || shape->width > MOST_SIDE || shape->height > MOST_SIDE || shape->depth > MOST_SIDE) return false;
    if (shape->depth != 0 && shape->height == 0 && !layered) return false;
    if ((shape->flags & VR_CU_ARRAY3D_CUBEMAP) != 0 && (shape->width != shape->height || shape->depth % 6 != 0 || shape->depth == 0))
        return false;
    return (shape->flags & VR_CU_ARRAY3D_SPARSE) == 0;
}

// Fills in the fields that follow from the descriptor. Returns false if the size overflows.
static bool lay_out(struct vr_sim_array *array, uint64_t *size_bytes) {
    const struct vr_cu_array3d_descriptor *shape = &array->descriptor;
    array->row_bytes = shape->width * shape->channels * channel_bytes(shape->format);
    array->rows = shape->height == 0 ? 1 : shape->height;
    array->planes = shape->depth == 0 ? 1 : shape->depth;
    array->pitch_bytes = vr_round_up(array->row_bytes, PITCH);
    return vr_mul_u64(array->pitch_bytes * array->rows, array->planes, size_bytes) && *size_bytes < VR_SIM_LIMIT;
}

// Returns the shape of a mipmap level: every side except the number of layers halves per level, down to one element.
static struct vr_cu_array3d_descriptor level_shape(const struct vr_cu_array3d_descriptor *shape, unsigned level) {
    struct vr_cu_array3d_descriptor made = *shape;
    const bool layered = (shape->flags & (VR_CU_ARRAY3D_LAYERED | VR_CU_ARRAY3D_CUBEMAP)) != 0;
    made.width = shape->width >> level == 0 ? 1 : shape->width >> level;
    if (shape->height != 0) made.height = shape->height >> level == 0 ? 1 : shape->height >> level;
    if (shape->depth != 0 && !layered) made.depth = shape->depth >> level == 0 ? 1 : shape->depth >> level;
    return made;
}

static vr_cu_result begin_array(struct vr_sim *sim, const struct vr_cu_array3d_descriptor *descriptor, struct vr_sim_array *array) {
    if (descriptor == NULL || !is_shape(descriptor)) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    *array = (struct vr_sim_array){.context = vr_sim_context_handle(sim, context), .descriptor = *descriptor};
    return VR_CU_SUCCESS;
}

// Copies the array into the table. Fails with OUT_OF_MEMORY, leaving the table unchanged.
static vr_cu_result keep_array(struct vr_sim *sim, const struct vr_sim_array *array, uint64_t *handle) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->arrays, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_array *kept = (struct vr_sim_array *)(void *)vr_sim_slots_item(&sim->arrays, index);
    const struct vr_sim_slot slot = kept->slot;
    *kept = *array;
    kept->slot = slot;
    *handle = vr_sim_slots_handle(&sim->arrays, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_array_3d_create(struct vr_sim *sim, uint64_t *array, const struct vr_cu_array3d_descriptor *descriptor) {
    struct vr_sim_array made;
    uint64_t size_bytes, handle;
    if (array == NULL) return VR_CU_INVALID_VALUE;
    vr_cu_result result = begin_array(sim, descriptor, &made);
    if (result == VR_CU_SUCCESS && !lay_out(&made, &size_bytes)) result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS) result = vr_sim_inner_alloc(sim, made.context, size_bytes, &made.address);
    if (result != VR_CU_SUCCESS) return result;
    result = keep_array(sim, &made, &handle);
    if (result == VR_CU_SUCCESS)
        *array = handle;
    else
        vr_sim_inner_free(sim, made.address);
    return result;
}

vr_cu_result vr_sim_array_create(struct vr_sim *sim, uint64_t *array, const struct vr_cu_array_descriptor *descriptor) {
    if (descriptor == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_array3d_descriptor shape = {
        .width = descriptor->width, .height = descriptor->height, .format = descriptor->format, .channels = descriptor->channels};
    return vr_sim_array_3d_create(sim, array, &shape);
}

static void give_level(struct vr_sim *sim, uint64_t handle) {
    struct vr_sim_array *level = find_array(sim, handle);
    if (level != NULL) vr_sim_slots_give(&sim->arrays, vr_sim_slots_index(&sim->arrays, level));
}

static void end_array(struct vr_sim *sim, struct vr_sim_array *array) {
    uint64_t *levels = array->levels;
    const uint32_t count = array->level_count;
    if (array->mipmap == 0) vr_sim_inner_free(sim, array->address);
    vr_sim_slots_give(&sim->arrays, vr_sim_slots_index(&sim->arrays, array));
    for (uint32_t i = 0; i < count; i++) give_level(sim, levels[i]);
    free(levels);
}

// Creates the levels, one after the other in the mipmap's memory.
static vr_cu_result make_levels(struct vr_sim *sim, const struct vr_sim_array *mipmap, uint64_t handle, unsigned count) {
    uint64_t address = mipmap->address;
    for (unsigned i = 0; i < count; i++) {
        struct vr_sim_array level = {.context = mipmap->context, .mipmap = handle, .address = address};
        uint64_t size_bytes, made;
        level.descriptor = level_shape(&mipmap->descriptor, i);
        if (!lay_out(&level, &size_bytes) || keep_array(sim, &level, &made) != VR_CU_SUCCESS) return VR_CU_OUT_OF_MEMORY;
        struct vr_sim_array *owner = find_array(sim, handle);
        owner->levels[owner->level_count++] = made;
        address += size_bytes;
    }
    return VR_CU_SUCCESS;
}

static bool levels_bytes(const struct vr_sim_array *mipmap, unsigned count, uint64_t *size_bytes) {
    *size_bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        struct vr_sim_array level = {.descriptor = level_shape(&mipmap->descriptor, i)};
        uint64_t one;
        if (!lay_out(&level, &one) || !vr_add_u64(*size_bytes, one, size_bytes)) return false;
    }
    return *size_bytes < VR_SIM_LIMIT;
}

vr_cu_result vr_sim_mipmapped_array_create(struct vr_sim *sim, uint64_t *mipmap, const struct vr_cu_array3d_descriptor *descriptor,
                                           unsigned levels) {
    struct vr_sim_array made;
    uint64_t size_bytes, handle;
    if (mipmap == NULL || levels == 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = begin_array(sim, descriptor, &made);
    if (result != VR_CU_SUCCESS) return result;
    if (levels > MOST_LEVELS) levels = MOST_LEVELS;
    uint64_t longest = descriptor->width > descriptor->height ? descriptor->width : descriptor->height;
    if ((descriptor->flags & VR_CU_ARRAY3D_LAYERED) == 0 && descriptor->depth > longest) longest = descriptor->depth;
    while (levels > 1 && longest >> (levels - 1) == 0) levels--; // a level with one element is the last
    if (!levels_bytes(&made, levels, &size_bytes)) return VR_CU_OUT_OF_MEMORY;
    made.levels = calloc(levels, sizeof *made.levels);
    if (made.levels == NULL) return VR_CU_OUT_OF_MEMORY;
    result = vr_sim_inner_alloc(sim, made.context, size_bytes, &made.address);
    if (result == VR_CU_SUCCESS) {
        result = keep_array(sim, &made, &handle);
        if (result != VR_CU_SUCCESS) vr_sim_inner_free(sim, made.address);
    }
    if (result != VR_CU_SUCCESS) {
        free(made.levels);
        return result;
    }
    result = make_levels(sim, &made, handle, levels);
    if (result == VR_CU_SUCCESS)
        *mipmap = handle;
    else
        end_array(sim, find_array(sim, handle));
    return result;
}

vr_cu_result vr_sim_mipmapped_array_get_level(struct vr_sim *sim, uint64_t *array, uint64_t mipmap, unsigned level) {
    const struct vr_sim_array *found = find_array(sim, mipmap);
    if (found == NULL || found->levels == NULL) return VR_CU_INVALID_HANDLE;
    if (array == NULL || level >= found->level_count) return VR_CU_INVALID_VALUE;
    *array = found->levels[level];
    return VR_CU_SUCCESS;
}

static vr_cu_result destroy_array(struct vr_sim *sim, uint64_t handle, bool is_mipmap) {
    struct vr_sim_array *found = find_array(sim, handle);
    if (found == NULL || (found->levels != NULL) != is_mipmap) return VR_CU_INVALID_HANDLE;
    if (found->mipmap != 0) return VR_CU_INVALID_VALUE; // a level is destroyed with its mipmap
    const vr_cu_result result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    if (!sim->options.manual_completion) vr_sim_wait_device(sim, vr_sim_context_find(sim, found->context)->device);
    end_array(sim, found);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_array_destroy(struct vr_sim *sim, uint64_t array) { return destroy_array(sim, array, false); }
vr_cu_result vr_sim_mipmapped_array_destroy(struct vr_sim *sim, uint64_t mipmap) { return destroy_array(sim, mipmap, true); }

void vr_sim_end_arrays(struct vr_sim *sim, uint64_t context) {
    for (uint32_t i = 0; i < sim->arrays.used; i++) {
        struct vr_sim_array *array = (struct vr_sim_array *)(void *)vr_sim_slots_item(&sim->arrays, i);
        if (array->slot.live && array->mipmap == 0 && (context == 0 || array->context == context)) end_array(sim, array);
    }
    for (uint32_t i = 0; i < sim->views.used; i++) {
        struct vr_sim_view *view = (struct vr_sim_view *)(void *)vr_sim_slots_item(&sim->views, i);
        if (view->slot.live && (context == 0 || view->context == context)) vr_sim_slots_give(&sim->views, i);
    }
}

vr_cu_result vr_sim_array_3d_get_descriptor(struct vr_sim *sim, struct vr_cu_array3d_descriptor *descriptor, uint64_t array) {
    const struct vr_sim_array *found = vr_sim_array_find(sim, array);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (descriptor == NULL) return VR_CU_INVALID_VALUE;
    *descriptor = found->descriptor;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_array_get_descriptor(struct vr_sim *sim, struct vr_cu_array_descriptor *descriptor, uint64_t array) {
    struct vr_cu_array3d_descriptor shape;
    if (descriptor == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_array_3d_get_descriptor(sim, &shape, array);
    if (result == VR_CU_SUCCESS) *descriptor = (struct vr_cu_array_descriptor){shape.width, shape.height, shape.format, shape.channels};
    return result;
}

static vr_cu_result requirements_of(struct vr_sim *sim, struct vr_cu_array_requirements *requirements, const struct vr_sim_array *array,
                                    int device) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    if (requirements == NULL || array == NULL) return requirements == NULL ? VR_CU_INVALID_VALUE : VR_CU_INVALID_HANDLE;
    struct vr_sim_array shape = *array;
    uint64_t size_bytes;
    const bool fits = array->levels != NULL ? levels_bytes(array, array->level_count, &size_bytes) : lay_out(&shape, &size_bytes);
    if (!fits) return VR_CU_INVALID_VALUE;
    *requirements = (struct vr_cu_array_requirements){.size_bytes = size_bytes, .alignment = PITCH};
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_array_get_memory_requirements(struct vr_sim *sim, struct vr_cu_array_requirements *requirements, uint64_t array,
                                                  int device) {
    return requirements_of(sim, requirements, vr_sim_array_find(sim, array), device);
}

vr_cu_result vr_sim_mipmapped_array_get_memory_requirements(struct vr_sim *sim, struct vr_cu_array_requirements *requirements,
                                                            uint64_t mipmap, int device) {
    const struct vr_sim_array *found = find_array(sim, mipmap);
    return requirements_of(sim, requirements, found != NULL && found->levels != NULL ? found : NULL, device);
}

// ---- Texture and surface objects. Their source must exist; their descriptors are stored.

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
