// alike.h: what-if replays that no result tells apart although their option strings differ.
#ifndef VR_REPLAY_ALIKE_H
#define VR_REPLAY_ALIKE_H

#include "replay/script.h"

// Appends a text that is the same for two option strings only where every replay of the scripts under them, in whatever memory, comes to
// the same: the settings in force, without what cannot have an effect on these requests. conf NULL: each recording's own. BAD_OPTION for a
// string that no replay takes; NO_HOST_MEMORY.
enum vram_status vr_alike_key(const struct vr_script *scripts, size_t count, enum vram_whatif_start start, const char *conf,
                              struct vr_text *key);

#endif
