// logpack.h: the packing of a recording file: repeated bytes become references to their earlier occurrence.
//
// Packed bytes are a series of sequences. A sequence is: one byte, whose upper half is the number of literal bytes and whose lower half is
// the length of a repetition minus 4 (15 in either half: further bytes add to it, up to and including the first that is not 255); the
// literal bytes; and the distance of the repetition, two bytes, 1 to 65535. The last sequence has literals only and ends with them.
#ifndef VR_HISTORY_LOGPACK_H
#define VR_HISTORY_LOGPACK_H

#include "base/base.h"

enum { VR_PACK_SLOTS = 1 << 12 };

// The packer's scratch memory, which may be uninitialised.
struct vr_packer {
    uint32_t slots[VR_PACK_SLOTS];
};

// Returns the maximum packed size of `length` bytes.
VR_INLINE size_t vr_pack_bound(size_t length) { return length + length / 255 + 16; }
// Packs `length` bytes (less than 2^32) into `out`, which has room for vr_pack_bound(length). Returns the packed size.
size_t vr_pack(struct vr_packer *packer, const unsigned char *data, size_t length, unsigned char *out);
// Unpacks into exactly `length` bytes at `out`. Returns false, with `out` undefined, if the bytes do not unpack to that length.
bool vr_unpack(const unsigned char *packed, size_t packed_length, unsigned char *out, size_t length);

#endif
