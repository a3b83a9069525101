// meminfo.c: what the machine has of main memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"

bool vr_os_available_memory(uint64_t *bytes) {
    static const char key[] = "MemAvailable:";
    const char *path = vr_os_getenv("VRAM_MEMINFO");
    char text[4096];
    const int file = open(path != NULL && path[0] != '\0' ? path : "/proc/meminfo", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return false;
    const ssize_t length = read(file, text, sizeof text - 1);
    (void)close(file);
    if (length <= 0) return false;
    text[length] = '\0';
    const char *row = strstr(text, key);
    if (row == NULL) return false;
    char *end = NULL;
    const unsigned long long kibibytes = strtoull(row + sizeof key - 1, &end, 10);
    if (end == row + sizeof key - 1 || strncmp(end, " kB", 3) != 0 || kibibytes > UINT64_MAX / 1024) return false;
    *bytes = (uint64_t)kibibytes * 1024;
    return true;
}
