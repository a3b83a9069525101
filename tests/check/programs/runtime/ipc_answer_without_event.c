// Two processes take turns on one buffer. The first waits for the second one's event, but the second only answers and does not record it.
#include "runtime_calls.h"
#include <sys/wait.h>
#include <unistd.h>

struct message {
    struct ipc_handle memory, event;
};

static void use_it(int from, int to) {
    struct message message;
    void *mapped = NULL;
    event_handle turn = NULL;
    must(read(from, &message, sizeof message) != sizeof message);
    must(cudaIpcOpenMemHandle(&mapped, message.memory, 1) + cudaIpcOpenEventHandle(&turn, message.event));
    must(cudaStreamWaitEvent(NULL, turn, 0));
    launch_scale((char *)mapped + MIB, mapped, MIB, NULL); // use
    //+ must(cudaEventRecord(turn, NULL));
    must(write(to, "", 1) != 1 || read(from, &message, 1) != 1);
    must(cudaDeviceSynchronize());
    exit(0);
}

int main(void) {
    int there[2], back[2], status = 0;
    must(pipe(there) != 0 || pipe(back) != 0);
    if (fork() == 0) use_it(there[0], back[1]);
    struct message message;
    event_handle turn = NULL;
    char *buffer = make_written(2 * MIB);
    must(cudaEventCreateWithFlags(&turn, SHARED_EVENT));
    must(cudaIpcGetMemHandle(&message.memory, buffer) + cudaIpcGetEventHandle(&message.event, turn));
    must(cudaMemsetAsync(buffer, 1, MIB, NULL) + cudaEventRecord(turn, NULL));
    must(write(there[1], &message, sizeof message) != sizeof message || read(back[0], &message, 1) != 1);
    must(cudaStreamWaitEvent(NULL, turn, 0));
    must(cudaMemsetAsync(buffer, 2, MIB, NULL)); // conflict
    must(write(there[1], "", 1) != 1);
    wait(&status);
    return status != 0;
}
