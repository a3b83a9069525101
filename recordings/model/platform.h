// platform.h: which platform a recording is from: CUDA, ROCm or Ascend. PyTorch writes the same keys for all; the frames differ: the
// allocator's class, the runtime's functions and libraries, Triton's back end.
#ifndef VR_MODEL_PLATFORM_H
#define VR_MODEL_PLATFORM_H

#include "model/model.h"

enum vr_platform { VR_PLATFORM_UNKNOWN, VR_PLATFORM_CUDA, VR_PLATFORM_ROCM, VR_PLATFORM_ASCEND };

// Returns ROCM or ASCEND if any frame or setting names it, even with names of CUDA: PyTorch for those platforms is made from the CUDA
// sources and keeps such names. Looks at every frame.
enum vr_platform vr_platform_of(const struct vr_model *model);
// Returns whether frames name Windows paths. Looks at every frame.
bool vr_platform_is_windows(const struct vr_model *model);
// Returns "CUDA", "ROCm", "Ascend", or "" if unknown. Static.
const char *vr_platform_name(enum vr_platform platform);
// Returns the environment variable from which every PyTorch for the platform reads its allocator's options. Static.
const char *vr_platform_variable(enum vr_platform platform);

#endif
