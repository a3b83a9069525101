// Calls about streams: submitting work, memory operations, attributes, and destruction.
#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_pools.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_checking.h"
#include "sim/streams/sim_guards.h"
#include "sim/streams/sim_memory_ops.h"

// ---- Submitting work and host functions.

// Reserves room if vr_sim_work_run() may post the work to the thread of host functions.
static vr_cu_result make_queue_room(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_callback *callback) {
    const bool calls = callback->stream_function != NULL || callback->work.function != NULL;
    return calls || !vr_sim_callback_done(sim, stream->callback) ? vr_sim_callbacks_reserve(sim, 1) : VR_CU_SUCCESS;
}

static vr_cu_result give_callback(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_callback *callback) {
    vr_cu_result result = make_queue_room(sim, stream, callback);
    if (result == VR_CU_SUCCESS) result = vr_sim_enqueue(sim, stream, vr_sim_work_cost_ns(sim, &callback->work), NULL);
    if (VR_UNLIKELY(sim->checking != NULL) && result == VR_CU_SUCCESS) vr_sim_checking_work(sim, stream, &callback->work);
    if (result == VR_CU_SUCCESS) result = vr_sim_work_run(sim, stream, callback);
    if (VR_UNLIKELY(sim->checking != NULL) && result == VR_CU_SUCCESS) vr_sim_guards_add(sim, stream, &callback->work);
    return result;
}

vr_cu_result vr_sim_submit(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    if (stream->capture != 0) return vr_sim_capture_add(sim, stream, work);
    const struct vr_sim_callback callback = {.work = *work};
    return give_callback(sim, stream, &callback);
}

vr_cu_result vr_sim_launch_host_func(struct vr_sim *sim, uint64_t stream, vr_cu_host_function *function, void *argument) {
    if (function == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_HOST, .function = function, .argument = argument};
    return result == VR_CU_SUCCESS ? vr_sim_submit(sim, queue, &work) : result;
}

// `mode` says whether the thread spins or blocks before the function; it has no effect here.
vr_cu_result vr_sim_launch_host_func_v2(struct vr_sim *sim, uint64_t stream, vr_cu_host_function *function, void *argument, unsigned mode) {
    return mode > 1 ? VR_CU_INVALID_VALUE : vr_sim_launch_host_func(sim, stream, function, argument);
}

// Captures do not support these callbacks.
vr_cu_result vr_sim_stream_add_callback(struct vr_sim *sim, uint64_t stream, vr_cu_stream_callback *function, void *argument,
                                        unsigned flags) {
    if (function == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->capture != 0) {
        vr_sim_capture_find(sim, queue->capture)->invalidated = true;
        return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    const struct vr_sim_callback callback = {
        .work = {.type = VR_CU_GRAPH_NODE_TYPE_HOST, .argument = argument}, .stream_function = function, .stream = stream};
    return give_callback(sim, queue, &callback);
}

// ---- The operations of cuStreamBatchMemOp, alone and in batches.

enum { OPS_MOST = 256 };

static bool is_wait(const struct vr_cu_mem_op *op) {
    return op->operation == VR_CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation == VR_CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_write(const struct vr_cu_mem_op *op) {
    return op->operation == VR_CU_STREAM_MEM_OP_WRITE_VALUE_32 || op->operation == VR_CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static uint64_t width_of(const struct vr_cu_mem_op *op) {
    return op->operation == VR_CU_STREAM_MEM_OP_WAIT_VALUE_64 || op->operation == VR_CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;
}

static vr_cu_result check_mem_op(const struct vr_cu_mem_op *op) {
    const bool barrier = op->operation == VR_CU_STREAM_MEM_OP_BARRIER || op->operation == VR_CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    if (barrier) return VR_CU_SUCCESS;
    if (!is_wait(op) && !is_write(op)) return op->operation <= 0 ? VR_CU_INVALID_VALUE : VR_CU_NOT_SUPPORTED;
    const uint32_t known =
        is_wait(op) ? VR_CU_STREAM_WAIT_VALUE_NOR | VR_CU_STREAM_WAIT_VALUE_FLUSH : VR_CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    return (op->flags & ~known) != 0 || op->address % width_of(op) != 0 ? VR_CU_INVALID_VALUE : VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ops_keep(const struct vr_cu_mem_op *ops, uint32_t count, uint32_t flags, uint64_t context,
                             struct vr_sim_payload **made) {
    if (count == 0 || count > OPS_MOST || ops == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    for (uint32_t i = 0; i < count; i++) {
        const vr_cu_result result = check_mem_op(&ops[i]);
        if (result != VR_CU_SUCCESS) return result;
    }
    struct vr_sim_ops_payload *payload = malloc(sizeof *payload + count * sizeof *ops);
    if (payload == NULL) return VR_CU_OUT_OF_MEMORY;
    *payload = (struct vr_sim_ops_payload){.head = {1}, .context = context, .count = count, .flags = flags};
    memcpy(payload->ops, ops, count * sizeof *ops);
    *made = &payload->head;
    return VR_CU_SUCCESS;
}

// Returns whether the memory that the operations use exists. Graphs check it when the node is made; a write to memory freed before the
// launch is skipped.
bool vr_sim_ops_are_valid(const struct vr_sim *sim, const struct vr_cu_mem_op *ops, uint32_t count, uint32_t device) {
    for (uint32_t i = 0; i < count; i++) {
        if (!is_wait(&ops[i]) && !is_write(&ops[i])) continue;
        if (!vr_sim_is_reached(sim, ops[i].address, width_of(&ops[i]), device, is_write(&ops[i]))) return false;
    }
    return true;
}

// Makes the stream wait for this value. Of several values that are not yet written, only the last holds it.
static void hold_stream(struct vr_sim_stream *stream, const struct vr_cu_mem_op *op) {
    stream->hold = (struct vr_sim_hold){
        .address = op->address, .value = op->value, .test = op->flags & VR_CU_STREAM_WAIT_VALUE_NOR, .width = (uint32_t)width_of(op)};
}

static vr_cu_result do_op(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_cu_mem_op *op) {
    if (!is_wait(op) && !is_write(op)) return VR_CU_SUCCESS;
    const uint32_t device = vr_sim_context_find(sim, stream->context)->device;
    if (is_wait(op)) {
        hold_stream(stream, op);
        atomic_store_explicit(&sim->progress, 0, memory_order_release);
        if (vr_sim_hold_is_over(sim, &stream->hold)) stream->hold.width = 0;
        if (VR_UNLIKELY(sim->checking != NULL)) vr_check_hold(sim->checking->check, stream->serial);
        return vr_sim_enqueue(sim, stream, 0, NULL);
    }
    struct vr_sim_work works[2];
    const uint32_t count = vr_sim_op_works(op, device, works);
    vr_cu_result result = VR_CU_SUCCESS;
    for (uint32_t i = 0; i < count && result == VR_CU_SUCCESS; i++) result = vr_sim_submit(sim, stream, &works[i]);
    return result;
}

vr_cu_result vr_sim_stream_batch_mem_op(struct vr_sim *sim, uint64_t stream, unsigned count, const struct vr_cu_mem_op *ops,
                                        unsigned flags) {
    struct vr_sim_stream *queue;
    struct vr_sim_payload *payload;
    vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result == VR_CU_SUCCESS) result = vr_sim_ops_keep(ops, count, flags, queue->context, &payload);
    if (result != VR_CU_SUCCESS) return result;
    if (!vr_sim_ops_are_valid(sim, ops, count, vr_sim_context_find(sim, queue->context)->device)) result = VR_CU_INVALID_VALUE;
    if (queue->capture != 0 && result == VR_CU_SUCCESS) {
        const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .payload = payload};
        result = vr_sim_capture_add(sim, queue, &work);
    }
    for (unsigned i = 0; i < count && queue->capture == 0 && result == VR_CU_SUCCESS; i++) result = do_op(sim, queue, &ops[i]);
    vr_sim_payload_drop(payload);
    return result;
}

static vr_cu_result run_mem_op(struct vr_sim *sim, uint64_t stream, int operation, uint64_t address, uint64_t value, unsigned flags) {
    const struct vr_cu_mem_op op = {.operation = operation, .address = address, .value = value, .flags = flags};
    return vr_sim_stream_batch_mem_op(sim, stream, 1, &op, 0);
}

vr_cu_result vr_sim_stream_write_value32(struct vr_sim *sim, uint64_t stream, uint64_t address, uint32_t value, unsigned flags) {
    return run_mem_op(sim, stream, VR_CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

vr_cu_result vr_sim_stream_write_value64(struct vr_sim *sim, uint64_t stream, uint64_t address, uint64_t value, unsigned flags) {
    return run_mem_op(sim, stream, VR_CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

vr_cu_result vr_sim_stream_wait_value32(struct vr_sim *sim, uint64_t stream, uint64_t address, uint32_t value, unsigned flags) {
    return run_mem_op(sim, stream, VR_CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

vr_cu_result vr_sim_stream_wait_value64(struct vr_sim *sim, uint64_t stream, uint64_t address, uint64_t value, unsigned flags) {
    return run_mem_op(sim, stream, VR_CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

// ---- Calls about streams, and the end of a context's streams. These know captures and pools; the queues in sim_stream.c do not.

void vr_sim_end_streams(struct vr_sim *sim, uint64_t context) {
    uint32_t legacy = vr_sim_context_find(sim, context)->legacy;
    for (size_t i = 0; i < sim->thread_count; i++) { // per-thread streams
        struct vr_sim_thread *thread = &sim->threads[i];
        for (size_t j = 0; j < thread->stream_count;) {
            if (thread->streams[j].context == context)
                thread->streams[j] = thread->streams[--thread->stream_count];
            else
                j++;
        }
    }
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (!stream->slot.live || stream->context != context) continue;
        vr_sim_capture_leave(sim, stream);
        if (stream->user && stream->slot.named) sim->user_streams--;
        stream->slot.named = false;
        if (i != legacy) vr_sim_stream_collect(sim, i);
    }
    vr_sim_stream_collect(sim, legacy);
}

vr_cu_result vr_sim_stream_create(struct vr_sim *sim, uint64_t *stream, unsigned flags) {
    if (stream == NULL || (flags & ~(unsigned)VR_CU_STREAM_NON_BLOCKING) != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    enum vr_sim_stream_kind kind = flags == 0 ? VR_SIM_STREAM_BLOCKING : VR_SIM_STREAM_NON_BLOCKING;
    return vr_sim_stream_create_in(sim, vr_sim_context_handle(sim, context), kind, stream);
}

vr_cu_result vr_sim_stream_create_in(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint64_t *stream) {
    uint32_t index;
    const vr_cu_result result = vr_sim_stream_make(sim, context, kind, &index);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_stream_at(sim, index)->user = true;
    sim->user_streams++;
    *stream = vr_sim_slots_handle(&sim->streams, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_create_with_priority(struct vr_sim *sim, uint64_t *stream, unsigned flags, int priority) {
    const vr_cu_result result = vr_sim_stream_create(sim, stream, flags);
    if (result != VR_CU_SUCCESS) return result;
    if (priority > 0) priority = 0;
    if (priority < VR_SIM_GREATEST_PRIORITY) priority = VR_SIM_GREATEST_PRIORITY;
    struct vr_sim_stream *made = vr_sim_slots_find(&sim->streams, *stream);
    made->priority = priority;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_get_priority(struct vr_sim *sim, uint64_t stream, int *priority) {
    if (priority == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *found;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *priority = found->priority;
    return result;
}

vr_cu_result vr_sim_stream_destroy(struct vr_sim *sim, uint64_t stream) {
    struct vr_sim_stream *found = vr_sim_slots_find(&sim->streams, stream);
    if (found == NULL || !found->user) return VR_CU_INVALID_HANDLE;
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_destroyed(sim->checking->check, stream, vr_sim_checking_place(sim, "the destruction of the stream"));
    vr_sim_capture_leave(sim, found);
    found->slot.named = false;
    sim->user_streams--;
    vr_sim_stream_collect(sim, vr_sim_slots_index(&sim->streams, found));
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_get_ctx(struct vr_sim *sim, uint64_t stream, uint64_t *context) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *found;
    vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *context = found->context;
    return result;
}

// Returns the number of the last host function that the stream's work comes after.
static uint64_t last_callback(const struct vr_sim *sim, const struct vr_sim_stream *stream) {
    const uint64_t others = vr_sim_context_find(sim, stream->context)->blocking_callback;
    return stream->kind == VR_SIM_STREAM_LEGACY && others > stream->callback ? others : stream->callback;
}

vr_cu_result vr_sim_stream_query(struct vr_sim *sim, uint64_t stream) {
    struct vr_sim_stream *found;
    vr_cu_result result = vr_sim_stream_for_waiting(sim, stream, &found);
    if (result == VR_CU_SUCCESS && !vr_sim_callback_done(sim, last_callback(sim, found))) {
        vr_sim_callback_grace(sim, last_callback(sim, found));
        result = vr_sim_stream_for_waiting(sim, stream, &found);
    }
    if (result != VR_CU_SUCCESS) return result;
    if (!vr_sim_stream_is_idle(sim, found)) return VR_CU_NOT_READY;
    if (VR_UNLIKELY(sim->checking != NULL)) vr_check_host_wait_stream(sim->checking->check, found->serial);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_synchronize(struct vr_sim *sim, uint64_t stream) {
    struct vr_sim_stream *found;
    vr_cu_result result = vr_sim_stream_for_waiting(sim, stream, &found);
    if (result == VR_CU_SUCCESS && (found->hold.width != 0 || !vr_sim_callback_done(sim, last_callback(sim, found)))) {
        const uint64_t callback = last_callback(sim, found);
        vr_sim_hold_wait(sim, &found->hold);
        vr_sim_callback_wait(sim, callback);
        result = vr_sim_stream_for_waiting(sim, stream, &found);
    }
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_wait_stream(sim, found);
    vr_sim_pools_synchronized(sim);
    return VR_CU_SUCCESS;
}

// ---- Attributes of streams. They have no effect on the order of work.

enum { ACCESS_POLICY_WINDOW = 1, SYNCHRONIZATION_POLICY = 3, MEMORY_DOMAIN_MAP = 9, MEMORY_DOMAIN = 10 };

// Returns the index of an attribute in `attributes`, or -1.
static int attribute_place(int attribute) {
    static const int kept[VR_SIM_STREAM_ATTRIBUTES] = {ACCESS_POLICY_WINDOW, SYNCHRONIZATION_POLICY, MEMORY_DOMAIN_MAP, MEMORY_DOMAIN};
    for (int i = 0; i < VR_SIM_STREAM_ATTRIBUTES; i++)
        if (kept[i] == attribute) return i;
    return -1;
}

vr_cu_result vr_sim_stream_get_attribute(struct vr_sim *sim, uint64_t stream, int attribute, void *value) {
    struct vr_sim_stream *found;
    const int place = attribute_place(attribute);
    if (value == NULL || (place < 0 && attribute != VR_CU_LAUNCH_ATTRIBUTE_PRIORITY)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (place < 0)
        memcpy(value, &found->priority, sizeof found->priority);
    else
        memcpy(value, found->attributes[place], sizeof found->attributes[place]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_set_attribute(struct vr_sim *sim, uint64_t stream, int attribute, const void *value) {
    struct vr_sim_stream *found;
    const int place = attribute_place(attribute);
    if (value == NULL || (place < 0 && attribute != VR_CU_LAUNCH_ATTRIBUTE_PRIORITY)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (place < 0)
        memcpy(&found->priority, value, sizeof found->priority);
    else
        memcpy(found->attributes[place], value, sizeof found->attributes[place]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_copy_attributes(struct vr_sim *sim, uint64_t to, uint64_t from) {
    struct vr_sim_stream *source, *target;
    vr_cu_result result = vr_sim_stream_find(sim, from, &source);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, to, &target);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, from, &source); // the last call may have moved it
    if (result == VR_CU_SUCCESS && target != source) memcpy(target->attributes, source->attributes, sizeof target->attributes);
    return result;
}

vr_cu_result vr_sim_stream_get_flags(struct vr_sim *sim, uint64_t stream, unsigned *flags) {
    struct vr_sim_stream *found;
    if (flags == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *flags = found->kind == VR_SIM_STREAM_NON_BLOCKING ? VR_CU_STREAM_NON_BLOCKING : 0;
    return result;
}

vr_cu_result vr_sim_stream_get_id(struct vr_sim *sim, uint64_t stream, uint64_t *id) {
    struct vr_sim_stream *found;
    if (id == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *id = found->serial;
    return result;
}

vr_cu_result vr_sim_stream_get_device(struct vr_sim *sim, uint64_t stream, int *device) {
    struct vr_sim_stream *found;
    if (device == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *device = (int)vr_sim_context_find(sim, found->context)->device;
    return result;
}

// Gets the stream's context and its green context; 0 for a stream that was not created in a green context.
vr_cu_result vr_sim_stream_get_ctx_v2(struct vr_sim *sim, uint64_t stream, uint64_t *context, uint64_t *green) {
    struct vr_sim_stream *found;
    if (context == NULL) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_stream_get_ctx(sim, stream, context);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS && green != NULL) *green = found->green;
    return result;
}
