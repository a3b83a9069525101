// invariant.h: how a look at a whole state tells which sentence of its comments is not true.
#ifndef VR_BASE_INVARIANT_H
#define VR_BASE_INVARIANT_H

#include <inttypes.h>

#include "base/base.h"

// MISMATCH, with what is wrong and where.
VR_INLINE enum vram_status vr_broken(struct vram_error *error, const char *what, uint64_t address) {
    return vr_fail(error, VRAM_MISMATCH, VRAM_NO_OFFSET, "%s (at 0x%" PRIx64 ")", what, address);
}

// Returns vr_broken() from the enclosing function, which has an `error`, unless the condition holds. `what`: the sentence that is not true.
#define VR_INVARIANT(condition, what, address)                                                                                             \
    do {                                                                                                                                   \
        if (!(condition)) return vr_broken(error, what, address);                                                                          \
    } while (0)

#endif
