// cusolver.h: status codes and handles of cuSOLVER.
#ifndef VR_STANDINS_CUSOLVER_CUSOLVER_H
#define VR_STANDINS_CUSOLVER_CUSOLVER_H

#include "../common/calls.h"

enum {
    CUSOLVER_NOT_INITIALIZED = 1,
    CUSOLVER_ALLOC_FAILED = 2,
    CUSOLVER_INVALID_VALUE = 3,
    CUSOLVER_EXECUTION_FAILED = 6,
    CUSOLVER_NOT_SUPPORTED = 9
};

// Kind of the handles of all four APIs.
#define CUSOLVER_HANDLE UINT64_C(0x6375736f6c760001)

static const struct standin_codes codes = {CUSOLVER_HANDLE,       CUSOLVER_NOT_INITIALIZED,  CUSOLVER_INVALID_VALUE,
                                           CUSOLVER_ALLOC_FAILED, CUSOLVER_EXECUTION_FAILED, CUSOLVER_NOT_SUPPORTED};

// Returns the number of elements in the workspace for a batch of matrices, from the table of sizes. At most INT_MAX, because the oldest
// queries return an int.
int standin_cusolver_elements(int64_t rows, int64_t columns, int64_t batch);
#define ELEMENTS(rows, columns, batch) standin_cusolver_elements((rows), (columns), (batch))

#endif
