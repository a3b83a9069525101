// A kernel is launched with the address of memory that has been freed.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    void *source = make_written(MIB), *target = make_written(MIB);
    must(cudaFree(source));                    // free //-
    launch_scale(target, source, MIB, stream); // use
    (void)cudaStreamSynchronize(stream);
    return 0;
}
