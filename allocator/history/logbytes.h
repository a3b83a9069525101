// logbytes.h: the encoding of a recording file: appending bytes, and reading them within bounds.
//
// Numbers of fixed width are little-endian; others are varints: seven bits per byte, lowest first, the top bit set on all bytes but the
// last, at most ten bytes. Signed numbers are made unsigned by zigzag: 0, -1, 1, -2, ...
#ifndef VR_HISTORY_LOGBYTES_H
#define VR_HISTORY_LOGBYTES_H

#include "base/base.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "recording files are written and read on little-endian machines only"
#endif

enum { VR_VARINT_MAX = 10 };

// A growing buffer. A failure to grow sets `failed`, and later additions do nothing: check it once at the end.
struct vr_bytes {
    unsigned char *data;
    size_t count;
    size_t capacity;
    bool failed; // no host memory
};

void vr_bytes_release(struct vr_bytes *bytes);
// Makes room for `more` bytes. Returns false, with `failed` set, if it cannot.
bool vr_bytes_reserve(struct vr_bytes *bytes, size_t more);
void vr_bytes_add(struct vr_bytes *bytes, const void *data, size_t length);
void vr_bytes_varint(struct vr_bytes *bytes, uint64_t value);

// Writes a varint at `at`, which has room for VR_VARINT_MAX bytes, and returns its end.
VR_INLINE unsigned char *vr_varint_put(unsigned char *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (unsigned char)value;
    return at;
}
// (bit + 7) / 7, which equals (9 * bit + 73) / 64 for every bit number of a 64-bit value.
VR_INLINE size_t vr_varint_length(uint64_t value) { return (9 * vr_log2_floor(value | 1) + 73) / 64; }

VR_INLINE uint64_t vr_zigzag(uint64_t value) { return (value << 1) ^ (uint64_t)((int64_t)value >> 63); }
VR_INLINE uint64_t vr_unzigzag(uint64_t value) { return (value >> 1) ^ (~(value & 1) + 1); }

// A reader within bounds. Reading past the end sets `failed` and gives zeros.
struct vr_cursor {
    const unsigned char *next;
    const unsigned char *end;
    bool failed;
};

VR_INLINE size_t vr_cursor_left(const struct vr_cursor *cursor) { return (size_t)(cursor->end - cursor->next); }
uint64_t vr_cursor_varint_slow(struct vr_cursor *cursor);
VR_INLINE uint64_t vr_cursor_varint(struct vr_cursor *cursor) {
    const unsigned char *next = cursor->next;
    if (VR_LIKELY(next != cursor->end && next[0] < 0x80)) return *cursor->next++;
    if (VR_LIKELY(cursor->end - next > 1 && next[1] < 0x80)) {
        cursor->next = next + 2;
        return (uint64_t)(next[0] & 0x7f) | (uint64_t)next[1] << 7;
    }
    return vr_cursor_varint_slow(cursor);
}
// Returns the next `length` bytes, borrowed; NULL if there are fewer.
const unsigned char *vr_cursor_take(struct vr_cursor *cursor, uint64_t length);

VR_INLINE uint32_t vr_load32(const void *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}
VR_INLINE uint64_t vr_load64(const void *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

// Returns the format's checksum (docs/reference/formats/recording.md): 32 bits over any number of bytes.
uint32_t vr_log_checksum(const void *data, size_t length);

#endif
