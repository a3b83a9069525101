// golden.h: a golden trace as data. A trace has random operations and the answers of PyTorch's own allocator; golden_read.c describes the
// format.
#ifndef VR_GOLDEN_H
#define VR_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/status.h"

// The numbers of an answer, in the order of the file. X(name)
#define GOLDEN_NUMBERS(X)                                                                                                                  \
    X(allocated_bytes)                                                                                                                     \
    X(active_bytes)                                                                                                                        \
    X(inactive_split_bytes)                                                                                                                \
    X(reserved_bytes)                                                                                                                      \
    X(requested_bytes)                                                                                                                     \
    X(allocation)                                                                                                                          \
    X(active)                                                                                                                              \
    X(inactive_split)                                                                                                                      \
    X(segment)                                                                                                                             \
    X(num_alloc_retries)                                                                                                                   \
    X(num_ooms)                                                                                                                            \
    X(num_device_alloc)                                                                                                                    \
    X(num_device_free)

// The numbers of the PEAKS line. X(name)
#define GOLDEN_PEAKS(X)                                                                                                                    \
    X(allocated_bytes)                                                                                                                     \
    X(active_bytes)                                                                                                                        \
    X(reserved_bytes)                                                                                                                      \
    X(requested_bytes)                                                                                                                     \
    X(allocation)                                                                                                                          \
    X(active)                                                                                                                              \
    X(segment)

#define GOLDEN_COUNT(name) +1
enum { GOLDEN_NUMBER_COUNT = 0 GOLDEN_NUMBERS(GOLDEN_COUNT), GOLDEN_PEAK_COUNT = 0 GOLDEN_PEAKS(GOLDEN_COUNT) };
#undef GOLDEN_COUNT

enum golden_result { GOLDEN_NOTHING, GOLDEN_ADDRESS, GOLDEN_OOM };

struct golden_operation {
    uint32_t line;   // in the file, from 1
    char kind;       // the letter
    uint32_t id;     // m, f, r
    uint64_t stream; // m, r, w, g, h: 0, 1 or 2
    uint32_t pool;   // g, h, d
    uint64_t bytes;  // m: size; k: capacity
    double fraction; // x
    bool has_answer; // otherwise only execute the operation
    int64_t number[GOLDEN_NUMBER_COUNT];
    enum golden_result result;
    uint64_t address; // GOLDEN_ADDRESS
};

enum golden_state { GOLDEN_INACTIVE, GOLDEN_ALLOCATED, GOLDEN_PENDING };

struct golden_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes; // undefined in an inactive block
    enum golden_state state;
};

// One contiguous mapped range.
struct golden_segment {
    uint64_t address;
    uint64_t stream;
    uint64_t pool; // the trace's number of a private pool; 0: the default pools
    uint64_t size_bytes;
    uint64_t allocated_bytes;
    uint64_t active_bytes;
    uint64_t requested_bytes;
    bool small_pool;
    bool expandable;
    size_t first_block; // row of golden_trace.blocks
    size_t block_count;
};

// The whole state after the first `after` operations.
struct golden_map {
    uint32_t line;
    size_t after;
    size_t first_segment; // row of golden_trace.segments
    size_t segment_count;
};

struct golden_count {
    char name[32]; // the trace's name of a driver call
    uint64_t count;
};

struct golden_trace {
    char rules[16]; // version of PyTorch that gave the answers
    char conf[512];
    struct golden_operation *operations;
    size_t operation_count, operation_capacity;
    struct golden_block *blocks;
    size_t block_count, block_capacity;
    struct golden_segment *segments;
    size_t segment_count, segment_capacity;
    struct golden_map *maps;
    size_t map_count, map_capacity;
    bool has_peaks;
    uint32_t peaks_line;
    int64_t peak[GOLDEN_PEAK_COUNT];
    struct golden_count driver[32];
    size_t driver_count;
    uint32_t driver_line;
    uint32_t id_count;   // largest id + 1
    uint32_t pool_count; // largest private pool + 1
};

// Reads a trace. Returns BAD_INPUT with the line in *error->offset, or IO if the file cannot be read. The caller owns *trace.
enum vram_status golden_read(const char *path, struct golden_trace *trace, struct vram_error *error);
void golden_release(struct golden_trace *trace);

// The results of a run: for each kind, how many things were compared and how many agree.
struct golden_report {
    size_t operations, operations_equal;
    size_t maps, maps_equal;
    size_t peaks, peaks_equal;   // numbers of the PEAKS line
    size_t counts, counts_equal; // driver calls
    char first[512];             // the first difference, with its line; "" if none
};

// Runs a trace on a new simulated device. Fails only if the run cannot continue.
enum vram_status golden_run(const struct golden_trace *trace, struct golden_report *report, struct vram_error *error);

#endif
