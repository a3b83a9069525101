// fit_cards.h: on which devices a run fits, and in how little memory it completes.
//
// A device's room for an allocator is its memory less the context there, less what the libraries had in the run. What the allocator held at
// most is enough in any case; where it is not there, the history is replayed in the room there is: the allocator gives its cache back and
// tries again, or runs out.
#ifndef CLI_FIT_CARDS_H
#define CLI_FIT_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fit_run.h"
#include "vram/driver.h"
#include "vram/sim.h"

struct vram_recording;

// How a verdict was found. X(constant, JSON name)
#define FIT_METHODS(X)                                                                                                                     \
    X(FIT_BY_RUN, run)            /* the program ran on it */                                                                              \
    X(FIT_BY_PEAK, peak)          /* what was held, or live, at most decides */                                                            \
    X(FIT_BY_REPLAY, replay)      /* the history was replayed in its memory */                                                             \
    X(FIT_BY_SHARE, share)        /* a server takes a share of its memory */                                                               \
    X(FIT_BY_OTHER, other)        /* by the run on a card of another generation: it failed on this one */                                  \
    X(FIT_BY_DEFAULT, no_kernels) /* the same: the program's PyTorch has no kernels for this one */

enum fit_method {
#define FIT_METHOD(constant, name) constant,
    FIT_METHODS(FIT_METHOD)
#undef FIT_METHOD
        FIT_METHOD_COUNT
};
extern const char *const fit_method_names[FIT_METHOD_COUNT];

#define FIT_SITE_CAPACITY 300

// Where memory runs out.
struct fit_oom {
    bool known;
    uint64_t step; // 1: the first; 0: there are no steps
    uint64_t requested_bytes;
    uint64_t allocated_bytes, cached_bytes, largest_free_bytes, room_bytes;
    char site[FIT_SITE_CAPACITY];
};

struct fit_card {
    struct vram_sim_model model;
    bool asked; // on the command line
    bool fits;
    bool unsure; // that it fits: the program failed before its end, or what is at stake decides
    enum fit_method method;
    uint64_t room_bytes; // for the allocator of the holding that is the nearest to its end
    uint64_t need_bytes; // of the device, with context and libraries, for what was held at most
    uint64_t retries;    // releases of the whole cache
    struct fit_oom oom;  // where it does not fit
};

struct fit_verdict {
    const struct fit_holding *highest; // whose allocator held the most
    struct vram_recording *recording;  // its recording
    struct vram_sim_model ran_on;
    uint64_t ran_memory_bytes; // that the device had
    uint64_t library_bytes;    // of it, outside of the allocator and the context
    uint64_t smallest_bytes;   // memory of the device in which it completes, to 2 MiB; context as where it ran
    uint64_t smallest_retries;
    struct fit_card *cards; // all that are known, by memory
    size_t card_count;
    const struct fit_card *smallest_card; // that it fits; NULL: none
};

// The numbers of cards that the command line asks for are bits of `asked`. The exit code, after a line on standard error.
int fit_judge(const struct fit_run *run, const char *ran_on, uint64_t asked, struct fit_verdict *verdict);
void fit_verdict_release(struct fit_verdict *verdict);
// Of the smallest that it fits, once more.
void fit_find_smallest_card(struct fit_verdict *verdict);
// Of what fits: on which cards that is not sure with `stake_bytes` more; with `failed` on all.
void fit_doubt_cards(struct fit_verdict *verdict, bool failed, uint64_t stake_bytes);
// Whether a model is of a generation whose kernels take other memory than those of today's.
bool fit_is_old(const struct vram_sim_model *model);
// No log of a real one gives its memory.
bool fit_memory_is_estimated(const struct vram_sim_model *model);
// Whether what is said of a card holds: on an old one a program runs otherwise than on a new one, and may need more.
bool fit_is_judged(const struct fit_verdict *verdict, const struct fit_card *card);
// Whether a card is one to name to a user who did not: its memory is known, and programs of other machines run on it (Jetson's do not).
bool fit_is_offered(const struct fit_card *card);
// Whether a PyTorch that is built for `built` (sm_75 sm_90a compute_90) has code for the model; true where that is not known.
bool fit_kernels_have(const char *built, const struct vram_sim_model *model);
// The number of the model that is called so; false where none is.
bool fit_model(const char *key, size_t length, struct vram_sim_model *model, uint32_t *number);
// In which step an event is, counted from 1; 0 where the recording has no steps.
uint64_t fit_step_of(const struct vram_recording *recording, uint32_t device, uint64_t event);
// The call site of an event, "FILE:LINE:FUNCTION"; "": it has no stack.
void fit_site_of(const struct vram_recording *recording, uint32_t device, uint64_t event, char *site, size_t capacity);

#endif
