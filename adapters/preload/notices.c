// notices.c: what `vram run` is to know of this process besides its recording: files that were made, things that cannot be recorded.
#define _GNU_SOURCE
#include "notices.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "config.h"

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
    const int file = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0 && fstat(file, &facts) == 0 && pl_may_grow((uint64_t)facts.st_size + length)) {
        const ssize_t written = writev(file, parts, 3);
        (void)written;
    }
    if (file >= 0) (void)close(file);
    errno = saved;
}

// Each thing once.
#define NOTICES_MAX 32
static char notices[NOTICES_MAX][200];
static size_t notice_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // taken under any other lock; nothing is taken under it

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
