// The host reads what a copy brings after waiting for the wrong stream.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle copies = make_stream(), other = make_stream();
    const address device = make_written(MIB);
    char *host = NULL;
    must(cuMemAllocHost_v2(&host, MIB));
    must(cuMemcpyDtoHAsync_v2(host, device, MIB, copies)); // use
    must(cuStreamSynchronize(other));                      //-
    //+ must(cuStreamSynchronize(copies));
    printf("%d\n", host[0]); // conflict
    must(cuCtxSynchronize());
    return 0;
}
