// code_fixture.h: builds images of compiled code for tests: a cubin with one kernel, and containers.
#ifndef CODE_FIXTURE_H
#define CODE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const char some_ptx[] = ".version 8.3\n.target sm_80\n.address_size 64\n// .entry not_this\n/* .entry nor_this */\n"
                               ".visible .global .align 4 .b8 table[1000];\n.visible .const .align 4 .b8 lut[400];\n"
                               ".global .attribute(.managed) .align 4 .b32 both;\n"
                               ".visible .func (.param .b32 r) helper(.param .b32 a) { .shared .b32 x; ret; }\n"
                               ".visible .entry add_one(.param .u64 p0, .param .u32 n, .param .align 8 .b8 s[24])\n.maxntid 256, 1, 1\n"
                               "{\n .shared .align 16 .b8 buf[2048];\n .reg .b64 %rd<4>;\n { ret; }\n}\n"
                               ".visible .entry _Z11spin_kernell(.param .u64 c) { ret; }\n";

enum { CODE_STACK_BYTES = 432 }; // place of a cubin's stack size

struct code_image {
    _Alignas(8) unsigned char bytes[4096];
    size_t size_bytes;
};

static inline void put(struct code_image *image, size_t at, uint64_t value, size_t width) { memcpy(image->bytes + at, &value, width); }

static inline void put_section(struct code_image *image, unsigned index, const uint64_t fields[8]) {
    // name, type, offset, size, link, info
    const size_t at = 1024 + (size_t)index * 64;
    put(image, at, fields[0], 4);
    put(image, at + 4, fields[1], 4);
    put(image, at + 0x18, fields[2], 8);
    put(image, at + 0x20, fields[3], 8);
    put(image, at + 0x28, fields[4], 4);
    put(image, at + 0x2c, fields[5], 4);
}

// Makes a cubin of the second ABI for an architecture: kernel "work" with 40 registers, 2,000 bytes of shared memory, 16 of local memory
// and parameters of 8 and 4 bytes; variable "counts" of 96 bytes.
static inline struct code_image make_cubin(unsigned architecture, bool exact) {
    static const char names[] =
        "\0.names\0.symtab\0.text.work\0.nv.info\0.nv.info.work\0.nv.shared.work\0.nv.global\0.nv.compat\0work\0counts";
    struct code_image image = {.size_bytes = 1024 + 9 * 64};
    memcpy(image.bytes, "\177ELF\2\1\1\101\10", 9);
    put(&image, 0x12, 190, 2);
    put(&image, 0x28, 1024, 8);
    put(&image, 0x30, (uint64_t)architecture << 8, 4);
    put(&image, 0x3a, 64, 2);
    put(&image, 0x3c, 9, 2);
    put(&image, 0x3e, 1, 2);
    memcpy(image.bytes + 64, names, sizeof names);
    const size_t symbols = 256, info = 400, kernel_info = 480, compat = 600;
    put(&image, symbols + 24, 88, 4); // "work"
    put(&image, symbols + 28, 0x1012, 2);
    put(&image, symbols + 30, 3, 2);
    put(&image, symbols + 48, 93, 4); // "counts"
    put(&image, symbols + 52, 0x11, 2);
    put(&image, symbols + 54, 7, 2);
    put(&image, symbols + 64, 96, 8);
    put(&image, info, 0x00082f04, 4); // registers
    put(&image, info + 4, 1, 4);
    put(&image, info + 8, 40, 4);
    put(&image, info + 12, 0x00081104, 4); // frame
    put(&image, info + 16, 1, 4);
    put(&image, info + 20, 16, 4);
    put(&image, info + 24, 0x00081204, 4); // stack
    put(&image, info + 28, 1, 4);
    put(&image, CODE_STACK_BYTES, 16, 4);
    put(&image, kernel_info, 0x000c1704, 4); // the second parameter, then the first
    put(&image, kernel_info + 8, 1 | 8 << 16, 4);
    put(&image, kernel_info + 12, (uint64_t)4 << 18, 4);
    put(&image, kernel_info + 16, 0x000c1704, 4);
    put(&image, kernel_info + 28, (uint64_t)8 << 18, 4);
    put(&image, kernel_info + 32, 0x000c0504, 4); // maximum number of threads
    put(&image, kernel_info + 36, 128, 4);
    put(&image, kernel_info + 40, 2, 4);
    put(&image, kernel_info + 44, 1, 4);
    put(&image, compat, 0x0902 | (exact ? 0x10000 : 0), 4);
    const uint64_t shared = 2000 + (architecture >= 90 ? 1024 : 0);
    put_section(&image, 1, (uint64_t[8]){1, 3, 64, sizeof names});
    put_section(&image, 2, (uint64_t[8]){8, 2, symbols, 72, 1});
    put_section(&image, 3, (uint64_t[8]){16, 1, 700, 16});
    put_section(&image, 4, (uint64_t[8]){27, 0x70000000, info, 36, 2});
    put_section(&image, 5, (uint64_t[8]){36, 0x70000000, kernel_info, 48, 2, 3});
    put_section(&image, 6, (uint64_t[8]){50, 8, 700, shared, 0, 3});
    put_section(&image, 7, (uint64_t[8]){66, 8, 700, 96});
    put_section(&image, 8, (uint64_t[8]){77, 0x70000086, compat, 4});
    return image;
}

enum { CODE_PTX = 1, CODE_CUBIN = 2, CODE_LZ4 = 0x2000, CODE_ZSTD = 0x8000, CODE_EXACT = 0x100000 };

// Adds an entry to a container. The first call, with size 0, also writes its header.
static inline void add_entry(struct code_image *container, unsigned kind, unsigned architecture, uint64_t flags, const void *bytes,
                             size_t size_bytes) {
    if (container->size_bytes == 0) {
        put(container, 0, 0xba55ed50, 4);
        put(container, 4, 1, 2);
        put(container, 6, 16, 2);
        container->size_bytes = 16;
    }
    const size_t at = container->size_bytes, padded = (size_bytes + 7) / 8 * 8;
    put(container, at, kind, 2);
    put(container, at + 4, 64, 4);
    put(container, at + 8, padded, 8);
    put(container, at + 28, architecture, 4);
    put(container, at + 40, flags, 8);
    memcpy(container->bytes + at + 64, bytes, size_bytes);
    container->size_bytes += 64 + padded;
    put(container, 8, container->size_bytes - 16, 8);
}

// Adds an entry of compressed code that decompresses to unpacked_bytes.
static inline void add_packed(struct code_image *container, unsigned architecture, uint64_t flags, const struct code_image *packed,
                              size_t unpacked_bytes) {
    const size_t at = container->size_bytes == 0 ? 16 : container->size_bytes;
    add_entry(container, CODE_CUBIN, architecture, flags, packed->bytes, packed->size_bytes);
    put(container, at + 16, packed->size_bytes, 4);
    put(container, at + 56, unpacked_bytes, 8);
}

static inline void put_length(struct code_image *packed, size_t length) {
    for (length -= 15; length >= 255; length -= 255) packed->bytes[packed->size_bytes++] = 255;
    packed->bytes[packed->size_bytes++] = (unsigned char)length;
}

// Writes one LZ4 sequence, without a match if `repeats` is 0.
static inline void put_sequence(struct code_image *packed, const unsigned char *bytes, size_t literals, size_t repeats) {
    const size_t match = repeats == 0 ? 0 : repeats - 4;
    packed->bytes[packed->size_bytes++] = (unsigned char)((literals < 15 ? literals : 15) << 4 | (match < 15 ? match : 15));
    if (literals >= 15) put_length(packed, literals);
    memcpy(packed->bytes + packed->size_bytes, bytes, literals);
    packed->size_bytes += literals;
    if (repeats == 0) return;
    put(packed, packed->size_bytes, 1, 2); // one byte back
    packed->size_bytes += 2;
    if (match >= 15) put_length(packed, match);
}

// Compresses to an LZ4 block in which runs of a byte are matches.
static inline struct code_image pack_lz4(const struct code_image *plain) {
    struct code_image packed = {.size_bytes = 0};
    size_t begun = 0;
    for (size_t at = 1, run; at < plain->size_bytes; at += run + 1) {
        for (run = 0; at + run < plain->size_bytes - 5 && plain->bytes[at + run] == plain->bytes[at - 1];) run++;
        if (run < 4) continue;
        put_sequence(&packed, plain->bytes + begun, at - begun, run);
        begun = at + run;
    }
    put_sequence(&packed, plain->bytes + begun, plain->size_bytes - begun, 0);
    return packed;
}

// Makes a Zstandard frame (RFC 8878) with one uncompressed block.
static inline struct code_image pack_zstd(const struct code_image *plain) {
    struct code_image packed = {.size_bytes = 12 + plain->size_bytes};
    put(&packed, 0, 0xfd2fb528, 4);
    put(&packed, 4, 0xa0, 1); // one segment, with its length in four bytes
    put(&packed, 5, plain->size_bytes, 4);
    put(&packed, 9, plain->size_bytes << 3 | 1, 3);
    memcpy(packed.bytes + 12, plain->bytes, plain->size_bytes);
    return packed;
}

#endif
