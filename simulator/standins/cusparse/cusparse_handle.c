// cuSPARSE's handles, versions, texts, the descriptors of its first interface, and products of two sparse matrices.
#include "cusparse.h"

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

// --- the descriptor of the first interface ----------------------------------------------------------------------------------------------
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

// --- products of sparse matrices: each step tells its buffer's size where none is given, and works where one is ------------------------
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
