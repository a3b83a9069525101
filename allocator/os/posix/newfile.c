// newfile.c: the one way by which files come to be. Whoever may write into the folder can plant a link or a file under a name that can be
// foretold: nothing that is there is opened, nothing is followed, and nobody else may read what was made.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
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

// 60 bits that nobody else can tell. Before the system has any to give, those of the address space's layout and the time.
static void put_random_letters(char letters[VR_NEW_FILE_LETTERS + 1]) {
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = vr_mix64(vr_hash_secret(letters) ^ vr_os_monotonic_ns());
    for (size_t i = 0; i < VR_NEW_FILE_LETTERS; i++, number >>= 5) letters[i] = alphabet[number & 31];
    letters[VR_NEW_FILE_LETTERS] = '\0';
}

enum vram_status vr_os_file_create_beside(const char *path, char *made, size_t capacity, FILE **stream) {
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
    // Who may read a file of ours stays as it was: it may have been made for a reader of another user.
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
