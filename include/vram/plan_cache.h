// vram/plan_cache.h: plans of a library (cuFFT's, or any), the least recently used given up first.
//
// A plan is made for a key, any bytes that describe the transform. Each device has a cache of its own. Plans hold no device memory of
// theirs: their work area comes from the allocator for as long as they are in use, on the stream they run on.
#ifndef VRAM_PLAN_CACHE_H
#define VRAM_PLAN_CACHE_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_plan_cache;

// Plans held per device until vram_plan_cache_set_max() says otherwise.
#define VRAM_PLAN_CACHE_DEFAULT 4096

// What the cache is made of. Called without any lock; may use the allocator, but no plan of the same key.
struct vram_plan_functions {
    // Makes a plan. *plan is any number that names it, *work_bytes what it needs to run. Another status is passed on to the caller.
    enum vram_status (*build)(uint32_t device, const void *key, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes, void *user);
    void (*destroy)(uint32_t device, uint64_t plan, void *user);
    void *user;
};

// A plan in use, by one thread at a time.
struct vram_plan {
    uint64_t handle;       // of build()
    uint64_t work_address; // 0 for 0 bytes
    uint64_t work_bytes;
    uint64_t stream;
    uint32_t device;
    void *entry; // the cache's own
};

// Both functions are needed; the allocator is borrowed until vram_plan_cache_destroy(). *cache is given to the caller.
// INVALID_ARGUMENT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status
vram_plan_cache_create(struct vram_allocator *allocator, const struct vram_plan_functions *functions, struct vram_plan_cache **cache);
// Destroys all plans; none may be in use. NULL is ignored.
VRAM_API void vram_plan_cache_destroy(struct vram_plan_cache *cache);

// Gets the plan of a key, or builds it, with a work area for `stream`. While it is in use nobody else has it: a thread that asks for the
// same plan waits (so a thread must not ask twice before it gave it back). Keys are equal when their bytes are. A failure leaves the cache
// without the new plan. INVALID_ARGUMENT for an empty or NULL key or a device beyond VRAM_MAX_DEVICES; statuses of build() and of
// vram_malloc(); NO_HOST_MEMORY. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_acquire(struct vram_plan_cache *cache, uint32_t device, uint64_t stream, const void *key,
                                                           size_t key_bytes, struct vram_plan *plan);
// Gives it back once its work is queued on the stream. A plan that was given up in between, or was never held (maximum 0), is
// destroyed now. Status of the work area's vram_free().
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_release(struct vram_plan_cache *cache, const struct vram_plan *plan);

// The greatest number of plans held for a device; the least recently used beyond it are given up now. 0: none is held.
// INVALID_ARGUMENT for a negative number or a device beyond VRAM_MAX_DEVICES.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_cache_set_max(struct vram_plan_cache *cache, uint32_t device, int64_t max_plans);
// Gives up all plans of a device; those in use when they are given back. INVALID_ARGUMENT.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_cache_clear(struct vram_plan_cache *cache, uint32_t device);

struct vram_plan_cache_stats {
    int64_t size; // plans held
    int64_t max_size;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions; // given up to make room
};
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_cache_stats(struct vram_plan_cache *cache, uint32_t device,
                                                               struct vram_plan_cache_stats *stats);

// --- cuFFT itself -----------------------------------------------------------------------------------------------------------------
struct vram_cufft;
// A key for cuFFT's plans: the arguments of cufftMakePlanMany64(). No byte of it is padding; unused dimensions are 0.
struct vram_cufft_key {
    int32_t rank; // 1 to 3
    int32_t type; // cufftType
    int64_t n[3];
    int64_t in_embed[3]; // in_embed[0] == 0: packed data, and stride and distance count for nothing
    int64_t in_stride;
    int64_t in_distance;
    int64_t out_embed[3]; // the same
    int64_t out_stride;
    int64_t out_distance;
    int64_t batch;
};
// Loads cuFFT: `path`, or for NULL what VRAM_CUFFT_LIBRARY names, or libcufft.so.12, .11, .10. *cufft is given to the caller and must
// outlive caches that use its functions. UNSUPPORTED where there is none, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_cufft_open(const char *path, struct vram_cufft **cufft, struct vram_error *error);
VRAM_API void vram_cufft_close(struct vram_cufft *cufft);
// Functions for a cache whose keys are struct vram_cufft_key and whose plans are cufftHandles without memory of their own. build: DRIVER
// where cuFFT refuses, INVALID_ARGUMENT for what is no such key. The device's context must be current when a plan is built.
VRAM_API void vram_cufft_functions(struct vram_cufft *cufft, struct vram_plan_functions *functions);
// Makes a plan in use run on its stream and in its work area. DRIVER where cuFFT refuses.
VRAM_API VRAM_NODISCARD enum vram_status vram_cufft_set(struct vram_cufft *cufft, const struct vram_plan *plan, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
