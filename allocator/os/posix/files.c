// files.c: new files, output streams, files that grow in mapped memory, and files mapped for reading.

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hash.h"
#include "os/os.h"

enum vram_status vr_os_file_create(const char *path, int *descriptor) {
    assert(path != NULL && descriptor != NULL);
    const int opened = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (opened < 0) return VRAM_IO;
    *descriptor = opened;
    return VRAM_OK;
}

// Writes 60 unpredictable bits as letters. Before the system has random bytes, uses the address space's layout and the time.
static void put_random_letters(char letters[VR_NEW_FILE_LETTERS + 1]) {
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = vr_mix64(vr_hash_secret(letters) ^ vr_os_monotonic_ns());
    for (size_t i = 0; i < VR_NEW_FILE_LETTERS; i++, number >>= 5) letters[i] = alphabet[number & 31];
    letters[VR_NEW_FILE_LETTERS] = '\0';
}

enum vram_status vr_os_file_create_temporary(const char *path, char *made, size_t capacity, FILE **stream) {
    assert(path != NULL && made != NULL && capacity > strlen(path) + VR_NEW_FILE_EXTRA && stream != NULL);
    enum { TRIES = 100 };
    int descriptor = -1;
    errno = EEXIST;
    for (int i = 0; i < TRIES && errno == EEXIST; i++) {
        char letters[VR_NEW_FILE_LETTERS + 1];
        put_random_letters(letters);
        (void)snprintf(made, capacity, "%s.%s.part", path, letters);
        if (vr_os_file_create(made, &descriptor) == VRAM_OK) break;
    }
    if (descriptor < 0) return VRAM_IO;
    // Keep the old file's permissions: it may have been made readable for another user.
    struct stat facts;
    if (lstat(path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid()) (void)fchmod(descriptor, facts.st_mode & 0777);
    FILE *opened = fdopen(descriptor, "wb");
    if (opened == NULL) {
        (void)close(descriptor);
        (void)unlink(made);
        return VRAM_IO;
    }
    *stream = opened;
    return VRAM_OK;
}

// Output to files that are not regular: the program's standard streams, terminals, pipes.

// Returns the descriptor that a path names, or -1.
static int descriptor_of(const char *path) {
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (strncmp(path, folders[i], strlen(folders[i])) != 0) continue;
        const char *number = path + strlen(folders[i]);
        const size_t digits = strspn(number, "0123456789");
        if (digits > 0 && digits < 7 && number[digits] == '\0') return (int)strtoll(number, NULL, 10);
    }
    return -1;
}

// Opens without blocking. Refuses a pipe without a reader, because opening it would wait for one, and a regular file that appeared since
// the check.
static FILE *open_without_waiting(const char *path) {
    struct stat facts;
    const int file = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    const bool plain = file >= 0 && (fstat(file, &facts) != 0 || S_ISREG(facts.st_mode));
    if (plain) errno = EEXIST;
    FILE *opened = file < 0 || plain || fcntl(file, F_SETFL, O_WRONLY) < 0 ? NULL : fdopen(file, "wb");
    if (opened == NULL && file >= 0) (void)close(file);
    return opened;
}

enum vram_status vr_os_stream_open(const char *path, FILE **stream) {
    assert(path != NULL && stream != NULL);
    const int named = descriptor_of(path);
    struct stat facts;
    FILE *opened = NULL;
    if (named < 0) {
        if (lstat(path, &facts) != 0 || S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode)) return VRAM_UNSUPPORTED;
        opened = open_without_waiting(path);
    } else {
        // Duplicate the descriptor: opening a log by name would truncate it and write from its beginning.
        const int again = fcntl(named, F_DUPFD_CLOEXEC, 3);
        opened = again < 0 ? NULL : fdopen(again, "wb");
        if (opened == NULL && again >= 0) (void)close(again);
    }
    if (opened == NULL) return VRAM_IO;
    *stream = opened;
    return VRAM_OK;
}

// Files written through memory.

enum { UNIT = 64 * 1024 }; // of mappings: the largest page size of the supported systems

// Moves a descriptor away from the numbers that the program relies on, and never to one of the standard three, which it may have closed.
// Returns the descriptor itself if no such number is free.
static int move_away(int descriptor) {
    static const int floors[] = {900, 200, 3};
    for (size_t i = 0; i < sizeof floors / sizeof floors[0]; i++) {
        const int moved = descriptor > floors[i] ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, floors[i]);
        if (moved < 0) continue;
        (void)close(descriptor);
        return moved;
    }
    return descriptor;
}

// Returns the file's current path, for opening it again; NULL if the system does not say.
static char *path_of(int descriptor) {
    enum { CAPACITY = 4096 };
    char link[32], *path = malloc(CAPACITY);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = path == NULL ? -1 : readlink(link, path, CAPACITY - 1);
    if (length <= 0 || path[0] != '/') {
        free(path);
        return NULL;
    }
    path[length] = '\0';
    return path;
}

// Returns whether a program is writing the file: a writer holds a lock on it, which ends with the writer. False on systems without locks.
static bool is_written(const char *path) {
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (opened < 0) return false;
    const bool locked = flock(opened, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    (void)close(opened);
    return locked;
}

enum vram_status vr_os_growfile_create(const char *path, bool replace, struct vr_growfile *file, const char **reason) {
    assert(path != NULL && file != NULL && reason != NULL);
    struct stat found;
    if (replace && lstat(path, &found) == 0 && S_ISREG(found.st_mode)) {
        if (is_written(path)) {
            *reason = "another process is writing a recording to it";
            return VRAM_IO;
        }
        (void)unlink(path);
    }
    int opened = -1;
    if (vr_os_file_create(path, &opened) != VRAM_OK || fstat(opened, &found) != 0) {
        *reason = strerror(errno);
        if (opened >= 0) (void)close(opened);
        return VRAM_IO;
    }
    (void)flock(opened, LOCK_EX | LOCK_NB);
    opened = move_away(opened);
    *file = (struct vr_growfile){opened, (uint64_t)found.st_dev, (uint64_t)found.st_ino, path_of(opened)};
    return VRAM_OK;
}

static bool is_it(const struct vr_growfile *file, int descriptor) {
    struct stat facts;
    return fstat(descriptor, &facts) == 0 && (uint64_t)facts.st_dev == file->volume && (uint64_t)facts.st_ino == file->number;
}

// The program may have closed the descriptor along with all those it does not know, and reused its number for a file of its own.
static bool reopen_growfile(struct vr_growfile *file) {
    if (is_it(file, file->descriptor)) return true;
    const int again = file->path == NULL ? -1 : open(file->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (again < 0) return false;
    if (!is_it(file, again)) {
        (void)close(again);
        return false;
    }
    file->descriptor = move_away(again);
    return true;
}

// Allocates the range on disk: touching a page of a mapping without disk space would end the program. So would a file that exceeds the
// process's limit.
static bool allocate_on_disk(int descriptor, uint64_t offset, uint64_t size_bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + size_bytes > limit.rlim_cur) return false;
    int failed;
    do {
        failed = posix_fallocate(descriptor, (off_t)offset, (off_t)size_bytes);
    } while (failed == EINTR);
    return failed == 0;
}

enum vram_status vr_os_growfile_map(struct vr_growfile *file, uint64_t offset, size_t size_bytes, void **memory) {
    assert(offset % UNIT == 0 && size_bytes % UNIT == 0 && size_bytes > 0 && memory != NULL);
    if (!reopen_growfile(file) || !allocate_on_disk(file->descriptor, offset, size_bytes)) return VRAM_IO;
    void *mapped = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor, (off_t)offset);
    if (mapped == MAP_FAILED) return VRAM_NO_HOST_MEMORY;
    vr_os_window_guard(mapped, size_bytes);
    *memory = mapped;
    return VRAM_OK;
}

void vr_os_growfile_unmap(void *memory, size_t size_bytes) {
    if (memory == NULL) return;
    vr_os_window_release(memory);
    (void)munmap(memory, size_bytes);
}

bool vr_os_growfile_is_whole(struct vr_growfile *file, const void *memory, uint64_t end) {
    struct stat facts;
    if (vr_os_window_is_lost(memory)) return false;
    return !reopen_growfile(file) || fstat(file->descriptor, &facts) != 0 || (uint64_t)facts.st_size >= end;
}

enum vram_status vr_os_growfile_cut(struct vr_growfile *file, uint64_t size_bytes) {
    return reopen_growfile(file) && ftruncate(file->descriptor, (off_t)size_bytes) == 0 ? VRAM_OK : VRAM_IO;
}

void vr_os_growfile_discard(struct vr_growfile *file) {
    if (file->path != NULL) (void)unlink(file->path);
    vr_os_growfile_close(file);
}

void vr_os_growfile_close(struct vr_growfile *file) {
    if (is_it(file, file->descriptor)) (void)close(file->descriptor);
    free(file->path);
    *file = (struct vr_growfile){.descriptor = -1};
}

// A file mapped privately for reading: other writers' changes may show, but nothing of ours is written to it.

enum vram_status vr_os_view_open(const char *path, struct vr_os_view *view) {
    assert(path != NULL && view != NULL);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // do not block on a pipe without a writer
    if (file < 0) return VRAM_IO;
    struct stat facts;
    void *bytes = MAP_FAILED;
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
        bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (bytes == MAP_FAILED) {
        (void)close(file);
        return VRAM_IO;
    }
    *view = (struct vr_os_view){.bytes = bytes, .size_bytes = (uint64_t)facts.st_size, .file = file};
    return VRAM_OK;
}

void vr_os_view_close(struct vr_os_view *view) {
    assert(view != NULL && view->bytes != NULL); // not closed twice
    (void)munmap((void *)(uintptr_t)view->bytes, (size_t)view->size_bytes);
    (void)close(view->file);
}
