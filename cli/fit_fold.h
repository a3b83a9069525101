// fit_fold.h: sets how many ranks a launcher starts, and judges a program of many ranks by a few that run.
//
// The launcher starts only the ranks that run. Each process takes its rank's number (adapters/fit/vram_fit_fold.py) and sees the full
// count; the stand-in for NCCL does not wait for the others (simulator/standins/nccl/nccl_fold.c).
#ifndef CLI_FIT_FOLD_H
#define CLI_FIT_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_RANKS_MOST     1024
#define FIT_RANKS_RUN_MOST 16 // by default, up to this many ranks all run as processes

struct fit_fold {
    uint64_t ranks; // number of ranks that the program sees; 0: no ranks are left out
    uint64_t running[64];
    size_t running_count;
    char count_text[24]; // in the arguments
    char joined[2][80];  // likewise
};

// Returns how many devices per machine the program's options ask for. The product of several kinds of parallelism.
uint64_t fit_count_devices(char **program);
// Chooses which ranks run. `asked` is "auto", "none" or "0,1,63"; NULL means auto above FIT_RANKS_RUN_MOST ranks. Changes the program's
// arguments and environment accordingly. Returns NULL, or what is wrong.
const char *fit_fold_begin(struct fit_fold *fold, const char *asked, char **program);

#endif
