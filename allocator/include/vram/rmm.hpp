// vram/rmm.hpp: vram as a device memory resource of RMM (RAPIDS Memory Manager).
//
// An upstream for any of RMM's adaptors, or the resource of the device itself: rmm::mr::set_current_device_resource(vram::rmm_resource{}).
// RMM's own pools are not needed above it: it is one. docs/in/rmm.md.
#ifndef VRAM_RMM_HPP
#define VRAM_RMM_HPP

#include <rmm/cuda_device.hpp>
#include <rmm/error.hpp>

#include "vram/cccl.hpp"

namespace vram {

// Of the device that is current where it is made, unless one is named; memory that runs out is rmm::out_of_memory with vram's report in it.
class rmm_resource : public basic_memory_resource<::rmm::out_of_memory> {
  public:
    rmm_resource() : rmm_resource(::rmm::get_current_cuda_device()) {}
    explicit rmm_resource(::rmm::cuda_device_id device) noexcept : basic_memory_resource(static_cast<std::uint32_t>(device.value())) {}
    friend constexpr void get_property(const rmm_resource &, ::cuda::mr::device_accessible) noexcept {}
};

} // namespace vram
#endif
