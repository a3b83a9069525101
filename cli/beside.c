#include "beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The folder of this program, without a slash at the end.
static bool own_folder(char *folder, size_t capacity) {
    const ssize_t length = readlink("/proc/self/exe", folder, capacity - 1);
    if (length <= 0) return false;
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    return true;
}

static bool is_there(const char *folder, const char *file) {
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    return length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0;
}

// A folder that holds `file`: absolute as configured, else relative to this program.
static bool find_folder(const char *const *folders, size_t count, const char *file, char *path, size_t capacity) {
    char own[4096];
    if (!own_folder(own, sizeof own)) return false;
    for (size_t i = 0; i < count; i++) {
        const int length =
            folders[i][0] == '/' ? snprintf(path, capacity, "%s", folders[i]) : snprintf(path, capacity, "%s/%s", own, folders[i]);
        if (length > 0 && (size_t)length < capacity && is_there(path, file)) return true;
    }
    return false;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

bool beside_preload(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_PRELOAD_DIR, "../adapters/preload"};
    const char *wanted = getenv("VRAM_PRELOAD");
    if (wanted != NULL) return snprintf(path, capacity, "%s", wanted) < (int)capacity && access(path, R_OK) == 0;
    if (!find_folder(folders, COUNT_OF(folders), "libvram_preload.so", path, capacity)) return false;
    const size_t used = strlen(path);
    return snprintf(path + used, capacity - used, "/libvram_preload.so") < (int)(capacity - used);
}

bool beside_simcuda(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../simcuda"};
    const char *wanted = getenv("VRAM_SIMCUDA");
    if (wanted != NULL) return snprintf(path, capacity, "%s", wanted) < (int)capacity && is_there(path, "libcuda.so.1");
    return find_folder(folders, COUNT_OF(folders), "libcuda.so.1", path, capacity);
}

bool beside_cudart(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../simcudart"};
    const char *wanted = getenv("VRAM_SIMCUDART");
    if (wanted != NULL) return snprintf(path, capacity, "%s", wanted) < (int)capacity && is_there(path, "libcudart.so.13");
    return find_folder(folders, COUNT_OF(folders), "libcudart.so.13", path, capacity);
}

bool beside_standins(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../standins"};
    return find_folder(folders, COUNT_OF(folders), ".", path, capacity);
}

bool beside_front(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../simfront"};
    if (!find_folder(folders, COUNT_OF(folders), "libvram_front.so", path, capacity)) return false;
    const size_t used = strlen(path);
    return snprintf(path + used, capacity - used, "/libvram_front.so") < (int)(capacity - used);
}

bool beside_fit(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_PRELOAD_DIR "/fit", "../adapters/fit"};
    return find_folder(folders, COUNT_OF(folders), "sitecustomize.py", path, capacity);
}

bool beside_documents(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_DOCUMENTS_DIR, "../../.."};
    return find_folder(folders, COUNT_OF(folders), "docs/README.md", path, capacity);
}

bool beside_stacks(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_PRELOAD_DIR "/..", ".."};
    if (!find_folder(folders, COUNT_OF(folders), VRAM_LIBRARY_FILE, path, capacity)) return false;
    const size_t used = strlen(path);
    return snprintf(path + used, capacity - used, "/%s", VRAM_LIBRARY_FILE) < (int)(capacity - used);
}
