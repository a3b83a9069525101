#include "own_runtime.h"

#include <string.h>

// NVIDIA's compilers need no driver: they ask for its tables but continue without them.
bool vr_own_runtime_needs_no_driver(const char *module) {
    static const char *const compilers[] = {"libnvrtc", "libnvJitLink", "libnvvm"};
    const char *slash = strrchr(module, '/');
    const char *name = slash == NULL ? module : slash + 1;
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++)
        if (strncmp(name, compilers[i], strlen(compilers[i])) == 0) return true;
    return false;
}

const char *vr_own_runtime_advice(const char *module) {
    static const struct {
        const char *part, *advice;
    } wheels[] = {
#define R(part, wheel, advice) {part, wheel ": " advice},
#include "own_runtime.def"
#undef R
    };
    for (size_t i = 0; i < sizeof wheels / sizeof wheels[0]; i++)
        if (strstr(module, wheels[i].part) != NULL) return wheels[i].advice;
    if (strstr(module, "-packages/") != NULL)
        return "Try another version of its wheel that loads the shared runtime (libcudart.so.11.0, .12 or .13); no version of it was "
               "tested";
    return "Build it with the shared runtime (nvcc -cudart shared; CMake: CMAKE_CUDA_RUNTIME_LIBRARY=Shared)";
}
