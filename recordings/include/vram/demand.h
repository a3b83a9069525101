// vram/demand.h: what the memory in use is made of when there is too little of it, and what would lower it.
//
// Where no setting of the allocator can help, the program must need less. A demand says what stands out in what it needs; a remedy says
// what would change that, and by how much: each by sums over the recording's own allocations, which `basis` names.
#ifndef VRAM_DEMAND_H
#define VRAM_DEMAND_H

#include "vram/roles.h"

#ifdef __cplusplus
extern "C" {
#endif

// What stands out; the first that holds. X(constant, JSON name)
#define VRAM_DEMANDS(X)                                                                                                                    \
    X(REQUEST, request)                 /* the request alone is more than half of the room */                                              \
    X(RETAINED, retained_graphs)        /* activations of earlier steps are kept */                                                        \
    X(GROWTH, growth)                   /* something grows from step to step, a leak */                                                    \
    X(NOT_TRAINED, forward_only)        /* activations of a forward pass that no backward pass follows, where others train */              \
    X(FIRST_STEP, optimizer_first_step) /* the optimizer makes its state */                                                                \
    X(HELD_GRADIENTS, held_gradients)   /* gradients live through a forward pass */                                                        \
    X(ROUNDING, rounding)               /* blocks are larger than what was asked for */                                                    \
    X(ROLE, role)                       /* the role that holds most: `role` */                                                             \
    X(CALLER, caller)                   /* no role is known: the call site that holds most */

enum vram_demand {
#define VRAM_DEMAND(constant, name) VRAM_DEMAND_##constant,
    VRAM_DEMANDS(VRAM_DEMAND)
#undef VRAM_DEMAND
        VRAM_DEMAND_COUNT
};

// X(constant, JSON name)
#define VRAM_REMEDIES(X)                                                                                                                   \
    X(RECOMPUTE, recompute)             /* activations made below `site` are made again in the backward pass (checkpointing) */            \
    X(BATCH, batch)                     /* a smaller batch: at most `factor` of it */                                                      \
    X(CHUNKS, chunks)                   /* the largest tensors in `divisor` parts, one after the other */                                  \
    X(GRADIENTS_NONE, gradients_none)   /* gradients are dropped before the forward pass, not set to zero */                               \
    X(STATE_8BIT, optimizer_8bit)       /* the optimizer's state in 8 bits instead of 32 */                                                \
    X(STATE_OFFLOAD, optimizer_offload) /* the optimizer's state in the host's memory */                                                   \
    X(SHARDING, sharding)               /* parameters, gradients and state shared by `divisor` devices */                                  \
    X(KV_CACHE, kv_cache)               /* keys and values of fewer tokens: at most `factor` of them */                                    \
    X(RELEASE, release)                 /* what grows is dropped in each step */                                                           \
    X(DETACH, detach)                   /* what keeps the graphs of earlier steps is detached */                                           \
    X(NO_GRAD, no_grad)                 /* the forward pass runs under torch.no_grad() */                                                  \
    X(ATTENTION, fused_attention)       /* attention without its scores in memory */                                                       \
    X(FOREACH, optimizer_foreach)       /* the optimizer works on one parameter after the other, or fused */                               \
    X(CASTS, no_casts)                  /* weights in the type that autocast computes in: no copies of them */

enum vram_remedy {
#define VRAM_REMEDY(constant, name) VRAM_REMEDY_##constant,
    VRAM_REMEDIES(VRAM_REMEDY)
#undef VRAM_REMEDY
        VRAM_REMEDY_COUNT
};

// What would lower the peak.
struct vram_report_remedy {
    enum vram_remedy remedy;
    const char *site;     // where it would be done, "file:line:function"; "" where that is not one place
    uint64_t saved_bytes; // by which the highest demand falls
    uint64_t left_bytes;  // what it is then
    bool fits;            // that is within the room
    double factor;        // BATCH, KV_CACHE: of what there is now; else 1
    unsigned divisor;     // CHUNKS, SHARDING; else 1
    bool function;        // RECOMPUTE: every call of the function that `site` is a line of; else what that line calls
    uint64_t calls;       // RECOMPUTE: of `site`, in one forward pass
    uint64_t blocks;      // whose bytes were summed
    uint64_t bytes;       // of these blocks
    bool of_loss;         // CHUNKS: they are made where a loss or logits are
    int64_t next_event;   // after which event the highest demand is then, where that is another moment; -2: the same
    const char *text;     // a sentence: what to do, and what comes of it
    const char *basis;    // how that was computed, and what it takes for granted
};

// At the moment when a request failed; of a recording in which none did, at its peak.
struct vram_report_demand {
    enum vram_demand demand;
    enum vram_role role;    // of ROLE
    int64_t event;          // the moment
    uint64_t in_use_bytes;  // asked for by what is live then
    uint64_t request_bytes; // that failed; 0: none
    uint64_t room_bytes;    // what there was room for, or should be
    bool room_is_named;     // by the failure or the caller; else it is a tenth less than the peak
    const char *phase;      // of the program then: "forward", "backward", "optimizer", "input", "load"; "" not known
    uint64_t wanted_bytes;  // in use as blocks, and the request
    struct vram_report_sum of_role[VRAM_ROLE_COUNT]; // add up to in_use_bytes
    uint64_t bytes;                                  // of what stands out
    double per_step_bytes;                           // RETAINED, GROWTH: more in every step
    const struct vram_report_group *sites;           // of what stands out, largest first, at most 3
    size_t site_count;
    bool unfinished;                           // the request failed in a forward pass: what the step needs after it is not recorded
    uint64_t later_bytes;                      // BATCH: counted in, what a first step has yet to make: gradients, and two moments of Adam
    bool earlier_step;                         // BATCH: the rest of the step is known by an earlier one that went the same way
    const struct vram_report_remedy *remedies; // those that fit first, then by what they save
    size_t remedy_count;
    const char *text; // what stands out, and who holds it
};

// One word for programs; NULL past the last.
VRAM_API const char *vram_demand_name(size_t demand);
VRAM_API const char *vram_remedy_name(size_t remedy);

#ifdef __cplusplus
}
#endif
#endif
