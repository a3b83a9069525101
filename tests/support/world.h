// world.h: a simulated machine with an allocator on it, for tests: driver, optional fault wrapper, streams, and the records the
// allocator emits. Everything is made in one call and taken down in one, which says what was left behind.
#ifndef VR_TEST_WORLD_H
#define VR_TEST_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/record.h"
#include "vram/allocator.h"
#include "vram/driver.h"
#include "vram/sim.h"

#define VR_WORLD_DEVICES 2
#define VR_WORLD_STREAMS 4

// All-zero: one device of 80 GiB, manual completion off, default options, lowest address first.
struct vr_world_options {
    struct vram_sim_options sim;
    const char *conf; // NULL: ""; the environment is never read
    enum vram_tie_break tie_break;
    bool faults;         // puts a fault wrapper between allocator and simulator
    bool without_record; // no recorder is attached
};

struct vr_world {
    struct vram_driver *sim;    // the simulator
    struct vram_driver *driver; // what the allocator was given: the simulator or the wrapper around it
    struct vram_allocator *allocator;
    uint32_t device_count;
    uint64_t context[VR_WORLD_DEVICES];                  // primary contexts; device 0's is current on the thread that opened the world
    uint64_t stream[VR_WORLD_DEVICES][VR_WORLD_STREAMS]; // [d][0] is 0, the legacy stream; the others rise with their index
    struct vr_record *records;                           // since vr_world_open() or vr_world_forget(), oldest first
    size_t record_count;
    size_t record_capacity;
    bool record_lost; // a record did not fit into host memory: the test must fail
};

// Makes the machine, its streams and the allocator. options may be NULL. On failure nothing is left behind.
enum vram_status vr_world_open(struct vr_world *world, const struct vr_world_options *options);
// Takes everything down, the allocator first. Returns how many driver objects the allocator left behind (want: 0).
uint64_t vr_world_close(struct vr_world *world);
// Only the allocator, so that what it left can be looked at; vr_world_close() is still needed.
void vr_world_destroy_allocator(struct vr_world *world);
// vram_sim_complete(), also of a device's legacy stream.
enum vram_status vr_world_complete(struct vr_world *world, uint32_t device, uint64_t stream);
// Drops the records seen so far.
void vr_world_forget(struct vr_world *world);

#endif
