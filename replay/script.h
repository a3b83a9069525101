// script.h: a recording made ready for what-if replays, and such replays, each made once.
#ifndef VR_REPLAY_SCRIPT_H
#define VR_REPLAY_SCRIPT_H

#include "base/text.h"
#include "replay/initial_state.h"
#include "vram/replay.h"
#include "vram/sim.h"

// ---- A recording made ready for what-if replays: what all of them have in common, whatever their settings, is found once.

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

// ---- What-if replays, each made once, and one setting tried on recordings.

// ---- What-if replays of one device's history, each made once. A search that stops when it may make no more starts over the next time and
// finds those known that were made before.

// All-zero: closed.
struct vr_player {
    struct vr_script script; // of the device, while it is open
    bool is_open;
    struct vram_whatif_result **played; // every replay so far
    size_t count;
    size_t capacity;
    size_t allowed; // further replays now
    bool paused;    // one more was wanted
    struct vram_error *error;
};

// Allows so many replays from now on; makes the recording (borrowed) ready the first time. Statuses of vr_script_init().
enum vram_status vr_player_open(struct vr_player *player, const struct vram_recording *recording, uint32_t device, size_t replays,
                                struct vram_error *error);
// *result is borrowed until the player is closed. options->conf is not NULL; known replays are found by it, the memory and the start
// alone. LIMIT where it was not made before and may not be made now (paused), or came to its end by the clock.
enum vram_status vr_player_play(struct vr_player *player, const struct vram_whatif_options *options,
                                const struct vram_whatif_result **result);
// Forgets all of them.
void vr_player_close(struct vr_player *player);

// ---- One setting tried on recordings: what it holds, what it costs, the smallest memory in which it completes.

// What is tried; shared by trials on several threads, read-only.
struct vr_trial_ground {
    const struct vr_script *scripts; // borrowed
    size_t count;
    uint64_t memory_bytes;
    enum vram_whatif_start start;
    enum vram_sim_profile profile;
    // Plays a script, the only one, for a result that is borrowed until the trial is over; NULL: it is played each time.
    enum vram_status (*play)(void *player, const struct vram_whatif_options *options, const struct vram_whatif_result **result);
    void *player;
};

// Fills everything of *setting but conf and today, which it reads: the setting's conf, or for today's each recording's own. *runs is how
// many replays it took; *devices and *contradictions count devices that could and could not be replayed. Statuses of vram_replay_whatif().
enum vram_status vr_trial_run(const struct vr_trial_ground *ground, struct vram_tune_setting *setting, uint64_t *runs, uint64_t *devices,
                              uint64_t *contradictions, struct vram_error *error);
// Driver calls of a run that get memory or give it back: what a program waits for.
uint64_t vr_memory_calls(const struct vram_whatif_device *device);

#endif
