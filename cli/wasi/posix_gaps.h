// posix_gaps.h: declares the POSIX functions that the command uses and WASI's C library (2022) lacks. Included before every file of the
// command by -include.
#ifndef CLI_WASI_POSIX_GAPS_H
#define CLI_WASI_POSIX_GAPS_H

#include <sys/types.h>

// There is one user, and files have no permissions.
static inline uid_t geteuid(void) { return 0; }
static inline int fchmod(int file, mode_t mode) {
    (void)file, (void)mode;
    return 0;
}

// COLUMNS gives the width of the terminal.
struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#define TIOCGWINSZ 0x5413

// mkstemp() and mkdtemp() are as in POSIX. dup() always fails with EBADF.
int dup(int file);
int mkstemp(char *name);
char *mkdtemp(char *name);
// Expects that no folder of the path is a link, and that `resolved` is NULL. The caller frees the result.
char *realpath(const char *path, char *resolved);

#endif
