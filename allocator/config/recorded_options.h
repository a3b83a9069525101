// recorded_options.h: settings as PyTorch's snapshots have them, in `allocator_settings`: keys, and values as JSON.
#ifndef VR_CONFIG_RECORDED_OPTIONS_H
#define VR_CONFIG_RECORDED_OPTIONS_H

#include "config/options.h"
#include "model/model.h"

// A key that is known there.
struct vr_recorded_key {
    const char *meaning; // one English sentence without a full stop
    char usual[192];     // the value of a program that sets nothing, as JSON
};

// Called with each key, and its value as JSON text of `length` characters. What it returns other than OK ends the visit.
typedef enum vram_status (*vr_recorded_visitor)(const char *key, const char *json, size_t length, void *user);

// What is known of the key; false, with *known untouched, when nothing is.
bool vr_recorded_find(const char *key, struct vr_recorded_key *known);
// Whether the value (JSON) is the key's usual one, however it is written. False for a key that is not known.
bool vr_recorded_is_usual(const char *key, const char *value);
// Calls visit for every option that a snapshot says. Its status, or NO_HOST_MEMORY.
enum vram_status vr_recorded_visit(const struct vr_options *options, vr_recorded_visitor visit, void *user);
// How often vr_recorded_visit() calls at most.
size_t vr_recorded_most(void);
// Appends the settings a recording says were in force, as an option string of the keys that decide placement, which a replay must know; ""
// when the recording has no settings. The structured values win over the recorded string, which may be older. True when the recording has
// no settings and they were inferred from its segments.
bool vr_recorded_conf(const struct vr_model *model, struct vr_text *conf);
// Whether no live block tells that requests were padded, as torch_npu's are, nor that they were not, and the settings do not say it.
// *options then gets torch_npu's padding and alignment.
bool vr_recorded_may_pad(const struct vr_model *model, struct vr_options *options);
// What vr_recorded_conf() inferred of the whole recording, for one device: without expandable segments where it shows only ordinary ones,
// without padding where its blocks are too small for it. Returns whether that changed *options.
bool vr_recorded_narrow(const struct vr_model *model, uint32_t device, struct vr_options *options);

#endif
