// A process waits for the shared event, and the owner of the memory recorded it before it wrote.
#include "runtime_calls.h"
#include <sys/wait.h>
#include <unistd.h>

struct message {
    struct ipc_handle memory, event;
};

static void use_it(int from) {
    struct message message;
    void *mapped = NULL, *target = make_written(MIB);
    event_handle done = NULL;
    must(read(from, &message, sizeof message) != sizeof message);
    must(cudaIpcOpenMemHandle(&mapped, message.memory, 1));
    must(cudaIpcOpenEventHandle(&done, message.event));
    must(cudaStreamWaitEvent(NULL, done, 0));
    must(cudaMemcpyAsync(target, mapped, MIB, ON_DEVICE, NULL)); // conflict
    must(cudaDeviceSynchronize());
    exit(0);
}

int main(void) {
    int there[2], status = 0;
    must(pipe(there) != 0);
    if (fork() == 0) use_it(there[0]);
    struct message message;
    event_handle done = NULL;
    void *buffer = make_written(MIB);
    must(cudaEventCreateWithFlags(&done, SHARED_EVENT));
    must(cudaIpcGetMemHandle(&message.memory, buffer) + cudaIpcGetEventHandle(&message.event, done));
    must(cudaEventRecord(done, NULL));           //-
    must(cudaMemsetAsync(buffer, 1, MIB, NULL)); // use
    //+ must(cudaEventRecord(done, NULL));
    must(write(there[1], &message, sizeof message) != sizeof message);
    wait(&status);
    return status != 0;
}
