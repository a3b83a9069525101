// sim_content.h: what the bytes of memory are, and the windows of host memory that hold those which were written.
#ifndef VR_SIM_MEMORY_SIM_CONTENT_H
#define VR_SIM_MEMORY_SIM_CONTENT_H

#include "base/hash.h"
#include "sim/sim_ranges.h"

// ---- A memory file, of which only the parts that were written take memory, seen through mappings of a GiB each.

#define VR_SIM_WINDOW_BYTES  VR_GIB
#define VR_SIM_WINDOW_BLOCKS 512 // of 2 MiB

// A mapped part of the file, made at the first write to it.
struct vr_sim_window {
    uint64_t number; // its place in the file over VR_SIM_WINDOW_BYTES
    uint64_t host;
    uint64_t touched[VR_SIM_WINDOW_BLOCKS / 64]; // blocks that may have pages; the others have none
};

// Invariant: by_number has the position + 1 of each window under its number + 1; the file is as long as the last window's end.
// vr_sim_windows_check() is that sentence.
struct vr_sim_windows {
    int file;            // borrowed
    uint64_t process;    // whose file it is: a child that was forked from it gives none of its pages back
    uint64_t file_bytes; // its length
    struct vr_sim_window *items;
    size_t count, items_capacity;
    struct vr_map by_number;
};

void vr_sim_windows_release(struct vr_sim_windows *windows);
// Makes the file reach to `end` at least. False when the host has no memory.
bool vr_sim_windows_lengthen(struct vr_sim_windows *windows, uint64_t end);
// How much of [at, at + size_bytes) one window shows from `at` on.
VR_INLINE uint64_t vr_sim_windows_span(uint64_t at, uint64_t size_bytes) {
    const uint64_t rest = VR_SIM_WINDOW_BYTES - at % VR_SIM_WINDOW_BYTES;
    return size_bytes < rest ? size_bytes : rest;
}
// The bytes at `at`, to be written; size_bytes of them lie in one window. NULL when the host has no memory.
unsigned char *vr_sim_windows_write(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes);
// The bytes at `at`, to be read; NULL where nothing was ever written.
const unsigned char *vr_sim_windows_read(const struct vr_sim_windows *windows, uint64_t at);
// Makes [at, at + size_bytes) zero: whole pages take no memory then. `foreign`: other processes write there, too, so that no block is known
// to have no pages. False when the host has no memory.
bool vr_sim_windows_zero(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes, bool foreign);
// The whole pages of it take no memory any more, and what the others hold is left. `settled`: nothing is written below that place for the
// first time, so that windows there go when they show nothing.
void vr_sim_windows_discard(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes, uint64_t settled);

bool vr_sim_windows_check(const struct vr_sim_windows *windows);

// ---- What device memory holds, kept only where data with content was written. Memory that was never written and memory that was filled
// with a pattern take no bytes, however large. Places are those of one memory file (sim_content.h). A range of memory has places of its own
// for as long as it lives, and no two ranges lie side by side: what belongs to a physical allocation is found from every address that it is
// mapped at.

// A copy from the host of more than this keeps no bytes where the options say bytes=none. What programs decide by is smaller: numbers,
// indices, tables of pointers.
#define VR_SIM_SMALL_COPY_BYTES (64 * VR_KIB)

// What a part of memory holds.
enum vr_sim_held {
    VR_SIM_UNWRITTEN, // what was there, or what a kernel wrote: reads give zeros
    VR_SIM_FILL,      // a pattern
    VR_SIM_BYTES,     // bytes of the file
    VR_SIM_SHARED,    // bytes of the file, which other processes write, too
    VR_SIM_NOT_KEPT,  // a large copy from the host that was not kept: reads give zeros
    VR_SIM_PASSED,    // something was written, and then a kernel was given it to write: reads give zeros
    VR_SIM_SUPPOSED   // bytes of the file that depend on what is not known: reads give them, and are counted as those of PASSED
};

// A small fill by a kernel, which a kernel soon after may be given to update: the write's number, and how many launches there had been.
struct vr_sim_small_fill {
    uint64_t number, launch;
};
#define VR_SIM_SMALL_FILLS      16
#define VR_SIM_SMALL_FILL_BYTES 4096
#define VR_SIM_FILL_LAUNCHES    16 // for so many launches it is expected to be updated in place

// Invariant: extents do not overlap, and their kind is one of enum vr_sim_held but UNWRITTEN; an extent's owner is, in its lower half, what
// of a FILL is four bytes, of which the byte at place p has number p % 4, and of what is SUPPOSED its level; in its upper half it is the
// number of the write, so that what was written at once ends where that ended; pages of a range that nothing of BYTES, SUPPOSED or SHARED
// lies in may be taken, but are never read. vr_sim_content_check() is the sentence's first half.
struct vr_sim_content {
    struct vr_sim_ranges extents;
    struct vr_sim_windows windows;
    uint64_t end;    // the next range's first place
    uint64_t writes; // numbers of writes
    // A place that a kernel was passed to write -> the number of the last write before, and for how many blocks, or how many bytes of a
    // fill were left there (lower half).
    struct vr_map outputs;
    uint64_t launches;
    struct vr_sim_small_fill small_fills[VR_SIM_SMALL_FILLS]; // a ring
    uint32_t next_small_fill;
};

// Bytes read that no copy and no fill wrote, that were not kept, and that were written before a kernel was given them to write.
#define VR_SIM_GAPS 8
struct vr_sim_read {
    uint64_t unwritten_bytes, not_kept_bytes, passed_bytes;
    // Where bytes went that are not known because a kernel would have written them; the first ones only, neighbours in one.
    struct {
        unsigned char *bytes;
        uint64_t size_bytes;
    } gaps[VR_SIM_GAPS];
    size_t gap_count;
    uint64_t counted; // elements that the last kernel looked at whose result is how many there are (vr_sim_launch_pass()); 0: none did
};

// Where in the program a call stands that may read, and what its reads get, in the words of who watches.
struct vr_sim_reader {
    uint64_t place;
    void *rule;
    const void *value; // chosen at its first read; NULL: not yet
    bool counts;       // it asks how many of some there are
};

// Who watches reads that do not give what a GPU would have given. All three are called in the thread of the call, but for copies behind a
// host function, which the thread of these functions does.
struct vr_sim_watch {
    // Before a call that may read, without the lock: stacks are taken here, for that may take the loader's lock, which another thread may
    // hold that waits for the simulator's.
    void (*come)(struct vr_sim_reader *reader);
    // Right after a copy, with the lock held: what comes after it in its stream finds values in the gaps.
    void (*give)(struct vr_sim_reader *reader, const struct vr_sim_read *read);
    // After the call, without the lock.
    void (*notify)(const struct vr_sim_reader *reader, const struct vr_sim_read *read);
};
VR_INLINE bool vr_sim_read_any(const struct vr_sim_read *read) {
    return (read->unwritten_bytes | read->not_kept_bytes | read->passed_bytes) != 0;
}

void vr_sim_content_open(struct vr_sim_content *content, int file);
void vr_sim_content_release(struct vr_sim_content *content);
// Places for a range of that many bytes; whole pages, never used again.
uint64_t vr_sim_content_place(struct vr_sim_content *content, uint64_t size_bytes);

// Four bytes of a pattern as a fill's word: the first of them lies at place `at`.
uint32_t vr_sim_content_word(uint32_t pattern, uint64_t at);
// What a fill's word gives the bytes at places [at, at + size_bytes).
void vr_sim_content_paint(unsigned char *bytes, uint64_t at, uint64_t size_bytes, uint32_t word);
// Makes host memory zero, by pieces of that many bytes.
#define VR_SIM_CLEARED_BYTES 4096
void vr_sim_content_clear(unsigned char *bytes, uint64_t size_bytes);

// Those below return false when the host has no memory; what the range holds then is not known.
bool vr_sim_content_fill(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, uint32_t word);
bool vr_sim_content_write(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const void *bytes);
// Written, and not kept.
bool vr_sim_content_forget(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes);
bool vr_sim_content_read(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, void *bytes, struct vr_sim_read *read);

// How far a byte is known.
enum vr_sim_level {
    VR_SIM_KNOWN,   // a GPU would have it
    VR_SIM_LIKELY,  // a program may go on with it, but a GPU may have another: VR_SIM_SUPPOSED
    VR_SIM_UNKNOWN, // what follows where what a kernel would have written is taken for zeros: VR_SIM_SUPPOSED, or no bytes at all
    VR_SIM_LEVELS
};
// As a read that is not listed: the bytes, and a level for each.
bool vr_sim_content_look(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, void *bytes, uint8_t *levels);
// A kernel wrote this, all of one level. bytes NULL: nothing follows of it, reads give zeros.
bool vr_sim_content_result(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const void *bytes, enum vr_sim_level level);
// As memmove() does it: the ranges may overlap.
bool vr_sim_content_copy(struct vr_sim_content *content, uint64_t to, uint64_t from, uint64_t size_bytes);
// Allocators' blocks begin at multiples of this, in PyTorch's caching allocator and in the driver's.
#define VR_SIM_BLOCK_BYTES 512
// A kernel is given that place to write, at most size_bytes of it. What was written there is gone: up to the end of the write that holds
// the place, and on as long as the next one begins right behind it and not where a block may begin, for that would be another block.
// Where it `updates` what it is given, a small fill that begins there, of one of the last launches, is left to be read, and is counted as
// what a kernel was given to write.
bool vr_sim_content_pass(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, bool updates);
// A kernel is launched.
void vr_sim_content_count_launch(struct vr_sim_content *content);
// The last write was a small fill by the kernel that was launched last.
void vr_sim_content_note_fill(struct vr_sim_content *content);
// From now on other processes have the range, which is all of what it belongs to.
bool vr_sim_content_share(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes);
// The range is free: what it holds is gone at once, and, unless `kept` for other processes, its pages are.
void vr_sim_content_drop(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, bool kept);

bool vr_sim_content_check(const struct vr_sim_content *content);

#endif
