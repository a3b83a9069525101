// A buffer is freed in the order of a stream that does not wait for the stream that uses it.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle first = make_stream(), second = make_stream();
    address buffer = 0, next = 0;
    const address target = make_written(MIB);
    must(cuMemAllocAsync(&buffer, MIB, first));
    must(cuMemsetD8Async(buffer, 1, MIB, first));
    must(cuMemcpyDtoDAsync_v2(target, buffer, MIB, first)); // use
    must(cuMemFreeAsync(buffer, second));                   // free //-
    //+ must(cuMemFreeAsync(buffer, first));
    must(cuMemAllocAsync(&next, MIB, second));   // reuse
    must(cuMemsetD8Async(next, 2, MIB, second)); // reuse
    must(cuCtxSynchronize());
    return 0;
}
