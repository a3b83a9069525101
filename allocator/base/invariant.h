// invariant.h: reports which invariant of a data structure is broken.
#ifndef VR_BASE_INVARIANT_H
#define VR_BASE_INVARIANT_H

#include <inttypes.h>

#include "base/base.h"

// Returns MISMATCH, with the broken invariant and the address in *error.
VR_INLINE enum vram_status vr_broken(struct vram_error *error, const char *what, uint64_t address) {
    return vr_fail(error, VRAM_MISMATCH, VRAM_NO_OFFSET, "%s (at 0x%" PRIx64 ")", what, address);
}

// Returns vr_broken() from the enclosing function, which must have an `error`, unless the condition holds. `what`: the broken invariant.
#define VR_INVARIANT(condition, what, address)                                                                                             \
    do {                                                                                                                                   \
        if (!(condition)) return vr_broken(error, what, address);                                                                          \
    } while (0)

#endif
