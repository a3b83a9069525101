// meminfo.c: what the machine has of main memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"

// The file's text; false where it cannot be read. A name that nobody can make wait: no terminal, no pipe.
static bool read_text(const char *path, char *text, size_t capacity) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return false;
    const ssize_t length = read(file, text, capacity - 1);
    (void)close(file);
    if (length <= 0) return false;
    text[length] = '\0';
    return true;
}

static bool read_meminfo(char *text, size_t capacity) {
    const char *path = vr_os_getenv("VRAM_MEMINFO");
    return read_text(path != NULL && path[0] != '\0' ? path : "/proc/meminfo", text, capacity);
}

static bool find_row(const char *text, const char *key, uint64_t *bytes) {
    const char *row = strstr(text, key);
    if (row == NULL) return false;
    char *end = NULL;
    const unsigned long long kibibytes = strtoull(row + strlen(key), &end, 10);
    if (end == row + strlen(key) || strncmp(end, " kB", 3) != 0 || kibibytes > UINT64_MAX / 1024) return false;
    *bytes = (uint64_t)kibibytes * 1024;
    return true;
}

bool vr_os_available_memory(uint64_t *bytes) {
    char text[4096];
    return read_meminfo(text, sizeof text) && find_row(text, "MemAvailable:", bytes);
}

// Of the control group as a container sees its own (version 2). "max" is no number.
static bool read_number(const char *path, uint64_t *number) {
    char text[64], *end = NULL;
    if (!read_text(path, text, sizeof text)) return false;
    const unsigned long long found = strtoull(text, &end, 10);
    if (end == text || text[0] == '-') return false;
    *number = found;
    return true;
}

bool vr_os_main_memory(uint64_t *available_bytes, uint64_t *total_bytes) {
    char text[4096];
    uint64_t available, total, most, used;
    if (!read_meminfo(text, sizeof text) || !find_row(text, "MemAvailable:", &available) || !find_row(text, "MemTotal:", &total))
        return false;
    if (read_number("/sys/fs/cgroup/memory.max", &most) && most < total && read_number("/sys/fs/cgroup/memory.current", &used)) {
        total = most;
        if (most - (used < most ? used : most) < available) available = most - (used < most ? used : most);
    }
    *available_bytes = available;
    *total_bytes = total;
    return true;
}
