// naive.h: a second implementation of the caching allocator, as simple as possible: lists and linear searches, without indexes, locks or
// cached counts. It is written only from the description of PyTorch's allocator, independently of allocator/core, and models the driver's
// memory (capacity, increasing addresses, events) itself. Random operations on both must give the same results.
//
// Use from one thread. Supports default and private pools, routes, captures and checkpoints, but no callbacks. For a captured graph it
// knows, per stream, which nodes precede the stream's next one.
#ifndef VR_NAIVE_H
#define VR_NAIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/record.h"
#include "vram/driver.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { NAIVE_DEVICES = 2, NAIVE_BUCKETS = 16, NAIVE_MAX_NODES = 256 };

// The keys that an option string sets. The model applies PyTorch's reset rules itself.
struct naive_conf {
    bool has_large_segment, has_max_split, has_non_split_rounding, has_gc, has_divisions, has_expandable, has_fraction, has_throw,
        has_reserve, has_reuse, has_reclaim, has_share, has_reuse_oversize, has_search;
    uint64_t large_segment_bytes;
    uint64_t max_split_bytes;
    uint64_t non_split_rounding_bytes;
    double gc_threshold;
    uint32_t divisions[NAIVE_BUCKETS];
    bool expandable;
    double fraction; // per_process_memory_fraction
    bool throw_on_oom;
    double reserve_fraction;             // expandable_segments_reserve
    bool reclaim, share, reuse_oversize; // reclaim_streams, share_live_pools, expandable_segments_reuse_oversize
    bool search_after_wait;
    bool reuse;             // graph_capture_record_stream_reuse
    uint32_t padding_bytes; // added to each request
    bool has_alignment;
    uint32_t alignment_kib; // base_addr_aligned_kb
    uint32_t pytorch;       // major * 100 + minor of the rules to follow; only at creation
};

struct naive_info {
    uint32_t device_count;
    uint64_t memory_bytes; // of each device
    enum vram_tie_break tie_break;
    enum vram_sim_addresses addresses;
    struct naive_conf conf;
};

struct naive;

// Ends the process if memory runs out, like everything here. Release with naive_destroy().
struct naive *naive_create(const struct naive_info *info);
void naive_destroy(struct naive *naive);

enum vram_status naive_malloc(struct naive *naive, uint32_t device, uint64_t size_bytes, uint64_t stream, uint64_t *address);
enum vram_status naive_free(struct naive *naive, uint64_t address);
enum vram_status naive_record_stream(struct naive *naive, uint64_t address, uint64_t stream);
// Completes every event recorded so far on the device's stream, or on any stream.
void naive_complete(struct naive *naive, uint32_t device, uint64_t stream);
void naive_complete_all(struct naive *naive);
void naive_empty_cache(struct naive *naive);
void naive_empty_cache_device(struct naive *naive, uint32_t device);
void naive_configure(struct naive *naive, const struct naive_conf *conf);
void naive_set_fraction(struct naive *naive, uint32_t device, double fraction);
void naive_set_limit(struct naive *naive, uint32_t device, uint64_t limit_bytes);
void naive_set_caching(struct naive *naive, bool enabled);
void naive_reset_peak(struct naive *naive, uint32_t device);
void naive_reset_accumulated(struct naive *naive, uint32_t device);

// --- private pools ---------------------------------------------------------------------------------------------------------

struct naive_pool;
struct naive_checkpoint;

struct naive_pool_info {
    bool for_graph, use_on_oom, no_split;
    uint64_t own_base;  // 0: the driver's memory. Otherwise the start of the pool's own memory, never reused,
    uint64_t own_bytes; // in pieces of this size
};

// Creates a pool with one reference. The model keeps the struct until its end.
struct naive_pool *naive_pool_create(struct naive *naive, uint32_t device, const struct naive_pool_info *info);
void naive_pool_retain(struct naive_pool *pool);
void naive_pool_release(struct naive_pool *pool);
struct vram_pool_id naive_pool_id(const struct naive_pool *pool);
uint32_t naive_pool_references(const struct naive_pool *pool);
void naive_pool_begin(struct naive *naive, struct naive_pool *pool, const struct vram_route *route);
enum vram_status naive_pool_end(struct naive *naive, struct naive_pool *pool, const struct vram_route *route);
enum vram_status naive_pool_malloc(struct naive *naive, struct naive_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address);
enum vram_status naive_malloc_at(struct naive *naive, uint32_t device, uint64_t size_bytes, uint64_t stream, uint64_t address);
void naive_pool_trim(struct naive *naive, struct naive_pool *pool);
void naive_pool_stats(const struct naive *naive, const struct naive_pool *pool, struct vram_pool_stats *stats);
// The caller frees the checkpoint with free().
enum vram_status naive_pool_checkpoint(struct naive *naive, struct naive_pool *pool, struct naive_checkpoint **checkpoint);
size_t naive_checkpoint_blocks(const struct naive_checkpoint *checkpoint);
enum vram_status naive_pool_restore(struct naive *naive, struct naive_pool *pool, const struct naive_checkpoint *checkpoint);

// --- captures --------------------------------------------------------------------------------------------------------------

enum vram_status naive_capture_begin(struct naive *naive, struct naive_pool *pool, uint64_t stream);
// Returns DRIVER if a forked stream has not joined.
enum vram_status naive_capture_end(struct naive *naive, struct naive_pool *pool, uint64_t stream);
// Returns the capture that the stream takes part in; 0: none.
uint64_t naive_capture_of(const struct naive *naive, uint64_t stream);
// Captures a kernel on a stream. Returns false, changing nothing, if the capture has NAIVE_MAX_NODES already.
bool naive_kernel(struct naive *naive, uint64_t stream);
// Makes `to` wait for what the capturing `from` has now.
void naive_order(struct naive *naive, uint64_t from, uint64_t to);

// --- queries --------------------------------------------------------------------------------------------------------------

const struct vram_stats *naive_stats(const struct naive *naive, uint32_t device);
uint64_t naive_memory_used(const struct naive *naive, uint32_t device);
// Returns why the last failed naive_malloc() failed.
const struct vram_oom *naive_oom(const struct naive *naive);
// Returns the records since the last naive_forget_records(), in order. The caller may reorder them. Valid until the next call.
struct vr_record *naive_records(struct naive *naive, size_t *count);
void naive_forget_records(struct naive *naive);
// Returns the mapped blocks of a device in address order, in an array the model owns; valid until the next call.
const struct vram_block_view *naive_picture(struct naive *naive, uint32_t device, size_t *count);
// Compares every current statistic with the blocks, counted again. Returns NULL if correct, else what is wrong.
const char *naive_check(struct naive *naive, uint32_t device);

#endif
