#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LETTERS = 6, TRIES = 100 };

// Replaces the name's last six letters, which are X, by random ones.
static bool name_by_chance(char *name) {
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz012345";
    unsigned char chance[LETTERS];
    const size_t length = strlen(name);
    if (length < LETTERS || getentropy(chance, sizeof chance) != 0) return false;
    for (size_t i = 0; i < LETTERS; i++) name[length - LETTERS + i] = alphabet[chance[i] % 32];
    return true;
}

int mkstemp(char *name) {
    for (int i = 0; i < TRIES && name_by_chance(name); i++) {
        const int file = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (file >= 0 || errno != EEXIST) return file;
    }
    errno = EEXIST;
    return -1;
}

char *mkdtemp(char *name) {
    for (int i = 0; i < TRIES && name_by_chance(name); i++) {
        if (mkdir(name, 0700) == 0) return name;
        if (errno != EEXIST) return NULL;
    }
    errno = EEXIST;
    return NULL;
}

int dup(int file) {
    (void)file;
    errno = EBADF;
    return -1;
}

char *realpath(const char *path, char *resolved) {
    enum { LINKS = 40, PATH_BYTES = 4096 };
    char target[PATH_BYTES], *real = strdup(path);
    (void)resolved;
    for (int i = 0; real != NULL; i++) {
        const ssize_t length = readlink(real, target, sizeof target - 1);
        if (length < 0) return real; // not a link
        target[length] = '\0';
        const char *slash = target[0] == '/' ? NULL : strrchr(real, '/');
        const size_t folder = slash == NULL ? 0 : (size_t)(slash + 1 - real), size = folder + (size_t)length + 1;
        char *next = i < LINKS ? malloc(size) : NULL;
        if (next != NULL) (void)snprintf(next, size, "%.*s%s", (int)folder, real, target);
        if (next == NULL) errno = i < LINKS ? ENOMEM : ELOOP;
        free(real);
        real = next;
    }
    return NULL;
}
