// Each thread has a default stream of its own, and joining a thread does not wait for its stream.
#include "runtime_calls.h"
#include <pthread.h>

static void *fill_it(void *buffer) {
    must(cudaMemsetAsync(buffer, 1, MIB, PER_THREAD)); // use
    //+ must(cudaStreamSynchronize(PER_THREAD));
    return NULL;
}

int main(void) {
    void *buffer = make_written(MIB), *target = make_written(MIB);
    pthread_t thread;
    must(pthread_create(&thread, NULL, fill_it, buffer));
    must(pthread_join(thread, NULL));
    must(cudaMemcpyAsync(target, buffer, MIB, ON_DEVICE, PER_THREAD)); // conflict
    must(cudaDeviceSynchronize());
    return 0;
}
