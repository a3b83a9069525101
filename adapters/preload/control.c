#define _GNU_SOURCE
#include "control.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static struct pl_control_page *page;
static int file = -1;

void pl_control_open(void) {
    if (page != NULL) return;
    file = memfd_create(PL_CONTROL_NAME, MFD_CLOEXEC);
    if (file < 0) return;
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *mapped = ftruncate(file, (off_t)bytes) != 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
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
    if (file >= 0) (void)close(file);
    if (page != NULL) (void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
    page = NULL;
    file = -1;
}
