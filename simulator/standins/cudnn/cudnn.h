// cudnn.h: status codes, handles and descriptors of cuDNN 9.
#ifndef VR_STANDINS_CUDNN_CUDNN_H
#define VR_STANDINS_CUDNN_CUDNN_H

#include "../common/calls.h"

enum {
    CUDNN_NOT_INITIALIZED = 1001,
    CUDNN_BAD_PARAM = 2000,
    CUDNN_NULL_POINTER = 2002,
    CUDNN_NOT_FINALIZED = 2004,
    CUDNN_ATTRIBUTE_TYPE = 2010,
    CUDNN_DESCRIPTOR_TYPE = 2012,
    CUDNN_NOT_SUPPORTED = 3000,
    CUDNN_NO_NATIVE_GRAPH = 3013,
    CUDNN_ALLOC_FAILED = 4003,
    CUDNN_EXECUTION_FAILED = 5000,
};

#define CUDNN_HANDLE UINT64_C(0x6375646e6e000001)

static const struct standin_codes codes = {CUDNN_HANDLE,       CUDNN_NOT_INITIALIZED,  CUDNN_BAD_PARAM,
                                           CUDNN_ALLOC_FAILED, CUDNN_EXECUTION_FAILED, CUDNN_NOT_SUPPORTED};

// A descriptor of the legacy API: tensor, filter, convolution or pooling. Lists are indexed by dimension.
enum { CUDNN_MOST_DIMENSIONS = 8 };
struct cudnn_shape {
    struct standin_object object;
    int type, format, rank;
    int size[CUDNN_MOST_DIMENSIONS]; // of a pooling: the window
    int stride[CUDNN_MOST_DIMENSIONS];
    int padding[CUDNN_MOST_DIMENSIONS];  // of a convolution or a pooling
    int dilation[CUDNN_MOST_DIMENSIONS]; // of a convolution
    int mode, groups, compute_type, nan;
};

// Returns the bytes of an element of a cudnnDataType_t.
size_t standin_cudnn_width(int type);
// Sets the shape of a packed tensor, for queries that return a descriptor.
void standin_cudnn_pack(struct cudnn_shape *tensor, int type, int rank, const int *size);
// Returns the workspace size of the only engine.
size_t standin_cudnn_workspace(void);

// Values stored by number, for the rows of the table.
#define KEEP(number, value)            (void)standin_keep(descriptor, (number), &(value), sizeof(value))
#define RECALL(number, pointer, bytes) standin_cudnn_kept(descriptor, (number), (pointer), (bytes))
// Gets a stored value, or zeros. result may be NULL.
void standin_cudnn_kept(const void *descriptor, int number, void *result, size_t bytes);

#endif
