// Handles of cuDNN, and descriptors of shapes.
#include <stdio.h>

#include "cudnn.h"

// ---- Handles, versions and texts.

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
size_t cudnnGetMaxDeviceVersion(void) { return 1210; } // compute capability 12.1, as in cuDNN 9.26

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

// --- one-dimensional convolutions, which take a stream instead of a handle ------------------------------------------
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

// ---- Legacy descriptors of tensors, filters, convolutions and poolings, and sizes derived from them.

size_t standin_cudnn_width(int type) {
    // float double half int8 int32 int8x4 uint8 uint8x4 int8x32 bfloat16 int64 boolean, then types of at most 8 bits
    static const unsigned char widths[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1};
    return type >= 0 && (size_t)type < sizeof widths ? widths[type] : 1;
}

#define NEW_SHAPE(name)                                                                                                                    \
    int name(struct cudnn_shape **result) {                                                                                                \
        struct cudnn_shape *made = result == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof *made);                                \
        if (made == NULL) return result == NULL ? CUDNN_NULL_POINTER : CUDNN_ALLOC_FAILED;                                                 \
        made->groups = 1;                                                                                                                  \
        *result = made;                                                                                                                    \
        return 0;                                                                                                                          \
    }
NEW_SHAPE(cudnnCreateTensorDescriptor)
NEW_SHAPE(cudnnCreateFilterDescriptor)
NEW_SHAPE(cudnnCreateConvolutionDescriptor)
NEW_SHAPE(cudnnCreatePoolingDescriptor)

#define NEEDS(condition)                                                                                                                   \
    if (!(condition)) return CUDNN_BAD_PARAM

static void copy_numbers(int *to, const int *from, int count) {
    if (to != NULL && from != NULL && count > 0) memcpy(to, from, (size_t)count * sizeof *to);
}

// --- tensors and filters -----------------------------------------------------------------------------------------------------------------
void standin_cudnn_pack(struct cudnn_shape *tensor, int type, int rank, const int *size) {
    tensor->type = type;
    tensor->rank = rank;
    copy_numbers(tensor->size, size, rank);
    int step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        tensor->stride[i] = step;
        step *= size[i];
    }
}

static int set_nd(struct cudnn_shape *shape, int type, int rank, const int *size, const int *stride) {
    NEEDS(shape != NULL && rank >= 1 && rank <= CUDNN_MOST_DIMENSIONS && size != NULL);
    for (int i = 0; i < rank; i++) NEEDS(size[i] >= 0);
    standin_cudnn_pack(shape, type, rank, size);
    copy_numbers(shape->stride, stride, rank);
    return 0;
}

// Sets a format. In channels-last, the second dimension is contiguous.
static int set_format(struct cudnn_shape *shape, int format, int type, int rank, const int *size) {
    enum { CHANNELS_LAST = 1 };
    const int status = set_nd(shape, type, rank, size, NULL);
    if (status != 0) return status;
    shape->format = format;
    if (format != CHANNELS_LAST || rank < 2) return 0;
    int step = size[1];
    shape->stride[1] = 1;
    for (int i = rank - 1; i >= 2; i--) {
        shape->stride[i] = step;
        step *= size[i];
    }
    shape->stride[0] = step;
    return 0;
}

int cudnnSetTensorNdDescriptor(struct cudnn_shape *tensor, int type, int rank, const int *size, const int *stride) {
    return set_nd(tensor, type, rank, size, stride);
}

int cudnnSetTensorNdDescriptorEx(struct cudnn_shape *tensor, int format, int type, int rank, const int *size) {
    return set_format(tensor, format, type, rank, size);
}

int cudnnSetTensor4dDescriptor(struct cudnn_shape *tensor, int format, int type, int n, int c, int h, int w) {
    return set_format(tensor, format, type, 4, (int[]){n, c, h, w});
}

int cudnnSetTensor4dDescriptorEx(struct cudnn_shape *tensor, int type, int n, int c, int h, int w, int n_stride, int c_stride, int h_stride,
                                 int w_stride) {
    return set_nd(tensor, type, 4, (int[]){n, c, h, w}, (int[]){n_stride, c_stride, h_stride, w_stride});
}

int cudnnGetTensorNdDescriptor(const struct cudnn_shape *tensor, int room, int *type, int *rank, int *size, int *stride) {
    NEEDS(tensor != NULL);
    const int count = room < tensor->rank ? room : tensor->rank;
    PUT(type, tensor->type);
    PUT(rank, tensor->rank);
    copy_numbers(size, tensor->size, count);
    copy_numbers(stride, tensor->stride, count);
    return 0;
}

int cudnnGetTensor4dDescriptor(const struct cudnn_shape *tensor, int *type, int *n, int *c, int *h, int *w, int *n_stride, int *c_stride,
                               int *h_stride, int *w_stride) {
    NEEDS(tensor != NULL && tensor->rank == 4);
    int *const sizes[] = {n, c, h, w}, *const strides[] = {n_stride, c_stride, h_stride, w_stride};
    PUT(type, tensor->type);
    for (int i = 0; i < 4; i++) {
        PUT(sizes[i], tensor->size[i]);
        PUT(strides[i], tensor->stride[i]);
    }
    return 0;
}

static size_t points_of(const struct cudnn_shape *shape) {
    size_t points = shape->rank == 0 ? 0 : 1;
    for (int i = 0; i < shape->rank; i++) points *= (size_t)shape->size[i];
    return points;
}

// Returns the size up to the last element, using the strides.
int cudnnGetTensorSizeInBytes(const struct cudnn_shape *tensor, size_t *bytes) {
    NEEDS(tensor != NULL && bytes != NULL);
    size_t last = 0;
    for (int i = 0; i < tensor->rank; i++) last += (size_t)(tensor->size[i] > 0 ? tensor->size[i] - 1 : 0) * (size_t)tensor->stride[i];
    *bytes = points_of(tensor) == 0 ? 0 : (last + 1) * standin_cudnn_width(tensor->type);
    return 0;
}

int cudnnSetFilterNdDescriptor(struct cudnn_shape *filter, int type, int format, int rank, const int *size) {
    return set_format(filter, format, type, rank, size);
}

int cudnnSetFilter4dDescriptor(struct cudnn_shape *filter, int type, int format, int k, int c, int h, int w) {
    return set_format(filter, format, type, 4, (int[]){k, c, h, w});
}

int cudnnGetFilterNdDescriptor(const struct cudnn_shape *filter, int room, int *type, int *format, int *rank, int *size) {
    NEEDS(filter != NULL);
    PUT(format, filter->format);
    return cudnnGetTensorNdDescriptor(filter, room, type, rank, size, NULL);
}

int cudnnGetFilter4dDescriptor(const struct cudnn_shape *filter, int *type, int *format, int *k, int *c, int *h, int *w) {
    NEEDS(filter != NULL);
    PUT(format, filter->format);
    return cudnnGetTensor4dDescriptor(filter, type, k, c, h, w, NULL, NULL, NULL, NULL);
}

int cudnnGetFilterSizeInBytes(const struct cudnn_shape *filter, size_t *bytes) {
    NEEDS(filter != NULL && bytes != NULL);
    *bytes = points_of(filter) * standin_cudnn_width(filter->type);
    return 0;
}

// One bit per element, in whole bytes.
int cudnnDropoutGetReserveSpaceSize(const struct cudnn_shape *tensor, size_t *bytes) {
    NEEDS(tensor != NULL && bytes != NULL);
    *bytes = (points_of(tensor) + 7) / 8;
    return 0;
}

// Per channel (modes 1 and 2), or per activation (mode 0).
int cudnnDeriveBNTensorDescriptor(struct cudnn_shape *derived, const struct cudnn_shape *tensor, int mode) {
    int size[CUDNN_MOST_DIMENSIONS];
    NEEDS(derived != NULL && tensor != NULL && tensor->rank >= 2);
    for (int i = 0; i < tensor->rank; i++) size[i] = i == 1 || (mode == 0 && i > 1) ? tensor->size[i] : 1;
    const int type = tensor->type == 1 ? 1 : 0; // double stays double; everything else is float
    standin_cudnn_pack(derived, type, tensor->rank, size);
    return 0;
}

int cudnnDeriveNormTensorDescriptor(struct cudnn_shape *scale, struct cudnn_shape *mean, const struct cudnn_shape *tensor, int mode,
                                    int groups) {
    const int status = cudnnDeriveBNTensorDescriptor(scale, tensor, mode);
    return status != 0 ? status : cudnnDeriveBNTensorDescriptor(mean, tensor, mode);
}

// --- convolutions ------------------------------------------------------------------------------------------------------------------------
int cudnnSetConvolutionNdDescriptor(struct cudnn_shape *convolution, int rank, const int *padding, const int *stride, const int *dilation,
                                    int mode, int compute_type) {
    NEEDS(convolution != NULL && rank >= 1 && rank <= CUDNN_MOST_DIMENSIONS && padding != NULL && stride != NULL && dilation != NULL);
    convolution->rank = rank;
    copy_numbers(convolution->padding, padding, rank);
    copy_numbers(convolution->stride, stride, rank);
    copy_numbers(convolution->dilation, dilation, rank);
    convolution->mode = mode;
    convolution->compute_type = compute_type;
    return 0;
}

int cudnnSetConvolution2dDescriptor(struct cudnn_shape *convolution, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w,
                                    int mode, int compute_type) {
    return cudnnSetConvolutionNdDescriptor(convolution, 2, (int[]){pad_h, pad_w}, (int[]){u, v}, (int[]){dilation_h, dilation_w}, mode,
                                           compute_type);
}

int cudnnGetConvolutionNdDescriptor(const struct cudnn_shape *convolution, int room, int *rank, int *padding, int *stride, int *dilation,
                                    int *mode, int *compute_type) {
    NEEDS(convolution != NULL);
    const int count = room < convolution->rank ? room : convolution->rank;
    PUT(rank, convolution->rank);
    copy_numbers(padding, convolution->padding, count);
    copy_numbers(stride, convolution->stride, count);
    copy_numbers(dilation, convolution->dilation, count);
    PUT(mode, convolution->mode);
    PUT(compute_type, convolution->compute_type);
    return 0;
}

int cudnnGetConvolution2dDescriptor(const struct cudnn_shape *convolution, int *pad_h, int *pad_w, int *u, int *v, int *dilation_h,
                                    int *dilation_w, int *mode, int *compute_type) {
    int padding[2], stride[2], dilation[2];
    NEEDS(convolution != NULL && convolution->rank == 2);
    (void)cudnnGetConvolutionNdDescriptor(convolution, 2, NULL, padding, stride, dilation, mode, compute_type);
    PUT(pad_h, padding[0]);
    PUT(pad_w, padding[1]);
    PUT(u, stride[0]);
    PUT(v, stride[1]);
    PUT(dilation_h, dilation[0]);
    PUT(dilation_w, dilation[1]);
    return 0;
}

int cudnnSetConvolutionGroupCount(struct cudnn_shape *convolution, int groups) {
    NEEDS(convolution != NULL && groups > 0);
    convolution->groups = groups;
    return 0;
}

int cudnnGetConvolutionGroupCount(const struct cudnn_shape *convolution, int *groups) {
    NEEDS(convolution != NULL && groups != NULL);
    *groups = convolution->groups;
    return 0;
}

int cudnnGetConvolutionNdForwardOutputDim(const struct cudnn_shape *convolution, const struct cudnn_shape *input,
                                          const struct cudnn_shape *filter, int rank, int *size) {
    NEEDS(convolution != NULL && input != NULL && filter != NULL && size != NULL && rank >= 2 && rank == input->rank &&
          rank == filter->rank && rank - 2 <= convolution->rank);
    size[0] = input->size[0];
    size[1] = filter->size[0];
    for (int i = 2; i < rank; i++) {
        const int reach = (filter->size[i] - 1) * convolution->dilation[i - 2] + 1;
        NEEDS(convolution->stride[i - 2] > 0);
        size[i] = 1 + (input->size[i] + 2 * convolution->padding[i - 2] - reach) / convolution->stride[i - 2];
    }
    return 0;
}

int cudnnGetConvolution2dForwardOutputDim(const struct cudnn_shape *convolution, const struct cudnn_shape *input,
                                          const struct cudnn_shape *filter, int *n, int *c, int *h, int *w) {
    int size[4];
    const int status = cudnnGetConvolutionNdForwardOutputDim(convolution, input, filter, 4, size);
    if (status != 0) return status;
    PUT(n, size[0]);
    PUT(c, size[1]);
    PUT(h, size[2]);
    PUT(w, size[3]);
    return 0;
}

// --- poolings ----------------------------------------------------------------------------------------------------------------------------
int cudnnSetPoolingNdDescriptor(struct cudnn_shape *pooling, int mode, int nan, int rank, const int *window, const int *padding,
                                const int *stride) {
    NEEDS(pooling != NULL && rank >= 1 && rank <= CUDNN_MOST_DIMENSIONS && window != NULL && padding != NULL && stride != NULL);
    pooling->mode = mode;
    pooling->nan = nan;
    pooling->rank = rank;
    copy_numbers(pooling->size, window, rank);
    copy_numbers(pooling->padding, padding, rank);
    copy_numbers(pooling->stride, stride, rank);
    return 0;
}

int cudnnSetPooling2dDescriptor(struct cudnn_shape *pooling, int mode, int nan, int height, int width, int pad_h, int pad_w, int stride_h,
                                int stride_w) {
    return cudnnSetPoolingNdDescriptor(pooling, mode, nan, 2, (int[]){height, width}, (int[]){pad_h, pad_w}, (int[]){stride_h, stride_w});
}

int cudnnGetPoolingNdDescriptor(const struct cudnn_shape *pooling, int room, int *mode, int *nan, int *rank, int *window, int *padding,
                                int *stride) {
    NEEDS(pooling != NULL);
    const int count = room < pooling->rank ? room : pooling->rank;
    PUT(mode, pooling->mode);
    PUT(nan, pooling->nan);
    PUT(rank, pooling->rank);
    copy_numbers(window, pooling->size, count);
    copy_numbers(padding, pooling->padding, count);
    copy_numbers(stride, pooling->stride, count);
    return 0;
}

int cudnnGetPooling2dDescriptor(const struct cudnn_shape *pooling, int *mode, int *nan, int *height, int *width, int *pad_h, int *pad_w,
                                int *stride_h, int *stride_w) {
    NEEDS(pooling != NULL && pooling->rank == 2);
    int *const results[] = {height, width, pad_h, pad_w, stride_h, stride_w};
    const int values[] = {pooling->size[0],    pooling->size[1],   pooling->padding[0],
                          pooling->padding[1], pooling->stride[0], pooling->stride[1]};
    PUT(mode, pooling->mode);
    PUT(nan, pooling->nan);
    for (int i = 0; i < 6; i++) PUT(results[i], values[i]);
    return 0;
}

int cudnnGetPoolingNdForwardOutputDim(const struct cudnn_shape *pooling, const struct cudnn_shape *input, int rank, int *size) {
    NEEDS(pooling != NULL && input != NULL && size != NULL && rank >= 2 && rank == input->rank && rank - 2 <= pooling->rank);
    size[0] = input->size[0];
    size[1] = input->size[1];
    for (int i = 2; i < rank; i++) {
        NEEDS(pooling->stride[i - 2] > 0);
        size[i] = 1 + (input->size[i] + 2 * pooling->padding[i - 2] - pooling->size[i - 2]) / pooling->stride[i - 2];
    }
    return 0;
}

int cudnnGetPooling2dForwardOutputDim(const struct cudnn_shape *pooling, const struct cudnn_shape *input, int *n, int *c, int *h, int *w) {
    int size[4];
    const int status = cudnnGetPoolingNdForwardOutputDim(pooling, input, 4, size);
    if (status != 0) return status;
    PUT(n, size[0]);
    PUT(c, size[1]);
    PUT(h, size[2]);
    PUT(w, size[3]);
    return 0;
}

// --- algorithms: one per direction ----------------------------------------------------------------------------------
struct performance {
    int algorithm, status;
    float time_ms;
    size_t workspace_bytes;
    int determinism, math_type;
    int reserved[3];
};

static int suggest_performance(const struct standin_handle *handle, int room, int *count, struct performance *results) {
    enum { PRECOMPUTED_OR_1 = 1, DETERMINISTIC = 1 }; // algorithm 1 is a common choice in each direction
    const int status = standin_query(&codes, handle);
    if (status != 0) return status;
    NEEDS(room >= 1 && count != NULL && results != NULL);
    results[0] = (struct performance){
        .algorithm = PRECOMPUTED_OR_1, .time_ms = 0.01f, .workspace_bytes = standin_cudnn_workspace(), .determinism = DETERMINISTIC};
    *count = 1;
    return 0;
}

#define ALGORITHM(name)                                                                                                                    \
    int name(const struct standin_handle *handle, const void *a, const void *b, const void *c, const void *d, int room, int *count,        \
             struct performance *results) {                                                                                                \
        return suggest_performance(handle, room, count, results);                                                                          \
    }
ALGORITHM(cudnnGetConvolutionForwardAlgorithm_v7)
ALGORITHM(cudnnGetConvolutionBackwardDataAlgorithm_v7)
ALGORITHM(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
ALGORITHM(cudnnFindConvolutionForwardAlgorithm)
ALGORITHM(cudnnFindConvolutionBackwardDataAlgorithm)
ALGORITHM(cudnnFindConvolutionBackwardFilterAlgorithm)

// Finds an algorithm by running it once on the given data.
#define TRY_ALGORITHM(name)                                                                                                                \
    int name(const struct standin_handle *handle, const void *a, const void *a_data, const void *b, const void *b_data, const void *c,     \
             const void *d, void *d_data, int room, int *count, struct performance *results) {                                             \
        const struct standin_operand operands[] = {READS(a_data), READS(b_data), WRITES(d_data)};                                          \
        const int status = standin_call_on(&codes, handle, #name, operands, sizeof operands / sizeof *operands);                           \
        return status != 0 ? status : suggest_performance(handle, room, count, results);                                                   \
    }
TRY_ALGORITHM(cudnnFindConvolutionForwardAlgorithmEx)
TRY_ALGORITHM(cudnnFindConvolutionBackwardDataAlgorithmEx)
TRY_ALGORITHM(cudnnFindConvolutionBackwardFilterAlgorithmEx)

#define ALGORITHM_COUNT(name)                                                                                                              \
    int name(const struct standin_handle *handle, int *count) {                                                                            \
        NEEDS(count != NULL);                                                                                                              \
        *count = 1;                                                                                                                        \
        return 0;                                                                                                                          \
    }
ALGORITHM_COUNT(cudnnGetConvolutionForwardAlgorithmMaxCount)
ALGORITHM_COUNT(cudnnGetConvolutionBackwardDataAlgorithmMaxCount)
ALGORITHM_COUNT(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount)
