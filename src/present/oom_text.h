// oom_text.h: the out-of-memory events of a device, for people.
#ifndef VR_PRESENT_OOM_TEXT_H
#define VR_PRESENT_OOM_TEXT_H

#include "base/text.h"
#include "vram/report.h"

// All of them, the last one in full. source may be NULL.
void vr_oom_report(struct vr_text *text, const struct vram_style *style, const struct vram_report_device *device,
                   const struct vram_report_source *source);

#endif
