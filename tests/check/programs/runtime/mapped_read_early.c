// A kernel writes a flag in mapped host memory, and the host reads it before the kernel completes.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    float *flags = NULL;
    must(cudaHostAlloc(&flags, MIB, MAPPED));
    flags[0] = 0;
    launch_fill(flags, MIB, stream); // use
    //+ must(cudaStreamSynchronize(stream));
    printf("%g\n", flags[0]); // conflict
    must(cudaStreamSynchronize(stream));
    return 0;
}
