// logpack.h: the packing of a recording file: repeated bytes become references to where they stood before.
//
// Packed bytes are a row of sequences. A sequence is one byte, whose upper half is the number of literal bytes and whose lower half the
// length of a repetition less 4 (15 in either: bytes follow that add to it, up to and with the first that is not 255); the literal bytes;
// the distance of the repetition, two bytes, 1 to 65535. The last sequence has literals only and ends with them.
#ifndef VR_HISTORY_LOGPACK_H
#define VR_HISTORY_LOGPACK_H

#include "base/base.h"

enum { VR_PACK_SLOTS = 1 << 12 };

// Scratch of the packer; need not be initialised.
struct vr_packer {
    uint32_t slots[VR_PACK_SLOTS];
};

// The most bytes that `length` bytes pack to.
VR_INLINE size_t vr_pack_bound(size_t length) { return length + length / 255 + 16; }
// Packs `length` bytes (less than 2^32) into `out`, which has room for vr_pack_bound(length). Returns how many bytes it made.
size_t vr_pack(struct vr_packer *packer, const unsigned char *data, size_t length, unsigned char *out);
// Unpacks into exactly `length` bytes at `out`. False for bytes that are not the packing of so many; `out` is then anything.
bool vr_unpack(const unsigned char *packed, size_t packed_length, unsigned char *out, size_t length);

#endif
