// Measures a request and its free in PyTorch, with its own allocator and with vram's, alternating in one process. allocation_cost.py
// compiles and loads it.
#include <ATen/Functions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

namespace allocators = c10::cuda::CUDACachingAllocator;

namespace {
allocators::CUDAAllocator *both[2]; // PyTorch's own, vram's
} // namespace

// Keeps PyTorch's own allocator next to the one that replaces it.
extern "C" int cost_install(const char *path, const char *release, const char *git, int abi) {
    both[0] = allocators::get();
    void *library = dlopen(path, RTLD_NOW);
    if (library == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
    char text[512] = "";
    const auto install = reinterpret_cast<int (*)(const char *, const char *, int, char *, size_t)>(dlsym(library, "vram_native_install"));
    if (install == nullptr || install(release, git, abi, text, sizeof text) != 0) return fprintf(stderr, "%s\n", text), 1;
    both[1] = allocators::get();
    const int devices = c10::cuda::device_count();
    both[0]->init(devices), both[1]->init(devices);
    return 0;
}

// Makes PyTorch use this allocator. Nothing of the other may be live that PyTorch would free.
extern "C" void cost_use(int number) { allocators::allocator.store(both[number]); }

extern "C" void cost_class(int pairs, int64_t size) {
    allocators::CUDAAllocator *allocator = allocators::get();
    for (int i = 0; i < pairs; i++) c10::DataPtr data = allocator->allocate(static_cast<size_t>(size));
}

extern "C" void cost_empty(int pairs, int64_t size) {
    const auto options = at::TensorOptions().dtype(at::kByte).device(at::kCUDA);
    for (int i = 0; i < pairs; i++) at::Tensor tensor = at::empty({size}, options);
}

// Callgrind counts these, each by its name.
using Loop = void (*)(int, int64_t);
#define COUNTED(name)                                                                                                                      \
    extern "C" __attribute__((noinline, no_icf)) void name(Loop pairs, int count, int64_t size) { pairs(count, size); }
COUNTED(counted_class_own)
COUNTED(counted_class_vram)
COUNTED(counted_empty_own)
COUNTED(counted_empty_vram)
COUNTED(counted_python_own)
COUNTED(counted_python_vram)
