// run_environment.h: finds vram's libraries that are loaded into a program, and sets the environment that loads them.
#ifndef CLI_RUN_ENVIRONMENT_H
#define CLI_RUN_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_PATH_CAPACITY 4096

// The library to preload.
struct run_library {
    char path[RUN_PATH_CAPACITY];
    char folder[RUN_PATH_CAPACITY]; // of a link to the library, if the dynamic linker cannot read its path; "" if not needed
};

bool run_library_find(struct run_library *library);
// Makes the link if it is needed. Returns false with errno set.
bool run_library_open(struct run_library *library);
void run_library_close(struct run_library *library);

struct run_environment {
    const char *library, *output, *list; // paths; the output is a pattern (docs/guides/run.md)
    uint64_t limit_bytes;                // 0: no limit
    const char *stacks, *on_oom;         // values of the options of `vram run`
    const char *conf;                    // options of the cache; may be NULL
    bool cache, keep_deepbind;
};

// Sets this process's environment, which the program inherits, so that its device memory is recorded (adapters/preload). Returns false if
// memory runs out.
bool run_environment_put(const struct run_environment *environment);

// vram's libraries for other programs, installed or in a build folder. Each is found relative to this executable.

// Finds the library that `vram run` preloads; the environment variable VRAM_PRELOAD overrides it. Returns false if it does not exist, like
// the functions below.
bool find_preload_library(char *path, size_t capacity);
// Finds the folder of the simulated libcuda.so.1; VRAM_SIMCUDA overrides it.
bool find_simcuda_folder(char *path, size_t capacity);
// Finds the folder of the small runtime, libcudart.so.13; VRAM_SIMCUDART overrides it.
bool find_cudart_folder(char *path, size_t capacity);
// Finds the folder of the stand-ins for libraries on top of CUDA.
bool find_standins_folder(char *path, size_t capacity);
// Finds the LD_AUDIT library that redirects to the stand-ins (simulator/standins/front).
bool find_front_library(char *path, size_t capacity);
// Finds the folder of Python modules loaded at start under `vram fit` (adapters/fit).
bool find_fit_folder(char *path, size_t capacity);
// Finds the folder that contains docs/.
bool find_documents_folder(char *path, size_t capacity);
// Finds libvram, which captures stacks for the simulated driver.
bool find_stacks_library(char *path, size_t capacity);

// Returns why the dynamic linker cannot preload into `program` (looked up in PATH as execvp() does); NULL if no reason is known.
const char *run_check(const char *program);

#endif
