#include "history/logpack.h"

#include "history/logbytes.h"

enum { MIN_MATCH = 4, MAX_DISTANCE = 65535, SLOT_BITS = 12, SKIP_SHIFT = 6 };
_Static_assert(1 << SLOT_BITS == VR_PACK_SLOTS, "the hash gives a slot");

static size_t slot_of(uint32_t word) { return (word * 2654435761u) >> (32 - SLOT_BITS); }

static unsigned char *put_length(unsigned char *out, size_t rest) {
    for (; rest >= 255; rest -= 255) *out++ = 255;
    *out++ = (unsigned char)rest;
    return out;
}

// Writes one sequence. match_length 0: the last one.
static unsigned char *put_sequence(unsigned char *out, const unsigned char *literals, size_t count, size_t match_length, size_t distance) {
    unsigned char *token = out++;
    size_t match = match_length == 0 ? 0 : match_length - MIN_MATCH;
    *token = (unsigned char)((count < 15 ? count : 15) << 4 | (match < 15 ? match : 15));
    if (count >= 15) out = put_length(out, count - 15);
    memcpy(out, literals, count);
    out += count;
    if (match_length == 0) return out;
    *out++ = (unsigned char)distance;
    *out++ = (unsigned char)(distance >> 8);
    return match >= 15 ? put_length(out, match - 15) : out;
}

static size_t common_length(const unsigned char *a, const unsigned char *b, const unsigned char *end) {
    const unsigned char *begin = b;
    while (end - b >= 8) {
        uint64_t differ = vr_load64(a) ^ vr_load64(b);
        if (differ != 0) return (size_t)(b - begin) + (size_t)__builtin_ctzll(differ) / 8;
        a += 8;
        b += 8;
    }
    while (b != end && *a == *b) a++, b++;
    return (size_t)(b - begin);
}

size_t vr_pack(struct vr_packer *packer, const unsigned char *data, size_t length, unsigned char *out) {
    unsigned char *begin = out;
    size_t at = 0, literals = 0;
    memset(packer->slots, 0, sizeof packer->slots);
    while (at + MIN_MATCH <= length) {
        uint32_t word = vr_load32(data + at);
        size_t slot = slot_of(word), before = packer->slots[slot];
        packer->slots[slot] = (uint32_t)at;
        // Empty slots hold 0, which is also position 0.
        if (vr_load32(data + before) != word || at - before - 1 >= MAX_DISTANCE) {
            // While nothing repeats, probe ever fewer positions.
            at += 1 + ((at - literals) >> SKIP_SHIFT);
            continue;
        }
        size_t match = MIN_MATCH + common_length(data + before + MIN_MATCH, data + at + MIN_MATCH, data + length);
        out = put_sequence(out, data + literals, at - literals, match, at - before);
        at += match;
        literals = at;
    }
    out = put_sequence(out, data + literals, length - literals, 0, 0);
    return (size_t)(out - begin);
}

// Adds the bytes that extend a length of 15 or more. Returns false at the end of the input.
static bool extend_match(const unsigned char **next, const unsigned char *end, size_t *length) {
    for (;;) {
        if (*next == end) return false;
        unsigned char byte = *(*next)++;
        *length += byte;
        if (byte != 255) return true;
    }
}

// Copies a match that may overlap its own output; `room` bytes may be written.
static void copy_match(unsigned char *out, size_t distance, size_t length, size_t room) {
    const unsigned char *from = out - distance;
    if (distance >= 8 && room >= length + 8) {
        for (size_t i = 0; i < length; i += 8) memcpy(out + i, from + i, 8);
    } else if (distance == 1) {
        memset(out, *from, length);
    } else {
        for (size_t i = 0; i < length; i++) out[i] = from[i];
    }
}

bool vr_unpack(const unsigned char *packed, size_t packed_length, unsigned char *out, size_t length) {
    const unsigned char *next = packed, *end = packed + packed_length;
    size_t made = 0;
    while (next != end) {
        unsigned char token = *next++;
        size_t literals = token >> 4, match = token & 15;
        if (literals == 15 && !extend_match(&next, end, &literals)) return false;
        if (literals > (size_t)(end - next) || literals > length - made) return false;
        memcpy(out + made, next, literals);
        next += literals;
        made += literals;
        if (next == end) return made == length;
        if (end - next < 2) return false;
        size_t distance = (size_t)next[0] | (size_t)next[1] << 8;
        next += 2;
        if (match == 15 && !extend_match(&next, end, &match)) return false;
        match += MIN_MATCH;
        if (distance == 0 || distance > made || match > length - made) return false;
        copy_match(out + made, distance, match, length - made);
        made += match;
    }
    return false;
}
