#define _GNU_SOURCE // mkostemp()
#include "sim_counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ui.h"

static bool make_file(struct sim_counts *counts, size_t size_bytes) {
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    if (snprintf(counts->path, sizeof counts->path, "%s/vram-sim-XXXXXX", folder) >= (int)sizeof counts->path) return false;
    const int descriptor = mkostemp(counts->path, O_CLOEXEC);
    if (descriptor < 0) return false;
    void *mapped = MAP_FAILED;
    if (ftruncate(descriptor, (off_t)size_bytes) == 0) mapped = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    (void)close(descriptor);
    if (mapped == MAP_FAILED) {
        (void)unlink(counts->path);
        return false;
    }
    counts->file = mapped;
    counts->size_bytes = size_bytes;
    return true;
}

bool sim_counts_make(struct sim_counts *counts, const char *option, const char *variable, size_t size_bytes, uint64_t magic) {
    if (!make_file(counts, size_bytes) || setenv(variable, counts->path, 1) != 0) {
        ui_say("vram sim: --%s: no temporary file could be made: %s", option, strerror(errno));
        sim_counts_end(counts);
        return false;
    }
    atomic_store((_Atomic uint64_t *)counts->file, magic);
    return true;
}

void sim_counts_end(struct sim_counts *counts) {
    if (counts->file == NULL) return;
    (void)unlink(counts->path);
    (void)munmap(counts->file, counts->size_bytes);
    counts->file = NULL;
}
