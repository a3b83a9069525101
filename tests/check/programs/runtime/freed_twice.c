// An error path and the usual path free the same buffer.
#include "runtime_calls.h"

int main(void) {
    void *buffer = make_written(MIB);
    must(cudaFree(buffer)); // free
    (void)cudaFree(buffer); // use //-
    return 0;
}
