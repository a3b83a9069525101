// watch.h: tracks the live memory of a program that is being recorded, from its growing recording file.
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/log.h"

// The grouping of live memory.
enum watch_by { WATCH_LIBRARY, WATCH_KIND, WATCH_SITE, WATCH_STREAM, WATCH_POOL, WATCH_BY_COUNT };
const char *watch_by_name(enum watch_by by);

struct watch_group {
    char *label;           // owned
    char *place;           // owned; the original label, by which stacks find their group
    char *module, *offset; // owned; the place in a program file, until watch_name_sites(); else NULL
    uint64_t bytes, count; // live
    uint64_t peak_bytes;   // of this group
    uint64_t made;         // allocations in total
};

struct watch_device {
    uint32_t device; // VRAM_LOG_HOST: pinned host memory
    uint64_t live_bytes, live_count, peak_bytes;
    uint64_t reserved_bytes; // from segment events; 0 without them
    uint64_t ooms;
};

enum { WATCH_MOST_LEAKS = 3 };

// A call site whose memory grows slowly: its old memory is kept, and grows as fast as before until now.
struct watch_leak {
    const char *label; // borrowed until the next update
    uint32_t device;
    double bytes_per_hour;
    uint64_t since_ns; // the epoch's
    bool sure;
};

struct watch;

// Opens the recording at `path`. Release *watch with watch_close(). Returns as vram_follow_open() does.
enum vram_status watch_open(const char *path, struct watch **watch, struct vram_error *error);
// Before the first update: also watches the slow growth of call sites. NO_HOST_MEMORY.
enum vram_status watch_growth(struct watch *watch);
// Accepts NULL.
void watch_close(struct watch *watch);
// Reads all new events. Stores their number in *events. Returns as vram_follow_next() does.
enum vram_status watch_update(struct watch *watch, uint64_t *events, struct vram_error *error);
// Reads a few thousand events at most, to divide a long update. 0 events: there are no more yet.
enum vram_status watch_step(struct watch *watch, uint64_t *events, struct vram_error *error);
// Returns whether the program has closed the file or exited.
bool watch_ended(const struct watch *watch);

// Borrowed until the next update.
const struct watch_device *watch_devices(const struct watch *watch, size_t *count);
const struct watch_group *watch_groups(const struct watch *watch, enum watch_by by, size_t *count);
// Gets the call sites that leak fastest, and returns their number. None without watch_growth(), and before an hour was recorded. Judges
// again at most every ten seconds of the recording.
size_t watch_leaks(struct watch *watch, struct watch_leak leaks[WATCH_MOST_LEAKS]);
// Names call sites in machine code by the program files on this machine. The recorded program must have run here.
void watch_name_sites(struct watch *watch);
uint64_t watch_events(const struct watch *watch);
// Return the time of the first and the last event, since the epoch; 0 without events.
uint64_t watch_first_ns(const struct watch *watch);
uint64_t watch_last_ns(const struct watch *watch);

#endif
