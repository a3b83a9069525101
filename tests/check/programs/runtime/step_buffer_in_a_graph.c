// imp #1648: a graph was captured with a buffer that each step allocates again in stream order.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    graph_handle graph = NULL;
    exec_handle exec = NULL;
    void *metadata = NULL, *other = NULL, *result = make_written(MIB);
    must(cudaMallocAsync(&metadata, MIB, stream));
    must(cudaMemsetAsync(metadata, 0, MIB, stream));
    must(cudaStreamBeginCapture(stream, 0));
    must(cudaMemcpyAsync(result, metadata, MIB, ON_DEVICE, stream)); // capture
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaFreeAsync(metadata, stream));      // free //-
    must(cudaMallocAsync(&other, MIB, stream)); // reuse
    must(cudaMemsetAsync(other, 1, MIB, stream));
    must(cudaGraphLaunch(exec, stream)); // launch
    must(cudaDeviceSynchronize());
    return 0;
}
