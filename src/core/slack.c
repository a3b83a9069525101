// Growth that the allowance of a shard does not cover.
#include "core/serve.h"

bool vr_shard_book_tight(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta) {
    struct vr_device *device = shard->device;
    // The other pool's pair keeps room for the higher of its two states.
    vr_pool_close_pair(shard, kind ^ 1);
    if (vr_counters_fit(&shard->counters, kind, delta)) {
        vr_counters_apply(&shard->counters, kind, delta);
        return true;
    }
    if (atomic_load_explicit(&device->shards.count, memory_order_acquire) != 1) return false;
    vr_totals_apply_single(&device->stats.totals, &shard->counters, kind, delta);
    return true;
}
