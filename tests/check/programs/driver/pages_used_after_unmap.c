// A kernel gets an address whose pages have been unmapped.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle stream = make_stream();
    address range = 0;
    const uint64_t pages = make_pages(2 * MIB);
    must(cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
    map_pages(range, 2 * MIB, pages);
    must(cuMemUnmap(range, 2 * MIB));    // free //-
    launch_fill(range, 2 * MIB, stream); // use
    (void)cuCtxSynchronize();
    return 0;
}
