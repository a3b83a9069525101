// sim_content.h: contents of device memory, and the windows of host memory that hold written bytes.
#ifndef VR_SIM_MEMORY_SIM_CONTENT_H
#define VR_SIM_MEMORY_SIM_CONTENT_H

#include "base/hash.h"
#include "sim/sim_ranges.h"

// ---- A sparse memory file: only written parts take memory. It is accessed through mappings of 1 GiB each.

#define VR_SIM_WINDOW_BYTES  VR_GIB
#define VR_SIM_WINDOW_BLOCKS 512 // blocks of 2 MiB

// A mapped part of the file, created by the first write to it.
struct vr_sim_window {
    uint64_t number; // position in the file divided by VR_SIM_WINDOW_BYTES
    uint64_t host;
    uint64_t touched[VR_SIM_WINDOW_BLOCKS / 64]; // blocks that may have pages; the others have no pages
};

// Invariant: by_number maps number + 1 of each window to its index + 1; the file extends at least to the end of the last window.
// vr_sim_windows_check() tests it.
struct vr_sim_windows {
    int file;            // borrowed
    uint64_t process;    // id of the process that created the file; a forked child must not discard its pages
    uint64_t file_bytes; // length of the file
    struct vr_sim_window *items;
    size_t count, items_capacity;
    struct vr_map by_number;
};

void vr_sim_windows_release(struct vr_sim_windows *windows);
// Extends the file to at least `end`. Returns false if the host is out of memory.
bool vr_sim_windows_lengthen(struct vr_sim_windows *windows, uint64_t end);
// Returns how much of [at, at + size_bytes) is in the window that contains `at`.
VR_INLINE uint64_t vr_sim_windows_span(uint64_t at, uint64_t size_bytes) {
    const uint64_t rest = VR_SIM_WINDOW_BYTES - at % VR_SIM_WINDOW_BYTES;
    return size_bytes < rest ? size_bytes : rest;
}
// Returns the bytes at `at` for writing. [at, at + size_bytes) must be in one window. NULL if the host is out of memory.
unsigned char *vr_sim_windows_write(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes);
// Returns the bytes at `at` for reading, or NULL if their window was never written.
const unsigned char *vr_sim_windows_read(const struct vr_sim_windows *windows, uint64_t at);
// Zeroes [at, at + size_bytes) and frees its whole pages. `foreign`: other processes write there too, so any block may have pages. Returns
// false if the host is out of memory.
bool vr_sim_windows_zero(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes, bool foreign);
// Frees the whole pages in the range and leaves partial pages unchanged. Unmaps windows below `settled` that are empty now: no range there
// will be written for the first time.
void vr_sim_windows_discard(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes, uint64_t settled);

bool vr_sim_windows_check(const struct vr_sim_windows *windows);

// ---- Contents of device memory, stored only where data with content was written. Memory never written, or filled with a pattern, takes no
// bytes whatever its size. A place is an offset in the memory file. Each range of memory has its own places while it is live, and places of
// two ranges are never adjacent. Every address that maps a physical allocation leads to the allocation's places.

// With bytes=none, larger copies from the host are not kept. The data that programs branch on is smaller: numbers, indices, tables of
// pointers.
#define VR_SIM_SMALL_COPY_BYTES (64 * VR_KIB)

// Contents of a part of memory.
enum vr_sim_held {
    VR_SIM_UNWRITTEN, // never written, or written only by a kernel: reads return zeros
    VR_SIM_FILL,      // a pattern
    VR_SIM_BYTES,     // bytes of the file
    VR_SIM_SHARED,    // bytes of the file that other processes write, too
    VR_SIM_NOT_KEPT,  // a large copy from the host, not kept: reads return zeros
    VR_SIM_PASSED,    // written, then passed to a kernel as an output: reads return zeros
    VR_SIM_SUPPOSED   // bytes of the file that depend on unknown data: reads return them and count them as PASSED
};

// A small fill by a kernel, which one of the next kernels may update in place: number of the write, and number of launches before it.
struct vr_sim_small_fill {
    uint64_t number, launch;
};
#define VR_SIM_SMALL_FILLS      16
#define VR_SIM_SMALL_FILL_BYTES 4096
#define VR_SIM_FILL_LAUNCHES    16 // launches during which an update in place is expected

// Invariant: extents do not overlap and their kind is any of enum vr_sim_held except UNWRITTEN. The lower half of an extent's owner is the
// four bytes of a FILL (the byte at place p is number p % 4) or the level of SUPPOSED. The upper half is the number of the write, so that
// data written together is dropped together. vr_sim_content_check() tests this. Pages of a range without BYTES, SUPPOSED or SHARED may be
// allocated, but are never read.
struct vr_sim_content {
    struct vr_sim_ranges extents;
    struct vr_sim_windows windows;
    uint64_t end;    // first place of the next range
    uint64_t writes; // number of the last write
    // Maps a place that a kernel got as an output to two numbers. Upper half: the last write before. Lower half: the output's length in
    // blocks, or the length of a small fill that was left readable.
    struct vr_map outputs;
    uint64_t launches;
    struct vr_sim_small_fill small_fills[VR_SIM_SMALL_FILLS]; // ring buffer
    uint32_t next_small_fill;
};

// Result of a read: bytes that no copy or fill wrote, bytes not kept, and bytes written before a kernel got them as an output.
#define VR_SIM_GAPS 8
struct vr_sim_read {
    uint64_t unwritten_bytes, not_kept_bytes, passed_bytes;
    // The destinations of unknown bytes that the read stored, because a kernel would have written them. Only the first gaps; adjacent ones
    // are merged.
    struct {
        unsigned char *bytes;
        uint64_t size_bytes;
    } gaps[VR_SIM_GAPS];
    size_t gap_count;
    uint64_t counted; // number of elements that the last counting kernel examined (vr_sim_launch_pass()); 0: there was none
};

// The call site of a call that may read, and how its reads are answered. The fields belong to the watcher.
struct vr_sim_reader {
    uint64_t place;
    void *rule;
    const void *value; // chosen at the first read; NULL: not yet chosen
    bool counts;       // the operation counts elements
};

// Callbacks for reads that do not return what a GPU would. They run in the thread of the call, except for copies after a host function,
// which run in the thread of the host functions.
struct vr_sim_watch {
    // Called before a call that may read, without the lock. Stacks are captured here because that may take the loader's lock, whose holder
    // may be waiting for the simulator's lock.
    void (*come)(struct vr_sim_reader *reader);
    // Called right after a copy, with the lock held: later work in the stream sees the values it stores in the gaps.
    void (*give)(struct vr_sim_reader *reader, const struct vr_sim_read *read);
    // Called after the call, without the lock.
    void (*notify)(const struct vr_sim_reader *reader, const struct vr_sim_read *read);
};
VR_INLINE bool vr_sim_read_any(const struct vr_sim_read *read) {
    return (read->unwritten_bytes | read->not_kept_bytes | read->passed_bytes) != 0;
}

void vr_sim_content_open(struct vr_sim_content *content, int file);
void vr_sim_content_release(struct vr_sim_content *content);
// Allocates places for a range of size_bytes: whole pages, never reused.
uint64_t vr_sim_content_place(struct vr_sim_content *content, uint64_t size_bytes);

// Converts four bytes of a pattern, whose first byte is at place `at`, to a fill's word.
uint32_t vr_sim_content_word(uint32_t pattern, uint64_t at);
// Writes the bytes of a fill's word for places [at, at + size_bytes).
void vr_sim_content_paint(unsigned char *bytes, uint64_t at, uint64_t size_bytes, uint32_t word);
// Zeroes host memory in steps of VR_SIM_CLEARED_BYTES.
#define VR_SIM_CLEARED_BYTES 4096
void vr_sim_content_clear(unsigned char *bytes, uint64_t size_bytes);

// The functions below return false if the host is out of memory; the contents of the range are then undefined.
bool vr_sim_content_fill(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, uint32_t word);
bool vr_sim_content_write(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const void *bytes);
// Marks the range as written but not kept.
bool vr_sim_content_forget(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes);
bool vr_sim_content_read(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, void *bytes, struct vr_sim_read *read);

// The certainty of a byte.
enum vr_sim_level {
    VR_SIM_KNOWN,   // a GPU would have the same
    VR_SIM_LIKELY,  // good enough to continue with, but a GPU may have another: VR_SIM_SUPPOSED
    VR_SIM_UNKNOWN, // computed from zeros instead of a kernel's output: VR_SIM_SUPPOSED, or no bytes at all
    VR_SIM_LEVELS
};
// Reads without reporting it: returns the bytes and a level for each.
bool vr_sim_content_look(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, void *bytes, uint8_t *levels);
// Stores a kernel's result, all of one level. bytes == NULL: the result is unknown and reads return zeros.
bool vr_sim_content_result(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const void *bytes, enum vr_sim_level level);
// Copies like memmove(): the ranges may overlap.
bool vr_sim_content_copy(struct vr_sim_content *content, uint64_t to, uint64_t from, uint64_t size_bytes);
// Blocks of PyTorch's caching allocator and of the driver start at multiples of this.
#define VR_SIM_BLOCK_BYTES 512
// Marks [at, at + size_bytes) as passed to a kernel for writing, which drops the data there: up to the end of the write that contains `at`,
// and further while the next write follows directly and does not start where a block may start, for that may be another block. If the
// kernel `updates` its outputs, a recent small fill that starts at `at` stays readable, but counts as passed to a kernel.
bool vr_sim_content_pass(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, bool updates);
// Does the same for exactly the range.
bool vr_sim_content_lose(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes);
// Counts a launch of a kernel.
void vr_sim_content_count_launch(struct vr_sim_content *content);
// Records that the last write was a small fill by the kernel launched last.
void vr_sim_content_note_fill(struct vr_sim_content *content);
// Makes the range, which must be all of an allocation, accessible to other processes.
bool vr_sim_content_share(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes);
// Frees the range: drops its contents and, unless `kept` for other processes, its pages.
void vr_sim_content_drop(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, bool kept);

bool vr_sim_content_check(const struct vr_sim_content *content);

#endif
