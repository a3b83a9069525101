// report_members.h: members of the report's JSON that several of its files write.
#ifndef VR_PRESENT_REPORT_MEMBERS_H
#define VR_PRESENT_REPORT_MEMBERS_H

#include "base/json.h"
#include "vram/report.h"

// An array of objects: `site`, `bytes`, `count`.
void vr_report_json_groups(struct vr_json *json, const char *key, const struct vram_report_group *groups, size_t count);
// An object: what a device holds, and how it came to that.
void vr_report_json_device(struct vr_json *json, const char *key, const struct vram_report_device *device);
// Arrays: the requests that failed; why each of them did.
void vr_report_json_oom_events(struct vr_json *json, const char *key, const struct vram_report_device *device);
void vr_report_json_oom_causes(struct vr_json *json, const char *key, const struct vram_report_device *device);

#endif
