// Tests vram::memory_resource with CCCL's concepts and type-erased references, in the version the compiler finds.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#include <cuda/std/version>

#include <cuda_runtime_api.h>
#include <vram/cccl.hpp>

#include "expect.h"

namespace mr = cuda::mr;
#if CCCL_MAJOR_VERSION > 3 || (CCCL_MAJOR_VERSION == 3 && CCCL_MINOR_VERSION >= 1)
static_assert(mr::synchronous_resource_with<vram::memory_resource, mr::device_accessible>);
static_assert(mr::resource_with<vram::memory_resource, mr::device_accessible>);
static_assert(!mr::resource_with<vram::memory_resource, mr::host_accessible>);
using device_ref = mr::resource_ref<mr::device_accessible>;
static void *take(device_ref from, cuda::stream_ref stream, size_t bytes) { return from.allocate(stream, bytes, 256); }
static void give(device_ref to, cuda::stream_ref stream, void *place, size_t bytes) { to.deallocate(stream, place, bytes, 256); }
static void *take_sync(device_ref from, size_t bytes) { return from.allocate_sync(bytes, 256); }
static void give_sync(device_ref to, void *place, size_t bytes) { to.deallocate_sync(place, bytes, 256); }
#else
static_assert(mr::resource_with<vram::memory_resource, mr::device_accessible>);
static_assert(mr::async_resource_with<vram::memory_resource, mr::device_accessible>);
static_assert(!mr::resource_with<vram::memory_resource, mr::host_accessible>);
using device_ref = mr::async_resource_ref<mr::device_accessible>;
static void *take(device_ref from, cuda::stream_ref stream, size_t bytes) { return from.allocate_async(bytes, 256, stream); }
static void give(device_ref to, cuda::stream_ref stream, void *place, size_t bytes) { to.deallocate_async(place, bytes, 256, stream); }
static void *take_sync(device_ref from, size_t bytes) { return from.allocate(bytes, 256); }
static void give_sync(device_ref to, void *place, size_t bytes) { to.deallocate(place, bytes, 256); }
#endif

static uint64_t live_bytes() {
    struct vram_stats stats;
    EXPECT(vram_get_stats(vram::process_allocator(), 0, &stats) == VRAM_OK);
    return (uint64_t)stats.allocated_bytes[VRAM_STAT_ALL].current;
}

static bool runs_out(device_ref resource, size_t bytes, cuda::stream_ref stream) {
    try {
        (void)take(resource, stream, bytes);
        return false;
    } catch (const std::bad_alloc &) {
        vram_oom oom;
        return vram_last_oom(&oom) && oom.requested_bytes == bytes;
    }
}

int main() {
    vram::memory_resource resource(0), same(0), other(1);
    EXPECT(resource == same && resource != other);
    device_ref erased(resource);
    cudaStream_t first, second;
    EXPECT(cudaStreamCreate(&first) == cudaSuccess && cudaStreamCreate(&second) == cudaSuccess);

    void *a = take(erased, cuda::stream_ref(first), 3 << 20);
    EXPECT(a != nullptr && (uintptr_t)a % 512 == 0 && live_bytes() == 3 << 20);
    cudaPointerAttributes attributes{};
    EXPECT(cudaPointerGetAttributes(&attributes, a) == cudaSuccess && attributes.type == cudaMemoryTypeDevice);
    EXPECT(cudaMemsetAsync(a, 1, 3 << 20, first) == cudaSuccess);
    give(erased, cuda::stream_ref(first), a, 3 << 20);
    EXPECT(take(erased, cuda::stream_ref(first), 3 << 20) == a); // the same stream reuses it at once

    // Freed on another, busy stream: not reused until that stream's work is done.
    EXPECT(cudaMemsetAsync(a, 2, 3 << 20, second) == cudaSuccess);
    give(erased, cuda::stream_ref(second), a, 3 << 20);
    EXPECT(cudaStreamSynchronize(second) == cudaSuccess);
    void *b = take(erased, cuda::stream_ref(first), 3 << 20);
    EXPECT(b == a && live_bytes() == 3 << 20);
    give(erased, cuda::stream_ref(first), b, 3 << 20);

    void *c = take_sync(erased, 1000), *d = take(erased, cuda::stream_ref(cudaStreamPerThread), 1000);
    EXPECT(c != nullptr && d != nullptr && c != d && take_sync(erased, 0) == nullptr);
    give_sync(erased, c, 1000);
    give(erased, cuda::stream_ref(cudaStreamPerThread), d, 1000);
    EXPECT(live_bytes() == 0);
    EXPECT(runs_out(erased, (size_t)1 << 50, cuda::stream_ref(first)));
    return OK();
}
