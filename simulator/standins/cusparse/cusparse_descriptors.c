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

// What a format's maker is given and its getter tells, in the order of the parameters: F(type, member).
#define OF_INDICES(F) F(int, index_type) F(int, base) F(int, type)
#define OF_COMPRESSED(F)                                                                                                                   \
    F(int64_t, rows)                                                                                                                       \
    F(int64_t, columns) F(int64_t, entries) F(void *, offsets) F(void *, indices) F(void *, values) F(int, offset_type) OF_INDICES(F)
#define OF_COORDINATES(F)                                                                                                                  \
    F(int64_t, rows) F(int64_t, columns) F(int64_t, entries) F(void *, offsets) F(void *, indices) F(void *, values) OF_INDICES(F)
#define OF_BLOCKS(F)                                                                                                                       \
    F(int64_t, rows)                                                                                                                       \
    F(int64_t, columns)                                                                                                                    \
    F(int64_t, entries)                                                                                                                    \
    F(int64_t, block)                                                                                                                      \
    F(int64_t, second_block) F(void *, offsets) F(void *, indices) F(void *, values) F(int, offset_type) OF_INDICES(F) F(int, order)
#define OF_ELL(F)                                                                                                                          \
    F(int64_t, rows) F(int64_t, columns) F(int64_t, block) F(int64_t, second_block) F(void *, indices) F(void *, values) OF_INDICES(F)
#define OF_SLICES(F)                                                                                                                       \
    F(int64_t, rows)                                                                                                                       \
    F(int64_t, columns)                                                                                                                    \
    F(int64_t, entries)                                                                                                                    \
    F(int64_t, second_block) F(int64_t, block) F(void *, offsets) F(void *, indices) F(void *, values) F(int, offset_type) OF_INDICES(F)
#define OF_DENSE(F)   F(int64_t, rows) F(int64_t, columns) F(int64_t, step) F(void *, values) F(int, type) F(int, order)
#define OF_VECTOR(F)  F(int64_t, rows) F(void *, values) F(int, type)
#define OF_ENTRIES(F) F(int64_t, rows) F(int64_t, entries) F(void *, indices) F(void *, values) OF_INDICES(F)

// Takes the fields; what follows from them is filled in.
static int make_matrix(struct matrix **result, const struct matrix *fields) {
    struct matrix *made = result == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof *made);
    if (made == NULL) return result == NULL ? CUSPARSE_INVALID_VALUE : CUSPARSE_ALLOC_FAILED;
    const struct standin_object head = made->object;
    *made = *fields;
    made->object = head;
    made->batch = 1;
    if (made->format == DENSE) made->entries = (int64_t)((uint64_t)made->rows * (uint64_t)made->columns);
    if (made->format == BLOCKED_ELL) made->entries = (int64_t)((uint64_t)made->rows * (uint64_t)made->second_block);
    if (made->format == DENSE_VECTOR || made->format == SPARSE_VECTOR) made->columns = 1;
    *result = made;
    return 0;
}

#define PARAMETER(of, member) , of member
#define TAKEN(of, member)     .member = member,
#define MAKER(name, the_format, FIELDS)                                                                                                    \
    int name(struct matrix **result FIELDS(PARAMETER)) { return make_matrix(result, &(struct matrix){FIELDS(TAKEN).format = the_format}); }
// Each twice: the descriptor may be of memory that is only read.
#define MAKERS(name, the_format, FIELDS)                                                                                                   \
    MAKER(cusparseCreate##name, the_format, FIELDS)                                                                                        \
    MAKER(cusparseCreateConst##name, the_format, FIELDS)
MAKERS(Csr, CSR, OF_COMPRESSED)
MAKERS(Csc, CSC, OF_COMPRESSED)
MAKERS(Coo, COO, OF_COORDINATES)
MAKERS(Bsr, BSR, OF_BLOCKS)
MAKERS(BlockedEll, BLOCKED_ELL, OF_ELL)
MAKERS(SlicedEll, SLICED_ELL, OF_SLICES)
MAKERS(DnMat, DENSE, OF_DENSE)
MAKERS(DnVec, DENSE_VECTOR, OF_VECTOR)
MAKERS(SpVec, SPARSE_VECTOR, OF_ENTRIES)

// --- telling them ----------------------------------------------------------------------------------------------------------------------
#define NEEDS(condition)                                                                                                                   \
    if (!(condition)) return CUSPARSE_INVALID_VALUE

#define PLACE(of, member)  , of *member
#define STORED(of, member) PUT(member, matrix->member);
#define GETTER(name, FIELDS)                                                                                                               \
    int name(const struct matrix *matrix FIELDS(PLACE)) {                                                                                  \
        NEEDS(matrix != NULL);                                                                                                             \
        FIELDS(STORED)                                                                                                                     \
        return 0;                                                                                                                          \
    }
#define GETTERS(name, FIELDS)                                                                                                              \
    GETTER(cusparse##name##Get, FIELDS)                                                                                                    \
    GETTER(cusparseConst##name##Get, FIELDS)
GETTERS(Csr, OF_COMPRESSED)
GETTERS(Csc, OF_COMPRESSED)
GETTERS(Coo, OF_COORDINATES)
GETTERS(BlockedEll, OF_ELL)
GETTERS(DnMat, OF_DENSE)
GETTERS(DnVec, OF_VECTOR)
GETTERS(SpVec, OF_ENTRIES)

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
