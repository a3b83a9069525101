#define _GNU_SOURCE

#include "recorded_processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vram/log.h"

static void read_program(int pid, char *name, size_t capacity) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "r");
    name[0] = '\0';
    if (file == NULL) return;
    if (fgets(name, (int)capacity, file) != NULL) name[strcspn(name, "\n")] = '\0';
    fclose(file);
}

// Copies the path at the end of a line of /proc/PID/maps, where "\\012" is a newline in the name.
static bool copy_path(const char *text, char *path, size_t capacity) {
    size_t length = 0;
    while (*text != '\0' && *text != '\n' && length + 1 < capacity) {
        const bool escaped = strncmp(text, "\\012", 4) == 0;
        path[length++] = escaped ? '\n' : *text;
        text += escaped ? 4 : 1;
    }
    path[length] = '\0';
    return *text == '\0' || *text == '\n';
}

// Returns whether a file without a recording's extension is a growing recording. Opens only regular files.
static bool is_recording(const char *path) {
    const size_t length = strlen(path);
    struct stat facts;
    struct vram_follow *follow;
    if (length > 5 && strcmp(path + length - 5, ".vram") == 0) return true;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || vram_follow_open(path, 0, &follow, NULL) != VRAM_OK) return false;
    vram_follow_close(follow);
    return true;
}

// Copies the path in a line of /proc/PID/maps. Returns false if it is not a recording, which is mapped shared and writable ("rw-s").
static bool path_in(const char *line, char *path, size_t capacity) {
    const char *at = strchr(line, '/');
    return at != NULL && strstr(line, "rw-s") != NULL && copy_path(at, path, capacity) && is_recording(path);
}

bool recorded_find(int pid, struct recorded *recorded) {
    char name[64], line[4608];
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *file = fopen(name, "r");
    if (file == NULL) return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) found = path_in(line, recorded->path, sizeof recorded->path);
    fclose(file);
    recorded->pid = pid;
    if (found) read_program(pid, recorded->program, sizeof recorded->program);
    return found;
}

static int by_pid(const void *a, const void *b) {
    const int x = ((const struct recorded *)a)->pid, y = ((const struct recorded *)b)->pid;
    return (x > y) - (x < y);
}

size_t recorded_list(struct recorded *list, size_t capacity) {
    DIR *folder = opendir("/proc");
    size_t count = 0;
    if (folder == NULL) return 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL && count < capacity; entry = readdir(folder))
        if (isdigit((unsigned char)entry->d_name[0]) && recorded_find(atoi(entry->d_name), &list[count])) count++;
    closedir(folder);
    qsort(list, count, sizeof *list, by_pid);
    return count;
}

#define MAGIC 0x314c54434d415256u

// The layout that the recorded program uses.
struct page {
    uint64_t magic;
    uint32_t paused;
    uint32_t unused;
    uint64_t left_out;
};

// Opens the process's descriptor of the page. Returns -1 with errno set.
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
        *why = errno == ENODATA ? "it does not run under `vram run`, or it has not allocated memory yet" : strerror(errno);
        return false;
    }
    struct stat facts;
    const bool large = fstat(file, &facts) == 0 && facts.st_size >= (off_t)sizeof(struct page);
    struct page *page = large ? mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (page == MAP_FAILED || page->magic != MAGIC) {
        *why = "its control page has another version";
        if (page != MAP_FAILED) munmap(page, sizeof *page);
        return false;
    }
    if (set != NULL) __atomic_store_n(&page->paused, *set ? 1u : 0u, __ATOMIC_RELAXED);
    *state = (struct control_state){page->paused != 0, page->left_out};
    munmap(page, sizeof *page);
    return true;
}
