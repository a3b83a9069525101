// Growth that the allowance of a shard does not cover (counters.h).
#include "core/pair_hints.h"
#include "core/serve.h"

// Who waits for the lock of the other while it holds its own: two that want of each other do not both wait for long.
enum { SPINS_DOWN = 20, SPINS_UP = 200 };

static bool try_lock_for_long(const struct vr_shard *shard, struct vr_shard *other) {
    for (int spins = shard->number < other->number ? SPINS_UP : SPINS_DOWN; spins > 0; spins--) {
        const uint32_t state = atomic_load_explicit(&other->lock, memory_order_relaxed);
        if (state == VR_SHARD_RESTS) return false;
        if (state == VR_SHARD_OPEN && vr_shard_try_lock(other)) return true;
    }
    return false;
}

enum { PLENTY = 32 }; // requests like this one

static bool has_plenty(const struct vr_counters *lender, unsigned kind, const struct vr_delta *delta) {
    const int64_t size = delta->of[VR_F_BYTES] < 0 ? -delta->of[VR_F_BYTES] : delta->of[VR_F_BYTES];
    return vr_counters_both(lender, VR_F_COUNT) >= PLENTY && vr_counters_own(lender, kind, VR_F_COUNT) >= PLENTY &&
           vr_counters_both(lender, VR_F_BYTES) >= PLENTY * size && vr_counters_own(lender, kind, VR_F_BYTES) >= PLENTY * size;
}

bool vr_take_passed(struct vr_shard *shard, unsigned kind, uint64_t *address) {
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_shards *shards = &shard->device->shards;
    struct vr_pool *pool = &shard->pool[kind];
    struct vr_shard *lender = atomic_load_explicit(&shards->paired, memory_order_acquire);
    if (lender == NULL || lender == shard) return false;
    if (!vr_shard_try_lock(lender)) return false;
    struct vr_pool *theirs = &lender->pool[kind];
    const bool passes = theirs->ready != 0 && vr_hot_pairs_alike(&theirs->pair, &pool->pair);
    if (VR_LIKELY(passes)) {
        vr_hot_pair_pass(&lender->counters, &theirs->pair, &shard->counters, &pool->pair, kind, pool->lazy);
        theirs->ready = 0;
        atomic_store_explicit(&shards->paired, shard, memory_order_release);
    }
    vr_shard_unlock(lender);
    if (VR_UNLIKELY(!passes)) return false;
    struct vr_block *item = vr_block_at(allocator, pool->lazy);
    pool->lazy = 0;
    item->state = VR_ALLOCATED;
    item->labels = 0;
    *address = item->address;
    vr_pair_hint_set(allocator, shard, item);
    return true;
}

// All that a shard has to which a pair passed: the room of that pair is not with the rich one.
static bool take_what_passed(struct vr_shard *shard, const struct vr_shard *rich) {
    struct vr_shards *shards = &shard->device->shards;
    struct vr_shard *lender = atomic_load_explicit(&shards->paired, memory_order_acquire);
    if (lender == NULL || lender == rich || lender == shard || !vr_shard_try_lock(lender)) return false;
    for (unsigned p = 0; p < VR_POOLS; p++) vr_pool_close_pair(lender, p);
    vr_counters_take_over(&shard->counters, &lender->counters, true);
    vr_shard_unlock(lender);
    atomic_store_explicit(&shards->paired, shard, memory_order_release);
    return true;
}

// The rich shard gives of its allowance: half of it where that is plenty, so that two do not run to each other at each call; all where it
// is not, so that many in turn do not leave crumbs behind. A second lock, but one that is only tried: no two wait for each other for ever.
VR_INLINE bool borrow(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta) {
    struct vr_shards *shards = &shard->device->shards;
    struct vr_shard *lender = atomic_load_explicit(&shards->rich, memory_order_acquire);
    if (take_what_passed(shard, lender) && vr_counters_make_fit(&shard->counters, kind, delta, 0)) return true;
    if (lender == NULL || lender == shard || !try_lock_for_long(shard, lender)) return false;
    for (unsigned p = 0; p < VR_POOLS; p++) vr_pool_close_pair(lender, p);
    bool enough = false;
    if (has_plenty(&lender->counters, kind, delta)) {
        vr_counters_take_over(&shard->counters, &lender->counters, false);
        enough = vr_counters_make_fit(&shard->counters, kind, delta, 0);
    }
    if (!enough) vr_counters_take_over(&shard->counters, &lender->counters, true);
    vr_shard_unlock(lender);
    atomic_store_explicit(&shards->rich, shard, memory_order_release);
    atomic_store_explicit(&shards->paired, shard, memory_order_release);
    return enough || vr_counters_make_fit(&shard->counters, kind, delta, 0);
}

bool vr_shard_book_tight(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta) {
    struct vr_device *device = shard->device;
    bool fits = vr_counters_make_fit(&shard->counters, kind, delta, 0);
    // The other pool's pair keeps room for the higher of its two states.
    if (!fits && shard->pool[kind ^ 1].pair.block != 0) {
        vr_pool_close_pair(shard, kind ^ 1);
        fits = vr_counters_make_fit(&shard->counters, kind, delta, 0);
    }
    if (!fits && atomic_load_explicit(&device->shards.count, memory_order_acquire) == 1) {
        vr_totals_apply_single(&device->stats.totals, &shard->counters, kind, delta);
        return true;
    }
    if (!fits && !borrow(shard, kind, delta)) return false;
    vr_counters_apply(&shard->counters, kind, delta);
    return true;
}
