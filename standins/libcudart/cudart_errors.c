// The error of each thread, names and texts of errors.
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

static const struct row {
    int error, since; // the oldest major version that knows it
    const char *name, *text;
} rows[] = {
#define E(number, name, text, since) {number, since, #name, text},
#include "../facts/cudart_errors.def"
#undef E
};

// Rows are sorted by number.
static const struct row *find(int error) {
    size_t low = 0, high = sizeof rows / sizeof rows[0];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (rows[middle].error == error) return rows[middle].since <= RT_MAJOR ? &rows[middle] : NULL;
        if (rows[middle].error < error)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *cudaGetErrorName(int error) {
    const struct row *row = find(error);
    return row == NULL ? "unrecognized error code" : row->name;
}

const char *cudaGetErrorString(int error) {
    const struct row *row = find(error);
    return row == NULL ? "unrecognized error code" : row->text;
}
