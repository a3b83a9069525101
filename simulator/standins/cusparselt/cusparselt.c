// cuSPARSELt: descriptors in the program's memory, which contain their settings.
#include "../common/calls.h"

enum { NOT_INITIALIZED = 1, ALLOC_FAILED = 2, INVALID_VALUE = 3, EXECUTION_FAILED = 6 };

// Programs reserve at least 512 bytes per descriptor in every version.
enum { MOST_ATTRIBUTES = 24, HANDLE = 1, MATRIX, PRODUCT, SELECTION, PLAN };
#define KIND(number) (UINT64_C(0x6375736c74000000) | (number))

struct descriptor {
    uint64_t kind;
    int64_t rows, columns, step;
    int type, order;
    struct {
        int number;
        int bytes;
        uint64_t value;
    } attributes[MOST_ATTRIBUTES];
};
_Static_assert(sizeof(struct descriptor) <= 512, "a program's memory for one");

static bool is_kind(const struct descriptor *descriptor, unsigned kind) { return descriptor != NULL && descriptor->kind == KIND(kind); }

static int begin_sparse_descriptor(const struct descriptor *handle, struct descriptor *made, unsigned kind) {
    if (handle != NULL && !is_kind(handle, HANDLE)) return NOT_INITIALIZED;
    if (made == NULL) return INVALID_VALUE;
    *made = (struct descriptor){.kind = KIND(kind)};
    return 0;
}

static int end_sparse_descriptor(struct descriptor *descriptor) {
    if (descriptor == NULL) return INVALID_VALUE;
    descriptor->kind = 0;
    return 0;
}

static int set_sparse_attribute(struct descriptor *descriptor, unsigned kind, int number, const void *value, size_t bytes) {
    if (!is_kind(descriptor, kind) || value == NULL || bytes > 8) return INVALID_VALUE;
    for (int i = 0; i < MOST_ATTRIBUTES; i++) {
        if (descriptor->attributes[i].bytes != 0 && descriptor->attributes[i].number != number) continue;
        descriptor->attributes[i].number = number;
        descriptor->attributes[i].bytes = (int)bytes;
        memcpy(&descriptor->attributes[i].value, value, bytes);
        return 0;
    }
    return ALLOC_FAILED;
}

// Gets an attribute; 0 if it was not set.
static int get_sparse_attribute(const struct descriptor *descriptor, unsigned kind, int number, void *value, size_t bytes) {
    if (!is_kind(descriptor, kind) || value == NULL) return INVALID_VALUE;
    memset(value, 0, bytes);
    for (int i = 0; i < MOST_ATTRIBUTES; i++)
        if (descriptor->attributes[i].bytes != 0 && descriptor->attributes[i].number == number)
            memcpy(value, &descriptor->attributes[i].value, bytes < 8 ? bytes : 8);
    return 0;
}

#define ATTRIBUTES(name, kind)                                                                                                             \
    int cusparseLt##name##SetAttribute(const void *handle, struct descriptor *descriptor, int number, const void *value, size_t bytes) {   \
        return set_sparse_attribute(descriptor, kind, number, value, bytes);                                                               \
    }                                                                                                                                      \
    int cusparseLt##name##GetAttribute(const void *handle, const struct descriptor *descriptor, int number, void *value, size_t bytes) {   \
        return get_sparse_attribute(descriptor, kind, number, value, bytes);                                                               \
    }
ATTRIBUTES(MatDesc, MATRIX)
ATTRIBUTES(MatmulDesc, PRODUCT)

int cusparseLtInit(struct descriptor *handle) {
    if (standin_begin() == NULL) return NOT_INITIALIZED;
    return begin_sparse_descriptor(NULL, handle, HANDLE);
}
int cusparseLtDestroy(struct descriptor *handle) { return is_kind(handle, HANDLE) ? end_sparse_descriptor(handle) : NOT_INITIALIZED; }
int cusparseLtMatDescriptorDestroy(struct descriptor *matrix) { return end_sparse_descriptor(matrix); }
int cusparseLtMatmulPlanDestroy(struct descriptor *plan) { return end_sparse_descriptor(plan); }
int cusparseLtMatmulAlgSelectionDestroy(struct descriptor *selection) { return end_sparse_descriptor(selection); }

static int make_sparse_matrix(const struct descriptor *handle, struct descriptor *made, int64_t rows, int64_t columns, int64_t step,
                              int type, int order) {
    const int status = begin_sparse_descriptor(handle, made, MATRIX);
    if (status != 0) return status;
    made->rows = rows;
    made->columns = columns;
    made->step = step;
    made->type = type;
    made->order = order;
    return 0;
}

int cusparseLtDenseDescriptorInit(const struct descriptor *handle, struct descriptor *made, int64_t rows, int64_t columns, int64_t step,
                                  uint32_t alignment, int type, int order) {
    return make_sparse_matrix(handle, made, rows, columns, step, type, order);
}

int cusparseLtStructuredDescriptorInit(const struct descriptor *handle, struct descriptor *made, int64_t rows, int64_t columns,
                                       int64_t step, uint32_t alignment, int type, int order, int sparsity) {
    return make_sparse_matrix(handle, made, rows, columns, step, type, order);
}

int cusparseLtMatmulDescriptorInit(const struct descriptor *handle, struct descriptor *made, int a_operation, int b_operation,
                                   const struct descriptor *a, const struct descriptor *b, const struct descriptor *c,
                                   const struct descriptor *d, int compute_type) {
    if (!is_kind(a, MATRIX) || !is_kind(b, MATRIX) || !is_kind(c, MATRIX) || !is_kind(d, MATRIX)) return INVALID_VALUE;
    return begin_sparse_descriptor(handle, made, PRODUCT);
}

int cusparseLtMatmulAlgSelectionInit(const struct descriptor *handle, struct descriptor *made, const struct descriptor *product,
                                     int algorithm) {
    return is_kind(product, PRODUCT) ? begin_sparse_descriptor(handle, made, SELECTION) : INVALID_VALUE;
}

int cusparseLtMatmulAlgSetAttribute(const void *handle, struct descriptor *selection, int number, const void *value, size_t bytes) {
    return set_sparse_attribute(selection, SELECTION, number, value, bytes);
}

// There is one configuration; ids must be below the reported maximum of 1.
int cusparseLtMatmulAlgGetAttribute(const void *handle, const struct descriptor *selection, int number, void *value, size_t bytes) {
    enum { MAX_ID = 1, SPLIT_K = 3 };
    const int one = 1;
    const int status = get_sparse_attribute(selection, SELECTION, number, value, bytes);
    int kept = 0;
    if (status == 0) memcpy(&kept, value, bytes < sizeof kept ? bytes : sizeof kept);
    if (status == 0 && kept == 0 && (number == MAX_ID || number == SPLIT_K)) memcpy(value, &one, bytes < sizeof one ? bytes : sizeof one);
    return status;
}

int cusparseLtMatmulPlanInit(const struct descriptor *handle, struct descriptor *made, const struct descriptor *product,
                             const struct descriptor *selection) {
    return is_kind(product, PRODUCT) ? begin_sparse_descriptor(handle, made, PLAN) : INVALID_VALUE;
}

int cusparseLtMatmulGetWorkspace(const struct descriptor *handle, const struct descriptor *plan, size_t *bytes) {
    if (!is_kind(plan, PLAN) || bytes == NULL) return INVALID_VALUE;
    *bytes = (size_t)standin_size(STANDIN_CUSPARSE_BUFFER, standin_library_version)->bytes;
    return 0;
}

// Half of the values, plus two bits of position for each: 9/16 of the dense size for 16-bit elements, 10/16 for 8-bit ones (PyTorch uses
// these factors for its copies).
static int compressed_size(const struct descriptor *described, size_t *bytes, size_t *buffer_bytes) {
    if (!is_kind(described, MATRIX) || bytes == NULL) return INVALID_VALUE;
    const size_t dense = (size_t)described->rows * (size_t)described->columns * standin_width(described->type);
    *bytes = dense / 16 * (standin_width(described->type) == 1 ? 10 : 9);
    PUT(buffer_bytes, 0);
    return 0;
}

int cusparseLtSpMMACompressedSize2(const struct descriptor *handle, const struct descriptor *described, size_t *bytes,
                                   size_t *buffer_bytes) {
    return compressed_size(described, bytes, buffer_bytes);
}

int cusparseLtSpMMACompressedSize(const struct descriptor *handle, const struct descriptor *plan, size_t *bytes, size_t *buffer_bytes) {
    STANDIN_MISSING("cusparseLtSpMMACompressedSize"); // a plan does not store its matrix
    return 10;
}

static int launch_sparse_work(uint64_t stream) { return standin_work(stream) == 0 ? 0 : EXECUTION_FAILED; }

int cusparseLtMatmul(const struct descriptor *handle, const struct descriptor *plan, const void *alpha, const void *a, const void *b,
                     const void *beta, const void *c, void *d, void *workspace, const uint64_t *streams, int32_t stream_count) {
    if (!is_kind(plan, PLAN)) return INVALID_VALUE;
    return launch_sparse_work(streams != NULL && stream_count > 0 ? streams[0] : 0);
}

int cusparseLtMatmulSearch(const struct descriptor *handle, struct descriptor *plan, const void *alpha, const void *a, const void *b,
                           const void *beta, const void *c, void *d, void *workspace, const uint64_t *streams, int32_t stream_count) {
    return cusparseLtMatmul(handle, plan, alpha, a, b, beta, c, d, workspace, streams, stream_count);
}

int cusparseLtSpMMACompress(const void *handle, const void *plan, const void *dense, void *compressed, void *buffer, uint64_t stream) {
    return launch_sparse_work(stream);
}
int cusparseLtSpMMACompress2(const void *handle, const void *described, int is_a, int operation, const void *dense, void *compressed,
                             void *buffer, uint64_t stream) {
    return launch_sparse_work(stream);
}
int cusparseLtSpMMAPrune(const void *handle, const void *product, const void *in, void *out, int algorithm, uint64_t stream) {
    return launch_sparse_work(stream);
}
int cusparseLtSpMMAPrune2(const void *handle, const void *described, int is_a, int operation, const void *in, void *out, int algorithm,
                          uint64_t stream) {
    return launch_sparse_work(stream);
}

// Reports 0: the matrix has the required sparsity.
int cusparseLtSpMMAPruneCheck(const void *handle, const void *product, const void *in, int *valid, uint64_t stream) {
    const int status = launch_sparse_work(stream);
    return status != 0 ? status : standin_zero(valid, sizeof *valid, stream) == 0 ? 0 : EXECUTION_FAILED;
}
int cusparseLtSpMMAPruneCheck2(const void *handle, const void *described, int is_a, int operation, const void *in, int *valid,
                               uint64_t stream) {
    return cusparseLtSpMMAPruneCheck(handle, described, in, valid, stream);
}

int cusparseLtGetVersion(const void *handle, int *version) {
    if (version == NULL) return INVALID_VALUE;
    *version = standin_version_part(0) * 1000 + standin_version_part(1) * 100 + standin_version_part(2);
    return 0;
}

int cusparseLtGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return INVALID_VALUE;
    *value = standin_version_part(part);
    return 0;
}

const char *cusparseLtGetErrorName(int status) { return status == 0 ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_ERROR"; }
const char *cusparseLtGetErrorString(int status) { return status == 0 ? "success" : "cuSPARSELt error"; }
