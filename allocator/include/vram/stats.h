// vram/stats.h: the allocator's counters, under PyTorch's names, and their export to Prometheus.
#ifndef VRAM_STATS_H
#define VRAM_STATS_H

#include <stddef.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One counter. allocated and freed sum up all increases and decreases since the last reset.
struct vram_stat {
    int64_t current;
    int64_t peak;
    int64_t allocated;
    int64_t freed;
};

enum vram_stat_pool { VRAM_STAT_ALL, VRAM_STAT_SMALL_POOL, VRAM_STAT_LARGE_POOL, VRAM_STAT_POOLS };

// X(name, is it in bytes, description)
#define VRAM_STAT_FAMILIES(X)                                                                                                              \
    X(allocation, 0, "allocated blocks")                                                                                                   \
    X(segment, 0, "segments allocated by cudaMalloc")                                                                                      \
    X(active, 0, "blocks that are allocated or not yet reusable")                                                                          \
    X(inactive_split, 0, "free pieces of split segments")                                                                                  \
    X(allocated_bytes, 1, "bytes of allocated blocks")                                                                                     \
    X(reserved_bytes, 1, "bytes held from the driver")                                                                                     \
    X(active_bytes, 1, "bytes of blocks that are allocated or not yet reusable")                                                           \
    X(inactive_split_bytes, 1, "bytes of free pieces of split segments")                                                                   \
    X(requested_bytes, 1, "bytes requested for blocks that are allocated or not yet reusable")

// X(name, description)
#define VRAM_STAT_SCALARS(X)                                                                                                               \
    X(num_alloc_retries, "times the whole cache was released to satisfy a request")                                                        \
    X(num_ooms, "requests that failed for lack of memory")                                                                                 \
    X(max_split_size, "max_split_size when the device was set up; -1 without limit")                                                       \
    X(num_sync_all_streams, "times the allocator waited for all pending frees")                                                            \
    X(num_device_alloc, "driver calls that allocate memory")                                                                               \
    X(num_device_free, "driver calls that free memory")                                                                                    \
    X(num_oom_rejections, "requests refused before any driver call")

struct vram_stats {
#define VRAM_STAT_FIELD(name, is_bytes, text) struct vram_stat name[VRAM_STAT_POOLS];
    VRAM_STAT_FAMILIES(VRAM_STAT_FIELD)
#undef VRAM_STAT_FIELD
#define VRAM_STAT_FIELD(name, text) int64_t name;
    VRAM_STAT_SCALARS(VRAM_STAT_FIELD)
#undef VRAM_STAT_FIELD
    struct vram_stat oversize_allocations; // blocks of max_split_size and more
    struct vram_stat oversize_segments;
    int64_t moved_bytes; // vram's own: free memory that changed streams, or that a pool lent to a request of another pool
};

// Writes PyTorch's flat names ("allocated_bytes.all.current"), sorted, as one JSON object with a newline at the end; moved_bytes appears if
// any memory moved. Always NUL-terminated; returns the full length, without the NUL; capacity 0 measures (text may then be NULL). Any
// thread.
VRAM_API size_t vram_stats_json(const struct vram_stats *stats, char *text, size_t capacity);
// Writes the table of torch.cuda.memory_summary(device, abbreviated). Returns as above.
VRAM_API size_t vram_stats_summary(const struct vram_stats *stats, uint32_t device, int abbreviated, char *text, size_t capacity);

// --- Prometheus --------------------------------------------------------------------------------------------------------------------------
// An allocator's live statistics in Prometheus's text format: written once, or kept in a file for the node exporter's textfile collector.
// Without code: VRAM_PROMETHEUS=PATTERN[,interval=15s] (docs/guides/prometheus.md lists the metrics).

struct vram_allocator;

// Writes the statistics of every used device, each as of one moment. IO if `write` returns false; NO_HOST_MEMORY. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_prometheus_write(struct vram_allocator *allocator, vram_write write, void *user);

struct vram_prometheus_options {
    const char *file;     // a pattern (vram_expand_path()), borrowed; should end in ".prom"
    uint64_t interval_ns; // between writes; 0: 15 s
};
// Starts a thread that writes the file now, at every interval, and at the end. The file is replaced as a whole, so it is always complete.
// OK means that the file could be written; later failures are retried. One per allocator: another start replaces it. INVALID_ARGUMENT for
// the pattern, IO, NO_HOST_MEMORY. Must not run while another thread starts or stops it on the same allocator.
VRAM_API VRAM_NODISCARD enum vram_status vram_prometheus_start(struct vram_allocator *allocator,
                                                               const struct vram_prometheus_options *options, struct vram_error *error);
// Writes the file a last time and ends the thread. vram_destroy() does it, too. Does nothing if it was not started.
VRAM_API void vram_prometheus_stop(struct vram_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
