#define _GNU_SOURCE
#include "control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x314c54434d415256u

// As the program writes it.
struct page {
    uint64_t magic;
    uint32_t paused;
    uint32_t unused;
    uint64_t left_out;
};

// Opens the descriptor of the process that is the page; -1 with errno.
static int open_page(int pid) {
    char folder[64], path[320], target[128];
    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *descriptors = opendir(folder);
    if (descriptors == NULL) return -1;
    int file = -1;
    errno = ENODATA;
    for (const struct dirent *entry = readdir(descriptors); entry != NULL && file < 0; entry = readdir(descriptors)) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        if (length <= 0) continue;
        target[length] = '\0';
        if (strncmp(target, "/memfd:vram-control", 19) == 0) file = open(path, O_RDWR | O_CLOEXEC);
    }
    closedir(descriptors);
    return file;
}

bool control_of(int pid, const bool *set, struct control_state *state, const char **why) {
    const int file = open_page(pid);
    if (file < 0) {
        *why = errno == ENODATA ? "it does not run under `vram run`, or has not asked for memory yet" : strerror(errno);
        return false;
    }
    struct stat facts;
    const bool large = fstat(file, &facts) == 0 && facts.st_size >= (off_t)sizeof(struct page);
    struct page *page = large ? mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (page == MAP_FAILED || page->magic != MAGIC) {
        *why = "its control page is another version's";
        if (page != MAP_FAILED) munmap(page, sizeof *page);
        return false;
    }
    if (set != NULL) __atomic_store_n(&page->paused, *set ? 1u : 0u, __ATOMIC_RELAXED);
    *state = (struct control_state){page->paused != 0, page->left_out};
    munmap(page, sizeof *page);
    return true;
}
