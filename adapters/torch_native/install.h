// install.h: the functions that vram_torch.py calls in the library compiled for one PyTorch.
#ifndef VRAM_TORCH_NATIVE_INSTALL_H
#define VRAM_TORCH_NATIVE_INSTALL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vram_native_outcome { VRAM_NATIVE_INSTALLED, VRAM_NATIVE_OTHER_TORCH, VRAM_NATIVE_TOO_LATE };

// Makes vram PyTorch's CUDA allocator if the library was compiled for exactly this PyTorch: torch.__version__, torch.version.git_version
// and torch._C._GLIBCXX_USE_CXX11_ABI. Calls no function of PyTorch before that is known. A repeated call does nothing. Any other outcome
// writes a message to text[0, capacity).
__attribute__((visibility("default"))) int vram_native_install(const char *release, const char *git, int abi, char *text, size_t capacity);

// Makes vram PyTorch's allocator of pinned host memory as well. Call after vram_native_install(). Memory pinned before keeps its allocator.
// Does nothing before PyTorch 2.8, which has no such setting.
__attribute__((visibility("default"))) void vram_native_install_pinned(void);
// Configures the pinned allocator with `conf`: now, or when it is created. Returns a status.
__attribute__((visibility("default"))) int vram_native_configure_pinned(const char *conf);

#ifdef __cplusplus
}
#endif
#endif
