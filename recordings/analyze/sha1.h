// sha1.h: SHA-1 (FIPS 180-4), only to name call stacks the same way everywhere; nothing here is about security.
#ifndef VR_ANALYZE_SHA1_H
#define VR_ANALYZE_SHA1_H

#include "base/base.h"

struct vr_sha1 {
    uint32_t state[5];
    uint64_t length; // bytes so far
    unsigned char block[64];
};

void vr_sha1_init(struct vr_sha1 *sha1);
void vr_sha1_add(struct vr_sha1 *sha1, const void *bytes, size_t length);
// The first eight bytes of the digest, big-endian: its first 16 hex digits as a number. Ends the use of *sha1.
uint64_t vr_sha1_end(struct vr_sha1 *sha1);

#endif
