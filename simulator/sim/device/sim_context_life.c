// Creation and destruction of contexts and green contexts.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_arrays.h"
#include "sim/memory/sim_managed.h"
#include "sim/memory/sim_pools.h"
#include "sim/modules/sim_modules.h"
#include "sim/sim.h"
#include "sim/sim_abi.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_streams.h"

// ---- Creation, destruction and synchronization of contexts. A context's objects end with it, so this file calls the code of all other
// models, and none of them calls it.

// Gives an empty context (new or reset) its memory and its default stream.
static vr_cu_result begin_context(struct vr_sim *sim, uint64_t context) {
    struct vr_sim_context *begun = vr_sim_context_find(sim, context);
    struct vr_sim_device *device = &sim->devices[begun->device];
    uint32_t legacy;
    if (!vr_sim_has_room(device, device->context_bytes)) return VR_CU_OUT_OF_MEMORY;
    if (vr_sim_stream_make(sim, context, VR_SIM_STREAM_LEGACY, &legacy) != VR_CU_SUCCESS) return VR_CU_OUT_OF_MEMORY;
    device->used_bytes += device->context_bytes;
    begun->legacy = legacy;
    begun->inactive = false;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_context_create(struct vr_sim *sim, uint32_t device, bool primary, uint64_t *context) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->contexts, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_context *made = (struct vr_sim_context *)(void *)vr_sim_slots_item(&sim->contexts, index);
    made->device = device;
    made->primary = primary;
    made->settings = vr_sim_context_defaults(sim, primary ? sim->devices[device].primary_flags : 0);
    const uint64_t handle = vr_sim_slots_handle(&sim->contexts, index);
    const vr_cu_result result = begin_context(sim, handle);
    if (result == VR_CU_SUCCESS)
        *context = handle;
    else
        vr_sim_slots_give(&sim->contexts, index);
    return result;
}

// Frees everything in the context, and the context's own memory.
static void end_context(struct vr_sim *sim, uint64_t context) {
    vr_sim_wait_context(sim, context);
    vr_sim_end_events(sim, context);
    vr_sim_end_streams(sim, context);
    vr_sim_end_modules(sim, context);
    vr_sim_end_arrays(sim, context);
    vr_sim_end_managed(sim, context);
    vr_sim_free_allocations(sim, context);
    vr_sim_pools_end_context(sim, context);
    vr_sim_close_imports(sim, context);
    vr_sim_free_hosts(sim, context);
    struct vr_sim_context *ended = vr_sim_context_find(sim, context);
    if (ended->primary) vr_sim_pool_imports_end(sim, ended->device);
    (void)vr_sim_context_set_stack(sim, ended, VR_SIM_STACK_BYTES);
    sim->devices[ended->device].used_bytes -= sim->devices[ended->device].context_bytes;
    ended->peer_count = 0;
    ended->inactive = true;
}

void vr_sim_context_destroy(struct vr_sim *sim, uint64_t context) {
    vr_sim_callback_wait(sim, sim->callbacks.posted);
    if (vr_sim_context_find(sim, context) == NULL) return; // another thread was faster
    struct vr_sim_context *ended = vr_sim_context_find(sim, context);
    if (!ended->inactive) end_context(sim, context);
    free(ended->peers);
    vr_sim_slots_give(&sim->contexts, vr_sim_slots_index(&sim->contexts, ended));
}

void vr_sim_primary_reset(struct vr_sim *sim, uint32_t device) {
    const uint64_t primary = sim->devices[device].primary;
    if (primary != 0 && !vr_sim_context_find(sim, primary)->inactive) end_context(sim, primary);
}

vr_cu_result vr_sim_primary_ctx_retain(struct vr_sim *sim, uint64_t *context, int device) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    struct vr_sim_device *owner = &sim->devices[device];
    vr_cu_result result = VR_CU_SUCCESS;
    if (owner->primary == 0)
        result = vr_sim_context_create(sim, (uint32_t)device, true, &owner->primary);
    else if (vr_sim_context_find(sim, owner->primary)->inactive)
        result = begin_context(sim, owner->primary);
    if (result != VR_CU_SUCCESS) return result;
    owner->primary_references++;
    *context = owner->primary;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_primary_ctx_release(struct vr_sim *sim, int device) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    struct vr_sim_device *owner = &sim->devices[device];
    if (owner->primary_references == 0) return VR_CU_INVALID_CONTEXT;
    owner->primary_references--;
    if (owner->primary_references == 0 && owner->primary != 0) {
        vr_sim_context_destroy(sim, owner->primary);
        owner->primary = 0;
    }
    return VR_CU_SUCCESS;
}

// Returns a value in memory that a stream of the context still waits for, or NULL.
static const struct vr_sim_hold *hold_in(const struct vr_sim *sim, uint64_t context) {
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        const bool held = stream->slot.live && stream->context == context && stream->hold.width != 0;
        if (held && !vr_sim_hold_is_over(sim, &stream->hold)) return &stream->hold;
    }
    return NULL;
}

static void wait_for_values(struct vr_sim *sim, uint64_t context) {
    for (const struct vr_sim_hold *hold = hold_in(sim, context); hold != NULL; hold = hold_in(sim, context)) vr_sim_hold_wait(sim, hold);
}

vr_cu_result vr_sim_ctx_synchronize(struct vr_sim *sim, int unused) {
    (void)unused;
    struct vr_sim_context *context;
    vr_sim_callback_wait(sim, sim->callbacks.posted);
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    const uint64_t handle = vr_sim_context_handle(sim, context);
    result = vr_sim_context_for_waiting(sim, handle);
    if (result != VR_CU_SUCCESS) return result;
    wait_for_values(sim, handle);
    if (vr_sim_context_find(sim, handle) == NULL) return VR_CU_CONTEXT_IS_DESTROYED; // another thread destroyed it
    vr_sim_wait_context(sim, handle);
    vr_sim_pools_synchronized(sim);
    return VR_CU_SUCCESS;
}

// Synchronizes `context` as if it were current during the call; 0 is the current context.
vr_cu_result vr_sim_ctx_synchronize_of(struct vr_sim *sim, uint64_t context) {
    if (context == 0) return vr_sim_ctx_synchronize(sim, 0);
    vr_cu_result result = vr_sim_ctx_push(sim, context);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_sim_ctx_synchronize(sim, 0);
    vr_sim_ctx_drop(sim);
    return result;
}

// ---- Green contexts: part of a device's multiprocessors, within its primary context. Work takes as long as outside of one. Streams of a
// green context belong to the primary context and report its handle.

enum { TYPE_INVALID = 0, TYPE_SM = 1, TYPE_QUEUES = 1000 };
enum { SCOPE_DEVICE = 0, SCOPE_BALANCED = 1 };
enum { MOST_WORKLOADS = 8 }; // default of CUDA_DEVICE_MAX_CONNECTIONS
enum { DEFAULT_STREAM = 1 }; // the only flag of a green context, and required
enum { IGNORE_COSCHEDULING = 1, SPLIT_FLAGS = 3 };

// Gets the smallest number of multiprocessors in a part and the step between sizes, by compute capability. From CUDA's documentation of
// cuDevSmResourceSplitByCount.
static void steps_of(int major, unsigned *least, unsigned *alignment) {
    *least = major >= 9 ? 8 : major == 8 ? 4 : major == 7 ? 2 : 1;
    *alignment = major >= 9 ? 8 : major >= 7 ? 2 : 1;
}

static struct vr_cu_dev_resource resource_of(const struct vr_sim *sim, uint32_t device, uint32_t multiprocessors) {
    struct vr_cu_dev_resource resource = {.type = multiprocessors == 0 ? TYPE_INVALID : TYPE_SM, .multiprocessors = multiprocessors};
    steps_of(sim->devices[device].card->major, &resource.least, &resource.alignment);
    return resource;
}

static struct vr_cu_dev_resource queues_of(uint32_t device, uint32_t workloads, int32_t scope) {
    return (struct vr_cu_dev_resource){.type = TYPE_QUEUES, .device = (int32_t)device, .workloads = workloads, .scope = scope};
}

static uint32_t multiprocessors_of(struct vr_sim *sim, uint32_t device) {
    int count = 0;
    const vr_cu_result result = vr_sim_device_get_attribute(sim, &count, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, (int)device);
    return result == VR_CU_SUCCESS && count > 0 ? (uint32_t)count : 0;
}

vr_cu_result vr_sim_device_get_dev_resource(struct vr_sim *sim, int device, struct vr_cu_dev_resource *resource, int type) {
    if (resource == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    if (type != TYPE_SM && type != TYPE_QUEUES) return VR_CU_INVALID_RESOURCE_TYPE;
    *resource = type == TYPE_QUEUES ? queues_of((uint32_t)device, MOST_WORKLOADS, SCOPE_DEVICE)
                                    : resource_of(sim, (uint32_t)device, multiprocessors_of(sim, (uint32_t)device));
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_dev_resource(struct vr_sim *sim, uint64_t context, struct vr_cu_dev_resource *resource, int type) {
    int device;
    const vr_cu_result result = vr_sim_ctx_get_device_of(sim, &device, context);
    return result == VR_CU_SUCCESS ? vr_sim_device_get_dev_resource(sim, device, resource, type) : result;
}

// Splits into equal groups of at least `least` multiprocessors; the rest goes to *remainder. With groups == NULL, only sets *count to the
// number of possible groups.
vr_cu_result vr_sim_dev_sm_resource_split_by_count(struct vr_sim *sim, struct vr_cu_dev_resource *groups, unsigned *count,
                                                   const struct vr_cu_dev_resource *input, struct vr_cu_dev_resource *remainder,
                                                   unsigned flags, unsigned least) {
    (void)sim;
    if (count == NULL || input == NULL || (flags & ~(unsigned)SPLIT_FLAGS) != 0) return VR_CU_INVALID_VALUE;
    if (input->type != TYPE_SM) return VR_CU_INVALID_RESOURCE_TYPE;
    const bool loose = (flags & IGNORE_COSCHEDULING) != 0;
    const uint64_t alignment = input->alignment == 0 ? 1 : loose && input->alignment > 2 ? 2 : input->alignment;
    const uint64_t smallest = loose ? alignment : input->least;
    const uint64_t size = vr_round_up(least > smallest ? least : smallest, alignment);
    const uint64_t most = size == 0 ? 0 : input->multiprocessors / size;
    if (groups == NULL) {
        *count = (unsigned)most;
        return VR_CU_SUCCESS;
    }
    if (most == 0 || *count == 0) return VR_CU_INVALID_RESOURCE_CONFIGURATION;
    const struct vr_cu_dev_resource whole = *input; // input may alias an output
    *count = *count < most ? *count : (unsigned)most;
    for (unsigned i = 0; i < *count; i++) {
        groups[i] = whole;
        groups[i].multiprocessors = (uint32_t)size;
        groups[i].next = NULL;
    }
    if (remainder != NULL) {
        *remainder = whole;
        remainder->multiprocessors = whole.multiprocessors - (uint32_t)size * *count;
        if (remainder->multiprocessors == 0) remainder->type = TYPE_INVALID;
    }
    return VR_CU_SUCCESS;
}

// Gets the size of one part. The placement of multiprocessors is not simulated: a part that requests co-scheduled ones is a multiple of
// that number.
static vr_cu_result part_of(const struct vr_cu_dev_resource *input, const struct vr_cu_sm_group *wanted, uint32_t left, uint32_t *size) {
    enum { BACKFILL = 1 };
    const uint32_t alignment = wanted->coscheduled != 0 ? wanted->coscheduled : input->alignment == 0 ? 1 : input->alignment;
    if ((wanted->flags & ~(uint32_t)BACKFILL) != 0) return VR_CU_NOT_SUPPORTED;
    *size = wanted->multiprocessors == 0 ? left - left % alignment : wanted->multiprocessors;
    if (*size == 0 || *size > left || *size % alignment != 0) return VR_CU_INVALID_RESOURCE_CONFIGURATION;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_dev_sm_resource_split(struct vr_sim *sim, struct vr_cu_dev_resource *parts, unsigned count,
                                          const struct vr_cu_dev_resource *input, struct vr_cu_dev_resource *remainder, unsigned flags,
                                          struct vr_cu_sm_group *wanted) {
    (void)sim;
    if (input == NULL || wanted == NULL || count == 0 || flags != 0) return VR_CU_INVALID_VALUE;
    if (input->type != TYPE_SM) return VR_CU_INVALID_RESOURCE_TYPE;
    const struct vr_cu_dev_resource whole = *input; // input may alias an output
    uint32_t left = whole.multiprocessors, size;
    for (unsigned i = 0; i < count; i++) {
        const vr_cu_result fits = part_of(&whole, &wanted[i], left, &size);
        if (fits != VR_CU_SUCCESS) return fits;
        left -= size;
    }
    left = whole.multiprocessors;
    for (unsigned i = 0; i < count; i++) {
        (void)part_of(&whole, &wanted[i], left, &size);
        left -= size;
        wanted[i].multiprocessors = size;
        if (parts == NULL) continue;
        parts[i] = whole;
        parts[i].multiprocessors = size;
        parts[i].next = NULL;
    }
    if (remainder != NULL) {
        *remainder = whole;
        remainder->multiprocessors = left;
        if (left == 0) remainder->type = TYPE_INVALID;
    }
    return VR_CU_SUCCESS;
}

static struct vr_sim_green *find_green(const struct vr_sim *sim, uint64_t handle, bool is_context) {
    struct vr_sim_green *green = vr_sim_slots_find(&sim->greens, handle);
    return green == NULL || green->is_context != is_context ? NULL : green;
}

static vr_cu_result make_green(struct vr_sim *sim, const struct vr_sim_green *what, uint64_t *handle) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->greens, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_green *made = (struct vr_sim_green *)(void *)vr_sim_slots_item(&sim->greens, index);
    made->is_context = what->is_context;
    made->device = what->device;
    made->multiprocessors = what->multiprocessors;
    made->workloads = what->workloads;
    made->scope = what->scope;
    made->id = what->id;
    *handle = vr_sim_slots_handle(&sim->greens, index);
    return VR_CU_SUCCESS;
}

// Adds one resource to a description, which can name queues only once.
static vr_cu_result describe_resource(struct vr_sim_green *description, const struct vr_cu_dev_resource *resource, bool *queues) {
    if (resource->type != TYPE_SM && resource->type != TYPE_QUEUES) return VR_CU_INVALID_RESOURCE_TYPE;
    if (resource->type == TYPE_QUEUES) {
        if (*queues || resource->scope < SCOPE_DEVICE || resource->scope > SCOPE_BALANCED) return VR_CU_INVALID_RESOURCE_CONFIGURATION;
        *queues = true;
        description->workloads = resource->workloads;
        description->scope = resource->scope;
        return VR_CU_SUCCESS;
    }
    if (resource->multiprocessors == 0 || resource->multiprocessors > UINT32_MAX - description->multiprocessors)
        return VR_CU_INVALID_RESOURCE_CONFIGURATION;
    description->multiprocessors += resource->multiprocessors;
    return VR_CU_SUCCESS;
}

// Creates a description. It lives as long as the driver because no call destroys one.
vr_cu_result vr_sim_dev_resource_generate_desc(struct vr_sim *sim, uint64_t *description, const struct vr_cu_dev_resource *resources,
                                               unsigned count) {
    if (description == NULL || resources == NULL || count == 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_green wanted = {.workloads = MOST_WORKLOADS, .scope = SCOPE_DEVICE};
    bool queues = false;
    for (unsigned i = 0; i < count; i++) {
        const vr_cu_result fits = describe_resource(&wanted, &resources[i], &queues);
        if (fits != VR_CU_SUCCESS) return fits;
    }
    return make_green(sim, &wanted, description);
}

vr_cu_result vr_sim_green_ctx_create(struct vr_sim *sim, uint64_t *green, uint64_t description, int device, unsigned flags) {
    if (green == NULL || flags != DEFAULT_STREAM) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    const struct vr_sim_green *described = find_green(sim, description, false);
    if (described == NULL) return VR_CU_INVALID_HANDLE;
    const uint32_t all = multiprocessors_of(sim, (uint32_t)device);
    if (described->multiprocessors > all) return VR_CU_INVALID_RESOURCE_CONFIGURATION;
    const struct vr_sim_green wanted = {.is_context = true,
                                        .device = (uint32_t)device,
                                        .multiprocessors = described->multiprocessors == 0 ? all : described->multiprocessors,
                                        .workloads = described->workloads,
                                        .scope = described->scope,
                                        .id = sim->last_context_id + 1};
    uint64_t primary;
    vr_cu_result result = vr_sim_primary_ctx_retain(sim, &primary, device);
    if (result != VR_CU_SUCCESS) return result;
    result = make_green(sim, &wanted, green);
    if (result != VR_CU_SUCCESS)
        (void)vr_sim_primary_ctx_release(sim, device);
    else
        sim->last_context_id++;
    return result;
}

vr_cu_result vr_sim_green_ctx_destroy(struct vr_sim *sim, uint64_t green) {
    struct vr_sim_green *found = find_green(sim, green, true);
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    const int device = (int)found->device;
    vr_sim_slots_give(&sim->greens, vr_sim_slots_index(&sim->greens, found));
    (void)vr_sim_primary_ctx_release(sim, device); // it is still retained: a reset does not release it
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_green_ctx_get_dev_resource(struct vr_sim *sim, uint64_t green, struct vr_cu_dev_resource *resource, int type) {
    const struct vr_sim_green *found = find_green(sim, green, true);
    if (resource == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    if (type != TYPE_SM && type != TYPE_QUEUES) return VR_CU_INVALID_RESOURCE_TYPE;
    *resource = type == TYPE_QUEUES ? queues_of(found->device, found->workloads, found->scope)
                                    : resource_of(sim, found->device, found->multiprocessors);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_green_ctx_get_id(struct vr_sim *sim, uint64_t green, uint64_t *id) {
    const struct vr_sim_green *found = find_green(sim, green, true);
    if (id == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    *id = found->id;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_from_green_ctx(struct vr_sim *sim, uint64_t *context, uint64_t green) {
    const struct vr_sim_green *found = find_green(sim, green, true);
    if (context == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    *context = sim->devices[found->device].primary;
    return VR_CU_SUCCESS;
}

// Creates a stream in a green context, which must be non-blocking.
vr_cu_result vr_sim_green_ctx_stream_create(struct vr_sim *sim, uint64_t *stream, uint64_t green, unsigned flags, int priority) {
    const struct vr_sim_green *found = find_green(sim, green, true);
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    if (stream == NULL || flags != VR_CU_STREAM_NON_BLOCKING) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_ctx_push(sim, sim->devices[found->device].primary);
    if (result != VR_CU_SUCCESS) return result;
    uint64_t made;
    result = vr_sim_stream_create_with_priority(sim, &made, flags, priority);
    vr_sim_ctx_drop(sim);
    struct vr_sim_stream *created;
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, made, &created);
    if (result != VR_CU_SUCCESS) return result;
    created->green = green;
    *stream = made;
    return VR_CU_SUCCESS;
}

static uint64_t primary_of(const struct vr_sim *sim, uint64_t green) {
    const struct vr_sim_green *found = find_green(sim, green, true);
    return found == NULL ? 0 : sim->devices[found->device].primary;
}

vr_cu_result vr_sim_green_ctx_record_event(struct vr_sim *sim, uint64_t green, uint64_t event) {
    const uint64_t context = primary_of(sim, green);
    return context == 0 ? VR_CU_INVALID_CONTEXT : vr_sim_context_record(sim, context, green, event);
}

vr_cu_result vr_sim_green_ctx_wait_event(struct vr_sim *sim, uint64_t green, uint64_t event) {
    const uint64_t context = primary_of(sim, green);
    return context == 0 ? VR_CU_INVALID_CONTEXT : vr_sim_context_wait(sim, context, green, event);
}

// Sets *green to 0 for a stream not made in a green context.
vr_cu_result vr_sim_stream_get_green_ctx(struct vr_sim *sim, uint64_t stream, uint64_t *green) {
    struct vr_sim_stream *found;
    if (green == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *green = found->green;
    return result;
}

// Gets the resource of the stream's green context, or of the whole device.
vr_cu_result vr_sim_stream_get_dev_resource(struct vr_sim *sim, uint64_t stream, struct vr_cu_dev_resource *resource, int type) {
    uint64_t context, green;
    vr_cu_result result = vr_sim_stream_get_green_ctx(sim, stream, &green);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_get_ctx(sim, stream, &context);
    if (result != VR_CU_SUCCESS) return result;
    return green != 0 ? vr_sim_green_ctx_get_dev_resource(sim, green, resource, type)
                      : vr_sim_ctx_get_dev_resource(sim, context, resource, type);
}
