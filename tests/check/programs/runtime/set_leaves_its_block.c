// A set has more bytes than its block. The runtime refuses it, and the program ignores the result.
#include "runtime_calls.h"

int main(void) {
    void *buffer = make_written(MIB);
    const size_t count = MIB + 4096; //-
    //+ const size_t count = MIB;
    (void)cudaMemset(buffer, 0, count); // use
    (void)cudaDeviceSynchronize();
    return 0;
}
