// Two kernels on two streams write the same result.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle first = make_stream(), second = make_stream();
    event_handle done = make_event();
    const address result = make_written(MIB), a = make_written(MIB), b = make_written(MIB);
    launch_scale(result, a, MIB, first); // use
    must(cuEventRecord(done, first));
    //+ must(cuStreamWaitEvent(second, done, 0));
    launch_scale(result, b, MIB, second); // conflict
    must(cuCtxSynchronize());
    return 0;
}
