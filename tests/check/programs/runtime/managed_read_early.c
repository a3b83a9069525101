// The host reads managed memory that a kernel may still write.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    float *values = NULL;
    must(cudaMallocManaged(&values, MIB, MANAGED_GLOBAL));
    launch_fill(values, MIB, stream); // use
    //+ must(cudaStreamSynchronize(stream));
    printf("%g\n", values[0]); // conflict
    must(cudaStreamSynchronize(stream));
    return 0;
}
