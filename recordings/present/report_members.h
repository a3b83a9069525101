// report_members.h: members of the report's JSON that several of its files print.
#ifndef VR_PRESENT_REPORT_MEMBERS_H
#define VR_PRESENT_REPORT_MEMBERS_H

#include "base/json_rows.h"
#include "vram/report.h"

#define GROUP_FACTS(X)                                                                                                                     \
    X(TEXT, "site", it->name, ALWAYS, "call site, call stack or library")                                                                  \
    X(U64, "bytes", it->bytes, ALWAYS, "bytes of its allocations")                                                                         \
    X(U64, "count", it->count, ALWAYS, "number of its allocations")

// Prints the groups as an array of objects.
VR_INLINE void vr_report_json_groups(struct vr_json *json, const char *key, const struct vram_report_group *groups, size_t count) {
    vr_json_array(json, key);
    for (const struct vram_report_group *it = groups; it < groups + count; it++) {
        vr_json_object(json, NULL);
        GROUP_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

// Prints a device's memory and its history as an object.
void vr_report_json_device(struct vr_json *json, const char *key, const struct vram_report_device *device);
// Print arrays of the failed requests, and of the causes of each.
void vr_report_json_oom_events(struct vr_json *json, const char *key, const struct vram_report_device *device);
void vr_report_json_oom_causes(struct vr_json *json, const char *key, const struct vram_report_device *device);

#endif
