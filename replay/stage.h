// stage.h: the allocator and the simulated driver that a history is replayed on, and the building of its start state.
#ifndef VR_REPLAY_STAGE_H
#define VR_REPLAY_STAGE_H

#include "base/hash.h"
#include "core/drive.h"
#include "replay/initial_state.h"
#include "vram/driver.h"
#include "vram/pool.h"
#include "vram/sim.h"

// More than any device has; what a replay may hold at most, since its tables grow with it.
#define VR_STAGE_ENDLESS ((uint64_t)1 << 43)
// With high_addresses, where memory begins that the recording does not place. User space ends at 2^47 or, with five-level page tables, at
// 2^56: recordings have no address up here.
#define VR_STAGE_HIGH ((uint64_t)1 << 54)

// One device of a recording on a simulated device of its own, number 0. Owns driver, allocator and streams. Recorded streams
// are handles of another process: each has a stream of the simulator instead, and their order, which decides the order of
// releases, is kept.
struct vr_replay_stage {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    const struct vr_recorded_device *recorded; // borrowed: its streams
    uint64_t *streams;                         // ours, in the order of the recorded device's
    size_t last;                               // index of the stream asked for last
    struct vram_pool **pools;                  // by the recorded device's numbers, one reference each; [0], and those given up, are NULL
    struct vr_map began_with;                  // where the reservations of the start state begin: known to it
    uint32_t entered;                          // where requests go: a route to that pool is open; 0: to the default pools
};

struct vr_stage_options {
    const char *conf;
    uint64_t memory_bytes; // what the allocator takes the device's memory for; 9/8 of it is what an expandable segment reserves
    enum vram_sim_profile profile;
    uint32_t pytorch;    // VR_PYTORCH(): whose rules, where conf names none
    bool high_addresses; // the simulator's own addresses lie above what programs record
};

// BAD_OPTION, NO_HOST_MEMORY, DRIVER. vr_stage_close() also after a failure.
enum vram_status vr_stage_open(struct vr_replay_stage *stage, const struct vr_recorded_device *recorded,
                               const struct vr_stage_options *options, struct vram_error *error);
void vr_stage_close(struct vr_replay_stage *stage);

// Our stream for a recorded one, which must be one of the recorded device.
uint64_t vr_stage_stream(struct vr_replay_stage *stage, uint64_t recorded);

// From now on requests, and the segments and blocks of drive.h, are of this pool of the recorded device: the one operation that costs
// nothing when it changes nothing. A pool that was given up is made anew. NO_HOST_MEMORY, DRIVER.
enum vram_status vr_stage_enter_other(struct vr_replay_stage *stage, uint32_t pool);
VR_INLINE enum vram_status vr_stage_enter(struct vr_replay_stage *stage, uint32_t pool) {
    return VR_LIKELY(stage->entered == pool) ? VRAM_OK : vr_stage_enter_other(stage, pool);
}
// Gives the wholly free segments of a private pool back; nothing for one that was given up.
enum vram_status vr_stage_trim(struct vr_replay_stage *stage, uint32_t pool);
// The program no longer holds the pool: what is freed in it later goes back with the cache.
void vr_stage_give_up(struct vr_replay_stage *stage, uint32_t pool);

// The largest memory (at most VR_STAGE_SPACING) for which no expandable segment that the recording shows would reserve address
// space that the recording uses otherwise. NO_HOST_MEMORY.
#define VR_STAGE_SPACING ((uint64_t)1 << 40)
enum vram_status vr_stage_spacing(const struct vr_recorded_device *recorded, const struct vr_start *start, uint64_t *memory_bytes);

// Makes the start state at its recorded addresses. MISMATCH with a line in *error when the allocator or the simulator refuses a part of it.
enum vram_status vr_stage_build(struct vr_replay_stage *stage, const struct vr_recorded_device *recorded, const struct vr_start *start,
                                struct vram_error *error);

#endif
