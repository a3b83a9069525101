#include "core/fences.h"
#include "core/alloc.h"
#include "core/front.h"
#include "core/verifier.h"

// Returns the link to the stream's use in the tree of a non-empty list. If the stream has no use, returns the link, which is 0, where it
// would be inserted. NULL: the stream's use is the oldest, which has no link.
static uint32_t *find_use(const struct vram_allocator *allocator, uint32_t uses, uint64_t stream) {
    struct vr_use *use = vr_use_at(allocator, vr_use_at(allocator, uses)->oldest);
    if (use->stream == stream) return NULL;
    for (uint64_t bits = vr_mix64(stream);; bits >>= 1) {
        uint32_t *link = &use->child[bits & 1];
        if (*link == 0) return link;
        use = vr_use_at(allocator, *link);
        if (use->stream == stream) return link;
    }
}

enum vram_status vr_uses_enter(struct vram_allocator *allocator, uint32_t *uses, uint64_t stream, bool captured, uint32_t *spare) {
    uint32_t *link = NULL;
    if (*uses != 0) {
        link = find_use(allocator, *uses, stream);
        const uint32_t known = link == NULL ? vr_use_at(allocator, *uses)->oldest : *link;
        if (known != 0) {
            if (!captured) vr_use_at(allocator, known)->captured = false;
            return VRAM_OK;
        }
    }
    uint32_t made = spare != NULL ? *spare : 0;
    if (made != 0) {
        *spare = vr_use_at(allocator, made)->next;
    } else {
        VR_TRY(vr_slab_take(&allocator->uses, 1, &made));
    }
    const uint32_t oldest = *uses == 0 ? made : vr_use_at(allocator, *uses)->oldest;
    *vr_use_at(allocator, made) = (struct vr_use){.stream = stream, .next = *uses, .oldest = oldest, .captured = captured};
    if (link != NULL) *link = made;
    *uses = made;
    return VRAM_OK;
}

enum vram_status vr_uses_add(struct vram_allocator *allocator, struct vr_block *block, uint64_t stream, bool captured) {
    VR_ASSERT_LOCKED(vr_shard_of(allocator, block)->device);
    return vr_uses_enter(allocator, &block->held.uses, stream, captured, &vr_shard_of(allocator, block)->spare_uses);
}

// Removes the newest use, which is a leaf of the tree.
static void forget_newest_use(struct vram_allocator *allocator, uint32_t *uses) {
    const uint32_t use = *uses;
    uint32_t *link = find_use(allocator, use, vr_use_at(allocator, use)->stream);
    if (link != NULL) *link = 0;
    *uses = vr_use_at(allocator, use)->next;
    vr_slab_give(&allocator->uses, use);
}

// Keeps the first record with the shard, which saves the slab's lock: most blocks with uses have one.
void vr_uses_clear(struct vram_allocator *allocator, struct vr_block *block) {
    struct vr_shard *shard = vr_shard_of(allocator, block);
    for (uint32_t use = block->held.uses; use != 0;) {
        const uint32_t next = vr_use_at(allocator, use)->next;
        if (shard->spare_uses == 0) {
            vr_use_at(allocator, use)->next = 0;
            shard->spare_uses = use;
        } else {
            vr_slab_give(&allocator->uses, use);
        }
        use = next;
    }
    block->held.uses = 0;
}

// --- events -------------------------------------------------------------------------------------------------------------

// With one device, all accesses to its events are under that device's locks.
VR_INLINE bool are_shared(const struct vr_device *device) { return device->allocator->device_count != 1; }

static bool take_idle_event(struct vr_device *device, uint64_t *event) {
    struct vr_events *events = &device->fences.events;
    const bool shared = are_shared(device);
    if (VR_UNLIKELY(shared)) vr_mutex_lock(&events->mutex);
    const bool found = events->count != 0;
    if (found) *event = events->idle[--events->count];
    if (VR_UNLIKELY(shared)) vr_mutex_unlock(&events->mutex);
    return found;
}

static void return_event(struct vr_device *device, uint64_t event) {
    struct vr_events *events = &device->fences.events;
    const bool shared = are_shared(device);
    if (VR_UNLIKELY(shared)) vr_mutex_lock(&events->mutex);
    const bool room = VR_GROW(events, idle, events->count + 1) == VRAM_OK;
    if (room) events->idle[events->count++] = event;
    if (VR_UNLIKELY(shared)) vr_mutex_unlock(&events->mutex);
    if (!room) VR_CU_INSIST(device->allocator->driver, event_destroy, event);
}

// Finds the device whose context the stream belongs to. The legacy default stream belongs to the block's own device.
static vr_cu_result device_of_stream(struct vr_device *device, uint64_t stream, struct vr_device **owner) {
    struct vram_allocator *allocator = device->allocator;
    *owner = device;
    if (stream == 0 || allocator->device_count == 1) return VR_CU_SUCCESS;
    uint64_t context = 0;
    const vr_cu_result result = vr_cu(allocator->driver, stream_get_ctx, stream, &context);
    struct vr_device *found = result == VR_CU_SUCCESS ? vr_device_with_context(allocator, context) : NULL;
    if (found != NULL) *owner = found;
    return result;
}

// Records an event of *owner, the stream's device, on the stream. *gone (may be NULL): whether it failed because the stream was destroyed.
static enum vram_status record_event(struct vr_device *device, uint64_t stream, struct vr_device **owner, uint64_t *event, bool *gone) {
    struct vram_driver *driver = device->allocator->driver;
    struct vr_context_guard guard;
    vr_cu_result result = device_of_stream(device, stream, owner);
    if (gone != NULL) *gone = vr_stream_is_gone(result);
    VR_TRY(vr_driver_status(result));
    const bool elsewhere = *owner != device; // the device's own context is current
    if (elsewhere) VR_TRY(vr_context_enter(*owner, &guard));
    uint64_t made = 0;
    if (!take_idle_event(*owner, &made)) result = vr_cu(driver, event_create, &made, VR_CU_EVENT_DISABLE_TIMING);
    if (result == VR_CU_SUCCESS) {
        result = vr_cu(driver, event_record, made, stream);
        if (result != VR_CU_SUCCESS) return_event(*owner, made);
        if (gone != NULL) *gone = vr_stream_is_gone(result);
    }
    if (elsewhere) vr_context_leave(&guard);
    VR_TRY(vr_driver_status(result));
    *event = made;
    return VRAM_OK;
}

// --- fences -------------------------------------------------------------------------------------------------------------

VR_INLINE struct vr_fence_queue *find_queue(const struct vr_fences *fences, uint64_t stream) {
    if (VR_UNLIKELY(fences->count > VR_FEW_QUEUES)) {
        const uint64_t place = vr_map_get(&fences->places, stream);
        return place != 0 ? &fences->queues[place - 1] : NULL;
    }
    for (size_t i = 0; i < fences->count; i++)
        if (fences->queues[i].stream == stream) return &fences->queues[i];
    return NULL;
}

// Reserves room for the places of all queues and one more.
VR_NOINLINE static enum vram_status reserve_places(struct vr_fences *fences) {
    return vr_map_reserve(&fences->places, fences->count + 1 - fences->places.count);
}

// With more than VR_FEW_QUEUES queues: enters their places, from `first` on. There must be room.
VR_NOINLINE static void note_places(struct vr_fences *fences, size_t first) {
    for (size_t i = fences->places.count == 0 ? 0 : first; i < fences->count; i++) {
        const uint64_t stream = fences->queues[i].stream;
        struct vr_map_slot *known = vr_map_slot_of(&fences->places, stream);
        if (known->value != 0) {
            known->value = i + 1;
        } else {
            (void)vr_map_set(&fences->places, stream, i + 1);
        }
    }
}

// Gives an empty queue, with its ring, to another stream.
static void rename_queue(struct vr_fences *fences, struct vr_fence_queue *queue, uint64_t stream) {
    assert(queue->count == 0);
    if (VR_UNLIKELY(fences->count > VR_FEW_QUEUES)) (void)vr_map_take(&fences->places, queue->stream);
    queue->stream = stream;
}

static enum vram_status queue_for(struct vr_fences *fences, uint64_t stream, struct vr_fence_queue **queue) {
    *queue = find_queue(fences, stream);
    if (VR_LIKELY(*queue != NULL)) return VRAM_OK;
    const bool renamed = fences->count != 0 && fences->queues[fences->count - 1].count == 0;
    VR_TRY(VR_GROW(fences, queues, fences->count + 1));
    if (VR_UNLIKELY(fences->count >= VR_FEW_QUEUES)) VR_TRY(reserve_places(fences));
    if (renamed) {
        rename_queue(fences, &fences->queues[fences->count - 1], stream);
    } else {
        fences->queues[fences->count++] = (struct vr_fence_queue){.stream = stream};
    }
    *queue = &fences->queues[fences->count - 1];
    if (VR_UNLIKELY(fences->count > VR_FEW_QUEUES)) note_places(fences, fences->count - 1);
    return VRAM_OK;
}

enum { FIRST_RING = 16 };

static enum vram_status make_room_in_queue(struct vr_fence_queue *queue) {
    if (VR_LIKELY(queue->count < queue->capacity)) return VRAM_OK;
    const size_t capacity = queue->capacity == 0 ? FIRST_RING : queue->capacity * 2;
    struct vr_fence *fences = malloc(capacity * sizeof *fences);
    if (fences == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < queue->count; i++) fences[i] = queue->fences[(queue->head + i) & (queue->capacity - 1)];
    free(queue->fences);
    *queue = (struct vr_fence_queue){.stream = queue->stream, .fences = fences, .capacity = capacity, .count = queue->count};
    return VRAM_OK;
}

static enum vram_status record_fence(struct vr_device *device, uint32_t block, uint64_t stream, bool *gone) {
    struct vr_fence_queue *queue = NULL;
    VR_TRY(queue_for(&device->fences, stream, &queue));
    VR_TRY(make_room_in_queue(queue));
    struct vr_fence fence = {.block = block};
    VR_TRY(record_event(device, stream, &fence.event_device, &fence.event, gone));
    queue->fences[(queue->head + queue->count++) & (queue->capacity - 1)] = fence;
    return VRAM_OK;
}

// Takes back the newest fence of a stream, which this operation recorded.
static void retract_fence(struct vr_device *device, uint64_t stream) {
    struct vr_fence_queue *queue = NULL;
    if (queue_for(&device->fences, stream, &queue) != VRAM_OK) return;
    const struct vr_fence *fence = &queue->fences[(queue->head + --queue->count) & (queue->capacity - 1)];
    return_event(fence->event_device, fence->event);
}

// Updates VR_GATE_FENCES. Under the device's lock, as all changes of that bit are.
static void gate_fences(struct vr_device *device) {
    VR_ASSERT_LOCKED(device);
    const bool gated = (atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_FENCES) != 0,
               wanted = vr_fences_wait_for_any(&device->fences);
    if (gated != wanted) vr_device_gate(device, VR_GATE_FENCES, wanted);
}

// Drops the empty queues but the last. The others keep their order.
VR_NOINLINE static void drop_empty_of(struct vr_fences *fences) {
    const size_t before = fences->count;
    size_t kept = 0, first_moved = before;
    for (size_t i = 0; i < before; i++) {
        if (fences->queues[i].count == 0 && i + 1 != before) {
            if (before > VR_FEW_QUEUES) (void)vr_map_take(&fences->places, fences->queues[i].stream);
            free(fences->queues[i].fences);
            if (first_moved == before) first_moved = kept;
        } else {
            if (kept != i) fences->queues[kept] = fences->queues[i];
            kept++;
        }
    }
    fences->count = kept;
    if (VR_UNLIKELY(kept > VR_FEW_QUEUES)) {
        note_places(fences, first_moved);
    } else if (VR_UNLIKELY(before > VR_FEW_QUEUES)) {
        vr_map_clear(&fences->places);
    }
}

static void drop_empty_queues(struct vr_device *device) {
    if (device->fences.count > 1) drop_empty_of(&device->fences);
    gate_fences(device);
}

enum vram_status vr_fences_record(struct vr_device *device, uint32_t block, bool *gone) {
    VR_ASSERT_LOCKED(device);
    struct vram_allocator *allocator = device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    enum vram_status status = VRAM_OK;
    uint32_t recorded = 0, use = item->held.uses;
    for (; use != 0 && status == VRAM_OK; use = vr_use_at(allocator, use)->next) {
        status = record_fence(device, block, vr_use_at(allocator, use)->stream, gone);
        if (status == VRAM_OK) recorded++;
    }
    if (status != VRAM_OK) {
        use = item->held.uses;
        for (uint32_t i = 0; i < recorded; i++, use = vr_use_at(allocator, use)->next)
            retract_fence(device, vr_use_at(allocator, use)->stream);
        drop_empty_queues(device);
    } else {
        vr_uses_clear(allocator, item);
        item->held.pending = recorded;
        gate_fences(device);
    }
    return status;
}

// Waits for all devices, because the driver no longer knows which device a destroyed stream belonged to.
static enum vram_status wait_for_devices(struct vram_allocator *allocator) {
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        struct vr_context_guard guard;
        VR_TRY(vr_context_enter(device, &guard));
        const vr_cu_result result = vr_cu(allocator->driver, ctx_synchronize, 0);
        vr_context_leave(&guard);
        VR_TRY(vr_driver_status(result));
    }
    return VRAM_OK;
}

enum vram_status vr_uses_wait(struct vram_allocator *allocator, struct vr_block *block) {
    VR_ASSERT_LOCKED(vr_shard_of(allocator, block)->device);
    VR_TRY(wait_for_devices(allocator));
    vr_uses_clear(allocator, block);
    return VRAM_OK;
}

enum vram_status vr_streams_order(struct vr_device *device, uint64_t before, uint64_t after) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vr_device *owner = NULL;
    uint64_t event = 0;
    bool gone = false;
    const enum vram_status status = record_event(device, before, &owner, &event, &gone);
    if (gone) return wait_for_devices(device->allocator);
    VR_TRY(status);
    const vr_cu_result result = vr_cu(device->allocator->driver, stream_wait_event, after, event, 0);
    return_event(owner, event); // the stream already waits for the recorded point
    return vr_stream_is_gone(result) ? wait_for_devices(device->allocator) : vr_driver_status(result);
}

enum vram_status vr_event_at(struct vr_device *device, uint64_t stream, uint64_t *event) {
    struct vr_device *owner = NULL;
    bool gone = false;
    uint64_t made = 0;
    const enum vram_status status = record_event(device, stream, &owner, &made, &gone);
    if (status != VRAM_OK && !gone) return status;
    // An event belongs to its stream's device; one of another device cannot be used here.
    if (status == VRAM_OK && owner != device) return_event(owner, made);
    *event = status == VRAM_OK && owner == device ? made : 0;
    return VRAM_OK;
}

enum vram_status vr_event_passed(struct vr_device *device, uint64_t event, bool *passed) {
    const vr_cu_result result = vr_cu(device->allocator->driver, event_query, event);
    *passed = result == VR_CU_SUCCESS;
    return result == VR_CU_NOT_READY ? VRAM_OK : vr_driver_status(result);
}

void vr_event_return(struct vr_device *device, uint64_t event) { return_event(device, event); }

enum vram_status vr_uses_order(struct vr_device *device, struct vr_block *block) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vram_allocator *allocator = device->allocator;
    const uint64_t own = vr_shard_of(allocator, block)->stream;
    while (block->held.uses != 0) {
        const uint32_t use = block->held.uses;
        VR_TRY(vr_streams_order(device, vr_use_at(allocator, use)->stream, own));
        forget_newest_use(allocator, &block->held.uses);
    }
    return VRAM_OK;
}

static void pass_fence(struct vr_device *device, struct vr_fence_queue *queue) {
    const struct vr_fence fence = queue->fences[queue->head];
    queue->head = (queue->head + 1) & (queue->capacity - 1);
    queue->count--;
    return_event(fence.event_device, fence.event);
    struct vr_block *item = vr_block_at(device->allocator, fence.block);
    if (--item->held.pending != 0) return;
    vr_front_settle(device, &vr_shard_of(device->allocator, item)->pool[item->small]);
    vr_complete_free(device, fence.block, true);
}

static enum vram_status poll_queue(struct vr_device *device, struct vr_fence_queue *queue, bool *all) {
    while (queue->count != 0) {
        const vr_cu_result result = vr_cu(device->allocator->driver, event_query, queue->fences[queue->head].event);
        if (result == VR_CU_NOT_READY) return VRAM_OK;
        if (VR_UNLIKELY(result == VR_CU_INVALID_CONTEXT && all != NULL)) {
            *all = false;
            return VRAM_OK;
        }
        VR_TRY(vr_driver_status(result));
        pass_fence(device, queue);
    }
    return VRAM_OK;
}

bool vr_fences_wait_for_any(const struct vr_fences *fences) {
    return fences->count > 1 || (fences->count == 1 && fences->queues[0].count != 0);
}

enum vram_status vr_fences_poll(struct vr_device *device, bool *all) {
    VR_ASSERT_LOCKED(device);
    struct vr_fences *fences = &device->fences;
    const uint64_t progress = vr_driver_progress(device->allocator->driver);
    // If the driver has not progressed since the last poll, no fence can have passed.
    if (!vr_fences_wait_for_any(fences) || (progress != 0 && progress == fences->looked_at)) return VRAM_OK;
    enum vram_status status = VRAM_OK;
    bool emptied = false;
    for (size_t i = 0; i < fences->count && status == VRAM_OK && (all == NULL || *all); i++) {
        status = poll_queue(device, &fences->queues[i], all);
        emptied |= fences->queues[i].count == 0;
    }
    if (emptied) drop_empty_queues(device);
    fences->looked_at = status == VRAM_OK && (all == NULL || *all) ? progress : 0;
    return status;
}

static enum vram_status wait_queue(struct vr_device *device, struct vr_fence_queue *queue) {
    while (queue->count != 0) {
        VR_TRY(vr_driver_status(vr_cu(device->allocator->driver, event_synchronize, queue->fences[queue->head].event)));
        pass_fence(device, queue);
    }
    return VRAM_OK;
}

// Freed blocks that the verifier still holds back.
static void release_quarantine(struct vr_device *device, bool all, const struct vram_pool *only) {
    struct vr_verifier *verifier = device->allocator->verifier;
    if (verifier != NULL) verifier->release(verifier, device, all, only);
}

enum vram_status vr_fences_wait(struct vr_device *device) {
    VR_ASSERT_ALL_LOCKED(device);
    release_quarantine(device, true, NULL);
    device->stats.num_sync_all_streams++;
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < device->fences.count && status == VRAM_OK; i++) status = wait_queue(device, &device->fences.queues[i]);
    drop_empty_queues(device);
    return status;
}

// How to wait for a fence of a pool's block: on the host, or on the block's own stream.
typedef vr_cu_result vr_fence_wait(const struct vr_device *device, const struct vr_fence *fence);

static vr_cu_result host_waits(const struct vr_device *device, const struct vr_fence *fence) {
    return vr_cu(device->allocator->driver, event_synchronize, fence->event);
}

static vr_cu_result stream_waits(const struct vr_device *device, const struct vr_fence *fence) {
    const struct vr_shard *shard = vr_shard_of(device->allocator, vr_block_at(device->allocator, fence->block));
    const vr_cu_result result = vr_cu(device->allocator->driver, stream_wait_event, shard->stream, fence->event, 0);
    // A destroyed stream cannot wait.
    return vr_stream_is_gone(result) ? host_waits(device, fence) : result;
}

// Waits for the fences of the pool's blocks. The other fences keep their order; a fence whose wait fails stays.
static enum vram_status wait_queue_of_pool(struct vr_device *device, struct vr_fence_queue *queue, const struct vram_pool *pool,
                                           vr_fence_wait *wait) {
    struct vram_allocator *allocator = device->allocator;
    const size_t mask = queue->capacity - 1, count = queue->count;
    enum vram_status first = VRAM_OK;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct vr_fence fence = queue->fences[(queue->head + i) & mask];
        struct vr_block *block = vr_block_at(allocator, fence.block);
        const bool ours = first == VRAM_OK && vr_shard_of(allocator, block)->owner == pool;
        if (ours) first = vr_driver_status(wait(device, &fence));
        if (!ours || first != VRAM_OK) {
            queue->fences[(queue->head + kept++) & mask] = fence;
            continue;
        }
        return_event(fence.event_device, fence.event);
        if (--block->held.pending == 0) vr_complete_free(device, fence.block, true);
    }
    queue->count = kept;
    return first;
}

static enum vram_status pass_pool(struct vr_device *device, const struct vram_pool *pool, vr_fence_wait *wait) {
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < device->fences.count && status == VRAM_OK; i++)
        status = wait_queue_of_pool(device, &device->fences.queues[i], pool, wait);
    drop_empty_queues(device);
    return status;
}

enum vram_status vr_fences_wait_pool(struct vr_device *device, const struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(device);
    device->stats.num_sync_all_streams++;
    release_quarantine(device, false, pool);
    return pass_pool(device, pool, host_waits);
}

enum vram_status vr_fences_order_pool(struct vr_device *device, const struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(device);
    release_quarantine(device, false, pool);
    return pass_pool(device, pool, stream_waits);
}

bool vr_fences_check(const struct vr_fences *fences) {
    for (size_t i = 0; i < fences->count; i++) {
        const struct vr_fence_queue *queue = &fences->queues[i];
        if (find_queue(fences, queue->stream) != queue || (queue->count == 0 && i + 1 != fences->count)) return false;
    }
    return fences->places.count == (fences->count > VR_FEW_QUEUES ? fences->count : 0);
}

void vr_fences_init(struct vr_device *device) { vr_mutex_init(&device->fences.events.mutex); }

static void release_queue(struct vram_driver *driver, struct vr_fence_queue *queue) {
    for (; queue->count != 0; queue->count--) {
        const struct vr_fence *fence = &queue->fences[(queue->head + queue->count - 1) & (queue->capacity - 1)];
        VR_CU_INSIST(driver, event_destroy, fence->event);
    }
    free(queue->fences);
}

void vr_fences_release(struct vr_device *device) {
    struct vr_fences *fences = &device->fences;
    for (size_t i = 0; i < fences->count; i++) release_queue(device->allocator->driver, &fences->queues[i]);
    free(fences->queues);
    vr_map_release(&fences->places);
    for (size_t i = 0; i < fences->events.count; i++) VR_CU_INSIST(device->allocator->driver, event_destroy, fences->events.idle[i]);
    free(fences->events.idle);
    vr_mutex_destroy(&fences->events.mutex);
    *fences = (struct vr_fences){0};
}
