// The error of each thread, names and texts of errors.
#include <string.h>

#include "runtime.h"

static _Thread_local int last_error;

int rt_end(int error) {
    if (error != RT_SUCCESS && error != RT_NOT_READY) last_error = error;
    return error;
}

int cudaGetLastError(void) {
    const int error = last_error;
    last_error = RT_SUCCESS;
    return error;
}

int cudaPeekAtLastError(void) { return last_error; }

// All enumerations of the facts, errors among them.
static const struct {
    const char *kind, *name;
    int value, since;
} values[] = {
#define V(kind, name, value, first, last) {#kind, #name, value, first},
#include "../facts/cudart_values.def"
#undef V
};

static const struct {
    int error;
    const char *text;
} texts[] = {
#define T(error, text) {error, text},
#include "../facts/cudart_texts.def"
#undef T
};

static const char unknown[] = "unrecognized error code";

const char *cudaGetErrorName(int error) {
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i].value == error && values[i].since / 1000 <= RT_MAJOR && strcmp(values[i].kind, "cudaError") == 0)
            return values[i].name;
    return unknown;
}

const char *cudaGetErrorString(int error) {
    if (cudaGetErrorName(error) == unknown) return unknown;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].error == error) return texts[i].text;
    return cudaGetErrorName(error);
}
