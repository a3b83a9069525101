// Passes code compressed with Zstandard to the simulator, as a foreign program does: usage: packed LIBRARY.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/code_fixture.h"

static void *library;

static int call(const char *name, const void *out, const void *in, const char *text) {
    int (*function)(const void *, const void *, const char *, void *, unsigned, void *, void *, unsigned);
    void *found = dlsym(library, name);
    if (found == NULL) exit(2);
    memcpy(&function, &found, sizeof found);
    return function(out, in, text, NULL, 0, NULL, NULL, 0);
}

static int expect(const char *what, long long found, long long expected) {
    if (found == expected) return 0;
    (void)fprintf(stderr, "%s: %lld, not %lld\n", what, found, expected);
    return 1;
}

int main(int count, char **arguments) {
    const struct code_image cubin = make_cubin(80, false);
    struct code_image packed = pack_zstd(&cubin), container = {.size_bytes = 0}, damaged = {.size_bytes = 0};
    uint64_t made = 0, kernel = 0;
    int registers = 0, failed = 0;
    if (count != 2 || (library = dlopen(arguments[1], RTLD_NOW)) == NULL) return 2;
    add_packed(&container, 80, CODE_ZSTD, &packed, cubin.size_bytes);
    packed.bytes[9] ^= 6; // a kind of block that does not exist
    add_packed(&damaged, 80, CODE_ZSTD, &packed, cubin.size_bytes);
    failed += expect("cuInit", call("cuInit", NULL, NULL, NULL), 0);
    failed += expect("load", call("cuLibraryLoadData", &made, container.bytes, NULL), 0);
    failed += expect("no such kernel", call("cuLibraryGetKernel", &kernel, (const void *)(uintptr_t)made, "other"), 500);
    failed += expect("kernel", call("cuLibraryGetKernel", &kernel, (const void *)(uintptr_t)made, "work"), 0);
    failed += expect("attribute", call("cuFuncGetAttribute", &registers, (const void *)(uintptr_t)4, (const char *)(uintptr_t)kernel), 0);
    failed += expect("registers", registers, 40);
    failed += expect("damaged", call("cuLibraryLoadData", &made, damaged.bytes, NULL), 200);
    return failed != 0;
}
