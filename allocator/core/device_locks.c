// The two ways to lock a device (device.h).
#include "core/device.h"
#include "core/front.h"

// Tries between which the processor pauses FIRST_PAUSES times, twice as often, ... up to MOST_PAUSES, and how many of the longest come
// before the system is asked for another thread. A pause takes 10 to 50 ns.
enum { FIRST_PAUSES = 64, MOST_PAUSES = 256, LONG_WAITS_BEFORE_YIELD = 4 };

// In a loop that waits for another processor: this one does less meanwhile.
static void pause_processor(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile(
        "isb" ::
            : "memory"); // "yield" does nothing on processors without threads of their own; this takes about as long as a pause
#endif
}

// Who waits looks seldom, and ever more so: the lock's line, and the blocks behind it, stay with the thread that works on them, which does
// many calls in the time in which a line goes to the other processor and back. A first look after less than the time of a hundred calls
// finds the lock open between two of them, and takes it away.
void vr_device_lock_contended(struct vr_device *device) {
    for (unsigned pauses = FIRST_PAUSES, long_waits = 0;;) {
        if (atomic_load_explicit(&device->lock, memory_order_relaxed) == 0 &&
            atomic_exchange_explicit(&device->lock, 1, memory_order_acquire) == 0) {
            return;
        }
        for (unsigned i = 0; i < pauses; i++) pause_processor();
        if (pauses < MOST_PAUSES) {
            pauses *= 2;
        } else if (++long_waits >= LONG_WAITS_BEFORE_YIELD) {
            vr_os_yield();
        }
    }
}

void vr_device_lock(struct vr_device *device) {
    vr_mutex_lock(&device->mutex);
    vr_device_lock_rest(device);
}

void vr_device_lock_rest(struct vr_device *device) {
    vr_device_lock_short(device);
    vr_front_settle_all(device);
}

void vr_device_unlock(struct vr_device *device) {
    vr_device_unlock_short(device);
    vr_mutex_unlock(&device->mutex);
}

void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard) {
    vr_device_lock(device);
    vr_context_relax(device, guard);
}

uint32_t vr_find_and_lock_device(struct vram_allocator *allocator, uint64_t address, struct vr_device **device) {
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    if (block == 0) return 0;
    const struct vr_block *item = vr_block_at(allocator, block);
    const struct vr_shard *shard = vr_shard_of(allocator, item);
    *device = shard->device;
    vr_device_lock(*device);
    if (vr_is_allocated_at(item, address, shard)) return block;
    vr_device_unlock(*device);
    return 0;
}
