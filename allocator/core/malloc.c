// The fast way of vram_malloc() and vram_pool_malloc(): decide, check, commit, under one shard's lock and without a driver call; where
// fences wait, after a look at them under the device's mutex besides. Whatever it cannot do exactly (nothing cached fits, a new peak beyond
// the shard's allowance) starts again the slow way.
#include "core/cached.h"

// With a listener. The shard is locked; the gate is not 0.
VR_NOINLINE static bool take_notified(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    return vr_take_cached(shard, size_bytes, true, address);
}

// --- among fences ---------------------------------------------------------------------------------------------------------------------

static bool is_fenced_only(const struct vr_device *device) {
    return (atomic_load_explicit(&device->gate, memory_order_relaxed) & ~(uint32_t)VR_GATE_FENCES) == 0;
}

// Completes what has passed its fences. NVIDIA's documents name no error of cuEventQuery for want of a context, so none is made current;
// where a driver answers so all the same, the slow way has one. *all: nothing but fences is in the way of the request, and all were looked
// at.
static enum vram_status look_at_fences(struct vr_shard *shard, bool *all) {
    struct vr_device *device = shard->device;
    enum vram_status status = VRAM_OK;
    (void)vr_device_lock_beside(shard);
    *all = is_fenced_only(device);
    if (VR_LIKELY(*all)) status = vr_fences_poll_beside(shard, all);
    vr_mutex_unlock(&device->mutex);
    return status;
}

// Nothing but fences keeps the request from the fast way: they are looked at, unless none can have passed since that was done last. The
// shard is locked before and afterwards. *served: false and VRAM_OK where the slow way is needed.
VR_NOINLINE static enum vram_status take_among_fences(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address, bool *served) {
    bool all = true;
    *served = false;
    if (!vr_fences_stand(shard->device)) VR_TRY(look_at_fences(shard, &all));
    *served = all && vr_take_cached(shard, size_bytes, false, address);
    return VRAM_OK;
}

// --- private pools --------------------------------------------------------------------------------------------------------------------

// What is in force of the gate for a request that names its pool: routes do not concern it.
VR_INLINE uint32_t gate_of_pool(const struct vr_device *device) {
    return atomic_load_explicit(&device->gate, memory_order_relaxed) & ~(uint32_t)VR_GATE_ROUTES;
}

// The shard of the pool's stream, locked; NULL where only all locks find it.
VR_INLINE struct vr_shard *lock_near(struct vram_pool *pool, uint64_t stream) {
    struct vr_shard *shard = atomic_load_explicit(vr_shard_near(pool, stream), memory_order_acquire);
    if (VR_UNLIKELY(shard == NULL)) return NULL;
    vr_shard_lock(shard);
    if (VR_LIKELY(shard->owner == pool && shard->stream == stream)) return shard;
    vr_shard_unlock(shard);
    return NULL;
}

// Where that gate is in force. *served: false and VRAM_OK where the slow way is needed.
static enum vram_status take_in_pool(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint32_t gate, uint64_t *address,
                                     bool *served) {
    *served = false;
    if (size_bytes >= VR_REQUEST_LIMIT || gate_of_pool(pool->device) != gate) return VRAM_OK;
    struct vr_shard *shard = lock_near(pool, stream);
    if (shard == NULL) return VRAM_OK;
    enum vram_status status = VRAM_OK;
    if (VR_LIKELY(gate_of_pool(pool->device) == gate)) {
        switch (gate) {
        case 0: *served = vr_take_cached(shard, size_bytes, false, address); break;
        case VR_GATE_FENCES: status = take_among_fences(shard, size_bytes, address, served); break;
        default: *served = take_notified(shard, size_bytes, address); break;
        }
    }
    vr_shard_unlock(shard);
    return status;
}

// Called by the public function itself: see the depth given to vr_gather().
VR_NOINLINE static enum vram_status serve_from_pool(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    struct vr_device *device = pool->device;
    if (size_bytes == 0) {
        *address = 0;
        return VRAM_OK;
    }
    bool served = false;
    const uint32_t unheard = gate_of_pool(device) & (uint32_t)VR_GATE_FENCES;
    VR_TRY(take_in_pool(pool, size_bytes, stream, unheard, address, &served));
    if (VR_LIKELY(served)) return VRAM_OK;
    struct vr_shard *shard = NULL;
    VR_TRY(vr_shard_get(device, stream, &shard));
    vr_gather(device, VR_LEVEL_STATE, 1);
    VR_TRY(take_in_pool(pool, size_bytes, stream, VR_GATE_LISTENER, address, &served));
    if (served) return VRAM_OK;
    return vr_malloc_slow(shard, pool, size_bytes, address);
}

// A leaf, as vram_malloc() is.
enum vram_status vram_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    VR_REQUIRE(pool && address);
    const struct vr_device *device = pool->device;
    struct vr_shard *shard = atomic_load_explicit(vr_shard_near(pool, stream), memory_order_acquire);
    bool taken = false;
    if (VR_LIKELY(shard != NULL) && vr_shard_try_lock(shard)) {
        taken = shard->owner == pool && shard->stream == stream && gate_of_pool(device) == 0 &&
                vr_take_ready(device->allocator, shard, size_bytes, address);
        vr_shard_unlock(shard);
    }
    enum vram_status status = VRAM_OK;
    if (!taken) status = serve_from_pool(pool, size_bytes, stream, address);
    VR_NO_TAIL_CALL();
    return vr_checked(device->allocator, status);
}

// Nothing but routes keeps the request from the fast way: it goes to the pool that they say, which they must still say under that pool's
// lock.
VR_NOINLINE static bool take_routed(struct vr_shard *home, uint64_t size_bytes, uint64_t *address) {
    struct vr_device *device = home->device;
    const uint64_t stream = home->stream;
    struct vram_pool *pool = NULL, *still = NULL;
    vr_shard_lock(home);
    bool plain = atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_ROUTES && vr_route_plain(device, stream, &pool);
    const bool taken = plain && pool == NULL && vr_take_cached(home, size_bytes, false, address);
    struct vr_shard *near = pool == NULL ? NULL : atomic_load_explicit(vr_shard_near(pool, stream), memory_order_acquire);
    vr_shard_unlock(home);
    if (near == NULL) return taken;
    vr_shard_lock(near);
    plain = atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_ROUTES && vr_route_plain(device, stream, &still);
    const bool routed =
        plain && still == pool && near->owner == pool && near->stream == stream && vr_take_cached(near, size_bytes, false, address);
    vr_shard_unlock(near);
    return routed;
}

// --- the default pools ----------------------------------------------------------------------------------------------------------------

// Whatever the bare fast way could not do. Called by the public function's own callee: see the depth given to vr_gather().
VR_NOINLINE static enum vram_status serve_slowly(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    struct vr_device *device = shard->device;
    if ((atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_LISTENER) != 0) {
        vr_gather(device, VR_LEVEL_STATE, 2);
        if (size_bytes < VR_REQUEST_LIMIT) {
            vr_shard_lock(shard);
            const bool bare = atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_LISTENER;
            const bool served = bare && take_notified(shard, size_bytes, address);
            vr_shard_unlock(shard);
            if (served) return VRAM_OK;
        }
    }
    if (atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_ROUTES && size_bytes < VR_REQUEST_LIMIT &&
        take_routed(shard, size_bytes, address)) {
        return VRAM_OK;
    }
    return vr_malloc_slow(shard, NULL, size_bytes, address);
}

// The shard is locked, and is not any more afterwards.
VR_INLINE enum vram_status serve_locked(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    const bool served = size_bytes - 1 < VR_REQUEST_LIMIT - 1 && atomic_load_explicit(&shard->device->gate, memory_order_relaxed) == 0 &&
                        vr_take_cached(shard, size_bytes, false, address);
    vr_shard_unlock(shard);
    if (VR_LIKELY(served)) return VRAM_OK;
    if (VR_UNLIKELY(size_bytes == 0)) {
        *address = 0;
        return VRAM_OK;
    }
    return serve_slowly(shard, size_bytes, address);
}

// What the leaf hands on with the shard locked.
VR_NOINLINE static enum vram_status serve(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    const enum vram_status status = serve_locked(shard, size_bytes, address);
    VR_NO_TAIL_CALL();
    return status;
}

// The same where the gate is not 0. Where somebody listens who takes no stack of the call, the lock that is held will do.
VR_NOINLINE static enum vram_status serve_gated(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    const struct vr_device *device = shard->device;
    const uint32_t gate = atomic_load_explicit(&device->gate, memory_order_relaxed);
    const bool without_stack = gate == VR_GATE_LISTENER && size_bytes - 1 < VR_REQUEST_LIMIT - 1 && !vr_takes_stack(device, VR_LEVEL_STATE);
    enum vram_status status = VRAM_OK;
    bool served = false;
    if (VR_LIKELY(without_stack)) {
        const uint32_t ready = shard->pool[size_bytes <= VR_SMALL_LIMIT ? VR_SMALL : VR_LARGE].ready;
        vr_current_stack_set(0);
        served = vr_take_ready(device->allocator, shard, size_bytes, address);
        if (VR_LIKELY(served)) {
            vr_notify_hand_out(shard, vr_block_at(device->allocator, ready));
        } else {
            served = take_notified(shard, size_bytes, address);
        }
    } else if (gate == VR_GATE_FENCES && size_bytes - 1 < VR_REQUEST_LIMIT - 1) {
        status = take_among_fences(shard, size_bytes, address, &served);
    }
    vr_shard_unlock(shard);
    if (VR_UNLIKELY(!served && status == VRAM_OK) && size_bytes != 0) {
        status = serve_slowly(shard, size_bytes, address);
    } else if (VR_UNLIKELY(!served && status == VRAM_OK)) {
        *address = 0;
    }
    VR_NO_TAIL_CALL();
    return status;
}

// A stream that was not met before, or whose shard is not where the search for it begins, or whose lock somebody has.
VR_NOINLINE static enum vram_status find_and_serve(struct vram_allocator *allocator, uint32_t ordinal, uint64_t size_bytes, uint64_t stream,
                                                   uint64_t *address) {
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (VR_UNLIKELY(device == NULL)) VR_TRY(vr_device_get(allocator, ordinal, &device));
    if (VR_UNLIKELY(size_bytes == 0)) {
        *address = 0;
        return VRAM_OK;
    }
    struct vr_shard *shard = NULL;
    VR_TRY(vr_shard_get(device, stream, &shard));
    vr_shard_lock(shard);
    enum vram_status status = VRAM_OK;
    bool served = false;
    if (atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_FENCES && size_bytes < VR_REQUEST_LIMIT)
        status = take_among_fences(shard, size_bytes, address, &served);
    if (VR_UNLIKELY(served || status != VRAM_OK)) {
        vr_shard_unlock(shard);
    } else {
        status = serve_locked(shard, size_bytes, address);
    }
    VR_NO_TAIL_CALL();
    return status;
}

// A leaf: what it cannot do itself goes on, with the shard locked if it has it. So a pair that repeats saves no register.
enum vram_status vram_malloc(struct vram_allocator *allocator, uint32_t ordinal, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    const struct vr_device *device = vr_device_if_used(allocator, ordinal);
    struct vr_shard *shard = VR_LIKELY(device != NULL) ? vr_shard_guess(device, stream) : NULL;
    enum vram_status status = VRAM_OK;
    if (VR_UNLIKELY(shard == NULL) || !vr_shard_try_lock(shard)) {
        status = find_and_serve(allocator, ordinal, size_bytes, stream, address);
    } else if (VR_UNLIKELY(atomic_load_explicit(&device->gate, memory_order_relaxed) != 0)) {
        status = serve_gated(shard, size_bytes, address);
    } else if (vr_take_ready(allocator, shard, size_bytes, address)) {
        vr_shard_unlock(shard);
    } else {
        status = serve(shard, size_bytes, address);
    }
    VR_NO_TAIL_CALL();
    return vr_checked(allocator, status);
}
