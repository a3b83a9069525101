// ring.h: the newest events of one device.
//
// Each ring has its own lock, the last in the lock order. Events of several streams come under their shards' locks, and the order in which
// they take the ring's lock is the order of the history. Memory is reserved address space, touched as events come.
#ifndef VR_HISTORY_RING_H
#define VR_HISTORY_RING_H

#include <stdatomic.h>

#include "history/thread_text.h"
#include "os/os.h"
#include "os/single_threaded.h"

// Capacity of an unbounded history: no device keeps more events. 16 GiB of address space.
#define VR_RING_MOST ((uint64_t)1 << 28)

// An event as recorded, in one cache line. Ids are those of the tracer's tables.
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
    struct vr_event *events; // NULL until the first event
    uint64_t capacity;       // number of newest events that count, at least 1
    uint64_t reserved;       // entries in `events`: more than `capacity`, so that a copy may lag behind; fewer if address space is short
    uint64_t next;           // index for the next event
    uint64_t kept;           // entries with an event, at most `reserved`
    uint64_t stored;         // events since the ring was cleared, including overwritten ones
    uint64_t lost;           // events lost for lack of memory
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

// Reserves memory at the first event. Returns false if the host is out of memory; the event is then lost.
VR_NOINLINE bool vr_ring_open_locked(struct vr_ring *ring);

// Returns the entry for the next event, overwriting the oldest if the ring is full; NULL, counting the event as lost, if the host is out of
// memory. Called with the lock held.
VR_INLINE struct vr_event *vr_ring_next_locked(struct vr_ring *ring) {
    if (VR_UNLIKELY(ring->events == NULL) && !vr_ring_open_locked(ring)) return NULL;
    struct vr_event *event = &ring->events[ring->next++];
    if (VR_UNLIKELY(ring->next == ring->reserved)) ring->next = 0;
    if (ring->kept < ring->reserved) ring->kept++;
    ring->stored++;
    return event;
}

// Returns `count` consecutive entries if no wrap or allocation is needed; otherwise NULL: use vr_ring_next_locked(). Called with the lock
// held.
VR_INLINE struct vr_event *vr_ring_room_locked(struct vr_ring *ring, uint64_t count) {
    const uint64_t next = ring->next;
    if (VR_UNLIKELY(next + count >= ring->reserved)) return NULL; // also true if nothing is reserved
    ring->next = next + count;
    if (ring->kept != ring->reserved) ring->kept = next + count; // not full yet: vr_ring_check_locked()
    ring->stored += count;
    return &ring->events[next];
}

// Returns the number of events that count. Called with the lock held.
VR_INLINE uint64_t vr_ring_count_locked(const struct vr_ring *ring) { return ring->kept < ring->capacity ? ring->kept : ring->capacity; }

// Checks that no more is kept than reserved, and that entries are used from the beginning on. Called with the lock held.
bool vr_ring_check_locked(const struct vr_ring *ring);

// Removes all events and releases the memory.
void vr_ring_clear(struct vr_ring *ring);
// Sets the capacity (0 counts as 1); the newest existing events stay. NO_HOST_MEMORY, with nothing changed.
enum vram_status vr_ring_resize(struct vr_ring *ring, uint64_t capacity);
// Returns the number of events stored so far: a mark for vr_ring_copy().
uint64_t vr_ring_mark(struct vr_ring *ring);
// Copies the newest events before the mark, oldest first, into memory that the caller frees; events overwritten since then are missing.
// Other threads may store events meanwhile: the lock is released after every few thousand events. Must not run while another thread clears
// or resizes the ring. NO_HOST_MEMORY.
enum vram_status vr_ring_copy(struct vr_ring *ring, uint64_t mark, struct vr_event **events, size_t *count);

#endif
