// Registered memory is unregistered and freed while the copy into it is under way.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle stream = make_stream();
    const address device = make_written(MIB);
    void *host = aligned_alloc(4096, MIB);
    memset(host, 0, MIB);
    must(cuMemHostRegister_v2(host, MIB, 0));
    must(cuMemcpyDtoHAsync_v2(host, device, MIB, stream)); // use
    //+ must(cuStreamSynchronize(stream));
    must(cuMemHostUnregister(host)); // free
    free(host);
    must(cuCtxSynchronize());
    return 0;
}
