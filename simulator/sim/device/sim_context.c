// Contexts: each thread's current context, and the settings that programs store in contexts.
#include <stdatomic.h>

#include "sim/sim.h"

// ---- Each thread's current context.

uint64_t vr_sim_context_handle(const struct vr_sim *sim, const struct vr_sim_context *context) {
    return vr_sim_slots_handle(&sim->contexts, vr_sim_slots_index(&sim->contexts, context));
}

// Returns a number for the calling thread that no other thread of the process gets, unlike system thread ids, which are reused.
static uint64_t this_thread_number(void) {
    static atomic_uint_fast64_t last;
    static _Thread_local uint64_t number;
    if (number == 0) number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number;
}

static struct vr_sim_thread *add_thread(struct vr_sim *sim, uint64_t number) {
    if (VR_GROW(sim, threads, sim->thread_count + 1) != VRAM_OK) return NULL;
    struct vr_sim_thread *thread = &sim->threads[sim->thread_count++];
    *thread = (struct vr_sim_thread){.number = number};
    return thread;
}

struct vr_sim_thread *vr_sim_this_thread(struct vr_sim *sim) {
    // The place where the thread was last found. It stays valid for the life of the instance because records never move to lower indices.
    static _Thread_local struct {
        uint64_t serial;
        size_t index;
    } last;
    if (VR_LIKELY(last.serial == sim->serial)) return &sim->threads[last.index];
    uint64_t number = this_thread_number();
    size_t index = 0;
    while (index < sim->thread_count && sim->threads[index].number != number) index++;
    if (index == sim->thread_count && add_thread(sim, number) == NULL) return NULL;
    last.serial = sim->serial;
    last.index = index;
    return &sim->threads[index];
}

vr_cu_result vr_sim_current(struct vr_sim *sim, struct vr_sim_context **context) {
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    if (thread->context_count == 0) return VR_CU_INVALID_CONTEXT;
    struct vr_sim_context *found = vr_sim_context_find(sim, thread->contexts[thread->context_count - 1]);
    if (found == NULL || found->inactive) return VR_CU_CONTEXT_IS_DESTROYED;
    *context = found;
    return VR_CU_SUCCESS;
}

// The current context that vr_sim_ctx_get_current() last found; serial 0: unknown. Only this thread changes it.
static _Thread_local struct { uint64_t serial, context; } cached;

bool vr_sim_ctx_cached(const struct vr_sim *sim, uint64_t *context) {
    if (cached.serial != sim->serial) return false;
    *context = cached.context;
    return true;
}

void vr_sim_ctx_drop(struct vr_sim *sim) {
    cached.serial = 0;
    vr_sim_this_thread(sim)->context_count--;
}

vr_cu_result vr_sim_ctx_push(struct vr_sim *sim, uint64_t context) {
    cached.serial = 0;
    if (vr_sim_context_find(sim, context) == NULL) return VR_CU_INVALID_CONTEXT;
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    size_t needed = thread->context_count + 1;
    if (VR_GROW(thread, contexts, needed) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    thread->contexts[thread->context_count++] = context;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_current(struct vr_sim *sim, uint64_t *context) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    *context = thread->context_count == 0 ? 0 : thread->contexts[thread->context_count - 1];
    cached.context = *context;
    cached.serial = sim->serial;
    return VR_CU_SUCCESS;
}

// Replaces the top of the thread's stack, or pops it if context is 0.
vr_cu_result vr_sim_ctx_set_current(struct vr_sim *sim, uint64_t context) {
    cached.serial = 0;
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    if (context != 0 && vr_sim_context_find(sim, context) == NULL) return VR_CU_INVALID_CONTEXT;
    if (context == 0) {
        if (thread->context_count > 0) vr_sim_ctx_drop(sim);
        return VR_CU_SUCCESS;
    }
    if (thread->context_count == 0) return vr_sim_ctx_push(sim, context);
    thread->contexts[thread->context_count - 1] = context;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_device(struct vr_sim *sim, int *device) {
    if (device == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *device = (int)context->device;
    return result;
}

// ---- Settings of a context: flags, limits, preferences. Except for the stack's size they are stored and returned, and change nothing.

enum { SCHEDULE_MASK = 7, CREATE_FLAGS = 0xff };

// The limits that cuCtxGetLimit returns for a new context: stack per thread, printf buffer, malloc heap, depth and pending launches of
// dynamic parallelism, L2 fetch granularity, persisting L2 cache. CUDA's guides give all but the granularity, which here is the documented
// maximum.
static const uint64_t first_limits[VR_SIM_LIMITS] = {VR_SIM_STACK_BYTES, 1 * VR_MIB, 8 * VR_MIB, 2, 2048, 128, 0};
enum { LIMIT_SYNC_DEPTH = 3, LIMIT_FETCH = 5, LIMIT_PERSISTING = 6 };

// Returns the number of threads that the device can hold at the same time.
static uint64_t resident_threads(struct vr_sim *sim, uint32_t device) {
    int multiprocessors = 0, threads = 0;
    (void)vr_sim_device_get_attribute(sim, &multiprocessors, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, (int)device);
    (void)vr_sim_device_get_attribute(sim, &threads, VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, (int)device);
    return (uint64_t)multiprocessors * (uint64_t)threads;
}

vr_cu_result vr_sim_context_set_stack(struct vr_sim *sim, struct vr_sim_context *context, uint64_t stack_bytes) {
    struct vr_sim_device *device = &sim->devices[context->device];
    const uint64_t threads = resident_threads(sim, context->device);
    const uint64_t more = stack_bytes > VR_SIM_STACK_BYTES ? stack_bytes - VR_SIM_STACK_BYTES : 0;
    if (more > device->memory_bytes / (threads + 1)) return VR_CU_OUT_OF_MEMORY;
    const uint64_t bytes = more * threads;
    if (bytes > context->stacks_bytes && !vr_sim_has_room(device, bytes - context->stacks_bytes)) return VR_CU_OUT_OF_MEMORY;
    device->used_bytes = device->used_bytes - context->stacks_bytes + bytes;
    context->stacks_bytes = bytes;
    context->settings.limits[VR_SIM_LIMIT_STACK] = stack_bytes;
    return VR_CU_SUCCESS;
}

struct vr_sim_context_settings vr_sim_context_defaults(struct vr_sim *sim, uint32_t flags) {
    struct vr_sim_context_settings settings = {.flags = flags, .id = ++sim->last_context_id};
    memcpy(settings.limits, first_limits, sizeof settings.limits);
    return settings;
}

// Allows at most one way to wait.
vr_cu_result vr_sim_context_flags_check(uint32_t flags) {
    const uint32_t schedule = flags & SCHEDULE_MASK;
    return (flags & ~(uint32_t)CREATE_FLAGS) == 0 && (schedule & (schedule - 1)) == 0 ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

vr_cu_result vr_sim_primary_ctx_set_flags(struct vr_sim *sim, int device, unsigned flags) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    const vr_cu_result result = vr_sim_context_flags_check(flags);
    if (result != VR_CU_SUCCESS) return result;
    sim->devices[device].primary_flags = flags;
    struct vr_sim_context *primary = vr_sim_context_find(sim, sim->devices[device].primary);
    if (primary != NULL) primary->settings.flags = flags;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_flags(struct vr_sim *sim, unsigned *flags) {
    if (flags == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *flags = context->settings.flags;
    return result;
}

vr_cu_result vr_sim_ctx_set_flags(struct vr_sim *sim, unsigned flags) {
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_context_flags_check(flags);
    if (result == VR_CU_SUCCESS) result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) context->settings.flags = flags;
    return result;
}

// Finds the context of a handle; 0 is the current context.
static vr_cu_result find_context(struct vr_sim *sim, uint64_t handle, struct vr_sim_context **context) {
    if (handle == 0) return vr_sim_current(sim, context);
    struct vr_sim_context *found = vr_sim_context_find(sim, handle);
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    if (found->inactive) return VR_CU_CONTEXT_IS_DESTROYED;
    *context = found;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_id(struct vr_sim *sim, uint64_t context, uint64_t *id) {
    if (id == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *found;
    const vr_cu_result result = find_context(sim, context, &found);
    if (result == VR_CU_SUCCESS) *id = found->settings.id;
    return result;
}

// Every context has API version 3.2.
vr_cu_result vr_sim_ctx_get_api_version(struct vr_sim *sim, uint64_t context, unsigned *version) {
    if (version == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *found;
    const vr_cu_result result = find_context(sim, context, &found);
    if (result == VR_CU_SUCCESS) *version = 3020;
    return result;
}

vr_cu_result vr_sim_ctx_get_device_of(struct vr_sim *sim, int *device, uint64_t context) {
    if (device == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *found;
    const vr_cu_result result = find_context(sim, context, &found);
    if (result == VR_CU_SUCCESS) *device = (int)found->device;
    return result;
}

// Devices of compute capability 9.0 and later have no LIMIT_SYNC_DEPTH: a kernel cannot wait for kernels that it launched.
static bool has_limit(const struct vr_sim *sim, const struct vr_sim_context *context, int limit) {
    return limit != LIMIT_SYNC_DEPTH || sim->devices[context->device].card->major < 9;
}

vr_cu_result vr_sim_ctx_get_limit(struct vr_sim *sim, uint64_t *value, int limit) {
    struct vr_sim_context *context;
    if (value == NULL || limit < 0) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    if (limit >= VR_SIM_LIMITS || !has_limit(sim, context, limit)) return VR_CU_UNSUPPORTED_LIMIT;
    *value = context->settings.limits[limit];
    return VR_CU_SUCCESS;
}

// Clamps the value as the driver does: an L2 fetch to 128 bytes, persisting L2 to the device's maximum.
vr_cu_result vr_sim_ctx_set_limit(struct vr_sim *sim, int limit, uint64_t value) {
    struct vr_sim_context *context;
    if (limit < 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    if (limit >= VR_SIM_LIMITS || !has_limit(sim, context, limit)) return VR_CU_UNSUPPORTED_LIMIT;
    int most = 0;
    if (limit == LIMIT_PERSISTING) {
        result = vr_sim_device_get_attribute(sim, &most, VR_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, (int)context->device);
        if (result != VR_CU_SUCCESS || most == 0) return VR_CU_UNSUPPORTED_LIMIT;
        if (value > (uint64_t)most) value = (uint64_t)most;
    }
    if (limit == LIMIT_FETCH && value > 128) value = 128;
    if (limit == VR_SIM_LIMIT_STACK) return vr_sim_context_set_stack(sim, context, value);
    context->settings.limits[limit] = value;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_reset_persisting_l2_cache(struct vr_sim *sim, int unused) {
    (void)unused;
    struct vr_sim_context *context;
    return vr_sim_current(sim, &context);
}

enum { CACHE_CONFIGS = 4, SHARED_CONFIGS = 3 }; // values of CUfunc_cache and CUsharedconfig

vr_cu_result vr_sim_ctx_get_cache_config(struct vr_sim *sim, int *config) {
    struct vr_sim_context *context;
    const vr_cu_result result = config == NULL ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *config = context->settings.cache_config;
    return result;
}

vr_cu_result vr_sim_ctx_set_cache_config(struct vr_sim *sim, int config) {
    struct vr_sim_context *context;
    const vr_cu_result result = config < 0 || config >= CACHE_CONFIGS ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) context->settings.cache_config = config;
    return result;
}

// Returns 1, banks of 4 bytes: the default where banks are configurable, and the only size on newer devices.
vr_cu_result vr_sim_ctx_get_shared_mem_config(struct vr_sim *sim, int *config) {
    struct vr_sim_context *context;
    const vr_cu_result result = config == NULL ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *config = 1;
    return result;
}

vr_cu_result vr_sim_ctx_set_shared_mem_config(struct vr_sim *sim, int config) {
    struct vr_sim_context *context;
    return config < 0 || config >= SHARED_CONFIGS ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
}
