// sim_arrays.c: arrays, mipmapped arrays, textures and surfaces.
#include "driver/sim/memory/sim_arrays.h"

#include "driver/sim/memory/sim_inner.h"

enum { ROW_ALIGNMENT = 64, LEVEL_ALIGNMENT = 512 };
enum { FLAG_LAYERED = 1, FLAG_CUBEMAP = 4 };
enum { RESOURCE_ARRAY, RESOURCE_MIPMAPS, RESOURCE_LINEAR, RESOURCE_PITCHED };

// CUarray_format. Compressed and planar ones are not simulated.
static uint64_t format_bytes(int format) {
    switch (format) {
    case 0x01:
    case 0x08: return 1;
    case 0x02:
    case 0x09:
    case 0x10: return 2;
    case 0x03:
    case 0x0a:
    case 0x20: return 4;
    default: return 0;
    }
}

static uint64_t at_least_1(uint64_t value) { return value == 0 ? 1 : value; }

// What the array takes. NOT_SUPPORTED for formats that are not simulated.
static vr_cu_result lay_out(struct vr_sim_array *array, const struct vr_cu_array3d *shape, uint64_t *size_bytes) {
    const uint64_t of_channel = format_bytes(shape->format);
    if (shape->width == 0 || (shape->channels != 1 && shape->channels != 2 && shape->channels != 4)) return VR_CU_INVALID_VALUE;
    if (of_channel == 0) return shape->format <= 0 ? VR_CU_INVALID_VALUE : VR_CU_NOT_SUPPORTED;
    if (shape->width > 1 << 20 || shape->height > 1 << 20 || shape->depth > 1 << 20) return VR_CU_INVALID_VALUE;
    array->shape = *shape;
    array->element_bytes = of_channel * shape->channels;
    array->pitch_bytes = vr_round_up(shape->width * array->element_bytes, ROW_ALIGNMENT);
    array->plane_bytes = array->pitch_bytes * at_least_1(shape->height);
    if (!vr_mul_u64(array->plane_bytes, at_least_1(shape->depth), size_bytes)) return VR_CU_INVALID_VALUE;
    return VR_CU_SUCCESS;
}

static vr_cu_result make(struct vr_sim *sim, const struct vr_cu_array3d *shape, bool is_3d, uint64_t *handle) {
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    struct vr_sim_array fresh = {.is_3d = is_3d};
    uint64_t size;
    uint32_t index;
    if (result == VR_CU_SUCCESS) result = lay_out(&fresh, shape, &size);
    if (result != VR_CU_SUCCESS) return result;
    fresh.context = vr_sim_context_handle(sim, context);
    if (vr_sim_slots_take(&sim->arrays, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    result = vr_sim_inner_alloc(sim, fresh.context, size, &fresh.address);
    if (result != VR_CU_SUCCESS) {
        vr_sim_slots_give(&sim->arrays, index);
        return result;
    }
    struct vr_sim_array *made = (struct vr_sim_array *)(void *)vr_sim_slots_item(&sim->arrays, index);
    fresh.slot = made->slot;
    *made = fresh;
    *handle = vr_sim_slots_handle(&sim->arrays, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_array_create(struct vr_sim *sim, uint64_t *array, const struct vr_cu_array *shape) {
    if (array == NULL || shape == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_array3d whole = {
        .width = shape->width, .height = shape->height, .format = shape->format, .channels = shape->channels};
    return make(sim, &whole, false, array);
}

vr_cu_result vr_sim_array_3d_create(struct vr_sim *sim, uint64_t *array, const struct vr_cu_array3d *shape) {
    if (array == NULL || shape == NULL) return VR_CU_INVALID_VALUE;
    if ((shape->flags & FLAG_CUBEMAP) != 0 && (shape->width != shape->height || shape->depth % 6 != 0)) return VR_CU_INVALID_VALUE;
    if (shape->depth != 0 && shape->height == 0 && (shape->flags & FLAG_LAYERED) == 0) return VR_CU_INVALID_VALUE;
    return make(sim, shape, true, array);
}

vr_cu_result vr_sim_array_get_descriptor(struct vr_sim *sim, struct vr_cu_array *shape, uint64_t array) {
    const struct vr_sim_array *found = vr_sim_array_find(sim, array);
    if (shape == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const struct vr_cu_array3d *whole = &found->shape;
    *shape = (struct vr_cu_array){whole->width, whole->height, whole->format, whole->channels};
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_array_3d_get_descriptor(struct vr_sim *sim, struct vr_cu_array3d *shape, uint64_t array) {
    const struct vr_sim_array *found = vr_sim_array_find(sim, array);
    if (shape == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    *shape = found->shape;
    return VR_CU_SUCCESS;
}

// Only planar formats have planes.
vr_cu_result vr_sim_array_get_plane(struct vr_sim *sim, uint64_t *plane, uint64_t array, unsigned index) {
    (void)index;
    if (plane == NULL) return VR_CU_INVALID_VALUE;
    return vr_sim_array_find(sim, array) == NULL ? VR_CU_INVALID_HANDLE : VR_CU_INVALID_VALUE;
}

static void end_array(struct vr_sim *sim, struct vr_sim_array *array) {
    if (array->mipmaps == 0) vr_sim_inner_free(sim, array->address);
    vr_sim_slots_give(&sim->arrays, vr_sim_slots_index(&sim->arrays, array));
}

// A level belongs to its mipmaps.
vr_cu_result vr_sim_array_destroy(struct vr_sim *sim, uint64_t array) {
    struct vr_sim_array *found = vr_sim_array_find(sim, array);
    if (found == NULL || found->mipmaps != 0) return VR_CU_INVALID_HANDLE;
    end_array(sim, found);
    return VR_CU_SUCCESS;
}

// --- mipmaps --------------------------------------------------------------------------------------------------------

static struct vr_cu_array3d level_shape(const struct vr_cu_array3d *shape, unsigned level) {
    struct vr_cu_array3d of = *shape;
    const bool layered = (shape->flags & (FLAG_LAYERED | FLAG_CUBEMAP)) != 0;
    of.width = at_least_1(shape->width >> level);
    if (shape->height != 0) of.height = at_least_1(shape->height >> level);
    if (shape->depth != 0 && !layered) of.depth = at_least_1(shape->depth >> level);
    return of;
}

static void end_mipmaps(struct vr_sim *sim, struct vr_sim_mipmaps *mipmaps) {
    for (uint32_t i = 0; i < mipmaps->level_count; i++) vr_sim_slots_give(&sim->arrays, mipmaps->levels[i]);
    if (mipmaps->address != 0) vr_sim_inner_free(sim, mipmaps->address);
    vr_sim_slots_give(&sim->mipmaps, vr_sim_slots_index(&sim->mipmaps, mipmaps));
}

// The levels as arrays; their addresses are relative to the first until the memory is there.
static vr_cu_result lay_levels(struct vr_sim *sim, struct vr_sim_mipmaps *mipmaps, const struct vr_cu_array3d *shape, unsigned levels,
                               uint64_t *size_bytes) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < levels; i++) {
        const struct vr_cu_array3d level = level_shape(shape, i);
        struct vr_sim_array fresh = {.context = mipmaps->context, .address = sum, .is_3d = true};
        uint64_t size;
        uint32_t index;
        const vr_cu_result result = lay_out(&fresh, &level, &size);
        if (result != VR_CU_SUCCESS) return result;
        if (vr_sim_slots_take(&sim->arrays, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
        struct vr_sim_array *made = (struct vr_sim_array *)(void *)vr_sim_slots_item(&sim->arrays, index);
        fresh.mipmaps = vr_sim_slots_handle(&sim->mipmaps, vr_sim_slots_index(&sim->mipmaps, mipmaps));
        fresh.slot = made->slot;
        *made = fresh;
        mipmaps->levels[mipmaps->level_count++] = index;
        sum += vr_round_up(size, LEVEL_ALIGNMENT);
    }
    *size_bytes = sum;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mipmapped_array_create(struct vr_sim *sim, uint64_t *handle, const struct vr_cu_array3d *shape, unsigned levels) {
    struct vr_sim_context *context;
    if (handle == NULL || shape == NULL || levels == 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_current(sim, &context);
    uint32_t index;
    uint64_t size = 0;
    if (result != VR_CU_SUCCESS) return result;
    uint64_t widest = shape->width > shape->height ? shape->width : shape->height;
    unsigned most = 1;
    for (; widest > 1 && most < VR_SIM_LEVELS_MAX; widest >>= 1) most++;
    if (levels > most) levels = most;
    const uint64_t owner = vr_sim_context_handle(sim, context);
    if (vr_sim_slots_take(&sim->mipmaps, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_mipmaps *made = (struct vr_sim_mipmaps *)(void *)vr_sim_slots_item(&sim->mipmaps, index);
    made->context = owner;
    result = lay_levels(sim, made, shape, levels, &size);
    if (result == VR_CU_SUCCESS) result = vr_sim_inner_alloc(sim, owner, size, &made->address);
    if (result != VR_CU_SUCCESS) {
        end_mipmaps(sim, made);
        return result;
    }
    for (uint32_t i = 0; i < made->level_count; i++)
        ((struct vr_sim_array *)(void *)vr_sim_slots_item(&sim->arrays, made->levels[i]))->address += made->address;
    *handle = vr_sim_slots_handle(&sim->mipmaps, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mipmapped_array_get_level(struct vr_sim *sim, uint64_t *array, uint64_t mipmaps, unsigned level) {
    const struct vr_sim_mipmaps *found = vr_sim_slots_find(&sim->mipmaps, mipmaps);
    if (array == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (level >= found->level_count) return VR_CU_INVALID_VALUE;
    *array = vr_sim_slots_handle(&sim->arrays, found->levels[level]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mipmapped_array_destroy(struct vr_sim *sim, uint64_t mipmaps) {
    struct vr_sim_mipmaps *found = vr_sim_slots_find(&sim->mipmaps, mipmaps);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    end_mipmaps(sim, found);
    return VR_CU_SUCCESS;
}

// --- textures and surfaces ------------------------------------------------------------------------------------------

static bool is_resource(const struct vr_sim *sim, const struct vr_cu_resource *resource, bool surface) {
    if (resource->type == RESOURCE_ARRAY) return vr_sim_array_find(sim, resource->of.array) != NULL;
    if (surface) return false;
    if (resource->type == RESOURCE_MIPMAPS) return vr_sim_slots_find(&sim->mipmaps, resource->of.array) != NULL;
    if (resource->type != RESOURCE_LINEAR && resource->type != RESOURCE_PITCHED) return false;
    return vr_sim_ranges_holding(&sim->spaces, resource->of.address) != NULL ||
           vr_sim_ranges_holding(&sim->hosts, resource->of.address) != NULL;
}

static vr_cu_result make_object(struct vr_sim *sim, uint64_t *object, const struct vr_cu_resource *resource, const void *texture) {
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    uint32_t index;
    if (result != VR_CU_SUCCESS) return result;
    if (!is_resource(sim, resource, texture == NULL)) return VR_CU_INVALID_VALUE;
    if (vr_sim_slots_take(&sim->textures, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_texture *made = (struct vr_sim_texture *)(void *)vr_sim_slots_item(&sim->textures, index);
    made->context = vr_sim_context_handle(sim, context);
    made->surface = texture == NULL;
    made->resource = *resource;
    if (texture != NULL) memcpy(made->texture, texture, sizeof made->texture);
    *object = vr_sim_slots_handle(&sim->textures, index);
    return VR_CU_SUCCESS;
}

static vr_cu_result find_object(const struct vr_sim *sim, uint64_t object, bool surface, struct vr_sim_texture **found) {
    *found = vr_sim_slots_find(&sim->textures, object);
    return *found != NULL && (*found)->surface == surface ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

static vr_cu_result end_object(struct vr_sim *sim, uint64_t object, bool surface) {
    struct vr_sim_texture *found;
    const vr_cu_result result = find_object(sim, object, surface, &found);
    if (result == VR_CU_SUCCESS) vr_sim_slots_give(&sim->textures, vr_sim_slots_index(&sim->textures, found));
    return result;
}

static vr_cu_result give_resource(const struct vr_sim *sim, struct vr_cu_resource *resource, uint64_t object, bool surface) {
    struct vr_sim_texture *found;
    const vr_cu_result result = find_object(sim, object, surface, &found);
    if (resource == NULL) return VR_CU_INVALID_VALUE;
    if (result == VR_CU_SUCCESS) *resource = found->resource;
    return result;
}

// `view` re-interprets the resource, which nothing reads.
vr_cu_result vr_sim_tex_object_create(struct vr_sim *sim, uint64_t *object, const struct vr_cu_resource *resource, const void *texture,
                                      const void *view) {
    (void)view;
    if (object == NULL || resource == NULL || texture == NULL) return VR_CU_INVALID_VALUE;
    return make_object(sim, object, resource, texture);
}

vr_cu_result vr_sim_tex_object_destroy(struct vr_sim *sim, uint64_t object) { return end_object(sim, object, false); }

vr_cu_result vr_sim_tex_object_get_resource_desc(struct vr_sim *sim, struct vr_cu_resource *resource, uint64_t object) {
    return give_resource(sim, resource, object, false);
}

vr_cu_result vr_sim_tex_object_get_texture_desc(struct vr_sim *sim, void *texture, uint64_t object) {
    struct vr_sim_texture *found;
    const vr_cu_result result = find_object(sim, object, false, &found);
    if (texture == NULL) return VR_CU_INVALID_VALUE;
    if (result == VR_CU_SUCCESS) memcpy(texture, found->texture, sizeof found->texture);
    return result;
}

vr_cu_result vr_sim_surf_object_create(struct vr_sim *sim, uint64_t *object, const struct vr_cu_resource *resource) {
    if (object == NULL || resource == NULL) return VR_CU_INVALID_VALUE;
    return make_object(sim, object, resource, NULL);
}

vr_cu_result vr_sim_surf_object_destroy(struct vr_sim *sim, uint64_t object) { return end_object(sim, object, true); }

vr_cu_result vr_sim_surf_object_get_resource_desc(struct vr_sim *sim, struct vr_cu_resource *resource, uint64_t object) {
    return give_resource(sim, resource, object, true);
}

// --- the end of a context -------------------------------------------------------------------------------------------

void vr_sim_end_arrays(struct vr_sim *sim, uint64_t context) {
    for (uint32_t i = 0; i < sim->textures.used; i++) {
        const struct vr_sim_texture *texture = (const struct vr_sim_texture *)(const void *)vr_sim_slots_item(&sim->textures, i);
        if (texture->slot.live && (context == 0 || texture->context == context)) vr_sim_slots_give(&sim->textures, i);
    }
    for (uint32_t i = 0; i < sim->mipmaps.used; i++) {
        struct vr_sim_mipmaps *mipmaps = (struct vr_sim_mipmaps *)(void *)vr_sim_slots_item(&sim->mipmaps, i);
        if (mipmaps->slot.live && (context == 0 || mipmaps->context == context)) end_mipmaps(sim, mipmaps);
    }
    for (uint32_t i = 0; i < sim->arrays.used; i++) {
        struct vr_sim_array *array = (struct vr_sim_array *)(void *)vr_sim_slots_item(&sim->arrays, i);
        if (array->slot.live && (context == 0 || array->context == context)) end_array(sim, array);
    }
}
