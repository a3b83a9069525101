// check_errors.c: keeps Python's pending exception while PyTorch reports a block to Python code (adapters/fit/vram_check.py). A tensor may
// be freed while an exception is pending; PyTorch runs the report nevertheless, and would lose the exception.
#define _GNU_SOURCE // RTLD_DEFAULT
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "libcuda.h"

EXPORT void *vram_sim_check_error_take(void);
EXPORT void vram_sim_check_error_restore(void *capsule);

// A pending exception, with our references.
struct error {
    void *parts[3]; // type, value, traceback
};

static void *(*occurred)(void);
static void (*fetch)(void **type, void **value, void **traceback);
static void (*restore)(void *type, void *value, void *traceback);
static void *(*pointer_of)(void *capsule, const char *name);

static bool find_python(void) {
    void *const found[] = {dlsym(RTLD_DEFAULT, "PyErr_Occurred"), dlsym(RTLD_DEFAULT, "PyErr_Fetch"), dlsym(RTLD_DEFAULT, "PyErr_Restore"),
                           dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer")};
    for (size_t i = 0; i < VR_COUNT_OF(found); i++)
        if (found[i] == NULL) return false;
    memcpy(&occurred, &found[0], sizeof occurred);
    memcpy(&fetch, &found[1], sizeof fetch);
    memcpy(&restore, &found[2], sizeof restore);
    memcpy(&pointer_of, &found[3], sizeof pointer_of);
    return true;
}

// Takes the calling thread's pending exception away, and returns it; NULL if there is none. Python's lock is held, here and below.
void *vram_sim_check_error_take(void) {
    if (!find_python() || occurred() == NULL) return NULL;
    struct error *error = malloc(sizeof *error);
    if (error != NULL) fetch(&error->parts[0], &error->parts[1], &error->parts[2]);
    return error;
}

// The destructor of a capsule with an exception: the exception is pending again. Unlike the end of other objects, that of a capsule does
// not put the exceptions back that were pending before.
void vram_sim_check_error_restore(void *capsule) {
    struct error *error = pointer_of(capsule, NULL);
    if (error == NULL) return;
    restore(error->parts[0], error->parts[1], error->parts[2]);
    free(error);
}
