// A process closes the memory of another process, and copies from it afterwards.
#include "runtime_calls.h"
#include <sys/wait.h>
#include <unistd.h>

static void use_it(int from) {
    struct ipc_handle handle;
    void *mapped = NULL, *target = make_written(MIB);
    must(read(from, &handle, sizeof handle) != sizeof handle);
    must(cudaIpcOpenMemHandle(&mapped, handle, 1));
    must(cudaIpcCloseMemHandle(mapped));              // free //-
    (void)cudaMemcpy(target, mapped, MIB, ON_DEVICE); // use
    (void)cudaDeviceSynchronize();
    exit(0);
}

int main(void) {
    int there[2], status = 0;
    must(pipe(there) != 0);
    if (fork() == 0) use_it(there[0]);
    struct ipc_handle handle;
    void *buffer = make_written(2 * MIB);
    must(cudaIpcGetMemHandle(&handle, buffer));
    must(write(there[1], &handle, sizeof handle) != sizeof handle);
    wait(&status);
    return status != 0;
}
