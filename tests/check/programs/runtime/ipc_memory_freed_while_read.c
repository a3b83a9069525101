// The owner frees shared memory as soon as the other process has started its copy.
#include "runtime_calls.h"
#include <sys/wait.h>
#include <unistd.h>

static void use_it(int from, int to) {
    struct ipc_handle handle;
    char turn = 0;
    void *mapped = NULL, *target = make_written(MIB);
    must(read(from, &handle, sizeof handle) != sizeof handle);
    must(cudaIpcOpenMemHandle(&mapped, handle, 1));
    must(cudaMemcpyAsync(target, mapped, MIB, ON_DEVICE, NULL)); // use
    //+ must(cudaIpcCloseMemHandle(mapped) + cudaDeviceSynchronize());
    must(write(to, &turn, 1) != 1 || read(from, &turn, 1) != 1);
    must(cudaDeviceSynchronize());
    exit(0);
}

int main(void) {
    int there[2], back[2], status = 0;
    must(pipe(there) != 0 || pipe(back) != 0);
    if (fork() == 0) use_it(there[0], back[1]);
    struct ipc_handle handle;
    char turn = 0;
    void *buffer = make_written(2 * MIB);
    must(cudaIpcGetMemHandle(&handle, buffer));
    must(write(there[1], &handle, sizeof handle) != sizeof handle || read(back[0], &turn, 1) != 1);
    must(cudaFree(buffer)); // free
    must(write(there[1], &turn, 1) != 1);
    wait(&status);
    return status != 0;
}
