// selfmade.h: generates recordings for tests: random operations on an allocator over the simulated driver, with its records and final state
// written as a PyTorch snapshot in JSON.
#ifndef VR_TEST_SELFMADE_H
#define VR_TEST_SELFMADE_H

#include "base/text.h"
#include "core/record.h"
#include "vram/recording.h"
#include "vram/sim.h"
#include "vram/vram.h"

struct selfmade_options {
    const char *conf;
    uint64_t seed;
    uint64_t memory_bytes;
    unsigned operations;
    unsigned streams;
    bool small_sizes; // up to 2 MiB; otherwise up to 60 MiB
    unsigned pools;   // most private pools at a time
    bool functions;   // half of them use their own functions
    bool no_split;    // their blocks are not split
    bool ends_empty;  // everything is freed at the end
    enum vram_sim_addresses addresses;
};

struct selfmade {
    struct vr_record *records; // of device 0, of all kinds
    size_t count;
    size_t capacity;
    struct vram_pool_id *pools; // of each record
    size_t pool_capacity;
    struct vram_block_view *blocks; // the final state
    size_t block_count;
    size_t block_capacity;
    struct vram_stats stats; // at the end
    const char *conf;
    bool events_without_pools; // selfmade_json() omits them
    bool segments_without_pools;
    bool without_settings;
};

void selfmade_run(struct selfmade *made, const struct selfmade_options *options);
void selfmade_release(struct selfmade *made);
// Write the snapshot without its first `cut` records, as if a ring buffer had lost them.
void selfmade_json(const struct selfmade *made, size_t cut, struct vr_text *json);
struct vram_recording *selfmade_recording(const struct selfmade *made, size_t cut);

// Settings that place blocks differently; the first is the default.
enum { SELFMADE_CONFS = 12 };
extern const char *const selfmade_confs[SELFMADE_CONFS];
extern const struct selfmade_options selfmade_plain;

#endif
