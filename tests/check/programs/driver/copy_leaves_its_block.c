// A copy has the size of the larger of its two buffers. The driver refuses it, and the program ignores the result.
#include "driver_calls.h"

int main(void) {
    begin();
    const address small = make_written(MIB), large = make_written(4 * MIB);
    const size_t bytes = 4 * MIB; //-
    //+ const size_t bytes = MIB;
    (void)cuMemcpyDtoDAsync_v2(small, large, bytes, NULL); // use
    (void)cuCtxSynchronize();
    return 0;
}
