// fit_cards.h: determines on which devices a run fits, and the least memory in which it completes.
//
// The memory available to an allocator is the device's, less the context on that device and what the libraries used in the run. If it
// covers the allocator's highest reserved bytes, the program fits. Otherwise the history is replayed in it: the allocator releases its
// cache and retries, or runs out of memory.
#ifndef CLI_FIT_CARDS_H
#define CLI_FIT_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fit_run.h"
#include "vram/driver.h"
#include "vram/sim.h"

struct vram_recording;

// The basis of a verdict. X(constant, JSON name)
#define FIT_METHODS(X)                                                                                                                     \
    X(FIT_BY_RUN, run)            /* the program ran on it */                                                                              \
    X(FIT_BY_PEAK, peak)          /* the peak of held or live bytes decides */                                                             \
    X(FIT_BY_REPLAY, replay)      /* the history was replayed in its memory */                                                             \
    X(FIT_BY_SHARE, share)        /* a server takes a share of its memory */                                                               \
    X(FIT_BY_OTHER, other)        /* the program failed on it; a run on a card of another generation decides */                            \
    X(FIT_BY_DEFAULT, no_kernels) /* the program's PyTorch has no kernels for it; a run on another card decides */

enum fit_method {
#define FIT_METHOD(constant, name) constant,
    FIT_METHODS(FIT_METHOD)
#undef FIT_METHOD
        FIT_METHOD_COUNT
};
extern const char *const fit_method_names[FIT_METHOD_COUNT];

#define FIT_SITE_CAPACITY 300

// The place where the program runs out of memory.
struct fit_oom {
    bool known;
    uint64_t step; // from 1; 0: the recording has no steps
    uint64_t requested_bytes;
    uint64_t allocated_bytes, cached_bytes, largest_free_bytes, room_bytes;
    char site[FIT_SITE_CAPACITY];
};

struct fit_card {
    struct vram_sim_model model;
    bool asked; // on the command line
    bool fits;
    bool unsure; // it might not fit: the program failed early, or the data-dependent bytes decide
    enum fit_method method;
    uint64_t room_bytes; // for the allocator of the holding with the least room
    uint64_t need_bytes; // of the device, with context, libraries and other processes, for the reserved peak
    uint64_t retries;    // times the whole cache was released
    struct fit_oom oom;  // if it does not fit
};

struct fit_verdict {
    const struct fit_holding *highest; // the one whose device needs the most; on that device, the one that needs the most
    struct vram_recording *recording;  // its recording
    struct vram_sim_model ran_on;
    uint64_t ran_memory_bytes; // of the device
    uint64_t library_bytes;    // of the device's memory, outside the allocator and the context
    uint64_t others_bytes;     // of the device's memory, held by other processes at the same time
    size_t others_count;       // those processes
    uint64_t smallest_bytes;   // least device memory in which it completes, exact to 2 MiB; includes the context of the card it ran on
    uint64_t smallest_retries;
    struct fit_card *cards; // all known cards, by memory
    size_t card_count;
    const struct fit_card *smallest_card; // the smallest card that the program fits on; NULL: none
};

// Judges the cards. The bits of `asked` are the numbers of the cards on the command line. Returns an exit code, after a line on standard
// error if it is not CLI_OK.
int fit_judge(const struct fit_run *run, const char *ran_on, uint64_t asked, struct fit_verdict *verdict);
void fit_verdict_release(struct fit_verdict *verdict);
// Finds the smallest card again, after the verdicts on cards have changed.
void fit_find_smallest_card(struct fit_verdict *verdict);
// Marks the cards on which fitting is uncertain: those without room for `stake_bytes` more; all of them if `failed`; and all but the one it
// ran on if the program `adapts` to the memory that it finds.
void fit_doubt_cards(struct fit_verdict *verdict, bool failed, bool adapts, uint64_t stake_bytes);
// Returns whether the model's generation has kernels that need other memory than current ones.
bool fit_is_old(const struct vram_sim_model *model);
// Returns whether the model's memory is an estimate, because no log of a real card confirms it.
bool fit_memory_is_estimated(const struct vram_sim_model *model);
// Returns whether the verdict on a card is reliable. Programs run differently on an old card and may need more.
bool fit_is_judged(const struct fit_verdict *verdict, const struct fit_card *card);
// Returns whether to suggest a card to a user who did not name it: its memory is known, and it is not a Jetson, which does not run programs
// of other machines.
bool fit_is_offered(const struct fit_card *card);
// Returns whether a PyTorch built for `built` (sm_75 sm_90a compute_90) has code for the model; true if unknown.
bool fit_kernels_have(const char *built, const struct vram_sim_model *model);
// Finds a model and its number by name. Returns false if there is none.
bool fit_model(const char *key, size_t length, struct vram_sim_model *model, uint32_t *number);
// Returns the step of an event, counted from 1; 0 if the recording has no steps.
uint64_t fit_step_of(const struct vram_recording *recording, uint32_t device, uint64_t event);
// Stores the call site of an event, "FILE:LINE:FUNCTION"; "" if it has no stack.
void fit_site_of(const struct vram_recording *recording, uint32_t device, uint64_t event, char *site, size_t capacity);

#endif
