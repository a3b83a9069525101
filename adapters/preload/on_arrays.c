// on_arrays.c: arrays for textures. The driver does not report their size, so the bytes of their elements are recorded.
#include "preload.h"

enum { NO_BYTES_YET = 0x40 | 0x80 }; // CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING: other calls map memory later

// Returns the bytes of one channel of a CUarray_format. 1 is an approximation for packed and compressed formats.
static uint64_t channel_bytes(uint32_t format) {
    switch (format) {
    case 0x02: // UNSIGNED_INT16
    case 0x09: // SIGNED_INT16
    case 0x10: // HALF
    case 0xc3: // UNORM_INT16X1, X2, X4
    case 0xc4:
    case 0xc5:
    case 0xc9: // SNORM_INT16X1, X2, X4
    case 0xca:
    case 0xcb: return 2;
    case 0x03:           // UNSIGNED_INT32
    case 0x0a:           // SIGNED_INT32
    case 0x20: return 4; // FLOAT
    default: return 1;
    }
}

static uint64_t array_bytes(const struct pl_array3d *what, uint32_t levels) {
    if ((what->flags & NO_BYTES_YET) != 0) return 0;
    uint64_t sum = 0;
    for (uint32_t level = 0; level < levels && level < 32; level++) {
        const uint64_t width = what->width >> level, height = what->height >> level, depth = what->depth >> level;
        sum +=
            (width == 0 ? 1 : width) * (height == 0 ? 1 : height) * (depth == 0 ? 1 : depth) * what->channels * channel_bytes(what->format);
    }
    return sum;
}

// Creates an array, for every function that does, after its arguments are brought into one form.
#define CREATE(slot, array, wide, levels, real)                                                                                            \
    struct pl_call call;                                                                                                                   \
    if (!pl_begin(slot, &call)) return real;                                                                                               \
    const uint64_t size = what == NULL ? 0 : array_bytes(&wide, levels);                                                                   \
    int32_t result = PL_OUT_OF_MEMORY;                                                                                                     \
    if (pl_charge(&call, PL_ARRAY, call.device, size)) result = real;                                                                      \
    pl_settle(&call, result, result == PL_SUCCESS ? *array : 0, size);                                                                     \
    return result

int32_t pl_on_array_create_v1(const struct pl_slot *slot, uint64_t *array, const struct pl_array_v1 *what) {
    struct pl_array3d wide = {0};
    if (what != NULL) wide = (struct pl_array3d){what->width, what->height, 1, what->format, what->channels, 0};
    CREATE(slot, array, wide, 1, PL_REAL(slot, (uint64_t *, const struct pl_array_v1 *), (array, what)));
}

int32_t pl_on_array_create(const struct pl_slot *slot, uint64_t *array, const struct pl_array *what) {
    struct pl_array3d wide = {0};
    if (what != NULL) wide = (struct pl_array3d){what->width, what->height, 1, what->format, what->channels, 0};
    CREATE(slot, array, wide, 1, PL_REAL(slot, (uint64_t *, const struct pl_array *), (array, what)));
}

int32_t pl_on_array3d_create_v1(const struct pl_slot *slot, uint64_t *array, const struct pl_array3d_v1 *what) {
    struct pl_array3d wide = {0};
    if (what != NULL) wide = (struct pl_array3d){what->width, what->height, what->depth, what->format, what->channels, what->flags};
    CREATE(slot, array, wide, 1, PL_REAL(slot, (uint64_t *, const struct pl_array3d_v1 *), (array, what)));
}

int32_t pl_on_array3d_create(const struct pl_slot *slot, uint64_t *array, const struct pl_array3d *what) {
    struct pl_array3d wide = {0};
    if (what != NULL) wide = *what;
    CREATE(slot, array, wide, 1, PL_REAL(slot, (uint64_t *, const struct pl_array3d *), (array, what)));
}

int32_t pl_on_mipmap_create(const struct pl_slot *slot, uint64_t *array, const struct pl_array3d *what, uint32_t levels) {
    struct pl_array3d wide = {0};
    if (what != NULL) wide = *what;
    CREATE(slot, array, wide, levels, PL_REAL(slot, (uint64_t *, const struct pl_array3d *, uint32_t), (array, what, levels)));
}

int32_t pl_on_array_destroy(const struct pl_slot *slot, uint64_t array) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t), (array));
    const int32_t result = PL_REAL(slot, (uint64_t), (array));
    if (result == PL_SUCCESS) pl_died(&call, PL_ARRAY, array);
    pl_end(&call);
    return result;
}
