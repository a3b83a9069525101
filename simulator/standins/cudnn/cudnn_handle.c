// cuDNN's handles, versions and texts.
#include <stdio.h>

#include "cudnn.h"

int cudnnCreate(struct standin_handle **handle) { return standin_new_handle(&codes, handle, 0); }
int cudnnDestroy(struct standin_handle *handle) { return standin_free_handle(&codes, handle); }

int cudnnSetStream(struct standin_handle *handle, uint64_t stream) {
    const int status = standin_query(&codes, handle);
    if (status == 0) handle->stream = stream;
    return status;
}

int cudnnGetStream(const struct standin_handle *handle, uint64_t *stream) {
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    if (stream == NULL) return CUDNN_NULL_POINTER;
    *stream = handle->stream;
    return 0;
}

size_t cudnnGetVersion(void) { return (size_t)standin_library_version; }
size_t cudnnGetCudartVersion(void) { return 13000; }
size_t cudnnGetMaxDeviceVersion(void) { return 1210; } // of capability 12.1, as cuDNN 9.26

int cudnnGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return CUDNN_BAD_PARAM;
    *value = standin_version_part(part);
    return 0;
}

static const struct {
    int status;
    const char *name;
} statuses[] = {{0, "CUDNN_STATUS_SUCCESS"},
                {CUDNN_NOT_INITIALIZED, "CUDNN_STATUS_NOT_INITIALIZED"},
                {CUDNN_BAD_PARAM, "CUDNN_STATUS_BAD_PARAM"},
                {CUDNN_NULL_POINTER, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"},
                {CUDNN_NOT_FINALIZED, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"},
                {CUDNN_ATTRIBUTE_TYPE, "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE"},
                {CUDNN_DESCRIPTOR_TYPE, "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE"},
                {CUDNN_NOT_SUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED"},
                {CUDNN_NO_NATIVE_GRAPH, "CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API"},
                {CUDNN_ALLOC_FAILED, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"},
                {CUDNN_EXECUTION_FAILED, "CUDNN_STATUS_EXECUTION_FAILED"}};

const char *cudnnGetErrorString(int status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status) return statuses[i].name;
    return "CUDNN_STATUS_UNKNOWN";
}

void cudnnGetLastErrorString(char *message, size_t capacity) {
    if (message != NULL && capacity != 0) message[0] = '\0';
}

int cudnnGetCallback(unsigned *mask, void **data, void **function) {
    PUT(mask, 0);
    PUT(data, NULL);
    PUT(function, NULL);
    return 0;
}

int cudnnQueryRuntimeError(const struct standin_handle *handle, int *status) {
    PUT(status, 0);
    return standin_query(&codes, handle);
}

size_t standin_cudnn_workspace(void) { return (size_t)standin_size(STANDIN_CUDNN_ENGINE_WORKSPACE, standin_library_version)->bytes; }

void standin_cudnn_kept(const void *descriptor, int number, void *result, size_t bytes) {
    size_t kept_bytes = 0;
    const void *kept = standin_kept(descriptor, number, &kept_bytes);
    if (result == NULL) return;
    memset(result, 0, bytes);
    if (kept != NULL) memcpy(result, kept, bytes < kept_bytes ? bytes : kept_bytes);
}

// --- convolutions along one dimension take a stream, no handle ---------------------------------------------------------------------------
#define ON_STREAM(name)                                                                                                                    \
    int name(uint64_t stream) { return standin_work(stream) == 0 ? 0 : CUDNN_EXECUTION_FAILED; }
ON_STREAM(cudnnB2BCausalConv1dBackward)
ON_STREAM(cudnnB2BCausalConv1dForward)
ON_STREAM(cudnnCausalConv1dBackward)
ON_STREAM(cudnnCausalConv1dForward)
ON_STREAM(cudnnCausalConv1dNwhBackward)
ON_STREAM(cudnnCausalConv1dNwhForward)
ON_STREAM(cudnnFFTCausalConv1dBackward)
ON_STREAM(cudnnFFTCausalConv1dForward)
