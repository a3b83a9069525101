// value.h: the values of the snapshot machine: eight bytes, with a tag in the highest bits and the payload in the lower seven bytes.
#ifndef VR_SNAPSHOT_VALUE_H
#define VR_SNAPSHOT_VALUE_H

#include "base/base.h"

// X(TAG, "in messages"). A row is a dictionary that was recognized and stored in a table; its payload is the row number, and above it, in
// 24 bits, the number of further rows that follow it in a list (so that a list of a million events is one value).
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
    X(JSON, "a value stored as text")                                                                                                      \
    X(OPAQUE, "data that is not stored")                                                                                                   \
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

// The Python type of a container of items; JSON has only lists. The payload of NO_ITEMS, and a member of struct vr_node.
enum vr_items { VR_ITEMS_LIST, VR_ITEMS_TUPLE, VR_ITEMS_SET, VR_ITEMS_FROZENSET };

enum { VR_PAYLOAD_BITS = 56, VR_ROW_BITS = 32, VR_RUN_BITS = 24, VR_PAIR_BITS = 28, VR_TAG_SHIFT = 57 };
#define VR_VALUE(tag, payload) ((uint64_t)(tag) << VR_TAG_SHIFT | (payload))
#define VR_PAYLOAD_MASK        (((uint64_t)1 << VR_PAYLOAD_BITS) - 1)
// Set in a slot with other references once a stack was taken from it; its list must not change afterwards.
#define VR_USED ((uint64_t)1 << VR_PAYLOAD_BITS)

VR_INLINE uint64_t vr_value(enum vr_tag tag, uint64_t payload) { return VR_VALUE(tag, payload); }
VR_INLINE enum vr_tag vr_tag_of(uint64_t value) { return (enum vr_tag)(value >> VR_TAG_SHIFT); }
VR_INLINE uint64_t vr_payload(uint64_t value) { return value & VR_PAYLOAD_MASK; }

// Returns whether the number fits in an INT, whose payload is its two's complement.
VR_INLINE bool vr_fits_int(int64_t number) {
    return number >= -((int64_t)1 << (VR_PAYLOAD_BITS - 1)) && number < (int64_t)1 << (VR_PAYLOAD_BITS - 1);
}
VR_INLINE int64_t vr_int_of(uint64_t value) { return (int64_t)(value << (64 - VR_PAYLOAD_BITS)) >> (64 - VR_PAYLOAD_BITS); }

// Returns whether a value is immutable, so that it can be copied instead of referenced. UNSET and containers are not; their tags are the
// lowest.
VR_INLINE bool vr_is_plain(uint64_t value) { return value >= VR_VALUE(VR_TAG_NONE, 0); }
VR_INLINE bool vr_is_mutable(uint64_t value) { return !vr_is_plain(value) && value != 0; }
VR_INLINE bool vr_is_row(enum vr_tag tag) { return tag >= VR_TAG_EVENT && tag <= VR_TAG_ANNOTATION; }
VR_INLINE uint64_t vr_first_row(uint64_t value) { return value & (((uint64_t)1 << VR_ROW_BITS) - 1); }
VR_INLINE uint64_t vr_row_count(uint64_t value) { return (vr_payload(value) >> VR_ROW_BITS) + 1; }

// Returns whether a number can be a member of a PAIR.
VR_INLINE bool vr_fits_pair(uint64_t value) { return vr_tag_of(value) == VR_TAG_INT && vr_payload(value) < (uint64_t)1 << VR_PAIR_BITS; }
// Returns the tag's text for messages, as "a string".
const char *vr_tag_text(enum vr_tag tag);

#endif
