// The second copy of a graph reads what the first writes, and has no edge from it.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    graph_handle graph = NULL;
    exec_handle exec = NULL;
    node_handle first = NULL, second = NULL;
    void *a = make_written(MIB), *b = make_written(MIB), *c = make_written(MIB);
    must(cudaGraphCreate(&graph, 0));
    must(cudaGraphAddMemcpyNode1D(&first, graph, NULL, 0, b, a, MIB, ON_DEVICE));  // use
    must(cudaGraphAddMemcpyNode1D(&second, graph, NULL, 0, c, b, MIB, ON_DEVICE)); // conflict //-
    //+ must(cudaGraphAddMemcpyNode1D(&second, graph, &first, 1, c, b, MIB, ON_DEVICE));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphLaunch(exec, stream));
    must(cudaStreamSynchronize(stream));
    return 0;
}
