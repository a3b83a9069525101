#define _GNU_SOURCE
#include "control.h"
#include "notices.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real.h"

static struct pl_control_page *page;
static int file = -1;
static struct stat facts; // of the file

// Moves the descriptor far above the numbers that the program expects.
static int make_file(size_t bytes) {
    const int made = pl_may_grow(bytes) ? memfd_create(PL_CONTROL_NAME, MFD_CLOEXEC) : -1;
    if (made < 0) return -1;
    const int moved = fcntl(made, F_DUPFD_CLOEXEC, 900);
    if (moved >= 0) (void)close(made);
    return moved >= 0 ? moved : made;
}

void pl_control_open(void) {
    if (page != NULL) return;
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    file = make_file(bytes);
    if (file < 0) return;
    const bool sized = ftruncate(file, (off_t)bytes) == 0 && fstat(file, &facts) == 0;
    void *mapped = sized ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        (void)close(file);
        file = -1;
        return;
    }
    page = mapped;
    page->magic = PL_CONTROL_MAGIC;
}

bool pl_control_paused(void) { return page != NULL && __atomic_load_n(&page->paused, __ATOMIC_RELAXED) != 0; }

void pl_control_count(void) {
    if (page != NULL) __atomic_fetch_add(&page->left_out, 1, __ATOMIC_RELAXED);
}

void pl_control_forget(void) {
    struct stat now; // the program may have closed the descriptor and reused its number
    if (file >= 0 && fstat(file, &now) == 0 && now.st_dev == facts.st_dev && now.st_ino == facts.st_ino) (void)close(file);
    if (page != NULL) (void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
    page = NULL;
    file = -1;
}
