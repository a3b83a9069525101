// environment.h: what VRAM_HISTORY and VRAM_ON_OOM ask for.
#ifndef VR_ENTRY_ENVIRONMENT_H
#define VR_ENTRY_ENVIRONMENT_H

#include "vram/history.h"

// Starts what the variables ask for. BAD_OPTION names the variable and the character; then nothing is started. NO_HOST_MEMORY, IO.
// At the allocator's end the snapshot that was asked for is written.
enum vram_status vr_environment_apply(struct vram_allocator *allocator, struct vram_error *error);

// The text of VRAM_HISTORY as options: the paths and names in them point into `storage`, a copy of the text, which is changed.
// *wanted: false for "", "0" and "off". *dump: where to write a snapshot at the end, NULL for nowhere. At most VR_SKIP_MOST actions.
enum { VR_SKIP_MOST = 16 };
struct vr_history_text {
    char *storage;
    const char *skip[VR_SKIP_MOST];
};
enum vram_status vr_history_parse(struct vr_history_text *text, struct vram_history_options *options, const char **dump, bool *wanted,
                                  struct vram_error *error);

#endif
