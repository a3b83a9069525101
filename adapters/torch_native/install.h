// install.h: what the module vram_torch.py calls of the library that is compiled for one PyTorch.
#ifndef VRAM_TORCH_NATIVE_INSTALL_H
#define VRAM_TORCH_NATIVE_INSTALL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vram_native_outcome { VRAM_NATIVE_INSTALLED, VRAM_NATIVE_OTHER_TORCH, VRAM_NATIVE_TOO_LATE };

// Makes vram PyTorch's CUDA allocator, if the library was compiled for exactly this one: torch.__version__, torch.version.git_version and
// torch._C._GLIBCXX_USE_CXX11_ABI. No function of PyTorch's is called before that is known. Again: nothing happens. Any other outcome has a
// sentence in text[0, capacity).
__attribute__((visibility("default"))) int vram_native_install(const char *release, const char *git, int abi, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
