// report_members.h: members of the report's JSON that several of its files write.
#ifndef VR_PRESENT_REPORT_MEMBERS_H
#define VR_PRESENT_REPORT_MEMBERS_H

#include "base/json_rows.h"
#include "vram/report.h"

#define GROUP_FACTS(X)                                                                                                                     \
    X(TEXT, "site", it->name, ALWAYS, "call site, call stack or library")                                                                  \
    X(U64, "bytes", it->bytes, ALWAYS, "bytes of its allocations")                                                                         \
    X(U64, "count", it->count, ALWAYS, "number of its allocations")

// An array of objects.
VR_INLINE void vr_report_json_groups(struct vr_json *json, const char *key, const struct vram_report_group *groups, size_t count) {
    vr_json_array(json, key);
    for (const struct vram_report_group *it = groups; it < groups + count; it++) {
        vr_json_object(json, NULL);
        GROUP_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

// An object: what a device holds, and how it came to that.
void vr_report_json_device(struct vr_json *json, const char *key, const struct vram_report_device *device);
// Arrays: the requests that failed; why each of them did.
void vr_report_json_oom_events(struct vr_json *json, const char *key, const struct vram_report_device *device);
void vr_report_json_oom_causes(struct vr_json *json, const char *key, const struct vram_report_device *device);

#endif
