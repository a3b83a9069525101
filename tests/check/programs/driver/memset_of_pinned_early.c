// memset() clears pinned memory that a copy to the device still reads.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle stream = make_stream();
    const address device = make_written(MIB);
    void *host = NULL;
    must(cuMemAllocHost_v2(&host, MIB));
    memset(host, 1, MIB);
    must(cuMemcpyHtoDAsync_v2(device, host, MIB, stream)); // use
    //+ must(cuStreamSynchronize(stream));
    memset(host, 0, MIB); // conflict
    must(cuCtxSynchronize());
    return 0;
}
