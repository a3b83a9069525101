// fit_fold.h: judges a program of many ranks by a few that run.
//
// The launcher starts only the ranks that run. Each process takes its rank's number (adapters/fit/vram_fit_fold.py) and sees the full
// count; the stand-in for NCCL does not wait for the others (simulator/standins/nccl/nccl_fold.c).
#ifndef CLI_FIT_FOLD_H
#define CLI_FIT_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fit_launcher.h"

#define FIT_RANKS_MOST     65536
#define FIT_RANKS_RUN_MOST 16 // by default, up to this many ranks all run as processes
#define FIT_FEW_MOST       3  // the same where as few as possible run
#define FIT_KINDS_MOST     64

// Ranks that are alike: they have the same place in every group whose members send each other messages.
struct fit_kind {
    uint64_t count;
    uint64_t running[FIT_KINDS_MOST]; // the ranks that ran
    size_t running_count;
    char name[200]; // "pp 1 of 8"
};

struct fit_fold {
    uint64_t ranks;   // number of ranks that the program sees; 0: the launcher starts all as it is asked to
    bool scouts;      // rank 0 runs alone first, to find out which ranks are alike
    bool few;         // one rank of each kind runs, not two
    bool has_devices; // the number of devices was given
    uint64_t running[64];
    size_t running_count;
    struct fit_kind kinds[FIT_KINDS_MOST]; // none if no messages are sent
    size_t kind_count;
    struct fit_launcher launcher;
    char wrong[120];
};

// Chooses which ranks run. `asked` is "auto", "none" or "0,1,63"; NULL means auto above FIT_RANKS_RUN_MOST ranks, or FIT_FEW_MOST
// with `few`, and none otherwise. With none, the ranks of several machines all run on this one, up to 64. Changes the program's arguments
// and environment accordingly. has_devices: the number of devices was given. Returns NULL, or what is wrong.
const char *fit_fold_begin(struct fit_fold *fold, const char *asked, bool few, bool has_devices, char **program);
// Returns the number of devices that the ranks need. If each has another local rank, it keeps that as its device, because PyTorch completes
// deferred frees in an order that depends on the device's number; else the ranks use the first devices.
uint64_t fit_fold_devices(const struct fit_fold *fold);
// With `auto`: lets rank 0 run alone. Returns NULL, or what is wrong.
const char *fit_fold_scout(struct fit_fold *fold);
// Returns what rank 0 noted about the ranks that are alike: the text of `kinds` in the run's folder (adapters/fit/vram_fit_kinds.py). NULL
// if it noted nothing. The caller frees it.
char *fit_fold_noted(const char *folder);
// Lets the ranks run that the text says; without a text, a few. With `notes_again`, rank 0 notes the text again in that run. Returns NULL,
// or what is wrong.
const char *fit_fold_take_kinds(struct fit_fold *fold, const char *noted, bool notes_again);

// Removes what fit_fold_begin() put into the environment. The program's arguments stay changed.
void fit_fold_end(const struct fit_fold *fold);

#endif
