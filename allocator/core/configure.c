// Changes and reports the settings of an allocator and its devices at run time.
#include "base/text.h"
#include "core/device.h"
#include "core/source/backend.h"

// Takes ownership of `conf`.
static enum vram_status apply_to_devices(struct vram_allocator *allocator, const struct vr_options *options, char *conf,
                                         struct vram_error *error) {
    const bool verify_changes = options->verify != allocator->options.verify && allocator->verifier != NULL;
    const bool backend_changes = options->backend != allocator->options.backend, rules_change = options->pytorch != allocator->pytorch;
    if (backend_changes || rules_change || verify_changes || conf == NULL) {
        free(conf);
        return conf == NULL ? vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the option string")
                            : vr_fail(error, VRAM_BAD_OPTION, VRAM_NO_OFFSET, "%s cannot be changed after the allocator was created",
                                      backend_changes ? "the backend"
                                      : rules_change  ? "the PyTorch version"
                                                      : "verify");
    }
    free(allocator->conf);
    allocator->conf = conf;
    allocator->options = *options;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_lock(device);
        vr_device_apply_options(device, options);
        vr_device_unlock(device);
    }
    return VRAM_OK;
}

static char *copy_of(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    if (copy != NULL) memcpy(copy, text, strlen(text) + 1);
    return copy;
}

static enum vram_status configure_locked(struct vram_allocator *allocator, const char *conf, struct vram_error *error) {
    struct vr_options options = allocator->options;
    VR_TRY(vr_options_parse(&options, conf, error));
    return apply_to_devices(allocator, &options, copy_of(conf), error);
}

enum vram_status vram_configure(struct vram_allocator *allocator, const char *conf, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    vr_mutex_lock(&allocator->mutex);
    const enum vram_status status = configure_locked(allocator, conf == NULL ? "" : conf, error);
    vr_mutex_unlock(&allocator->mutex);
    return status;
}

static enum vram_status set_option_locked(struct vram_allocator *allocator, const char *key, const char *value, struct vram_error *error) {
    struct vr_options options = allocator->options;
    struct vr_text conf = {0};
    VR_TRY(vr_options_set(&options, key, value, error));
    vr_options_print(&options, &conf);
    char *copy = vr_text_status(&conf) == VRAM_OK ? copy_of(vr_text_string(&conf)) : NULL;
    vr_text_release(&conf);
    return apply_to_devices(allocator, &options, copy, error);
}

enum vram_status vram_set_option(struct vram_allocator *allocator, const char *key, const char *value, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && key);
    vr_mutex_lock(&allocator->mutex);
    const enum vram_status status = set_option_locked(allocator, key, value, error);
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

enum vram_status vram_options_in_force(struct vram_allocator *allocator, vram_option_visitor visit, void *user) {
    VR_REQUIRE(allocator && visit);
    vr_mutex_lock(&allocator->mutex);
    const struct vr_options options = allocator->options;
    vr_mutex_unlock(&allocator->mutex);
    return vr_options_visit(&options, visit, user, NULL);
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
    VR_TRY(VR_GROW(classes, items, at + 1));
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
        if (device != NULL) vr_device_gate(device, VR_GATE_RAW, !enabled || !allocator->backend->has_blocks);
    }
    vr_mutex_unlock(&allocator->mutex);
}

bool vram_caching(struct vram_allocator *allocator) {
    if (allocator == NULL) return false;
    return atomic_load_explicit(&allocator->caching, memory_order_relaxed);
}
