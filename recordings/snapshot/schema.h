// schema.h: what PyTorch's dictionaries mean: which keys make an event, a frame, a segment, a block, and where each value goes.
#ifndef VR_SNAPSHOT_SCHEMA_H
#define VR_SNAPSHOT_SCHEMA_H

#include "base/text.h"
#include "snapshot/pickle_vm.h"
#include "snapshot/row_tables.h"

// What a dictionary of these keys is: FRAME, EVENT, SEGMENT, BLOCK, TENANT, ANNOTATION, or DICT where the keys do not tell.
enum vr_tag vr_schema_classify(const uint64_t *pairs, size_t count);
// Stores a dictionary as a row of the table of `kind` (or as a frame) and puts what stands for it in *value. Keys that mean nothing
// there are skipped, of repeated keys the last one counts. BAD_INPUT for a value of the wrong type, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_schema_store(struct vr_machine *machine, enum vr_tag kind, const uint64_t *pairs, size_t count, uint64_t *value);
// Sets further keys of what was stored. BAD_INPUT for a frame, which may have been used already.
enum vram_status vr_schema_amend(struct vr_machine *machine, uint64_t value, const uint64_t *pairs, size_t count);

// For readers that recognise an event or a block before it is made a dictionary (vr_row_fields): the action or state `word` into its slots.
void vr_schema_put_action(uint64_t word, uint64_t *slots);
void vr_schema_put_state(uint64_t word, uint64_t *slots);

// Makes the dictionary behind *value a row or frame of `kind` (as its keys say, for DICT), where *value is the dictionary or a
// reference to it. Does nothing when it is no dictionary, or when the keys do not tell.
enum vram_status vr_schema_recognise(struct vr_machine *machine, enum vr_tag kind, uint64_t *value);

// ---- Data that is no recording but has one inside, or a part of one: what to do about it, in the refusal.

// A dictionary without `segments` and `device_traces` / a list, in place of a recording. BAD_INPUT with a line; OK where it is neither of
// these.
enum vram_status vr_misplaced_dict(struct vr_machine *machine, const uint64_t *pairs, size_t count);
enum vram_status vr_misplaced_list(struct vr_machine *machine, const uint64_t *items, size_t count);

// ---- Values that the columns of the model cannot hold: kept as JSON text while reading, they become the extras of the model.

// ---- A value of the machine as JSON text (compact, ASCII), for settings and for metadata that is no string.

// The string id of the JSON text of a value, strings included.
enum vram_status vr_json_text_string(struct vr_machine *machine, uint64_t value, uint32_t *id);

// ---- What the columns of the model cannot say is kept as text while reading, and becomes the model's extras at the end.
//
// Everything here is off the beaten track: a recording as PyTorch writes it keeps nothing.

#define VR_ROW_PENDING UINT64_MAX // the row is not known yet: vr_keep_settle() says it

// Keeps the value of a key. What would be too much text is not kept, which is no failure: it reads as if it were not there, and the machine
// knows its key.
// The value's items are dropped. LIMIT (also nesting beyond 500 levels, with a message), NO_HOST_MEMORY.
enum vram_status vr_keep(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint64_t value);
// Keeps a value that is text already; 0 says that the row does not have the key. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_keep_text(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint32_t text);
// What was kept of the key before does not count.
enum vram_status vr_keep_cancel(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key);
// What was kept from number `first` on, and is pending, is of `row`; or is forgotten.
void vr_keep_settle(struct vr_machine *machine, size_t first, uint64_t row);
void vr_keep_forget(struct vr_machine *machine, size_t first);

// Sorts by owner and row, in the order of the file, and leaves one of each key: the last. For vr_kept_of().
void vr_keep_sort(struct vr_machine *machine);
// The kept entries of rows [row, row + count): where they begin and how many they are.
size_t vr_kept_of(const struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint64_t count, size_t *first);

#endif
