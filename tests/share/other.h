// other.h: the other process of a test: a worker with a simulated machine and an allocator of its own, told what to do through a socket.
#ifndef VR_TEST_OTHER_H
#define VR_TEST_OTHER_H

#include <stdint.h>
#include <sys/types.h>

#include "support/world.h"
#include "vram/share.h"

enum { OTHER_SOCKET = 3, OTHER_HANDLE_BYTES = 4096 };

enum other_what {
    OTHER_MALLOC,      // size_bytes -> address
    OTHER_MALLOC_RAW,  // the same with caching off
    OTHER_FREE,        // address
    OTHER_EMPTY_CACHE, //
    OTHER_EXPORT,      // address -> handle
    OTHER_EXPORT_END,  // address
    OTHER_IMPORT,      // handle -> imported
    OTHER_RELEASE,     // address
    OTHER_SEND,        // address, and a handle through the socket after the reply
    OTHER_RECEIVE,     // imported, from the socket before the reply
    OTHER_WRITE,       // address, size_bytes, seed
    OTHER_READ,        // address, size_bytes, seed -> status MISMATCH when other bytes are there
    OTHER_STATS,       // -> stats, used_bytes
    OTHER_END,         // takes everything down -> left: driver objects left behind
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
// Has an order carried out; a worker that is gone is status IO.
struct other_reply other_do(struct other *other, const struct other_order *order);
// Half of it, for orders that use the socket themselves.
void other_tell(struct other *other, const struct other_order *order);
struct other_reply other_hear(struct other *other);
// Ends the worker; kill: as a crash would. Waits for it.
void other_stop(struct other *other, int kill);

// The worker's whole life; what main() does in it.
int other_main(const char *conf);

// Bytes that depend on the seed and the place.
void other_write(uint64_t address, uint64_t size_bytes, uint64_t seed);
int other_is(uint64_t address, uint64_t size_bytes, uint64_t seed);

#endif
