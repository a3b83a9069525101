// TransformerEngine #188: the main stream waits for the last compute stream of an exchange, and not for the others.
#include "runtime_calls.h"

int main(void) {
    stream_handle main_stream = make_stream(NON_BLOCKING), compute[2] = {make_stream(NON_BLOCKING), make_stream(NON_BLOCKING)};
    event_handle done[2] = {make_event(), make_event()};
    char *gathered = make_written(2 * MIB), *result = make_written(2 * MIB);
    for (int i = 0; i < 2; i++) {
        must(cudaMemsetAsync(gathered + i * MIB, 1, MIB, compute[i])); // use
        must(cudaEventRecord(done[i], compute[i]));
    }
    must(cudaStreamWaitEvent(main_stream, done[1], 0));
    //+ must(cudaStreamWaitEvent(main_stream, done[0], 0));
    must(cudaMemcpyAsync(result, gathered, 2 * MIB, ON_DEVICE, main_stream)); // conflict
    must(cudaDeviceSynchronize());
    return 0;
}
