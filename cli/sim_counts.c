#define _GNU_SOURCE // mkostemp()
#include "sim_counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ui.h"

static bool make_file(struct sim_counts *counts, size_t size_bytes, uint64_t magic) {
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    if (snprintf(counts->path, sizeof counts->path, "%s/vram-sim-XXXXXX", folder) >= (int)sizeof counts->path) return false;
    const int descriptor = mkostemp(counts->path, O_CLOEXEC);
    if (descriptor < 0) return false;
    const bool begun =
        ftruncate(descriptor, (off_t)size_bytes) == 0 && pwrite(descriptor, &magic, sizeof magic, 0) == (ssize_t)sizeof magic;
    void *mapped = begun ? mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        (void)close(descriptor);
        (void)unlink(counts->path);
        return false;
    }
    counts->file = mapped;
    counts->descriptor = descriptor;
    counts->size_bytes = size_bytes;
    return true;
}

bool sim_counts_make(struct sim_counts *counts, const char *option, const char *variable, size_t size_bytes, uint64_t magic) {
    if (make_file(counts, size_bytes, magic) && setenv(variable, counts->path, 1) == 0) return true;
    ui_say("vram sim: --%s: no temporary file could be made: %s", option, strerror(errno));
    sim_counts_end(counts);
    return false;
}

// Not through the mapping: the program may have cut the file off.
void *sim_counts_read(const struct sim_counts *counts) {
    char *bytes = calloc(1, counts->size_bytes);
    if (bytes == NULL) return NULL;
    for (size_t done = 0; done < counts->size_bytes;) {
        const ssize_t got = pread(counts->descriptor, bytes + done, counts->size_bytes - done, (off_t)done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    return bytes;
}

void sim_counts_end(struct sim_counts *counts) {
    if (counts->file == NULL) return;
    (void)unlink(counts->path);
    (void)munmap(counts->file, counts->size_bytes);
    (void)close(counts->descriptor);
    counts->file = NULL;
}
