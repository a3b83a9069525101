// Checks every sequence of sets and takes over six keys, several of which share a home slot at the end of the table or its beginning, so
// that runs wrap around. After each operation the map is consistent and equal to a plain array.
//   proof_map [length of the sequences]
#include "proofs/every.h"

#include "base/hash.h"
#include "support/random.h"

enum { KEYS = 6, SLOTS = 64 };

static const unsigned homes[KEYS] = {62, 63, 63, 0, 0, 1};

// Chooses keys with these home slots, by the table's secret.
static void choose_keys(const struct vr_map *map, uint64_t keys[KEYS]) {
    for (unsigned i = 0; i < KEYS; i++) keys[i] = vr_unmix64(homes[i] | (uint64_t)(i + 1) << 32) ^ map->secret;
}

static void check(const struct vr_map *map, const uint64_t keys[KEYS], const uint64_t values[KEYS], unsigned long long number) {
    size_t count = 0;
    every_require(vr_map_check(map), "the map breaks a rule", number);
    for (unsigned i = 0; i < KEYS; i++) {
        every_require(vr_map_get(map, keys[i]) == values[i], "another value is found than was set", number);
        count += values[i] != 0;
    }
    every_require(map->count == count, "the map counts other keys", number);
}

static void run(struct vr_map *map, unsigned length, unsigned long long number) {
    uint64_t keys[KEYS], values[KEYS] = {0};
    vr_map_clear(map);
    choose_keys(map, keys);
    unsigned long long left = number;
    for (unsigned step = 0; step < length; step++, left /= 2 * KEYS) {
        const unsigned letter = (unsigned)(left % (2 * KEYS)), key = letter / 2;
        if (letter % 2 == 0) {
            values[key] = step + 1;
            every_require(vr_map_set(map, keys[key], step + 1) == VRAM_OK, "a key cannot be set", number);
        } else {
            every_require(vr_map_take(map, keys[key]) == values[key], "another value is taken than was set", number);
            values[key] = 0;
        }
    }
    check(map, keys, values, number);
}

// Grows up to twice, with increasing keys: each is found at once and at the end.
static void grow(void) {
    struct vr_map map = {0};
    for (uint64_t key = 0; key < 3 * SLOTS; key++) {
        every_require(vr_map_set(&map, key, key + 1) == VRAM_OK && vr_map_check(&map), "the map does not grow", key);
        for (uint64_t known = 0; known <= key; known++)
            every_require(vr_map_get(&map, known) == known + 1, "a key is lost in growing", key);
    }
    for (uint64_t key = 0; key < 3 * SLOTS; key++)
        every_require(vr_map_take(&map, key) == key + 1 && vr_map_check(&map), "a key is not taken", key);
    vr_map_release(&map);
}

int main(int argc, char **argv) {
    const unsigned most = every_bound(argc, argv, 5);
    struct vr_map map = {0};
    unsigned long long ran = 0;
    every_require(vr_map_reserve(&map, 1) == VRAM_OK && map.mask == SLOTS - 1, "a table of another size", 0);
    // Shorter sequences are prefixes of longer ones, of which only the ends are checked.
    for (unsigned length = 1; length <= most; length++) {
        for (unsigned long long number = 0, count = every_words(2 * KEYS, length); number < count; number++, ran++)
            run(&map, length, number);
    }
    vr_map_release(&map);
    grow();
    printf("map: %llu sequences of up to %u operations over %d keys\n", ran, most, KEYS);
    return 0;
}
