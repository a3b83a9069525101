// Imports and releases blocks of another process at random.
#include "pair.h"
#include "support/random.h"

#include <string.h>

enum { BLOCKS = 12, STEPS = 600 };

struct shared_block {
    uint64_t theirs, size_bytes, seed;
    struct other_reply exported;
    uint64_t ours[4]; // imports not released yet
    size_t imports;
};

struct chaos {
    struct pair pair;
    uint64_t random;
    struct shared_block blocks[BLOCKS];
};

static uint64_t draw(struct chaos *chaos, uint64_t limit) { return vr_random_below(&chaos->random, limit); }

static void chaos_make(struct chaos *chaos, struct shared_block *block) {
    struct pair *pair = &chaos->pair;
    *block = (struct shared_block){.size_bytes = 1000 + draw(chaos, draw(chaos, 2) ? 50 * VR_KIB : 45 * VR_MIB), .seed = chaos->random};
    block->theirs = get_there(pair, block->size_bytes);
    block->exported = ask(pair, &(struct other_order){.what = OTHER_EXPORT, .address = block->theirs});
    (void)ask(pair,
              &(struct other_order){.what = OTHER_WRITE, .address = block->theirs, .size_bytes = block->size_bytes, .seed = block->seed});
}

static void chaos_end(struct chaos *chaos, struct shared_block *block) {
    struct pair *pair = &chaos->pair;
    while (block->imports > 0) EXPECT_OK(vram_import_release(pair->here.allocator, block->ours[--block->imports]));
    (void)ask(pair, &(struct other_order){.what = OTHER_FREE, .address = block->theirs});
    if (draw(chaos, 4) == 0) (void)ask(pair, &(struct other_order){.what = OTHER_EMPTY_CACHE});
    block->theirs = 0;
}

static void chaos_step(struct chaos *chaos) {
    struct shared_block *block = &chaos->blocks[draw(chaos, BLOCKS)];
    const uint64_t kind = draw(chaos, 10);
    if (block->theirs == 0) {
        chaos_make(chaos, block);
    } else if (kind < 5 && block->imports < VR_COUNT_OF(block->ours)) {
        block->ours[block->imports++] = import_here(&chaos->pair, &block->exported).address;
    } else if (kind < 8 && block->imports > 0) {
        EXPECT_OK(vram_import_release(chaos->pair.here.allocator, block->ours[--block->imports]));
    } else if (kind == 9) {
        chaos_end(chaos, block);
    }
    for (size_t i = 0; i < block->imports; i++) assert_true(other_is(block->ours[i], block->size_bytes, block->seed));
}

// No block ever shows another's bytes, however their imports overlap.
static void random_blocks_keep_their_bytes(void **state) {
    (void)state;
    static const char *const any_confs[] = {"", "expandable_segments:True", "paged:True"};
    for (size_t c = 0; c < VR_COUNT_OF(any_confs); c++) {
        static struct chaos chaos;
        chaos = (struct chaos){.random = 20 + c};
        open_pair(&chaos.pair, any_confs[c]);
        for (size_t step = 0; step < STEPS; step++) chaos_step(&chaos);
        for (size_t i = 0; i < BLOCKS; i++)
            if (chaos.blocks[i].theirs != 0) chaos_end(&chaos, &chaos.blocks[i]);
        assert_int_equal(stats_here(&chaos.pair).imports, 0);
        close_pair(&chaos.pair);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "other") == 0) return other_main(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_blocks_keep_their_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
