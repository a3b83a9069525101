// A foreign program that asks the driver for memory. Usage: fit_program CODE SIZE...: takes so many MiB, one after the other; all are kept.
// Prints a line for each and exits with CODE; with 1 when memory runs out.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*initialize)(unsigned);
typedef int (*retain)(void **, int);
typedef int (*set_current)(void *);
typedef int (*allocate)(unsigned long long *, size_t);

int main(int argc, char **argv) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    if (cuda == NULL || argc < 2) return 77;
    if (((initialize)dlsym(cuda, "cuInit"))(0) != 0) return 78;
    if (((retain)dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0) != 0) return 79;
    if (((set_current)dlsym(cuda, "cuCtxSetCurrent"))(context) != 0) return 80;
    for (int i = 2; i < argc; i++) {
        unsigned long long address;
        const int result = ((allocate)dlsym(cuda, "cuMemAlloc_v2"))(&address, (size_t)strtoull(argv[i], NULL, 10) << 20);
        printf("%s MiB: %d\n", argv[i], result);
        (void)fflush(stdout);
        if (result != 0) return 1;
    }
    while (atoi(argv[1]) == 99) (void)sleep(1);
    return atoi(argv[1]);
}
