#include "core/extension.h"

static const struct vr_extension_kind *kind_at(const struct vr_extensions *extensions, size_t at) {
    return atomic_load_explicit(&extensions->slots[at].kind, memory_order_acquire);
}

// Returns the kind's slot, or the first empty one, or VR_EXTENSIONS if all are taken by other kinds.
static size_t slot_of_key(const struct vr_extensions *extensions, const struct vr_extension_kind *kind) {
    size_t at = 0;
    while (at < VR_EXTENSIONS && kind_at(extensions, at) != kind && kind_at(extensions, at) != NULL) at++;
    return at;
}

void *vr_extension_find(const struct vr_extensions *extensions, const struct vr_extension_kind *kind) {
    const size_t at = slot_of_key(extensions, kind);
    if (at == VR_EXTENSIONS || kind_at(extensions, at) == NULL) return NULL;
    return atomic_load_explicit(&extensions->slots[at].value, memory_order_acquire);
}

enum vram_status vr_extension_attach(struct vr_extensions *extensions, const struct vr_extension_kind *kind, void *value) {
    assert(kind->destroy != NULL && value != NULL);
    const size_t at = slot_of_key(extensions, kind);
    if (at == VR_EXTENSIONS) return VRAM_LIMIT;
    atomic_store_explicit(&extensions->slots[at].value, value, memory_order_release);
    atomic_store_explicit(&extensions->slots[at].kind, kind, memory_order_release);
    return VRAM_OK;
}

void *vr_extension_detach(struct vr_extensions *extensions, const struct vr_extension_kind *kind) {
    const size_t at = slot_of_key(extensions, kind);
    if (at == VR_EXTENSIONS || kind_at(extensions, at) == NULL) return NULL;
    return atomic_exchange_explicit(&extensions->slots[at].value, NULL, memory_order_acq_rel);
}

// Returns the slot with a value of the lowest order, or VR_EXTENSIONS if all are empty.
static size_t next_to_end(const struct vr_extensions *extensions) {
    size_t next = VR_EXTENSIONS;
    for (size_t at = 0; at < VR_EXTENSIONS && kind_at(extensions, at) != NULL; at++) {
        if (atomic_load_explicit(&extensions->slots[at].value, memory_order_acquire) == NULL) continue;
        if (next == VR_EXTENSIONS || kind_at(extensions, at)->order < kind_at(extensions, next)->order) next = at;
    }
    return next;
}

void vr_extensions_end(struct vr_extensions *extensions) {
    for (size_t at = next_to_end(extensions); at != VR_EXTENSIONS; at = next_to_end(extensions)) {
        const struct vr_extension_kind *kind = kind_at(extensions, at);
        // A destructor may still look up its own value, so clear the slot afterwards.
        kind->destroy(atomic_load_explicit(&extensions->slots[at].value, memory_order_acquire));
        atomic_store_explicit(&extensions->slots[at].value, NULL, memory_order_release);
    }
}
