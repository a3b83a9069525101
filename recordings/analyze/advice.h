// advice.h: what must be known before something is advised. The table is advice.def.
#ifndef VR_ANALYZE_ADVICE_H
#define VR_ANALYZE_ADVICE_H

#include "analyze/demand.h"

// X(constant)
#define VR_GROUNDS(X)                                                                                                                      \
    X(PYTHON)        /* stacks have Python frames: what is named is Python */                                                              \
    X(ROOM)          /* how much room there was */                                                                                         \
    X(MODEL)         /* a model is loaded, asked or trained */                                                                             \
    X(PASS)          /* a forward or a backward pass */                                                                                    \
    X(GRADIENTS)     /* gradients in use */                                                                                                \
    X(STATE)         /* an optimizer's state in use */                                                                                     \
    X(KV_CACHE)      /* a cache of keys and values in use */                                                                               \
    X(FOREACH)       /* what an optimizer makes for all parameters at once, in use */                                                      \
    X(CASTS)         /* autocast's copies of weights in use */                                                                             \
    X(SCORES)        /* a tensor of attention scores: made in attention, of a quadratic size */                                            \
    X(LARGEST_ALONE) /* the largest tensor is not one of many equal ones */                                                                \
    X(GROWS)         /* something grows from step to step */                                                                               \
    X(GRAPHS_KEPT)   /* graphs of earlier steps are kept */                                                                                \
    X(NOT_TRAINED)   /* no backward pass follows a forward pass that keeps its activations */                                              \
    X(HOST)          /* pinned host memory */                                                                                              \
    X(ALLOCATOR)     /* a caching allocator's recording, not the driver's calls of a whole program */                                      \
    X(EXPANDED)      /* expandable segments are on */                                                                                      \
    X(WINDOWS)       /* paths of Windows */                                                                                                \
    X(ROCM)          /* AMD's devices */                                                                                                   \
    X(ASCEND)        /* Huawei's devices */                                                                                                \
    X(LIMIT)         /* the limit that refused is recorded */                                                                              \
    X(OWN_POOL)      /* asked from a pool of the program's own */                                                                          \
    X(IDLE_STREAM)   /* the stream whose cache lay free was not used after the last of it was freed */                                     \
    X(OTHERS)        /* other processes held most of what lay outside */                                                                   \
    X(OWN)           /* this process held most of what lay outside: contexts, code, libraries */                                           \
    X(ACCOUNTS)      /* who held it was looked for */                                                                                      \
    X(WAITS)         /* much was freed and waited for another stream when most was active */                                               \
    X(ROUNDED)       /* blocks are much larger than was asked for */                                                                       \
    X(IDLE_CACHES)   /* streams with nothing in use hold much */

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

// Whether all that a sentence needs is known.
VR_INLINE bool vr_grounds_hold(uint32_t known, uint32_t needed) { return (known & needed) == needed; }

// What a failed request's recording and picture say: grounds of the rows VR_AFTER.
uint32_t vr_grounds_of_oom(const struct vram_report_device *device, const struct vram_report_oom *oom);
// The same of a device at its peak and at the end: grounds of the rows VR_HINT.
uint32_t vr_grounds_of_device(const struct vram_report_device *device);
// Streams, beside the one that holds most, that hold segments at the end and have nothing in use.
struct vr_idle_streams {
    uint64_t count, bytes;
    int64_t largest; // the stream that holds most of it
};
struct vr_idle_streams vr_idle_streams(const struct vram_report_device *device);
// The sentence of the first row VR_AFTER of that cause; "" where no row's grounds are there.
const char *vr_advice_after(enum vram_report_oom_cause cause, uint32_t grounds);

// --- remedies: each adds to the work's list what it finds (vr_remedy_add()). NO_HOST_MEMORY ----------------------------------------------
enum vram_status vr_add_cause(struct vr_demand_work *work);          // remedies.c: what stands out is dropped
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

// remedies.c: whether the largest activation in use is there once or twice, and not one of many layers'.
bool vr_largest_is_alone(const struct vr_demand_work *work);
// remedies.c: whether a row is what an optimizer made for all parameters at once.
bool vr_is_of_foreach(struct vr_demand_work *work, size_t row);
// The same values in another precision have half the bytes, or twice as many.
VR_INLINE bool vr_is_of_size(uint64_t bytes, uint64_t size) { return bytes == size || bytes == 2 * size || 2 * bytes == size; }
// remedies.c: bytes of the tensor of attention scores that is asked for or in use, the largest; 0: none.
uint64_t vr_scores_bytes(struct vr_demand_work *work);

#endif
