// sim_windows.h: a memory file, of which only the parts that were written take memory, seen through mappings of a GiB each.
#ifndef VR_SIM_MEMORY_SIM_WINDOWS_H
#define VR_SIM_MEMORY_SIM_WINDOWS_H

#include "base/map.h"

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

#endif
