// Tests Thrust's vectors and algorithms on vram's memory. Computed values are not checked: the simulated device runs no kernels.
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>
#include <vram/thrust.hpp>

#include "expect.h"

static struct vram_stats stats() {
    struct vram_stats now;
    EXPECT(vram_get_stats(vram::process_allocator(), 0, &now) == VRAM_OK);
    return now;
}

int main() {
    enum { COUNT = 1 << 20 };
    cudaStream_t stream;
    EXPECT(cudaStreamCreate(&stream) == cudaSuccess);
    {
        thrust::device_vector<float, vram::thrust_allocator<float>> values(COUNT), copy;
        EXPECT((uint64_t)stats().allocated_bytes[VRAM_STAT_ALL].current == COUNT * sizeof(float));
        EXPECT(vram_allocated_size(vram::process_allocator(), VRAM_STREAM(thrust::raw_pointer_cast(values.data()))) >=
               COUNT * sizeof(float));
        copy = values;
        values.resize(2 * COUNT);
        EXPECT((uint64_t)stats().allocated_bytes[VRAM_STAT_ALL].current == 3 * COUNT * sizeof(float));

        // An algorithm's scratch memory comes from the cache in the second call.
        vram::thrust_temporary temporary(0, stream);
        thrust::sort(thrust::cuda::par(temporary).on(stream), values.begin(), values.end());
        const struct vram_stats before = stats();
        thrust::sort(thrust::cuda::par(temporary).on(stream), values.begin(), values.end());
        EXPECT(stats().segment[VRAM_STAT_ALL].allocated == before.segment[VRAM_STAT_ALL].allocated);
        EXPECT(stats().allocation[VRAM_STAT_ALL].allocated > before.allocation[VRAM_STAT_ALL].allocated);
        EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
    }
    EXPECT(stats().allocated_bytes[VRAM_STAT_ALL].current == 0);

    bool ran_out = false;
    try {
        thrust::device_vector<char, vram::thrust_allocator<char>> all((size_t)1 << 45);
    } catch (const std::bad_alloc &) {
        ran_out = true;
    }
    EXPECT(ran_out);
    return OK();
}
