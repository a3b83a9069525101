// platform.h: whose devices a recording is of: NVIDIA's, AMD's or Huawei's. PyTorch writes the same keys for all; what tells them apart is
// what the frames name: the allocator's class, the runtime's functions and libraries, Triton's back end.
#ifndef VR_MODEL_PLATFORM_H
#define VR_MODEL_PLATFORM_H

#include "model/model.h"

enum vr_platform { VR_PLATFORM_UNKNOWN, VR_PLATFORM_CUDA, VR_PLATFORM_ROCM, VR_PLATFORM_ASCEND };

// ROCM where any frame or setting names it: PyTorch for ROCm is made from the sources for CUDA, and names that too. The
// same goes for ASCEND. Looks at every frame.
enum vr_platform vr_platform_of(const struct vr_model *model);
// Whether files of frames are paths of Windows. Looks at every frame.
bool vr_platform_is_windows(const struct vr_model *model);
// "CUDA", "ROCm", "Ascend", or "" where nothing tells. Static.
const char *vr_platform_name(enum vr_platform platform);
// The variable that every PyTorch for the platform reads its allocator's options from. Static.
const char *vr_platform_variable(enum vr_platform platform);

#endif
