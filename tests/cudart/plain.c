// The runtime without NVIDIA's headers: functions by their names. Devices are per thread, errors are remembered, memory runs out.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *runtime;

static void *find(const char *name) {
    void *function = dlsym(runtime, name);
    if (function == NULL) {
        printf("no %s\n", name);
        exit(1);
    }
    return function;
}

#define CALL(name, parameters, ...) ((int(*) parameters)find(name))(__VA_ARGS__)
#define EXPECT(condition)                                                                                                                  \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                                                 \
            return 1;                                                                                                                      \
        }                                                                                                                                  \
    } while (0)

enum { OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, MIB = 1 << 20 };

int main(void) {
    runtime = dlopen("libcudart.so.13", RTLD_NOW);
    if (runtime == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    int count = 0;
    EXPECT(CALL("cudaGetDeviceCount", (int *), &count) == 0 && count == 2);
    void *first = NULL, *second = NULL, *much = NULL;
    EXPECT(CALL("cudaMalloc", (void **, size_t), &first, 512 * (size_t)MIB) == 0);
    EXPECT(CALL("cudaMalloc", (void **, size_t), &much, 600 * (size_t)MIB) == OUT_OF_MEMORY && much == NULL);
    EXPECT(CALL("cudaPeekAtLastError", (void)) == OUT_OF_MEMORY);
    EXPECT(CALL("cudaGetLastError", (void)) == OUT_OF_MEMORY && CALL("cudaGetLastError", (void)) == 0);
    EXPECT(CALL("cudaSetDevice", (int), 1) == 0);
    EXPECT(CALL("cudaMalloc", (void **, size_t), &second, 600 * (size_t)MIB) == 0);
    EXPECT(CALL("cudaSetDevice", (int), 2) == INVALID_DEVICE);
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT(CALL("cudaMemGetInfo", (size_t *, size_t *), &free_bytes, &total_bytes) == 0);
    EXPECT(total_bytes == 1024 * (size_t)MIB && free_bytes == 424 * (size_t)MIB);
    EXPECT(CALL("cudaMemcpy", (void *, const void *, size_t, int), second, first, MIB, 9) == 21);
    EXPECT(CALL("cudaMemcpy", (void *, const void *, size_t, int), second, first, MIB, 3) == 0);
    EXPECT(CALL("cudaFree", (void *), second) == 0 && CALL("cudaFree", (void *), first) == 0);
    EXPECT(CALL("cudaFree", (void *), first) == 1);
    const char *(*name_of)(int) = (const char *(*)(int))find("cudaGetErrorName");
    EXPECT(strcmp(name_of(INVALID_DEVICE), "cudaErrorInvalidDevice") == 0 && name_of(123456) != NULL);
    void *missing = (void *)1;
    int found = 0;
    EXPECT(CALL("cudaGetDriverEntryPoint", (const char *, void **, unsigned long long, int *), "cuNoSuchThing", &missing, 0, &found) == 0);
    EXPECT(missing == NULL && found == 1);
    return 0;
}
