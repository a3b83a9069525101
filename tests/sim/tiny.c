// A foreign program: opens libcuda as CUDA programs do and prints the result. Exits with its argument.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == NULL) {
        printf("no libcuda\n");
        return 77;
    }
    int (*initialize)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*count_devices)(int *) = (int (*)(int *))dlsym(cuda, "cuDeviceGetCount");
    int (*total_memory)(size_t *, int) = (int (*)(size_t *, int))dlsym(cuda, "cuDeviceTotalMem_v2");
    int count = 0;
    size_t bytes = 0;
    const int result = initialize(0);
    if (result == 0 && count_devices(&count) == 0 && count > 0) (void)total_memory(&bytes, 0);
    printf("init %d, %d devices of %zu MiB\n", result, count, bytes >> 20);
    return argc > 1 ? atoi(argv[1]) : 0;
}
