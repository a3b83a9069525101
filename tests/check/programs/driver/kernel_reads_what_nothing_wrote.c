// A kernel reads a buffer that nothing has written.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle stream = make_stream();
    const address target = make_written(MIB);
    address source = 0;
    must(cuMemAlloc_v2(&source, MIB)); // made
    //+ must(cuMemsetD8_v2(source, 1, MIB));
    launch_scale(target, source, MIB, NULL); // use
    must(cuStreamSynchronize(stream));
    must(cuCtxSynchronize());
    return 0;
}
