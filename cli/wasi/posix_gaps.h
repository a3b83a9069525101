// posix_gaps.h: what the command asks of POSIX and the C library of WASI (2022) does not have; in front of every file of it by -include.
#ifndef CLI_WASI_POSIX_GAPS_H
#define CLI_WASI_POSIX_GAPS_H

#include <sys/types.h>

// There is one user, and no permissions of files.
static inline uid_t geteuid(void) { return 0; }
static inline int fchmod(int file, mode_t mode) {
    (void)file, (void)mode;
    return 0;
}

// The width of a terminal is what COLUMNS says.
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#define TIOCGWINSZ 0x5413

// As POSIX has them, but for descriptors that are no files (dup: EBADF).
int dup(int file);
int mkstemp(char *name);
char *mkdtemp(char *name);
// Of a path whose folders are no links; `resolved` is NULL. The result is the caller's.
char *realpath(const char *path, char *resolved);

#endif
