// trial.h: one setting tried on recordings: what it holds, what it costs, the smallest memory in which it completes.
#ifndef VR_REPLAY_TRIAL_H
#define VR_REPLAY_TRIAL_H

#include "replay/script.h"
#include "vram/replay.h"
#include "vram/sim.h"

// What is tried; shared by trials on several threads, read-only.
struct vr_trial_ground {
    const struct vr_script *scripts; // borrowed
    size_t count;
    uint64_t memory_bytes;
    enum vram_whatif_start start;
    enum vram_sim_profile profile;
    // Plays a script, the only one, for a result that is borrowed until the trial is over; NULL: it is played anew each time.
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
