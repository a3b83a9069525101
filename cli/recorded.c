#include "recorded.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

// The path at the end of a line of /proc/PID/maps, which has "\\012" where a name has the end of a line.
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

// Whether a file that is called something else is a recording that grows. Nothing but plain files is opened.
static bool is_recording(const char *path) {
    const size_t length = strlen(path);
    struct stat facts;
    struct vram_follow *follow;
    if (length > 5 && strcmp(path + length - 5, ".vram") == 0) return true;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || vram_follow_open(path, 0, &follow, NULL) != VRAM_OK) return false;
    vram_follow_close(follow);
    return true;
}

// A recording is written through a shared mapping ("rw-s").
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
