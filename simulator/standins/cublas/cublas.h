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

// A matrix by columns, as products use it. With a batch, matrices follow each other.
struct cublas_matrix {
    const void *address;
    int64_t rows, columns;
    int64_t step, stride; // elements from a column, or a matrix of a batch, to the next
    size_t width;         // bytes of an element; 0: in another order, or of four bits
};
// Returns what a product uses of `batch` matrices: all elements, or (open) at least the first column or matrix. Absent if there are none.
struct standin_operand standin_cublas_matrix(const struct cublas_matrix *matrix, int64_t batch, uint64_t effect);
bool standin_cublas_is_zero(const void *scalar, size_t bytes);

// These return the name and the text of a status.
const char *standin_cublas_name(int status);
const char *standin_cublas_text(int status);

#endif
