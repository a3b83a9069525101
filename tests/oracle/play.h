// play.h: plays a list of operations on this allocator and writes its answers as text (format.md). play_torch.py plays the same list on
// PyTorch's own allocator; the two texts are compared line by line.
#ifndef VR_TEST_PLAY_H
#define VR_TEST_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/world.h"
#include "vram/host.h"
#include "vram/pool.h"
#include "vram/stats.h"

enum { PLAY_THREADS = 4, PLAY_POOLS = 512, PLAY_GRAPHS = 512, PLAY_BLOCKS = 1 << 16, PLAY_PINNED = 4096 };

struct play_text {
    char *bytes; // NUL-terminated
    size_t length, capacity;
};

struct play_block {
    uint64_t address; // 0: not live
    uint32_t device;
};
struct play_pool {
    struct vram_pool *handle; // NULL if never created
    struct vram_pool_id id;
    uint32_t device, references;
};
struct play_graph {
    uint64_t stream;
    uint32_t pool;
    bool live;
    uint64_t generator[2]; // its own blocks; 0: none
};
struct play_current {
    uint32_t device, stream; // by number
};

// An address of pinned memory, and its number.
struct play_place {
    const void *pointer;
    size_t number;
};

struct play {
    struct vr_world world;
    struct play_text out;
    uint32_t version; // of PyTorch: 2006 for 2.6
    bool captures;    // the list has captures
    struct play_block *blocks;
    struct play_pool pools[PLAY_POOLS];
    struct play_graph graphs[PLAY_GRAPHS];
    struct play_current current[PLAY_THREADS];
    uint32_t thread;                           // of the current operations
    struct vram_stats known[VR_WORLD_DEVICES]; // at the last `stats`
    struct vram_host *host;                    // made by the first operation on pinned memory
    char conf[1024];
    void *pinned[PLAY_PINNED];
    struct play_place places[PLAY_PINNED];
    size_t place_count, next_place;
};

void play_say(struct play *play, const char *format, ...) VRAM_PRINTF(2, 3);
// Return the numbers by which the list names a stream and a pool, or -1 if the list does not have it.
int play_stream_number(const struct play *play, uint32_t device, uint64_t stream);
int play_pool_number(const struct play *play, struct vram_pool_id id);

// --- play_pictures.c: the lines after `stats`, `map` and `events` -----------------------------------------------------------------------
enum vram_status play_stats(struct play *play);
enum vram_status play_map(struct play *play);
void play_events(struct play *play);

// --- play_operations.c ------------------------------------------------------------------------------------------------------------------
// Runs the operation of one line, which is cut into words, and writes its answer. BAD_INPUT if the line is not an operation.
enum vram_status play_operation(struct play *play, char *line);

// --- play_compare.c ---------------------------------------------------------------------------------------------------------------------
// Returns whether our lines equal PyTorch's, and prints that, or the first difference. Cuts up both texts.
bool play_compare(const char *path, char *ours_text, char *theirs_text);

#endif
