// naive_inside.h: shared by the files of the naive model.
#ifndef VR_NAIVE_INSIDE_H
#define VR_NAIVE_INSIDE_H

#include "base/base.h"
#include "model/naive.h"
#include "vram/sim.h"

enum { NAIVE_USES = 8, NAIVE_MEMBERS = 8, NAIVE_CAPTURES = 4 };

#define NAIVE_MIN_BLOCK     ((uint64_t)512)
#define NAIVE_SMALL_SEGMENT (2 * VR_MIB)
#define NAIVE_NO_LIMIT      UINT64_MAX

enum naive_state { NAIVE_FREE, NAIVE_ALLOCATED, NAIVE_PENDING, NAIVE_UNMAPPED };

// A piece of a segment. A block with a neighbour is split.
struct naive_block {
    struct naive_block *prev, *next; // neighbours, by address
    struct naive_segment *segment;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes; // while allocated or pending
    enum naive_state state;
    uint64_t uses[NAIVE_USES];     // other streams recorded for it
    bool use_captured[NAIVE_USES]; // only while they captured
    size_t use_count;
    bool deferred;    // its free is postponed
    bool oversize;    // when it was allocated
    size_t events;    // not yet found complete
    uint64_t counter; // the pool's search counter when it became free
};

// Permanently contiguous memory: one cuMemAlloc, or one address reservation. Its blocks cover it without gaps.
struct naive_segment {
    uint64_t address;
    uint64_t size_bytes; // of the whole reservation, if expandable
    uint64_t stream;
    uint64_t order;      // increases with every segment
    uint64_t page_bytes; // 0 = not expandable
    bool small;
    bool oversize;           // when it was created
    struct naive_pool *pool; // NULL: a default pool
    struct naive_block *first;
};

struct naive_pool {
    struct naive *naive;
    uint32_t device;
    struct vram_pool_id id;
    struct naive_pool_info info;
    uint32_t references;
    bool captured; // a graph may contain its addresses
    uint64_t own_next, own_used;
    struct vram_stat reserved[VRAM_STAT_POOLS];
};

struct naive_route {
    struct naive_pool *pool;
    struct vram_route route;
};

// A set of nodes of one capture.
struct naive_nodes {
    uint64_t bits[NAIVE_MAX_NODES / 64];
};

// A stream in a capture. `past` are the nodes that precede its next one.
struct naive_member {
    uint64_t stream;
    struct naive_nodes past;
};

struct naive_capture {
    uint64_t id;
    struct naive_pool *pool;
    uint64_t stream; // where it began
    size_t node_count;
    struct naive_member members[NAIVE_MEMBERS];
    size_t member_count;
};

// A postponed free. If `marked`, past[i] of capture ids[i] must precede the next node of the block's stream.
struct naive_deferred {
    struct naive_block *block;
    bool marked;
    uint64_t ids[NAIVE_USES + 1];
    struct naive_nodes past[NAIVE_USES + 1];
    size_t count;
};

struct naive_event {
    uint64_t stream;
    uint64_t order; // increases with every event of any device
    struct naive_block *block;
    bool complete;
};

// A stream that waits for what another stream had at that moment.
struct naive_wait {
    uint32_t device; // of the legacy stream, on either side
    uint64_t stream, other;
    uint64_t order; // among the events
    uint64_t until; // covers events of the other stream before this one
};

struct naive_options {
    uint32_t padding_bytes;
    uint32_t alignment_kib;
    uint64_t large_segment_bytes;
    bool reclaim, share, reuse_oversize;
    bool search_after_wait;
    uint64_t max_split_bytes;
    uint64_t non_split_rounding_bytes;
    double gc_threshold;
    uint32_t divisions[NAIVE_BUCKETS];
    bool expandable;
    double fraction;
    bool throw_on_oom;
    double reserve_fraction; // 0 = unset
    bool reuse;
};

struct naive_device {
    uint32_t ordinal;
    uint64_t memory_bytes;
    uint64_t used_bytes; // of the driver's memory
    uint64_t held_bytes; // in the allocator's segments
    uint64_t limit_bytes;
    uint64_t search_counter[2];      // of the default large and small pool
    struct naive_segment **segments; // oldest first
    size_t segment_count, segment_capacity;
    struct naive_event *events; // in the order they were recorded
    size_t event_count, event_capacity;
    struct naive_route *routes; // oldest first
    size_t route_count, route_capacity;
    struct naive_capture captures[NAIVE_CAPTURES];
    size_t capture_count;
    struct naive_deferred *deferred; // oldest first
    size_t deferred_count, deferred_capacity;
    struct vram_stats stats;
};

// A block allocated directly from the driver.
struct naive_direct {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    uint32_t device;
};

struct naive {
    struct naive_options options;
    uint32_t pytorch;  // major * 100 + minor of the rules to follow
    bool oldest_first; // among equal blocks, prefer the one in the oldest segment
    bool caching;
    struct naive_device device[NAIVE_DEVICES];
    uint32_t device_count;
    enum vram_sim_addresses addresses;
    uint64_t next_alloc; // driver addresses, shared by the devices
    uint64_t next_reserve;
    uint64_t next_order; // of segments
    uint64_t next_event; // order of the next event
    struct naive_wait *waits;
    size_t wait_count, wait_capacity;
    uint64_t next_capture;
    struct naive_pool **pools; // oldest first, dead ones too
    size_t pool_count, pool_capacity;
    struct naive_direct *direct;
    size_t direct_count, direct_capacity;
    struct vr_record *records;
    size_t record_count, record_capacity;
    struct vram_block_view *picture;
    size_t picture_capacity;
    struct vram_oom oom;
};

struct naive_request {
    uint64_t stream;
    uint64_t size_bytes; // requested
    uint64_t rounded_bytes;
    uint64_t segment_bytes;  // of a new segment for the request
    struct naive_pool *pool; // NULL: a default pool
    bool small;
    bool rejected;  // refused before any driver call
    bool limit_hit; // the limit caused the last refusal
};

// naive.c
void naive_note(struct naive *naive, struct naive_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes,
                uint64_t stream);
void naive_rise(struct vram_stat *stat, bool small, int64_t by); // stat: the three of a family
void naive_fall(struct vram_stat *stat, bool small, int64_t by);
// Waits for the events of one pool's blocks.
void naive_finish_pool(struct naive *naive, struct naive_device *device, const struct naive_pool *pool);
void naive_process_events(struct naive *naive, struct naive_device *device, bool wait);
struct naive_request naive_make_request(const struct naive *naive, struct naive_pool *pool, uint64_t size_bytes, uint64_t stream);
bool naive_should_split(const struct naive *naive, const struct naive_block *block, const struct naive_request *request);
void naive_hand_out(struct naive *naive, struct naive_device *device, const struct naive_request *request, struct naive_block *block,
                    bool split);
void naive_request_free(struct naive *naive, struct naive_device *device, struct naive_block *block);
// Returns whether the option lets a referenced pool release and lend memory.
bool naive_shares(const struct naive *naive, const struct naive_pool *pool);
void naive_order_uses(struct naive *naive, struct naive_device *device, struct naive_block *block);
// Completes the pool's pending blocks: their own streams wait for their events.
void naive_order_pending(struct naive *naive, struct naive_device *device, const struct naive_pool *pool);
void naive_complete_free(struct naive *naive, struct naive_device *device, struct naive_block *block);
void naive_record_events(struct naive *naive, struct naive_device *device, struct naive_block *block);
bool naive_request_captures(const struct naive *naive, const struct naive_device *device, uint64_t stream);
// Completes frees, as a request does before it looks for memory.
void naive_complete_frees(struct naive *naive, struct naive_device *device, uint64_t stream);
void naive_make_room(void **items, size_t *capacity, size_t needed, size_t item_bytes);

// naive_memory.c: the driver's memory, and the creation and release of segments
bool naive_driver_alloc(struct naive *naive, struct naive_device *device, uint64_t size_bytes, uint64_t *address);
struct naive_block *naive_new_memory(struct naive *naive, struct naive_device *device, struct naive_request *request);
void naive_collect_garbage(struct naive *naive, struct naive_device *device);
bool naive_release_available(struct naive *naive, struct naive_device *device, const struct naive_request *request);
void naive_release_cached(struct naive *naive, struct naive_device *device, bool everything); // everything, or only unreferenced pools
void naive_release_pool(struct naive *naive, struct naive_device *device, const struct naive_pool *pool, bool small);
// Removes unreferenced pools without memory, including address space that failed requests reserved.
void naive_bury(struct naive *naive, struct naive_device *device);
// Returns whether requests for the pool use expandable segments.
bool naive_expandable(const struct naive *naive, const struct naive_pool *pool);
// Compares free blocks of one stream and pool in the order of the best-fit search.
int naive_compare(const struct naive *naive, const struct naive_block *a, const struct naive_block *b);
// Merges the free neighbour src into dst (or two holes). Returns the bytes gained, 0 if they may not merge.
uint64_t naive_merge(struct naive_block *dst, struct naive_block *src);
struct naive_block *naive_cut_below(struct naive_device *device, struct naive_block *block, uint64_t address); // the part below stays free
struct naive_block *naive_cut(struct naive_block *block, uint64_t size_bytes); // keeps the low part; returns the rest

// naive_pool.c, naive_capture.c
struct naive_pool *naive_route_of(const struct naive *naive, const struct naive_device *device, uint64_t stream);
struct naive_member *naive_member_of(const struct naive_device *device, uint64_t stream, const struct naive_capture **capture);
void naive_defer(struct naive *naive, struct naive_device *device, struct naive_block *block);
void naive_convert(struct naive *naive, struct naive_device *device);
void naive_reuse(struct naive *naive, struct naive_device *device, uint64_t stream);

#endif
