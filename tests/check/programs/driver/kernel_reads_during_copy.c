// A kernel reads its input while the copy that brings it is under way on another stream.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle copies = make_stream(), work = make_stream();
    event_handle brought = make_event();
    const address source = make_written(MIB), target = make_written(MIB);
    void *host = NULL;
    must(cuMemAllocHost_v2(&host, MIB));
    must(cuMemcpyHtoDAsync_v2(source, host, MIB, copies)); // use
    must(cuEventRecord(brought, copies));
    //+ must(cuStreamWaitEvent(work, brought, 0));
    launch_scale(target, source, MIB, work); // conflict
    must(cuCtxSynchronize());
    return 0;
}
