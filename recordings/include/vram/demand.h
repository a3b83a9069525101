// vram/demand.h: the main use of the memory when a request does not fit, and the changes to the program that would lower the need.
//
// Where no allocator setting helps, the program must need less. A demand names the main use of the memory; a remedy names a
// change and how much it saves. Both are sums over the recording's own allocations; `basis` says which.
#ifndef VRAM_DEMAND_H
#define VRAM_DEMAND_H

#include "vram/roles.h"

#ifdef __cplusplus
extern "C" {
#endif

// The main use of the memory: the first row that applies. X(constant, JSON name)
#define VRAM_DEMANDS(X)                                                                                                                    \
    X(REQUEST, request)                 /* the request alone needs more than half of the room */                                           \
    X(RETAINED, retained_graphs)        /* activations of earlier steps are kept */                                                        \
    X(GROWTH, growth)                   /* something leaks: it grows from step to step */                                                  \
    X(NOT_TRAINED, forward_only)        /* activations of a forward pass without a backward pass, in a program that trains */              \
    X(FIRST_STEP, optimizer_first_step) /* the optimizer creates its state */                                                              \
    X(HELD_GRADIENTS, held_gradients)   /* gradients live through a forward pass */                                                        \
    X(ROUNDING, rounding)               /* blocks are larger than their requests */                                                        \
    X(ROLE, role)                       /* the largest role: `role` */                                                                     \
    X(CALLER, caller)                   /* no role is known: the largest call site */

enum vram_demand {
#define VRAM_DEMAND(constant, name) VRAM_DEMAND_##constant,
    VRAM_DEMANDS(VRAM_DEMAND)
#undef VRAM_DEMAND
        VRAM_DEMAND_COUNT
};

// X(constant, JSON name)
#define VRAM_REMEDIES(X)                                                                                                                   \
    X(RECOMPUTE, recompute)             /* recompute activations made below `site` in the backward pass (checkpointing) */                 \
    X(BATCH, batch)                     /* a smaller batch: at most `factor` of the present one */                                         \
    X(CHUNKS, chunks)                   /* split the largest tensors into `divisor` parts, one after the other */                          \
    X(GRADIENTS_NONE, gradients_none)   /* drop gradients before the forward pass instead of zeroing them */                               \
    X(STATE_8BIT, optimizer_8bit)       /* keep the optimizer's state in 8 bits instead of 32 */                                           \
    X(STATE_OFFLOAD, optimizer_offload) /* keep the optimizer's state in host memory */                                                    \
    X(SHARDING, sharding)               /* share parameters, gradients and state among `divisor` devices */                                \
    X(KV_CACHE, kv_cache)               /* cache keys and values of fewer tokens: at most `factor` of them */                              \
    X(RELEASE, release)                 /* drop growing memory in each step */                                                             \
    X(DETACH, detach)                   /* detach what keeps the graphs of earlier steps */                                                \
    X(NO_GRAD, no_grad)                 /* run the forward pass under torch.no_grad() */                                                   \
    X(ATTENTION, fused_attention)       /* compute attention without storing its scores */                                                 \
    X(FOREACH, optimizer_foreach)       /* let the optimizer process one parameter at a time, or use a fused one */                        \
    X(CASTS, no_casts)                  /* keep weights in autocast's compute type, so that no copies are made */

enum vram_remedy {
#define VRAM_REMEDY(constant, name) VRAM_REMEDY_##constant,
    VRAM_REMEDIES(VRAM_REMEDY)
#undef VRAM_REMEDY
        VRAM_REMEDY_COUNT
};

// A change to the program that would lower the peak.
struct vram_report_remedy {
    enum vram_remedy remedy;
    const char *site;     // where to make the change, "file:line:function"; "" if there is no single place
    uint64_t saved_bytes; // how far the highest demand falls
    uint64_t left_bytes;  // the highest demand afterwards
    bool fits;            // left_bytes is within the room
    double factor;        // BATCH, KV_CACHE: factor to multiply the present size by; otherwise 1
    unsigned divisor;     // CHUNKS, SHARDING; otherwise 1
    bool function;        // RECOMPUTE: wrap every call of the function that contains `site`; otherwise only the call in the line `site`
    uint64_t calls;       // RECOMPUTE: calls of `site` in one forward pass
    uint64_t blocks;      // number of blocks summed
    uint64_t bytes;       // their bytes
    bool of_loss;         // CHUNKS: the tensors are made where a loss or logits are computed
    int64_t next_event;   // the event after which the new highest demand occurs, if at another moment; -2: at the same moment
    const char *text;     // one sentence: the change and its effect
    const char *basis;    // how the saving was computed, and what it assumes
};

// The demand at the moment when a request failed; if none failed, at the recording's peak.
struct vram_report_demand {
    enum vram_demand demand;
    enum vram_role role;    // for ROLE
    int64_t event;          // the moment
    uint64_t in_use_bytes;  // requested bytes of the allocations live at that moment
    uint64_t request_bytes; // the failed request; 0: no request failed
    uint64_t room_bytes;    // the room there was, or should be
    bool room_is_named;     // given by the failure or the caller; false: assumed to be a tenth below the peak
    const char *phase;      // the program's phase at that moment: "forward", "backward", "optimizer", "input", "load"; "": unknown
    uint64_t wanted_bytes;  // bytes of the blocks in use, plus the request
    struct vram_report_sum of_role[VRAM_ROLE_COUNT]; // sums to in_use_bytes
    uint64_t bytes;                                  // bytes of the main use
    double per_step_bytes;                           // RETAINED, GROWTH: growth per step
    const struct vram_report_group *sites;           // call sites of the main use, largest first, at most 3
    size_t site_count;
    bool unfinished;      // the request failed in a forward pass: the recording does not show what the rest of the step needs
    uint64_t later_bytes; // BATCH: included estimate for what a first step has not made yet: gradients and Adam's two moments
    bool earlier_step;    // BATCH: the rest of the step is known from an earlier step with the same course
    const struct vram_report_remedy *remedies; // those that fit first, then by bytes saved
    size_t remedy_count;
    const char *text; // a sentence: the main use, and the code that holds it
};

// Return the JSON name of a demand or remedy; NULL past the last.
VRAM_API const char *vram_demand_name(size_t demand);
VRAM_API const char *vram_remedy_name(size_t remedy);

#ifdef __cplusplus
}
#endif
#endif
