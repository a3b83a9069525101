// Observers of out-of-memory failures, and callbacks that free memory when it runs short.
#include "core/callbacks.h"

enum vram_status vram_add_oom_observer(struct vram_allocator *allocator, vram_oom_observer observer, void *user) {
    VR_REQUIRE(allocator);
    if (observer == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&allocator->mutex);
    const enum vram_status status = VR_GROW(allocator, observers, allocator->observer_count + 1);
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

// A request made by a callback runs no callbacks; otherwise it would recurse without end.
enum vram_status vr_run_callbacks(struct vr_device *device, uint64_t size_bytes, bool *freed) {
    static _Thread_local bool running;
    *freed = false;
    if (running) return VRAM_OK;
    struct vram_allocator *allocator = device->allocator;
    struct vr_callback callbacks[VR_MAX_CALLBACKS];
    vr_mutex_lock(&allocator->mutex);
    const uint32_t count = atomic_load_explicit(&allocator->callback_count, memory_order_relaxed);
    memcpy(callbacks, allocator->callbacks, count * sizeof *callbacks);
    vr_mutex_unlock(&allocator->mutex);
    const uint32_t stack = vr_stack_keep(vr_current_stack);
    running = true;
    for (uint32_t i = 0; i < count; i++) *freed |= callbacks[i].function(device->ordinal, size_bytes, callbacks[i].user);
    running = false;
    vr_current_stack_set(stack); // the callbacks' calls have replaced it
    return vr_driver_status(vr_cu(allocator->driver, ctx_set_current, device->context));
}
