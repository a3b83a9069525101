// vram/cccl.hpp: vram as a memory resource of CCCL (cuda::mr), for every version that has them.
//
// vram::memory_resource models cuda::mr::resource and cuda::mr::synchronous_resource (CCCL 3.1 and later), cuda::mr::async_resource and
// cuda::mr::resource (CCCL 2.2 to 3.0, with LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE), with the property cuda::mr::device_accessible.
// Memory freed on a stream is reused there at once, and on any other stream after its work. How to use it: docs/in/cccl.md.
#ifndef VRAM_CCCL_HPP
#define VRAM_CCCL_HPP

#include <cuda/memory_resource>
#include <cuda/stream_ref>

#include "vram/plug.hpp"

namespace vram {

// One device's memory. OutOfMemory is the exception thrown when memory runs out (RMM requires its own). Copies are the same resource.
template <class OutOfMemory = std::bad_alloc> class basic_memory_resource {
  public:
    explicit basic_memory_resource(std::uint32_t device = 0) noexcept : device_(device) {}

    // CCCL 3.1 and later.
    void *allocate(::cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = 256) {
        return get(bytes, alignment, stream.get());
    }
    void deallocate(::cuda::stream_ref stream, void *pointer, std::size_t, std::size_t = 256) noexcept { put(pointer, stream); }
    void *allocate_sync(std::size_t bytes, std::size_t alignment = 256) { return get(bytes, alignment, nullptr); }
    // The caller guarantees that the block is no longer in use.
    void deallocate_sync(void *pointer, std::size_t, std::size_t = 256) noexcept { untold(vram_free(process_allocator(), number(pointer))); }

    // CCCL before 3.1.
    void *allocate(std::size_t bytes, std::size_t alignment = 256) { return allocate_sync(bytes, alignment); }
    void deallocate(void *pointer, std::size_t bytes, std::size_t = 256) noexcept { deallocate_sync(pointer, bytes); }
    void *allocate_async(std::size_t bytes, std::size_t alignment, ::cuda::stream_ref stream) { return allocate(stream, bytes, alignment); }
    void *allocate_async(std::size_t bytes, ::cuda::stream_ref stream) { return allocate(stream, bytes); }
    void deallocate_async(void *pointer, std::size_t bytes, std::size_t, ::cuda::stream_ref stream) noexcept {
        deallocate(stream, pointer, bytes);
    }
    void deallocate_async(void *pointer, std::size_t bytes, ::cuda::stream_ref stream) noexcept { deallocate(stream, pointer, bytes); }

    std::uint32_t device() const noexcept { return device_; }
    bool operator==(const basic_memory_resource &other) const noexcept { return device_ == other.device_; }
    bool operator!=(const basic_memory_resource &other) const noexcept { return device_ != other.device_; }
    friend constexpr void get_property(const basic_memory_resource &, ::cuda::mr::device_accessible) noexcept {}

  private:
    static std::uint64_t number(void *pointer) noexcept { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)); }

    void *get(std::size_t bytes, std::size_t alignment, const void *stream) const {
        try {
            return take(device_, bytes, alignment, stream);
        } catch (const std::bad_alloc &) {
            if constexpr (std::is_constructible_v<OutOfMemory, const char *>) {
                char text[1024] = "vram: out of memory";
                vram_oom oom;
                if (vram_last_oom(&oom)) (void)vram_oom_text(&oom, text, sizeof text);
                throw OutOfMemory(static_cast<const char *>(text));
            } else {
                throw OutOfMemory();
            }
        }
    }

    void put(void *pointer, ::cuda::stream_ref stream) const noexcept {
        if (!is_per_thread(stream.get())) return (void)give(pointer, stream.get());
        if (wait(stream, 0)) (void)give(pointer, nullptr);
    }

    // CCCL calls it sync(), formerly wait(). Returns false if it failed; the block then stays live.
    template <class Stream> static auto wait(Stream stream, int) noexcept -> decltype(stream.sync(), true) {
        try {
            return stream.sync(), true;
        } catch (...) {
            return false;
        }
    }
    template <class Stream> static auto wait(Stream stream, long) noexcept -> decltype(stream.wait(), true) {
        try {
            return stream.wait(), true;
        } catch (...) {
            return false;
        }
    }

    std::uint32_t device_;
};

using memory_resource = basic_memory_resource<>;

} // namespace vram
#endif
