// Registered memory is unregistered and freed before the copy from it completes.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    void *device = make_written(MIB), *host = aligned_alloc(4096, MIB);
    memset(host, 1, MIB);
    must(cudaHostRegister(host, MIB, 0));
    must(cudaMemcpyAsync(device, host, MIB, FROM_HOST, stream)); // use
    //+ must(cudaStreamSynchronize(stream));
    must(cudaHostUnregister(host)); // free
    free(host);
    must(cudaStreamSynchronize(stream));
    return 0;
}
