// Tests vram::tensorrt_allocator through TensorRT's documented interface: the calls a runtime makes through a pointer to
// nvinfer1::IGpuAllocator. The library itself carries NVIDIA's static runtime, which accepts only NVIDIA's driver.
#include <cuda_runtime_api.h>
#include <vram/tensorrt.hpp>

#include <cstring>

#include "expect.h"

int main() {
    vram::tensorrt_allocator ours(0);
    nvinfer1::IGpuAllocator &allocator = ours;
    const nvinfer1::InterfaceInfo info = allocator.getInterfaceInfo();
    EXPECT(std::strcmp(info.kind, "IGpuAllocator") == 0 && info.major == 1);
    cudaStream_t stream;
    EXPECT(cudaStreamCreate(&stream) == cudaSuccess);

    const nvinfer1::AllocatorFlags resizable = 1U << static_cast<int>(nvinfer1::AllocatorFlag::kRESIZABLE);
    void *weights = allocator.allocateAsync(3000, 256, resizable, stream);
    EXPECT(weights != nullptr && (uintptr_t)weights % 256 == 0);
    EXPECT(cudaMemsetAsync(weights, 1, 3000, stream) == cudaSuccess);
    EXPECT(allocator.reallocate(weights, 256, 3050) == weights); // the block has 3,072 bytes
    EXPECT(allocator.reallocate(weights, 256, 1 << 20) == nullptr);
    EXPECT(allocator.deallocateAsync(weights, stream) && allocator.deallocateAsync(nullptr, stream));
    EXPECT(allocator.allocateAsync(3000, 256, 0, stream) == weights); // the same stream reuses it at once
    EXPECT(allocator.deallocateAsync(weights, stream));
    EXPECT(!allocator.deallocateAsync(weights, stream)); // not a block any more

    EXPECT(allocator.allocateAsync(0, 256, 0, stream) == nullptr && allocator.allocateAsync(100, 1024, 0, stream) == nullptr);
    EXPECT(allocator.allocateAsync((uint64_t)1 << 50, 256, 0, stream) == nullptr);
    void *of_thread = allocator.allocateAsync(100, 256, 0, cudaStreamPerThread);
    EXPECT(of_thread != nullptr && allocator.deallocateAsync(of_thread, cudaStreamPerThread));
    return OK();
}
