// Sends records of the allocator's events to its listener.
#include "core/device.h"
#include "core/event_listener.h"

_Thread_local uint32_t vr_current_stack;

void vr_gather(struct vr_device *device, enum vr_level need, uint32_t above) {
    uint32_t stack = 0;
    if (vr_takes_stack(device, need)) {
        const struct vr_listener *listener = atomic_load_explicit(&device->listening.listener, memory_order_acquire);
        if (listener != NULL) stack = listener->gather(above + 2, need, listener->user);
    }
    vr_current_stack_set(stack);
}

VR_INLINE void send_record(struct vr_device *device, struct vr_record *record) {
    const struct vr_listener *listener = atomic_load_explicit(&device->listening.listener, memory_order_relaxed);
    if (listener->numbered) record->sequence = atomic_fetch_add_explicit(&device->listening.sequence, 1, memory_order_relaxed);
    // The call may have begun while a client listened, whose context this listener does not know.
    if (!listener->foreign && VR_UNLIKELY(vr_stack_is_foreign(record->stack))) record->stack = vr_history_stack(record->stack);
    listener->record(record, listener->user);
}

VR_INLINE struct vram_pool_id pool_of(const struct vr_shard *shard) {
    return shard->owner == NULL ? (struct vram_pool_id){0, 0} : shard->owner->id;
}

VR_INLINE struct vr_record of_block(const struct vr_shard *shard, enum vr_record_action action, const struct vr_block *block) {
    const uint32_t current = vr_current_stack;
    return (struct vr_record){
        .address = block->address,
        .size_bytes = block->requested,
        .stream = shard->stream,
        .pool = pool_of(shard),
        .device = shard->device->ordinal,
        .action = action,
        .stack = current != 0 ? current : block->stack,
        .kept = block->stack,
        .words = block->words,
    };
}

void vr_notify_block_now(struct vr_shard *shard, enum vr_record_action action, const struct vr_block *block) {
    VR_ASSERT_LOCKED(shard->device);
    struct vr_record record = of_block(shard, action, block);
    send_record(shard->device, &record);
}

void vr_notify_freed(struct vr_shard *shard, struct vr_block *block) {
    struct vr_record record = of_block(shard, VR_RECORD_FREE_REQUESTED, block);
    record.completed = atomic_load_explicit(&shard->device->listening.listener, memory_order_relaxed)->pairs;
    send_record(shard->device, &record);
    if (!record.completed) {
        record.action = VR_RECORD_FREE_COMPLETED;
        send_record(shard->device, &record);
    }
    block->stack = vr_stack_end(block->stack);
}

void vr_notify_hand_out(struct vr_shard *shard, struct vr_block *block) {
    block->stack = vr_current_stack_kept();
    struct vr_record record = of_block(shard, VR_RECORD_ALLOC, block);
    send_record(shard->device, &record);
}

static struct vr_record of_range(const struct vr_shard *shard, enum vr_record_action action, const struct vr_segment *segment,
                                 uint64_t address, uint64_t size_bytes) {
    const uint32_t current = vr_current_stack;
    return (struct vr_record){
        .address = address,
        .size_bytes = size_bytes,
        .stream = shard->stream,
        .pool = pool_of(shard),
        .device = shard->device->ordinal,
        .action = action,
        .stack = current != 0 || segment == NULL ? current : segment->stack,
        .kept = segment == NULL ? 0 : segment->stack,
    };
}

void vr_notify_range_now(struct vr_shard *shard, enum vr_record_action action, const struct vr_segment *segment, uint64_t address,
                         uint64_t size_bytes) {
    struct vr_record record = of_range(shard, action, segment, address, size_bytes);
    send_record(shard->device, &record);
}

void vr_notify_vacant_now(struct vr_shard *shard, bool vacant, const struct vr_segment *segment, uint64_t address, uint64_t size_bytes) {
    struct vr_record record = of_range(shard, vacant ? VR_RECORD_SEGMENT_UNMAP : VR_RECORD_SEGMENT_MAP, segment, address, size_bytes);
    record.vacant = true;
    send_record(shard->device, &record);
}

static void send_raw(struct vr_device *device, enum vr_record_action action, const struct vr_raw_block *block) {
    const uint32_t current = vr_current_stack;
    struct vr_record record = {
        .address = block->address,
        .size_bytes = block->size,
        .stream = block->stream,
        .pool = block->pool,
        .device = device->ordinal,
        .action = action,
        .stack = current != 0 ? current : block->stack,
        .kept = block->stack,
    };
    send_record(device, &record);
}

void vr_notify_raw_now(struct vr_device *device, enum vr_record_action action, const struct vr_raw_block *block) {
    VR_ASSERT_LOCKED(device);
    if (action == VR_RECORD_ALLOC) send_raw(device, VR_RECORD_SEGMENT_ALLOC, block);
    send_raw(device, action, block);
    if (action == VR_RECORD_FREE_COMPLETED) send_raw(device, VR_RECORD_SEGMENT_FREE, block);
}

void vr_notify_now(struct vr_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes, uint64_t stream) {
    struct vr_record record = {
        .address = address,
        .size_bytes = size_bytes,
        .stream = stream,
        .device = device->ordinal,
        .action = action,
        .stack = vr_current_stack,
    };
    send_record(device, &record);
}
