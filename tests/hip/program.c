// A HIP program as a compiler would link it: finds the runtime by name, uses memory, a stream, an event and a kernel launch.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *library;
static void *named(const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL) printf("no %s\n", name);
    return function;
}
struct extent {
    unsigned x, y, z;
};
#define HIP(name, parameters) int(*name) parameters = (int(*) parameters)named(#name)

int main(void) {
    library = dlopen("libamdhip64.so.6", RTLD_NOW);
    if (library == NULL) return puts("no libamdhip64.so.6"), 1;
    HIP(hipGetDeviceCount, (int *));
    HIP(hipGetDevicePropertiesR0600, (void *, int));
    HIP(hipMalloc, (void **, size_t));
    HIP(hipFree, (void *));
    HIP(hipMemcpy, (void *, const void *, size_t, int));
    HIP(hipMemset, (void *, int, size_t));
    HIP(hipMemGetInfo, (size_t *, size_t *));
    HIP(hipStreamCreate, (void **));
    HIP(hipStreamSynchronize, (void *));
    HIP(hipLaunchKernel, (const void *, struct extent, struct extent, void **, size_t, void *));
    HIP(hipGetLastError, (void));
    static char properties[1472], in[64];
    int count = 0;
    void *block = NULL, *stream = NULL, *huge = NULL;
    size_t before = 0, after = 0, total = 0;
    int wrong = hipGetDeviceCount(&count) != 0 || count != 1 || hipGetDevicePropertiesR0600(properties, 0) != 0;
    printf("%s, %d devices\n", properties, count);
    wrong |= hipMemGetInfo(&before, &total) != 0 || hipMalloc(&block, 64 << 20) != 0 || hipMemGetInfo(&after, &total) != 0;
    wrong |= before - after != 64 << 20;
    wrong |= hipMemcpy(block, "bytes that travel", 18, 1) != 0 || hipMemset((char *)block + 1, 'Y', 1) != 0;
    wrong |= hipMemcpy(in, block, 18, 2) != 0 || strcmp(in, "bYtes that travel") != 0;
    // Invalid addresses, and a range past the end.
    wrong |= hipMemcpy(in, (void *)(size_t)0xdeadbeefcafe0000, 16, 2) != 1 || hipMemcpy((char *)block + (64 << 20) - 8, in, 64, 1) != 1;
    wrong |= hipMemset((void *)(size_t)0xdeadbeefcafe0000, 1, 16) != 1 || hipGetLastError() != 1;
    wrong |= hipStreamCreate(&stream) != 0;
    wrong |=
        hipLaunchKernel(in, (struct extent){1, 1, 1}, (struct extent){1, 1, 1}, NULL, 0, stream) != 0 || hipStreamSynchronize(stream) != 0;
    wrong |= hipMalloc(&huge, (size_t)1 << 50) != 2 || hipGetLastError() != 2 || hipGetLastError() != 0;
    wrong |= hipFree(block) != 0;
    printf("%s\n", wrong ? "wrong" : "all as it should be");
    return wrong;
}
