// A buffer is freed in the order of a stream, and again by cudaFree().
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    void *buffer = NULL;
    must(cudaMallocAsync(&buffer, MIB, stream));
    must(cudaFreeAsync(buffer, stream)); // free
    (void)cudaFree(buffer);              // use //-
    must(cudaStreamSynchronize(stream));
    return 0;
}
