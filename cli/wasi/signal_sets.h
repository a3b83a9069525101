// signal_sets.h: the signal set functions that liblzma uses, for a program without signals. Included before each of its files by -include.
#ifndef CLI_WASI_SIGNAL_SETS_H
#define CLI_WASI_SIGNAL_SETS_H

#include <signal.h>

#define SIG_BLOCK   0
#define SIG_SETMASK 2
static inline int sigprocmask(int how, const int *set, int *old) {
    (void)how, (void)set, (void)old;
    return 0;
}
#define sigset_t int

#endif
