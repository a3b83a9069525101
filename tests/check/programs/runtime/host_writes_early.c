// The host writes the next values into pinned memory while the copy of the last ones may still read it.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    int *host = NULL;
    void *device = make_written(MIB);
    must(cudaMallocHost(&host, MIB));
    host[0] = 1;
    must(cudaMemcpyAsync(device, host, MIB, FROM_HOST, stream)); // use
    //+ must(cudaStreamSynchronize(stream));
    host[0] = 2; // conflict
    must(cudaStreamSynchronize(stream));
    return 0;
}
