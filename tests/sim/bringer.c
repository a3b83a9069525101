// A program with its own libraries: one is linked with an RPATH, others are loaded by name. usage: bringer [dlmopen] NAME...
// Prints a line per library: the file in which the function was found.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cudaRuntimeGetVersion(int *version);

static void print_file(const char *name, void *function) {
    Dl_info facts;
    (void)printf("%s: %s\n", name, function == NULL || dladdr(function, &facts) == 0 ? dlerror() : realpath(facts.dli_fname, NULL));
}

int main(int argc, char **argv) {
    int version = 0;
    void *linked = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
    if (cudaRuntimeGetVersion(&version) != 0) return 1;
    print_file(version < 0 ? "linked, brought" : "linked, ours", linked);
    const int apart = argc > 1 && strcmp(argv[1], "dlmopen") == 0;
    for (int i = 1 + apart; i < argc; i++) {
        void *library = apart ? dlmopen(LM_ID_NEWLM, argv[i], RTLD_NOW) : dlopen(argv[i], RTLD_NOW);
        void *function = library == NULL ? NULL : dlsym(library, strstr(argv[i], "cudart") != NULL ? "cudaRuntimeGetVersion" : "cuInit");
        print_file(argv[i], function);
    }
    return 0;
}
