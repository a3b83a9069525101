// call_log.c: logs calls of this driver to the file named by VRAM_SIM_LOG, to test tools that watch programs. A line contains process,
// thread, function, result, and the arguments that identify memory; all but the first three are decimal or 0x hexadecimal numbers. Each
// line is one write.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcuda.h"

// The logged functions and their arguments: n a number, o a pointer to an output number, i a device, - an argument that is not logged.
// Additional values: c the current context, s a stream (1 if it captures, else 0), a whether the primary context of the preceding device is
// active.
static const struct {
    const char *name, *arguments;
} logged[] = {
    {"cuMemAlloc_v2", "onc"},
    {"cuMemAllocManaged", "on-c"},
    {"cuMemFree_v2", "n"},
    {"cuMemAllocAsync", "onsc"},
    {"cuMemAllocFromPoolAsync", "on-sc"},
    {"cuMemFreeAsync", "ns"},
    {"cuMemHostAlloc", "on-c"},
    {"cuMemFreeHost", "n"},
    {"cuMemHostRegister_v2", "nn-"},
    {"cuMemHostUnregister", "n"},
    {"cuMemCreate", "on--"},
    {"cuMemRetainAllocationHandle", "on"},
    {"cuMemRelease", "n"},
    {"cuMemMap", "nnnn-"},
    {"cuMemUnmap", "nn"},
    {"cuArrayCreate_v2", "o-c"},
    {"cuArray3DCreate_v2", "o-c"},
    {"cuArrayDestroy", "n"},
    {"cuMipmappedArrayCreate", "o--c"},
    {"cuMipmappedArrayDestroy", "n"},
    {"cuDevicePrimaryCtxRetain", "oi"},
    {"cuDevicePrimaryCtxRelease_v2", "ia"},
    {"cuDevicePrimaryCtxReset_v2", "i"},
    {"cuCtxDestroy_v2", "n"},
};

static int file = -1;
static _Atomic int known; // `file` has been opened, or the attempt was made

static void open_log_file(void) {
    const char *path = vr_os_getenv("VRAM_SIM_LOG");
    if (path != NULL) file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    atomic_store_explicit(&known, 1, memory_order_release);
}

bool vr_libcuda_logs(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (VR_UNLIKELY(atomic_load_explicit(&known, memory_order_acquire) == 0)) (void)pthread_once(&once, open_log_file);
    return file >= 0;
}

// Returns one value of the line. *device: the last device read, for `a`.
static uint64_t argument_value(char argument, va_list *values, int *device) {
    // Calls go through the table, so VRAM_SIM_FAIL does not count them.
    struct vram_driver *self = &vr_libcuda_sim()->head;
    uint64_t context = 0;
    unsigned flags;
    int answer = 0;
    switch (argument) {
    case 'c': (void)self->calls->ctx_get_current(self, &context); return context;
    case 'a': (void)cuDevicePrimaryCtxGetState(*device, &flags, &answer); return (uint64_t)answer;
    case 'i': *device = va_arg(*values, int); return (uint64_t)*device;
    case 's': (void)self->calls->stream_is_capturing(self, va_arg(*values, uint64_t), &answer); return answer != 0;
    default: {
        const uint64_t value = va_arg(*values, uint64_t);
        return argument == 'o' && value != 0 ? *(const uint64_t *)(uintptr_t)value : value;
    }
    }
}

static int print_call(char *line, size_t capacity, const char *arguments, va_list *values) {
    int length = 0, device = 0;
    for (; *arguments != '\0'; arguments++) {
        const uint64_t value = argument_value(*arguments, values, &device);
        if (*arguments != '-') length += snprintf(line + length, capacity - (size_t)length, " 0x%llx", (unsigned long long)value);
    }
    return length;
}

void vr_libcuda_log(const char *name, vr_cu_result result, ...) {
    size_t row = 0;
    while (row < VR_COUNT_OF(logged) && strcmp(logged[row].name, name) != 0) row++;
    if (row == VR_COUNT_OF(logged)) return;
    char line[256];
    int length = snprintf(line, sizeof line, "%ld %ld %s %d", (long)getpid(), (long)syscall(SYS_gettid), name, (int)result);
    va_list values;
    va_start(values, result);
    length += print_call(line + length, sizeof line - 2 - (size_t)length, logged[row].arguments, &values);
    va_end(values);
    line[length] = '\n';
    const ssize_t written = write(file, line, (size_t)length + 1);
    (void)written; // an incomplete log must not affect the program
}
