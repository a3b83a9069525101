// script.h: a recording prepared for what-if replays, and replays that are each made only once.
#ifndef VR_REPLAY_SCRIPT_H
#define VR_REPLAY_SCRIPT_H

#include "base/text.h"
#include "replay/initial_state.h"
#include "vram/replay.h"
#include "vram/sim.h"

// ---- A recording prepared for what-if replays: what is the same for all settings is computed once.

// The effect of an event on an allocator that makes its own decisions.
enum vr_step {
    VR_STEP_NOTHING, // does not concern memory, or was done with the previous event
    VR_STEP_OTHER,   // the allocator's own decision
    VR_STEP_ALLOC,
    VR_STEP_FREE, // both halves at once
    VR_STEP_FREE_REQUESTED,
    VR_STEP_FREE_COMPLETED,
    VR_STEP_RELEASE, // of a segment, or of a range of one
    VR_STEP_OOM,
};

// One device. Recorded addresses only identify allocations: each has a number that no other allocation has during its lifetime. Blocks of
// the initial state have the numbers of their rows.
struct vr_script_device {
    struct vr_recorded_device recorded; // of the script's model and the options below
    struct vr_options options;          // the script's, narrowed to what this device shows
    bool narrowed;                      // they differ from the script's
    struct vr_text conf;                // if so, their option string
    struct vr_start start;              // if it has anomalies, the device cannot be replayed and has no steps
    uint8_t *steps;                     // by event: enum vr_step
    uint32_t *names;                    // by event: the number of the allocation that it makes or ends
    size_t name_count;                  // all numbers are below this
    uint64_t largest_request_bytes;     // of the initial state and all events, including failed requests
    bool is_beyond;                     // more than VR_STAGE_SPACING is live at once, which no device holds
    uint64_t beyond_event;              // the first such event; VRAM_NO_OFFSET: the initial state
};

struct vr_script {
    const struct vr_model *model; // borrowed
    struct vr_text conf;          // recorded option string
    bool conf_inferred;           // inferred from the segments, because the recording has no settings
    struct vr_options options;    // parsed from it; needed to find the initial state
    struct vr_script_device *devices;
    size_t device_count;
};

// Prepares the recording, which is borrowed. The script is read-only afterwards: any number of threads may play it. one_device: prepare
// `device` only. BAD_OPTION for the recorded option string, BAD_INPUT as for vr_recorded_device_init(), NO_HOST_MEMORY; nothing is
// allocated then. Release by vr_script_release().
enum vram_status vr_script_init(struct vr_script *script, const struct vram_recording *recording, bool one_device, uint32_t device,
                                struct vram_error *error);
void vr_script_release(struct vr_script *script);

// Like vram_replay_whatif(), but for a prepared recording; ignores the options one_device and device. only_sums: do not find the event of
// the reserved peak, which is then VRAM_NO_OFFSET.
enum vram_status vr_script_play(const struct vr_script *script, const struct vram_whatif_options *options, bool only_sums,
                                struct vram_whatif_result **result, struct vram_error *error);

// ---- What-if replays that are each made only once, and the trial of one setting on recordings.

// ---- What-if replays of one device's history, each made only once. A search that stops at its limit of replays starts over next time, and
// finds the results of earlier replays.

// A zeroed struct is closed.
struct vr_player {
    struct vr_script script; // of the device, while open
    bool is_open;
    struct vram_whatif_result **played; // all replays so far
    size_t count;
    size_t capacity;
    size_t allowed; // number of further replays allowed now
    bool paused;    // another replay was needed but not allowed
    struct vram_error *error;
};

// Allows `replays` more replays; prepares the recording (borrowed) the first time. Returns the statuses of vr_script_init().
enum vram_status vr_player_open(struct vr_player *player, const struct vram_recording *recording, uint32_t device, size_t replays,
                                struct vram_error *error);
// Replays, or returns the known result of a replay with the same conf (not NULL), memory and start. *result is borrowed until the player is
// closed. LIMIT if the replay is not known and not allowed now (paused), or ran out of time.
enum vram_status vr_player_play(struct vr_player *player, const struct vram_whatif_options *options,
                                const struct vram_whatif_result **result);
// Frees all results.
void vr_player_close(struct vr_player *player);

// ---- The trial of one setting on recordings: what it reserves and costs, and the smallest memory in which it completes.

// The recordings and options of trials; read-only, shared by threads.
struct vr_trial_ground {
    const struct vr_script *scripts; // borrowed
    size_t count;
    uint64_t memory_bytes;
    enum vram_whatif_start start;
    enum vram_sim_profile profile;
    // Plays the only script; its result is borrowed until the trial ends. NULL: play each script every time.
    enum vram_status (*play)(void *player, const struct vram_whatif_options *options, const struct vram_whatif_result **result);
    void *player;
};

// Fills all of *setting except conf and today, which it reads: the setting's conf, or for today's each recording's own. *runs is the number
// of replays; *devices and *contradictions are the numbers of devices that could and could not be replayed. Returns the statuses of
// vram_replay_whatif().
enum vram_status vr_trial_run(const struct vr_trial_ground *ground, struct vram_tune_setting *setting, uint64_t *runs, uint64_t *devices,
                              uint64_t *contradictions, struct vram_error *error);
// Returns the number of a run's driver calls that get or release memory, for which a program waits.
uint64_t vr_memory_calls(const struct vram_whatif_device *device);

#endif
