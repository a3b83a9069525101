// Pinned memory of the host is freed as memory of the device.
#include "driver_calls.h"

int main(void) {
    begin();
    void *host = NULL;
    must(cuMemAllocHost_v2(&host, MIB)); // made
    (void)cuMemFree_v2((address)host);   // use //-
    must(cuMemFreeHost(host));
    return 0;
}
