// script.h: a recording made ready for what-if replays: what all of them have in common, whatever their settings, is found once.
#ifndef VR_REPLAY_SCRIPT_H
#define VR_REPLAY_SCRIPT_H

#include "base/text.h"
#include "replay/initial_state.h"
#include "vram/replay.h"

// What an event comes to for an allocator that decides on its own.
enum vr_step {
    VR_STEP_NOTHING, // says nothing about memory, or was done with the event before
    VR_STEP_OTHER,   // the allocator's own decision
    VR_STEP_ALLOC,
    VR_STEP_FREE, // both halves at once
    VR_STEP_FREE_REQUESTED,
    VR_STEP_FREE_COMPLETED,
    VR_STEP_RELEASE, // of a segment, or of a range of one
    VR_STEP_OOM,
};

// One device. Recorded addresses only name allocations here: each has a number instead, which it shares with none that lives at the same
// time. The start's blocks have the numbers of their rows.
struct vr_script_device {
    struct vr_recorded_device recorded; // of the script's model and the options below
    struct vr_options options;          // the script's, as far as this device shows them
    bool narrowed;                      // they are not the script's own
    struct vr_text conf;                // then the option string of these
    struct vr_start start;              // with anomalies there is nothing to play, and no steps
    uint8_t *steps;                     // enum vr_step, per event
    uint32_t *names;                    // per event: the number of the allocation that it makes or ends
    size_t name_count;                  // all numbers are below
    uint64_t largest_request_bytes;     // of the start and of the events, those that failed included
    bool is_beyond;                     // more than VR_STAGE_SPACING is live at once: no device holds that
    uint64_t beyond_event;              // from which event on; VRAM_NO_OFFSET: from the start on
};

struct vr_script {
    const struct vr_model *model; // borrowed
    struct vr_text conf;          // the option string recorded
    bool conf_inferred;           // from the segments: the recording has no settings
    struct vr_options options;    // and what it says: they tell how the start came about
    struct vr_script_device *devices;
    size_t device_count;
};

// Read-only afterwards: any number of threads may play it. Borrows the recording. one_device: only `device`. BAD_OPTION for a recorded
// option string, BAD_INPUT as for vr_recorded_device_init(), NO_HOST_MEMORY; nothing is left behind then. vr_script_release().
enum vram_status vr_script_init(struct vr_script *script, const struct vram_recording *recording, bool one_device, uint32_t device,
                                struct vram_error *error);
void vr_script_release(struct vr_script *script);

// vram_replay_whatif() of a recording made ready; of the options, one_device and device count no more. only_sums: when the most was
// reserved is not asked; that event is then VRAM_NO_OFFSET.
enum vram_status vr_script_play(const struct vr_script *script, const struct vram_whatif_options *options, bool only_sums,
                                struct vram_whatif_result **result, struct vram_error *error);

#endif
