// A stream that was made non-blocking does not wait for the default stream.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING); //-
    //+ stream_handle stream = make_stream(BLOCKING);
    void *source = make_written(MIB), *target = make_written(MIB);
    must(cudaMemsetAsync(source, 1, MIB, NULL)); // use
    launch_scale(target, source, MIB, stream);   // conflict
    must(cudaDeviceSynchronize());
    return 0;
}
