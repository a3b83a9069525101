// Creation and destruction of a simulator, and the functions of vram/sim.h that control and inspect it.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_arrays.h"
#include "sim/memory/sim_managed.h"
#include "sim/memory/sim_pools.h"
#include "sim/modules/sim_modules.h"
#include "sim/streams/sim_callbacks.h"

#include <stdatomic.h>
#include "vram/sim.h"

enum { // of handles
    NO_TAG,
#define X(table, type) TAG_##table,
    VR_SIM_TABLES(X)
#undef X
        TAG_COUNT
};
_Static_assert(TAG_COUNT - 1 <= VR_SIM_SLOT_TAG_MOST, "handles have room for the tag of every table");

static const char sim_kind[] = "sim";

struct vr_sim *vr_sim_of(struct vram_driver *driver) {
    return driver != NULL && strcmp(driver->kind, sim_kind) == 0 ? (struct vr_sim *)(void *)driver : NULL;
}

static void set_up_device(const struct vram_sim_options *options, uint32_t place, struct vr_sim_device *device) {
    const uint32_t number = options->visible_count == 0 ? place : options->visible[place];
    device->ordinal = number;
    device->card = vr_sim_options_card(options, number);
    device->memory_bytes = vr_sim_options_memory(options, number);
    const bool of_device = options->context_bytes == VRAM_SIM_CONTEXT_OF_DEVICE;
    device->context_bytes = of_device ? device->card->context_mib * VR_MIB : options->context_bytes;
}

static bool host_available(struct vram_driver *driver, int device, uint64_t *bytes) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL || !vr_sim_is_device(sim, device)) return false;
    vr_mutex_lock(&sim->lock);
    *bytes = vr_sim_free_bytes(&sim->devices[device]);
    vr_mutex_unlock(&sim->lock);
    return true;
}

static uint64_t sim_progress(struct vram_driver *driver) {
    return atomic_load_explicit(&((struct vr_sim *)(void *)driver)->progress, memory_order_acquire);
}

static void set_up(struct vr_sim *sim, const struct vram_sim_options *options) {
    static atomic_uint_fast64_t last_serial;
    sim->head =
        (struct vram_driver){.calls = &vr_sim_calls, .clock_ns = vram_sim_clock_ns, .host_available = host_available, .kind = sim_kind};
    sim->head.progress = sim_progress;
    atomic_store_explicit(&sim->progress, 1, memory_order_relaxed);
    sim->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
    sim->options = *options;
    // Backed memory consists of host pages, so two allocations must never share one.
    if (options->backed && options->alloc_small_alignment < VR_SIM_PAGE_BYTES) sim->options.alloc_small_alignment = VR_SIM_PAGE_BYTES;
    if (options->backed && options->alloc_alignment < VR_SIM_PAGE_BYTES) sim->options.alloc_alignment = VR_SIM_PAGE_BYTES;
    sim->machine_devices = options->device_count;
    if (options->visible_count != 0) sim->options.device_count = options->visible_count;
    for (uint32_t i = 0; i < sim->options.device_count; i++) set_up_device(options, i, &sim->devices[i]);
#define X(table, type) sim->table = (struct vr_sim_slots){.item_bytes = sizeof(type), .tag = TAG_##table};
    VR_SIM_TABLES(X)
#undef X
    sim->alloc_cursor = options->alloc_base;
    sim->reserve_cursor = options->reserve_base;
    sim->allocated.lowest = sim->reserved.lowest = UINT64_MAX;
    vr_mutex_init(&sim->lock);
    vr_signal_init(&sim->process.changed);
}

static void *live_item(const struct vr_sim_slots *slots, uint32_t index) {
    struct vr_sim_slot *slot = vr_sim_slots_item(slots, index);
    return slot->live ? slot : NULL;
}

// Frees the contents of events, streams, captures, graphs and executable graphs. The tables themselves stay.
static void end_objects(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->captures.used; i++)
        if (live_item(&sim->captures, i) != NULL) vr_sim_capture_end(sim, live_item(&sim->captures, i));
    for (uint32_t i = 0; i < sim->execs.used; i++)
        if (live_item(&sim->execs, i) != NULL) vr_sim_exec_end(sim, live_item(&sim->execs, i));
    for (uint32_t i = 0; i < sim->graphs.used; i++) {
        const struct vr_sim_graph *graph = live_item(&sim->graphs, i);
        if (graph != NULL && !graph->owned) vr_sim_graph_end(sim, i);
    }
    for (uint32_t i = 0; i < sim->events.used; i++) {
        struct vr_sim_event *event = live_item(&sim->events, i);
        if (event == NULL) continue;
        vr_sim_nodes_free(&event->frontier);
        vr_check_point_drop(event->point);
    }
    for (uint32_t i = 0; i < sim->streams.used; i++)
        if (live_item(&sim->streams, i) != NULL) vr_sim_stream_free(live_item(&sim->streams, i));
    // User objects that the program never released end without their destructors, as at process exit.
    for (uint32_t i = 0; i < sim->contexts.used; i++) {
        const struct vr_sim_context *context = live_item(&sim->contexts, i);
        if (context != NULL) free(context->peers);
    }
}

static void destroy_sim(struct vram_driver *driver) {
    struct vr_sim *sim = (struct vr_sim *)(void *)driver;
    vr_sim_callbacks_end(sim);
    vr_sim_process_take_back(sim);
    sim->options.host_thread = false; // call the destructors below in this thread
    vr_sim_free_allocations(sim, 0);
    vr_sim_close_imports(sim, 0);
    vr_sim_pool_imports_end(sim, UINT32_MAX);
    vr_sim_end_arrays(sim, 0);
    vr_sim_end_managed(sim, 0);
    vr_sim_free_hosts(sim, 0);
    vr_sim_end_modules(sim, 0);
    vr_sim_end_libraries(sim);
    vr_sim_end_links(sim);
    end_objects(sim);
    vr_sim_free_vmm(sim);
    vr_sim_back_close(sim);
    for (size_t i = 0; i < sim->thread_count; i++) {
        free(sim->threads[i].contexts);
        free(sim->threads[i].streams);
    }
    free(sim->threads);
    free(sim->shared);
    free(sim->guards);
    free(sim->accesses.items);
    free(sim->bindings);
    free(sim->files);
#define X(table, type) free(sim->table.items);
    VR_SIM_TABLES(X)
#undef X
    vr_sim_ranges_release(&sim->spaces);
    vr_sim_ranges_release(&sim->mappings);
    vr_sim_ranges_release(&sim->hosts);
    vr_sim_ranges_release(&sim->pooled);
    vr_sim_ranges_release(&sim->regions);
    for (uint32_t i = 0; i < sim->options.device_count; i++) vr_sim_regions_release(&sim->devices[i].regions);
    free(sim->alloc_queue.items);
    free(sim->reserve_queue.items);
    vr_signal_destroy(&sim->process.changed);
    vr_mutex_destroy(&sim->lock);
    free(sim);
}

enum vram_status vram_sim_create(const struct vram_sim_options *options, struct vram_driver **driver) {
    if (driver == NULL) return VRAM_INVALID_ARGUMENT;
    struct vram_sim_options complete = {0};
    if (options != NULL) complete = *options;
    if (!vr_sim_options_complete(&complete)) return VRAM_INVALID_ARGUMENT;
    struct vr_sim *sim = calloc(1, sizeof *sim);
    if (sim == NULL) return VRAM_NO_HOST_MEMORY;
    set_up(sim, &complete);
    sim->head.destroy = destroy_sim;
    if (vr_sim_back_open(sim) != VR_CU_SUCCESS) {
        destroy_sim(&sim->head);
        return VRAM_UNSUPPORTED;
    }
    *driver = &sim->head;
    return VRAM_OK;
}

// Completes a stream. A created stream is found in any context; a default stream is that of the calling thread's current context.
static enum vram_status complete_locked(struct vr_sim *sim, uint64_t handle) {
    struct vr_sim_stream *stream = vr_sim_slots_find(&sim->streams, handle);
    if (stream == NULL && vr_sim_stream_find(sim, handle, &stream) != VR_CU_SUCCESS) return VRAM_INVALID_ARGUMENT;
    vr_sim_complete_stream(sim, stream);
    return VRAM_OK;
}

enum vram_status vram_sim_complete(struct vram_driver *driver, uint64_t stream) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&sim->lock);
    enum vram_status status = complete_locked(sim, stream);
    vr_sim_moved(sim);
    vr_mutex_unlock(&sim->lock);
    return status;
}

enum vram_status vram_sim_complete_all(struct vram_driver *driver) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&sim->lock);
    vr_sim_wait_all(sim);
    vr_sim_moved(sim);
    vr_mutex_unlock(&sim->lock);
    return VRAM_OK;
}

// Converts the result of submitting work to a stream.
static enum vram_status status_of(vr_cu_result result) {
    if (result == VR_CU_SUCCESS) return VRAM_OK;
    return result == VR_CU_OUT_OF_MEMORY ? VRAM_NO_HOST_MEMORY : VRAM_DRIVER;
}

static enum vram_status launch_locked(struct vr_sim *sim, uint32_t device, uint64_t handle, const struct vr_sim_work *work) {
    if (device >= sim->options.device_count || !vr_sim_fits_in_time(sim, sim->devices[device].tail_ns, work->cost_ns))
        return VRAM_INVALID_ARGUMENT;
    struct vr_sim_stream *stream = vr_sim_slots_find(&sim->streams, handle);
    if (stream == NULL) {
        uint64_t primary = sim->devices[device].primary;
        if (primary == 0 || vr_sim_context_find(sim, primary)->inactive || vr_sim_stream_in(sim, primary, handle, &stream) != VR_CU_SUCCESS)
            return VRAM_INVALID_ARGUMENT;
    }
    if (vr_sim_context_find(sim, stream->context)->device != device) return VRAM_INVALID_ARGUMENT;
    const vr_cu_result result = vr_sim_may_work(sim, stream);
    return status_of(result == VR_CU_SUCCESS ? vr_sim_submit(sim, stream, work) : result);
}

enum vram_status vram_sim_busy(struct vram_driver *driver, uint32_t device, uint64_t stream, uint64_t work_ns) {
    return vram_sim_launch(driver, device, stream, NULL, NULL, work_ns);
}

enum vram_status vram_sim_launch(struct vram_driver *driver, uint32_t device, uint64_t stream, void (*function)(void *argument),
                                 void *argument, uint64_t cost_ns) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return VRAM_INVALID_ARGUMENT;
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_KERNEL, .function = function, .argument = argument, .cost_ns = cost_ns};
    vr_mutex_lock(&sim->lock);
    enum vram_status status = launch_locked(sim, device, stream, &work);
    vr_sim_moved(sim);
    vr_mutex_unlock(&sim->lock);
    return status;
}

static enum vram_status stream_create_locked(struct vr_sim *sim, uint32_t device, uint64_t *stream) {
    if (device >= sim->options.device_count || sim->devices[device].primary == 0) return VRAM_INVALID_ARGUMENT;
    if (vr_sim_context_find(sim, sim->devices[device].primary)->inactive) return VRAM_INVALID_ARGUMENT;
    const vr_cu_result result = vr_sim_stream_create_in(sim, sim->devices[device].primary, VR_SIM_STREAM_NON_BLOCKING, stream);
    return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

enum vram_status vram_sim_stream_create(struct vram_driver *driver, uint32_t device, uint64_t *stream) {
    VR_REQUIRE(driver && stream);
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&sim->lock);
    enum vram_status status = stream_create_locked(sim, device, stream);
    vr_mutex_unlock(&sim->lock);
    return status;
}

enum vram_status vram_sim_advance(struct vram_driver *driver, uint64_t elapsed_ns) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&sim->lock);
    bool fits = vr_sim_fits_in_time(sim, 0, elapsed_ns);
    if (fits) sim->clock_ns += elapsed_ns;
    vr_sim_moved(sim);
    vr_mutex_unlock(&sim->lock);
    return fits ? VRAM_OK : VRAM_INVALID_ARGUMENT;
}

uint64_t vram_sim_clock_ns(struct vram_driver *driver) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return 0;
    vr_mutex_lock(&sim->lock);
    uint64_t clock_ns = sim->clock_ns;
    vr_mutex_unlock(&sim->lock);
    return clock_ns;
}

static enum vram_status push_queue(struct vr_sim *sim, struct vr_sim_queue *queue, uint64_t address) {
    vr_mutex_lock(&sim->lock);
    vr_cu_result result = vr_sim_queue_push(queue, address);
    vr_mutex_unlock(&sim->lock);
    return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

enum vram_status vram_sim_queue_address(struct vram_driver *driver, uint64_t address) {
    struct vr_sim *sim = vr_sim_of(driver);
    return sim == NULL || address == 0 ? VRAM_INVALID_ARGUMENT : push_queue(sim, &sim->alloc_queue, address);
}

enum vram_status vram_sim_queue_reservation(struct vram_driver *driver, uint64_t address) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL || address == 0 || address % VR_SIM_GRANULARITY != 0) return VRAM_INVALID_ARGUMENT;
    return push_queue(sim, &sim->reserve_queue, address);
}

enum vram_status vram_sim_clear_queues(struct vram_driver *driver) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&sim->lock);
    sim->alloc_queue.next = sim->alloc_queue.count;
    sim->reserve_queue.next = sim->reserve_queue.count;
    vr_mutex_unlock(&sim->lock);
    return VRAM_OK;
}

enum vram_status vram_sim_set_memory(struct vram_driver *driver, uint32_t device, uint64_t memory_bytes) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL || device >= sim->options.device_count || memory_bytes > VR_SIM_MEMORY_MAX) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&sim->lock);
    sim->devices[device].memory_bytes = memory_bytes;
    vr_mutex_unlock(&sim->lock);
    return VRAM_OK;
}

uint64_t vram_sim_memory_used(struct vram_driver *driver, uint32_t device) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL || device >= sim->options.device_count) return 0;
    vr_mutex_lock(&sim->lock);
    uint64_t used_bytes = sim->devices[device].used_bytes;
    vr_mutex_unlock(&sim->lock);
    return used_bytes;
}

uint64_t vram_sim_live_objects(struct vram_driver *driver) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL) return 0;
    vr_mutex_lock(&sim->lock);
    uint64_t objects = sim->spaces.count + sim->named_physicals + sim->mappings.count + sim->events.live + sim->user_streams;
    objects += sim->hosts.count + sim->graphs.live + sim->execs.live + sim->user_pools;
    vr_mutex_unlock(&sim->lock);
    return objects;
}

static const char *const call_names[VR_SIM_CALL_COUNT] = {
#define X(member, symbol, exported, version, parameters, arguments) #symbol,
#include "driver/calls.def"
#include "sim/program_calls.def"
#undef X
};

bool vram_sim_call_at(struct vram_driver *driver, uint32_t index, const char **name, uint64_t *count, uint64_t *cost_ns) {
    struct vr_sim *sim = vr_sim_of(driver);
    if (sim == NULL || index >= VR_SIM_CALL_COUNT) return false;
    vr_mutex_lock(&sim->lock);
    if (name != NULL) *name = call_names[index];
    if (count != NULL) *count = sim->counts[index];
    if (cost_ns != NULL) *cost_ns = sim->costs_ns[index];
    vr_mutex_unlock(&sim->lock);
    return true;
}

uint64_t vram_sim_calls(struct vram_driver *driver, const char *call) {
    if (call == NULL) return 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < VR_SIM_CALL_COUNT; i++)
        if (strcmp(call_names[i], call) == 0 && vram_sim_call_at(driver, i, NULL, &count, NULL)) break;
    return count;
}
