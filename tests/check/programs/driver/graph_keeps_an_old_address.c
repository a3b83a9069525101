// A kernel was captured with a buffer that is freed and allocated again before the launch.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle stream = make_stream();
    graph_handle graph = NULL;
    exec_handle exec = NULL;
    address source = make_written(2 * MIB);
    const address target = make_written(2 * MIB);
    launch_scale(target, source, 2 * MIB, stream);
    must(cuStreamBeginCapture_v2(stream, 0));
    launch_scale(target, source, 2 * MIB, stream); // capture
    must(cuStreamEndCapture(stream, &graph));
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    must(cuCtxSynchronize());
    must(cuMemFree_v2(source));        // free //-
    source = make_written(2 * MIB);    // reuse //-
    must(cuGraphLaunch(exec, stream)); // launch
    must(cuCtxSynchronize());
    return 0;
}
