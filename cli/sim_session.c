#define _GNU_SOURCE // mkostemp()
#include "sim_session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../simulator/standins/common/session.h"

#define PREFIX        "vram-session-"
#define PATH_CAPACITY 4096

// Shared memory where it has a folder, so that nothing is ever written to a disk.
static const char *folder_of(void) {
    struct stat facts;
    if (stat("/dev/shm", &facts) == 0 && S_ISDIR(facts.st_mode) && access("/dev/shm", W_OK) == 0) return "/dev/shm";
    const char *folder = getenv("TMPDIR");
    return folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
}

// The program takes this process's place, so that nobody is there to remove the file at its end: the next `vram sim` does. The number in a
// name is the id of the process that made the file, which the program has after it.
static void remove_ended(const char *folder) {
    DIR *entries = opendir(folder);
    if (entries == NULL) return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0) continue;
        char *end;
        const long process = strtol(entry->d_name + sizeof PREFIX - 1, &end, 10);
        struct stat facts;
        if (process <= 0 || *end != '-' || kill((pid_t)process, 0) == 0 || errno != ESRCH) continue;
        if (fstatat(dirfd(entries), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || facts.st_uid != getuid()) continue;
        (void)unlinkat(dirfd(entries), entry->d_name, 0);
    }
    (void)closedir(entries);
}

static bool fill(int descriptor) {
    struct vr_session_file *file = NULL;
    if (ftruncate(descriptor, sizeof *file) != 0) return false;
    void *mapped = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) return false;
    file = mapped;
    atomic_store(&file->magic, VR_SESSION_MAGIC);
    (void)munmap(mapped, sizeof *file);
    return true;
}

void sim_session_put(void) {
    char path[PATH_CAPACITY];
    const char *folder = folder_of();
    (void)unsetenv("VRAM_SIM_SESSION");
    remove_ended(folder);
    if (snprintf(path, sizeof path, "%s/" PREFIX "%ld-XXXXXX", folder, (long)getpid()) >= (int)sizeof path) return;
    const int descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor < 0) return;
    const bool filled = fill(descriptor);
    (void)close(descriptor);
    if (!filled || setenv("VRAM_SIM_SESSION", path, 1) != 0) (void)unlink(path);
}
