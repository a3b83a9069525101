// nccl_values.c: elements on their way between a rank's device and the memory that ranks share. The simulated driver says how far each is
// known, and takes that again (simulator/standins/libcuda/results.c), so that what is unknown on one rank is no fact on another. A driver
// that does not say copies bytes.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "nccl_call.h"

enum { KNOWN, UNKNOWN = 2 };

static int (*look)(uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes, uint8_t *levels);
static int (*put)(uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes, const uint8_t *levels);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_values(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *const found[] = {library == NULL ? NULL : dlsym(library, "vram_sim_results_look"),
                           library == NULL ? NULL : dlsym(library, "vram_sim_results_put")};
    if (found[0] == NULL || found[1] == NULL) return;
    memcpy(&look, &found[0], sizeof look);
    memcpy(&put, &found[1], sizeof put);
}

bool nccl_read_values(const struct nccl_call *call, unsigned char *slot, uint64_t bytes) {
    const struct standin_driver *driver = standin_driver();
    const uint32_t width = (uint32_t)nccl_width(call->type);
    uint8_t *levels = slot + NCCL_SMALL_BYTES;
    (void)pthread_once(&once, find_values);
    if (driver->stream_synchronize(call->stream) != 0) return false;
    if (look != NULL && look((uint64_t)(uintptr_t)call->from, bytes / width, width, slot, levels) > 0) return true;
    memset(levels, KNOWN, bytes / width);
    return driver->memcpy((uint64_t)(uintptr_t)slot, (uint64_t)(uintptr_t)call->from, bytes) == 0;
}

bool nccl_write_values(const struct nccl_call *call, void *to, const void *bytes, const uint8_t *levels) {
    const uint32_t width = (uint32_t)nccl_width(call->type);
    uint8_t own[NCCL_SMALL_BYTES] = {KNOWN};
    (void)pthread_once(&once, find_values);
    if (call->count <= sizeof own) nccl_reduce_levels(own, levels, call->count);
    if (put != NULL && call->count <= sizeof own && put((uint64_t)(uintptr_t)to, call->count, width, bytes, own) == 0) return true;
    return standin_driver()->memcpy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)bytes, call->count * width) == 0;
}

void nccl_reduce_levels(uint8_t *into, const uint8_t *from, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t theirs = from[i] > UNKNOWN ? UNKNOWN : from[i];
        if (theirs > into[i]) into[i] = theirs;
    }
}
