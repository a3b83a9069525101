// One stream sets a buffer, another copies from it, and no event orders them.
#include "runtime_calls.h"

int main(void) {
    stream_handle first = make_stream(NON_BLOCKING), second = make_stream(NON_BLOCKING);
    event_handle done = make_event();
    void *source = make_written(MIB), *target = make_written(MIB);
    must(cudaMemsetAsync(source, 1, MIB, first)); // use
    must(cudaEventRecord(done, first));
    //+ must(cudaStreamWaitEvent(second, done, 0));
    must(cudaMemcpyAsync(target, source, MIB, ON_DEVICE, second)); // conflict
    must(cudaDeviceSynchronize());
    return 0;
}
