// check_sharing.h: the checker's part in memory that other processes use, too.
#ifndef VR_CHECK_CHECK_SHARING_H
#define VR_CHECK_CHECK_SHARING_H

#include "check/check_board.h"
#include "check/check_state.h"

// Shared memory of this process: its addresses, and the key by which the processes know it.
struct vr_check_shared_range {
    uint64_t from, end, key;
    bool own; // this process allocated it
};

struct vr_check_sharing {
    struct vr_check_sharing_ops ops;
    struct vr_check_board *board; // NULL: not needed yet, or not available
    uint32_t row;
    bool alone; // nothing is compared
    struct vr_check_shared_range *ranges;
    size_t range_count, ranges_capacity;
    struct vr_map lanes; // 1 + row * VR_CHECK_BOARD_LANES + lane of another process -> 1 + lane here
};

// --- check_join.c ---------------------------------------------------------------------------------------------

// Returns what the process shares, if it is compared with others and has a row of the board; otherwise NULL. _begin takes a row.
struct vr_check_sharing *vr_check_sharing_of(const struct vr_check *check);
struct vr_check_sharing *vr_check_sharing_begin(struct vr_check *check);

#endif
