// Two streams set parts of a buffer that overlap by 256 bytes.
#include "runtime_calls.h"

int main(void) {
    stream_handle first = make_stream(NON_BLOCKING), second = make_stream(NON_BLOCKING);
    char *buffer = make_written(2 * MIB);
    must(cudaMemsetAsync(buffer, 1, MIB + 256, first)); // use //-
    //+ must(cudaMemsetAsync(buffer, 1, MIB, first));
    must(cudaMemsetAsync(buffer + MIB, 2, MIB, second)); // conflict
    must(cudaDeviceSynchronize());
    return 0;
}
