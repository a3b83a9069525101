#include "analyze/sha1.h"

static uint32_t rotate_left(uint32_t x, unsigned by) { return x << by | x >> (32 - by); }

static void compress_block(uint32_t state[5], const unsigned char *block) {
    uint32_t w[80];
    for (unsigned i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (unsigned i = 16; i < 80; i++) w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f, k;
        if (i < 20) {
            f = (b & c) | (~b & d);
            k = 0x5A827999;
        } else if (i < 40) {
            f = b ^ c ^ d;
            k = 0x6ED9EBA1;
        } else if (i < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8F1BBCDC;
        } else {
            f = b ^ c ^ d;
            k = 0xCA62C1D6;
        }
        const uint32_t next = rotate_left(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void vr_sha1_init(struct vr_sha1 *sha1) { *sha1 = (struct vr_sha1){.state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}}; }

void vr_sha1_add(struct vr_sha1 *sha1, const void *bytes, size_t length) {
    const unsigned char *from = bytes;
    while (length != 0) {
        const size_t filled = (size_t)(sha1->length % sizeof sha1->block);
        size_t part = sizeof sha1->block - filled;
        if (part > length) part = length;
        memcpy(sha1->block + filled, from, part);
        sha1->length += part;
        from += part;
        length -= part;
        if (sha1->length % sizeof sha1->block == 0) compress_block(sha1->state, sha1->block);
    }
}

uint64_t vr_sha1_end(struct vr_sha1 *sha1) {
    static const unsigned char zeros[64];
    const uint64_t bits = sha1->length * 8;
    unsigned char tail[8];
    for (unsigned i = 0; i < 8; i++) tail[i] = (unsigned char)(bits >> (56 - 8 * i));
    vr_sha1_add(sha1, "\x80", 1);
    vr_sha1_add(sha1, zeros, (120 - (size_t)(sha1->length % 64)) % 64);
    vr_sha1_add(sha1, tail, sizeof tail);
    return (uint64_t)sha1->state[0] << 32 | sha1->state[1];
}
