// The host reads managed memory that a stream may still set.
#include "runtime_calls.h"

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    int *values = NULL;
    must(cudaMallocManaged(&values, MIB, MANAGED_GLOBAL));
    must(cudaMemsetAsync(values, 1, MIB, stream)); // use
    //+ must(cudaStreamSynchronize(stream));
    printf("%d\n", values[0]); // conflict
    must(cudaStreamSynchronize(stream));
    return 0;
}
