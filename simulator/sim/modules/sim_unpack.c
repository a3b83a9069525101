// sim_unpack.c: blocks of LZ4. The format is public (LZ4 Block Format): sequences of a token, literals, and a match in what was
// unpacked before; lengths of 15 and more go on in further bytes.
#include "sim/modules/sim_unpack.h"

#include <string.h>

enum { LONG_LENGTH = 15, LEAST_MATCH = 4 };

struct unpacking {
    const unsigned char *from, *from_end;
    unsigned char *start, *to, *to_end;
};

// The rest of a length, each byte of 255 with another one behind it. No length exceeds 255 times the input.
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

// A match may reach into what it writes: that repeats it.
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

bool vr_sim_unpack_lz4(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
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
