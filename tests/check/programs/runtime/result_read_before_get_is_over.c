// llama.cpp #18310: the logits are fetched asynchronously and used without a synchronization.
#include "runtime_calls.h"

static float *logits;

static void decode(const void *device, stream_handle stream) {
    must(cudaMemcpyAsync(logits, device, MIB, TO_HOST, stream)); // use
    //+ must(cudaStreamSynchronize(stream));
}

static int sample(void) {
    int best = 0;
    for (int i = 1; i < MIB / 4; i++) {
        if (logits[i] > logits[best]) best = i; // conflict
    }
    return best;
}

int main(void) {
    stream_handle stream = make_stream(NON_BLOCKING);
    void *device = make_written(MIB);
    must(cudaMallocHost(&logits, MIB));
    decode(device, stream);
    printf("%d\n", sample());
    must(cudaDeviceSynchronize());
    return 0;
}
