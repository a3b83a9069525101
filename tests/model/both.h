// both.h: runs random operations on the allocator and the naive model, and compares the results.
#ifndef VR_TEST_BOTH_H
#define VR_TEST_BOTH_H

#include "model/conf.h"
#include "model/naive.h"
#include "support/world.h"
#include "vram/sim.h"

enum { BOTH_MAX_LIVE = 2048, BOTH_POOLS = 5, BOTH_ROUTES = 4, BOTH_CAPTURES = 2, BOTH_MORE_STREAMS = 1024 };

// The settings of a run. Everything else is drawn from the seed.
struct both_setup {
    uint64_t seed;
    uint64_t operations;
    uint64_t every; // operations between full comparisons; addresses, statuses and records are compared after each
    enum conf_kind kind;
    uint64_t streams; // additional streams on device 0
    bool bare;        // without a listener, as in a program without a history
    bool verbose;     // prints each operation
};

struct both_live {
    uint64_t address;
    uint64_t size_bytes; // asked for
    uint64_t stream;
    uint32_t device;
    bool direct; // allocated while caching was off
};

// A pool's own memory, given to the allocator from `next` upwards and never reused.
struct both_own {
    struct both_own *older; // list of the whole run
    uint64_t next;
    uint64_t left_bytes;
    uint64_t taken_bytes;
};

// A pool that the run can name. The run holds `held` references, and one per route.
struct both_pool {
    struct vram_pool *core; // NULL: a free slot
    struct naive_pool *naive;
    uint32_t device;
    uint32_t held;
    struct vram_route routes[BOTH_ROUTES];
    size_t route_count;
    uint64_t captures[BOTH_CAPTURES]; // streams on which captures into it began
    size_t capture_count;
    struct vram_checkpoint *checkpoint; // both or neither
    struct naive_checkpoint *naive_checkpoint;
};

struct both {
    const struct both_setup *setup;
    uint64_t random; // draws operations; checks use `check_random`, so that they do not change the run
    uint64_t check_random;
    struct vr_world world;
    struct naive *naive;
    uint32_t device_count;
    uint64_t memory_bytes;
    uint64_t target; // number of live blocks the run tends towards
    size_t mixture;  // of sizes
    enum vram_tie_break tie_break;
    enum vram_sim_addresses addresses;
    bool one_event_stream; // record_stream uses one stream only, which defines the order of completions and so the peaks of inactive_split
    bool toggles_caching;
    bool changes_limits;
    uint64_t more_streams[BOTH_MORE_STREAMS];
    uint64_t more_count;
    uint64_t busy_stream; // some streams are used more than others, in turn
    struct both_live live[BOTH_MAX_LIVE];
    size_t live_count;
    struct both_pool pools[BOTH_POOLS];
    struct both_own *own;  // the newest
    uint64_t own_count;    // number made in this run
    bool exact_operations; // requests exact addresses and restores checkpoints, so the peaks of inactive_split are undefined
    uint64_t operation;    // number of the current one, from 1
    size_t core_records;   // index into world.records
    char conf[CONF_TEXT];
    char difference[1024]; // the first difference; "" if none
};

// Performs the whole run. Returns true if both agree; otherwise both->difference describes the first difference. Adds the number of
// operations of each kind to `counts`, if not NULL.
bool both_run(struct both *both, const struct both_setup *setup);

// both.c
void both_say(const struct both *both, const char *format, ...) VRAM_PRINTF(2, 3);
uint64_t both_draw(struct both *both, uint64_t limit);
uint64_t both_draw_size(struct both *both);
// Draws a stream for requests on the device.
uint64_t both_draw_stream(struct both *both, uint32_t device);
// Compares the results of a request and adds the block to `live`.
bool both_got(struct both *both, enum vram_status core, enum vram_status naive, const struct both_live *found, uint64_t expected);
void both_forget_live(struct both *both, size_t index);

// both_pools.c
//
// Performs an operation on pools, captures, exact addresses or checkpoints.
bool both_pool_step(struct both *both);
// Ends captures, closes routes, and releases handles.
bool both_pool_end(struct both *both);
// Checks, after the allocator is destroyed, that its pools returned all their own memory. Frees the bookkeeping.
bool both_own_close(struct both *both);

// compare.c
void both_differ(struct both *both, const char *format, ...) VRAM_PRINTF(2, 3);
// Compares status, address and records of the last operation. Clears the records.
bool both_compare_step(struct both *both, enum vram_status core, enum vram_status naive, uint64_t core_address, uint64_t naive_address);
// Compares counters where they are stored, without locking or settling anything, so that the state stays as in a program that does not
// query statistics.
bool both_compare_counters(struct both *both);
// Compares statistics, blocks, driver memory and address queries, and runs the allocator's own check.
bool both_compare_all(struct both *both);
bool both_compare_snapshot(struct both *both); // part of both_compare_all()
bool both_compare_oom(struct both *both);

#endif
