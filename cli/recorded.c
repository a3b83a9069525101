#include "recorded.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_program(int pid, char *name, size_t capacity) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "r");
    name[0] = '\0';
    if (file == NULL) return;
    if (fgets(name, (int)capacity, file) != NULL) name[strcspn(name, "\n")] = '\0';
    fclose(file);
}

// A line of /proc/PID/maps ends with the path of what is mapped. A recording is written through a shared mapping ("rw-s").
static bool path_in(const char *line, char *path, size_t capacity) {
    const char *at = strchr(line, '/');
    if (at == NULL || strstr(line, "rw-s") == NULL) return false;
    const size_t length = strcspn(at, "\n");
    if (length < 5 || length >= capacity || memcmp(at + length - 5, ".vram", 5) != 0) return false;
    memcpy(path, at, length);
    path[length] = '\0';
    return true;
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
