// run_environment.h: what a program has in its environment so that its device memory is recorded (adapters/preload).
#ifndef CLI_RUN_ENVIRONMENT_H
#define CLI_RUN_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_PATH_CAPACITY 4096

// The library that is put in front of the program.
struct run_library {
    char path[RUN_PATH_CAPACITY];
    char folder[RUN_PATH_CAPACITY]; // of a link to it, where the dynamic linker could not read its path; "": none was needed
};

bool run_library_find(struct run_library *library);
// Makes the link where one is needed. False with errno.
bool run_library_open(struct run_library *library);
void run_library_close(struct run_library *library);

struct run_environment {
    const char *library, *output, *list; // paths; the output is a pattern (docs/guides/run.md)
    uint64_t limit_bytes;                // 0: none
    const char *stacks, *on_oom;         // as the options of `vram run` are called
    const char *conf;                    // of the cache; may be NULL
    bool cache, keep_deepbind;
};

// Into the environment of this process, which the program inherits. False where there is no memory for it.
bool run_environment_put(const struct run_environment *environment);

#endif
