// logdict.h: the dictionaries of a recording file while it is read: what was named so far, by the blocks and by the tail.
#ifndef VR_HISTORY_LOGDICT_H
#define VR_HISTORY_LOGDICT_H

#include "history/logblock.h"
#include "model/builder.h"

// Rows as in the file. The empty string and the empty stack are there from the start; nothing is looked up, so there are no hash tables.
struct vr_log_dictionary {
    struct vr_budget *budget; // of whoever reads
    struct vr_strings strings;
    size_t string_bytes_capacity;
    size_t string_capacity;
    struct vr_frames frames;
    size_t frame_capacity[3];
    struct vr_stacks stacks;
    size_t stack_frame_capacity;
    size_t stack_capacity;
    struct vr_module *modules;
    size_t module_count;
    size_t module_capacity;
    uint64_t *scratch; // one column
    size_t scratch_capacity;
};

// On failure nothing is held. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_log_dictionary_init(struct vr_log_dictionary *dictionary, struct vr_budget *budget);
void vr_log_dictionary_release(struct vr_log_dictionary *dictionary);
// Room for `count` numbers in the scratch.
enum vram_status vr_log_dictionary_scratch(struct vr_log_dictionary *dictionary, size_t count);

// Whether the section is of a dictionary.
VR_INLINE bool vr_log_is_dictionary(uint64_t tag) { return tag >= VR_LOG_STRINGS && tag <= VR_LOG_MODULES; }
// Adds the rows of the section that are not here yet. BAD_INPUT for rows that leave a gap, name what is not here or are no UTF-8.
enum vram_status vr_log_dictionary_section(struct vr_log_dictionary *dictionary, struct vr_log_reading *reading);
// The same for a record of the tail; others are no business of it and OK.
enum vram_status vr_log_dictionary_record(struct vr_log_dictionary *dictionary, unsigned kind, const unsigned char *record, size_t length);

#endif
