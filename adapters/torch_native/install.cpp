// Replaces PyTorch's allocator, if this library was built for the installed PyTorch.
#include "install.h"

#include <c10/core/Allocator.h>

#include <cstdio>
#include <cstring>

#include "native.h"

#ifndef VRAM_TORCH_GIT
#error "compile with -DVRAM_TORCH_GIT=\"torch.version.git_version\" and -DVRAM_TORCH_RELEASE=\"torch.__version__\""
#endif

namespace {

constexpr int string_abi = _GLIBCXX_USE_CXX11_ABI;

int answer(int outcome, char *text, size_t capacity, const char *sentence) {
    (void)snprintf(text, capacity, "%s", sentence);
    return outcome;
}

} // namespace

int vram_native_install(const char *release, const char *git, int abi, char *text, size_t capacity) {
    if (strcmp(release, VRAM_TORCH_RELEASE) != 0 || strcmp(git, VRAM_TORCH_GIT) != 0 || abi != string_abi)
        return answer(VRAM_NATIVE_OTHER_TORCH, text, capacity,
                      "this library was built for another PyTorch: " VRAM_TORCH_RELEASE " at " VRAM_TORCH_GIT);
    static vram_native::Native *const native = new vram_native::Native; // outlives every tensor
    auto &place = vram_native::torch_cuda::allocator;
    if (place.load() == native) return VRAM_NATIVE_INSTALLED;
    if (place.load()->initialized()) return answer(VRAM_NATIVE_TOO_LATE, text, capacity, "CUDA is already initialised");
    place.store(native);
    c10::SetAllocator(c10::DeviceType::CUDA, native, UINT8_MAX); // for torch.accelerator; the highest priority wins
    return VRAM_NATIVE_INSTALLED;
}
