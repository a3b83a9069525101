// stream.c: where text goes that is no plain file: the program's standard streams, terminals, pipes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

// The descriptor that a path names; -1 if it names none.
static int descriptor_of(const char *path) {
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (strncmp(path, folders[i], strlen(folders[i])) != 0) continue;
        const char *number = path + strlen(folders[i]);
        const size_t digits = strspn(number, "0123456789");
        if (digits > 0 && digits < 7 && number[digits] == '\0') return (int)strtoll(number, NULL, 10);
    }
    return -1;
}

// A pipe that nobody reads is refused: whoever opens it would wait for a reader. So is a plain file that came to be there since it was
// looked at.
static FILE *open_without_waiting(const char *path) {
    struct stat facts;
    const int file = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    const bool plain = file >= 0 && (fstat(file, &facts) != 0 || S_ISREG(facts.st_mode));
    if (plain) errno = EEXIST;
    FILE *opened = file < 0 || plain || fcntl(file, F_SETFL, O_WRONLY) < 0 ? NULL : fdopen(file, "wb");
    if (opened == NULL && file >= 0) (void)close(file);
    return opened;
}

enum vram_status vr_os_stream_open(const char *path, FILE **stream) {
    assert(path != NULL && stream != NULL);
    const int named = descriptor_of(path);
    struct stat facts;
    FILE *opened = NULL;
    if (named < 0) {
        if (lstat(path, &facts) != 0 || S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode)) return VRAM_UNSUPPORTED;
        opened = open_without_waiting(path);
    } else {
        // The same open file: opened by its name a log would be cut, and written over from its beginning.
        const int again = fcntl(named, F_DUPFD_CLOEXEC, 3);
        opened = again < 0 ? NULL : fdopen(again, "wb");
        if (opened == NULL && again >= 0) (void)close(again);
    }
    if (opened == NULL) return VRAM_IO;
    *stream = opened;
    return VRAM_OK;
}
