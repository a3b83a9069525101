// oom_text.h: the out-of-memory events of a device, for people.
#ifndef VR_PRESENT_OOM_TEXT_H
#define VR_PRESENT_OOM_TEXT_H

#include "present/report_output.h"

// All of them, the last one in full.
void vr_oom_report(struct vr_report_output *output, const struct vram_style *style, const struct vram_report_device *device);

#endif
