// fields.h: where the values of a dictionary are while it becomes a row, and how each key's value is read.
#ifndef VR_SNAPSHOT_FIELDS_H
#define VR_SNAPSHOT_FIELDS_H

#include "snapshot/vocabulary.h"

// Every column of every table has a slot; columns of the same name share one. Those of events are rows of model/entry_fields.def.
// clang-format off
#define VR_FIELD_SLOTS(X) \
    X(device) X(total_bytes) X(allocated_bytes) X(active_bytes) X(requested_bytes) X(counter) X(kind) \
    X(expandable) X(state) X(blocks) X(tenants) X(name) X(filename) X(line) X(stage) X(cpp_stack) X(addr)

// How a value is read into a slot. X(KIND, "what is expected")
#define VR_FIELD_KINDS(X) \
    X(NOTHING, "nothing") \
    X(ADDRESS, "a whole number of 64 bits") \
    X(STREAM, "a whole number of 64 bits") \
    X(OTHER_ADDRESS, "a whole number of 64 bits") \
    X(SIZE, "a size in bytes") \
    X(SIGNED, "a whole number of 64 bits") \
    X(LOOSE, "a whole number of 64 bits") \
    X(THREAD, "a whole number of 64 bits") \
    X(DEVICE, "a device ordinal below 4096") \
    X(FLAG, "a truth value") \
    X(STACK, "a list of frames") \
    X(NAME, "a string") \
    X(TEXT, "a string") \
    X(POOL, "a pair of numbers") \
    X(ACTION, "a string") \
    X(STATE, "a string") \
    X(TYPE, "a string") \
    X(BLOCKS, "a list of blocks") \
    X(TENANTS, "a list of dictionaries")
// clang-format on

enum vr_field_slot {
#define VR_FIELD(column, ...) SLOT_##column,
#include "model/entry_fields.def"
#define VR_FIELD_SLOT_ENUM(name) SLOT_##name,
    VR_FIELD_SLOTS(VR_FIELD_SLOT_ENUM)
#undef VR_FIELD_SLOT_ENUM
        SLOT_COUNT
};

enum vr_field_kind {
#define VR_FIELD_ENUM(name, text) FIELD_##name,
    VR_FIELD_KINDS(VR_FIELD_ENUM)
#undef VR_FIELD_ENUM
};

// What a key means in a dictionary of one kind. All zero: nothing.
struct vr_field {
    uint8_t kind; // enum vr_field_kind
    uint8_t slot; // enum vr_field_slot
    uint32_t has; // VR_HAS_ bit
};

#endif
