// What a request and its free cost: PyTorch's own allocator and vram's, in turns in one process. allocation_cost.py compiles and runs it.
//
// usage: allocation_cost LIBRARY RELEASE GIT ABI ROUNDS SIZE   prints nanoseconds of a pair for both, the least of the rounds
#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace allocators = c10::cuda::CUDACachingAllocator;

constexpr int PAIRS = 20000;

// Under callgrind these two are what is counted.
extern "C" __attribute__((noinline)) void pairs_of_own(allocators::CUDAAllocator *allocator, size_t size) {
    for (int i = 0; i < PAIRS; i++) c10::DataPtr data = allocator->allocate(size);
}
extern "C" __attribute__((noinline)) void pairs_of_vram(allocators::CUDAAllocator *allocator, size_t size) {
    for (int i = 0; i < PAIRS; i++) c10::DataPtr data = allocator->allocate(size);
}

template <typename Loop> double nanoseconds(Loop loop, allocators::CUDAAllocator *allocator, size_t size) {
    const auto begun = std::chrono::steady_clock::now();
    loop(allocator, size);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count() / PAIRS;
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    allocators::CUDAAllocator *own = allocators::get();
    void *library = dlopen(argv[1], RTLD_NOW);
    if (library == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
    char text[512] = "";
    const auto install = reinterpret_cast<int (*)(const char *, const char *, int, char *, size_t)>(dlsym(library, "vram_native_install"));
    if (install == nullptr || install(argv[2], argv[3], atoi(argv[4]), text, sizeof text) != 0) return fprintf(stderr, "%s\n", text), 1;
    allocators::CUDAAllocator *ours = allocators::get();
    own->init(1), ours->init(1);
    const size_t size = strtoull(argv[6], nullptr, 10);
    double least[2] = {1e30, 1e30};
    for (int round = 0; round < atoi(argv[5]); round++) {
        least[0] = std::min(least[0], nanoseconds(pairs_of_own, own, size));
        least[1] = std::min(least[1], nanoseconds(pairs_of_vram, ours, size));
    }
    printf("PyTorch %.1f ns, vram %.1f ns for a request of %zu bytes and its free\n", least[0], least[1], size);
}
