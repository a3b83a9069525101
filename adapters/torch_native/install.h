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

// Makes vram PyTorch's allocator of pinned host memory as well, after vram_native_install(); what was pinned before keeps its own. Nothing
// before PyTorch 2.8, which cannot be given one.
__attribute__((visibility("default"))) void vram_native_install_pinned(void);
// vram_host_configure() of it, where it was used already: it reads the environment at its first use. A status.
__attribute__((visibility("default"))) int vram_native_configure_pinned(const char *conf);

#ifdef __cplusplus
}
#endif
#endif
