#define _GNU_SOURCE
#include "shared_file.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *map_shared(int descriptor, size_t size_bytes) {
    struct stat facts;
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size != (off_t)size_bytes) return NULL;
    void *mapped = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void *vr_shared_file(const char *variable, size_t size_bytes, uint64_t magic) {
    const char *path = getenv(variable);
    // Non-blocking, so that a variable that names a pipe does not block the program.
    const int descriptor = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return NULL;
    void *mapped = map_shared(descriptor, size_bytes);
    (void)close(descriptor);
    if (mapped == NULL || atomic_load((_Atomic uint64_t *)mapped) == magic) return mapped;
    (void)munmap(mapped, size_bytes);
    return NULL;
}
