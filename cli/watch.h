// watch.h: what is alive in a program that is being recorded, kept up from its recording file as it grows.
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/log.h"

// By what live memory is grouped.
enum watch_by { WATCH_LIBRARY, WATCH_KIND, WATCH_SITE, WATCH_STREAM, WATCH_POOL, WATCH_BY_COUNT };
const char *watch_by_name(enum watch_by by);

struct watch_group {
    char *label;           // owned
    char *place;           // owned: the label as it was made, by which stacks find their group
    char *module, *offset; // owned: the place in a program file that the label tells until watch_name_sites(); else NULL
    uint64_t bytes, count; // alive
    uint64_t peak_bytes;   // of this group
    uint64_t made;         // allocations ever
};

struct watch_device {
    uint32_t device; // VRAM_LOG_HOST: pinned host memory
    uint64_t live_bytes, live_count, peak_bytes;
    uint64_t reserved_bytes; // by segment events; 0 where there are none
    uint64_t ooms;
};

struct watch;

// Opens the recording at `path`. *watch is given to the caller: watch_close(). As vram_follow_open().
enum vram_status watch_open(const char *path, struct watch **watch, struct vram_error *error);
// NULL is ignored.
void watch_close(struct watch *watch);
// Takes in what has come since. *events is how many. As vram_follow_next().
enum vram_status watch_update(struct watch *watch, uint64_t *events, struct vram_error *error);
// The same of a few thousand events at most: what takes long, piece by piece. 0 events: there are no more yet.
enum vram_status watch_step(struct watch *watch, uint64_t *events, struct vram_error *error);
// Whether the program has closed the file, or is gone.
bool watch_ended(const struct watch *watch);

// Borrowed until the next update.
const struct watch_device *watch_devices(const struct watch *watch, size_t *count);
const struct watch_group *watch_groups(const struct watch *watch, enum watch_by by, size_t *count);
// Gives names to call sites in machine code, as far as their program files are here: those of the recorded program's machine.
void watch_name_sites(struct watch *watch);
uint64_t watch_events(const struct watch *watch);
// Of the events: first and last, since the epoch; 0 where there are none.
uint64_t watch_first_ns(const struct watch *watch);
uint64_t watch_last_ns(const struct watch *watch);

#endif
