// Handles of cuBLAS, and its legacy API without handles.
#include "cublas.h"

// ---- Handles of cuBLAS: streams, workspaces, modes, and copies between host and device.

int cublasCreate_v2(struct standin_handle **handle) {
    const struct standin_size_row *own = standin_size(STANDIN_CUBLAS_OWN_WORKSPACE, standin_library_version);
    return standin_new_handle(&codes, handle, own->bytes);
}

int cublasDestroy_v2(struct standin_handle *handle) { return standin_free_handle(&codes, handle); }

// Resets the user's workspace, as cuBLAS does.
int cublasSetStream_v2(struct standin_handle *handle, uint64_t stream) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    handle->stream = stream;
    handle->users_workspace = NULL;
    handle->users_workspace_bytes = 0;
    return 0;
}

int cublasGetStream_v2(const struct standin_handle *handle, uint64_t *stream) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (stream == NULL) return CUBLAS_INVALID_VALUE;
    *stream = handle->stream;
    return 0;
}

int cublasSetWorkspace_v2(struct standin_handle *handle, void *workspace, size_t bytes) {
    enum { ALIGNMENT = 256 };
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if ((uintptr_t)workspace % ALIGNMENT != 0) return CUBLAS_INVALID_VALUE;
    handle->users_workspace = workspace;
    handle->users_workspace_bytes = bytes;
    return 0;
}

int cublasSetPointerMode_v2(struct standin_handle *handle, int mode) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (mode != 0 && mode != 1) return CUBLAS_INVALID_VALUE;
    handle->pointer_mode = mode;
    return 0;
}

int cublasGetPointerMode_v2(const struct standin_handle *handle, int *mode) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (mode == NULL) return CUBLAS_INVALID_VALUE;
    *mode = handle->pointer_mode;
    return 0;
}

int cublasGetVersion_v2(const struct standin_handle *handle, int *version) {
    (void)handle;
    if (version == NULL) return CUBLAS_INVALID_VALUE;
    *version = standin_library_version;
    return 0;
}

int cublasGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return CUBLAS_INVALID_VALUE;
    *value = standin_version_part(part);
    return 0;
}

size_t cublasGetCudartVersion(void) { return (size_t)standin_version_part(0) * 1000; }
const char *cublasGetStatusName(int status) { return standin_cublas_name(status); }
const char *cublasGetStatusString(int status) { return standin_cublas_text(status); }

int cublasGetLoggerCallback(void **callback) {
    if (callback == NULL) return CUBLAS_INVALID_VALUE;
    *callback = NULL;
    return 0;
}

// --- results with a type argument -----------------------------------------------------------------------------------
#define TYPED(name, integer)                                                                                                               \
    int name(struct standin_handle *handle, integer n, const void *x, int type, integer increment, void *result, int result_type) {        \
        const struct standin_operand read = READS(x);                                                                                      \
        const int status = standin_call_on(&codes, handle, #name, &read, 1);                                                               \
        return status != 0 ? status : standin_clear(&codes, handle, result, standin_width(result_type));                                   \
    }
TYPED(cublasNrm2Ex, int)
TYPED(cublasNrm2Ex_64, int64_t)
TYPED(cublasAsumEx, int)
TYPED(cublasAsumEx_64, int64_t)

#define TYPED_PAIR(name, integer)                                                                                                          \
    int name(struct standin_handle *handle, integer n, const void *x, int x_type, integer x_step, const void *y, int y_type,               \
             integer y_step, void *result, int result_type) {                                                                              \
        const struct standin_operand operands[] = {READS(x), READS(y)};                                                                    \
        const int status = standin_call_on(&codes, handle, #name, operands, 2);                                                            \
        return status != 0 ? status : standin_clear(&codes, handle, result, standin_width(result_type));                                   \
    }
TYPED_PAIR(cublasDotEx, int)
TYPED_PAIR(cublasDotEx_64, int64_t)
TYPED_PAIR(cublasDotcEx, int)
TYPED_PAIR(cublasDotcEx_64, int64_t)

// --- copies ----------------------------------------------------------------------------------------------------------------------------
struct copy {
    int64_t rows, columns, element;
    const void *from;
    int64_t from_step;
    void *to;
    int64_t to_step;
    bool waits;
    uint64_t stream;
};

// Copies by columns: the elements of a column are contiguous, and columns are `step` elements apart.
static int copy_vector(const struct copy *copy) {
    const struct standin_driver *driver = standin_begin();
    if (driver == NULL) return CUBLAS_NOT_INITIALIZED;
    if (copy->rows < 0 || copy->columns < 0 || copy->element <= 0 || copy->from_step <= 0 || copy->to_step <= 0)
        return CUBLAS_INVALID_VALUE;
    const size_t bytes = (size_t)(copy->rows * copy->element);
    for (int64_t i = 0; i < copy->columns && bytes != 0; i++) {
        const uint64_t from = (uint64_t)(uintptr_t)copy->from + (uint64_t)(i * copy->from_step * copy->element);
        const uint64_t to = (uint64_t)(uintptr_t)copy->to + (uint64_t)(i * copy->to_step * copy->element);
        const int error = copy->waits ? driver->memcpy(to, from, bytes) : driver->memcpy_async(to, from, bytes, copy->stream);
        if (error != 0) return 11; // CUBLAS_STATUS_MAPPING_ERROR
    }
    return 0;
}

#define MATRIX(name, integer, type_of_stream, wait, on)                                                                                    \
    int name(integer rows, integer columns, integer element, const void *from, integer from_step, void *to,                                \
             integer to_step type_of_stream) {                                                                                             \
        return copy_vector(&(struct copy){rows, columns, element, from, from_step, to, to_step, wait, on});                                \
    }
#define COMMA_STREAM , uint64_t stream
MATRIX(cublasSetMatrix, int, , true, 0)
MATRIX(cublasGetMatrix, int, , true, 0)
MATRIX(cublasSetMatrix_64, int64_t, , true, 0)
MATRIX(cublasGetMatrix_64, int64_t, , true, 0)
MATRIX(cublasSetMatrixAsync, int, COMMA_STREAM, false, stream)
MATRIX(cublasGetMatrixAsync, int, COMMA_STREAM, false, stream)
MATRIX(cublasSetMatrixAsync_64, int64_t, COMMA_STREAM, false, stream)
MATRIX(cublasGetMatrixAsync_64, int64_t, COMMA_STREAM, false, stream)

// A contiguous vector is copied as one column, any other as a matrix of one row.
#define VECTOR(name, integer, type_of_stream, wait, on)                                                                                    \
    int name(integer n, integer element, const void *from, integer from_step, void *to, integer to_step type_of_stream) {                  \
        const bool together = from_step == 1 && to_step == 1;                                                                              \
        return copy_vector(&(struct copy){together ? n : 1, together ? 1 : n, element, from, from_step, to, to_step, wait, on});           \
    }
VECTOR(cublasSetVector, int, , true, 0)
VECTOR(cublasGetVector, int, , true, 0)
VECTOR(cublasSetVector_64, int64_t, , true, 0)
VECTOR(cublasGetVector_64, int64_t, , true, 0)
VECTOR(cublasSetVectorAsync, int, COMMA_STREAM, false, stream)
VECTOR(cublasGetVectorAsync, int, COMMA_STREAM, false, stream)
VECTOR(cublasSetVectorAsync_64, int64_t, COMMA_STREAM, false, stream)
VECTOR(cublasGetVectorAsync_64, int64_t, COMMA_STREAM, false, stream)

// --- multi-device handles -------------------------------------------------------------------------------------------
int cublasXtCreate(struct standin_handle **handle) { return standin_new_handle(&codes, handle, 0); }
int cublasXtDestroy(struct standin_handle *handle) { return standin_free_handle(&codes, handle); }

int cublasXtDeviceSelect(struct standin_handle *handle, int count, const int *devices) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (count <= 0 || devices == NULL) return CUBLAS_INVALID_VALUE;
    handle->device_count = count;
    return 0;
}

int cublasXtGetNumBoards(int count, const int *devices, int *boards) {
    if (devices == NULL || boards == NULL) return CUBLAS_INVALID_VALUE;
    *boards = count;
    return 0;
}

int cublasXtMaxBoards(int *boards) {
    const struct standin_driver *driver = standin_driver();
    if (boards == NULL) return CUBLAS_INVALID_VALUE;
    return driver != NULL && driver->device_get_count(boards) == 0 ? 0 : CUBLAS_NOT_INITIALIZED;
}

// ---- The legacy API without handles: one stream per process, results as return values, and a call that returns the last error.

static uint64_t stream;
static int last_error;

int cublasInit(void) { return standin_begin() == NULL ? CUBLAS_NOT_INITIALIZED : 0; }
int cublasShutdown(void) { return 0; }

int cublasGetError(void) {
    const int error = last_error;
    last_error = 0;
    return error;
}

int cublasSetKernelStream(uint64_t wanted) {
    stream = wanted;
    return 0;
}

int cublasGetVersion(int *version) {
    if (version == NULL) return CUBLAS_INVALID_VALUE;
    *version = standin_library_version;
    return 0;
}

int cublasAlloc(int count, int element, void **address) {
    if (count <= 0 || element <= 0 || address == NULL) return CUBLAS_INVALID_VALUE;
    *address = standin_take((size_t)count * (size_t)element);
    return *address == NULL ? CUBLAS_ALLOC_FAILED : 0;
}

int cublasFree(void *address) {
    standin_give(address);
    return 0;
}

static void launch_work(void) {
    if (standin_work(stream) != 0) last_error = CUBLAS_EXECUTION_FAILED;
}

static void work_and_wait(void) {
    launch_work();
    if (standin_driver() != NULL) (void)standin_driver()->stream_synchronize(stream);
}

#define LEGACY(name)                                                                                                                       \
    void name(void) { launch_work(); }
#define LEGACY_RESULT(name, type)                                                                                                          \
    type name(void) {                                                                                                                      \
        work_and_wait();                                                                                                                   \
        return (type){0};                                                                                                                  \
    }
#include "cublas_legacy_calls.def"
