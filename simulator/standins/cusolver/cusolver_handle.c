// Handles, versions and workspace sizes of cuSOLVER.
#include "cusolver.h"

#include <limits.h>

#define HANDLE(create, destroy)                                                                                                            \
    int create(struct standin_handle **handle) { return standin_new_handle(&codes, handle, 0); }                                           \
    int destroy(struct standin_handle *handle) { return standin_free_handle(&codes, handle); }
HANDLE(cusolverDnCreate, cusolverDnDestroy)
HANDLE(cusolverSpCreate, cusolverSpDestroy)
HANDLE(cusolverRfCreate, cusolverRfDestroy)
HANDLE(cusolverMgCreate, cusolverMgDestroy)

static int set_stream(struct standin_handle *handle, uint64_t stream) {
    const int status = standin_query(&codes, handle);
    if (status == 0) handle->stream = stream;
    return status;
}

static int get_stream(const struct standin_handle *handle, uint64_t *stream) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (stream == NULL) return CUSOLVER_INVALID_VALUE;
    *stream = handle->stream;
    return 0;
}

int cusolverDnSetStream(struct standin_handle *handle, uint64_t stream) { return set_stream(handle, stream); }
int cusolverDnGetStream(const struct standin_handle *handle, uint64_t *stream) { return get_stream(handle, stream); }
int cusolverSpSetStream(struct standin_handle *handle, uint64_t stream) { return set_stream(handle, stream); }
int cusolverSpGetStream(const struct standin_handle *handle, uint64_t *stream) { return get_stream(handle, stream); }

int cusolverGetVersion(int *version) {
    if (version == NULL) return CUSOLVER_INVALID_VALUE;
    // major * 1000 + minor * 100 + patch
    *version = standin_version_part(0) * 1000 + standin_version_part(1) * 100 + standin_version_part(2);
    return 0;
}

int cusolverGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return CUSOLVER_INVALID_VALUE;
    *value = standin_version_part(part);
    return 0;
}

int standin_cusolver_elements(int64_t rows, int64_t columns, int64_t batch) {
    if (rows <= 0 || columns <= 0 || batch <= 0) return 1;
    const uint64_t percent = standin_size(STANDIN_CUSOLVER_WORKSPACE_PERCENT, standin_library_version)->bytes;
    const double elements = (double)rows * (double)columns * (double)batch * (double)percent / 100.0;
    standin_size_stake(STANDIN_CUSOLVER_WORKSPACE_PERCENT, (uint64_t)(elements * sizeof(double)));
    return elements >= INT_MAX ? INT_MAX : elements < 1 ? 1 : (int)elements;
}

// --- objects created with further arguments -------------------------------------------------------------------------
static int new_object(void **object) {
    void *made = object == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof(struct standin_object));
    if (made == NULL) return object == NULL ? CUSOLVER_INVALID_VALUE : CUSOLVER_ALLOC_FAILED;
    *object = made;
    return 0;
}

int cusolverMgCreateDeviceGrid(void **grid, int rows, int columns, const int *devices, int mapping) { return new_object(grid); }

int cusolverMgCreateMatrixDesc(void **descriptor, int64_t rows, int64_t columns, int64_t row_block, int64_t column_block, int type,
                               const void *grid) {
    return new_object(descriptor);
}
