#include "history/ring.h"

// Returns the number of events that may come during a copy without overwriting one of the newest.
static uint64_t ring_slack(uint64_t capacity) { return (capacity < 4096 ? capacity : 4096) + 64; }

// Reserves address space, which may be limited: less room, down to a page of events, is better than none.
static struct vr_event *reserve_events(uint64_t capacity, uint64_t *reserved) {
    for (uint64_t entries = capacity + ring_slack(capacity); entries >= 64; entries /= 2) {
        void *memory = NULL;
        if (entries <= SIZE_MAX / sizeof(struct vr_event) && vr_os_reserve((size_t)entries * sizeof(struct vr_event), &memory) == VRAM_OK) {
            *reserved = entries;
            return memory;
        }
    }
    return NULL;
}

static void give_back(struct vr_ring *ring) {
    vr_os_unreserve(ring->events, (size_t)ring->reserved * sizeof *ring->events);
    ring->events = NULL;
    ring->reserved = ring->next = ring->kept = 0;
}

bool vr_ring_open_locked(struct vr_ring *ring) {
    ring->events = reserve_events(ring->capacity, &ring->reserved);
    if (ring->events == NULL) ring->lost++;
    return ring->events != NULL;
}

bool vr_ring_check_locked(const struct vr_ring *ring) {
    if (ring->capacity == 0 || ring->capacity > VR_RING_MOST || ring->kept > ring->stored) return false;
    if (ring->events == NULL) return ring->reserved == 0 && ring->next == 0 && ring->kept == 0;
    if (ring->next >= ring->reserved || ring->kept > ring->reserved) return false;
    return ring->kept == ring->reserved || ring->next == ring->kept;
}

void vr_ring_clear(struct vr_ring *ring) {
    vr_ring_lock(ring);
    give_back(ring);
    ring->stored = ring->lost = 0;
    vr_ring_unlock(ring);
}

// Copies the newest `count` events, oldest first.
static void copy_newest(const struct vr_ring *ring, uint64_t count, struct vr_event *to) {
    if (count == 0) return;
    const uint64_t start = (ring->next + ring->reserved - count) % ring->reserved;
    const uint64_t head = count < ring->reserved - start ? count : ring->reserved - start;
    memcpy(to, ring->events + start, (size_t)head * sizeof *to);
    memcpy(to + head, ring->events, (size_t)(count - head) * sizeof *to);
}

static enum vram_status resize_locked(struct vr_ring *ring, uint64_t capacity) {
    if (ring->events == NULL || capacity == ring->capacity) {
        ring->capacity = capacity;
        return VRAM_OK;
    }
    uint64_t reserved = 0;
    struct vr_event *events = reserve_events(capacity, &reserved);
    if (events == NULL) return VRAM_NO_HOST_MEMORY;
    const uint64_t count = vr_ring_count_locked(ring), room = capacity < reserved ? capacity : reserved;
    const uint64_t kept = count < room ? count : room;
    copy_newest(ring, kept, events);
    give_back(ring);
    ring->events = events;
    ring->capacity = capacity;
    ring->reserved = reserved;
    ring->kept = kept;
    ring->next = kept % reserved;
    return VRAM_OK;
}

enum vram_status vr_ring_resize(struct vr_ring *ring, uint64_t capacity) {
    if (capacity == 0) capacity = 1;
    if (capacity > VR_RING_MOST) capacity = VR_RING_MOST;
    vr_ring_lock(ring);
    const enum vram_status status = resize_locked(ring, capacity);
    assert(ring->capacity == capacity || status != VRAM_OK);
    vr_ring_unlock(ring);
    return status;
}

uint64_t vr_ring_mark(struct vr_ring *ring) {
    vr_ring_lock(ring);
    const uint64_t mark = ring->stored;
    vr_ring_unlock(ring);
    return mark;
}

// Copies some events from `from` on, or from a later one if that was overwritten, up to the mark. Returns the next event to copy.
static uint64_t copy_some(struct vr_ring *ring, uint64_t from, uint64_t mark, struct vr_event *to, size_t *copied) {
    enum { AT_ONCE = 4096 };
    vr_ring_lock(ring);
    const uint64_t oldest = ring->stored - ring->kept;
    if (from < oldest) from = oldest;
    *copied = from >= mark ? 0 : mark - from < AT_ONCE ? (size_t)(mark - from) : AT_ONCE;
    for (size_t i = 0; i < *copied; i++) {
        to[i] = ring->events[(ring->next + ring->reserved - (ring->stored - from) + i) % ring->reserved];
    }
    vr_ring_unlock(ring);
    return from + *copied;
}

enum vram_status vr_ring_copy(struct vr_ring *ring, uint64_t mark, struct vr_event **events, size_t *count) {
    vr_ring_lock(ring);
    assert(mark <= ring->stored);
    const uint64_t there = ring->stored - ring->kept, counting = mark > ring->capacity ? mark - ring->capacity : 0;
    vr_ring_unlock(ring);
    const uint64_t oldest = there > counting ? there : counting;
    const uint64_t most = mark > oldest ? mark - oldest : 0;
    struct vr_event *copy = malloc((size_t)(most + 1) * sizeof *copy);
    if (copy == NULL) return VRAM_NO_HOST_MEMORY;
    size_t copied = 0;
    *count = 0;
    for (uint64_t at = oldest; at < mark; *count += copied) at = copy_some(ring, at, mark, copy + *count, &copied);
    *events = copy;
    return VRAM_OK;
}
