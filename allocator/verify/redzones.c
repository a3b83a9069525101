// redzones.c: fills memory with the poison and finds what changed in it, by the driver's copies and sets on a block's own stream.
#include "core/capture/captures.h"
#include "verify/verify.h"

// Number of bytes that are compared at the beginning of a longer redzone. At its end, VR_REDZONE_BYTES are compared.
enum { FAR_BYTES = 4096 };

bool vr_may_touch(const struct vr_device *device, uint64_t stream) {
    return !vr_any_captures(device) && !vr_stream_is_capturing(device, stream);
}

bool vr_poison_fill(const struct vr_device *device, uint64_t stream, uint64_t address, uint64_t size) {
    struct vram_driver *driver = device->allocator->driver;
    vr_cu_result result = vr_cu(driver, memset_d8_async, address, VRAM_POISON_BYTE, size, stream);
    if (vr_stream_is_gone(result)) result = vr_cu(driver, memset_d8, address, VRAM_POISON_BYTE, size);
    return result == VR_CU_SUCCESS;
}

static bool read_bytes(const struct vr_device *device, uint64_t stream, uint64_t address, uint64_t size, void *bytes) {
    struct vram_driver *driver = device->allocator->driver;
    vr_cu_result result = vr_cu(driver, memcpy_async, (uint64_t)(uintptr_t)bytes, address, size, stream);
    if (result == VR_CU_SUCCESS) result = vr_cu(driver, stream_synchronize, stream);
    if (vr_stream_is_gone(result)) result = vr_cu(driver, memcpy_dtoh, bytes, address, size);
    return result == VR_CU_SUCCESS;
}

static bool has_bounce(struct vr_verified_device *own) {
    if (own->bounce == NULL) own->bounce = malloc(VR_BOUNCE_BYTES);
    return own->bounce != NULL;
}

// The C library compares many bytes at a time: a range of one byte is equal to itself, moved by one.
static bool is_poison(const unsigned char *bytes, uint64_t size) {
    return bytes[0] == VRAM_POISON_BYTE && memcmp(bytes, bytes + 1, size - 1) == 0;
}

// Widens the damage by what differs in the piece of `size` bytes that was read from `address`.
static void find_damage(const unsigned char *bytes, uint64_t address, uint64_t size, bool *differs, struct vr_damage *damage) {
    for (uint64_t i = 0; i < size; i++) {
        if (bytes[i] == VRAM_POISON_BYTE) continue;
        if (!*differs) damage->first = address + i;
        damage->last = address + i;
        *differs = true;
    }
}

bool vr_poison_differs(struct vr_verify *verify, const struct vr_device *device, uint64_t stream, uint64_t address, uint64_t size,
                       struct vr_damage *damage) {
    struct vr_verified_device *own = &verify->devices[device->ordinal];
    if (!has_bounce(own)) return false;
    bool differs = false;
    for (uint64_t at = 0, piece; at < size; at += piece) {
        piece = size - at < VR_BOUNCE_BYTES ? size - at : VR_BOUNCE_BYTES;
        if (!read_bytes(device, stream, address + at, piece, own->bounce)) return false;
        if (!is_poison(own->bounce, piece)) find_damage(own->bounce, address + at, piece, &differs, damage);
    }
    return differs;
}

bool vr_keeps_bytes(struct vr_verify *verify, const struct vr_device *device, uint64_t stream, uint64_t address, uint64_t size) {
    struct vr_verified_device *own = &verify->devices[device->ordinal];
    if (own->bytes == VR_BYTES_UNKNOWN && has_bounce(own)) {
        assert(size <= VR_BOUNCE_BYTES);
        memset(own->bounce, 0, size); // a driver that keeps no bytes leaves the destination of a copy unchanged
        if (read_bytes(device, stream, address, size, own->bounce))
            own->bytes = is_poison(own->bounce, size) ? VR_BYTES_KEPT : VR_BYTES_LOST;
    }
    return own->bytes == VR_BYTES_KEPT;
}

// Reports damage in the redzone between two blocks, and repairs it. Counts it as an overflow of the first block or an underflow of the
// second, whichever is nearer to the damage.
static void report_damage(struct vr_verify *verify, const struct vr_device *device, const struct vr_verified_block *before,
                          const struct vr_verified_block *after, const struct vr_damage *damage) {
    const uint64_t behind = before != NULL ? damage->first - (before->address + before->requested) : UINT64_MAX;
    const uint64_t ahead = after != NULL ? after->address - 1 - damage->last : UINT64_MAX;
    struct vram_fault fault = {.kind = behind <= ahead ? VRAM_FAULT_OVERFLOW : VRAM_FAULT_UNDERFLOW,
                               .address = damage->first,
                               .wrong_bytes = damage->last - damage->first + 1,
                               .current = vr_verify_stack(verify)};
    const uint64_t stream = before != NULL ? before->stream : after->stream;
    (void)vr_poison_fill(device, stream, damage->first, fault.wrong_bytes);
    vr_fault_report(verify, &fault, behind <= ahead ? before : after);
}

// Gets the live block at the address, which a report can blame.
static const struct vr_verified_block *live_at(struct vr_verify *verify, uint64_t address, struct vr_verified_block *copy) {
    return vr_verified_at(verify, address, copy) && copy->state == VR_VERIFIED_LIVE ? copy : NULL;
}

static void check_behind(struct vr_verify *verify, const struct vr_device *device, const struct vr_verified_block *block,
                         const struct vr_verified_block *after) {
    const uint64_t begin = block->address + block->requested, end = block->address + block->size;
    const uint64_t near = end - begin <= FAR_BYTES ? end : begin + FAR_BYTES;
    struct vr_damage damage;
    if (vr_poison_differs(verify, device, block->stream, begin, near - begin, &damage) ||
        (near != end && vr_poison_differs(verify, device, block->stream, end - VR_REDZONE_BYTES, VR_REDZONE_BYTES, &damage)))
        report_damage(verify, device, block, after, &damage);
}

// Gets the block in front, if its redzone is known. Returns false if the bytes there may be anything.
static bool find_in_front(struct vr_verify *verify, const struct vr_device *device, const struct vr_block *item,
                          struct vr_verified_block *before, bool *live) {
    const struct vram_allocator *allocator = device->allocator;
    const struct vr_segment *segment = vr_segment_at(allocator, item->segment);
    *live = false;
    if (!segment->poisoned) return false;
    if (item->previous == 0) return segment->front;
    const struct vr_block *previous = vr_block_at(allocator, item->previous);
    if (previous->state != VR_ALLOCATED) return true;
    *live = vr_verified_at(verify, previous->address, before) && before->state == VR_VERIFIED_LIVE;
    return *live;
}

void vr_redzones_check(struct vr_verify *verify, const struct vr_device *device, const struct vr_verified_block *block,
                       const struct vr_block *item) {
    struct vr_verified_block before, after;
    struct vr_damage damage;
    bool live = false;
    check_behind(verify, device, block, block->raw ? NULL : live_at(verify, block->address + block->size, &after));
    if (item != NULL && !find_in_front(verify, device, item, &before, &live)) return;
    if (live) {
        check_behind(verify, device, &before, block);
        return;
    }
    if (vr_poison_differs(verify, device, block->stream, block->address - VR_REDZONE_BYTES, VR_REDZONE_BYTES, &damage))
        report_damage(verify, device, NULL, block, &damage);
}
