// Tests the core's tables outside of base: addresses constructed to collide do not collide. Also tests extensions attached by upper layers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "replay/drive.h"
#include "core/device.h"
#include "support/random.h"
#include "vram/sim.h"
#include "vram/vram.h"

// In a half-full table of 16,384 slots the longest run of used ones has about 60.
enum { ENTRIES = 8000, LONGEST = 400 };

static void raw_blocks_at_made_addresses(void **state) {
    (void)state;
    static struct vram_allocator allocator;
    vr_raw_init(&allocator.raw);
    for (uint64_t i = 1; i <= ENTRIES; i++) {
        const struct vr_raw_block block = {.address = vr_unmix64(i << 32), .size = 1};
        assert_int_equal(vr_mix64(block.address), i << 32);
        assert_int_equal(vr_raw_remember(&allocator, &block), VRAM_OK);
    }
    size_t run = 0, longest = 0;
    for (size_t at = 0; at < allocator.raw.capacity; at++) {
        run = allocator.raw.slots[at].address == 0 ? 0 : run + 1;
        if (run > longest) longest = run;
    }
    assert_in_range(longest, 1, LONGEST);
    struct vr_raw_block found;
    for (uint64_t i = 1; i <= ENTRIES; i++) {
        assert_true(vr_raw_find(&allocator, vr_unmix64(i << 32), &found));
        vr_raw_forget(&allocator, vr_unmix64(i << 32));
        assert_false(vr_raw_find(&allocator, vr_unmix64(i << 32), &found));
    }
    assert_int_equal(allocator.raw.count, 0);
    free(allocator.raw.slots);
    vr_mutex_destroy(&allocator.raw.mutex);
}

static size_t longest_run_of_regions(struct vr_address_map *map) {
    assert_int_equal(vr_address_map_init(map), VRAM_OK);
    for (uint64_t i = 1; i <= ENTRIES; i++)
        assert_int_equal(vr_address_map_prepare(map, i << (VR_REGION_SHIFT + VR_REGION_BITS), 2 * VR_MIB, false), VRAM_OK);
    size_t run = 0, longest = 0;
    for (size_t at = 0; at < VR_REGIONS; at++) {
        run = atomic_load_explicit(&map->regions[at].region, memory_order_relaxed) == NULL ? 0 : run + 1;
        if (run > longest) longest = run;
    }
    for (uint64_t i = 1; i <= ENTRIES; i++) {
        const uint64_t address = i << (VR_REGION_SHIFT + VR_REGION_BITS);
        atomic_store(vr_address_map_place(map, address), (uint32_t)i);
        assert_int_equal(vr_address_map_find(map, address), i);
    }
    assert_true(vr_address_map_check(map));
    vr_address_map_release(map);
    return longest;
}

// One multiplication spreads an arithmetic progression only on average: about one secret in 600 leaves a run over LONGEST. An attacker does
// not know the secret, so most tables are good.
static void regions_at_made_addresses(void **state) {
    (void)state;
    enum { TABLES = 9 };
    static struct vr_address_map map[TABLES]; // the secret depends on the table's address
    int well = 0;
    for (int i = 0; i < TABLES; i++) well += longest_run_of_regions(&map[i]) <= LONGEST;
    assert_in_range(well, TABLES / 2, TABLES);
}

// Adds and removes ranges at random places, of whole MiB and parts: the last one entered is found, and nothing remains of a removed range.
static void the_address_map_holds(void **state) {
    (void)state;
    enum { PLACES = 200, UNIT = 64 * 512 };
    static struct vr_address_map map;
    uint64_t size[PLACES] = {0}, random = 11;
    bool small[PLACES] = {false};
    assert_int_equal(vr_address_map_init(&map), VRAM_OK);
    for (uint32_t i = 0; i < 20000; i++) {
        const uint64_t place = vr_random_below(&random, PLACES), address = (7 << 20) + (place << 31) + place % 3 * UNIT;
        if (size[place] != 0) {
            assert_int_equal(vr_address_map_find(&map, address), place + 1);
            vr_address_map_retire(&map, address, size[place], small[place]);
            size[place] = 0;
        } else {
            small[place] = vr_random_below(&random, 2) == 0;
            size[place] = small[place] ? 2 * VR_MIB : VR_MIB + (1 + vr_random_below(&random, 400)) * UNIT;
            assert_int_equal(vr_address_map_prepare(&map, address, size[place], small[place]), VRAM_OK);
            atomic_store(vr_address_map_place(&map, address), (uint32_t)place + 1);
        }
        if (i % 500 == 0) assert_true(vr_address_map_check(&map));
    }
    vr_address_map_release(&map);
}

// --- the index ----------------------------------------------------------------------------------------------------------------------

// Compares with a search over every block.
static void the_index_finds_the_best_fit(void **state) {
    (void)state;
    enum { BLOCKS = 400 };
    static struct vr_block blocks[BLOCKS];
    static struct vr_index index;
    uint64_t ages[1] = {0}; // all blocks belong to segment 0, so only the address orders equals
    const struct vr_index_arena arena = {.blocks = blocks, .ages = ages};
    bool is_in[BLOCKS] = {false};
    uint64_t random = 3;
    size_t count = 0, found = 0;
    for (uint32_t i = 0; i < 40000; i++) {
        const uint32_t block = 1 + (uint32_t)vr_random_below(&random, BLOCKS - 1);
        if (is_in[block]) {
            vr_index_remove(&index, &arena, block);
        } else {
            const uint64_t log = vr_random_below(&random, 30);
            blocks[block] =
                (struct vr_block){.address = (uint64_t)block << 45, .size = 512 * (1 + vr_random_below(&random, (uint64_t)1 << log))};
            blocks[block].state = VR_FREE;
            vr_index_insert(&index, &arena, block);
        }
        is_in[block] = !is_in[block];
        count = is_in[block] ? count + 1 : count - 1;
        const uint64_t size = 512 * (1 + vr_random_below(&random, (uint64_t)1 << vr_random_below(&random, 30)));
        uint32_t best = 0;
        for (uint32_t b = 1; b < BLOCKS; b++)
            if (is_in[b] && blocks[b].size >= size && (best == 0 || blocks[b].size < blocks[best].size)) best = b;
        assert_int_equal(vr_index_first_at_least(&index, &arena, size), best);
        if (i % 100 != 0) continue;
        assert_true(vr_index_check(&index, &arena, &found));
        assert_int_equal(found, count);
    }
}

static bool comes_before(const struct vr_block *blocks, uint32_t a, uint32_t b) {
    return blocks[a].size != blocks[b].size ? blocks[a].size < blocks[b].size : blocks[a].address < blocks[b].address;
}

// Returns the nearest block in order on a side of `block`, by examining every one; 0 if there is none.
static uint32_t nearest(const struct vr_block *blocks, uint32_t count, uint32_t block, unsigned side) {
    uint32_t best = 0;
    for (uint32_t b = 1; b < count; b++) {
        if (b == block || blocks[b].state != VR_FREE || comes_before(blocks, block, b) != (side == 1)) continue;
        if (best == 0 || comes_before(blocks, b, best) == (side == 1)) best = b;
    }
    return best;
}

// Bins turn from lists to trees and back, in waves that fill and empty them.
static void bins_keep_their_order_whatever_they_are(void **state) {
    (void)state;
    enum { BLOCKS = 160, SIZES = 4, WAVE = 700 };
    static struct vr_block blocks[BLOCKS];
    static struct vr_index index;
    uint64_t ages[1] = {0}; // all blocks belong to segment 0, so only the address orders equals
    const struct vr_index_arena arena = {.blocks = blocks, .ages = ages};
    const uint64_t sizes[SIZES] = {512, 2 * VR_MIB, 20 * VR_MIB, 20 * VR_MIB + 512};
    uint64_t random = 11;
    size_t count = 0, found = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        const uint32_t block = 1 + (uint32_t)vr_random_below(&random, BLOCKS - 1);
        const bool filling = i / WAVE % 2 == 0, often = vr_random_below(&random, 4) != 0, in = blocks[block].state == VR_FREE;
        if (in != (filling == often)) {
            if (in) {
                vr_index_remove(&index, &arena, block);
                blocks[block] = (struct vr_block){0};
            } else {
                const uint64_t size = sizes[vr_random_below(&random, SIZES)];
                blocks[block] =
                    (struct vr_block){.address = vr_random_below(&random, 1u << 20) << 20 | block, .size = size, .state = VR_FREE};
                vr_index_insert(&index, &arena, block);
            }
            count += in ? (size_t)-1 : 1;
        }
        assert_true(vr_index_check(&index, &arena, &found));
        assert_int_equal(found, count);
        if (blocks[block].state != VR_FREE) continue;
        assert_int_equal(vr_index_next(&index, &arena, block), nearest(blocks, BLOCKS, block, 1));
        assert_int_equal(vr_index_previous(&index, &arena, block), nearest(blocks, BLOCKS, block, 0));
    }
}

// --- extensions ---------------------------------------------------------------------------------------------------------------------

static char ended[8];
static void end_a(void *value) { strcat(ended, value); }
static void end_b(void *value) { strcat(ended, value); }

static void extensions_end_in_order(void **state) {
    (void)state;
    static const struct vr_extension_kind first = {.destroy = end_a, .order = 0}, last = {.destroy = end_b, .order = 2},
                                          others[] = {{end_a, 1}, {end_a, 1}, {end_a, 1}};
    static struct vr_extensions extensions;
    char a[] = "a", b[] = "b", c[] = "c";
    assert_null(vr_extension_find(&extensions, &first));
    assert_null(vr_extension_detach(&extensions, &first));
    assert_int_equal(vr_extension_attach(&extensions, &last, b), VRAM_OK);
    assert_int_equal(vr_extension_attach(&extensions, &first, a), VRAM_OK);
    assert_int_equal(vr_extension_attach(&extensions, &others[0], c), VRAM_OK);
    assert_ptr_equal(vr_extension_find(&extensions, &last), b);
    assert_ptr_equal(vr_extension_detach(&extensions, &last), b);
    assert_null(vr_extension_find(&extensions, &last));
    assert_int_equal(vr_extension_attach(&extensions, &last, b), VRAM_OK);
    assert_int_equal(vr_extension_attach(&extensions, &others[1], a), VRAM_OK);
    assert_int_equal(vr_extension_attach(&extensions, &others[2], a), VRAM_LIMIT);
    assert_ptr_equal(vr_extension_detach(&extensions, &others[1]), a);
    vr_extensions_end(&extensions);
    assert_string_equal(ended, "acb");
    assert_null(vr_extension_find(&extensions, &first));
    vr_extensions_end(&extensions);
    assert_string_equal(ended, "acb");
}

static void use_streams(struct vram_allocator *allocator) {
    enum { STREAMS = 200, LIVE = 500, STEPS = 6000 };
    static uint64_t live[LIVE];
    uint64_t random = 7;
    memset(live, 0, sizeof live);
    for (size_t i = 0; i < STEPS; i++) {
        uint64_t *at = &live[vr_random_next(&random) % LIVE];
        if (*at != 0) assert_int_equal(vram_free(allocator, *at), VRAM_OK);
        const uint64_t units = vr_random_next(&random) % 4096, bytes = 1 + (units << vr_random_next(&random) % 14);
        assert_int_equal(vram_malloc(allocator, 0, bytes, vr_random_next(&random) % STREAMS, at), VRAM_OK);
        if (i % 1000 == 999) assert_int_equal(vram_empty_cache(allocator), VRAM_OK);
    }
    assert_int_equal(vram_check(allocator, NULL), VRAM_OK);
}

static void all_zero(size_t size_bytes) {
    void *base = NULL;
    assert_int_equal(vr_os_reserve(size_bytes, &base), VRAM_OK);
    for (size_t i = 0; i < size_bytes; i++) {
        if (((const unsigned char *)base)[i] != 0) fail_msg("byte %zu of %zu was left behind", i, size_bytes);
    }
    vr_os_unreserve(base, size_bytes);
}

// Memory that a thread keeps from one allocator for the next is zeroed, whatever the first did with it.
static void kept_memory_is_zero(void **state) {
    (void)state;
    vr_os_keep_begin();
    for (int round = 0; round < 2; round++) {
        struct vram_driver *driver = NULL;
        struct vram_allocator *allocator = NULL;
        assert_int_equal(vram_sim_create(&(struct vram_sim_options){.memory_bytes = (uint64_t)1 << 40}, &driver), VRAM_OK);
        const struct vram_create_info info = {.driver = driver, .ignore_environment = true};
        assert_int_equal(vram_create(&info, &allocator, NULL), VRAM_OK);
        use_streams(allocator);
        vram_destroy(allocator);
        vram_driver_destroy(driver);
        for (size_t i = 0; i < 200; i++) all_zero(VR_SHARD_BYTES);
        for (size_t i = 0; i < 4; i++) all_zero(sizeof(struct vr_region));
        all_zero(VR_MAX_SHARDS * sizeof(struct vr_shard *));
        all_zero(VR_SHARD_SLOTS * sizeof(struct vr_shard *));
    }
    vr_os_keep_end();
}

static bool go_on(uint64_t address, uint64_t size_bytes, void *user) {
    (void)address, (void)size_bytes;
    ++*(size_t *)user;
    return true;
}

// Releasing the cache does not examine free blocks in segments that are in use.
static void releases_pass_parts_over(void **state) {
    (void)state;
    enum { PIECES = 4096, WHOLE = 3 };
    static uint64_t pieces[PIECES];
    struct vram_driver *driver = NULL;
    struct vram_allocator *allocator = NULL;
    uint64_t whole[WHOLE];
    size_t seen = 0, walked = 0;
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){.memory_bytes = (uint64_t)1 << 40}, &driver), VRAM_OK);
    const struct vram_create_info info = {.driver = driver, .ignore_environment = true};
    assert_int_equal(vram_create(&info, &allocator, NULL), VRAM_OK);
    for (size_t i = 0; i < PIECES; i++) assert_int_equal(vram_malloc(allocator, 0, 4096, 0, &pieces[i]), VRAM_OK);
    for (size_t i = 0; i < WHOLE; i++) assert_int_equal(vram_malloc(allocator, 0, (uint64_t)64 << 20, 0, &whole[i]), VRAM_OK);
    for (size_t i = 0; i < PIECES; i += 2) assert_int_equal(vram_free(allocator, pieces[i]), VRAM_OK);
    for (size_t i = 0; i < WHOLE; i++) assert_int_equal(vram_free(allocator, whole[i]), VRAM_OK);
    assert_int_equal(vr_drive_walk_cached(allocator, 0, NULL, go_on, &seen, &walked), VRAM_OK);
    assert_int_equal(seen, WHOLE);
    assert_int_equal(walked, WHOLE);
    assert_int_equal(vram_empty_cache(allocator), VRAM_OK);
    seen = walked = 0;
    assert_int_equal(vr_drive_walk_cached(allocator, 0, NULL, go_on, &seen, &walked), VRAM_OK);
    assert_int_equal(walked, 0);
    for (size_t i = 1; i < PIECES; i += 2) assert_int_equal(vram_free(allocator, pieces[i]), VRAM_OK);
    assert_int_equal(vram_check(allocator, NULL), VRAM_OK);
    assert_int_equal(vram_empty_cache(allocator), VRAM_OK);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
}

// Tests the condition of VR_ASSERT_ALL_LOCKED.
static void locks_are_told_apart(void **state) {
    (void)state;
    struct vram_driver *driver = NULL;
    struct vram_allocator *allocator = NULL;
    struct vr_device *device = NULL;
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){0}, &driver), VRAM_OK);
    const struct vram_create_info info = {.driver = driver, .ignore_environment = true};
    assert_int_equal(vram_create(&info, &allocator, NULL), VRAM_OK);
    assert_int_equal(vr_device_get(allocator, 0, &device), VRAM_OK);
    assert_false(vr_device_has_all_locks(device));
    vr_device_lock_short(device);
    assert_false(vr_device_has_all_locks(device));
    vr_device_unlock_short(device);
    vr_mutex_lock(&device->mutex);
    assert_false(vr_device_has_all_locks(device));
    vr_mutex_unlock(&device->mutex);
    vr_device_lock(device);
    assert_true(vr_device_has_all_locks(device));
    vr_device_unlock(device);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_blocks_at_made_addresses),
        cmocka_unit_test(regions_at_made_addresses),
        cmocka_unit_test(the_address_map_holds),
        cmocka_unit_test(the_index_finds_the_best_fit),
        cmocka_unit_test(bins_keep_their_order_whatever_they_are),
        cmocka_unit_test(extensions_end_in_order),
        cmocka_unit_test(kept_memory_is_zero),
        cmocka_unit_test(releases_pass_parts_over),
        cmocka_unit_test(locks_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
