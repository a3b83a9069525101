// print.h: what the printers of replay results share.
#ifndef VR_REPLAY_PRINT_H
#define VR_REPLAY_PRINT_H

#include "base/text.h"
#include "vram/replay.h"

// Gives the whole text to `write` and releases it. NO_HOST_MEMORY when it is incomplete, IO when write() returned false.
enum vram_status vr_print_hand_over(struct vr_text *text, vram_write write, void *user);
// The recording's name as a line of its own; nothing for NULL.
void vr_print_title(struct vr_text *text, const struct vram_style *style, const char *file);

#endif
