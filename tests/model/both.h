// both.h: the allocator and the naive model side by side: a run does random operations on both and compares what they answer.
#ifndef VR_TEST_BOTH_H
#define VR_TEST_BOTH_H

#include "model/conf.h"
#include "model/naive.h"
#include "support/world.h"
#include "vram/sim.h"

enum { BOTH_MAX_LIVE = 2048, BOTH_POOLS = 5, BOTH_ROUTES = 4, BOTH_CAPTURES = 2, BOTH_MORE_STREAMS = 1024 };

// What a run is. Everything that is not here is drawn from the seed.
struct both_setup {
    uint64_t seed;
    uint64_t operations;
    uint64_t every; // everything is compared after this many operations; addresses, statuses and records after each
    enum conf_kind kind;
    uint64_t streams; // so many more of device 0
    bool bare;        // nobody listens: the ways that a program without a history takes
    bool verbose;     // prints each operation
};

struct both_live {
    uint64_t address;
    uint64_t size_bytes; // asked for
    uint64_t stream;
    uint32_t device;
    bool direct; // made while caching was off
};

// Memory of a pool's own, as the allocator gets it: from `next` upwards, never used again.
struct both_own {
    struct both_own *older; // all of a run
    uint64_t next;
    uint64_t left_bytes;
    uint64_t taken_bytes;
};

// A pool that the run can name: it holds `held` references of its own, and a route holds one each.
struct both_pool {
    struct vram_pool *core; // NULL: the slot is empty
    struct naive_pool *naive;
    uint32_t device;
    uint32_t held;
    struct vram_route routes[BOTH_ROUTES];
    size_t route_count;
    uint64_t captures[BOTH_CAPTURES]; // streams where captures into it began
    size_t capture_count;
    struct vram_checkpoint *checkpoint; // both, or none
    struct naive_checkpoint *naive_checkpoint;
};

struct both {
    const struct both_setup *setup;
    uint64_t random; // draws operations; checks draw from `check_random`, so that they change nothing
    uint64_t check_random;
    struct vr_world world;
    struct naive *naive;
    uint32_t device_count;
    uint64_t memory_bytes;
    uint64_t target; // live blocks the run hovers around
    size_t mixture;  // of sizes
    enum vram_tie_break tie_break;
    enum vram_sim_addresses addresses;
    bool one_event_stream; // record_stream names one stream only: the order of completions is defined, so inactive_split peaks are too
    bool toggles_caching;
    bool changes_limits;
    uint64_t more_streams[BOTH_MORE_STREAMS];
    uint64_t more_count;
    uint64_t busy_stream; // some of these are used more than others, in turn
    struct both_live live[BOTH_MAX_LIVE];
    size_t live_count;
    struct both_pool pools[BOTH_POOLS];
    struct both_own *own;  // the newest
    uint64_t own_count;    // made in this run
    bool exact_operations; // addresses are asked for, checkpoints restored: how high inactive_split rose in between is not defined
    uint64_t operation;    // number of the current one, from 1
    size_t core_records;   // seen so far of world.records
    char conf[CONF_TEXT];
    char difference[1024]; // the first one; empty when there is none
};

// Runs it all. True when both agree; otherwise both->difference says where they do not. counts[i] += operations of each kind, if not NULL.
bool both_run(struct both *both, const struct both_setup *setup);

// both.c
void both_say(const struct both *both, const char *format, ...) VRAM_PRINTF(2, 3);
uint64_t both_draw(struct both *both, uint64_t limit);
uint64_t both_draw_size(struct both *both);
// A stream that requests on the device are made on.
uint64_t both_draw_stream(struct both *both, uint32_t device);
// Compares what a request gave and enters it into `live`.
bool both_got(struct both *both, enum vram_status core, enum vram_status naive, const struct both_live *found, uint64_t expected);
void both_forget_live(struct both *both, size_t index);

// both_pools.c
// An operation on pools, captures, exact addresses or checkpoints.
bool both_pool_step(struct both *both);
// Ends captures, closes routes, gives handles back.
bool both_pool_end(struct both *both);
// After the allocator is gone: its pools gave back all memory of their own. Frees the books.
bool both_own_close(struct both *both);

// compare.c
void both_differ(struct both *both, const char *format, ...) VRAM_PRINTF(2, 3);
// Status, address and records of the operation just done. Clears the records.
bool both_compare_step(struct both *both, enum vram_status core, enum vram_status naive, uint64_t core_address, uint64_t naive_address);
// What is counted of blocks, read where it lies: nothing is locked, settled or shared out for it, as the calls of a program that asks for
// no statistics leave it.
bool both_compare_counters(struct both *both);
// Statistics, picture, driver memory, questions about addresses, the allocator's own check.
bool both_compare_all(struct both *both);
bool both_compare_snapshot(struct both *both); // part of the former
bool both_compare_oom(struct both *both);

#endif
