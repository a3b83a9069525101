// A stream waited for the event's first record. The second record, after more work, needs a second wait.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle first = make_stream(), second = make_stream();
    event_handle done = make_event();
    const address a = make_written(MIB), b = make_written(MIB), target = make_written(MIB);
    must(cuMemsetD8Async(a, 1, MIB, first));
    must(cuEventRecord(done, first));
    must(cuStreamWaitEvent(second, done, 0));
    must(cuMemsetD8Async(b, 1, MIB, first)); // use
    must(cuEventRecord(done, first));
    //+ must(cuStreamWaitEvent(second, done, 0));
    launch_scale(target, a, MIB, second);
    launch_scale(target, b, MIB, second); // conflict
    must(cuCtxSynchronize());
    return 0;
}
