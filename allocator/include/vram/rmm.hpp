// vram/rmm.hpp: vram as a device memory resource of RMM (RAPIDS Memory Manager).
//
// Use it as the upstream of any RMM adaptor, or as the device's resource: rmm::mr::set_current_device_resource(vram::rmm_resource{}). It is
// itself a pool, so RMM's pools are not needed on top. docs/in/rmm.md.
#ifndef VRAM_RMM_HPP
#define VRAM_RMM_HPP

#include <rmm/cuda_device.hpp>
#include <rmm/error.hpp>

#include "vram/cccl.hpp"

namespace vram {

// Serves the device that is current at construction, or the one given. Throws rmm::out_of_memory with vram's report.
class rmm_resource : public basic_memory_resource<::rmm::out_of_memory> {
  public:
    rmm_resource() : rmm_resource(::rmm::get_current_cuda_device()) {}
    explicit rmm_resource(::rmm::cuda_device_id device) noexcept : basic_memory_resource(static_cast<std::uint32_t>(device.value())) {}
    friend constexpr void get_property(const rmm_resource &, ::cuda::mr::device_accessible) noexcept {}
};

} // namespace vram
#endif
