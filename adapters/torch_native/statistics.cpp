// Returns the counters. vram's have PyTorch's names.
#include "native.h"

namespace vram_native {

namespace {

template <typename Stat> void copy(Stat &to, const struct vram_stat &from) {
    to.current = from.current;
    to.peak = from.peak;
    to.allocated = from.allocated;
    to.freed = from.freed;
}

template <typename Array> void copy_pools(Array &to, const struct vram_stat (&from)[VRAM_STAT_POOLS]) {
    static_assert(std::tuple_size_v<Array> == VRAM_STAT_POOLS, "all, small, large");
    for (size_t i = 0; i < VRAM_STAT_POOLS; i++) copy(to[i], from[i]);
}

template <typename Made> void copy_scalars(Made &to, const struct vram_stats &from) {
    to.num_alloc_retries = from.num_alloc_retries;
    to.num_ooms = from.num_ooms;
    to.num_sync_all_streams = from.num_sync_all_streams;
    to.num_device_alloc = from.num_device_alloc;
    to.num_device_free = from.num_device_free;
    to.max_split_size = from.max_split_size;
    if constexpr (requires { to.num_oom_rejections; }) to.num_oom_rejections = from.num_oom_rejections;
}

template <typename Made> void copy_private_pools(Made &to, Device device) {
    if constexpr (requires { to.reserved_bytes_by_private_pools; }) {
        std::vector<struct vram_pool_stats> pools(16);
        size_t count = pools.size();
        do {
            pools.resize(count);
            check(vram_get_all_pool_stats(made, static_cast<uint32_t>(device), pools.data(), pools.size(), &count), "statistics of pools");
        } while (count > pools.size());
        for (size_t i = 0; i < count; i++) copy_pools(to.reserved_bytes_by_private_pools[id_of(pools[i].id)], pools[i].reserved_bytes);
    }
}

} // namespace

Stats Native::getDeviceStats(Device device) {
    check_device(device);
    struct vram_stats from;
    Stats to;
    check(vram_get_stats(made, static_cast<uint32_t>(device), &from), "statistics");
#define VRAM_COPY_FAMILY(name, is_bytes, text) copy_pools(to.name, from.name);
    VRAM_STAT_FAMILIES(VRAM_COPY_FAMILY)
#undef VRAM_COPY_FAMILY
    copy(to.oversize_allocations, from.oversize_allocations);
    copy(to.oversize_segments, from.oversize_segments);
    copy_scalars(to, from);
    copy_private_pools(to, device);
    return to;
}

void Native::resetAccumulatedStats(Device device) {
    check_device(device);
    check(vram_reset_accumulated_stats(made, static_cast<uint32_t>(device)), "resetting the accumulated statistics");
}

void Native::resetPeakStats(Device device) {
    check_device(device);
    check(vram_reset_peak_stats(made, static_cast<uint32_t>(device)), "resetting the peak statistics");
}

} // namespace vram_native
