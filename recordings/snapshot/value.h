// value.h: what the snapshot machine computes with: eight bytes, the uppermost bits a tag and the lower seven bytes what it means.
#ifndef VR_SNAPSHOT_VALUE_H
#define VR_SNAPSHOT_VALUE_H

#include "base/base.h"

// X(TAG, "in messages"). A row is a dictionary that was recognised and stored as a row of a table; its payload is the row's
// number and, 24 bits above, how many further rows follow it in a list (so that a list of a million events is one value).
#define VR_TAGS(X)                                                                                                                         \
    X(UNSET, "nothing")                                                                                                                    \
    X(STACK, "a list of frames")                                                                                                           \
    X(NO_ITEMS, "an empty list")                                                                                                           \
    X(NO_KEYS, "an empty dictionary")                                                                                                      \
    X(LIST, "a list")                                                                                                                      \
    X(DICT, "a dictionary")                                                                                                                \
    X(NONE, "None")                                                                                                                        \
    X(BOOL, "a truth value")                                                                                                               \
    X(INT, "a number")                                                                                                                     \
    X(WIDE, "a number")                                                                                                                    \
    X(UNSIGNED, "a number")                                                                                                                \
    X(FLOAT, "a floating-point number")                                                                                                    \
    X(STRING, "a string")                                                                                                                  \
    X(JSON, "a value kept as text")                                                                                                        \
    X(OPAQUE, "data that is not kept")                                                                                                     \
    X(PAIR, "a pair")                                                                                                                      \
    X(FRAME, "a frame")                                                                                                                    \
    X(EVENT, "an event")                                                                                                                   \
    X(SEGMENT, "a segment")                                                                                                                \
    X(BLOCK, "a block")                                                                                                                    \
    X(TENANT, "an entry of a block's history")                                                                                             \
    X(ANNOTATION, "an annotation")                                                                                                         \
    X(MEMO, "a reference")                                                                                                                 \
    X(SHARED, "a reference")

enum vr_tag {
#define VR_TAG_ENUM(name, text) VR_TAG_##name,
    VR_TAGS(VR_TAG_ENUM)
#undef VR_TAG_ENUM
};

// What a container of items is in Python: JSON knows lists alone. The payload of NO_ITEMS, and struct vr_node's.
enum vr_items { VR_ITEMS_LIST, VR_ITEMS_TUPLE, VR_ITEMS_SET, VR_ITEMS_FROZENSET };

enum { VR_PAYLOAD_BITS = 56, VR_ROW_BITS = 32, VR_RUN_BITS = 24, VR_PAIR_BITS = 28, VR_TAG_SHIFT = 57 };
#define VR_VALUE(tag, payload) ((uint64_t)(tag) << VR_TAG_SHIFT | (payload))
#define VR_PAYLOAD_MASK        (((uint64_t)1 << VR_PAYLOAD_BITS) - 1)
// Set in a place that others refer to once a stack was taken from it: from then on its list must not change.
#define VR_USED ((uint64_t)1 << VR_PAYLOAD_BITS)

VR_INLINE uint64_t vr_value(enum vr_tag tag, uint64_t payload) { return VR_VALUE(tag, payload); }
VR_INLINE enum vr_tag vr_tag_of(uint64_t value) { return (enum vr_tag)(value >> VR_TAG_SHIFT); }
VR_INLINE uint64_t vr_payload(uint64_t value) { return value & VR_PAYLOAD_MASK; }

// Whether the number fits a tag INT, whose payload is its two's complement.
VR_INLINE bool vr_fits_int(int64_t number) {
    return number >= -((int64_t)1 << (VR_PAYLOAD_BITS - 1)) && number < (int64_t)1 << (VR_PAYLOAD_BITS - 1);
}
VR_INLINE int64_t vr_int_of(uint64_t value) { return (int64_t)(value << (64 - VR_PAYLOAD_BITS)) >> (64 - VR_PAYLOAD_BITS); }

// Whether a second reference to the value sees no changes, because there can be none. Not so for UNSET and the containers, whose tags
// are the lowest.
VR_INLINE bool vr_is_plain(uint64_t value) { return value >= VR_VALUE(VR_TAG_NONE, 0); }
VR_INLINE bool vr_is_mutable(uint64_t value) { return !vr_is_plain(value) && value != 0; }
VR_INLINE bool vr_is_row(enum vr_tag tag) { return tag >= VR_TAG_EVENT && tag <= VR_TAG_ANNOTATION; }
VR_INLINE uint64_t vr_first_row(uint64_t value) { return value & (((uint64_t)1 << VR_ROW_BITS) - 1); }
VR_INLINE uint64_t vr_row_count(uint64_t value) { return (vr_payload(value) >> VR_ROW_BITS) + 1; }

// Whether a number may be one of a pair.
VR_INLINE bool vr_fits_pair(uint64_t value) { return vr_tag_of(value) == VR_TAG_INT && vr_payload(value) < (uint64_t)1 << VR_PAIR_BITS; }
// "a string", for messages.
const char *vr_tag_text(enum vr_tag tag);

#endif
