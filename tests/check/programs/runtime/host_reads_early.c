// The host reads pinned memory before the copy into it has been waited for.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    int *host = NULL;
    void *device = make_written(MIB);
    must(cudaMallocHost(&host, MIB));
    must(cudaMemcpyAsync(host, device, MIB, TO_HOST, stream)); // use
    //+ must(cudaStreamSynchronize(stream));
    printf("%d\n", host[MIB / 4 - 1]); // conflict
    must(cudaStreamSynchronize(stream));
    return 0;
}
