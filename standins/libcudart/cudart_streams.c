// Streams, events, captures and graphs.
#include "runtime.h"

int cudaStreamCreate(uint64_t *stream) { RT_CALL(driver->stream_create(stream, 0)); }
int cudaStreamCreateWithFlags(uint64_t *stream, unsigned flags) { RT_CALL(driver->stream_create(stream, flags)); }
int cudaStreamCreateWithPriority(uint64_t *stream, unsigned flags, int priority) {
    RT_CALL(driver->stream_create_with_priority(stream, flags, priority));
}
int cudaStreamDestroy(uint64_t stream) { RT_CALL(driver->stream_destroy(stream)); }
RT_STREAM_CALL(cudaStreamSynchronize, (void *stream), driver->stream_synchronize(on))
RT_STREAM_CALL(cudaStreamQuery, (void *stream), driver->stream_query(on))
RT_STREAM_CALL(cudaStreamWaitEvent, (void *stream, uint64_t event, unsigned flags), driver->stream_wait_event(on, event, flags))
RT_STREAM_CALL(cudaLaunchHostFunc, (void *stream, void (*function)(void *), void *argument),
               driver->launch_host_func(on, function, argument))

int cudaEventCreate(uint64_t *event) { RT_CALL(driver->event_create(event, 0)); }
int cudaEventCreateWithFlags(uint64_t *event, unsigned flags) { RT_CALL(driver->event_create(event, flags)); }
int cudaEventDestroy(uint64_t event) { RT_CALL(driver->event_destroy(event)); }
int cudaEventQuery(uint64_t event) { RT_CALL(driver->event_query(event)); }
int cudaEventSynchronize(uint64_t event) { RT_CALL(driver->event_synchronize(event)); }
int cudaEventElapsedTime(float *ms, uint64_t start, uint64_t end) { RT_CALL(driver->event_elapsed_time(ms, start, end)); }
RT_STREAM_CALL(cudaEventRecord, (uint64_t event, void *stream), driver->event_record(event, on))
RT_STREAM_CALL(cudaEventRecordWithFlags, (uint64_t event, void *stream, unsigned flags),
               flags != 0 ? RT_NOT_SUPPORTED : driver->event_record(event, on))

RT_STREAM_CALL(cudaStreamBeginCapture, (void *stream, int mode), driver->stream_begin_capture(on, mode))
RT_STREAM_CALL(cudaStreamEndCapture, (void *stream, uint64_t *graph), driver->stream_end_capture(on, graph))
RT_STREAM_CALL(cudaStreamIsCapturing, (void *stream, int *status), driver->stream_is_capturing(on, status))
int cudaThreadExchangeStreamCaptureMode(int *mode) { RT_CALL(driver->thread_exchange_capture_mode(mode)); }

// What a caller wants to know of a capture. Each but the status may be NULL.
struct capture_info {
    int *status;
    unsigned long long *id;
    uint64_t *graph;
    const uint64_t **dependencies;
    const void **edges; // of a captured graph here have no data: a caller that wants it gets NULL
    size_t *count;
};

static int capture_info(const struct rt_driver *driver, uint64_t stream, const struct capture_info *wanted) {
    uint64_t id = 0;
    const int error = driver->stream_get_capture_info(stream, wanted->status, &id, wanted->graph, wanted->dependencies, wanted->count);
    if (error == RT_SUCCESS && wanted->id != NULL) *wanted->id = id;
    if (error == RT_SUCCESS && wanted->edges != NULL) *wanted->edges = NULL;
    return error;
}

RT_STREAM_CALL(cudaStreamGetCaptureInfo,
               (void *stream, int *status, unsigned long long *id, uint64_t *graph, const uint64_t **dependencies, const void **edges,
                size_t *count),
               capture_info(driver, on, &(struct capture_info){status, id, graph, dependencies, edges, count}))
RT_STREAM_CALL(cudaStreamUpdateCaptureDependencies, (void *stream, uint64_t *nodes, const void *edges, size_t count, unsigned flags),
               edges != NULL ? RT_NOT_SUPPORTED : driver->stream_update_capture_dependencies(on, nodes, count, flags))

int cudaGraphCreate(uint64_t *graph, unsigned flags) { RT_CALL(driver->graph_create(graph, flags)); }
int cudaGraphDestroy(uint64_t graph) { RT_CALL(driver->graph_destroy(graph)); }
int cudaGraphClone(uint64_t *clone, uint64_t graph) { RT_CALL(driver->graph_clone(clone, graph)); }
int cudaGraphGetNodes(uint64_t graph, uint64_t *nodes, size_t *count) { RT_CALL(driver->graph_get_nodes(graph, nodes, count)); }
int cudaGraphGetRootNodes(uint64_t graph, uint64_t *nodes, size_t *count) { RT_CALL(driver->graph_get_root_nodes(graph, nodes, count)); }
int cudaGraphNodeGetType(uint64_t node, int *type) { RT_CALL(driver->graph_node_get_type(node, type)); }
int cudaGraphAddEmptyNode(uint64_t *node, uint64_t graph, const uint64_t *dependencies, size_t count) {
    RT_CALL(driver->graph_add_empty_node(node, graph, dependencies, count));
}
int cudaGraphInstantiate(uint64_t *exec, uint64_t graph, unsigned long long flags) {
    RT_CALL(driver->graph_instantiate(exec, graph, flags));
}
int cudaGraphInstantiateWithFlags(uint64_t *exec, uint64_t graph, unsigned long long flags) {
    RT_CALL(driver->graph_instantiate(exec, graph, flags));
}
int cudaGraphExecDestroy(uint64_t exec) { RT_CALL(driver->graph_exec_destroy(exec)); }
RT_STREAM_CALL(cudaGraphLaunch, (uint64_t exec, void *stream), driver->graph_launch(exec, on))
