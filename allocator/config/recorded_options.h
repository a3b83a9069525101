// recorded_options.h: the settings in `allocator_settings` of PyTorch's snapshots: keys, and values as JSON.
#ifndef VR_CONFIG_RECORDED_OPTIONS_H
#define VR_CONFIG_RECORDED_OPTIONS_H

#include "config/options.h"
#include "model/model.h"

// A known key of `allocator_settings`.
struct vr_recorded_key {
    const char *meaning; // one English sentence without a full stop
    char usual[192];     // its value in a program that sets nothing, as JSON
};

// Called with each key, and its value as JSON text of `length` characters. A status other than OK ends the visit.
typedef enum vram_status (*vr_recorded_visitor)(const char *key, const char *json, size_t length, void *user);

// Describes the key. Returns false, leaving *known unchanged, if the key is unknown.
bool vr_recorded_find(const char *key, struct vr_recorded_key *known);
// Returns whether the value (JSON) is the key's usual one, in any spelling. False for an unknown key.
bool vr_recorded_is_usual(const char *key, const char *value);
// Calls visit for every option that a snapshot records. Returns its status, or NO_HOST_MEMORY.
enum vram_status vr_recorded_visit(const struct vr_options *options, vr_recorded_visitor visit, void *user);
// Returns the maximum number of calls that vr_recorded_visit() makes.
size_t vr_recorded_most(void);
// Appends the recorded settings as an option string of the keys that affect placement, which a replay needs; "" if the recording has no
// settings. Structured values take precedence over the recorded string, which may be older. Returns true if there are no settings and they
// were inferred from the recording's segments.
bool vr_recorded_conf(const struct vr_model *model, struct vr_text *conf);
// Returns whether it is unknown if requests were padded (torch_npu pads them): neither the settings nor the live blocks show it. Then sets
// torch_npu's padding and alignment in *options.
bool vr_recorded_may_pad(const struct vr_model *model, struct vr_options *options);
// Narrows the options that vr_recorded_conf() inferred from the whole recording to one device: without expandable segments if it shows only
// ordinary ones, without padding if its blocks are too small for it. Returns whether *options changed.
bool vr_recorded_narrow(const struct vr_model *model, uint32_t device, struct vr_options *options);

#endif
