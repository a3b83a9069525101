// Creates and destroys an allocator; empties its cache.
#include "core/allocator.h"
#include "core/source/raw.h"
#include "core/release.h"
#include "core/alloc.h"
#include "core/share/share.h"
#include "core/source/backend.h"

enum { MAX_BLOCKS = 1 << VR_BLOCK_BITS, MAX_SEGMENTS = 1 << 22, MAX_USES = 1 << 22 };

static bool environment_says_no_caching(void) {
    static const char *const variables[] = {"VRAM_NO_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING"};
    for (size_t i = 0; i < VR_COUNT_OF(variables); i++) {
        const char *value = vr_os_getenv(variables[i]);
        if (value != NULL && strcmp(value, "1") == 0) return true;
    }
    return false;
}

static enum vram_status read_options(struct vram_allocator *allocator, const struct vram_create_info *info, struct vram_error *error) {
    vr_options_init(&allocator->options);
    const char *variable = NULL;
    const char *conf = info->conf != NULL ? info->conf : info->ignore_environment ? NULL : vr_options_environment(&variable);
    if (conf == NULL) conf = "";
    VR_TRY(vr_options_parse(&allocator->options, conf, error));
    const size_t length = strlen(conf) + 1;
    allocator->conf = malloc(length);
    if (allocator->conf == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(allocator->conf, conf, length);
    return VRAM_OK;
}

static enum vr_order order_of_equals(const struct vram_create_info *info, uint32_t pytorch) {
    if (info->tie_break == VRAM_TIE_AS_PYTORCH && pytorch == VR_PYTORCH_NUMBERED) return VR_BY_SIZE_NUMBER;
    const bool oldest =
        info->tie_break == VRAM_TIE_AS_PYTORCH ? pytorch >= VR_PYTORCH_OLDEST_FIRST : info->tie_break == VRAM_TIE_OLDEST_SEGMENT;
    return oldest ? VR_BY_SIZE_AGE_ADDRESS : VR_BY_SIZE_ADDRESS;
}

// Reserves the block records and, if their order needs it, a number for each. Reserves fewer if address space is short.
static enum vram_status make_blocks(struct vram_allocator *allocator) {
    for (uint32_t most = MAX_BLOCKS;; most = allocator->blocks.capacity / 2, vr_slab_release(&allocator->blocks)) {
        VR_TRY(vr_slab_init(&allocator->blocks, sizeof(struct vr_block), most));
        allocator->blocks.cut = allocator->blocks.capacity < MAX_BLOCKS;
        if (allocator->order != VR_BY_SIZE_NUMBER) return VRAM_OK;
        void *numbers = NULL;
        const enum vram_status status = vr_os_reserve(allocator->blocks.capacity * sizeof *allocator->arena.numbers, &numbers);
        allocator->arena.numbers = numbers;
        if (status != VRAM_NO_HOST_MEMORY) return status;
    }
}

// Reserves the tables of fixed size first; the others take what address space is left.
static enum vram_status make_tables(struct vram_allocator *allocator) {
    VR_TRY(vr_address_map_init(&allocator->addresses));
    void *shards = NULL;
    VR_TRY(vr_os_reserve(VR_MAX_SHARDS * sizeof *allocator->shards, &shards));
    allocator->shards = shards;
    VR_TRY(make_blocks(allocator));
    VR_TRY(vr_slab_init(&allocator->segments, sizeof(struct vr_segment), MAX_SEGMENTS));
    VR_TRY(vr_slab_init(&allocator->uses, sizeof(struct vr_use), MAX_USES));
    allocator->arena.blocks = (struct vr_block *)(void *)allocator->blocks.items;
    void *ages = NULL;
    VR_TRY(vr_os_reserve(allocator->segments.capacity * sizeof *allocator->arena.ages, &ages));
    allocator->arena.ages = ages;
    return VRAM_OK;
}

static enum vram_status open_driver(struct vram_allocator *allocator, struct vram_driver *driver, struct vram_error *error) {
    allocator->driver = driver;
    if (driver == NULL) {
        VR_TRY(vram_driver_system(&allocator->driver, error));
        allocator->owns_driver = true;
    }
    if (vr_cu(allocator->driver, device_get_count, &allocator->device_count) != VR_CU_SUCCESS) {
        return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "cannot query the number of devices");
    }
    return VRAM_OK;
}

enum vram_status vr_allocator_create(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error) {
    static const struct vram_create_info defaults;
    if (info == NULL) info = &defaults;
    struct vram_allocator *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for an allocator");
    vr_mutex_init(&made->mutex);
    vr_raw_init(&made->raw);
    vr_mutex_init(&made->classes.mutex);
    vr_mutex_init(&made->imports.mutex);
    atomic_store_explicit(&made->caching, !environment_says_no_caching(), memory_order_relaxed);
    vr_error_clear(error);
    enum vram_status status = (unsigned)info->tie_break <= VRAM_TIE_LOWEST_ADDRESS
                                  ? read_options(made, info, error)
                                  : vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "invalid tie_break");
    made->pytorch = made->options.pytorch;
    made->order = order_of_equals(info, made->pytorch);
    made->backend = made->options.backend == VR_BACKEND_ASYNC ? &vr_backend_async : &vr_backend_native;
    if (status == VRAM_OK) status = make_tables(made);
    if (status == VRAM_OK) status = open_driver(made, info->driver, error);
    if (status != VRAM_OK) {
        vr_allocator_destroy(made);
        return vr_error_complete(error, status);
    }
    *allocator = made;
    return VRAM_OK;
}

void vr_allocator_without_threads(struct vram_allocator *allocator) { allocator->without_threads = true; }

void vr_allocator_destroy(struct vram_allocator *allocator) {
    vr_extensions_end(&allocator->extensions);
    vr_client_listener_end(allocator);
    if (allocator->driver != NULL) vr_raw_release(allocator);
    vr_imports_release(allocator);
    // Wait for all fences first: an event returns to the pool of its stream's device, which may differ from the block's.
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL) vr_wait_at_end(device);
    }
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL) vr_device_release(device);
    }
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++)
        if (allocator->left_contexts[i] != 0) VR_CU_INSIST(allocator->driver, primary_ctx_release, (int)i);
    const size_t numbers_bytes = allocator->blocks.capacity * sizeof *allocator->arena.numbers;
    const size_t segments = atomic_load_explicit(&allocator->segments.used, memory_order_relaxed);
    if (allocator->arena.ages != NULL) {
        vr_os_unreserve_touched(allocator->arena.ages, allocator->segments.capacity * sizeof *allocator->arena.ages,
                                segments * sizeof *allocator->arena.ages);
    }
    vr_slab_release(&allocator->blocks);
    vr_slab_release(&allocator->segments);
    vr_slab_release(&allocator->uses);
    vr_address_map_release(&allocator->addresses);
    const size_t shards = allocator->shards == NULL ? 0 : atomic_load_explicit(&allocator->shard_count, memory_order_relaxed);
    vr_os_unreserve_touched(allocator->shards, VR_MAX_SHARDS * sizeof *allocator->shards, shards * sizeof *allocator->shards);
    vr_os_unreserve(allocator->arena.numbers, numbers_bytes);
    if (allocator->owns_driver) vram_driver_destroy(allocator->driver);
    free(allocator->observers);
    free(allocator->conf);
    free(allocator->classes.items);
    vr_mutex_destroy(&allocator->classes.mutex);
    vr_mutex_destroy(&allocator->imports.mutex);
    vr_mutex_destroy(&allocator->mutex);
    free(allocator);
}

// --- cache ----------------------------------------------------------------------------------------------------------------------

VR_INLINE enum vram_status empty_cache_of(struct vr_device *device) {
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    vr_gather(device, VR_LEVEL_ALL, 0);
    vr_device_lock_guarded(device, &guard);
    const enum vram_status status = device->allocator->backend->trim(device);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return status;
}

enum vram_status vram_empty_cache_device(struct vram_allocator *allocator, uint32_t ordinal) {
    VR_REQUIRE(allocator);
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    return device == NULL ? VRAM_OK : vr_verify_if_enabled(allocator, empty_cache_of(device));
}

enum vram_status vram_empty_cache(struct vram_allocator *allocator) {
    VR_REQUIRE(allocator);
    enum vram_status first = VRAM_OK;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        const enum vram_status status = device == NULL ? VRAM_OK : empty_cache_of(device);
        if (first == VRAM_OK) first = status;
    }
    return vr_verify_if_enabled(allocator, first);
}
