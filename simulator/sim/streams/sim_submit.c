// Work handed to streams, and the memory operations of streams.
#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_memory_ops.h"

// ---- Work on its way into a stream, and the rows of the tables that give a stream host functions.

// Room for what vr_sim_work_run() may leave to the thread of host functions.
static vr_cu_result make_queue_room(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_callback *callback) {
    const bool calls = callback->stream_function != NULL || callback->work.function != NULL;
    return calls || !vr_sim_callback_done(sim, stream->callback) ? vr_sim_callbacks_reserve(sim, 1) : VR_CU_SUCCESS;
}

static vr_cu_result give_callback(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_callback *callback) {
    vr_cu_result result = make_queue_room(sim, stream, callback);
    if (result == VR_CU_SUCCESS) result = vr_sim_enqueue(sim, stream, vr_sim_work_cost_ns(sim, &callback->work), NULL);
    return result == VR_CU_SUCCESS ? vr_sim_work_run(sim, stream, callback) : result;
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

// Whether the thread spins or blocks before the function is the driver's business.
vr_cu_result vr_sim_launch_host_func_v2(struct vr_sim *sim, uint64_t stream, vr_cu_host_function *function, void *argument, unsigned mode) {
    return mode > 1 ? VR_CU_INVALID_VALUE : vr_sim_launch_host_func(sim, stream, function, argument);
}

// Captures know no such functions.
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

// Whether the memory that the operations name is there. A graph is asked when it is made; what is freed until its launch is not written.
bool vr_sim_ops_are_valid(const struct vr_sim *sim, const struct vr_cu_mem_op *ops, uint32_t count, uint32_t device) {
    for (uint32_t i = 0; i < count; i++) {
        if (!is_wait(&ops[i]) && !is_write(&ops[i])) continue;
        if (!vr_sim_is_reached(sim, ops[i].address, width_of(&ops[i]), device, is_write(&ops[i]))) return false;
    }
    return true;
}

// The stream waits for this one from now on; of several that are not there yet, the last counts.
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
