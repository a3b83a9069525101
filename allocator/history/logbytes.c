#include "history/logbytes.h"

void vr_bytes_release(struct vr_bytes *bytes) {
    free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
}

bool vr_bytes_reserve(struct vr_bytes *bytes, size_t more) {
    if (bytes->failed) return false;
    if (more <= bytes->capacity - bytes->count) return true;
    void *data = bytes->data;
    bytes->failed = more > SIZE_MAX - bytes->count || vr_grow(&data, &bytes->capacity, bytes->count + more, 1) != VRAM_OK;
    bytes->data = data;
    return !bytes->failed;
}

void vr_bytes_add(struct vr_bytes *bytes, const void *data, size_t length) {
    if (length == 0 || !vr_bytes_reserve(bytes, length)) return;
    memcpy(bytes->data + bytes->count, data, length);
    bytes->count += length;
}

void vr_bytes_varint(struct vr_bytes *bytes, uint64_t value) {
    if (!vr_bytes_reserve(bytes, VR_VARINT_MAX)) return;
    bytes->count = (size_t)(vr_varint_put(bytes->data + bytes->count, value) - bytes->data);
}

// Joins the low seven bits of eight bytes in three steps.
static uint64_t join_sevens(uint64_t bytes) {
    bytes &= 0x7f7f7f7f7f7f7f7fu;
    bytes = (bytes & 0x7f007f007f007f00u) >> 1 | (bytes & 0x007f007f007f007fu);
    bytes = (bytes & 0x3fff00003fff0000u) >> 2 | (bytes & 0x00003fff00003fffu);
    return (bytes & 0x0fffffff00000000u) >> 4 | (bytes & 0x000000000fffffffu);
}

uint64_t vr_cursor_varint_slow(struct vr_cursor *cursor) {
    uint64_t value = 0;
    if (vr_cursor_left(cursor) >= 8) {
        uint64_t bytes = vr_load64(cursor->next), ends = ~bytes & 0x8080808080808080u;
        if (ends != 0) {
            unsigned last = (unsigned)__builtin_ctzll(ends) / 8;
            cursor->next += last + 1;
            return join_sevens(bytes & UINT64_MAX >> (56 - 8 * last));
        }
    }
    for (unsigned shift = 0; shift < 70 && cursor->next != cursor->end; shift += 7) {
        uint64_t byte = *cursor->next++;
        if (shift == 63 && byte > 1) break;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    cursor->failed = true;
    cursor->next = cursor->end;
    return 0;
}

const unsigned char *vr_cursor_take(struct vr_cursor *cursor, uint64_t length) {
    if (length > vr_cursor_left(cursor)) {
        cursor->failed = true;
        cursor->next = cursor->end;
        return NULL;
    }
    const unsigned char *taken = cursor->next;
    cursor->next += length;
    return taken;
}

// Uses four lanes, so that one word's multiplications need not wait for those of the word before.
uint32_t vr_log_checksum(const void *data, size_t length) {
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    const unsigned char *at = data;
    uint64_t lanes[4] = {length, 1, 2, 3}, word = 0;
    size_t left = length;
    for (; left >= 32; left -= 32, at += 32) {
        for (size_t i = 0; i < 4; i++) {
            lanes[i] = (lanes[i] ^ vr_load64(at + 8 * i)) * factor;
            lanes[i] ^= lanes[i] >> 32;
        }
    }
    for (; left >= 8; left -= 8, at += 8) {
        lanes[0] = (lanes[0] ^ vr_load64(at)) * factor;
        lanes[0] ^= lanes[0] >> 32;
    }
    if (left != 0) memcpy(&word, at, left);
    uint64_t sum = lanes[0] ^ word;
    for (size_t i = 1; i < 4; i++) sum = vr_mix64(sum) ^ lanes[i];
    return (uint32_t)vr_mix64(sum);
}
