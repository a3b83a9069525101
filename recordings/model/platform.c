// Detects a recording's platform by the names in its frames.
#include "model/platform.h"

static bool has_any(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strstr(text, words[i]) != NULL) return true;
    }
    return false;
}

// Names of functions, files and libraries. No word is part of another platform's names.
static bool names_rocm(const char *text) {
    static const char *const words[] = {"HIPCachingAllocator", "c10::hip",     "at::hip",     "c10/hip",      "ATen/hip",
                                        "hipMalloc",           "hipExtMalloc", "libamdhip64", "libtorch_hip", "libc10_hip",
                                        "/opt/rocm",           "MIOpen",       "libhipblas",  "backends/amd/"};
    return has_any(text, words, VR_COUNT_OF(words));
}

static bool names_cuda(const char *text) {
    static const char *const words[] = {
        "CUDACachingAllocator", "c10::cuda",     "at::cuda",    "c10/cuda",  "ATen/cuda",       "cudaMalloc", "libcudart",
        "libcuda.so",           "libtorch_cuda", "libc10_cuda", "libcublas", "backends/nvidia/"};
    return has_any(text, words, VR_COUNT_OF(words));
}

static bool names_ascend(const char *text) {
    static const char *const words[] = {"torch_npu", "NPUCachingAllocator", "c10_npu", "aclrtMalloc", "libascendcl", "/Ascend/"};
    return has_any(text, words, VR_COUNT_OF(words));
}

enum vr_platform vr_platform_of(const struct vr_model *model) {
    enum vr_platform found = VR_PLATFORM_UNKNOWN;
    if (vr_model_setting(model, "PYTORCH_NPU_ALLOC_CONF") != NULL) return VR_PLATFORM_ASCEND;
    if (vr_model_setting(model, "PYTORCH_HIP_ALLOC_CONF") != NULL) return VR_PLATFORM_ROCM;
    for (uint32_t i = 0; i < model->frames.count; i++) {
        const char *name = vr_model_string(model, model->frames.name[i]), *file = vr_model_string(model, model->frames.filename[i]);
        if (names_rocm(name) || names_rocm(file)) return VR_PLATFORM_ROCM;
        if (names_ascend(name) || names_ascend(file)) return VR_PLATFORM_ASCEND;
        if (found == VR_PLATFORM_UNKNOWN && (names_cuda(name) || names_cuda(file))) found = VR_PLATFORM_CUDA;
    }
    return found;
}

// Matches "C:\\work\\train.py", and the same with forward slashes.
static bool is_of_windows(const char *file) {
    const bool drive = (file[0] >= 'a' && file[0] <= 'z') || (file[0] >= 'A' && file[0] <= 'Z');
    return drive && file[1] == ':' && (file[2] == '\\' || file[2] == '/');
}

bool vr_platform_is_windows(const struct vr_model *model) {
    for (uint32_t i = 0; i < model->frames.count; i++) {
        if (is_of_windows(vr_model_string(model, model->frames.filename[i]))) return true;
    }
    return false;
}

const char *vr_platform_name(enum vr_platform platform) {
    static const char *const names[] = {"", "CUDA", "ROCm", "Ascend"};
    return names[platform];
}

const char *vr_platform_variable(enum vr_platform platform) {
    if (platform == VR_PLATFORM_ASCEND) return "PYTORCH_NPU_ALLOC_CONF";
    return platform == VR_PLATFORM_ROCM ? "PYTORCH_HIP_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
}
