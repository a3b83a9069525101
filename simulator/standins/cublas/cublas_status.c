// Names and texts of cuBLAS's status codes.
#include "cublas.h"

static const struct {
    int status;
    const char *name, *text;
} statuses[] = {
    {0, "CUBLAS_STATUS_SUCCESS", "success"},
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was given"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory failed"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", "the license does not allow it"},
};

const char *standin_cublas_name(int status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status) return statuses[i].name;
    return "CUBLAS_STATUS_UNKNOWN";
}

const char *standin_cublas_text(int status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status) return statuses[i].text;
    return "unknown status";
}
