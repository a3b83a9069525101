// Checks every sequence of insertions, removals and moves of five blocks in the index of free blocks, with bins that already hold few
// blocks, the most that a list may have, and more. After each sequence the index is consistent, and a search for any size finds the same
// block as a plain walk over the blocks.
//   proof_index [length of the sequences]
#include "proofs/every.h"

#include "core/index.h"

enum { MOVERS = 5, FIXED_MOST = VR_MOST_LISTED + 1, BLOCKS = 1 + FIXED_MOST + MOVERS, SEGMENTS = 3 };

// Sizes: one from an exact-size bin, and two from one bin above 2 MiB, whose sizes differ.
static const uint64_t sizes[] = {1024, (64 * VR_MIB), (64 * VR_MIB) + 512};

struct bench {
    struct vr_block blocks[BLOCKS];
    uint64_t ages[SEGMENTS], numbers[BLOCKS];
    enum vr_order order;
    struct vr_index_arena arena;
    struct vr_index index;
    bool in[BLOCKS];
};

static struct bench bench;

static void place(unsigned block, unsigned size, unsigned place) {
    struct vr_block *item = &bench.blocks[block];
    *item = (struct vr_block){.address = (uint64_t)(place + 1) << 30, .size = sizes[size % VR_COUNT_OF(sizes)], .state = VR_FREE};
    item->segment = 1 + place % (SEGMENTS - 1);
}

static void begin(enum vr_order order, unsigned fixed) {
    memset(&bench, 0, sizeof bench);
    bench.order = order;
    bench.arena = (struct vr_index_arena){.blocks = bench.blocks, .ages = bench.ages};
    if (order == VR_BY_SIZE_NUMBER) bench.arena.numbers = bench.numbers;
    for (unsigned i = 0; i < SEGMENTS; i++) bench.ages[i] = order == VR_BY_SIZE_AGE_ADDRESS ? SEGMENTS - i : 0;
    for (unsigned i = 0; i < BLOCKS; i++) bench.numbers[i] = (i * 7) % BLOCKS + 1;
    for (unsigned i = 1; i <= fixed; i++) {
        place(i, fixed % 2 ? 1 : 0, 2 * i);
        vr_index_insert(&bench.index, &bench.arena, i);
        bench.in[i] = true;
    }
    for (unsigned i = 0; i < MOVERS; i++) place(1 + FIXED_MOST + i, i, i % 2 ? 9 * i : 12 * i + 1);
}

static uint64_t age_of(unsigned block) {
    if (bench.order == VR_BY_SIZE_NUMBER) return bench.numbers[block];
    return bench.order == VR_BY_SIZE_AGE_ADDRESS ? bench.ages[bench.blocks[block].segment] : 0;
}

// Returns whether `a` comes before `b` by the rules of index.h, written independently.
static bool is_first(unsigned a, unsigned b) {
    const struct vr_block *left = &bench.blocks[a], *right = &bench.blocks[b];
    const uint64_t ages[2] = {age_of(a), age_of(b)};
    if (left->size != right->size) return left->size < right->size;
    return ages[0] != ages[1] ? ages[0] < ages[1] : left->address < right->address;
}

static unsigned walk_for(uint64_t size) {
    unsigned found = 0;
    for (unsigned i = 1; i < BLOCKS; i++) {
        if (bench.in[i] && bench.blocks[i].size >= size && (found == 0 || is_first(i, found))) found = i;
    }
    return found;
}

static void check(unsigned long long number) {
    size_t counted = 0, count = 0;
    for (unsigned i = 1; i < BLOCKS; i++) count += bench.in[i];
    every_require(vr_index_check(&bench.index, &bench.arena, &counted) && counted == count, "the index breaks a rule", number);
    for (unsigned i = 0; i < VR_COUNT_OF(sizes); i++) {
        for (uint64_t size = sizes[i] - 512; size <= sizes[i] + 512; size += 512)
            every_require(vr_index_first_at_least(&bench.index, &bench.arena, size) == walk_for(size), "another block is found", number);
    }
    size_t walked = 0;
    uint32_t before = 0;
    for (uint32_t at = vr_index_first_at_least(&bench.index, &bench.arena, 0); at != 0;
         before = at, at = vr_index_next(&bench.index, &bench.arena, at)) {
        every_require(before == 0 || is_first(before, at), "the order is another one", number);
        every_require(vr_index_previous(&bench.index, &bench.arena, at) == before, "the way back is another one", number);
        walked++;
    }
    every_require(walked == count, "the walk misses a block", number);
}

// Removes every block, even numbers first: trees become lists of one block, and bins become empty.
static void empty(unsigned long long number) {
    size_t left = 0, counted = 0;
    for (unsigned i = 1; i < BLOCKS; i++) left += bench.in[i];
    for (unsigned odd = 0; odd < 2; odd++) {
        for (unsigned i = 2 - odd; i < BLOCKS; i += 2) {
            if (!bench.in[i]) continue;
            vr_index_remove(&bench.index, &bench.arena, i);
            every_require(vr_index_check(&bench.index, &bench.arena, &counted) && counted == --left, "emptied, the index breaks a rule",
                          number);
        }
    }
    every_require(vr_index_is_empty(&bench.index), "something is left in the index", number);
}

// Applies one letter: inserts or removes a block or, while it is in, changes its size.
static void step(unsigned letter) {
    const unsigned block = 1 + FIXED_MOST + letter / 2;
    if (letter % 2 == 0) {
        if (bench.in[block])
            vr_index_remove(&bench.index, &bench.arena, block);
        else
            vr_index_insert(&bench.index, &bench.arena, block);
        bench.in[block] = !bench.in[block];
    } else if (bench.in[block]) {
        const uint64_t size = bench.blocks[block].size == sizes[1] ? sizes[2] : sizes[1];
        vr_index_remove(&bench.index, &bench.arena, block);
        bench.blocks[block].address += 512;
        bench.blocks[block].size = size;
        vr_index_insert(&bench.index, &bench.arena, block);
    }
}

int main(int argc, char **argv) {
    static const unsigned fixed[] = {0, 1, VR_MOST_LISTED - 2, VR_MOST_LISTED - 1, VR_MOST_LISTED, FIXED_MOST};
    const unsigned length = every_bound(argc, argv, 3);
    unsigned long long ran = 0;
    for (enum vr_order order = VR_BY_SIZE_ADDRESS; order <= VR_BY_SIZE_NUMBER; order++) {
        for (unsigned f = 0; f < VR_COUNT_OF(fixed); f++) {
            for (unsigned long long number = 0, count = every_words(2 * MOVERS, length); number < count; number++, ran++) {
                begin(order, fixed[f]);
                unsigned long long left = number;
                for (unsigned i = 0; i < length; i++, left /= 2 * MOVERS) step((unsigned)(left % (2 * MOVERS)));
                check(number);
                if (number % 7 == 0) empty(number);
            }
        }
    }
    printf("index: %llu sequences of %u operations, bins of 0 to %d further blocks, three orders\n", ran, length, FIXED_MOST);
    return 0;
}
