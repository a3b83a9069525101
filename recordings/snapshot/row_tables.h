// row_tables.h: the rows that dictionaries become: which keys they have, by word, and how their values go into columns and come out again.
#ifndef VR_SNAPSHOT_ROW_TABLES_H
#define VR_SNAPSHOT_ROW_TABLES_H

#include "snapshot/pickle_vm.h"
#include "snapshot/vocabulary.h"

// ---- Where the values of a dictionary are while it becomes a row, and how each key's value is read.

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

// ---- The rows that dictionaries become: which keys they have, by word, and how their values go into columns and come out again.

// Keys that every frame and annotation has, for the one that has not: bits of no table.
enum { VR_HAS_ROW_NAME = 1 << 27, VR_HAS_ROW_FILENAME = 1 << 28, VR_HAS_ROW_LINE = 1 << 29, VR_HAS_ROW_STAGE = 1 << 30 };

// By word: what the key means in an event; and in the rows of each tag, frames too.
extern const struct vr_field vr_event_fields[VR_WORD_COUNT];
extern const struct vr_field *const vr_row_fields[VR_TAG_MEMO];
// Whose the kept keys of a tag's rows are.
extern const enum vr_owner vr_row_owners[VR_TAG_MEMO];

// A new row of the table; what it holds is undefined. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_row_add(struct vr_machine *machine, enum vr_tag kind, size_t *row);
// A new event of the slots, which must hold every column's value.
enum vram_status vr_row_add_event(struct vr_machine *machine, const uint64_t *slots, uint64_t *value);
enum vram_status vr_row_add_block(struct vr_machine *machine, uint64_t *slots, uint64_t *value);
// The slots into the row; those of a block are completed by what its history says. NO_HOST_MEMORY.
enum vram_status vr_row_put(struct vr_machine *machine, enum vr_tag kind, size_t row, uint64_t *slots);
// And out of it, but for a block's history.
void vr_row_take(const struct vr_machine *machine, enum vr_tag kind, size_t row, uint64_t *slots);
// The history of a block, as a value; 0 without a history.
uint64_t vr_row_history(const struct vr_machine *machine, size_t block);
// The order of kept entries: by owner and row.
int vr_row_compare_kept(const struct vr_kept *a, const struct vr_kept *b);
// The first of the kept entries [0, sorted), which are in that order, of this row or one behind it.
size_t vr_row_first_kept(const struct vr_machine *machine, size_t sorted, enum vr_owner owner, uint64_t row);

#endif
