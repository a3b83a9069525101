// The memory that a product uses, for `vram check`.
#include "cublas.h"

struct standin_operand standin_cublas_matrix(const struct cublas_matrix *matrix, int64_t batch, uint64_t effect) {
    const int64_t rows = matrix->rows, columns = matrix->columns;
    if (matrix->address == NULL || rows <= 0 || columns <= 0 || batch <= 0) return (struct standin_operand){NULL, 0, effect};
    if (matrix->width == 0) return (struct standin_operand){matrix->address, 1, effect | STANDIN_OPEN};
    // Between the columns of a part of a matrix there are other parts, which other work may use at the same time.
    const bool whole = columns == 1 || matrix->step == rows;
    const bool all = whole && (batch == 1 || matrix->stride == rows * columns);
    const uint64_t column_bytes = (uint64_t)rows * matrix->width, matrix_bytes = column_bytes * (uint64_t)columns;
    const uint64_t bytes = all ? matrix_bytes * (uint64_t)batch : whole ? matrix_bytes : column_bytes;
    return (struct standin_operand){matrix->address, bytes, all ? effect : effect | STANDIN_OPEN};
}

// Returns whether a scalar in host memory is zero: then the operand that it scales is not read.
bool standin_cublas_is_zero(const void *scalar, size_t bytes) {
    static const unsigned char zeros[16];
    return scalar != NULL && bytes <= sizeof zeros && memcmp(scalar, zeros, bytes) == 0;
}
