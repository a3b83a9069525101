#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"

enum vram_status vr_os_growfile_create(const char *path, bool replace, int *file, const char **reason) {
    struct stat found;
    if (replace && lstat(path, &found) == 0 && S_ISREG(found.st_mode)) (void)unlink(path);
    int opened = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (opened < 0) {
        *reason = strerror(errno);
        return VRAM_IO;
    }
    *file = opened;
    return VRAM_OK;
}

// Room on the disk for the whole range: a page of a mapping that finds none when it is touched would end the program.
static int allocate(int file, uint64_t offset, uint64_t size_bytes) {
    int failed;
    do {
        failed = posix_fallocate(file, (off_t)offset, (off_t)size_bytes);
    } while (failed == EINTR);
    return failed;
}

enum vram_status vr_os_growfile_map(int file, uint64_t offset, size_t size_bytes, void **memory) {
    if (allocate(file, offset, size_bytes) != 0) return VRAM_IO;
    void *mapped = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    if (mapped == MAP_FAILED) return VRAM_NO_HOST_MEMORY;
    *memory = mapped;
    return VRAM_OK;
}

void vr_os_growfile_unmap(void *memory, size_t size_bytes) {
    if (memory != NULL) (void)munmap(memory, size_bytes);
}

enum vram_status vr_os_growfile_cut(int file, uint64_t size_bytes) { return ftruncate(file, (off_t)size_bytes) == 0 ? VRAM_OK : VRAM_IO; }

void vr_os_growfile_close(int file) { (void)close(file); }
