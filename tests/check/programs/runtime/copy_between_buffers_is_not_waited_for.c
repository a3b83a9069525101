// MIOpen #3299: cudaMemcpy() between two buffers of the device may return before it completes, and a non-blocking stream does not wait.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    void *weights = make_written(MIB), *source = make_written(MIB), *result = make_written(MIB);
    must(cudaMemcpy(weights, source, MIB, ON_DEVICE)); // use
    //+ must(cudaStreamSynchronize(NULL));
    launch_scale(result, weights, MIB, stream); // conflict
    must(cudaDeviceSynchronize());
    return 0;
}
