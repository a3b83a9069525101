// The memory of a captured node is freed, and its address belongs to the next allocation when the graph is launched.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    graph_handle graph = NULL;
    exec_handle exec = NULL;
    void *buffer = make_written(2 * MIB);
    must(cudaStreamBeginCapture(stream, 0));
    must(cudaMemsetAsync(buffer, 1, 2 * MIB, stream)); // capture
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaFree(buffer));              // free //-
    void *other = make_written(2 * MIB); // reuse
    must(cudaGraphLaunch(exec, stream)); // launch
    must(cudaStreamSynchronize(stream));
    return other == NULL;
}
