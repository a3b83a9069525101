// logdict.h: the dictionaries of a recording file being read: everything named so far by blocks and tail.
#ifndef VR_HISTORY_LOGDICT_H
#define VR_HISTORY_LOGDICT_H

#include "history/logblock.h"
#include "model/builder.h"

// Rows as in the file. The empty string and the empty stack exist from the start. Nothing is searched, so there are no hash tables.
struct vr_log_dictionary {
    struct vr_budget *budget; // the reader's
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

// Holds nothing on failure. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_log_dictionary_init(struct vr_log_dictionary *dictionary, struct vr_budget *budget);
void vr_log_dictionary_release(struct vr_log_dictionary *dictionary);
// Makes room for `count` numbers in the scratch column.
enum vram_status vr_log_dictionary_scratch(struct vr_log_dictionary *dictionary, size_t count);

// Returns whether the section belongs to a dictionary.
VR_INLINE bool vr_log_is_dictionary(uint64_t tag) { return tag >= VR_LOG_STRINGS && tag <= VR_LOG_MODULES; }
// Adds the section's new rows. BAD_INPUT for rows that leave a gap, name a missing row, or are not UTF-8.
enum vram_status vr_log_dictionary_section(struct vr_log_dictionary *dictionary, struct vr_log_reading *reading);
// Adds the row of a tail record. Ignores records of other kinds and returns OK.
enum vram_status vr_log_dictionary_record(struct vr_log_dictionary *dictionary, unsigned kind, const unsigned char *record, size_t length);

#endif
