// Making and unmaking an allocator, and the calls that concern all of it.
#include "base/sink.h"
#include "core/source/async.h"
#include "core/fences.h"
#include "core/allocator.h"
#include "core/release.h"
#include "core/serve.h"
#include "core/share/share.h"

enum { MAX_BLOCKS = 1 << 25, MAX_SEGMENTS = 1 << 22, MAX_USES = 1 << 22 };

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

static enum vram_status make_tables(struct vram_allocator *allocator) {
    VR_TRY(vr_slab_init(&allocator->blocks, sizeof(struct vr_block), MAX_BLOCKS));
    VR_TRY(vr_slab_init(&allocator->segments, sizeof(struct vr_segment), MAX_SEGMENTS));
    VR_TRY(vr_slab_init(&allocator->uses, sizeof(struct vr_use), MAX_USES));
    VR_TRY(vr_address_map_init(&allocator->addresses));
    void *shards = NULL;
    VR_TRY(vr_os_reserve(VR_MAX_SHARDS * sizeof *allocator->shards, &shards));
    allocator->shards = shards;
    allocator->arena.blocks = (struct vr_block *)(void *)allocator->blocks.items;
    allocator->arena.segments = (struct vr_segment *)(void *)allocator->segments.items;
    return VRAM_OK;
}

static enum vram_status open_driver(struct vram_allocator *allocator, struct vram_driver *driver, struct vram_error *error) {
    allocator->driver = driver;
    if (driver == NULL) {
        VR_TRY(vram_driver_cuda(&allocator->driver, error));
        allocator->owns_driver = true;
    }
    if (vr_cu(allocator->driver, device_get_count, &allocator->device_count) != VR_CU_SUCCESS) {
        return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "the driver does not tell how many devices there are");
    }
    return VRAM_OK;
}

enum vram_status vr_allocator_create(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error) {
    static const struct vram_create_info defaults;
    if (info == NULL) info = &defaults;
    struct vram_allocator *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no host memory for an allocator");
    vr_mutex_init(&made->mutex);
    vr_mutex_init(&made->raw.mutex);
    vr_mutex_init(&made->classes.mutex);
    vr_mutex_init(&made->imports.mutex);
    made->arena.order = info->tie_break == VRAM_TIE_OLDEST_SEGMENT ? VR_BY_SIZE_AGE_ADDRESS : VR_BY_SIZE_ADDRESS;
    atomic_store_explicit(&made->caching, !environment_says_no_caching(), memory_order_relaxed);
    vr_error_clear(error);
    enum vram_status status = read_options(made, info, error);
    made->async = made->options.backend == VR_BACKEND_ASYNC;
    if (status == VRAM_OK) status = make_tables(made);
    if (status == VRAM_OK) status = open_driver(made, info->driver, error);
    if (status != VRAM_OK) {
        vr_allocator_destroy(made);
        return vr_error_complete(error, status);
    }
    *allocator = made;
    return VRAM_OK;
}

void vr_allocator_destroy(struct vram_allocator *allocator) {
    if (allocator->driver != NULL) vr_raw_release(allocator);
    vr_imports_release(allocator);
    // First all fences: an event returns to the pool of its stream's device, which may be another than the block's.
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL) vr_wait_at_end(device);
    }
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL) vr_device_release(device);
    }
    vr_slab_release(&allocator->blocks);
    vr_slab_release(&allocator->segments);
    vr_slab_release(&allocator->uses);
    vr_address_map_release(&allocator->addresses);
    vr_os_unreserve(allocator->shards, VR_MAX_SHARDS * sizeof *allocator->shards);
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
    const enum vram_status status = vr_is_async(device->allocator) ? vr_async_trim(device) : vr_release_all(device);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return status;
}

enum vram_status vram_empty_cache_device(struct vram_allocator *allocator, uint32_t ordinal) {
    VR_REQUIRE(allocator);
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    return device == NULL ? VRAM_OK : vr_checked(allocator, empty_cache_of(device));
}

enum vram_status vram_empty_cache(struct vram_allocator *allocator) {
    VR_REQUIRE(allocator);
    enum vram_status first = VRAM_OK;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        const enum vram_status status = device == NULL ? VRAM_OK : empty_cache_of(device);
        if (first == VRAM_OK) first = status;
    }
    return vr_checked(allocator, first);
}

// --- settings -------------------------------------------------------------------------------------------------------------------

static enum vram_status configure_locked(struct vram_allocator *allocator, const char *conf, struct vram_error *error) {
    struct vr_options options = allocator->options;
    VR_TRY(vr_options_parse(&options, conf, error));
    if (options.backend != allocator->options.backend) {
        return vr_fail(error, VRAM_BAD_OPTION, VRAM_NO_OFFSET, "the backend cannot be changed after the allocator was made");
    }
    const size_t length = strlen(conf) + 1;
    char *copy = malloc(length);
    if (copy == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no host memory for the option string");
    memcpy(copy, conf, length);
    free(allocator->conf);
    allocator->conf = copy;
    allocator->options = options;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_lock(device);
        vr_device_apply_options(device, &options);
        vr_device_unlock(device);
    }
    return VRAM_OK;
}

enum vram_status vram_configure(struct vram_allocator *allocator, const char *conf, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    vr_mutex_lock(&allocator->mutex);
    const enum vram_status status = configure_locked(allocator, conf == NULL ? "" : conf, error);
    vr_mutex_unlock(&allocator->mutex);
    return status;
}

size_t vram_configuration(struct vram_allocator *allocator, char *text, size_t capacity) {
    struct vr_sink sink = vr_sink_begin(text, capacity);
    if (allocator == NULL) return sink.length;
    vr_mutex_lock(&allocator->mutex);
    vr_sink_printf(&sink, "%s", allocator->conf);
    vr_mutex_unlock(&allocator->mutex);
    return sink.length;
}

static void set_limit(struct vr_device *device, uint64_t limit_bytes) {
    vr_device_lock(device);
    device->limit_bytes = limit_bytes;
    vr_device_apply_options(device, &device->options);
    vr_device_unlock(device);
}

enum vram_status vram_set_memory_limit(struct vram_allocator *allocator, uint32_t ordinal, uint64_t limit_bytes) {
    VR_REQUIRE(allocator);
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    set_limit(device, limit_bytes);
    return VRAM_OK;
}

enum vram_status vram_set_memory_fraction(struct vram_allocator *allocator, uint32_t ordinal, double fraction) {
    VR_REQUIRE(allocator);
    if (!(fraction >= 0.0 && fraction <= 1.0)) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    set_limit(device, vr_limit_of_fraction(device->total_bytes, fraction));
    return VRAM_OK;
}

enum vram_status vram_memory_fraction(struct vram_allocator *allocator, uint32_t ordinal, double *fraction) {
    VR_REQUIRE(allocator && fraction);
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    vr_device_lock(device);
    *fraction = device->limit_bytes == VR_UNLIMITED ? 1.0 : (double)device->limit_bytes / (double)device->total_bytes;
    vr_device_unlock(device);
    return VRAM_OK;
}

static enum vram_status name_stream_locked(struct vr_classes *classes, uint64_t stream, const char *name) {
    size_t at = 0;
    while (at < classes->count && classes->items[at].stream != stream) at++;
    if (name[0] == '\0') {
        if (at < classes->count) classes->items[at] = classes->items[--classes->count];
        return VRAM_OK;
    }
    void *items = classes->items;
    const enum vram_status status = vr_grow(&items, &classes->capacity, at + 1, sizeof *classes->items);
    classes->items = items;
    VR_TRY(status);
    if (at == classes->count) classes->count++;
    classes->items[at].stream = stream;
    memcpy(classes->items[at].name, name, strlen(name) + 1);
    return VRAM_OK;
}

enum vram_status vram_set_stream_class(struct vram_allocator *allocator, uint64_t stream, const char *name) {
    VR_REQUIRE(allocator);
    if (name == NULL) name = "";
    if (strlen(name) >= VR_CLASS_NAME) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&allocator->classes.mutex);
    const enum vram_status status = name_stream_locked(&allocator->classes, stream, name);
    vr_mutex_unlock(&allocator->classes.mutex);
    return status;
}

void vram_set_caching(struct vram_allocator *allocator, bool enabled) {
    if (allocator == NULL) return;
    vr_mutex_lock(&allocator->mutex);
    atomic_store_explicit(&allocator->caching, enabled, memory_order_relaxed);
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL) vr_device_gate(device, VR_GATE_RAW, !enabled || vr_is_async(allocator));
    }
    vr_mutex_unlock(&allocator->mutex);
}

bool vram_caching(struct vram_allocator *allocator) {
    if (allocator == NULL) return false;
    return atomic_load_explicit(&allocator->caching, memory_order_relaxed);
}

// --- listeners ------------------------------------------------------------------------------------------------------------------

enum vram_status vram_add_oom_observer(struct vram_allocator *allocator, vram_oom_observer observer, void *user) {
    VR_REQUIRE(allocator);
    if (observer == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&allocator->mutex);
    void *observers = allocator->observers;
    const enum vram_status status =
        vr_grow(&observers, &allocator->observer_capacity, allocator->observer_count + 1, sizeof *allocator->observers);
    allocator->observers = observers;
    if (status == VRAM_OK) allocator->observers[allocator->observer_count++] = (struct vr_observer){observer, user};
    vr_mutex_unlock(&allocator->mutex);
    return status;
}

enum vram_status vram_remove_oom_observer(struct vram_allocator *allocator, vram_oom_observer observer, void *user) {
    VR_REQUIRE(allocator);
    vr_mutex_lock(&allocator->mutex);
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    for (size_t i = 0; i < allocator->observer_count && status != VRAM_OK; i++) {
        const struct vr_observer *candidate = &allocator->observers[i];
        if (candidate->function != observer || candidate->user != user) continue;
        allocator->observer_count--;
        memmove(&allocator->observers[i], &allocator->observers[i + 1], (allocator->observer_count - i) * sizeof *allocator->observers);
        status = VRAM_OK;
    }
    vr_mutex_unlock(&allocator->mutex);
    return status;
}

enum vram_status vram_add_free_callback(struct vram_allocator *allocator, vram_free_callback callback, void *user) {
    VR_REQUIRE(allocator);
    if (callback == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&allocator->mutex);
    const uint32_t count = atomic_load_explicit(&allocator->callback_count, memory_order_relaxed);
    if (count < VR_MAX_CALLBACKS) {
        allocator->callbacks[count] = (struct vr_callback){callback, user};
        atomic_store_explicit(&allocator->callback_count, count + 1, memory_order_relaxed);
    }
    vr_mutex_unlock(&allocator->mutex);
    return count < VR_MAX_CALLBACKS ? VRAM_OK : VRAM_LIMIT;
}

enum vram_status vram_remove_free_callback(struct vram_allocator *allocator, vram_free_callback callback, void *user) {
    VR_REQUIRE(allocator);
    vr_mutex_lock(&allocator->mutex);
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    const uint32_t count = atomic_load_explicit(&allocator->callback_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count && status != VRAM_OK; i++) {
        if (allocator->callbacks[i].function != callback || allocator->callbacks[i].user != user) continue;
        memmove(&allocator->callbacks[i], &allocator->callbacks[i + 1], (count - 1 - i) * sizeof *allocator->callbacks);
        atomic_store_explicit(&allocator->callback_count, count - 1, memory_order_relaxed);
        status = VRAM_OK;
    }
    vr_mutex_unlock(&allocator->mutex);
    return status;
}
