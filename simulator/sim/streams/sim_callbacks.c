// Host functions in streams, and kernel results that are computed on the host.
#include "sim/streams/sim_callbacks.h"

#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"

// ---- The thread that calls host functions.

#define GRACE_NS 20000000u // 20 ms

static bool is_bytes(const struct vr_sim_work *work) {
    return work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY || work->type == VR_CU_GRAPH_NODE_TYPE_MEMSET ||
           work->type == VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
}

// Moves bytes for an earlier call. Does nothing if the memory was freed in the meantime, as may also happen on hardware. Reads are reported
// as those of the earlier call.
static void do_bytes(struct vr_sim *sim, const struct vr_sim_callback *callback) {
    sim->read = (struct vr_sim_read){0};
    sim->reader = callback->reader;
    if (vr_sim_work_is_valid(sim, &callback->work)) (void)vr_sim_work_do(sim, &callback->work);
    const struct vr_sim_read read = sim->read;
    sim->read = (struct vr_sim_read){0};
    if (sim->watch == NULL || !vr_sim_read_any(&read)) return;
    sim->counted = 0;
    vr_mutex_unlock(&sim->lock);
    sim->watch->notify(&callback->reader, &read);
    vr_mutex_lock(&sim->lock);
}

// Calls a function without the lock, or moves bytes with it.
static void do_entry(struct vr_sim *sim, const struct vr_sim_callback *callback) {
    if (callback->stream_function == NULL && is_bytes(&callback->work)) {
        do_bytes(sim, callback);
        vr_sim_payload_drop(callback->work.payload);
        return;
    }
    vr_mutex_unlock(&sim->lock);
    if (callback->stream_function != NULL)
        callback->stream_function(callback->stream, VR_CU_SUCCESS, callback->work.argument);
    else
        callback->work.function(callback->work.argument);
    vr_mutex_lock(&sim->lock);
}

static void run_callbacks(void *argument) {
    struct vr_sim *sim = argument;
    struct vr_sim_callbacks *callbacks = &sim->callbacks;
    vr_mutex_lock(&sim->lock);
    callbacks->thread_id = vr_os_thread_id();
    for (;;) {
        while (callbacks->first == callbacks->count && !callbacks->ending) vr_signal_wait(&callbacks->changed, &sim->lock, UINT64_MAX);
        if (callbacks->first == callbacks->count) break;
        const struct vr_sim_callback callback = callbacks->items[callbacks->first++];
        if (callbacks->first == callbacks->count) callbacks->first = callbacks->count = 0;
        do_entry(sim, &callback);
        callbacks->done++;
        vr_sim_moved(sim);
        vr_signal_raise(&callbacks->changed);
    }
    vr_mutex_unlock(&sim->lock);
}

void vr_sim_callbacks_end(struct vr_sim *sim) {
    struct vr_sim_callbacks *callbacks = &sim->callbacks;
    if (callbacks->running) {
        vr_mutex_lock(&sim->lock);
        callbacks->ending = true;
        vr_signal_raise(&callbacks->changed);
        vr_mutex_unlock(&sim->lock);
        vr_thread_join(&callbacks->thread);
        vr_signal_destroy(&callbacks->changed);
    }
    free(callbacks->items);
}

// --- entries --------------------------------------------------------------------------------------------------------

static vr_cu_result start_thread(struct vr_sim *sim) {
    struct vr_sim_callbacks *callbacks = &sim->callbacks;
    if (callbacks->running) return VR_CU_SUCCESS;
    vr_signal_init(&callbacks->changed);
    if (vr_thread_start(&callbacks->thread, run_callbacks, sim) != VRAM_OK) {
        vr_signal_destroy(&callbacks->changed);
        return VR_CU_OUT_OF_MEMORY;
    }
    callbacks->running = true;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_callbacks_reserve(struct vr_sim *sim, size_t more) {
    struct vr_sim_callbacks *callbacks = &sim->callbacks;
    if (!sim->options.host_thread) return VR_CU_SUCCESS;
    if (VR_GROW(callbacks, items, callbacks->count + more) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    return start_thread(sim);
}

static uint64_t post_callback(struct vr_sim *sim, const struct vr_sim_callback *callback) {
    struct vr_sim_callbacks *callbacks = &sim->callbacks;
    assert(callbacks->count < callbacks->items_capacity);
    callbacks->items[callbacks->count] = *callback;
    callbacks->items[callbacks->count++].reader = sim->reader;
    vr_signal_raise(&callbacks->changed);
    return ++callbacks->posted;
}

vr_cu_result vr_sim_work_run(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_callback *callback) {
    const bool bytes = callback->stream_function == NULL && is_bytes(&callback->work);
    if (!bytes && callback->stream_function == NULL && callback->work.function == NULL) return VR_CU_SUCCESS;
    if (!sim->options.host_thread || (bytes && vr_sim_callback_done(sim, stream->callback))) {
        if (callback->stream_function == NULL) return vr_sim_work_do(sim, &callback->work);
        callback->stream_function(callback->stream, VR_CU_SUCCESS, callback->work.argument);
        return VR_CU_SUCCESS;
    }
    if (!bytes && sim->clock_ns < stream->tail_ns) sim->clock_ns = stream->tail_ns;
    if (bytes) vr_sim_payload_keep(callback->work.payload);
    stream->callback = post_callback(sim, callback);
    vr_sim_note_callback(sim, stream);
    return VR_CU_SUCCESS;
}

void vr_sim_callback_call(struct vr_sim *sim, vr_cu_host_function *function, void *argument) {
    const struct vr_sim_callback callback = {.work = {.type = VR_CU_GRAPH_NODE_TYPE_HOST, .function = function, .argument = argument}};
    if (!sim->options.host_thread || vr_sim_callbacks_reserve(sim, 1) != VR_CU_SUCCESS)
        function(argument);
    else
        (void)post_callback(sim, &callback);
}

// --- waiting --------------------------------------------------------------------------------------------------------

void vr_sim_callback_wait(struct vr_sim *sim, uint64_t number) {
    while (!vr_sim_callback_done(sim, number) && !vr_sim_is_callback_thread(sim)) vr_sim_wait(sim, &sim->callbacks.changed, UINT64_MAX);
}

void vr_sim_callback_grace(struct vr_sim *sim, uint64_t number) {
    const uint64_t until_ns = vr_os_monotonic_ns() + GRACE_NS;
    while (!vr_sim_callback_done(sim, number) && !vr_sim_is_callback_thread(sim)) {
        const uint64_t now_ns = vr_os_monotonic_ns();
        if (now_ns >= until_ns) return;
        vr_sim_wait(sim, &sim->callbacks.changed, until_ns - now_ns);
    }
}

// Finds a stream. A thread that has not yet called the driver has no current context: the device's primary one is used then.
static vr_cu_result find_stream(struct vr_sim *sim, uint32_t device, uint64_t stream, struct vr_sim_stream **queue) {
    struct vr_sim_context *context;
    if (vr_sim_current(sim, &context) == VR_CU_SUCCESS && context->device == device) return vr_sim_stream_find(sim, stream, queue);
    if (device >= sim->options.device_count || sim->devices[device].primary == 0) return VR_CU_INVALID_CONTEXT;
    return vr_sim_stream_in(sim, sim->devices[device].primary, stream, queue);
}

vr_cu_result vr_sim_results_after(struct vr_sim *sim, uint32_t device, uint64_t stream) {
    struct vr_sim_stream *queue;
    if (!vr_sim_keeps(sim)) return VR_CU_NOT_SUPPORTED;
    const vr_cu_result result = find_stream(sim, device, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->capture != 0) return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    if (!vr_sim_callback_done(sim, queue->callback) && !vr_sim_is_callback_thread(sim)) vr_sim_callback_wait(sim, queue->callback);
    return VR_CU_SUCCESS;
}

// Returns whether any device can access the range. The thread's current device may differ from the memory's.
static bool is_there(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, bool write, uint64_t *size_bytes) {
    if (!vr_mul_u64(elements, element_bytes, size_bytes)) return false;
    for (uint32_t device = 0; device < sim->options.device_count; device++)
        if (vr_sim_is_reached(sim, address, *size_bytes, device, write)) return true;
    return false;
}

// Reduces levels of bytes to levels of elements, in place. An element's level is that of its least known byte.
static void join_levels(uint8_t *levels, uint64_t elements, uint32_t element_bytes) {
    for (uint64_t i = 0; i < elements; i++) {
        uint8_t level = VR_SIM_KNOWN;
        for (uint32_t j = 0; j < element_bytes; j++)
            if (levels[i * element_bytes + j] > level) level = levels[i * element_bytes + j];
        levels[i] = level;
    }
}

vr_cu_result vr_sim_results_look(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes,
                                 uint8_t *levels) {
    uint64_t size_bytes;
    if (!vr_sim_keeps(sim)) return VR_CU_NOT_SUPPORTED;
    if (elements == 0) return VR_CU_SUCCESS;
    if (!is_there(sim, address, elements, element_bytes, false, &size_bytes)) return VR_CU_INVALID_VALUE;
    if (!vr_sim_transfer_look(sim, address, size_bytes, bytes, levels)) return VR_CU_OUT_OF_MEMORY;
    join_levels(levels, elements, element_bytes);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_results_put(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes,
                                const uint8_t *levels) {
    const unsigned char *from = bytes;
    uint64_t size_bytes;
    if (!vr_sim_keeps(sim)) return VR_CU_NOT_SUPPORTED;
    if (elements == 0) return VR_CU_SUCCESS;
    if (!is_there(sim, address, elements, element_bytes, true, &size_bytes)) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0, run; i < elements; i += run) {
        const uint8_t level = levels == NULL ? VR_SIM_KNOWN : levels[i];
        for (run = levels == NULL ? elements : 1; i + run < elements && levels[i + run] == level; run++) {
        }
        if (level >= VR_SIM_LEVELS) continue;
        const uint64_t at = i * element_bytes;
        if (!vr_sim_transfer_result(sim, address + at, run * element_bytes, from == NULL ? NULL : from + at, level))
            return VR_CU_OUT_OF_MEMORY;
    }
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_results_forget(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (!is_there(sim, address, size_bytes, 1, true, &size_bytes)) return VR_CU_INVALID_VALUE;
    vr_sim_transfer_pass(sim, address, size_bytes, false);
    return VR_CU_SUCCESS;
}
