// view.c: a file in memory. Private: who writes to the file meanwhile may be seen, but nothing of ours is written to it.
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

enum vram_status vr_os_view_open(const char *path, struct vr_os_view *view) {
    assert(path != NULL && view != NULL);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe without a writer would keep us waiting
    if (file < 0) return VRAM_IO;
    struct stat facts;
    void *bytes = MAP_FAILED;
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
        bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (bytes == MAP_FAILED) {
        (void)close(file);
        return VRAM_IO;
    }
    *view = (struct vr_os_view){.bytes = bytes, .size_bytes = (uint64_t)facts.st_size, .file = file};
    return VRAM_OK;
}

void vr_os_view_close(struct vr_os_view *view) {
    assert(view != NULL && view->bytes != NULL); // closed once
    (void)munmap((void *)(uintptr_t)view->bytes, (size_t)view->size_bytes);
    (void)close(view->file);
}
