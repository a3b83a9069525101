// A buffer is copied to the host although only its first half has been written.
#include "runtime_calls.h"

int main(void) {
    char *buffer = NULL, *host = malloc(2 * MIB);
    must(cudaMalloc(&buffer, 2 * MIB)); // made
    must(cudaMemset(buffer, 1, MIB));
    //+ must(cudaMemset(buffer + MIB, 2, MIB));
    must(cudaMemcpy(host, buffer, 2 * MIB, TO_HOST)); // use
    free(host);
    return 0;
}
