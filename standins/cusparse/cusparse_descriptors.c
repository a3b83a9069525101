// Descriptors of sparse and dense matrices and vectors: what is set is told again.
#include "cusparse.h"

enum { CSR = 1, CSC = 2, COO = 3, BLOCKED_ELL = 5, BSR = 6, SLICED_ELL = 7, DENSE = 100, DENSE_VECTOR, SPARSE_VECTOR };

struct matrix {
    struct standin_object object;
    int format; // cusparseFormat_t, or one of ours
    int64_t rows, columns, entries, step, block, second_block;
    void *offsets, *indices, *values;
    int offset_type, index_type, base, type, order;
    int batch;
    int64_t batch_step;
};

static int make(struct matrix **result, const struct matrix *from) {
    struct matrix *made = result == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof *made);
    if (made == NULL) return result == NULL ? CUSPARSE_INVALID_VALUE : CUSPARSE_ALLOC_FAILED;
    const struct standin_object head = made->object;
    *made = *from;
    made->object = head;
    made->batch = 1;
    *result = made;
    return 0;
}

// Each maker twice: the descriptor may be of memory that is only read.
#define COMPRESSED(name, the_format)                                                                                                       \
    int name(struct matrix **result, int64_t rows, int64_t columns, int64_t entries, void *offsets, void *indices, void *values,           \
             int offset_type, int index_type, int base, int type) {                                                                        \
        return make(result, &(struct matrix){.format = the_format,                                                                         \
                                             .rows = rows,                                                                                 \
                                             .columns = columns,                                                                           \
                                             .entries = entries,                                                                           \
                                             .offsets = offsets,                                                                           \
                                             .indices = indices,                                                                           \
                                             .values = values,                                                                             \
                                             .offset_type = offset_type,                                                                   \
                                             .index_type = index_type,                                                                     \
                                             .base = base,                                                                                 \
                                             .type = type});                                                                               \
    }
COMPRESSED(cusparseCreateCsr, CSR)
COMPRESSED(cusparseCreateConstCsr, CSR)
COMPRESSED(cusparseCreateCsc, CSC)
COMPRESSED(cusparseCreateConstCsc, CSC)

#define COORDINATES(name)                                                                                                                  \
    int name(struct matrix **result, int64_t rows, int64_t columns, int64_t entries, void *row_indices, void *indices, void *values,       \
             int index_type, int base, int type) {                                                                                         \
        return make(result, &(struct matrix){.format = COO,                                                                                \
                                             .rows = rows,                                                                                 \
                                             .columns = columns,                                                                           \
                                             .entries = entries,                                                                           \
                                             .offsets = row_indices,                                                                       \
                                             .indices = indices,                                                                           \
                                             .values = values,                                                                             \
                                             .index_type = index_type,                                                                     \
                                             .base = base,                                                                                 \
                                             .type = type});                                                                               \
    }
COORDINATES(cusparseCreateCoo)
COORDINATES(cusparseCreateConstCoo)

#define BLOCKS(name)                                                                                                                       \
    int name(struct matrix **result, int64_t rows, int64_t columns, int64_t entries, int64_t row_block, int64_t column_block,              \
             void *offsets, void *indices, void *values, int offset_type, int index_type, int base, int type, int order) {                 \
        return make(result, &(struct matrix){.format = BSR,                                                                                \
                                             .rows = rows,                                                                                 \
                                             .columns = columns,                                                                           \
                                             .entries = entries,                                                                           \
                                             .block = row_block,                                                                           \
                                             .second_block = column_block,                                                                 \
                                             .offsets = offsets,                                                                           \
                                             .indices = indices,                                                                           \
                                             .values = values,                                                                             \
                                             .offset_type = offset_type,                                                                   \
                                             .index_type = index_type,                                                                     \
                                             .base = base,                                                                                 \
                                             .type = type,                                                                                 \
                                             .order = order});                                                                             \
    }
BLOCKS(cusparseCreateBsr)
BLOCKS(cusparseCreateConstBsr)

#define ELL(name)                                                                                                                          \
    int name(struct matrix **result, int64_t rows, int64_t columns, int64_t block, int64_t ell_columns, void *indices, void *values,       \
             int index_type, int base, int type) {                                                                                         \
        return make(result, &(struct matrix){.format = BLOCKED_ELL,                                                                        \
                                             .rows = rows,                                                                                 \
                                             .columns = columns,                                                                           \
                                             .entries = rows * ell_columns,                                                                \
                                             .block = block,                                                                               \
                                             .second_block = ell_columns,                                                                  \
                                             .indices = indices,                                                                           \
                                             .values = values,                                                                             \
                                             .index_type = index_type,                                                                     \
                                             .base = base,                                                                                 \
                                             .type = type});                                                                               \
    }
ELL(cusparseCreateBlockedEll)
ELL(cusparseCreateConstBlockedEll)

#define SLICES(name)                                                                                                                       \
    int name(struct matrix **result, int64_t rows, int64_t columns, int64_t entries, int64_t values_size, int64_t slice, void *offsets,    \
             void *indices, void *values, int offset_type, int index_type, int base, int type) {                                           \
        return make(result, &(struct matrix){.format = SLICED_ELL,                                                                         \
                                             .rows = rows,                                                                                 \
                                             .columns = columns,                                                                           \
                                             .entries = entries,                                                                           \
                                             .block = slice,                                                                               \
                                             .second_block = values_size,                                                                  \
                                             .offsets = offsets,                                                                           \
                                             .indices = indices,                                                                           \
                                             .values = values,                                                                             \
                                             .offset_type = offset_type,                                                                   \
                                             .index_type = index_type,                                                                     \
                                             .base = base,                                                                                 \
                                             .type = type});                                                                               \
    }
SLICES(cusparseCreateSlicedEll)
SLICES(cusparseCreateConstSlicedEll)

#define DENSE_MATRIX(name)                                                                                                                 \
    int name(struct matrix **result, int64_t rows, int64_t columns, int64_t step, void *values, int type, int order) {                     \
        return make(result, &(struct matrix){.format = DENSE,                                                                              \
                                             .rows = rows,                                                                                 \
                                             .columns = columns,                                                                           \
                                             .entries = rows * columns,                                                                    \
                                             .step = step,                                                                                 \
                                             .values = values,                                                                             \
                                             .type = type,                                                                                 \
                                             .order = order});                                                                             \
    }
DENSE_MATRIX(cusparseCreateDnMat)
DENSE_MATRIX(cusparseCreateConstDnMat)

#define VECTOR_OF_VALUES(name)                                                                                                             \
    int name(struct matrix **result, int64_t size, void *values, int type) {                                                               \
        return make(result, &(struct matrix){.format = DENSE_VECTOR, .rows = size, .columns = 1, .values = values, .type = type});         \
    }
VECTOR_OF_VALUES(cusparseCreateDnVec)
VECTOR_OF_VALUES(cusparseCreateConstDnVec)

#define VECTOR_OF_ENTRIES(name)                                                                                                            \
    int name(struct matrix **result, int64_t size, int64_t entries, void *indices, void *values, int index_type, int base, int type) {     \
        return make(result, &(struct matrix){.format = SPARSE_VECTOR,                                                                      \
                                             .rows = size,                                                                                 \
                                             .columns = 1,                                                                                 \
                                             .entries = entries,                                                                           \
                                             .indices = indices,                                                                           \
                                             .values = values,                                                                             \
                                             .index_type = index_type,                                                                     \
                                             .base = base,                                                                                 \
                                             .type = type});                                                                               \
    }
VECTOR_OF_ENTRIES(cusparseCreateSpVec)
VECTOR_OF_ENTRIES(cusparseCreateConstSpVec)

// --- telling them ----------------------------------------------------------------------------------------------------------------------
#define NEEDS(condition)                                                                                                                   \
    if (!(condition)) return CUSPARSE_INVALID_VALUE

#define GET_COMPRESSED(name)                                                                                                               \
    int name(const struct matrix *matrix, int64_t *rows, int64_t *columns, int64_t *entries, void **offsets, void **indices,               \
             void **values, int *offset_type, int *index_type, int *base, int *type) {                                                     \
        NEEDS(matrix != NULL);                                                                                                             \
        PUT(rows, matrix->rows);                                                                                                           \
        PUT(columns, matrix->columns);                                                                                                     \
        PUT(entries, matrix->entries);                                                                                                     \
        PUT(offsets, matrix->offsets);                                                                                                     \
        PUT(indices, matrix->indices);                                                                                                     \
        PUT(values, matrix->values);                                                                                                       \
        PUT(offset_type, matrix->offset_type);                                                                                             \
        PUT(index_type, matrix->index_type);                                                                                               \
        PUT(base, matrix->base);                                                                                                           \
        PUT(type, matrix->type);                                                                                                           \
        return 0;                                                                                                                          \
    }
GET_COMPRESSED(cusparseCsrGet)
GET_COMPRESSED(cusparseConstCsrGet)
GET_COMPRESSED(cusparseCscGet)
GET_COMPRESSED(cusparseConstCscGet)

#define GET_COORDINATES(name)                                                                                                              \
    int name(const struct matrix *matrix, int64_t *rows, int64_t *columns, int64_t *entries, void **row_indices, void **indices,           \
             void **values, int *index_type, int *base, int *type) {                                                                       \
        return cusparseCsrGet(matrix, rows, columns, entries, row_indices, indices, values, NULL, index_type, base, type);                 \
    }
GET_COORDINATES(cusparseCooGet)
GET_COORDINATES(cusparseConstCooGet)

#define GET_ELL(name)                                                                                                                      \
    int name(const struct matrix *matrix, int64_t *rows, int64_t *columns, int64_t *block, int64_t *ell_columns, void **indices,           \
             void **values, int *index_type, int *base, int *type) {                                                                       \
        NEEDS(matrix != NULL);                                                                                                             \
        PUT(block, matrix->block);                                                                                                         \
        PUT(ell_columns, matrix->second_block);                                                                                            \
        return cusparseCsrGet(matrix, rows, columns, NULL, NULL, indices, values, NULL, index_type, base, type);                           \
    }
GET_ELL(cusparseBlockedEllGet)
GET_ELL(cusparseConstBlockedEllGet)

#define GET_DENSE(name)                                                                                                                    \
    int name(const struct matrix *matrix, int64_t *rows, int64_t *columns, int64_t *step, void **values, int *type, int *order) {          \
        NEEDS(matrix != NULL);                                                                                                             \
        PUT(step, matrix->step);                                                                                                           \
        PUT(order, matrix->order);                                                                                                         \
        return cusparseCsrGet(matrix, rows, columns, NULL, NULL, NULL, values, NULL, NULL, NULL, type);                                    \
    }
GET_DENSE(cusparseDnMatGet)
GET_DENSE(cusparseConstDnMatGet)

#define GET_VECTOR(name)                                                                                                                   \
    int name(const struct matrix *matrix, int64_t *size, void **values, int *type) {                                                       \
        return cusparseCsrGet(matrix, size, NULL, NULL, NULL, NULL, values, NULL, NULL, NULL, type);                                       \
    }
GET_VECTOR(cusparseDnVecGet)
GET_VECTOR(cusparseConstDnVecGet)

#define GET_ENTRIES(name)                                                                                                                  \
    int name(const struct matrix *matrix, int64_t *size, int64_t *entries, void **indices, void **values, int *index_type, int *base,      \
             int *type) {                                                                                                                  \
        return cusparseCsrGet(matrix, size, NULL, entries, NULL, indices, values, NULL, index_type, base, type);                           \
    }
GET_ENTRIES(cusparseSpVecGet)
GET_ENTRIES(cusparseConstSpVecGet)

#define GET_VALUES(name)                                                                                                                   \
    int name(const struct matrix *matrix, void **values) {                                                                                 \
        NEEDS(matrix != NULL && values != NULL);                                                                                           \
        *values = matrix->values;                                                                                                          \
        return 0;                                                                                                                          \
    }
GET_VALUES(cusparseSpMatGetValues)
GET_VALUES(cusparseConstSpMatGetValues)
GET_VALUES(cusparseDnMatGetValues)
GET_VALUES(cusparseConstDnMatGetValues)
GET_VALUES(cusparseDnVecGetValues)
GET_VALUES(cusparseConstDnVecGetValues)
GET_VALUES(cusparseSpVecGetValues)
GET_VALUES(cusparseConstSpVecGetValues)

#define SET_VALUES(name)                                                                                                                   \
    int name(struct matrix *matrix, void *values) {                                                                                        \
        NEEDS(matrix != NULL);                                                                                                             \
        matrix->values = values;                                                                                                           \
        return 0;                                                                                                                          \
    }
SET_VALUES(cusparseSpMatSetValues)
SET_VALUES(cusparseDnMatSetValues)
SET_VALUES(cusparseDnVecSetValues)
SET_VALUES(cusparseSpVecSetValues)

#define SET_POINTERS(name)                                                                                                                 \
    int name(struct matrix *matrix, void *offsets, void *indices, void *values) {                                                          \
        NEEDS(matrix != NULL);                                                                                                             \
        matrix->offsets = offsets;                                                                                                         \
        matrix->indices = indices;                                                                                                         \
        matrix->values = values;                                                                                                           \
        return 0;                                                                                                                          \
    }
SET_POINTERS(cusparseCsrSetPointers)
SET_POINTERS(cusparseCscSetPointers)
SET_POINTERS(cusparseCooSetPointers)

static int set_batch(struct matrix *matrix, int batch, int64_t step) {
    NEEDS(matrix != NULL && batch > 0);
    matrix->batch = batch;
    matrix->batch_step = step;
    return 0;
}

int cusparseDnMatSetStridedBatch(struct matrix *matrix, int batch, int64_t step) { return set_batch(matrix, batch, step); }
int cusparseCooSetStridedBatch(struct matrix *matrix, int batch, int64_t step) { return set_batch(matrix, batch, step); }
int cusparseCsrSetStridedBatch(struct matrix *matrix, int batch, int64_t offsets_step, int64_t step) {
    return set_batch(matrix, batch, step);
}
int cusparseBsrSetStridedBatch(struct matrix *matrix, int batch, int64_t offsets_step, int64_t columns_step, int64_t step) {
    return set_batch(matrix, batch, step);
}

int cusparseDnMatGetStridedBatch(const struct matrix *matrix, int *batch, int64_t *step) {
    NEEDS(matrix != NULL);
    PUT(batch, matrix->batch);
    PUT(step, matrix->batch_step);
    return 0;
}

int cusparseSpMatGetStridedBatch(const struct matrix *matrix, int *batch) { return cusparseDnMatGetStridedBatch(matrix, batch, NULL); }

int cusparseSpMatGetFormat(const struct matrix *matrix, int *format) {
    NEEDS(matrix != NULL && format != NULL);
    *format = matrix->format;
    return 0;
}

int cusparseSpMatGetIndexBase(const struct matrix *matrix, int *base) {
    NEEDS(matrix != NULL && base != NULL);
    *base = matrix->base;
    return 0;
}

int cusparseSpVecGetIndexBase(const struct matrix *vector, int *base) { return cusparseSpMatGetIndexBase(vector, base); }

int cusparseSpMatGetSize(const struct matrix *matrix, int64_t *rows, int64_t *columns, int64_t *entries) {
    return cusparseCsrGet(matrix, rows, columns, entries, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}

int cusparseSpMatSetAttribute(struct matrix *matrix, int attribute, const void *value, size_t bytes) {
    NEEDS(matrix != NULL && value != NULL);
    return standin_keep(matrix, attribute, value, bytes) ? 0 : CUSPARSE_ALLOC_FAILED;
}

int cusparseSpMatGetAttribute(const struct matrix *matrix, int attribute, void *value, size_t bytes) {
    NEEDS(matrix != NULL && value != NULL);
    size_t kept_bytes = 0;
    const void *kept = standin_kept(matrix, attribute, &kept_bytes);
    memset(value, 0, bytes);
    if (kept != NULL) memcpy(value, kept, bytes < kept_bytes ? bytes : kept_bytes);
    return 0;
}

int cusparseSpVV(const struct standin_handle *handle, int operation, const void *x, const void *y, void *result, int type) {
    const int status = standin_call(&codes, handle);
    return status != 0 ? status : standin_clear(&codes, handle, result, standin_width(type));
}
