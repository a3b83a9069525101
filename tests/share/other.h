// other.h: the other process of a test: a worker with its own simulated machine and allocator, controlled through a socket.
#ifndef VR_TEST_OTHER_H
#define VR_TEST_OTHER_H

#include <stdint.h>
#include <sys/types.h>

#include "support/world.h"
#include "vram/share.h"

enum { OTHER_SOCKET = 3, OTHER_HANDLE_BYTES = 4096 };

enum other_what {
    OTHER_MALLOC,      // size_bytes -> address
    OTHER_MALLOC_RAW,  // likewise with caching off
    OTHER_FREE,        // address
    OTHER_EMPTY_CACHE, //
    OTHER_EXPORT,      // address -> handle
    OTHER_EXPORT_END,  // address
    OTHER_IMPORT,      // handle -> imported
    OTHER_RELEASE,     // address
    OTHER_SEND,        // address, and a handle through the socket after the reply
    OTHER_RECEIVE,     // imported, from the socket before the reply
    OTHER_WRITE,       // address, size_bytes, seed
    OTHER_READ,        // address, size_bytes, seed -> status MISMATCH if the bytes differ
    OTHER_STATS,       // -> stats, used_bytes
    OTHER_END,         // closes everything -> left: driver objects left behind
};

struct other_order {
    enum other_what what;
    uint32_t handle_bytes;
    uint64_t address, size_bytes, seed;
    unsigned char handle[OTHER_HANDLE_BYTES];
};

struct other_reply {
    enum vram_status status;
    uint32_t handle_bytes;
    uint64_t address, left, used_bytes;
    struct vram_imported imported;
    struct vram_share_stats stats;
    char message[512];
    unsigned char handle[OTHER_HANDLE_BYTES];
};

struct other {
    pid_t process;
    int socket;
};

// Starts this program again as the worker. conf: its allocator's options.
int other_start(struct other *other, const char *conf);
// Executes an order. Returns status IO if the worker is gone.
struct other_reply other_do(struct other *other, const struct other_order *order);
// Send an order and receive its reply, for orders that use the socket themselves.
void other_tell(struct other *other, const struct other_order *order);
struct other_reply other_hear(struct other *other);
// Ends the worker and waits for it; kill: like a crash.
void other_stop(struct other *other, int kill);

// The worker's main function.
int other_main(const char *conf);

// Write and check bytes that depend on the seed and the position.
void other_write(uint64_t address, uint64_t size_bytes, uint64_t seed);
int other_is(uint64_t address, uint64_t size_bytes, uint64_t seed);

#endif
