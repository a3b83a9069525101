// advice.h: the grounds for advice: what must be known before it is given. The table is advice.def.
#ifndef VR_ANALYZE_ADVICE_H
#define VR_ANALYZE_ADVICE_H

#include "analyze/demand.h"

// X(constant)
#define VR_GROUNDS(X)                                                                                                                      \
    X(PYTHON)        /* stacks have Python frames, so Python can be named */                                                               \
    X(ROOM)          /* the room is known */                                                                                               \
    X(MODEL)         /* a model is loaded, queried or trained */                                                                           \
    X(PASS)          /* there is a forward or a backward pass */                                                                           \
    X(GRADIENTS)     /* gradients are in use */                                                                                            \
    X(STATE)         /* optimizer state is in use */                                                                                       \
    X(KV_CACHE)      /* a cache of keys and values is in use */                                                                            \
    X(FOREACH)       /* memory that an optimizer makes for all parameters at once is in use */                                             \
    X(CASTS)         /* autocast's copies of weights are in use */                                                                         \
    X(SCORES)        /* there is a tensor of attention scores: made in attention, of quadratic size */                                     \
    X(LARGEST_ALONE) /* the largest tensor is not one of many equal ones */                                                                \
    X(GROWS)         /* something grows from step to step */                                                                               \
    X(GRAPHS_KEPT)   /* graphs of earlier steps are kept */                                                                                \
    X(NOT_TRAINED)   /* a forward pass keeps its activations, and no backward pass follows */                                              \
    X(HOST)          /* pinned host memory */                                                                                              \
    X(ALLOCATOR)     /* recorded by a caching allocator, not from a whole program's driver calls */                                        \
    X(EXPANDED)      /* expandable segments are on */                                                                                      \
    X(WINDOWS)       /* paths are Windows paths */                                                                                         \
    X(ROCM)          /* AMD devices */                                                                                                     \
    X(ASCEND)        /* Huawei devices */                                                                                                  \
    X(LIMIT)         /* the limit that refused the request is recorded */                                                                  \
    X(OWN_POOL)      /* the request went to a pool of the program's own */                                                                 \
    X(IDLE_STREAM)   /* the stream whose cache is free was not used after its last free */                                                 \
    X(OTHERS)        /* other processes held most of the memory outside the program */                                                     \
    X(OWN)           /* this process held most of the memory outside: contexts, code, libraries */                                         \
    X(ACCOUNTS)      /* the recording has accounts of the memory outside */                                                                \
    X(WAITS)         /* much memory was freed and waited for another stream at the active peak */                                          \
    X(ROUNDED)       /* blocks are much larger than their requests */                                                                      \
    X(SLOW_LEAK)     /* memory grows over hours */                                                                                         \
    X(IDLE_CACHES)   /* streams without memory in use hold much */

enum vr_ground_number {
#define VR_GROUND(constant) VR_GROUND_NUMBER_##constant,
    VR_GROUNDS(VR_GROUND)
#undef VR_GROUND
        VR_GROUND_COUNT
};
enum vr_ground {
#define VR_GROUND(constant) VR_GROUND_##constant = 1 << VR_GROUND_NUMBER_##constant,
    VR_GROUNDS(VR_GROUND)
#undef VR_GROUND
};

// Returns whether everything that a sentence needs is known.
VR_INLINE bool vr_grounds_hold(uint32_t known, uint32_t needed) { return (known & needed) == needed; }

// Returns the grounds that hold for a failed request, by its recording and the state of memory. For the rows VR_AFTER.
uint32_t vr_grounds_of_oom(const struct vram_report_device *device, const struct vram_report_oom *oom);
// Returns the grounds that hold for a device, by its peak and its final state. For the rows VR_HINT.
uint32_t vr_grounds_of_device(const struct vram_report_device *device);
// Streams, except the one with the most memory, that have segments at the end but no memory in use.
struct vr_idle_streams {
    uint64_t count, bytes;
    int64_t largest; // the stream with the most of these bytes
};
struct vr_idle_streams vr_idle_streams(const struct vram_report_device *device);
// Returns the sentence of the first row VR_AFTER of the cause whose grounds hold; "" if none exists.
const char *vr_advice_after(enum vram_report_oom_cause cause, uint32_t grounds);

// --- remedies: each adds its findings to the work's list (vr_remedy_add()). NO_HOST_MEMORY ----------------------------------------------
enum vram_status vr_add_cause(struct vr_demand_work *work);          // remedies.c: drop the main use
enum vram_status vr_add_attention(struct vr_demand_work *work);      // remedies.c
enum vram_status vr_add_foreach(struct vr_demand_work *work);        // remedies.c
enum vram_status vr_add_casts(struct vr_demand_work *work);          // remedies.c
enum vram_status vr_add_state_8bit(struct vr_demand_work *work);     // remedies.c
enum vram_status vr_add_state_offload(struct vr_demand_work *work);  // remedies.c
enum vram_status vr_add_sharding(struct vr_demand_work *work);       // remedies.c
enum vram_status vr_add_kv_cache(struct vr_demand_work *work);       // remedies.c
enum vram_status vr_add_batch(struct vr_demand_work *work);          // remedies.c
enum vram_status vr_add_chunks(struct vr_demand_work *work);         // remedies.c
enum vram_status vr_add_gradients_none(struct vr_demand_work *work); // remedies.c

// remedies.c: returns whether the largest activation in use exists once or twice, instead of once for each of many layers.
bool vr_largest_is_alone(const struct vr_demand_work *work);
// remedies.c: returns whether an optimizer made the row for all parameters at once.
bool vr_is_of_foreach(struct vr_demand_work *work, size_t row);
// Returns whether two sizes may be the same values in different precision: equal, half or double.
VR_INLINE bool vr_is_of_size(uint64_t bytes, uint64_t size) { return bytes == size || bytes == 2 * size || 2 * bytes == size; }
// remedies.c: returns the bytes of the largest tensor of attention scores requested or in use; 0 if none exists.
uint64_t vr_scores_bytes(struct vr_demand_work *work);

#endif
