// Pages are unmapped while a stream still writes them.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle stream = make_stream();
    address range = 0;
    const uint64_t pages = make_pages(2 * MIB);
    must(cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
    map_pages(range, 2 * MIB, pages);
    must(cuMemsetD8Async(range, 1, 2 * MIB, stream)); // use
    //+ must(cuStreamSynchronize(stream));
    must(cuMemUnmap(range, 2 * MIB)); // free
    must(cuMemRelease(pages));
    must(cuCtxSynchronize());
    must(cuMemAddressFree(range, 2 * MIB));
    return 0;
}
