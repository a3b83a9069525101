// shared.c: memory files seen from other processes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

static enum vram_status open_path(const char *path, int *file) {
    assert(file != NULL);
    const int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0) return errno == EMFILE || errno == ENFILE ? VRAM_LIMIT : VRAM_IO;
    *file = opened;
    return VRAM_OK;
}

enum vram_status vr_os_shared_reopen(int file, int *again) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return open_path(path, again);
}

enum vram_status vr_os_shared_open_of(uint64_t process, int file, int *opened) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%llu/fd/%d", (unsigned long long)process, file);
    return open_path(path, opened);
}

enum vram_status vr_os_shared_facts(int file, struct vr_shared_facts *facts) {
    assert(facts != NULL);
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return VRAM_IO;
    const off_t position = lseek(file, 0, SEEK_CUR);
    if (position < 0) return VRAM_IO;
    *facts = (struct vr_shared_facts){(uint64_t)status.st_dev, (uint64_t)status.st_ino, (uint64_t)status.st_size, (uint64_t)position};
    return VRAM_OK;
}

enum vram_status vr_os_shared_seek(int file, uint64_t position) { return lseek(file, (off_t)position, SEEK_SET) < 0 ? VRAM_IO : VRAM_OK; }

enum vram_status vr_os_shared_read(int file, uint64_t offset, void *bytes, size_t size_bytes) {
    assert(bytes != NULL && size_bytes > 0);
    return pread(file, bytes, size_bytes, (off_t)offset) == (ssize_t)size_bytes ? VRAM_OK : VRAM_IO;
}

enum vram_status vr_os_shared_write(int file, uint64_t offset, const void *bytes, size_t size_bytes) {
    assert(bytes != NULL && size_bytes > 0);
    return pwrite(file, bytes, size_bytes, (off_t)offset) == (ssize_t)size_bytes ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

// Locks of the open file description: the kernel drops them when its last descriptor and mapping is gone, in whichever process.
static bool lock_range(int file, uint64_t offset, short type) {
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = 1};
    return fcntl(file, F_OFD_SETLK, &range) == 0;
}

enum vram_status vr_os_shared_hold(int file, uint64_t offset) { return lock_range(file, offset, F_RDLCK) ? VRAM_OK : VRAM_IO; }

bool vr_os_shared_let_go(int file, uint64_t offset) {
    (void)lock_range(file, offset, F_UNLCK);
    return lock_range(file, offset, F_WRLCK);
}

void vr_os_shared_forget(int file, uint64_t offset) { (void)lock_range(file, offset, F_UNLCK); }
