// both.h: the allocator and the naive model side by side: a run does random operations on both and compares what they answer.
#ifndef VR_TEST_BOTH_H
#define VR_TEST_BOTH_H

#include "model/conf.h"
#include "model/naive.h"
#include "support/world.h"

enum { BOTH_MAX_LIVE = 2048 };

// What a run is. Everything that is not here is drawn from the seed.
struct both_setup {
    uint64_t seed;
    uint64_t operations;
    uint64_t every; // everything is compared after this many operations; addresses, statuses and records after each
    enum conf_kind kind;
    bool verbose; // prints each operation
};

struct both_live {
    uint64_t address;
    uint64_t size_bytes; // asked for
    uint64_t stream;
    uint32_t device;
    bool direct; // made while caching was off
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
    bool one_event_stream; // record_stream names one stream only: the order of completions is defined, so inactive_split peaks are too
    bool toggles_caching;
    bool changes_limits;
    struct both_live live[BOTH_MAX_LIVE];
    size_t live_count;
    uint64_t operation;  // number of the current one, from 1
    size_t core_records; // seen so far of world.records
    char conf[CONF_TEXT];
    char difference[1024]; // the first one; empty when there is none
};

// Runs it all. True when both agree; otherwise both->difference says where they do not. counts[i] += operations of each kind, if not NULL.
bool both_run(struct both *both, const struct both_setup *setup);

// compare.c
void both_differ(struct both *both, const char *format, ...) VRAM_PRINTF(2, 3);
// Status, address and records of the operation just done. Clears the records.
bool both_compare_step(struct both *both, enum vram_status core, enum vram_status naive, uint64_t core_address, uint64_t naive_address);
// Statistics, picture, driver memory, questions about addresses, the allocator's own check.
bool both_compare_all(struct both *both);
bool both_compare_oom(struct both *both);

#endif
