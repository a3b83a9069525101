// A buffer of the stream-ordered allocator is freed on the stream that made it while another stream still reads it.
#include "runtime_calls.h"

int main(void) {
    stream_handle first = make_stream(NON_BLOCKING), second = make_stream(NON_BLOCKING);
    event_handle ready = make_event(), done = make_event();
    void *buffer = NULL, *next = NULL, *target = make_written(MIB);
    must(cudaMallocAsync(&buffer, MIB, first));
    must(cudaMemsetAsync(buffer, 1, MIB, first));
    must(cudaEventRecord(ready, first));
    must(cudaStreamWaitEvent(second, ready, 0));
    must(cudaMemcpyAsync(target, buffer, MIB, ON_DEVICE, second)); // use
    must(cudaEventRecord(done, second));
    //+ must(cudaStreamWaitEvent(first, done, 0));
    must(cudaFreeAsync(buffer, first));         // free
    must(cudaMallocAsync(&next, MIB, first));   // reuse
    must(cudaMemsetAsync(next, 2, MIB, first)); // reuse
    must(cudaDeviceSynchronize());
    return 0;
}
