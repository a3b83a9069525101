// fit_fold.h: how many ranks a launcher is told to start, and a program of many of them judged by a few that run.
//
// The launcher then starts as many processes as run; each takes the number of the rank that it is (adapters/fit/vram_fit.py) and is told of
// all; the stand-in for NCCL does not wait for the others (simulator/standins/nccl/nccl_comm.c).
#ifndef CLI_FIT_FOLD_H
#define CLI_FIT_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_RANKS_MOST     1024
#define FIT_RANKS_RUN_MOST 16 // without being asked for: each is a process of the program

struct fit_fold {
    uint64_t ranks; // that the program is told of; 0: nothing is folded
    uint64_t running[64];
    size_t running_count;
    char count_text[24]; // in the arguments
    char joined[2][80];  // the same
};

// How many devices the program's own options ask for on a machine: their product, for parallel in several ways.
uint64_t fit_count_devices(char **program);
// Which ranks run, by `asked` ("auto", "none", "0,1,63"; NULL: auto, where there are more than FIT_RANKS_RUN_MOST); the program's
// arguments, and the environment of it, are changed accordingly. NULL, or what is wrong.
const char *fit_fold_begin(struct fit_fold *fold, const char *asked, char **program);

#endif
