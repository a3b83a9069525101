// The next step's kernel writes a result that the copy of the last step has not read yet.
#include "driver_calls.h"

int main(void) {
    begin();
    stream_handle work = make_stream(), copies = make_stream();
    event_handle written = make_event(), copied = make_event();
    const address result = make_written(MIB);
    void *host = NULL;
    must(cuMemAllocHost_v2(&host, MIB));
    launch_fill(result, MIB, work);
    must(cuEventRecord(written, work));
    must(cuStreamWaitEvent(copies, written, 0));
    must(cuMemcpyDtoHAsync_v2(host, result, MIB, copies)); // use
    must(cuEventRecord(copied, copies));
    //+ must(cuStreamWaitEvent(work, copied, 0));
    launch_fill(result, MIB, work); // conflict
    must(cuCtxSynchronize());
    return 0;
}
