// Handles of libraries and the calls that take one.
#include "calls.h"

int standin_query(const struct standin_codes *codes, const struct standin_handle *handle) {
    return standin_is(handle, codes->kind) ? 0 : codes->not_initialized;
}

int standin_call(const struct standin_codes *codes, const struct standin_handle *handle) {
    const int status = standin_query(codes, handle);
    if (status != 0) return status;
    return standin_work(handle->stream) == 0 ? 0 : codes->failed;
}

int standin_clear(const struct standin_codes *codes, const struct standin_handle *handle, void *result, size_t bytes) {
    if (result == NULL) return 0;
    if (handle->pointer_mode != 0) return standin_zero_on(codes, handle, result, bytes);
    if (standin_driver()->stream_synchronize(handle->stream) != 0) return codes->failed;
    memset(result, 0, bytes);
    return 0;
}

int standin_zero_on(const struct standin_codes *codes, const struct standin_handle *handle, void *address, size_t bytes) {
    return standin_zero(address, bytes, handle->stream) == 0 ? 0 : codes->failed;
}

int standin_new_handle(const struct standin_codes *codes, struct standin_handle **handle, size_t own_workspace_bytes) {
    if (handle == NULL) return codes->invalid_value;
    if (standin_begin() == NULL) return codes->not_initialized;
    struct standin_handle *made = standin_new(codes->kind, sizeof *made);
    if (made == NULL) return codes->no_memory;
    made->own_workspace = standin_take(own_workspace_bytes);
    if (own_workspace_bytes != 0 && made->own_workspace == NULL) {
        (void)standin_destroy(made, codes->kind);
        return codes->no_memory;
    }
    *handle = made;
    return 0;
}

int standin_free_handle(const struct standin_codes *codes, struct standin_handle *handle) {
    if (handle == NULL) return codes->not_initialized;
    void *workspace = standin_is(handle, codes->kind) ? handle->own_workspace : NULL;
    if (!standin_destroy(handle, codes->kind)) return codes->not_initialized;
    standin_give(workspace);
    return 0;
}

// cudaDataType: real and complex of each base type, in pairs.
size_t standin_width(int data_type) {
    // 32F 64F 16F 8I, C32F C64F C16F C8I, 8U C8U 32I C32I 32U C32U 16BF C16BF, 4I C4I 4U C4U, 16I C16I 16U C16U, 64I C64I 64U C64U, 8-bit
    // floats
    static const unsigned char widths[] = {4, 8, 2, 1, 8, 16, 4, 2, 1,  2, 4,  8, 4, 8, 2, 4, 1,
                                           1, 1, 1, 2, 4, 2,  4, 8, 16, 8, 16, 1, 1, 1, 1, 1, 1};
    return data_type >= 0 && (size_t)data_type < sizeof widths ? widths[data_type] : 1;
}

int standin_version_part(int part) {
    static const int divisors[] = {10000, 100, 1};
    if (part < 0 || part > 2) return -1;
    return part == 0 ? standin_library_version / divisors[0] : standin_library_version / divisors[part] % 100;
}
