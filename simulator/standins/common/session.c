#define _GNU_SOURCE
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared_file.h"

static struct vr_session_file *file;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_session_file(void) { file = vr_shared_file("VRAM_SIM_SESSION", sizeof *file, VR_SESSION_MAGIC); }

struct vr_session_file *vr_session(void) {
    (void)pthread_once(&once, open_session_file);
    return file;
}

// Returns the start time of a process, or 0 if it does not exist: field 22 of its first thread's stat, the 20th after the name, which may
// contain anything. Does not read /proc/ID/stat, which qemu-user fakes.
static uint64_t birth_of(int64_t process) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/task/%lld/stat", (long long)process, (long long)process);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    const ssize_t length = read(descriptor, text, sizeof text - 1);
    (void)close(descriptor);
    if (length <= 0) return 0;
    text[length] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

bool vr_session_is_live(const struct vr_session_row *row) {
    const int64_t process = atomic_load(&row->process);
    const uint64_t birth = atomic_load(&row->birth);
    if (process <= 0) return false;
    if (birth != 0) return birth_of(process) == birth;
    return kill((pid_t)process, 0) == 0 || errno == EPERM; // just taken, birth not yet written
}

struct vr_session_row *vr_session_join(struct vr_session_file *session) {
    for (size_t i = 0; session != NULL && i < VR_SESSION_PROCESSES; i++) {
        struct vr_session_row *row = &session->rows[i];
        int64_t before = atomic_load(&row->process);
        const int64_t self = (int64_t)getpid();
        if (before != 0 && before != self && vr_session_is_live(row)) continue;
        if (!atomic_compare_exchange_strong(&row->process, &before, self)) continue;
        atomic_store(&row->birth, 0);
        for (size_t device = 0; device < VR_SESSION_DEVICES; device++) atomic_store(&row->used_bytes[device], 0);
        atomic_store(&row->birth, birth_of(self));
        uint64_t joined = atomic_load(&session->joined);
        while (joined < i + 1 && !atomic_compare_exchange_weak(&session->joined, &joined, i + 1)) {
        }
        return row;
    }
    return NULL;
}
