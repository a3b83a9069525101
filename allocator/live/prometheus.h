// prometheus.h: what VRAM_PROMETHEUS asks for.
#ifndef VR_LIVE_PROMETHEUS_H
#define VR_LIVE_PROMETHEUS_H

#include "vram/stats.h"

// Starts what the variable's text asks for; nothing for NULL, "", "0" and "off". BAD_OPTION names the character; else the statuses of
// vram_prometheus_start().
enum vram_status vr_prometheus_start_text(struct vram_allocator *allocator, const char *text, struct vram_error *error);

#endif
