// Allocates with a history in a file until it is killed: killed_history FILE COUNTER. COUNTER is a file of 8 bytes: the number of completed
// allocations and frees.
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/random.h"
#include "support/world.h"
#include "vram/history.h"

enum { BLOCKS = 32 };

int main(int argc, char **argv) {
    struct vr_world world;
    const int file = argc == 3 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
    if (file < 0 || ftruncate(file, 8) != 0) return 2;
    _Atomic uint64_t *counter = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const struct vr_world_options options = {.without_record = true};
    const struct vram_history_options history = {.file = argv[1]};
    if (counter == MAP_FAILED || vr_world_open(&world, &options) != VRAM_OK) return 2;
    if (vram_history_start(world.allocator, &history, NULL) != VRAM_OK) return 3;
    uint64_t held[BLOCKS] = {0}, random = 1;
    for (;;) {
        uint64_t *slot = &held[vr_random_below(&random, BLOCKS)];
        if (*slot != 0) {
            if (vram_free(world.allocator, *slot) != VRAM_OK) return 4;
            *slot = 0;
        } else if (vram_malloc(world.allocator, 0, 1 + vr_random_below(&random, VR_MIB), 0, slot) != VRAM_OK) {
            return 5;
        }
        atomic_fetch_add(counter, 1);
    }
}
