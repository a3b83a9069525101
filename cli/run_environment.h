// run_environment.h: the libraries of this project that the command puts in front of a program, and the environment that does it.
#ifndef CLI_RUN_ENVIRONMENT_H
#define CLI_RUN_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a program has in its environment so that its device memory is recorded (adapters/preload).

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

// Libraries of this project that the command hands to other programs, found next to it: installed, or in a build folder.

// The library that `vram run` preloads; the environment variable VRAM_PRELOAD names another. False when it is not there.
bool find_preload_library(char *path, size_t capacity);
// The folder with the simulated libcuda.so.1; VRAM_SIMCUDA names another.
bool find_simcuda_folder(char *path, size_t capacity);
// The folder with the small runtime, libcudart.so.13; VRAM_SIMCUDART names another.
bool find_cudart_folder(char *path, size_t capacity);
// The folder with the stand-ins for the libraries over CUDA.
bool find_standins_folder(char *path, size_t capacity);
// The auditor of the dynamic linker that puts stand-ins in front (simulator/standins/front).
bool find_front_library(char *path, size_t capacity);
// The folder with what Python programs import at their start under `vram fit` (adapters/fit).
bool find_fit_folder(char *path, size_t capacity);
// The folder in which docs/ is.
bool find_documents_folder(char *path, size_t capacity);
// libvram, whose stacks the simulated driver takes.
bool find_stacks_library(char *path, size_t capacity);

// Can a program be recorded at all?

// Why the dynamic linker will not preload anything into `program` (looked up in PATH as execvp() does); NULL when nothing is known against
// it.
const char *run_check(const char *program);

#endif
