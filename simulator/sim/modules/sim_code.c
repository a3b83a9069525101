// Code as programs pass it: fat binaries, decompression, and choice of the entry for a device.
#include <stdlib.h>
#include <string.h>

#include "sim/modules/sim_image.h"

// ---- LZ4 blocks. The format is public (LZ4 Block Format): sequences of a token, literals, and a match in the output so far. Lengths of 15
// and more continue in further bytes.

enum { LONG_LENGTH = 15, LEAST_MATCH = 4 };

struct unpacking {
    const unsigned char *from, *from_end;
    unsigned char *start, *to, *to_end;
};

// Reads the rest of a length: each byte of 255 is followed by another. A length is at most 255 times the input.
static bool lengthen_run(struct unpacking *block, size_t *length) {
    unsigned byte = 255;
    if (*length != LONG_LENGTH) return true;
    while (byte == 255) {
        if (block->from == block->from_end) return false;
        byte = *block->from++;
        *length += byte;
    }
    return true;
}

static bool take_literals(struct unpacking *block, size_t length) {
    if (!lengthen_run(block, &length)) return false;
    if (length > (size_t)(block->from_end - block->from) || length > (size_t)(block->to_end - block->to)) return false;
    if (length > 0) memcpy(block->to, block->from, length);
    block->from += length;
    block->to += length;
    return true;
}

// Copies a match. It may overlap its own output, which repeats it.
static bool take_match(struct unpacking *block, size_t length) {
    if (block->from_end - block->from < 2) return false;
    const size_t back = (size_t)block->from[0] | (size_t)block->from[1] << 8;
    block->from += 2;
    if (!lengthen_run(block, &length)) return false;
    length += LEAST_MATCH;
    if (back == 0 || back > (size_t)(block->to - block->start) || length > (size_t)(block->to_end - block->to)) return false;
    const unsigned char *match = block->to - back;
    for (size_t i = 0; i < length; i++) block->to[i] = match[i];
    block->to += length;
    return true;
}

// Decompresses an LZ4 block. Strict: the output must fill `to` exactly. Returns false if the input is malformed or too short.
static bool sim_unpack_lz4(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
    struct unpacking block = {.from = from, .start = to, .to = to};
    block.from_end = block.from + from_bytes;
    block.to_end = block.start + to_bytes;
    while (block.to < block.to_end) { // the last sequence has no match
        if (block.from == block.from_end) return false;
        const unsigned token = *block.from++;
        if (!take_literals(&block, token >> 4)) return false;
        if (block.to < block.to_end && !take_match(&block, token & 15)) return false;
    }
    return true;
}

// ---- Choice of the code for a device. The layout of containers is not published. What is read here was derived from containers that nvcc
// wrote: entries of a kind (1 PTX, 2 cubin) with an architecture and flags, each with the length of its own header.

enum {
    WRAPPER_MAGIC = 0x466243b1,
    CONTAINER_HEADER = 16,
    ENTRY_HEADER = 64, // minimum
    KIND_PTX = 1,
    KIND_CUBIN = 2,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_EXACT = 0x100000, // compiled for the specific features of one architecture
};
#define CONTAINER_MAGIC 0xba55ed50u
#define EXTENT_MAX      ((uint64_t)1 << 32) // longer images are refused
// Larger code is not decompressed. The largest piece of PyTorch 2.6 and 2.15 has 43,061,752 bytes.
#define UNPACKED_MOST ((uint64_t)256 << 20)

static uint64_t load_integer(const void *bytes, size_t at, size_t width) {
    uint64_t value = 0;
    memcpy(&value, (const char *)bytes + at, width); // little-endian, as all hosts of GPUs are
    return value;
}

// --- choice ---------------------------------------------------------------------------------------------------------

// A piece of code and its properties.
struct code {
    const char *bytes;
    size_t size_bytes;
    uint32_t architecture;
    bool exact, ptx, lz4, zstd;
    uint64_t packed_bytes, unpacked_bytes; // LZ4 and Zstandard: compressed bytes within size_bytes, and decompressed size
};

static bool device_takes(uint32_t device, const struct code *code) {
    if (code->exact) return code->architecture == device;
    if (code->ptx) return code->architecture <= device;
    return code->architecture / 10 == device / 10 && code->architecture <= device;
}

// Prefers a cubin to PTX, then the higher architecture, then architecture-specific code.
static bool is_better_code(const struct code *code, const struct code *best) {
    if (best->bytes == NULL) return true;
    if (code->ptx != best->ptx) return best->ptx;
    if (code->architecture != best->architecture) return code->architecture > best->architecture;
    return code->exact && !best->exact;
}

static bool is_container(const char *bytes, size_t size_bytes) {
    return size_bytes >= CONTAINER_HEADER && load_integer(bytes, 0, 4) == CONTAINER_MAGIC;
}

static vr_cu_result choose_code(const char *bytes, size_t size_bytes, uint32_t architecture, struct code *best) {
    uint64_t at = load_integer(bytes, 6, 2), end;
    if (at < CONTAINER_HEADER || !vr_add_u64(at, load_integer(bytes, 8, 8), &end) || end > size_bytes) return VR_CU_INVALID_IMAGE;
    while (at < end) {
        if (end - at < ENTRY_HEADER) return VR_CU_INVALID_IMAGE;
        const char *entry = bytes + at;
        const uint64_t header = load_integer(entry, 4, 4), size = load_integer(entry, 8, 8), flags = load_integer(entry, 40, 8),
                       kind = load_integer(entry, 0, 2);
        if (header < ENTRY_HEADER || header > end - at || size > end - at - header) return VR_CU_INVALID_IMAGE;
        const struct code code = {.bytes = entry + header,
                                  .size_bytes = (size_t)size,
                                  .architecture = (uint32_t)load_integer(entry, 28, 4),
                                  .exact = (flags & FLAG_EXACT) != 0,
                                  .ptx = kind == KIND_PTX,
                                  .lz4 = (flags & FLAG_LZ4) != 0,
                                  .zstd = (flags & FLAG_ZSTD) != 0,
                                  .packed_bytes = load_integer(entry, 16, 4),
                                  .unpacked_bytes = load_integer(entry, 56, 8)};
        if ((kind == KIND_PTX || kind == KIND_CUBIN) && device_takes(architecture, &code) && is_better_code(&code, best)) *best = code;
        at += header + size;
    }
    return best->bytes == NULL ? VR_CU_NO_BINARY_FOR_GPU : VR_CU_SUCCESS;
}

static bool is_cubin(const char *bytes, size_t size_bytes) { return size_bytes >= 64 && memcmp(bytes, "\177ELF", 4) == 0; }

static vr_cu_result find_code(const char *bytes, size_t size_bytes, uint32_t architecture, struct code *code) {
    if (is_container(bytes, size_bytes)) return choose_code(bytes, size_bytes, architecture, code);
    *code = (struct code){.bytes = bytes, .size_bytes = size_bytes, .ptx = !is_cubin(bytes, size_bytes)};
    if (code->ptx && !vr_sim_ptx_architecture(bytes, size_bytes, &code->architecture, &code->exact))
        return size_bytes > 0 && bytes[0] == '\177' ? VR_CU_INVALID_IMAGE : VR_CU_INVALID_PTX;
    if (!code->ptx && !vr_sim_cubin_architecture(bytes, size_bytes, &code->architecture, &code->exact)) return VR_CU_INVALID_IMAGE;
    return device_takes(architecture, code) ? VR_CU_SUCCESS : VR_CU_NO_BINARY_FOR_GPU;
}

// --- decompression --------------------------------------------------------------------------------------------------

static vr_cu_result read_plain_image(struct vr_sim_image *image, const char *bytes, size_t size_bytes, bool ptx) {
    return ptx ? vr_sim_ptx_read(image, bytes, size_bytes) : vr_sim_cubin_read(image, bytes, size_bytes);
}

// Decompresses to temporary memory: what is read from code is about a thousandth of its size.
static vr_cu_result read_packed(struct vr_sim_image *image, const struct code *code, vr_sim_unpacking *unpack) {
    if (code->packed_bytes > code->size_bytes) return VR_CU_INVALID_IMAGE;
    char *bytes = malloc((size_t)code->unpacked_bytes);
    if (bytes == NULL) return VR_CU_OUT_OF_MEMORY;
    vr_cu_result result = VR_CU_INVALID_IMAGE;
    if (unpack(bytes, (size_t)code->unpacked_bytes, code->bytes, (size_t)code->packed_bytes))
        result = read_plain_image(image, bytes, (size_t)code->unpacked_bytes, code->ptx);
    free(bytes);
    return result;
}

// Reads a piece of code. If it cannot be decompressed, the image is open: any name is one of its kernels.
static vr_cu_result read_code(struct vr_sim_image *image, const struct code *code, vr_sim_unpacking *zstd) {
    if (!code->lz4 && !code->zstd) return read_plain_image(image, code->bytes, code->size_bytes, code->ptx);
    vr_sim_unpacking *unpack = code->lz4 ? sim_unpack_lz4 : zstd;
    if (unpack != NULL && code->unpacked_bytes != 0 && code->unpacked_bytes <= UNPACKED_MOST) return read_packed(image, code, unpack);
    image->open = true;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_image_read(const void *bytes, size_t size_bytes, uint32_t architecture, vr_sim_unpacking *zstd, bool effects,
                               struct vr_sim_image **image) {
    struct code code = {0};
    vr_cu_result result = find_code(bytes, size_bytes, architecture, &code);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_image *made = calloc(1, sizeof *made);
    if (made == NULL) return VR_CU_OUT_OF_MEMORY;
    made->references = 1;
    made->jit = code.ptx;
    made->asks_effects = effects;
    made->binary_version = code.ptx ? architecture : code.architecture;
    made->ptx_version = code.architecture;
    result = read_code(made, &code, zstd);
    if (result == VR_CU_SUCCESS)
        *image = made;
    else
        vr_sim_image_release(made);
    return result;
}

// --- length of images in memory -------------------------------------------------------------------------------------

// Gets the length of a cubin: the end of its sections or of their table, whichever is last.
static bool cubin_extent(const char *bytes, uint64_t *extent) {
    const uint64_t table = load_integer(bytes, 0x28, 8), width = load_integer(bytes, 0x3a, 2), count = load_integer(bytes, 0x3c, 2);
    uint64_t most;
    if (width < 64 || table > EXTENT_MAX || !vr_add_u64(table, width * count, &most)) return false;
    for (uint64_t i = 0; i < count; i++) {
        const char *section = bytes + table + i * width;
        uint64_t end;
        if (load_integer(section, 4, 4) == 8) continue; // SHT_NOBITS takes no bytes
        if (!vr_add_u64(load_integer(section, 0x18, 8), load_integer(section, 0x20, 8), &end)) return false;
        if (end > most) most = end;
    }
    *extent = most;
    return most <= EXTENT_MAX;
}

vr_cu_result vr_sim_image_extent(const void **bytes, size_t *size_bytes) {
    const char *start = *bytes;
    uint64_t extent;
    if (start[0] != '\0' && start[1] != '\0' && start[2] != '\0' && start[3] != '\0' && load_integer(start, 0, 4) == WRAPPER_MAGIC)
        start = (const char *)(uintptr_t)load_integer(start, 8, 8);
    if (start == NULL) return VR_CU_INVALID_IMAGE;
    // A text shorter than 4 bytes ends at its NUL: nothing after that is read.
    const bool short_text = start[0] == '\0' || start[1] == '\0' || start[2] == '\0' || start[3] == '\0';
    if (!short_text && load_integer(start, 0, 4) == CONTAINER_MAGIC) {
        if (!vr_add_u64(load_integer(start, 6, 2), load_integer(start, 8, 8), &extent) || extent > EXTENT_MAX) return VR_CU_INVALID_IMAGE;
    } else if (!short_text && memcmp(start, "\177ELF", 4) == 0) {
        if (!cubin_extent(start, &extent)) return VR_CU_INVALID_IMAGE;
    } else {
        extent = strlen(start);
    }
    *bytes = start;
    *size_bytes = (size_t)extent;
    return VR_CU_SUCCESS;
}
