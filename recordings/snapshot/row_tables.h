// row_tables.h: the table rows that dictionaries become: their keys, by word, and how values are moved into columns and back.
#ifndef VR_SNAPSHOT_ROW_TABLES_H
#define VR_SNAPSHOT_ROW_TABLES_H

#include "snapshot/pickle_vm.h"
#include "snapshot/vocabulary.h"

// ---- The slots that hold a dictionary's values while it becomes a row, and how each key's value is read.

// Every column of every table has a slot; columns with the same name share one. Columns of events come from model/entry_fields.def.
// clang-format off
#define VR_FIELD_SLOTS(X) \
    X(device) X(total_bytes) X(allocated_bytes) X(active_bytes) X(requested_bytes) X(counter) X(kind) \
    X(expandable) X(state) X(blocks) X(tenants) X(name) X(filename) X(line) X(stage) X(cpp_stack) X(addr)

// Ways of reading a value into a slot. X(KIND, "expected value, for messages")
#define VR_FIELD_KINDS(X) \
    X(NOTHING, "nothing") \
    X(ADDRESS, "a 64-bit integer") \
    X(STREAM, "a 64-bit integer") \
    X(OTHER_ADDRESS, "a 64-bit integer") \
    X(SIZE, "a size in bytes") \
    X(SIGNED, "a 64-bit integer") \
    X(LOOSE, "a 64-bit integer") \
    X(THREAD, "a 64-bit integer") \
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

// The meaning of a key in one kind of dictionary. Zeroed: no meaning.
struct vr_field {
    uint8_t kind; // enum vr_field_kind
    uint8_t slot; // enum vr_field_slot
    uint32_t has; // VR_HAS_ bit
};

// ---- The table rows that dictionaries become: their keys, by word, and how values are moved into columns and back.

// Mark keys that frames and annotations normally have, to detect when one is missing: bits of no table.
enum { VR_HAS_ROW_NAME = 1 << 27, VR_HAS_ROW_FILENAME = 1 << 28, VR_HAS_ROW_LINE = 1 << 29, VR_HAS_ROW_STAGE = 1 << 30 };

// The meaning of each word as a key in an event, and in the rows (and frames) of each tag.
extern const struct vr_field vr_event_fields[VR_WORD_COUNT];
extern const struct vr_field *const vr_row_fields[VR_TAG_MEMO];
// The owner under which a tag's rows keep extra keys.
extern const enum vr_owner vr_row_owners[VR_TAG_MEMO];

// Adds a row to the table, with undefined contents. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_row_add(struct vr_machine *machine, enum vr_tag kind, size_t *row);
// Add an event or a block from the slots, which must have a value for every column.
enum vram_status vr_row_add_event(struct vr_machine *machine, const uint64_t *slots, uint64_t *value);
enum vram_status vr_row_add_block(struct vr_machine *machine, uint64_t *slots, uint64_t *value);
// Stores the slots in the row; completes a block by its history. NO_HOST_MEMORY.
enum vram_status vr_row_put(struct vr_machine *machine, enum vr_tag kind, size_t row, uint64_t *slots);
// Loads the slots from the row, except for a block's history.
void vr_row_take(const struct vr_machine *machine, enum vr_tag kind, size_t row, uint64_t *slots);
// Returns a block's history as a value; 0 without a history.
uint64_t vr_row_history(const struct vr_machine *machine, size_t block);
// Orders kept entries by owner and row.
int vr_row_compare_kept(const struct vr_kept *a, const struct vr_kept *b);
// Returns the first of the kept entries [0, sorted), which are in that order, of this row or a later one.
size_t vr_row_first_kept(const struct vr_machine *machine, size_t sorted, enum vr_owner owner, uint64_t row);

#endif
