// history_text.h: the value of VRAM_HISTORY.
#ifndef VR_ENTRY_HISTORY_TEXT_H
#define VR_ENTRY_HISTORY_TEXT_H

#include "vram/history.h"

enum { VR_SKIP_MOST = 16 }; // maximum number of actions that the text may skip
struct vr_history_text {
    char *storage; // a copy of the text; vr_history_parse() changes it, and the options point into it
    const char *skip[VR_SKIP_MOST];
};
// Parses text->storage into *options. Sets *wanted to false for "", "0" and "off", and *dump to the path of the snapshot to write when the
// allocator is destroyed, or to NULL. Returns BAD_OPTION, with the offset of the character, for text that it does not understand.
enum vram_status vr_history_parse(struct vr_history_text *text, struct vram_history_options *options, const char **dump, bool *wanted,
                                  struct vram_error *error);

#endif
