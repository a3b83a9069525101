// test_tables.c: the replay's tables against plain ones.
#include "support/expect.h"

#include "replay/addresses.h"
#include "replay/mapped.h"
#include "support/random.h"

enum { KEYS = 64, PAGES = 96, ROUNDS = 20000 };

static uint64_t random_state = 1;
static uint64_t random_below(uint64_t bound) { return vr_random_below(&random_state, bound); }

static void addresses_as_a_plain_array(void **state) {
    (void)state;
    struct vr_addresses map = {0};
    uint32_t plain[KEYS];
    memset(plain, 0xff, sizeof plain);
    assert_int_equal(vr_addresses_remove(&map, 5), VR_ABSENT);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t key = random_below(KEYS);
        if (random_below(2) == 0) {
            plain[key] = (uint32_t)round;
            EXPECT_OK(vr_addresses_put(&map, key << 9, (uint32_t)round));
        } else {
            assert_int_equal(vr_addresses_remove(&map, key << 9), plain[key]);
            plain[key] = VR_ABSENT;
        }
        const uint64_t other = random_below(KEYS);
        assert_int_equal(vr_addresses_get(&map, other << 9), plain[other]);
    }
    size_t used = 0;
    for (int key = 0; key < KEYS; key++) used += plain[key] != VR_ABSENT;
    assert_int_equal(map.used, used);
    vr_addresses_release(&map);
}

// Every range of the set is a maximal run of pages of one stream.
static void compare_pages(const struct vr_mapped *mapped, const uint8_t *pages) {
    for (uint64_t page = 0; page < PAGES; page++) {
        const struct vr_mapped_range *range = vr_mapped_before(mapped, page);
        const bool inside = range != NULL && page < range->end;
        assert_int_equal(inside, pages[page] != 0);
        if (!inside) continue;
        assert_int_equal(range->stream, pages[page]);
        assert_true(range->start == 0 || pages[range->start - 1] != pages[page]);
        assert_true(range->end == PAGES || pages[range->end] != pages[page]);
        const struct vr_mapped_range *next = vr_mapped_after(mapped, page);
        assert_true(next == NULL || next->start >= range->end);
    }
}

static void ranges_as_plain_pages(void **state) {
    (void)state;
    struct vr_mapped mapped = {0};
    uint8_t pages[PAGES] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t start = random_below(PAGES), length = 1 + random_below(12);
        const uint64_t end = start + length > PAGES ? PAGES : start + length;
        uint64_t filled = 0, same = 0;
        for (uint64_t page = start; page < end; page++) {
            filled += pages[page] != 0;
            same += pages[page] == pages[start];
        }
        if (random_below(2) == 0) {
            const struct vr_mapped_range range = {start, end, 1 + random_below(2), VR_MAPPED_LARGE, 0};
            assert_int_equal(vr_mapped_join(&mapped, &range), filled == 0 ? VRAM_OK : VRAM_INVALID_ARGUMENT);
            if (filled == 0) memset(pages + start, (int)range.stream, end - start);
        } else {
            const bool whole = pages[start] != 0 && same == end - start;
            assert_int_equal(vr_mapped_cut(&mapped, start, end), whole ? VRAM_OK : VRAM_INVALID_ARGUMENT);
            if (whole) memset(pages + start, 0, end - start);
        }
        if (round % 16 == 0) compare_pages(&mapped, pages);
    }
    EXPECT_STATUS(INVALID_ARGUMENT, vr_mapped_cut(&mapped, 5, 5));
    vr_mapped_release(&mapped);
}

static void a_range_learns_its_pool_once(void **state) {
    (void)state;
    struct vr_mapped mapped = {0};
    EXPECT_OK(vr_mapped_join(&mapped, &(struct vr_mapped_range){10, 20, 0, VR_MAPPED_UNKNOWN, 0}));
    vr_mapped_settle(&mapped, 20, VR_MAPPED_LARGE); // just behind it
    assert_int_equal(vr_mapped_before(&mapped, 15)->pool, VR_MAPPED_UNKNOWN);
    vr_mapped_settle(&mapped, 19, VR_MAPPED_SMALL);
    vr_mapped_settle(&mapped, 10, VR_MAPPED_LARGE);
    assert_int_equal(vr_mapped_before(&mapped, 15)->pool, VR_MAPPED_SMALL);
    vr_mapped_release(&mapped);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_as_a_plain_array),
        cmocka_unit_test(ranges_as_plain_pages),
        cmocka_unit_test(a_range_learns_its_pool_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
