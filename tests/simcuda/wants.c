// Calls driver functions by their exported names, with null arguments. usage: wants LIBCUDA NAME...
// Prints a line per name: the name and the result, or "absent". `version` calls cuDriverGetVersion, `die` kills the process, `fork`
// continues in a child and waits for it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int call(void *library, const char *name) {
    int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) = NULL;
    void *address = dlsym(library, name);
    if (address == NULL) return -1;
    memcpy(&function, &address, sizeof function);
    return function(0, 0, 0, 0, 0, 0);
}

static void print_version(void *library) {
    int (*version)(int *) = NULL, number = 0;
    void *address = dlsym(library, "cuDriverGetVersion");
    memcpy(&version, &address, sizeof version);
    const int result = version(&number);
    (void)printf("version %d %d\n", result, number);
}

// Returns false in the parent of a fork, which is done.
static int act(void *library, const char *name) {
    if (strcmp(name, "version") == 0) {
        print_version(library);
    } else if (strcmp(name, "die") == 0) {
        (void)fflush(stdout);
        (void)kill(getpid(), SIGKILL);
    } else if (strcmp(name, "fork") == 0) {
        (void)fflush(stdout);
        if (fork() != 0) return wait(NULL) < 0;
    } else {
        const int result = call(library, name);
        (void)(result < 0 ? printf("%s absent\n", name) : printf("%s %d\n", name, result));
    }
    return 1;
}

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    for (int i = 2; i < argc; i++)
        if (!act(library, argv[i])) return 0;
    return 0;
}
