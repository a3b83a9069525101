// stage.h: the allocator and the simulated driver for a replay, and building the initial state on them.
#ifndef VR_REPLAY_STAGE_H
#define VR_REPLAY_STAGE_H

#include "base/hash.h"
#include "replay/drive.h"
#include "replay/initial_state.h"
#include "vram/driver.h"
#include "vram/pool.h"
#include "vram/sim.h"

// More memory than any device has: the most that a replay may hold, because its tables grow with it.
#define VR_STAGE_ENDLESS ((uint64_t)1 << 43)
// Base of memory without recorded addresses, with high_addresses. User space ends at 2^47 or, with five-level page tables, at 2^56, so
// recordings have no addresses here.
#define VR_STAGE_HIGH ((uint64_t)1 << 54)

// One device of a recording, as device 0 of its own simulated driver. Owns driver, allocator and streams. Recorded streams are handles of
// another process; each is replaced by a simulated stream, in the same order, because that determines the order of releases.
struct vr_replay_stage {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    const struct vr_recorded_device *recorded; // borrowed, for its streams
    uint64_t *streams;                         // simulated streams, in the order of the recorded device's
    size_t last;                               // index of the most recently used stream
    struct vram_pool **pools; // by the pool's number in the recording, one reference each; NULL: number 0, or a pool that was given up
    struct vr_map began_with; // bases of the reservations built for the initial state (base -> 1)
    uint32_t entered;         // the pool that requests go to by an open route; 0: the default pools
};

struct vr_stage_options {
    const char *conf;
    uint64_t memory_bytes; // the device's memory as the allocator sees it; an expandable segment reserves 9/8 of it
    enum vram_sim_profile profile;
    uint32_t pytorch;    // VR_PYTORCH(): the version whose rules apply unless conf names one
    bool high_addresses; // place the simulator's own memory above all recorded addresses
};

// Opens a stage. BAD_OPTION, NO_HOST_MEMORY, DRIVER. Call vr_stage_close() even after a failure.
enum vram_status vr_stage_open(struct vr_replay_stage *stage, const struct vr_recorded_device *recorded,
                               const struct vr_stage_options *options, struct vram_error *error);
void vr_stage_close(struct vr_replay_stage *stage);

// Returns the simulated stream for a recorded one, which must be a stream of the recorded device.
uint64_t vr_stage_stream(struct vr_replay_stage *stage, uint64_t recorded);

// Directs requests, and the segments and blocks of drive.h, to this pool of the recorded device; costs nothing if it is already current.
// If the pool was given up, creates it again. NO_HOST_MEMORY, DRIVER.
enum vram_status vr_stage_enter_other(struct vr_replay_stage *stage, uint32_t pool);
VR_INLINE enum vram_status vr_stage_enter(struct vr_replay_stage *stage, uint32_t pool) {
    return VR_LIKELY(stage->entered == pool) ? VRAM_OK : vr_stage_enter_other(stage, pool);
}
// Releases the wholly free segments of a private pool; does nothing for a pool that was given up.
enum vram_status vr_stage_trim(struct vr_replay_stage *stage, uint32_t pool);
// Drops the pool's reference, as the program did: memory freed in it later is released with the cache.
void vr_stage_give_up(struct vr_replay_stage *stage, uint32_t pool);

// Finds the largest memory (at most VR_STAGE_SPACING) with which no recorded expandable segment would reserve address space that the
// recording uses for something else. NO_HOST_MEMORY.
#define VR_STAGE_SPACING ((uint64_t)1 << 40)
enum vram_status vr_stage_spacing(const struct vr_recorded_device *recorded, const struct vr_start *start, uint64_t *memory_bytes);

// Builds the initial state at its recorded addresses. MISMATCH with a line in *error if the allocator or the simulator refuses a part.
enum vram_status vr_stage_build(struct vr_replay_stage *stage, const struct vr_recorded_device *recorded, const struct vr_start *start,
                                struct vram_error *error);

#endif
