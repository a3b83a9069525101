// Allocates by commands on standard input: "a MIB" allocates, "f" frees the last block, "q" ends. Answers each with a line.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *cuda;

#define CALL(name, parameters, ...) ((int(*) parameters)dlsym(cuda, name))(__VA_ARGS__)

static int take(unsigned long long *address, size_t bytes) { return CALL("cuMemAlloc_v2", (unsigned long long *, size_t), address, bytes); }

int main(void) {
    unsigned long long held[256];
    size_t count = 0;
    void *context = NULL;
    char line[64];
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == NULL || CALL("cuInit", (unsigned), 0) != 0 || CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0) != 0 ||
        CALL("cuCtxSetCurrent", (void *), context) != 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL && line[0] != 'q') {
        int result = 1;
        if (line[0] == 'a' && count < 256) result = take(&held[count], (size_t)atoi(line + 1) << 20);
        if (line[0] == 'a' && result == 0) count++;
        if (line[0] == 'f' && count > 0) result = CALL("cuMemFree_v2", (unsigned long long), held[--count]);
        printf("%d\n", result);
        fflush(stdout);
    }
    return 0;
}
