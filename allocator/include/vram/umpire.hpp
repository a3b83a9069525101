// vram/umpire.hpp: vram as an allocation strategy of Umpire.
//
//     auto &manager = umpire::ResourceManager::getInstance();
//     auto allocator = manager.makeAllocator<vram::umpire_strategy>("vram", 0); // of device 0
//
// The strategy is itself a pool, so Umpire's pools are not needed on top. Umpire's records are kept, so that its copies and queries work.
// docs/in/umpire.md.
#ifndef VRAM_UMPIRE_HPP
#define VRAM_UMPIRE_HPP

#include <string>

#include <umpire/strategy/AllocationStrategy.hpp>
#include <umpire/util/error.hpp>

#include "vram/plug.hpp"

namespace vram {

class umpire_strategy : public ::umpire::strategy::AllocationStrategy {
  public:
    // `stream`: where the memory is used; freed memory is reused on it at once.
    umpire_strategy(const std::string &name, int id, std::uint32_t device = 0, const void *stream = nullptr)
        : AllocationStrategy(name, id, nullptr, "vram"), device_(device), stream_(stream) {}

    ::umpire::Platform getPlatform() noexcept override { return ::umpire::Platform::cuda; }
    ::umpire::MemoryResourceTraits getTraits() const noexcept override {
        ::umpire::MemoryResourceTraits traits;
        traits.id = static_cast<int>(device_);
        traits.vendor = ::umpire::MemoryResourceTraits::vendor_type::nvidia;
        traits.kind = ::umpire::MemoryResourceTraits::memory_type::hbm;
        traits.used_for = ::umpire::MemoryResourceTraits::optimized_for::any;
        traits.resource = ::umpire::MemoryResourceTraits::resource_type::device;
        return traits;
    }
    // Returns the bytes that the process's allocator holds from the driver on this device, for all its users.
    std::size_t getActualSize() const noexcept override {
        struct vram_stats stats;
        const bool known = vram_get_stats(process_allocator(), device_, &stats) == VRAM_OK;
        return known ? static_cast<std::size_t>(stats.reserved_bytes[VRAM_STAT_ALL].current) : 0;
    }
    void release() override { untold(vram_empty_cache_device(process_allocator(), device_)); }

  private:
    void *allocate(std::size_t bytes) override {
        try {
            return take(device_, bytes, 256, stream_);
        } catch (const std::bad_alloc &) {
            char text[1024] = "vram: out of memory";
            vram_oom oom;
            if (vram_last_oom(&oom)) (void)vram_oom_text(&oom, text, sizeof text);
            UMPIRE_ERROR(::umpire::out_of_memory_error, text);
        }
    }
    void deallocate(void *pointer, std::size_t = 0) override {
        if (!give(pointer, stream_)) UMPIRE_ERROR(::umpire::runtime_error, "vram: no live block");
    }

    std::uint32_t device_;
    const void *stream_;
};

} // namespace vram
#endif
