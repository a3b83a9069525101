// A buffer of the stream-ordered allocator is used on a stream that its allocation is not ordered before.
#include "runtime_calls.h"

int main(void) {
    stream_handle first = make_stream(NON_BLOCKING), second = make_stream(NON_BLOCKING);
    event_handle ready = make_event();
    void *buffer = NULL;
    must(cudaMallocAsync(&buffer, MIB, first)); // made
    must(cudaEventRecord(ready, first));
    //+ must(cudaStreamWaitEvent(second, ready, 0));
    must(cudaMemsetAsync(buffer, 1, MIB, second)); // use
    must(cudaDeviceSynchronize());
    must(cudaFree(buffer));
    return 0;
}
