// Allocates 3 MiB through NVIDIA's driver, of which it only knows the name, and keeps them.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) return puts("no driver"), 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*get)(int *, int) = (int (*)(int *, int))dlsym(driver, "cuDeviceGet");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*enter)(void *) = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
    int (*alloc)(unsigned long long *, size_t) = (int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
    int device;
    void *context;
    unsigned long long address;
    if (init(0) != 0 || get(&device, 0) != 0 || retain(&context, device) != 0 || enter(context) != 0) return 1;
    return alloc(&address, (size_t)3 << 20) != 0;
}
