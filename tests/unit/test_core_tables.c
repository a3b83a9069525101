// The tables of the core that are not of base: addresses that were made to collide do not, whatever file they come from. And what rooms
// above attach.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/state.h"
#include "support/random.h"

// Of a table of 16,384 slots that is half full the longest run of used ones has about 60.
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

static void regions_at_made_addresses(void **state) {
    (void)state;
    static struct vr_address_map map;
    assert_int_equal(vr_address_map_init(&map), VRAM_OK);
    for (uint64_t i = 1; i <= ENTRIES; i++)
        assert_int_equal(vr_address_map_prepare(&map, i << (VR_REGION_SHIFT + VR_REGION_BITS), 2 * VR_MIB, false), VRAM_OK);
    size_t run = 0, longest = 0;
    for (size_t at = 0; at < VR_REGIONS; at++) {
        run = atomic_load_explicit(&map.regions[at], memory_order_relaxed) == NULL ? 0 : run + 1;
        if (run > longest) longest = run;
    }
    assert_in_range(longest, 1, LONGEST);
    for (uint64_t i = 1; i <= ENTRIES; i++) {
        const uint64_t address = i << (VR_REGION_SHIFT + VR_REGION_BITS);
        vr_address_map_set(&map, address, (uint32_t)i);
        assert_int_equal(vr_address_map_find(&map, address), i);
    }
    vr_address_map_release(&map);
}

// --- extensions ---------------------------------------------------------------------------------------------------------------------

static char ended[8];
static void end_a(void *value) { strcat(ended, value); }
static void end_b(void *value) { strcat(ended, value); }

static void extensions_end_in_order(void **state) {
    (void)state;
    static const struct vr_extension_kind first = {.destroy = end_a, .order = 0}, last = {.destroy = end_b, .order = 2},
                                          others[] = {{end_a, 1}, {end_a, 1}, {end_a, 1}};
    struct vr_extensions extensions = {0};
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_blocks_at_made_addresses),
        cmocka_unit_test(regions_at_made_addresses),
        cmocka_unit_test(extensions_end_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
