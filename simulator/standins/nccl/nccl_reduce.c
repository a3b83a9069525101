// Transfer of elements between ranks, and arithmetic on them.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "nccl.h"
#include "nccl.h"

// ---- Transfer of elements between a rank's device and the memory shared by ranks. The simulated driver returns and accepts a level for
// each element (simulator/standins/libcuda/results.c), so that a value unknown on one rank does not become known on another. With another
// driver, only bytes are copied.

enum { KNOWN, UNKNOWN = 2 };

static int (*look)(uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes, uint8_t *levels);
static void (*lose)(uint64_t address, uint64_t bytes);
static int (*put)(uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes, const uint8_t *levels);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_values(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *const found[] = {library == NULL ? NULL : dlsym(library, "vram_sim_results_look"),
                           library == NULL ? NULL : dlsym(library, "vram_sim_results_put"),
                           library == NULL ? NULL : dlsym(library, "vram_sim_results_lose")};
    if (found[0] == NULL || found[1] == NULL || found[2] == NULL) return;
    memcpy(&look, &found[0], sizeof look);
    memcpy(&put, &found[1], sizeof put);
    memcpy(&lose, &found[2], sizeof lose);
}

static bool read_values(const struct nccl_call *call, unsigned char *slot, uint64_t bytes) {
    const struct standin_driver *driver = standin_driver();
    const uint32_t width = (uint32_t)nccl_width(call->type);
    uint8_t *levels = slot + NCCL_SMALL_BYTES;
    (void)pthread_once(&once, find_values);
    if (driver->stream_synchronize(call->stream) != 0) return false;
    if (look != NULL && look((uint64_t)(uintptr_t)call->from, bytes / width, width, slot, levels) > 0) return true;
    memset(levels, KNOWN, bytes / width);
    return driver->memcpy((uint64_t)(uintptr_t)slot, (uint64_t)(uintptr_t)call->from, bytes) == 0;
}

// The real library moves the elements on the device, so the host waits for nothing.
bool nccl_read_values(const struct nccl_call *call, unsigned char *slot, uint64_t bytes) {
    standin_hide(true);
    const bool read = read_values(call, slot, bytes);
    standin_hide(false);
    return read;
}

bool nccl_write_values(const struct nccl_call *call, void *to, const void *bytes, const uint8_t *levels) {
    const uint32_t width = (uint32_t)nccl_width(call->type);
    uint8_t own[NCCL_SMALL_BYTES] = {KNOWN};
    (void)pthread_once(&once, find_values);
    if (call->count <= sizeof own) nccl_reduce_levels(own, levels, call->count);
    if (put != NULL && call->count <= sizeof own && put((uint64_t)(uintptr_t)to, call->count, width, bytes, own) == 0) return true;
    standin_hide(true);
    const int error = standin_driver()->memcpy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)bytes, call->count * width);
    standin_hide(false);
    return error == 0;
}

void nccl_forget_values(const void *at, uint64_t bytes) {
    (void)pthread_once(&once, find_values);
    if (lose != NULL && bytes > 0) lose((uint64_t)(uintptr_t)at, bytes);
}

void nccl_reduce_levels(uint8_t *into, const uint8_t *from, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t theirs = from[i] > UNKNOWN ? UNKNOWN : from[i];
        if (theirs > into[i]) into[i] = theirs;
    }
}

// ---- Arithmetic on transferred payloads.

enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2 };

static const struct {
    unsigned char bytes;
    const char *name;
} types[NCCL_TYPES] = {{1, "int8"},    {1, "uint8"},   {4, "int32"},   {4, "uint32"},   {8, "int64"},       {8, "uint64"},
                       {2, "float16"}, {4, "float32"}, {8, "float64"}, {2, "bfloat16"}, {1, "float8_e4m3"}, {1, "float8_e5m2"}};

size_t nccl_width(int type) { return type >= 0 && type < NCCL_TYPES ? types[type].bytes : 0; }
const char *nccl_type_name(int type) { return type >= 0 && type < NCCL_TYPES ? types[type].name : "an unknown type"; }

bool nccl_can_reduce(int type, int operator) { return type >= 0 && type <= BFLOAT16 && operator>= 0 && operator<NCCL_OPERATORS; }

// --- floating-point numbers of 16 bits ------------------------------------------------------------------------------
static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_half(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = (half >> 10) & 31, fraction = half & 0x3ff;
    if (exponent == 31) return from_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent != 0) return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float small = (float)fraction / 16777216.0f;
    return sign != 0 ? -small : small;
}

// Rounds to nearest, ties to even.
static uint16_t to_half(float value) {
    const uint32_t bits = to_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x7f800000) return (uint16_t)(sign | 0x7c00 | (magnitude > 0x7f800000 ? 0x200 : 0));
    if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { // subnormal
        const float scaled = from_bits(magnitude) * 16777216.0f;
        uint32_t whole = (uint32_t)scaled;
        const float rest = scaled - (float)whole;
        whole += rest > 0.5f || (rest == 0.5f && (whole & 1) != 0);
        return (uint16_t)(sign | whole);
    }
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return rounded >= 0x47800000 ? (uint16_t)(sign | 0x7c00) : (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

static float from_bfloat(uint16_t value) { return from_bits((uint32_t)value << 16); }

static uint16_t to_bfloat(float value) {
    const uint32_t bits = to_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// --- operators ------------------------------------------------------------------------------------------------------
#define COMBINED(operator, a, b)                                                                                                           \
    ((operator) == NCCL_PRODUCT   ? (a) * (b)                                                                                              \
     : (operator) == NCCL_MAXIMUM ? ((a) > (b) ? (a) : (b))                                                                                \
     : (operator) == NCCL_MINIMUM ? ((a) < (b) ? (a) : (b))                                                                                \
                                  : (a) + (b))

// Integers wrap around, as on the device.
#define INTEGERS(name, type, wrapping)                                                                                                     \
    static void name(int operator, type * into, const type *from, size_t count) {                                                          \
        for (size_t i = 0; i < count; i++) {                                                                                               \
            const wrapping a = (wrapping)into[i], b = (wrapping)from[i];                                                                   \
            if (operator== NCCL_MAXIMUM || operator== NCCL_MINIMUM)                                                                        \
                into[i] = COMBINED(operator, into[i], from[i]);                                                                            \
            else                                                                                                                           \
                into[i] = (type)(operator== NCCL_PRODUCT ? (uint64_t)a * b : (uint64_t)a + b);                                             \
        }                                                                                                                                  \
    }
INTEGERS(of_int8, int8_t, uint8_t)
INTEGERS(of_uint8, uint8_t, uint8_t)
INTEGERS(of_int32, int32_t, uint32_t)
INTEGERS(of_uint32, uint32_t, uint32_t)
INTEGERS(of_int64, int64_t, uint64_t)
INTEGERS(of_uint64, uint64_t, uint64_t)

#define FLOATS(name, type, wide, read, write)                                                                                              \
    static void name(int operator, type * into, const type *from, size_t count) {                                                          \
        for (size_t i = 0; i < count; i++) {                                                                                               \
            const wide a = read(into[i]), b = read(from[i]);                                                                               \
            into[i] = write(COMBINED(operator, a, b));                                                                                     \
        }                                                                                                                                  \
    }
FLOATS(of_float, float, float, , )
FLOATS(of_double, double, double, , )
FLOATS(of_half, uint16_t, float, from_half, to_half)
FLOATS(of_bfloat, uint16_t, float, from_bfloat, to_bfloat)

void nccl_reduce(int type, int operator, void * into, const void *from, size_t count) {
    switch (type) {
    case INT8: of_int8(operator, into, from, count); break;
    case UINT8: of_uint8(operator, into, from, count); break;
    case INT32: of_int32(operator, into, from, count); break;
    case UINT32: of_uint32(operator, into, from, count); break;
    case INT64: of_int64(operator, into, from, count); break;
    case UINT64: of_uint64(operator, into, from, count); break;
    case FLOAT16: of_half(operator, into, from, count); break;
    case FLOAT32: of_float(operator, into, from, count); break;
    case FLOAT64: of_double(operator, into, from, count); break;
    case BFLOAT16: of_bfloat(operator, into, from, count); break;
    default: break;
    }
}

#define DIVIDED(type, read, write)                                                                                                         \
    for (size_t i = 0; i < count; i++) ((type *)values)[i] = write(read(((type *)values)[i]) / (divisor))

void nccl_divide(int type, void *values, size_t count, int divisor) {
    switch (type) {
    case INT8: DIVIDED(int8_t, , (int8_t)); break;
    case UINT8: DIVIDED(uint8_t, , (uint8_t)); break;
    case INT32: DIVIDED(int32_t, , (int32_t)); break;
    case UINT32: DIVIDED(uint32_t, , (uint32_t)); break;
    case INT64: DIVIDED(int64_t, , (int64_t)); break;
    case UINT64: DIVIDED(uint64_t, , (uint64_t)); break;
    case FLOAT16: DIVIDED(uint16_t, from_half, to_half); break;
    case FLOAT32: DIVIDED(float, , (float)); break;
    case FLOAT64: DIVIDED(double, , (double)); break;
    case BFLOAT16: DIVIDED(uint16_t, from_bfloat, to_bfloat); break;
    default: break;
    }
}
