// Handles of cuSPARSE, and descriptors of matrices and vectors.
#include "cusparse.h"

// ---- Handles, versions, texts, legacy descriptors, and products of two sparse matrices.

int cusparseCreate(struct standin_handle **handle) { return standin_new_handle(&codes, handle, 0); }
int cusparseDestroy(struct standin_handle *handle) { return standin_free_handle(&codes, handle); }

int cusparseSetStream(struct standin_handle *handle, uint64_t stream) {
    const int status = standin_query(&codes, handle);
    if (status == 0) handle->stream = stream;
    return status;
}

int cusparseGetStream(const struct standin_handle *handle, uint64_t *stream) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (stream == NULL) return CUSPARSE_INVALID_VALUE;
    *stream = handle->stream;
    return 0;
}

int cusparseSetPointerMode(struct standin_handle *handle, int mode) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (mode != 0 && mode != 1) return CUSPARSE_INVALID_VALUE;
    handle->pointer_mode = mode;
    return 0;
}

int cusparseGetPointerMode(const struct standin_handle *handle, int *mode) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (mode == NULL) return CUSPARSE_INVALID_VALUE;
    *mode = handle->pointer_mode;
    return 0;
}

// major * 1000 + minor * 100 + patch
int cusparseGetVersion(const struct standin_handle *handle, int *version) {
    if (version == NULL) return CUSPARSE_INVALID_VALUE;
    *version = standin_version_part(0) * 1000 + standin_version_part(1) * 100 + standin_version_part(2);
    return 0;
}

int cusparseGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return CUSPARSE_INVALID_VALUE;
    *value = standin_version_part(part);
    return 0;
}

static const char *const names[] = {
    "CUSPARSE_STATUS_SUCCESS",          "CUSPARSE_STATUS_NOT_INITIALIZED", "CUSPARSE_STATUS_ALLOC_FAILED",
    "CUSPARSE_STATUS_INVALID_VALUE",    "CUSPARSE_STATUS_ARCH_MISMATCH",   "CUSPARSE_STATUS_MAPPING_ERROR",
    "CUSPARSE_STATUS_EXECUTION_FAILED", "CUSPARSE_STATUS_INTERNAL_ERROR",  "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
    "CUSPARSE_STATUS_ZERO_PIVOT",       "CUSPARSE_STATUS_NOT_SUPPORTED",   "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES"};
enum { NAMES = sizeof names / sizeof *names };

const char *cusparseGetErrorName(int status) { return status >= 0 && status < NAMES ? names[status] : "unrecognized error code"; }
const char *cusparseGetErrorString(int status) { return cusparseGetErrorName(status); }

size_t standin_cusparse_buffer(void) { return (size_t)standin_size(STANDIN_CUSPARSE_BUFFER, standin_library_version)->bytes; }

// --- legacy matrix descriptors --------------------------------------------------------------------------------------
struct matrix_type {
    struct standin_object object;
    int type, fill, diagonal, base;
};

int cusparseCreateMatDescr(struct matrix_type **descriptor) {
    struct matrix_type *made = descriptor == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof *made);
    if (made == NULL) return descriptor == NULL ? CUSPARSE_INVALID_VALUE : CUSPARSE_ALLOC_FAILED;
    *descriptor = made;
    return 0;
}

#define MEMBER(setter, getter, member)                                                                                                     \
    int setter(struct matrix_type *descriptor, int value) {                                                                                \
        if (descriptor == NULL) return CUSPARSE_INVALID_VALUE;                                                                             \
        descriptor->member = value;                                                                                                        \
        return 0;                                                                                                                          \
    }                                                                                                                                      \
    int getter(const struct matrix_type *descriptor) { return descriptor == NULL ? 0 : descriptor->member; }
MEMBER(cusparseSetMatType, cusparseGetMatType, type)
MEMBER(cusparseSetMatFillMode, cusparseGetMatFillMode, fill)
MEMBER(cusparseSetMatDiagType, cusparseGetMatDiagType, diagonal)
MEMBER(cusparseSetMatIndexBase, cusparseGetMatIndexBase, base)

// --- products of sparse matrices: each step returns its buffer size if the buffer is NULL, otherwise it launches work ---
static int workspace_step(const struct standin_handle *handle, size_t *bytes, const void *buffer) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (buffer != NULL) return standin_call(&codes, handle);
    if (bytes != NULL) *bytes = standin_cusparse_buffer();
    return 0;
}

int cusparseSpGEMM_workEstimation(const struct standin_handle *handle, int a_operation, int b_operation, const void *alpha, const void *a,
                                  const void *b, const void *beta, void *c, int type, int algorithm, void *product, size_t *bytes,
                                  void *buffer) {
    return workspace_step(handle, bytes, buffer);
}

int cusparseSpGEMM_compute(const struct standin_handle *handle, int a_operation, int b_operation, const void *alpha, const void *a,
                           const void *b, const void *beta, void *c, int type, int algorithm, void *product, size_t *bytes, void *buffer) {
    return workspace_step(handle, bytes, buffer);
}

int cusparseSpGEMM_estimateMemory(const struct standin_handle *handle, int a_operation, int b_operation, const void *alpha, const void *a,
                                  const void *b, const void *beta, void *c, int type, int algorithm, void *product, float fraction,
                                  size_t *bytes, void *buffer, size_t *next_bytes) {
    if (buffer != NULL && next_bytes != NULL) *next_bytes = standin_cusparse_buffer();
    return workspace_step(handle, bytes, buffer);
}

int cusparseSpGEMM_getNumProducts(const void *product, int64_t *count) {
    if (count == NULL) return CUSPARSE_INVALID_VALUE;
    *count = 0;
    return 0;
}

int cusparseSpGEMMreuse_workEstimation(const struct standin_handle *handle, int a_operation, int b_operation, const void *a, const void *b,
                                       void *c, int algorithm, void *product, size_t *bytes, void *buffer) {
    return workspace_step(handle, bytes, buffer);
}

int cusparseSpGEMMreuse_nnz(const struct standin_handle *handle, int a_operation, int b_operation, const void *a, const void *b, void *c,
                            int algorithm, void *product, size_t *bytes2, void *buffer2, size_t *bytes3, void *buffer3, size_t *bytes4,
                            void *buffer4) {
    if (buffer3 == NULL && bytes3 != NULL) *bytes3 = standin_cusparse_buffer();
    if (buffer4 == NULL && bytes4 != NULL) *bytes4 = standin_cusparse_buffer();
    return workspace_step(handle, bytes2, buffer2);
}

int cusparseSpGEMMreuse_copy(const struct standin_handle *handle, int a_operation, int b_operation, const void *a, const void *b, void *c,
                             int algorithm, void *product, size_t *bytes, void *buffer) {
    return workspace_step(handle, bytes, buffer);
}

int cusparseSpMMOp_createPlan(const struct standin_handle *handle, void **plan, int a_operation, int b_operation, const void *a,
                              const void *b, void *c, int type, int algorithm, const void *add, size_t add_bytes, const void *multiply,
                              size_t multiply_bytes, const void *epilogue, size_t epilogue_bytes, size_t *bytes) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    void *made = plan == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof(struct standin_object));
    if (made == NULL) return plan == NULL ? CUSPARSE_INVALID_VALUE : CUSPARSE_ALLOC_FAILED;
    *plan = made;
    if (bytes != NULL) *bytes = standin_cusparse_buffer();
    return 0;
}

// ---- Descriptors of sparse and dense matrices and vectors, which store and return their settings.

enum { CSR = 1, CSC = 2, COO = 3, BLOCKED_ELL = 5, BSR = 6, SLICED_ELL = 7, DENSE = 100, DENSE_VECTOR, SPARSE_VECTOR };

struct matrix {
    struct standin_object object;
    int format; // cusparseFormat_t, or one of the constants above
    int64_t rows, columns, entries, step, block, second_block;
    void *offsets, *indices, *values;
    int offset_type, index_type, base, type, order;
    int batch;
    int64_t batch_step;
};

// Parameters of each format's create and get functions, in order: F(type, member).
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

// Creates a descriptor from its fields and fills in derived ones.
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
// Defines both variants; the Const one describes read-only memory.
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

// --- getters --------------------------------------------------------------------------------------------------------
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

// --- products: a matrix or vector is read or written with its indices, of which only the beginning is certain -----------
static int multiply(const struct standin_handle *handle, const char *name, const struct matrix *a, const struct matrix *b,
                    const struct matrix *c) {
    if (a == NULL || b == NULL || c == NULL) return CUSPARSE_INVALID_VALUE;
    const struct standin_operand operands[] = {READS(a->values),  READS(a->indices), READS(a->offsets), READS(b->values), READS(b->indices),
                                               READS(b->offsets), READS(c->indices), READS(c->offsets), WRITES(c->values)};
    return standin_call_on(&codes, handle, name, operands, sizeof operands / sizeof *operands);
}

int cusparseSpMM(const struct standin_handle *handle, int a_operation, int b_operation, const void *alpha, const struct matrix *a,
                 const struct matrix *b, const void *beta, const struct matrix *c) {
    return multiply(handle, "cusparseSpMM", a, b, c);
}

int cusparseSDDMM(const struct standin_handle *handle, int a_operation, int b_operation, const void *alpha, const struct matrix *a,
                  const struct matrix *b, const void *beta, const struct matrix *c) {
    return multiply(handle, "cusparseSDDMM", a, b, c);
}

int cusparseSpMV(const struct standin_handle *handle, int operation, const void *alpha, const struct matrix *a, const struct matrix *x,
                 const void *beta, const struct matrix *y) {
    return multiply(handle, "cusparseSpMV", a, x, y);
}

int cusparseSpVV(const struct standin_handle *handle, int operation, const struct matrix *x, const struct matrix *y, void *result,
                 int type) {
    if (x == NULL || y == NULL) return CUSPARSE_INVALID_VALUE;
    const struct standin_operand operands[] = {READS(x->values), READS(x->indices), READS(y->values)};
    const int status = standin_call_on(&codes, handle, "cusparseSpVV", operands, sizeof operands / sizeof *operands);
    return status != 0 ? status : standin_clear(&codes, handle, result, standin_width(type));
}
