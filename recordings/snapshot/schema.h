// schema.h: the meaning of PyTorch's dictionaries: which keys identify an event, a frame, a segment or a block, and where each value goes.
#ifndef VR_SNAPSHOT_SCHEMA_H
#define VR_SNAPSHOT_SCHEMA_H

#include "base/text.h"
#include "snapshot/pickle_vm.h"
#include "snapshot/row_tables.h"

// Returns the kind of a dictionary with these keys: FRAME, EVENT, SEGMENT, BLOCK, TENANT, ANNOTATION, or DICT if the keys do not identify
// one.
enum vr_tag vr_schema_classify(const uint64_t *pairs, size_t count);
// Stores a dictionary as a row of the table of `kind` (or as a frame) and sets *value to it. Keeps unknown keys as extras; of repeated keys
// the last one counts. BAD_INPUT for a value of the wrong type, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_schema_store(struct vr_machine *machine, enum vr_tag kind, const uint64_t *pairs, size_t count, uint64_t *value);
// Sets further keys of a stored dictionary. BAD_INPUT for a frame, which may already be in use.
enum vram_status vr_schema_amend(struct vr_machine *machine, uint64_t value, const uint64_t *pairs, size_t count);

// Put the action or state `word` into its slots. For readers that recognize an event or a block before it is a dictionary (vr_row_fields).
void vr_schema_put_action(uint64_t word, uint64_t *slots);
void vr_schema_put_state(uint64_t word, uint64_t *slots);

// Turns the dictionary in *value, or the one that *value refers to, into a row or frame of `kind` (for DICT: of the kind that its keys
// identify). Does nothing if it is not a dictionary or its keys identify no kind.
enum vram_status vr_schema_recognise(struct vr_machine *machine, enum vr_tag kind, uint64_t *value);

// ---- Data that is not a recording but contains one, or is part of one: the message says what to do.

// Check a dictionary without `segments` and `device_traces`, or a list, instead of a recording. BAD_INPUT with a message if it contains a
// recording or is part of one; otherwise OK.
enum vram_status vr_misplaced_dict(struct vr_machine *machine, const uint64_t *pairs, size_t count);
enum vram_status vr_misplaced_list(struct vr_machine *machine, const uint64_t *items, size_t count);

// ---- Values that the columns of the model cannot hold: kept as JSON text while reading, and the model's extras afterwards.

// ---- A value of the machine as JSON text (compact, ASCII), for settings and for metadata that is not a string.

// Sets *id to the string id of a value's JSON text; strings are converted, too.
enum vram_status vr_json_text_string(struct vr_machine *machine, uint64_t value, uint32_t *id);

// ---- Values that the model's columns cannot express: kept as text while reading, and moved to the model's extras at the end.
//
// All of this is rare: a recording written by PyTorch keeps nothing.

#define VR_ROW_PENDING UINT64_MAX // the row is not known yet: vr_keep_settle() sets it

// Keeps the value of a key. Text that is too long is not kept, and that is not an error: the key reads as absent, and the machine records
// it as lost. Drops the value's items. LIMIT (also if nested deeper than 500 levels, with a message), NO_HOST_MEMORY.
enum vram_status vr_keep(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint64_t value);
// Keeps a value that is already text; 0 means that the row does not have the key. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_keep_text(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint32_t text);
// Cancels what was kept of the key.
enum vram_status vr_keep_cancel(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key);
// Assign the pending entries from `first` on to `row`, or forget them.
void vr_keep_settle(struct vr_machine *machine, size_t first, uint64_t row);
void vr_keep_forget(struct vr_machine *machine, size_t first);

// Sorts entries by owner and row, in file order, and leaves the last one of each key. Call before vr_kept_of().
void vr_keep_sort(struct vr_machine *machine);
// Returns the number of kept entries of rows [row, row + count); sets *first to the first of them.
size_t vr_kept_of(const struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint64_t count, size_t *first);

#endif
