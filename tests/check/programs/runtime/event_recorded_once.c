// An event is waited for after its second use, but recorded only at its first.
#include "runtime_calls.h"

int main(void) {
    stream_handle first = make_stream(NON_BLOCKING), second = make_stream(NON_BLOCKING);
    event_handle done = make_event();
    void *source = make_written(MIB), *target = make_written(MIB);
    for (int step = 0; step < 2; step++) {
        must(cudaStreamSynchronize(second));
        must(cudaMemsetAsync(source, 1, MIB, first));      // use
        if (step == 0) must(cudaEventRecord(done, first)); //-
        //+ must(cudaEventRecord(done, first));
        must(cudaStreamWaitEvent(second, done, 0));
        launch_scale(target, source, MIB, second); // conflict
    }
    must(cudaDeviceSynchronize());
    return 0;
}
