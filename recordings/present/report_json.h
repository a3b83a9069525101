// report_json.h: parts of the report's JSON that others show, too.
#ifndef VR_PRESENT_REPORT_JSON_H
#define VR_PRESENT_REPORT_JSON_H

#include "base/json.h"
#include "vram/report.h"

// Members `oom` and `oom_causes`, as in the report.
void vr_report_json_ooms(struct vr_json *json, const struct vram_report_device *device);

#endif
