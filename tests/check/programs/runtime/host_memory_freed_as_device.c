// Pinned memory of the host is given to the function that frees memory of the device.
#include "runtime_calls.h"

int main(void) {
    void *host = NULL;
    must(cudaMallocHost(&host, MIB)); // made
    (void)cudaFree(host);             // use //-
    must(cudaFreeHost(host));
    return 0;
}
