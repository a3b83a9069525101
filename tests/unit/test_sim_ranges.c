// Compares the set of address ranges with a plain array that does the same slowly.
#include "sim/sim_ranges.h"
#include "unit/sim_fixture.h"

#define CELLS 512 // cells of the address space, each 0 or the number of its range

static uint64_t naive_gap(const int *cells, uint64_t from, uint64_t span, uint64_t alignment) {
    for (uint64_t at = (from + alignment - 1) / alignment * alignment; at + span <= CELLS; at += alignment) {
        uint64_t width = 0;
        while (width < span && cells[at + width] == 0) width++;
        if (width == span) return at;
    }
    return UINT64_MAX;
}

static void same_as_an_array(void **state) {
    static int cells[CELLS];
    memset(cells, 0, sizeof cells);
    struct vr_sim_ranges ranges = {0};
    uint64_t random = 7, inserted = 0, removed = 0;
    for (int i = 1; i < 20000; i++) {
        random = vr_mix64(random + (uint64_t)i);
        uint64_t base = random % CELLS, span = 1 + (random >> 16) % 24, alignment = (uint64_t)1 << (random >> 32) % 5;
        uint64_t from = (random >> 40) % CELLS, gap = naive_gap(cells, from, span, alignment);
        assert_int_equal(vr_sim_ranges_lowest_gap(&ranges, from, CELLS, span, alignment), gap);
        const struct vr_sim_range *holding = vr_sim_ranges_holding(&ranges, base);
        assert_int_equal(holding == NULL ? 0 : (int)holding->owner, cells[base]);
        if (cells[base] != 0) {
            assert_ptr_equal(vr_sim_ranges_at(&ranges, base), holding->base == base ? holding : NULL);
            base = holding->base;
            for (uint64_t at = base; at < vr_sim_range_end(holding); at++) cells[at] = 0;
            vr_sim_ranges_remove(&ranges, base);
            removed++;
        } else {
            uint64_t width = 0;
            while (width < span && base + width < CELLS && cells[base + width] == 0) width++;
            if (base + span <= CELLS) assert_int_equal(vr_sim_ranges_overlap(&ranges, base, span) == NULL, width == span);
            struct vr_sim_range range = {.base = base, .span = width, .size_bytes = width, .owner = (uint64_t)i};
            for (uint64_t at = base; at < base + width; at++) cells[at] = i;
            assert_int_equal(vr_sim_ranges_insert(&ranges, &range), VRAM_OK);
            inserted++;
        }
        assert_true(vr_sim_ranges_check(&ranges));
    }
    assert_int_equal(ranges.count, inserted - removed);
    uint64_t seen = 0;
    for (const struct vr_sim_range *range = vr_sim_ranges_next(&ranges, 0); range != NULL;
         range = vr_sim_ranges_next(&ranges, range->base + 1))
        seen++;
    assert_int_equal(seen, ranges.count);
    vr_sim_ranges_release(&ranges);
    (void)state;
}

// Ranges in increasing order must not degenerate the tree into a list: 200,000 insertions, searches and removals finish quickly.
static void rising_ranges_stay_shallow(void **state) {
    struct vr_sim_ranges ranges = {0};
    for (uint64_t i = 0; i < 200000; i++)
        assert_int_equal(vr_sim_ranges_insert(&ranges, &(struct vr_sim_range){.base = i * 4, .span = 2, .size_bytes = 2}), VRAM_OK);
    assert_int_equal(vr_sim_ranges_lowest_gap(&ranges, 0, UINT64_MAX, 3, 1), 200000 * 4 - 2);
    for (uint64_t i = 0; i < 200000; i++) {
        assert_non_null(vr_sim_ranges_at(&ranges, i * 4));
        vr_sim_ranges_remove(&ranges, i * 4);
    }
    assert_int_equal(ranges.count, 0);
    vr_sim_ranges_release(&ranges);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_an_array), cmocka_unit_test(rising_ranges_stay_shallow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
