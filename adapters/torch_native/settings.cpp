// Implements limits, the cache, and queries of the allocator's settings.
#include "native.h"

#include <algorithm>
#include <cstring>

#include "../torch/inside.h"

namespace vram_native {

namespace {

bool is_async_backend(const struct vram_option *option, void *user) {
    auto *async = static_cast<bool *>(user);
    if (strcmp(option->key, "backend") == 0) *async = strcmp(option->value, "cudaMallocAsync") == 0;
    return true;
}

} // namespace

std::string configuration() {
    std::string text(1, '\0');
    for (size_t wanted = 0; (wanted = vram_configuration(made, text.data(), text.size())) >= text.size();) text.resize(wanted + 1);
    return text.c_str();
}

// Returns PyTorch's name of the backend, because programs compare it to decide what the allocator supports.
std::string Native::name() {
    bool is_async = false;
    const std::string options = made == nullptr ? std::string(vr_torch_environment_options()) : configuration();
    (void)!vram_options_list(options.c_str(), is_async_backend, &is_async, nullptr);
    return is_async ? "cudaMallocAsync" : "native";
}

double Native::getMemoryFraction(Device device) {
    check_device(device);
    double fraction = 1;
    check(vram_memory_fraction(made, static_cast<uint32_t>(device), &fraction), "memory fraction");
    return fraction;
}

void Native::setMemoryFraction(double fraction, Device device) {
    check_device(device);
    TORCH_CHECK(fraction >= 0 && fraction <= 1, "invalid fraction:", fraction, ". Please set within (0, 1).");
    check(vram_set_memory_fraction(made, static_cast<uint32_t>(device), fraction), "memory fraction");
}

void Native::enable(bool value) { vram_set_caching(made, value); }

bool Native::isEnabled() const { return vram_caching(made); }

void Native::emptyCache() {
    const vram_status trimmed = vr_torch_trim_tags();
    check(vram_empty_cache(made), "empty_cache");
    check(trimmed, "empty_cache");
}

void Native::emptyCache(PoolId pool) {
    if (pool.first == 0 && pool.second == 0) return emptyCache();
    for (int device = 0; device < device_count(); device++)
        check(vram_empty_cache_pool(made, static_cast<uint32_t>(device), id_of(pool)), "empty_cache of a pool");
}

// *largest is the caller's guess; 0: none.
void Native::cacheInfo(Device device, size_t *largest) {
    check_device(device);
    uint64_t free_bytes = 0, total_bytes = 0;
    if (*largest == 0) {
        check(vram_memory_info(made, static_cast<uint32_t>(device), &free_bytes, &total_bytes), "memory of the device");
        *largest = free_bytes;
    }
    struct vram_cache_info cache = {};
    check(vram_get_cache_info(made, static_cast<uint32_t>(device), &cache), "cache");
    *largest = std::max<size_t>(*largest, cache.largest_free_bytes);
}

std::vector<StreamSegment> Native::getExpandableSegmentSizes(Device device) {
    std::vector<struct vram_expandable_segment> segments(16);
    size_t count = segments.size();
    do {
        segments.resize(count);
        check(vram_expandable_segments(made, static_cast<uint32_t>(device), segments.data(), segments.size(), &count), "segments");
    } while (count > segments.size());
    std::vector<StreamSegment> sizes;
    for (size_t i = 0; i < count; i++)
        sizes.emplace_back(reinterpret_cast<cudaStream_t>(segments[i].stream), segments[i].small_pool, segments[i].mapped_bytes);
    return sizes;
}

} // namespace vram_native
