// Replaces RMM's header of this name in RMM's own tests, so that they test vram's resource instead of the one of cudaMalloc.
#pragma once
#include <vram/rmm.hpp>

namespace rmm::mr {
using cuda_memory_resource = vram::rmm_resource;
} // namespace rmm::mr
