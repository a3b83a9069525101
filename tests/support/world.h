// world.h: a simulated machine with an allocator, for tests: driver, optional fault wrapper, streams, and the allocator's records. One call
// opens everything; one call closes it and reports what was left behind.
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

// A zeroed struct means one device of 80 GiB, no manual completion, default options, lowest address first.
struct vr_world_options {
    struct vram_sim_options sim;
    const char *conf; // NULL: ""; of the environment only VRAM_TEST_VERIFY is read: verify:True in front of it
    enum vram_tie_break tie_break;
    bool faults;         // put a fault wrapper between allocator and simulator
    bool without_record; // attach no recorder
};

struct vr_world {
    struct vram_driver *sim;    // the simulator
    struct vram_driver *driver; // the allocator's driver: the simulator or the wrapper around it
    struct vram_allocator *allocator;
    uint32_t device_count;
    uint64_t context[VR_WORLD_DEVICES];                  // primary contexts; device 0's is current in the thread that opened the world
    uint64_t stream[VR_WORLD_DEVICES][VR_WORLD_STREAMS]; // [d][0] is 0, the legacy stream; the others increase with their index
    struct vr_record *records;                           // since vr_world_open() or vr_world_forget(), oldest first
    size_t record_count;
    size_t record_capacity;
    bool record_lost; // memory for a record ran out, so the test must fail
};

// Opens the machine, its streams and the allocator. options may be NULL. Leaves nothing behind on failure.
enum vram_status vr_world_open(struct vr_world *world, const struct vr_world_options *options);
// Closes everything, the allocator first. Returns the number of driver objects the allocator left behind (expected: 0).
uint64_t vr_world_close(struct vr_world *world);
// Destroys only the allocator, so that its remains can be inspected. Call vr_world_close() afterwards.
void vr_world_destroy_allocator(struct vr_world *world);
// Calls vram_sim_complete(), even for a device's legacy stream.
enum vram_status vr_world_complete(struct vr_world *world, uint32_t device, uint64_t stream);
// Drops the records seen so far.
void vr_world_forget(struct vr_world *world);

#endif
