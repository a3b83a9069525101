// player.h: what-if replays of one device's history, each made once. A search that stops when it may make no more begins anew the next time
// and finds those known that were made before.
#ifndef VR_REPLAY_PLAYER_H
#define VR_REPLAY_PLAYER_H

#include "replay/script.h"

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

#endif
