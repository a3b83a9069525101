// run_check.c: programs that no library can be preloaded into: they have no dynamic linker, or it must not listen.
#include "run_check.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_CAPACITY 4096

// The file that execvp() would run. False when there is none.
static bool find(const char *program, char *path) {
    if (strchr(program, '/') != NULL) return snprintf(path, PATH_CAPACITY, "%s", program) < PATH_CAPACITY && access(path, X_OK) == 0;
    const char *folders = getenv("PATH");
    for (const char *at = folders; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ":");
        const int wanted = snprintf(path, PATH_CAPACITY, "%.*s/%s", (int)length, at, program);
        if (wanted > 0 && wanted < PATH_CAPACITY && access(path, X_OK) == 0) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

// False also for what is no 64-bit ELF file: scripts, and what the kernel will refuse.
static bool is_static(FILE *file) {
    Elf64_Ehdr head;
    if (fread(&head, sizeof head, 1, file) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(Elf64_Phdr) || fseek(file, (long)head.e_phoff, SEEK_SET) != 0)
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        if (fread(&part, sizeof part, 1, file) != 1) return false;
        if (part.p_type == PT_INTERP) return false;
    }
    return true;
}

static bool is_32_bit(FILE *file) {
    unsigned char ident[EI_NIDENT];
    const bool read = fread(ident, sizeof ident, 1, file) == 1;
    rewind(file);
    return read && memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

const char *run_check(const char *program) {
    char path[PATH_CAPACITY];
    struct stat facts;
    if (!find(program, path) || stat(path, &facts) != 0) return NULL;
    const bool other_user = (facts.st_mode & S_ISUID) != 0 && facts.st_uid != geteuid();
    const bool other_group = (facts.st_mode & S_ISGID) != 0 && facts.st_gid != getegid();
    if (other_user || other_group) return "it runs with the rights of another user (setuid), where nothing is preloaded";
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    const char *why = is_32_bit(file) ? "it is a 32-bit program" : is_static(file) ? "it is linked statically" : NULL;
    (void)fclose(file);
    return why;
}
