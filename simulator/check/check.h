// check.h: finds stream-ordering errors: races, and memory that is reused or freed too early. The checker gets what a program did (work on
// streams and the bytes it uses, waits, allocations and frees) and reports uses of the same bytes whose order nothing guarantees.
//
// The checker knows neither CUDA nor the simulator: the caller names streams, contexts and stacks with numbers of its own. Order is
// happens-before, kept in vector clocks, and does not depend on when anything ran. simulator/README.md describes the data structures.
//
// One thread at a time: the simulator calls it with its lock held. If the host runs out of memory the checker stops, and
// vr_check_has_failed() returns true; no function fails.
#ifndef VR_CHECK_CHECK_H
#define VR_CHECK_CHECK_H

#include "base/base.h"

struct vr_check;
struct vr_check_board; // memory that processes share (check_board.h)
struct vr_check_point; // a position in the work of a stream, as an event records it

// The kinds of findings: X(name, key).
#define VR_CHECK_KINDS(X)                                                                                                                  \
    X(FREED_IN_USE, "freed-in-use")                                                                                                        \
    X(RACE, "race")                                                                                                                        \
    X(HOST_RACE, "host-race")                                                                                                              \
    X(USE_AFTER_FREE, "use-after-free")                                                                                                    \
    X(OUT_OF_BOUNDS, "out-of-bounds")                                                                                                      \
    X(MISUSE, "misuse")                                                                                                                    \
    X(SHARING, "sharing")                                                                                                                  \
    X(STALE_GRAPH, "stale-graph")                                                                                                          \
    X(COLLECTIVE, "collective")                                                                                                            \
    X(NEVER_WRITTEN, "never-written")

enum vr_check_kind {
#define X(name, key) VR_CHECK_##name,
    VR_CHECK_KINDS(X)
#undef X
        VR_CHECK_KIND_COUNT
};

// The effect of work on bytes. USE: it reads or writes them; which of the two is not known.
enum vr_check_effect { VR_CHECK_READ, VR_CHECK_USE, VR_CHECK_WRITE };

// Bytes that a piece of work uses.
struct vr_check_access {
    uint64_t address;
    uint64_t size_bytes; // 0: unknown; it uses at least the first byte, and at most the rest of the block
    enum vr_check_effect effect;
    bool may;      // the work may not use them at all
    bool open;     // it uses at least size_bytes, and at most the rest of the block
    bool anywhere; // it uses some bytes of the rest of the block; which is not known
    bool moves;    // an allocator moves its memory, so the work may use several blocks
};

// Where the program caused something. `work` is copied; NULL: unknown.
struct vr_check_place {
    uint32_t stack; // 0: unknown
    const char *work;
};

// One side of a finding.
struct vr_check_use {
    uint64_t process; // 0: this one. Otherwise another, `stack` is its number of the use there, and no other field but `effect` is known
    uint32_t stack;
    uint32_t launch;  // for a step of a graph: the stack of the launch (`stack` is then that of the capture); 0: not a step
    const char *work; // lives as long as the checker
    uint64_t stream;  // 0: the host
    enum vr_check_effect effect;
};

struct vr_check_finding {
    enum vr_check_kind kind;
    bool may;                           // depends on a use or an order that is not certain
    struct vr_check_use earlier, later; // in the order of the program's calls
    bool has_block;                     // the fields below are known
    struct vr_check_use allocated;      // of the block that the earlier use belongs to
    bool was_freed;
    struct vr_check_use freed;
    uint64_t block, block_bytes;
    uint64_t address, size_bytes; // bytes that both sides use
};

// Called for every finding, once for each pair of stacks.
typedef void vr_check_report(void *user, const struct vr_check_finding *finding);

// --- check.c --------------------------------------------------------------------------------------------------------

// Creates a checker. NO_HOST_MEMORY. vr_check_destroy(NULL) does nothing.
enum vram_status vr_check_create(vr_check_report *report, void *user, struct vr_check **check);
void vr_check_destroy(struct vr_check *check);
bool vr_check_has_failed(const struct vr_check *check);
// Makes the checker ignore work, waits and memory until it is called with false. Use it for calls that the program did not make itself.
void vr_check_pause(struct vr_check *check, bool paused);
// Returns the key of a kind, as reports and suppressions name it.
const char *vr_check_kind_key(enum vr_check_kind kind);
// Reports a mistake that the caller found itself.
void vr_check_note(struct vr_check *check, const struct vr_check_finding *finding);

// --- check_order.c: streams and waits -------------------------------------------------------------------------------

// LEGACY: the default stream of a context, which is ordered with the BLOCKING streams of that context.
enum vr_check_stream_kind { VR_CHECK_BLOCKING, VR_CHECK_NON_BLOCKING, VR_CHECK_LEGACY };

// Streams have numbers that are never reused, from 1. A stream that was not opened is ignored.
void vr_check_stream_open(struct vr_check *check, uint64_t stream, uint64_t context, uint32_t device, enum vr_check_stream_kind kind);
void vr_check_stream_close(struct vr_check *check, uint64_t stream);

// Makes *point the position after the stream's work so far. *point is NULL or an earlier point, which is reused.
void vr_check_mark(struct vr_check *check, uint64_t stream, struct vr_check_point **point);
void vr_check_point_drop(struct vr_check_point *point); // NULL is allowed
// The stream's next work comes after the point. NULL: nothing was recorded, so the stream does not wait.
void vr_check_wait(struct vr_check *check, uint64_t stream, const struct vr_check_point *point);
// The stream's next work waits for something that the checker cannot follow, such as another process. The work counts as ordered after
// everything so far.
void vr_check_wait_unknown(struct vr_check *check, uint64_t stream);
// The stream waits for a value in memory. Until the host waits for the stream, its later work causes no findings.
void vr_check_hold(struct vr_check *check, uint64_t stream);

// Returns the position of the stream's last work, and whether the host has waited for a position.
uint64_t vr_check_position(struct vr_check *check, uint64_t stream);
bool vr_check_host_knows(const struct vr_check *check, uint64_t position);

// The host waits for a point, for a stream (and, if it is the legacy one, for the blocking ones), or for all streams of a device
// (UINT32_MAX: of all devices) and a context (0: of all contexts). All threads of the host count as one.
void vr_check_host_wait(struct vr_check *check, const struct vr_check_point *point);
void vr_check_host_wait_stream(struct vr_check *check, uint64_t stream);
void vr_check_host_wait_streams(struct vr_check *check, uint32_t device, uint64_t context);

// --- check_work.c: work ---------------------------------------------------------------------------------------------

// A piece of work on a stream.
void vr_check_work(struct vr_check *check, uint64_t stream, struct vr_check_place place, const struct vr_check_access *accesses,
                   size_t count);

// The host reads, writes or frees memory. If a stream's work uses the memory and the host has not waited for that work, this is a
// HOST_RACE.
void vr_check_host_use(struct vr_check *check, struct vr_check_place place, const struct vr_check_access *access);

// The launch of a graph: begin, its steps, each with the indices of the earlier steps that it comes after, and end. Steps without an order
// run at the same time. `place` of a step is where it was captured; `captured`: vr_check_lives() then, or 0. A step that uses memory that
// was freed, or handed out again, since then is a STALE_GRAPH. So is a read of captured memory that the launch of an earlier captured graph
// has overwritten: graphs of one pool may have the same addresses. last_captured: the largest `captured` of the steps.
void vr_check_launch_begin(struct vr_check *check, uint64_t stream, size_t step_count, uint64_t last_captured, struct vr_check_place place);
void vr_check_launch_step(struct vr_check *check, const size_t *after, size_t after_count, struct vr_check_place place, uint64_t captured,
                          const struct vr_check_access *accesses, size_t count);
void vr_check_launch_end(struct vr_check *check);

// The driver refused work, or a free, because of its memory. Reports an address whose block was freed, an access that leaves its block, or
// a free of an address that is not the beginning of a block. Reports nothing if it knows no reason.
void vr_check_refused(struct vr_check *check, uint64_t stream, struct vr_check_place place, const struct vr_check_access *access);
void vr_check_refused_free(struct vr_check *check, uint64_t address, struct vr_check_place place);
// A handle is destroyed; a destroyed handle is used.
void vr_check_destroyed(struct vr_check *check, uint64_t handle, struct vr_check_place place);
void vr_check_used_handle(struct vr_check *check, uint64_t handle, struct vr_check_place place);
// Reports that a rank called another collective than `theirs`, which another rank called.
void vr_check_disagreement(struct vr_check *check, struct vr_check_place place, const char *theirs);

// --- check_sharing.c: memory that other processes use, too ------------------------------------------------------------

// Functions that the caller provides for comparing processes.
struct vr_check_sharing_ops {
    uint64_t process; // of the checker, not 0
    // Returns memory of vr_check_board_bytes() bytes, zero at first, which all processes map; NULL if there is none. Called once.
    struct vr_check_board *(*board)(void);
    bool (*is_live)(uint64_t process); // whether the process runs
    // Returns a number, not 0, by which findings of other processes name the use; 0: the use has no number.
    uint32_t (*number)(const struct vr_check_use *use);
};
size_t vr_check_board_bytes(void);
// From now on memory that is shared is compared with the uses of other processes that joined. Call it once.
void vr_check_join(struct vr_check *check, const struct vr_check_sharing_ops *ops);
// The process may wait for others in ways that the checker cannot follow, so from now on it is not compared with them.
void vr_check_alone(struct vr_check *check);
// The process is a copy of one that joined (fork): it is not compared, and leaves the original's row alone.
void vr_check_leave(struct vr_check *check);

// Memory is shared under a key, which is the same in all processes. own: this process allocated it. Its end, or the end of its segment, is
// a free if it is the owner's.
void vr_check_share(struct vr_check *check, uint64_t address, uint64_t size_bytes, uint64_t key, bool own);
// Returns whether the address (0: any address) is in shared memory.
bool vr_check_shares(const struct vr_check *check, uint64_t address);
// The event of a key is shared, or was recorded again, with a position of this process. NULL: it was not recorded yet.
void vr_check_share_event(struct vr_check *check, uint64_t key, const struct vr_check_point *point);
// The stream, or the host, waits for the last record of the event. Nothing happens if that is of this process: then wait for its point.
void vr_check_wait_shared(struct vr_check *check, uint64_t stream, uint64_t key);
void vr_check_host_wait_shared(struct vr_check *check, uint64_t key);

// --- check_written.c: reads of uninitialized memory -----------------------------------------------------------------

// From now on reads of bytes that were not written since their block was handed out are NEVER_WRITTEN.
void vr_check_find_unwritten(struct vr_check *check);
// Something that the checker does not see may have written the block at an address, or (0) any block.
void vr_check_written(struct vr_check *check, uint64_t address);

// --- check_blocks.c: lives of memory ---------------------------------------------------------------------------------

// Returns the number of allocations so far.
uint64_t vr_check_lives(const struct vr_check *check);
// Returns the number of ranges of memory that the checker knows now, among them a bounded number of freed ones.
size_t vr_check_cells(const struct vr_check *check);

// The driver allocates memory, and gets it back. The lifetimes of earlier memory at these addresses end. mapped: pages at an address that
// the program chose, where it may have had others before.
void vr_check_segment(struct vr_check *check, uint64_t address, uint64_t size_bytes, bool mapped, struct vr_check_place place);
// waits: the driver itself waits for the device; false: the program has to.
void vr_check_segment_end(struct vr_check *check, uint64_t address, uint64_t size_bytes, bool waits, struct vr_check_place place);
// Like the functions above, but in the order of a stream's work.
void vr_check_segment_on(struct vr_check *check, uint64_t address, uint64_t size_bytes, uint64_t stream, struct vr_check_place place);
void vr_check_segment_end_on(struct vr_check *check, uint64_t address, uint64_t stream, struct vr_check_place place);

// A caching allocator hands a block of a segment out, and gets it back. size_bytes may be 0: up to the next block. captured: for a graph
// that is being captured, whose launches use the block even after its end.
void vr_check_block(struct vr_check *check, uint64_t address, uint64_t size_bytes, bool captured, struct vr_check_place place);
// Returns whether the size of a block at the address decides about findings. If it does and the size is available, pass it to
// vr_check_block(). stream: for whose work the block is; 0: unknown.
bool vr_check_block_needs_size(const struct vr_check *check, uint64_t address, uint64_t stream);
void vr_check_block_end(struct vr_check *check, uint64_t address, struct vr_check_place place);

#endif
