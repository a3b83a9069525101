// ring.h: the newest events of one device.
//
// Each ring has a lock of its own, the last in order: events of several streams come under their shards' locks, and the order in which
// they take the ring's is the order of the history. Memory is address space that is touched as events come.
#ifndef VR_HISTORY_RING_H
#define VR_HISTORY_RING_H

#include <stdatomic.h>

#include "history/thread_text.h"
#include "os/os.h"
#include "os/single_threaded.h"

// "Without bound": more events than this are kept of no device. 16 GiB of address space.
#define VR_RING_MOST ((uint64_t)1 << 28)

// An event as it is recorded: one cache line. Numbers are those of the tracer's tables.
struct vr_event {
    uint64_t ticks; // vr_os_ticks()
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    uint64_t pool; // 2 * first, or 2 * second + 1; 0: a default pool
    struct vr_event_origin origin;
    uint32_t stack;
    uint32_t action; // enum vr_action
};
_Static_assert(sizeof(struct vr_event) == 64, "one cache line");

struct vr_ring {
    _Alignas(64) _Atomic uint32_t lock;
    struct vr_event *events; // NULL until the first one
    uint64_t capacity;       // events that count, at least 1: the newest
    uint64_t reserved;       // entries that `events` has room for: some more, so that a copy may lag behind; less where space is short
    uint64_t next;           // where the next event goes
    uint64_t kept;           // entries with an event: at most `reserved`
    uint64_t stored;         // events since it was cleared, overwritten ones too
    uint64_t lost;           // events that there was no memory for
};

VR_INLINE void vr_ring_lock(struct vr_ring *ring) {
    uint32_t expected = 0;
    if (vr_is_single_threaded()) {
        assert(atomic_load_explicit(&ring->lock, memory_order_relaxed) == 0);
        atomic_store_explicit(&ring->lock, 1, memory_order_relaxed);
        return;
    }
    while (!atomic_compare_exchange_weak_explicit(&ring->lock, &expected, 1, memory_order_acquire, memory_order_relaxed)) {
        expected = 0;
        vr_os_yield();
    }
}
VR_INLINE void vr_ring_unlock(struct vr_ring *ring) { atomic_store_explicit(&ring->lock, 0, memory_order_release); }

// The first event's work: gets the room. False when there is none; the event is lost.
VR_NOINLINE bool vr_ring_open_locked(struct vr_ring *ring);

// Where the next event goes, the oldest overwritten if need be; NULL (and counted as lost) when there is no memory. With the lock.
VR_INLINE struct vr_event *vr_ring_next_locked(struct vr_ring *ring) {
    if (VR_UNLIKELY(ring->events == NULL) && !vr_ring_open_locked(ring)) return NULL;
    struct vr_event *event = &ring->events[ring->next++];
    if (VR_UNLIKELY(ring->next == ring->reserved)) ring->next = 0;
    if (ring->kept < ring->reserved) ring->kept++;
    ring->stored++;
    return event;
}

// Room for `count` events one behind the other, where nothing is left to decide; NULL where vr_ring_next_locked() has to. With the lock.
VR_INLINE struct vr_event *vr_ring_room_locked(struct vr_ring *ring, uint64_t count) {
    const uint64_t next = ring->next;
    if (VR_UNLIKELY(next + count >= ring->reserved)) return NULL; // also where none are reserved
    ring->next = next + count;
    if (ring->kept != ring->reserved) ring->kept = next + count; // it was not full yet: vr_ring_check_locked()
    ring->stored += count;
    return &ring->events[next];
}

// How many of the events count. With the lock.
VR_INLINE uint64_t vr_ring_count_locked(const struct vr_ring *ring) { return ring->kept < ring->capacity ? ring->kept : ring->capacity; }

// With the lock: nothing is kept beyond the room, and the room is used from its begin on.
bool vr_ring_check_locked(const struct vr_ring *ring);

// Forgets everything and gives the room back.
void vr_ring_clear(struct vr_ring *ring);
// From now on at most `capacity` (0 counts as 1) events; the newest of those that are there stay. NO_HOST_MEMORY: nothing changed.
enum vram_status vr_ring_resize(struct vr_ring *ring, uint64_t capacity);
// How many events were stored so far: a mark for vr_ring_copy().
uint64_t vr_ring_mark(struct vr_ring *ring);
// The newest events before the mark, oldest first, into memory that the caller frees; those that were overwritten since are missing. Others
// may store meanwhile: the lock is taken for some thousand events at a time. Not while another thread clears or resizes the ring.
// NO_HOST_MEMORY.
enum vram_status vr_ring_copy(struct vr_ring *ring, uint64_t mark, struct vr_event **events, size_t *count);

#endif
