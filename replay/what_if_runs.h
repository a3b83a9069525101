// what_if_runs.h: what-if replays, each made once, and one setting tried on recordings.
#ifndef VR_REPLAY_WHAT_IF_RUNS_H
#define VR_REPLAY_WHAT_IF_RUNS_H

#include "replay/script.h"
#include "vram/replay.h"
#include "vram/sim.h"

// ---- What-if replays of one device's history, each made once. A search that stops when it may make no more begins anew the next time and
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
// *result is borrowed until the player is closed. options->conf is not NULL; known replays are told apart by it, the memory and the start
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
