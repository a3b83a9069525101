// notices.c: reports to `vram run` what is not in the recording: files that were made, and things that cannot be recorded.
#define _GNU_SOURCE
#include "notices.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"

bool pl_may_grow(uint64_t size_bytes) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size_bytes <= limit.rlim_cur;
}

struct record {
    struct iovec parts[3];
    uint64_t length;
};

// Appends a record in one write, because processes share the file. Returns false if the process is out of descriptors.
static bool append_record(const struct record *record) {
    struct stat facts;
    const int file = open(pl_config()->list, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return errno != EMFILE;
    if (fstat(file, &facts) == 0 && pl_may_grow((uint64_t)facts.st_size + record->length)) {
        const ssize_t written = writev(file, record->parts, 3);
        (void)written;
    }
    (void)close(file);
    return true;
}

static int append_in_child(void *record) {
    (void)close(STDIN_FILENO); // only in the child
    (void)append_record(record);
    return 0;
}

// Appends in a child that shares the memory but has its own descriptors, of which it closes one. This thread waits for it, and the program
// gets no signal about it.
static void append_elsewhere(struct record *record) {
    enum { STACK = 32768 };
    sigset_t all, before;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return;
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGBUS); // caught by window_guard.c
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int child = clone(append_in_child, stack + STACK, CLONE_VM | CLONE_VFORK, record);
    if (child > 0) (void)waitpid(child, NULL, __WCLONE);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)munmap(stack, STACK);
}

// Writes a record. A failure only loses the record; the program is not affected.
void pl_list(const char *what, const char *detail, const char *more) {
    const char *const fields[] = {what, detail, more};
    struct record record = {.length = 0};
    for (size_t i = 0; i < 3; i++) {
        record.parts[i] = (struct iovec){(void *)(uintptr_t)fields[i], strlen(fields[i]) + 1};
        record.length += record.parts[i].iov_len;
    }
    if (pl_config()->list[0] == '\0') return;
    const int saved = errno;
    if (!append_record(&record)) append_elsewhere(&record);
    errno = saved;
}

// Reports each thing once.
#define NOTICES_MAX 32
static char notices[NOTICES_MAX][200];
static size_t notice_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // taken below any other lock; no lock below it

void pl_notices_lock(void) { (void)pthread_mutex_lock(&lock); }
void pl_notices_unlock(void) { (void)pthread_mutex_unlock(&lock); }
void pl_notices_renew(void) {
    const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&lock, &fresh, sizeof fresh);
}

void pl_missed(const char *what, const char *detail) {
    char text[sizeof notices[0]];
    (void)snprintf(text, sizeof text, "%s %s", what, detail);
    (void)pthread_mutex_lock(&lock);
    size_t at = 0;
    while (at < notice_count && strcmp(notices[at], text) != 0) at++;
    const bool is_new = at == notice_count && notice_count < NOTICES_MAX;
    if (is_new) memcpy(notices[notice_count++], text, sizeof text);
    (void)pthread_mutex_unlock(&lock);
    if (is_new) pl_list("missed", what, detail);
}
