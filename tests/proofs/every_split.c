// Checks every sequence of requests and frees with sizes at which blocks are split, merged and released, with options that change this.
// After each operation the allocator is consistent and no two blocks overlap; at the end all memory is released.
//   proof_split [length of the sequences]
#include "proofs/every.h"

#include "base/base.h"
#include "os/os.h"
#include "support/world.h"

static const uint64_t sizes[] = {512, VR_MIB, VR_MIB + 512, 19 * VR_MIB, 24 * VR_MIB};
static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:20", "paged:True"};
// A request of each size; freeing the oldest, the newest and the middle block; releasing the cache.
enum { REQUESTS = VR_COUNT_OF(sizes), LETTERS = REQUESTS + 4, LENGTH_MOST = 8 };

struct live {
    uint64_t address[LENGTH_MOST], size[LENGTH_MOST];
    unsigned count;
};

static void get(struct vram_allocator *allocator, struct live *live, uint64_t size, unsigned long long number) {
    uint64_t address = 0;
    every_require(vram_malloc(allocator, 0, size, 0, &address) == VRAM_OK && address % 512 == 0, "a request fails", number);
    for (unsigned i = 0; i < live->count; i++)
        every_require(address >= live->address[i] + live->size[i] || live->address[i] >= address + size, "two blocks overlap", number);
    live->address[live->count] = address;
    live->size[live->count++] = size;
}

static void put(struct vram_allocator *allocator, struct live *live, unsigned index, unsigned long long number) {
    every_require(vram_free(allocator, live->address[index]) == VRAM_OK, "a block cannot be freed", number);
    live->count--;
    for (unsigned i = index; i < live->count; i++) live->address[i] = live->address[i + 1], live->size[i] = live->size[i + 1];
}

static void run(const char *conf, unsigned length, unsigned long long number) {
    const struct vr_world_options options = {.conf = conf, .sim = {.memory_bytes = VR_GIB}, .without_record = true};
    struct vr_world world;
    struct live live = {.count = 0};
    every_require(vr_world_open(&world, &options) == VRAM_OK, "no world", number);
    unsigned long long left = number;
    for (unsigned i = 0; i < length; i++, left /= LETTERS) {
        const unsigned letter = (unsigned)(left % LETTERS);
        if (letter < REQUESTS)
            get(world.allocator, &live, sizes[letter], number);
        else if (letter == LETTERS - 1)
            every_require(vram_empty_cache(world.allocator) == VRAM_OK, "the cache is not released", number);
        else if (live.count != 0)
            put(world.allocator, &live, letter == REQUESTS ? 0 : letter == REQUESTS + 1 ? live.count - 1 : live.count / 2, number);
        every_require(vram_check(world.allocator, NULL) == VRAM_OK, "the allocator breaks a rule", number);
    }
    every_require(vr_world_close(&world) == 0, "something is left on the driver", number);
}

int main(int argc, char **argv) {
    const unsigned wanted = every_bound(argc, argv, 3), length = wanted < LENGTH_MOST ? wanted : LENGTH_MOST;
    unsigned long long ran = 0;
    vr_os_keep_begin(); // keeps an allocator's tables, zeroed, for the next one
    for (unsigned conf = 0; conf < VR_COUNT_OF(confs); conf++) {
        for (unsigned long long number = 0; number < every_words(LETTERS, length); number++, ran++) run(confs[conf], length, number);
    }
    vr_os_keep_end();
    printf("split and merge: %llu sequences of %u operations under %zu option strings\n", ran, length, VR_COUNT_OF(confs));
    return 0;
}
