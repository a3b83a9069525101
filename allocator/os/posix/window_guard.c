// window_guard.c: windows over files that another program may truncate. A store into a page beyond the file's end raises SIGBUS, which
// would end a program that only wanted to be recorded. The window then gets private memory, and its further contents are lost to the file.
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/base.h"
#include "os/once.h"
#include "os/os.h"

enum { MOST_WINDOWS = 64, TAKEN = 1 };

// Read by a signal handler while others change it: a window is valid once its address is stored.
static struct guarded {
    _Atomic uintptr_t address; // 0: free, TAKEN: being filled
    _Atomic size_t size_bytes;
    _Atomic bool lost;
} windows[MOST_WINDOWS];

static struct sigaction before;

static struct guarded *window_of(uintptr_t address) {
    for (size_t i = 0; i < MOST_WINDOWS; i++) {
        const uintptr_t begin = atomic_load(&windows[i].address);
        if (begin > TAKEN && address >= begin && address - begin < atomic_load(&windows[i].size_bytes)) return &windows[i];
    }
    return NULL;
}

// Passes the signal to the previous handler or, without one, to the default action.
static void hand_on(int number, siginfo_t *facts, void *context) {
    if ((before.sa_flags & SA_SIGINFO) != 0)
        before.sa_sigaction(number, facts, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        (void)sigaction(number, &before, NULL);
}

static void on_bus_error(int number, siginfo_t *facts, void *context) {
    const uintptr_t address = (uintptr_t)facts->si_addr;
    struct guarded *window = facts->si_code > 0 ? window_of(address) : NULL;
    if (window == NULL) {
        hand_on(number, facts, context);
        return;
    }
    atomic_store(&window->lost, true);
    void *memory = (void *)atomic_load(&window->address);
    if (mmap(memory, atomic_load(&window->size_bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        hand_on(number, facts, context);
}

static void listen_for_sigbus(void) {
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, NULL, &before) == 0) (void)sigaction(SIGBUS, &action, NULL);
}

void vr_os_window_guard(void *memory, size_t size_bytes) {
    static struct vr_once once;
    vr_once(&once, listen_for_sigbus);
    for (size_t i = 0; i < MOST_WINDOWS; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&windows[i].address, &none, TAKEN)) continue;
        atomic_store(&windows[i].size_bytes, size_bytes);
        atomic_store(&windows[i].lost, false);
        atomic_store(&windows[i].address, (uintptr_t)memory);
        return;
    }
}

void vr_os_window_release(const void *memory) {
    struct guarded *window = window_of((uintptr_t)memory);
    if (window != NULL) atomic_store(&window->address, 0);
}

bool vr_os_window_is_lost(const void *memory) {
    struct guarded *window = window_of((uintptr_t)memory);
    return window != NULL && atomic_load(&window->lost);
}
