// vram/tensorrt.hpp: vram as the allocator of TensorRT's builders, runtimes and execution contexts (TensorRT 10 and later).
//
//     vram::tensorrt_allocator allocator(0);
//     runtime->setGpuAllocator(&allocator); // before engines are made of it; it must outlive them
//
// docs/in/tensorrt.md.
#ifndef VRAM_TENSORRT_HPP
#define VRAM_TENSORRT_HPP

#include <NvInferRuntime.h>

#include "vram/plug.hpp"

namespace vram {

// Thread-safe, as TensorRT requires. Memory belongs to the stream of the request, or else to the legacy default stream.
class tensorrt_allocator : public ::nvinfer1::IGpuAsyncAllocator {
  public:
    explicit tensorrt_allocator(std::uint32_t device = 0) noexcept : device_(device) {}

    // Returns nullptr for 0 bytes, if memory runs out (vram_last_oom() has the report), or for an alignment that no block has.
    void *allocateAsync(std::uint64_t const size, std::uint64_t const alignment, ::nvinfer1::AllocatorFlags const,
                        cudaStream_t stream) noexcept override {
        try {
            return size == 0 ? nullptr : take(device_, size, alignment, stream);
        } catch (...) {
            return nullptr;
        }
    }
    bool deallocateAsync(void *const memory, cudaStream_t stream) noexcept override {
        if (memory == nullptr) return true;
        if (is_per_thread(stream) && cudaStreamSynchronize(stream) != cudaSuccess) return false;
        return give(memory, is_per_thread(stream) ? nullptr : stream);
    }
    // Returns the same block if it is large enough; otherwise nullptr, leaving the block live.
    void *reallocate(void *const memory, std::uint64_t alignment, std::uint64_t size) noexcept override {
        const std::uint64_t address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
        return alignment <= 512 && size != 0 && vram_allocated_size(process_allocator(), address) >= size ? memory : nullptr;
    }

  private:
    std::uint32_t device_;
};

} // namespace vram
#endif
