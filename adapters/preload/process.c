// process.c: handles fork and the end of the process.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache.h"
#include "journal.h"
#include "notices.h"
#include "real.h"
#include "session.h"

// --- fork -----------------------------------------------------------------------------------------------------------------

// A thread that forks while inside (in a signal handler) may hold the locks itself. Its child only calls exec().
static void before_fork(void) {
    if (pl_depth > 0) return;
    pl_doors_lock();
    pl_session_lock();
    pl_notices_lock();
}

static void in_parent(void) {
    if (pl_depth > 0) return;
    pl_notices_unlock();
    pl_session_unlock();
    pl_doors_unlock();
}

// A page that is zero in every child, however it was forked; NULL if the kernel is too old for that.
static char *mark;
// The byte to check: not 0 in the process that set it. `unset` is 0 until everything is set up.
static char unset;
_Atomic(const char *) pl_process_mark = &unset;

static void in_child(void) {
    if (pl_depth > 0) return;
    pl_session_forget();
    pl_cache_abandon();
    if (mark != NULL) *mark = 1;
    in_parent();
}

// Handles a child that was created without fork() and its hooks: the owners of its locks do not exist in it.
static void renew_process(void) {
    pl_notices_renew();
    pl_doors_renew();
    pl_session_renew();
    pl_session_forget();
    pl_cache_abandon();
    *mark = 1;
}

static void setup_process(void) {
    pl_journal_prepare();
    (void)pthread_atfork(before_fork, in_parent, in_child);
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, bytes, MADV_WIPEONFORK) != 0) { // an old kernel
        (void)munmap(page, bytes);
        return;
    }
    mark = page;
    *mark = 1;
}

void pl_process_setup_now(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const char always = 1;
    (void)pthread_once(&once, setup_process);
    if (mark != NULL && *mark == 0) renew_process();
    atomic_store_explicit(&pl_process_mark, mark != NULL ? mark : &always, memory_order_release);
}

// --- the end --------------------------------------------------------------------------------------------------------------

// Runs after the destructors of all libraries, because they free memory. A program that ends otherwise (a signal, _exit) leaves a recording
// without an index, which can still be read.
static void at_exit(int code, void *unused) {
    (void)code;
    (void)unused;
    pl_session_close();
}

__attribute__((constructor)) static void constructed(void) { (void)on_exit(at_exit, NULL); }
