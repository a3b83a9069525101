// constructed.c: a library that allocates and frees memory when it is loaded.
#include <stdint.h>

int cuMemAlloc_v2(uint64_t *address, uint64_t size);
int cuMemFree_v2(uint64_t address);

__attribute__((constructor)) static void constructed(void) {
    uint64_t address;
    if (cuMemAlloc_v2(&address, 100) == 0) (void)cuMemFree_v2(address);
}
