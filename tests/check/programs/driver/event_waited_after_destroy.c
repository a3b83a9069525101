// A stream has to wait for an event that has been destroyed, and does not wait.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle first = make_stream(), second = make_stream();
    event_handle done = make_event();
    const address buffer = make_written(MIB);
    launch_fill(buffer, MIB, first);
    must(cuEventRecord(done, first));
    must(cuEventDestroy_v2(done));            // free //-
    (void)cuStreamWaitEvent(second, done, 0); // use
    must(cuCtxSynchronize());
    return 0;
}
