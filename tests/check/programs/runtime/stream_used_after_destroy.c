// A stream is destroyed, and work is enqueued on its old handle.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    void *buffer = make_written(MIB);
    must(cudaStreamDestroy(stream));               // free //-
    (void)cudaMemsetAsync(buffer, 1, MIB, stream); // use
    must(cudaDeviceSynchronize());
    return 0;
}
