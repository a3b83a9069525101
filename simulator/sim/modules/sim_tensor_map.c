// sim_tensor_map.c: tensor maps, the 128 bytes that describe a tensor's layout to a kernel of 9.0 or later. NVIDIA's format is not known;
// here they hold the arguments of the call. The rules are those of the driver API's documentation.
#include "sim/modules/sim_modules.h"

enum { INTERLEAVE_NONE, INTERLEAVE_16, INTERLEAVE_32 };
enum { SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128, SWIZZLE_COUNT = 7 };
enum { RANK_MAX = 5, BOX_MAX = 256, STEP_MAX = 8, PROMOTION_COUNT = 4, FILL_COUNT = 2 };
#define SIZE_MAX_OF_DIMENSION ((uint64_t)1 << 32)
#define STRIDE_LIMIT          ((uint64_t)1 << 40)

// Indexed by CUtensorMapDataType. For the packed types of 4 and 6 bits: the bytes of 16 elements.
static const uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};
enum { FIRST_PACKED = 13 };

// The first 8 bytes mark a map made here; the rest are the arguments.
struct tensor_map {
    uint64_t mark, address;
    uint64_t sizes[RANK_MAX], strides[RANK_MAX - 1];
    uint32_t box[2];
    uint8_t type, rank, interleave, swizzle, promotion, fill, kind, unused;
};
_Static_assert(sizeof(struct tensor_map) <= 128, "a tensor map has 128 bytes");
#define MARK 0x70616d72736e6574u

struct shape {
    int type, interleave, swizzle, promotion, fill;
    uint32_t rank;
    uint64_t address;
    const uint64_t *sizes, *strides;
    const uint32_t *steps;
};

static bool is_known(const struct shape *shape) {
    return shape->type >= 0 && shape->type < (int)sizeof element_bytes && shape->interleave >= 0 && shape->interleave <= INTERLEAVE_32 &&
           shape->swizzle >= 0 && shape->swizzle < SWIZZLE_COUNT && shape->promotion >= 0 && shape->promotion < PROMOTION_COUNT &&
           shape->fill >= 0 && shape->fill < FILL_COUNT;
}

// Checks the rules common to all kinds of maps.
static bool is_tensor(const struct shape *shape) {
    const bool wide = shape->interleave == INTERLEAVE_32;
    if (!is_known(shape) || shape->rank == 0 || shape->rank > RANK_MAX) return false;
    if (shape->interleave != INTERLEAVE_NONE && shape->rank < 3) return false;
    if (shape->interleave == INTERLEAVE_32 && shape->swizzle != SWIZZLE_32) return false;
    if (shape->address == 0 || shape->address % (wide ? 32 : 16) != 0 || shape->sizes == NULL || shape->steps == NULL) return false;
    if (shape->rank > 1 && shape->strides == NULL) return false;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->sizes[i] == 0 || shape->sizes[i] > SIZE_MAX_OF_DIMENSION) return false;
        if (shape->steps[i] == 0 || shape->steps[i] > STEP_MAX) return false;
        if (i == 0) continue;
        const uint64_t stride = shape->strides[i - 1];
        if (stride % (wide ? 32 : 16) != 0 || stride >= STRIDE_LIMIT) return false;
    }
    return true;
}

// Checks the bytes of the innermost row of a box against the limits of its layout.
static bool is_row(const struct shape *shape, uint64_t elements) {
    static const uint16_t most[SWIZZLE_COUNT] = {0, 32, 64, 128, 128, 128, 128};
    const uint64_t bytes = elements * element_bytes[shape->type];
    if (shape->type >= FIRST_PACKED || shape->interleave != INTERLEAVE_NONE) return true;
    if (bytes % 16 != 0) return false;
    return most[shape->swizzle] == 0 || bytes <= most[shape->swizzle];
}

static vr_cu_result encode_map(void *map, const struct shape *shape, uint32_t first, uint32_t second, uint8_t kind) {
    struct tensor_map made = {.mark = MARK,
                              .address = shape->address,
                              .box = {first, second},
                              .type = (uint8_t)shape->type,
                              .rank = (uint8_t)shape->rank,
                              .interleave = (uint8_t)shape->interleave,
                              .swizzle = (uint8_t)shape->swizzle,
                              .promotion = (uint8_t)shape->promotion,
                              .fill = (uint8_t)shape->fill,
                              .kind = kind};
    for (uint32_t i = 0; i < shape->rank; i++) made.sizes[i] = shape->sizes[i];
    for (uint32_t i = 0; i + 1 < shape->rank; i++) made.strides[i] = shape->strides[i];
    memset(map, 0, 128);
    memcpy(map, &made, sizeof made);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_tensor_map_encode_tiled(struct vr_sim *sim, void *map, int type, uint32_t rank, uint64_t address, const uint64_t *sizes,
                                            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                            int swizzle, int promotion, int fill) {
    const struct shape shape = {type, interleave, swizzle, promotion, fill, rank, address, sizes, strides, steps};
    (void)sim;
    if (map == NULL || box == NULL || !is_tensor(&shape)) return VR_CU_INVALID_VALUE;
    uint32_t elements = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (box[i] == 0 || box[i] > BOX_MAX) return VR_CU_INVALID_VALUE;
        if (i > 0) elements *= box[i]; // may wrap at 2^32, which is harmless: it is only stored
    }
    return is_row(&shape, box[0]) ? encode_map(map, &shape, box[0], elements, 0) : VR_CU_INVALID_VALUE;
}

static vr_cu_result encode_pixels(void *map, const struct shape *shape, uint32_t channels, uint32_t pixels, uint8_t kind) {
    if (map == NULL || !is_tensor(shape) || shape->rank < 3) return VR_CU_INVALID_VALUE;
    if (channels == 0 || channels > 256 || pixels == 0 || pixels > 1024) return VR_CU_INVALID_VALUE;
    return is_row(shape, channels) ? encode_map(map, shape, channels, pixels, kind) : VR_CU_INVALID_VALUE;
}

vr_cu_result vr_sim_tensor_map_encode_im2col(struct vr_sim *sim, void *map, int type, uint32_t rank, uint64_t address,
                                             const uint64_t *sizes, const uint64_t *strides, const int *lower, const int *upper,
                                             uint32_t channels, uint32_t pixels, const uint32_t *steps, int interleave, int swizzle,
                                             int promotion, int fill) {
    const struct shape shape = {type, interleave, swizzle, promotion, fill, rank, address, sizes, strides, steps};
    (void)sim;
    return lower == NULL || upper == NULL ? VR_CU_INVALID_VALUE : encode_pixels(map, &shape, channels, pixels, 1);
}

vr_cu_result vr_sim_tensor_map_encode_im2col_wide(struct vr_sim *sim, void *map, int type, uint32_t rank, uint64_t address,
                                                  const uint64_t *sizes, const uint64_t *strides, int lower, int upper, uint32_t channels,
                                                  uint32_t pixels, const uint32_t *steps, int interleave, int mode, int swizzle,
                                                  int promotion, int fill) {
    const struct shape shape = {type, interleave, swizzle, promotion, fill, rank, address, sizes, strides, steps};
    (void)sim;
    if (lower < -32768 || lower > 32767 || upper < -32768 || upper > 32767 || mode < 0 || mode > 1) return VR_CU_INVALID_VALUE;
    return encode_pixels(map, &shape, channels, pixels, 2);
}

vr_cu_result vr_sim_tensor_map_replace_address(struct vr_sim *sim, void *map, uint64_t address) {
    struct tensor_map made;
    (void)sim;
    if (map == NULL || address == 0) return VR_CU_INVALID_VALUE;
    memcpy(&made, map, sizeof made);
    if (made.mark != MARK || address % (made.interleave == INTERLEAVE_32 ? 32 : 16) != 0) return VR_CU_INVALID_VALUE;
    made.address = address;
    memcpy(map, &made, sizeof made);
    return VR_CU_SUCCESS;
}
