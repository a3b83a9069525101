// process.c: this process, other processes, and helpers.

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

uint64_t vr_os_process_id(void) { return (uint64_t)getpid(); }

void vr_os_print_error(const char *text) {
    for (size_t left = strlen(text); left != 0;) {
        const ssize_t written = write(STDERR_FILENO, text, left);
        if (written < 0 && errno != EINTR) return;
        if (written > 0) text += written, left -= (size_t)written;
    }
}

void vr_os_abort(void) { abort(); }

static ssize_t read_small(const char *path, char *text, size_t capacity) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    const ssize_t length = read(file, text, capacity - 1);
    (void)close(file);
    if (length >= 0) text[length] = '\0';
    return length;
}

// Reads the third and the 22nd field of a process's stat; the second is a name in parentheses that may contain anything. Uses the stat of
// the first thread, which has the same values and comes from the kernel itself: qemu-user makes up a start time for a process that reads
// its own.
static bool read_stat(uint64_t process, char *state, uint64_t *started) {
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%llu/task/%llu/stat", (unsigned long long)process, (unsigned long long)process);
    if (read_small(path, text, sizeof text) <= 0) return false;
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ') return false;
    *state = at[2];
    for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
    if (at == NULL) return false;
    *started = strtoull(at + 1, NULL, 10);
    return true;
}

enum vram_status vr_os_process_started(uint64_t process, uint64_t *started) {
    assert(started != NULL);
    char state;
    return read_stat(process, &state, started) ? VRAM_OK : VRAM_IO;
}

bool vr_os_process_runs(uint64_t process, uint64_t started) {
    char state;
    uint64_t found;
    if (read_stat(process, &state, &found)) return found == started && state != 'Z' && state != 'X';
    return kill((pid_t)process, 0) == 0 || errno != ESRCH; // other users' processes may be hidden
}

enum vram_status vr_os_process_name(uint64_t process, char *name, size_t capacity) {
    assert(name != NULL && capacity > 0);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%llu/comm", (unsigned long long)process);
    const ssize_t length = read_small(path, name, capacity);
    if (length <= 0) return VRAM_IO;
    if (name[length - 1] == '\n') name[length - 1] = '\0';
    return VRAM_OK;
}

enum vram_status vr_os_host_id(struct vr_host_id *id) {
    assert(id != NULL);
    struct stat space;
    *id = (struct vr_host_id){.boot = ""};
    if (read_small("/proc/sys/kernel/random/boot_id", id->boot, sizeof id->boot) <= 0) return VRAM_UNSUPPORTED;
    if (stat("/proc/self/ns/pid", &space) == 0) id->processes = (uint64_t)space.st_ino;
    return VRAM_OK;
}

enum vram_status vr_os_take_descriptor(uint64_t process, int descriptor, int *taken) {
    assert(taken != NULL);
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_getfd)
    const long handle = syscall(SYS_pidfd_open, (pid_t)process, 0);
    if (handle < 0) return errno == ENOSYS ? VRAM_UNSUPPORTED : VRAM_IO;
    const long copy = syscall(SYS_pidfd_getfd, (int)handle, descriptor, 0);
    const int reason = errno;
    (void)close((int)handle);
    if (copy >= 0) {
        *taken = (int)copy;
        return VRAM_OK;
    }
    if (reason == EMFILE || reason == ENFILE) return VRAM_LIMIT;
    return reason == EPERM ? VRAM_REJECTED : reason == ENOSYS ? VRAM_UNSUPPORTED : VRAM_IO;
#else
    (void)process, (void)descriptor, (void)taken;
    return VRAM_UNSUPPORTED;
#endif
}

void vr_os_close_descriptor(int descriptor) { (void)close(descriptor); }

void vr_os_host_name(char *name, size_t capacity) {
    assert(name != NULL);
    if (capacity == 0) return;
    if (gethostname(name, capacity) != 0) (void)snprintf(name, capacity, "localhost");
    name[capacity - 1] = '\0';
}

// A helper: a copy of this process that works for it and may crash.

enum { STACK_BYTES = 4 << 20 };

struct beginning {
    void (*work)(void *context, int out);
    void *context;
    int out;
    pid_t parent;
};

// Runs in the helper, which must not handle, print or leave behind anything.
static int begin_helper(void *argument) {
    const struct beginning *beginning = argument;
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < SIGRTMIN; number++) (void)sigaction(number, &usual, NULL);
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_DUMPABLE, 0);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) (void)dup2(nowhere, STDERR_FILENO);
    if (getppid() == beginning->parent) beginning->work(beginning->context, beginning->out);
    return 0;
}

// Does not use fork(), whose hooks take locks that the caller may hold, and which signals the program when the child ends. Under an
// emulated kernel (qemu-user), only a copy with that signal can be made.
static pid_t make_copy(struct beginning *beginning) {
    sigset_t all, before;
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) return -1;
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGBUS); // raised by windows: window_guard.c
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t made = clone(begin_helper, (char *)stack + STACK_BYTES, 0, beginning);
    if (made < 0 && errno == EINVAL) made = clone(begin_helper, (char *)stack + STACK_BYTES, SIGCHLD, beginning);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)munmap(stack, STACK_BYTES);
    return made;
}

enum vram_status vr_os_helper_start(void (*work)(void *context, int out), void *context, struct vr_os_helper *helper) {
    assert(work != NULL && helper != NULL);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return VRAM_UNSUPPORTED;
    struct beginning beginning = {.work = work, .context = context, .out = ends[1], .parent = getpid()};
    const pid_t made = make_copy(&beginning);
    (void)close(ends[1]);
    if (made < 0) {
        (void)close(ends[0]);
        return VRAM_UNSUPPORTED;
    }
    *helper = (struct vr_os_helper){.process = made, .in = ends[0]};
    return VRAM_OK;
}

enum vram_status vr_os_helper_read(const struct vr_os_helper *helper, void *bytes, size_t capacity, unsigned seconds, size_t *got) {
    assert(helper != NULL && bytes != NULL && got != NULL);
    struct pollfd in = {.fd = helper->in, .events = POLLIN};
    ssize_t taken = -1;
    do {
        const int ready = poll(&in, 1, (int)seconds * 1000);
        if (ready == 0) return VRAM_IO;
        if (ready > 0) taken = read(helper->in, bytes, capacity);
    } while (taken < 0 && errno == EINTR);
    if (taken < 0) return VRAM_IO;
    *got = (size_t)taken;
    return VRAM_OK;
}

bool vr_os_helper_write(int out, const void *bytes, size_t size_bytes) {
    const char *at = bytes;
    while (size_bytes > 0) {
        const ssize_t written = write(out, at, size_bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        at += written;
        size_bytes -= (size_t)written;
    }
    return true;
}

void vr_os_helper_give_up(void) { (void)syscall(SYS_kill, getpid(), SIGKILL); }

void vr_os_helper_end(const struct vr_os_helper *helper) {
    assert(helper != NULL);
    (void)close(helper->in);
    (void)kill(helper->process, SIGKILL);
    while (waitpid(helper->process, NULL, __WALL) < 0 && errno == EINTR) {
    }
}
