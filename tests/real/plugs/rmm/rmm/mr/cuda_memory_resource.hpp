// In the place of RMM's header of this name, for RMM's own tests: what they test as the resource of cudaMalloc is vram's.
#pragma once
#include <vram/rmm.hpp>

namespace rmm::mr {
using cuda_memory_resource = vram::rmm_resource;
} // namespace rmm::mr
