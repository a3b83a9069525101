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
#include <unistd.h>

#include "cache.h"
#include "config.h"
#include "doors.h"
#include "journal.h"
#include "real.h"
#include "session.h"

// --- lines for `vram run` -----------------------------------------------------------------------------------------------

// One write per line: processes share the file.
void pl_list(const char *what, const char *detail, const char *more) {
    const char *path = pl_config()->list;
    char line[2 * PL_PATH_MAX];
    const int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", what, detail, more);
    if (path[0] == '\0' || length < 0 || (size_t)length >= sizeof line) return;
    const int saved = errno;
    const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0) {
        const ssize_t written = write(file, line, (size_t)length);
        (void)written; // whoever reads the list misses a line; the program has no part in it
        (void)close(file);
    }
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

static void before_fork(void) {
    pl_doors_lock();
    pl_session_lock();
    (void)pthread_mutex_lock(&said_lock);
}

static void in_parent(void) {
    (void)pthread_mutex_unlock(&said_lock);
    pl_session_unlock();
    pl_doors_unlock();
}

static void in_child(void) {
    pl_session_forget();
    pl_cache_abandon();
    in_parent();
}

static void setup(void) {
    pl_journal_prepare();
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

void pl_process_setup(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, setup);
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
