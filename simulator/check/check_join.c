// Whether a process is compared with others, and what its host tells them.
#include <stdlib.h>

#include "check/check_sharing.h"

void vr_check_join(struct vr_check *check, const struct vr_check_sharing_ops *ops) {
    check->sharing = calloc(1, sizeof *check->sharing);
    if (check->sharing == NULL)
        check->failed = true;
    else
        check->sharing->ops = *ops;
}

void vr_check_sharing_release(struct vr_check *check) {
    if (check->sharing == NULL) return;
    vr_map_release(&check->sharing->lanes);
    free(check->sharing->ranges);
    free(check->sharing);
}

void vr_check_alone(struct vr_check *check) {
    struct vr_check_sharing *sharing = check->sharing;
    if (sharing == NULL || sharing->alone) return;
    sharing->alone = true;
    if (sharing->board != NULL) vr_check_board_withdraw(sharing->board, sharing->row);
}

void vr_check_leave(struct vr_check *check) {
    if (check->sharing == NULL) return;
    check->sharing->alone = true;
    check->sharing->board = NULL;
}

struct vr_check_sharing *vr_check_sharing_begin(struct vr_check *check) {
    struct vr_check_sharing *sharing = check->sharing;
    if (sharing == NULL || sharing->alone || vr_check_is_off(check)) return NULL;
    if (sharing->board != NULL) return sharing;
    struct vr_check_board *board = sharing->ops.board();
    sharing->row = board == NULL ? VR_CHECK_BOARD_PROCESSES : vr_check_board_join(board, sharing->ops.process);
    sharing->alone = sharing->row == VR_CHECK_BOARD_PROCESSES;
    if (sharing->alone) return NULL;
    sharing->board = board;
    vr_check_sharing_host(check);
    return sharing;
}

struct vr_check_sharing *vr_check_sharing_of(const struct vr_check *check) {
    struct vr_check_sharing *sharing = check->sharing;
    return sharing == NULL || sharing->alone || sharing->board == NULL ? NULL : sharing;
}

bool vr_check_shares(const struct vr_check *check, uint64_t address) {
    const struct vr_check_sharing *sharing = vr_check_sharing_of(check);
    bool found = false;
    for (size_t i = 0; sharing != NULL && i < sharing->range_count && !found; i++)
        found = address == 0 || (sharing->ranges[i].from <= address && address < sharing->ranges[i].end);
    return found;
}

void vr_check_sharing_host(struct vr_check *check) {
    const struct vr_check_sharing *sharing = vr_check_sharing_of(check);
    const struct vr_check_clock *host = &check->lanes[VR_CHECK_HOST].clock;
    for (size_t i = 0; sharing != NULL && i < host->count; i++) {
        const struct vr_check_lane *lane = &check->lanes[i];
        if (lane->kind == VR_CHECK_LANE_AWAY)
            vr_check_board_raise(sharing->board, lane->away_row, lane->away_lane, host->ticks[i]);
        else if (i < VR_CHECK_BOARD_LANES)
            vr_check_board_raise(sharing->board, sharing->row, (uint32_t)i, host->ticks[i]);
    }
}
