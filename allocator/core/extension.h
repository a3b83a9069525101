// extension.h: data that higher layers attach to an allocator or a private pool. The core knows neither its names nor its types, only how
// to destroy it.
#ifndef VR_CORE_EXTENSION_H
#define VR_CORE_EXTENSION_H

#include <stdatomic.h>

#include "base/base.h"

// A kind of attachment: a constant of the layer that attaches it. Its address is the key.
struct vr_extension_kind {
    // Destroys the attached value when its owner is destroyed. The owner is still complete. Called without any lock; for a private pool,
    // under all locks of its device.
    void (*destroy)(void *value);
    // Lower orders are destroyed first. A value whose destructor writes to another one needs a lower order than that one.
    unsigned order;
};

enum { VR_EXTENSIONS = 4 };

// Zeroed: nothing is attached. Look up without a lock; attach and detach under a lock of the owner.
struct vr_extensions {
    struct {
        _Atomic(const struct vr_extension_kind *) kind; // never changes once set
        _Atomic(void *) value;                          // NULL: nothing of this kind is attached
    } slots[VR_EXTENSIONS];
};

// Returns the value attached under this kind, or NULL. Any thread.
void *vr_extension_find(const struct vr_extensions *extensions, const struct vr_extension_kind *kind);
// Attaches a value. Replaces a previous one of this kind without destroying it. LIMIT: VR_EXTENSIONS other kinds were attached before.
enum vram_status vr_extension_attach(struct vr_extensions *extensions, const struct vr_extension_kind *kind, void *value);
// Detaches the value and returns it without destroying it. NULL if nothing is attached.
void *vr_extension_detach(struct vr_extensions *extensions, const struct vr_extension_kind *kind);
// Destroys all values in order. Call it when the owner is destroyed, from one thread.
void vr_extensions_end(struct vr_extensions *extensions);

#endif
