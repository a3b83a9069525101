// cublas.h: status codes and handles of cuBLAS.
#ifndef VR_STANDINS_CUBLAS_CUBLAS_H
#define VR_STANDINS_CUBLAS_CUBLAS_H

#include "../common/calls.h"

enum {
    CUBLAS_NOT_INITIALIZED = 1,
    CUBLAS_ALLOC_FAILED = 3,
    CUBLAS_INVALID_VALUE = 7,
    CUBLAS_EXECUTION_FAILED = 13,
    CUBLAS_NOT_SUPPORTED = 15
};

#define CUBLAS_HANDLE UINT64_C(0x637562616c730001)

static const struct standin_codes codes = {CUBLAS_HANDLE,       CUBLAS_NOT_INITIALIZED,  CUBLAS_INVALID_VALUE,
                                           CUBLAS_ALLOC_FAILED, CUBLAS_EXECUTION_FAILED, CUBLAS_NOT_SUPPORTED};

// These return the name and the text of a status.
const char *standin_cublas_name(int status);
const char *standin_cublas_text(int status);

#endif
