// A pointer that was advanced into its block is freed.
#include "runtime_calls.h"

int main(void) {
    char *buffer = make_written(MIB);
    buffer += 4096;         //-
    (void)cudaFree(buffer); // use
    return 0;
}
