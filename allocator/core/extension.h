// extension.h: what rooms above attach to an allocator or to a private pool. The core knows neither names nor types of theirs, only how to
// end them.
#ifndef VR_CORE_EXTENSION_H
#define VR_CORE_EXTENSION_H

#include <stdatomic.h>

#include "base/base.h"

// A kind of attachment: one constant of the room that attaches it, whose address is the key.
struct vr_extension_kind {
    // Ends what is attached, when its owner goes. With the owner still whole; without any lock, but for a private pool, which goes under
    // all locks of its device.
    void (*destroy)(void *value);
    // Lower ones are ended first: who writes a last time needs what is written.
    unsigned order;
};

enum { VR_EXTENSIONS = 4 };

// All-zero: nothing is attached. Looked up without a lock; attached and taken off under a lock of the owner's.
struct vr_extensions {
    struct {
        _Atomic(const struct vr_extension_kind *) kind; // stays where it was set
        _Atomic(void *) value;                          // NULL: nothing of this kind now
    } slots[VR_EXTENSIONS];
};

// What is attached of this kind; NULL: nothing. Any thread.
void *vr_extension_find(const struct vr_extensions *extensions, const struct vr_extension_kind *kind);
// Attaches it in place of what was there, which is not ended. LIMIT: VR_EXTENSIONS other kinds were attached before.
enum vram_status vr_extension_attach(struct vr_extensions *extensions, const struct vr_extension_kind *kind, void *value);
// Takes it off and returns it, without ending it; NULL where there is nothing.
void *vr_extension_detach(struct vr_extensions *extensions, const struct vr_extension_kind *kind);
// Ends everything, in order: the owner goes. One thread.
void vr_extensions_end(struct vr_extensions *extensions);

#endif
