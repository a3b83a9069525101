// vram/nccl.hpp: a pool whose memory is registered with NCCL, so that collectives use user buffers without a copy.
//
//     vram::nccl_registered registered(communicator);
//     vram_pool_options options = registered.options();
//     vram_pool_create(vram::process_allocator(), device, &options, &pool);   // every block of it: ncclMemAlloc, registered
//
// docs/in/nccl.md.
#ifndef VRAM_NCCL_HPP
#define VRAM_NCCL_HPP

#include <nccl.h>

#include <map>
#include <mutex>

#include "vram/plug.hpp"
#include "vram/pool.h"

namespace vram {

// Segments come from ncclMemAlloc() and stay registered with the communicator until they are freed. This object must outlive the pool's
// memory, and the communicator must outlive both: release the pool and empty the cache before ncclCommDestroy().
class nccl_registered {
  public:
    explicit nccl_registered(ncclComm_t communicator) noexcept : communicator_(communicator) {}
    nccl_registered(const nccl_registered &) = delete;
    nccl_registered &operator=(const nccl_registered &) = delete;

    vram_pool_options options() noexcept {
        vram_pool_options made{};
        made.allocate = allocate;
        made.deallocate = deallocate;
        made.user = this;
        return made;
    }
    // Returns the number of segments registered now. A segment that NCCL did not register is still usable.
    std::size_t count() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return handles_.size();
    }

  private:
    static std::uint64_t allocate(std::uint64_t bytes, std::uint32_t, std::uint64_t, void *user) noexcept {
        auto *self = static_cast<nccl_registered *>(user);
        void *place = nullptr, *handle = nullptr;
        if (ncclMemAlloc(&place, bytes) != ncclSuccess) return 0;
        if (ncclCommRegister(self->communicator_, place, bytes, &handle) == ncclSuccess) {
            try {
                const std::lock_guard<std::mutex> lock(self->mutex_);
                self->handles_[place] = handle;
            } catch (...) {
                (void)ncclCommDeregister(self->communicator_, handle);
            }
        }
        return VRAM_STREAM(place);
    }
    static void deallocate(std::uint64_t address, std::uint64_t, std::uint32_t, std::uint64_t, void *user) noexcept {
        auto *self = static_cast<nccl_registered *>(user);
        void *place = reinterpret_cast<void *>(static_cast<std::uintptr_t>(address)), *handle = nullptr;
        {
            const std::lock_guard<std::mutex> lock(self->mutex_);
            const auto found = self->handles_.find(place);
            if (found != self->handles_.end()) {
                handle = found->second;
                self->handles_.erase(found);
            }
        }
        if (handle != nullptr) (void)ncclCommDeregister(self->communicator_, handle);
        (void)ncclMemFree(place);
    }

    ncclComm_t communicator_;
    std::mutex mutex_;
    std::map<void *, void *> handles_;
};

} // namespace vram
#endif
