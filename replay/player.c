// See player.h.
#include "replay/player.h"

enum vram_status vr_player_open(struct vr_player *player, const struct vram_recording *recording, uint32_t device, size_t replays,
                                struct vram_error *error) {
    player->error = error;
    player->allowed = replays;
    player->paused = false;
    if (!player->is_open) VR_TRY(vr_script_init(&player->script, recording, true, device, error));
    player->is_open = true;
    return VRAM_OK;
}

static const struct vram_whatif_result *find_played(const struct vr_player *player, const struct vram_whatif_options *options) {
    for (size_t i = 0; i < player->count; i++) {
        const struct vram_whatif_result *played = player->played[i];
        const bool same = played->memory_bytes == options->memory_bytes && played->start == options->start;
        if (same && strcmp(played->conf, options->conf) == 0) return played;
    }
    return NULL;
}

enum vram_status vr_player_play(struct vr_player *player, const struct vram_whatif_options *options,
                                const struct vram_whatif_result **result) {
    *result = find_played(player, options);
    if (*result != NULL) return VRAM_OK;
    player->paused = player->allowed == 0;
    if (player->paused) return VRAM_LIMIT;
    player->allowed--;
    VR_TRY(vr_grow((void **)&player->played, &player->capacity, player->count + 1, sizeof *player->played));
    VR_TRY(vr_script_play(&player->script, options, false, &player->played[player->count], player->error));
    *result = player->played[player->count++];
    return VRAM_OK;
}

void vr_player_close(struct vr_player *player) {
    for (size_t i = 0; i < player->count; i++) vram_whatif_result_destroy(player->played[i]);
    free(player->played);
    if (player->is_open) vr_script_release(&player->script);
    player->played = NULL;
    player->count = player->capacity = 0;
    player->is_open = false;
}
