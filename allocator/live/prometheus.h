// prometheus.h: starts the export that VRAM_PROMETHEUS requests.
#ifndef VR_LIVE_PROMETHEUS_H
#define VR_LIVE_PROMETHEUS_H

#include "vram/stats.h"

// Starts the export described by the variable's text; does nothing for NULL, "", "0" and "off". BAD_OPTION gives the position; other
// statuses are those of vram_prometheus_start().
enum vram_status vr_prometheus_start_text(struct vram_allocator *allocator, const char *text, struct vram_error *error);

#endif
