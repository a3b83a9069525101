// process.c: what happens to a process: fork, the end, libraries that come and go; and the lines that tell `vram run` about it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cache.h"
#include "config.h"
#include "doors.h"
#include "journal.h"
#include "real.h"
#include "session.h"

// --- records for `vram run` ----------------------------------------------------------------------------------------------

bool pl_may_grow(uint64_t size_bytes) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size_bytes <= limit.rlim_cur;
}

// One write per record: processes share the file. A record that finds no room is missing; the program has no part in it.
void pl_list(const char *what, const char *detail, const char *more) {
    const char *path = pl_config()->list;
    const char *const fields[] = {what, detail, more};
    struct iovec parts[3];
    uint64_t length = 0;
    for (size_t i = 0; i < 3; i++) {
        parts[i] = (struct iovec){(void *)(uintptr_t)fields[i], strlen(fields[i]) + 1};
        length += parts[i].iov_len;
    }
    if (path[0] == '\0') return;
    const int saved = errno;
    struct stat facts;
    const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0 && fstat(file, &facts) == 0 && pl_may_grow((uint64_t)facts.st_size + length)) {
        const ssize_t written = writev(file, parts, 3);
        (void)written;
    }
    if (file >= 0) (void)close(file);
    errno = saved;
}

// Each thing once.
#define SAID_MAX 32
static char said[SAID_MAX][200];
static size_t said_count;
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER; // taken under any other lock; nothing is taken under it

void pl_missed(const char *what, const char *detail) {
    char text[sizeof said[0]];
    (void)snprintf(text, sizeof text, "%s %s", what, detail);
    (void)pthread_mutex_lock(&said_lock);
    size_t at = 0;
    while (at < said_count && strcmp(said[at], text) != 0) at++;
    const bool is_new = at == said_count && said_count < SAID_MAX;
    if (is_new) memcpy(said[said_count++], text, sizeof text);
    (void)pthread_mutex_unlock(&said_lock);
    if (is_new) pl_list("missed", what, detail);
}

// --- libraries ------------------------------------------------------------------------------------------------------------

static _Atomic uint64_t closed;

uint64_t pl_libraries_closed(void) { return atomic_load_explicit(&closed, memory_order_relaxed); }

// Counts, and closes.
PL_EXPORT int dlclose(void *library) {
    const int result = pl_libc()->dlclose == NULL ? -1 : pl_libc()->dlclose(library);
    atomic_fetch_add_explicit(&closed, 1, memory_order_relaxed);
    return result;
}

// --- fork -----------------------------------------------------------------------------------------------------------------

// A thread that is inside and forks from there (from a handler of a signal) may hold the locks itself; its child goes on to exec().
static void before_fork(void) {
    if (pl_depth > 0) return;
    pl_doors_lock();
    pl_session_lock();
    (void)pthread_mutex_lock(&said_lock);
}

static void in_parent(void) {
    if (pl_depth > 0) return;
    (void)pthread_mutex_unlock(&said_lock);
    pl_session_unlock();
    pl_doors_unlock();
}

static char *mark; // not 0 in the process that made it; a page that a child finds wiped, however it was forked

static void in_child(void) {
    if (pl_depth > 0) return;
    pl_session_forget();
    pl_cache_abandon();
    if (mark != NULL) *mark = 1;
    in_parent();
}

// A child that was made past fork() and its hooks: nobody unlocked what others held.
static void renew(void) {
    const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&said_lock, &fresh, sizeof fresh);
    pl_doors_renew();
    pl_session_renew();
    pl_session_forget();
    pl_cache_abandon();
    *mark = 1;
}

static void setup(void) {
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

void pl_process_setup(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, setup);
    if (mark != NULL && *mark == 0) renew();
}

// --- the end --------------------------------------------------------------------------------------------------------------

// After the destructors of all libraries: they give memory back. A program that ends otherwise (a signal, _exit) leaves a recording
// without its index, which is read all the same.
static void at_exit(int code, void *unused) {
    (void)code;
    (void)unused;
    pl_session_close();
}

__attribute__((constructor)) static void constructed(void) { (void)on_exit(at_exit, NULL); }
