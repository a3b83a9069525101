// sim_unpack.h: compressed code in containers. nvcc's --compress made LZ4 blocks, since CUDA 12.8 it makes frames of Zstandard.
#ifndef VR_SIM_MODULES_SIM_UNPACK_H
#define VR_SIM_MODULES_SIM_UNPACK_H

#include "sim/modules/sim_image.h"

// A block of LZ4, strictly: the unpacked bytes are all of `to`, and the packed ones all that is needed for them or more.
bool vr_sim_unpack_lz4(void *to, size_t to_bytes, const void *from, size_t from_bytes);

#endif
