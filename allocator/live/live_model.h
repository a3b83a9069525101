// live_model.h: copies of a live allocator become a model.
#ifndef VR_LIVE_LIVE_MODEL_H
#define VR_LIVE_LIVE_MODEL_H

#include "base/text.h"
#include "config/options.h"
#include "config/recorded_options.h"
#include "core/device_picture.h"
#include "live/oom_snapshot.h"
#include "live/tracer.h"
#include "model/builder.h"
#include "model/model.h"
#include "vram/accounts.h"
#include "vram/oom.h"

// What was copied of one device.
struct vr_copied_device {
    uint32_t ordinal;
    struct vr_picture picture;
    struct vr_event *events;
    size_t event_count;
    bool overflowed; // older events were overwritten
};

// What was copied of an allocator. Freed with vr_copied_release().
struct vr_copied {
    struct vr_tracer *tracer; // NULL: there never was a history. Its stacks are asked for names
    struct vr_copied_device devices[VRAM_MAX_DEVICES + 1];
    size_t device_count;
    size_t history_count; // of the model: one more than the largest ordinal
    struct vr_mark *marks;
    size_t mark_count;
    struct vr_instant now;
    struct vr_options options;
    char *conf;
    uint64_t max_entries;
    bool has_history;
    bool segments_only;
    const struct vr_oom_facts *oom_facts; // of an out of memory; NULL: of none
    bool has_host;                        // the last of the devices is pinned host memory
};
void vr_copied_release(struct vr_copied *copied);
// Copies the settings in force. NO_HOST_MEMORY.
enum vram_status vr_copy_settings(struct vram_allocator *allocator, struct vr_copied *copied);

// Makes the model, which is zeroed on entry, and released by the caller, also on failure. Without any lock. NO_HOST_MEMORY.
enum vram_status vr_live_model(const struct vr_copied *copied, struct vr_model *model);

// The settings in force as `allocator_settings`.

// Calls visit(key, value as JSON text, length, user) for every setting until it fails. Its status, or NO_HOST_MEMORY.
enum vram_status vr_settings_visit(const struct vr_copied *copied, vr_recorded_visitor visit, void *user);
// The same for what an out of memory adds to them.
enum vram_status vr_settings_visit_oom(const struct vr_oom_facts *oom_facts, vr_recorded_visitor visit, void *user);

// Pinned host memory in a history and in snapshots.

// From now on this memory (NULL: none) is recorded, and none before. With the tracer's mutex.
void vr_tracer_record_host(struct vr_tracer *tracer, struct vram_host *host);
// Copies the memory that is recorded as one device more, with its history where one is asked for. NO_HOST_MEMORY.
enum vram_status vr_copy_host(struct vr_copied *copied);
// Only what it looks like. at() is called at that moment, under the memory's mutex; not where there is no memory for it.
enum vram_status vr_copy_host_state(struct vr_copied *copied, void (*at)(void *user), void *user);

// Accounts (vram/accounts.h) as text.

#define VR_ACCOUNTS_KEY "vram_accounts_0" // of a snapshot, which is of one moment

// Appends the accounts as one JSON object: the value of a setting `vram_accounts_<slot>`.
void vr_accounts_text(const struct vram_accounts *accounts, struct vr_text *text);

#endif
