// rows.h: the rows that dictionaries become: which keys they have, by word, and how their values go into columns and come out again.
#ifndef VR_SNAPSHOT_ROWS_H
#define VR_SNAPSHOT_ROWS_H

#include "snapshot/fields.h"
#include "snapshot/machine.h"

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
// The history of a block, a value; 0: it has none.
uint64_t vr_row_history(const struct vr_machine *machine, size_t block);
// The order of kept entries: by owner and row.
int vr_row_compare_kept(const struct vr_kept *a, const struct vr_kept *b);
// The first of the kept entries [0, sorted), which are in that order, of this row or one behind it.
size_t vr_row_first_kept(const struct vr_machine *machine, size_t sorted, enum vr_owner owner, uint64_t row);

#endif
