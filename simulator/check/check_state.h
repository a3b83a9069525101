// check_state.h: the checker's data structures.
#ifndef VR_CHECK_CHECK_STATE_H
#define VR_CHECK_CHECK_STATE_H

#include "base/hash.h"
#include "check/check.h"

// ---- Clocks. A timeline ("lane") is the host, a stream, or a branch of a graph's launch. Its work has ticks, from 1. A clock has the last
// tick of every lane that comes before a position.

struct vr_check_clock {
    uint64_t *ticks; // indexed by lane; lanes beyond the end have 0
    size_t ticks_capacity;
    size_t count;
};

struct vr_check_point {
    struct vr_check_clock clock;
};

enum vr_check_lane_kind { VR_CHECK_LANE_HOST, VR_CHECK_LANE_STREAM, VR_CHECK_LANE_BRANCH, VR_CHECK_LANE_AWAY };
enum { VR_CHECK_HOST = 0 }; // the host's lane

// Invariant: a clock whose entry for a lane is at least t is nowhere below the clock that the lane had at tick t. A lane's own tick
// therefore also rises with each wait.
struct vr_check_lane {
    struct vr_check_clock clock; // its own entry is its last tick
    enum vr_check_lane_kind kind;
    enum vr_check_stream_kind stream_kind;
    uint64_t stream, context;
    uint32_t device;
    bool open;                    // a stream or branch uses it
    bool held;                    // its stream waits for a value in memory
    uint32_t away_row, away_lane; // VR_CHECK_LANE_AWAY: a lane of another process (check_board.h)
};

VR_INLINE uint64_t vr_check_clock_at(const struct vr_check_clock *clock, size_t lane) {
    return lane < clock->count ? clock->ticks[lane] : 0;
}

// ---- Memory: cells, sorted by address, that do not overlap. All bytes of a cell have the same life.

struct vr_check_extent {
    uint64_t from, end;
};

// From an allocation to its free. Counted references: cells and records.
struct vr_check_life {
    uint32_t references;
    bool freed;
    bool block;    // a caching allocator's block, not a segment of the driver
    bool captured; // handed out for a captured graph
    bool lent;     // it lies in memory of such a graph that was freed before it began: a launch may use that memory after its end
    bool mapped;
    uint64_t serial;   // number of the allocation, from 1
    uint64_t launches; // of graphs, when it was freed
    uint64_t gone;     // its segment was given back to the driver as this number; 0: it was not
    uint64_t address, size_bytes;
    struct vr_check_use allocated, end;
    bool all_written;                // all of it was written, or may have been
    struct vr_check_extent *written; // what was; empty unless such reads are looked for
    size_t written_count, written_capacity;
};

// A use of bytes of a cell: [from, end) for certain, up to `far` perhaps.
struct vr_check_record {
    uint64_t from, end, far;
    uint64_t tick;
    uint32_t lane;
    bool may;
    struct vr_check_use use;
    struct vr_check_life *life; // in which it was made
};

struct vr_check_cell {
    uint64_t from, end;
    bool heads; // a segment of the driver begins here that blocks of the one before do not reach
    struct vr_check_life *life;
    struct vr_check_use overwritten; // by a graph that was captured before the life began; no work: it is not
    struct vr_check_record *records;
    size_t record_count, records_capacity;
};

// A step of the launch in progress.
struct vr_check_step {
    uint32_t lane;
    bool last_of_lane;           // the lane's latest step: a successor may continue it
    struct vr_check_clock clock; // after the step; its memory is reused by later launches
};

struct vr_check {
    vr_check_report *report;
    void *user;
    bool failed; // out of host memory
    bool paused; // reports are ignored
    struct vr_check_lane *lanes;
    size_t lane_count, lanes_capacity;
    struct vr_map streams;        // stream -> lane + 1
    struct vr_check_cell **cells; // sorted
    size_t cell_count, cells_capacity;
    struct vr_map reported; // hashes of findings
    struct vr_hash_index name_index;
    char **names;
    size_t name_count, names_capacity;
    uint64_t last_life;
    uint64_t last_gone;               // number of the last segment that was given back
    size_t ghosts;                    // cells of such segments
    struct vr_check_sharing *sharing; // NULL: it did not join
    bool finds_unwritten;
    uint64_t written_until;  // blocks handed out until then may have been written
    struct vr_map destroyed; // handle -> 1 + index of its row
    struct vr_check_use *ends;
    size_t end_count, ends_capacity;
    uint64_t last_launch; // number of the last launch of a graph
    // The launch in progress.
    bool launching;
    struct vr_check_use launch_use;
    uint64_t launch_captured; // the last allocation before the capture of its last step; 0: unknown
    uint64_t step_captured;   // the last allocation before the capture of the running step; 0: unknown
    uint32_t launch_lane;
    struct vr_check_point *launch_start;
    struct vr_check_step *steps;
    size_t step_count, steps_capacity;
    size_t step_clocks; // steps of `steps` whose clocks are initialized
};

// --- check.c --------------------------------------------------------------------------------------------------------

VR_INLINE bool vr_check_is_off(const struct vr_check *check) { return check->failed || check->paused; }
// Returns a copy of the text that lives as long as the checker. NULL for NULL, and if the host is out of memory.
const char *vr_check_name(struct vr_check *check, const char *text);
struct vr_check_use vr_check_use_of(struct vr_check *check, uint64_t stream, enum vr_check_effect effect, struct vr_check_place place);
// Fills in what is known about the block of a life.
void vr_check_finding_block(struct vr_check_finding *finding, const struct vr_check_life *life);

// --- check_order.c --------------------------------------------------------------------------------------------------

// Raises the entry of a lane. Returns false if the host is out of memory.
bool vr_check_clock_raise(struct vr_check_clock *clock, size_t lane, uint64_t tick);
// Raises each entry to that of `from`. Returns false if the host is out of memory.
bool vr_check_clock_join(struct vr_check_clock *to, const struct vr_check_clock *from);
void vr_check_host_wait_unknown(struct vr_check *check);                               // vr_check_wait_unknown() for the host
struct vr_check_lane *vr_check_lane_of(const struct vr_check *check, uint64_t stream); // NULL: not opened
// Begins a new tick of the lane: after its work so far, the host's waits and, for blocking and legacy streams, each other's work.
uint64_t vr_check_advance(struct vr_check *check, struct vr_check_lane *lane);
// Takes a lane for a branch after the point: one whose last tick comes before it, else a new one. SIZE_MAX if the host is out of memory.
size_t vr_check_branch(struct vr_check *check, const struct vr_check_clock *after);
VR_INLINE bool vr_check_comes_before(const struct vr_check_record *record, const struct vr_check_clock *clock) {
    return vr_check_clock_at(clock, record->lane) >= record->tick;
}

// --- check_sharing.c -------------------------------------------------------------------------------------------------

// Compares a use with those of other processes, if it is of shared memory, and leaves it for them.
void vr_check_use_shared(struct vr_check *check, const struct vr_check_lane *lane, uint64_t tick, const struct vr_check_use *use,
                         const struct vr_check_access *access);
// Memory that may be shared ends. `use` is the free.
void vr_check_share_end(struct vr_check *check, uint64_t address, uint64_t end, const struct vr_check_use *use);

// --- check_join.c ---------------------------------------------------------------------------------------------

void vr_check_sharing_release(struct vr_check *check);
// Tells other processes what the host has waited for.
void vr_check_sharing_host(struct vr_check *check);

// --- check_written.c -------------------------------------------------------------------------------------------------

void vr_check_unwritten(struct vr_check *check, const struct vr_check_use *use, const struct vr_check_access *accesses, size_t count);

// --- check_cells.c --------------------------------------------------------------------------------------------------

// Returns the index of the first cell that ends after the address; cell_count if there is none.
size_t vr_check_cell_after(const struct vr_check *check, uint64_t address);
// Makes [from, end) one cell with this life (one reference is added). Uses by work that the host has not waited for stay.
struct vr_check_cell *vr_check_cell_carve(struct vr_check *check, uint64_t from, uint64_t end, struct vr_check_life *life);
struct vr_check_life *vr_check_life_new(struct vr_check *check, uint64_t address, uint64_t size_bytes);
void vr_check_life_drop(struct vr_check_life *life);
// Adds a record to the cell in which it begins, and removes those that it makes superfluous. Bounded.
void vr_check_record_add(struct vr_check *check, struct vr_check_cell *cell, const struct vr_check_record *record,
                         const struct vr_check_clock *clock);
void vr_check_cell_forget(struct vr_check_cell *cell);
// Removes the cells of segments that were given back longest ago, if there are many. Called when the caller holds no cell.
void vr_check_ghosts_trim(struct vr_check *check); // removes all records
void vr_check_cells_release(struct vr_check *check);

// --- check_work.c ---------------------------------------------------------------------------------------------------

// Compares a use of bytes, at a tick of a lane, with earlier uses, and records it.
void vr_check_use_bytes(struct vr_check *check, const struct vr_check_lane *lane, uint64_t tick, const struct vr_check_use *use,
                        const struct vr_check_access *access);

#endif
