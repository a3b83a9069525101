// stat.h: counters in the form of PyTorch's statistics.
#ifndef VR_BASE_STAT_H
#define VR_BASE_STAT_H

#include "base/base.h"
#include "vram/stats.h"

// Called under the lock that guards the counter.
VR_INLINE void vr_stat_add(struct vram_stat *stat, int64_t change) {
    stat->current += change;
    if (change > 0) {
        stat->allocated += change;
        if (stat->current > stat->peak) stat->peak = stat->current;
    } else {
        stat->freed -= change;
    }
}

#endif
