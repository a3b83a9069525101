// unknown_fields.h: values that the columns of the model cannot hold: kept as JSON text while reading, they become the extras of the model.
#ifndef VR_SNAPSHOT_UNKNOWN_FIELDS_H
#define VR_SNAPSHOT_UNKNOWN_FIELDS_H

#include "base/text.h"
#include "snapshot/pickle_vm.h"

// ---- A value of the machine as JSON text (compact, ASCII), for settings and for metadata that is no string.

// The string id of the JSON text of a value, strings included.
enum vram_status vr_json_text_string(struct vr_machine *machine, uint64_t value, uint32_t *id);

// ---- What the columns of the model cannot say is kept as text while reading, and becomes the model's extras at the end.  Everything here
// is off the beaten track: a recording as PyTorch writes it keeps nothing.

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
