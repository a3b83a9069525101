// Tests base's tables, the map of numbers and the index of rows, against plain arrays, and with keys constructed to collide.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/hash.h"
#include "support/random.h"

static void map_is_a_map(void **state) {
    (void)state;
    enum { KEYS = 300 };
    uint64_t plain[KEYS] = {0};
    struct vr_map map = {0};
    uint64_t random = 1;
    assert_int_equal(vr_map_get(&map, 5), 0);
    assert_int_equal(vr_map_take(&map, 5), 0);
    for (unsigned i = 0; i < 100000; i++) {
        const uint64_t key = vr_random_below(&random, KEYS);
        // Realistic addresses: multiples of 512, including 0 and all ones.
        const uint64_t address = key == 1 ? UINT64_MAX : key * 512;
        if (vr_random_below(&random, 2) == 0) {
            plain[key] = 1 + (vr_random_next(&random) >> 1);
            assert_int_equal(vr_map_set(&map, address, plain[key]), VRAM_OK);
        } else {
            assert_int_equal(vr_map_take(&map, address), plain[key]);
            plain[key] = 0;
        }
        const uint64_t other = vr_random_below(&random, KEYS);
        assert_int_equal(vr_map_get(&map, other == 1 ? UINT64_MAX : other * 512), plain[other]);
        if (i % 1000 == 0) assert_true(vr_map_check(&map));
    }
    size_t count = 0, at = 0, visited = 0;
    for (size_t key = 0; key < KEYS; key++) count += plain[key] != 0;
    assert_int_equal(map.count, count);
    for (struct vr_map_slot entry; vr_map_next(&map, &at, &entry); visited++)
        assert_int_equal(entry.value, plain[entry.key == UINT64_MAX ? 1 : entry.key / 512]);
    assert_int_equal(visited, count);
    vr_map_clear(&map);
    assert_int_equal(map.count, 0);
    for (uint64_t key = 0; key < KEYS; key++) assert_int_equal(vr_map_get(&map, key * 512), 0);
    vr_map_release(&map);
}

static void what_was_reserved_moves_nothing(void **state) {
    (void)state;
    struct vr_map map = {0};
    assert_int_equal(vr_map_reserve(&map, SIZE_MAX), VRAM_NO_HOST_MEMORY);
    assert_int_equal(vr_map_reserve(&map, SIZE_MAX / 2), VRAM_NO_HOST_MEMORY);
    assert_null(map.slots);
    assert_int_equal(vr_map_growth_bytes(&map), 64 * sizeof(struct vr_map_slot));
    assert_int_equal(vr_map_reserve(&map, 1000), VRAM_OK);
    const struct vr_map_slot *slots = map.slots;
    for (uint64_t key = 0; key < 1000; key++) {
        assert_int_equal(vr_map_growth_bytes(&map), 0);
        assert_int_equal(vr_map_set(&map, key, 1), VRAM_OK);
    }
    assert_ptr_equal(map.slots, slots);
    vr_map_release(&map);
}

// 100,000 addresses that a table without a secret would put into one slot; measures the longest probe, not time.
static size_t longest_way(const struct vr_map *map) {
    size_t longest = 0, at = 0;
    for (struct vr_map_slot entry; vr_map_next(map, &at, &entry);) {
        const size_t home = (size_t)vr_mix64(entry.key ^ map->secret) & map->mask, way = (at - 1 - home) & map->mask;
        if (way > longest) longest = way;
    }
    return longest;
}

static void made_addresses_do_not_collide(void **state) {
    (void)state;
    struct vr_map map = {0};
    for (uint64_t i = 1; i <= 100000; i++) {
        const uint64_t address = vr_unmix64(i << 32);
        assert_int_equal(vr_mix64(address), i << 32);
        assert_int_equal(vr_map_set(&map, address, i), VRAM_OK);
    }
    assert_int_equal(map.count, 100000);
    assert_true(longest_way(&map) < 400);
    assert_true(vr_map_check(&map));
    vr_map_release(&map);
}

static void two_tables_have_two_secrets(void **state) {
    (void)state;
    const int here = 0, there = 0;
    assert_true(vr_hash_secret(&here) != vr_hash_secret(&there));
    const uint64_t before = vr_hash_secret(&here);
    assert_true(vr_hash_secret(&here) == before);
    vr_hash_seed(5);
    assert_true(vr_hash_secret(&here) != before);
}

static uint64_t hash_of(const struct vr_hash_index *index, uint64_t value) { return vr_hash_bytes(index->secret, &value, sizeof value); }

static void rows_are_found_by_what_they_hold(void **state) {
    (void)state;
    enum { ROWS = 5000 };
    static uint64_t rows[ROWS];
    uint64_t random = 7;
    struct vr_hash_index index;
    vr_hash_index_init(&index);
    uint32_t count = 0, row = 0;
    for (unsigned i = 0; i < 4 * ROWS && count < ROWS; i++) {
        const uint64_t value = vr_random_below(&random, ROWS * 2), hash = hash_of(&index, value);
        bool found, there = false;
        for (uint32_t known = 0; known < count && !there; known++) there = rows[known] == value;
        VR_HASH_INDEX_FIND(&index, hash, row, rows[row] == value, found);
        assert_int_equal(found, there);
        if (found) continue;
        const size_t bytes = vr_hash_index_growth_bytes(&index), before = index.slots == NULL ? 0 : index.mask + 1;
        assert_int_equal(vr_hash_index_reserve(&index), VRAM_OK);
        assert_int_equal((index.mask + 1 - before) * sizeof *index.slots, bytes);
        rows[count] = value;
        vr_hash_index_add(&index, hash, count++);
    }
    assert_int_equal(index.count, count);
    assert_true(vr_hash_index_check(&index));
    for (uint32_t known = 0; known < count; known++) {
        bool found;
        VR_HASH_INDEX_FIND(&index, hash_of(&index, rows[known]), row, rows[row] == rows[known], found);
        assert_true(found && row == known);
    }
    vr_hash_index_release(&index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_is_a_map),
        cmocka_unit_test(what_was_reserved_moves_nothing),
        cmocka_unit_test(made_addresses_do_not_collide),
        cmocka_unit_test(two_tables_have_two_secrets),
        cmocka_unit_test(rows_are_found_by_what_they_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
