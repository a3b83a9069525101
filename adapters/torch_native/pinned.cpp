// Implements the pinned host allocator that at::getHostAllocator() returns.
#include "torch_versions.h"

#if VRAM_TORCH_HAS_HOST_ALLOCATOR

#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

#include "install.h"
#include "pinned_history.h"
#include "vram/host.h"

namespace vram_native {

namespace {

using HostFilter = std::function<bool(c10::Stream)>;

struct vram_host *host; // created at the first request, under pinned_mutex; never destroyed: tensors may outlive any such point
std::mutex pinned_mutex;
std::vector<std::string> host_settings; // settings made before it was created, in order; under pinned_mutex

struct HostPool {
    struct vram_host_pool *pool = nullptr; // holds one reference
    int references = 0;                    // from PyTorch
};
std::map<PoolId, HostPool> host_pools; // under pinned_mutex

struct HostRoute {
    PoolId id;
    HostFilter filter;
};
std::vector<HostRoute> host_routes; // open, oldest first; under pinned_mutex
std::atomic<size_t> host_route_count;

void host_check(vram_status status, const char *what) { TORCH_CHECK(status == VRAM_OK, "vram: ", what, ": ", vram_status_text(status)); }

struct vram_host *made_host() {
    const std::lock_guard<std::mutex> lock(pinned_mutex);
    if (host != nullptr) return host;
    struct vram_error error = {};
    const vram_status status = vram_host_create(nullptr, &host, &error);
    TORCH_CHECK(status == VRAM_OK, "vram: ", error.message[0] != '\0' ? error.message : vram_status_text(status));
    for (const std::string &conf : host_settings) host_check(vram_host_configure(host, conf.c_str(), nullptr), "settings of pinned memory");
    host_settings.clear();
    listen_to_pinned(host);
    return host;
}

void delete_pinned(void *pointer) {
    const PinnedCall call(RecordContext::ALL);
    const vram_status status = vram_host_free(host, pointer);
    // As in delete_block(): a block that the driver refused is freed nevertheless, and unknown the second time.
    if (status == VRAM_DRIVER && vram_host_free(host, pointer) != VRAM_DRIVER) return;
    host_check(status, "free of pinned memory");
}

// Returns the pool to which the calling thread's current stream is routed, by the newest route; NULL: the default pool.
struct vram_host_pool *routed_pool(c10::cuda::CUDAStream stream) {
    const std::lock_guard<std::mutex> lock(pinned_mutex);
    for (size_t i = host_routes.size(); i-- > 0;)
        if (host_routes[i].filter(stream.unwrap())) return host_pools[host_routes[i].id].pool;
    return nullptr;
}

vram_status request_pinned(size_t size, void **pointer) {
    struct vram_host *from = made_host();
    if (host_route_count.load(std::memory_order_acquire) == 0) return vram_host_malloc(from, size, 0, pointer);
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    struct vram_host_pool *pool = routed_pool(stream);
    return pool == nullptr ? vram_host_malloc(from, size, VRAM_STREAM(stream.stream()), pointer)
                           : vram_host_pool_malloc(pool, size, VRAM_STREAM(stream.stream()), pointer);
}

template <typename Stat> void copy_host(Stat &to, const struct vram_stat &from) {
    to.current = from.current;
    to.peak = from.peak;
    to.allocated = from.allocated;
    to.freed = from.freed;
}

// Copies times, which PyTorch counts in microseconds.
template <typename Time> void copy_time(Time &to, const struct vram_host_time &from) {
    to.total = static_cast<int64_t>(from.total_ns / 1000);
    to.max = static_cast<int64_t>(from.max_ns / 1000);
    to.min = static_cast<int64_t>(from.min_ns / 1000);
    to.count = static_cast<int64_t>(from.count);
}

// Names differ between versions: active memory was once `allocation` and `allocated_bytes`, reserved memory `segment` and `reserved_bytes`.
template <typename Made> void copy_host_stats(Made &to, const struct vram_host_stats &from) {
    if constexpr (requires { to.reserved_bytes; }) {
        copy_host(to.allocation, from.active_requests);
        copy_host(to.allocated_bytes, from.active_bytes);
        copy_host(to.segment, from.allocations);
        copy_host(to.reserved_bytes, from.allocated_bytes);
    } else {
        copy_host(to.active_requests, from.active_requests);
        copy_host(to.active_bytes, from.active_bytes);
        copy_host(to.allocations, from.allocations);
        copy_host(to.allocated_bytes, from.allocated_bytes);
    }
    copy_time(to.host_alloc_time, from.host_alloc_time);
    copy_time(to.host_free_time, from.host_free_time);
    to.num_host_alloc = from.allocations.allocated;
    to.num_host_free = from.allocations.freed;
    if constexpr (requires { to.bucket_allocation; })
        for (size_t i = 0; i < VRAM_HOST_BUCKETS && i < to.bucket_allocation.size(); i++)
            to.bucket_allocation[i] = static_cast<int64_t>(from.bucket_allocation[i]);
}

// As in Native, `override` is omitted if versions differ.
class Pinned final : public at::HostAllocator {
  public:
    c10::DataPtr allocate(size_t size) override {
        void *pointer = nullptr;
        const PinnedCall call(RecordContext::STATE);
        if (size != 0) host_check(request_pinned(size, &pointer), "pinned memory");
        return {pointer, pointer, &delete_pinned, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &delete_pinned; }
    void copy_data(void *to, const void *from, size_t size) const override { default_copy_data(to, from, size); }

    // Returns false for memory of other allocators. The context is the block's first byte; a view has another pointer.
    bool record_event(void *pointer, void *context, c10::Stream stream) override {
        if (host == nullptr) return false;
        const uint64_t handle = VRAM_STREAM(c10::cuda::CUDAStream(stream).stream());
        vram_status status = VRAM_INVALID_POINTER;
        for (void *const known : {context, pointer})
            if (status == VRAM_INVALID_POINTER && known != nullptr) status = vram_host_record_stream(host, known, handle);
        if (status == VRAM_INVALID_POINTER) return false;
        host_check(status, "recording a use of pinned memory");
        return true;
    }
    void empty_cache() override {
        if (host != nullptr) host_check(vram_host_empty_cache(host), "empty_cache of pinned memory");
    }
    at::HostStats get_stats() override {
        at::HostStats to;
        struct vram_host_stats from = {};
        if (host != nullptr) vram_get_host_stats(host, &from);
        copy_host_stats(to, from);
        return to;
    }
    void reset_accumulated_stats() override {
        if (host != nullptr) vram_host_reset_accumulated_stats(host);
    }
    void reset_peak_stats() override {
        if (host != nullptr) vram_host_reset_peak_stats(host);
    }

    void record_history(bool enabled, MakeContext make, size_t most, RecordContext when, bool clear) {
        const std::lock_guard<std::mutex> lock(pinned_mutex);
        record_pinned_history(host, enabled, make, most, when, clear);
    }
    bool is_history_enabled() const { return pinned_history_is_enabled(); }
    HostSegments get_segments() { return pinned_segments(host); }
    Trace get_traces() { return pinned_traces(); }
    void record_external_register(void *pointer, size_t size) { note_registered(pointer, size); }
    void record_external_unregister(void *pointer) { note_unregistered(pointer); }

    void begin_allocate_to_pool(PoolId id, std::function<bool(c10::Stream)> filter) {
        struct vram_host *of = made_host();
        const std::lock_guard<std::mutex> lock(pinned_mutex);
        HostPool &pool = host_pools[id];
        const struct vram_host_pool_options options = {id.first != 0};
        if (pool.pool == nullptr) host_check(vram_host_pool_create(of, &options, &pool.pool), "creating a pool of pinned memory");
        pool.references++;
        host_routes.push_back({id, std::move(filter)});
        host_route_count.store(host_routes.size(), std::memory_order_release);
    }
    void end_allocate_to_pool(PoolId id) {
        const std::lock_guard<std::mutex> lock(pinned_mutex);
        for (size_t i = host_routes.size(); i-- > 0;) {
            if (host_routes[i].id != id) continue;
            host_routes.erase(host_routes.begin() + static_cast<ptrdiff_t>(i));
            host_route_count.store(host_routes.size(), std::memory_order_release);
            return;
        }
    }
    void release_pool(PoolId id) {
        const std::lock_guard<std::mutex> lock(pinned_mutex);
        const auto found = host_pools.find(id);
        if (found == host_pools.end() || --found->second.references > 0) return;
        vram_host_pool_release(found->second.pool);
        host_pools.erase(found);
    }
};

} // namespace

} // namespace vram_native

extern "C" void vram_native_install_pinned(void) {
    static vram_native::Pinned *const pinned = new vram_native::Pinned; // outlives every tensor
    at::setHostAllocator(c10::DeviceType::CUDA, pinned, UINT8_MAX);
}

extern "C" int vram_native_configure_pinned(const char *conf) {
    const std::lock_guard<std::mutex> lock(vram_native::pinned_mutex);
    if (vram_native::host != nullptr) return vram_host_configure(vram_native::host, conf, nullptr);
    vram_native::host_settings.emplace_back(conf);
    return VRAM_OK;
}

#else

#include "install.h"
#include "vram/status.h"

extern "C" void vram_native_install_pinned(void) {}

extern "C" int vram_native_configure_pinned(const char *conf) {
    (void)conf;
    return VRAM_OK;
}

#endif
