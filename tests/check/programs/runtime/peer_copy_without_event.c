// A copy between two devices reads what a stream of the other device still writes.
#include "runtime_calls.h"

int main(void) {
    must(cudaSetDevice(1));
    stream_handle there = make_stream(NON_BLOCKING);
    event_handle done = make_event();
    void *source = make_written(MIB);
    must(cudaMemsetAsync(source, 1, MIB, there)); // use
    must(cudaEventRecord(done, there));
    must(cudaSetDevice(0));
    stream_handle here = make_stream(NON_BLOCKING);
    void *target = make_written(MIB);
    //+ must(cudaStreamWaitEvent(here, done, 0));
    must(cudaMemcpyPeerAsync(target, 0, source, 1, MIB, here)); // conflict
    must(cudaDeviceSynchronize());
    must(cudaSetDevice(1));
    must(cudaDeviceSynchronize());
    return 0;
}
