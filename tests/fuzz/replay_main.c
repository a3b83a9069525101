// Runs a fuzz target on files and on all files of folders, without libFuzzer: replay PATH...
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 0;
    uint8_t *data = NULL;
    size_t size = 0, capacity = 0;
    for (;;) {
        if (size == capacity) {
            capacity = capacity == 0 ? 65536 : capacity * 2;
            uint8_t *grown = realloc(data, capacity);
            if (grown == NULL) break;
            data = grown;
        }
        size_t got = fread(data + size, 1, capacity - size, file);
        if (got == 0) break;
        size += got;
    }
    // An allocation of exact size lets a sanitizer detect reads beyond it.
    uint8_t *exact = realloc(data, size == 0 ? 1 : size);
    if (exact != NULL) data = exact;
    int failed = ferror(file);
    (void)fclose(file);
    if (!failed) (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return failed ? 0 : 1;
}

static int run_folder(const char *path, DIR *folder) {
    int count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[4096];
        if (entry->d_name[0] == '.') continue;
        if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < (int)sizeof name) count += run_file(name);
    }
    return count;
}

int main(int argc, char **argv) {
    int count = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            count += run_file(argv[i]);
        } else {
            count += run_folder(argv[i], folder);
            (void)closedir(folder);
        }
    }
    printf("%d inputs\n", count);
    return count == 0;
}
