// test_tables.c: compares the replay's tables with simple ones.
#include "support/expect.h"

#include "replay/segment_ages.h"
#include "replay/mapped_ranges.h"
#include "support/random.h"

enum { PAGES = 96, ROUNDS = 20000 };

static uint64_t random_state = 1;
static uint64_t random_below(uint64_t bound) { return vr_random_below(&random_state, bound); }

// Checks that every range is a maximal run of pages of one stream.
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
        assert_true(vr_mapped_check(&mapped));
        if (round % 16 == 0) compare_pages(&mapped, pages);
    }
    EXPECT_STATUS(INVALID_ARGUMENT, vr_mapped_cut(&mapped, 5, 5));
    vr_mapped_release(&mapped);
}

static void a_range_learns_its_pool_once(void **state) {
    (void)state;
    struct vr_mapped mapped = {0};
    EXPECT_OK(vr_mapped_join(&mapped, &(struct vr_mapped_range){10, 20, 0, VR_MAPPED_UNKNOWN, 0}));
    vr_mapped_settle(&mapped, 20, VR_MAPPED_LARGE); // directly after it
    assert_int_equal(vr_mapped_before(&mapped, 15)->pool, VR_MAPPED_UNKNOWN);
    vr_mapped_settle(&mapped, 19, VR_MAPPED_SMALL);
    vr_mapped_settle(&mapped, 10, VR_MAPPED_LARGE);
    assert_int_equal(vr_mapped_before(&mapped, 15)->pool, VR_MAPPED_SMALL);
    vr_mapped_release(&mapped);
}

enum { CHOSEN = 2000 };

static int by_mix(const void *a, const void *b) {
    const uint64_t x = vr_mix64(*(const uint64_t *)a), y = vr_mix64(*(const uint64_t *)b);
    return VR_ORDER(x, y);
}

static size_t depth_of(const struct vr_mapped *mapped, uint32_t id) {
    if (id == 0) return 0;
    const size_t left = depth_of(mapped, mapped->nodes[id].left), right = depth_of(mapped, mapped->nodes[id].right);
    return 1 + (left > right ? left : right);
}

// The ranges' addresses follow the order of the hashes of their nodes' future numbers: without a secret the tree would be a list.
static void no_order_of_addresses_makes_a_list(void **state) {
    (void)state;
    static uint64_t numbers[CHOSEN], place[CHOSEN + 1];
    struct vr_mapped mapped = {0};
    for (uint64_t i = 0; i < CHOSEN; i++) numbers[i] = i + 1;
    qsort(numbers, CHOSEN, sizeof *numbers, by_mix);
    for (uint64_t i = 0; i < CHOSEN; i++) place[numbers[i]] = i;
    for (uint64_t id = 1; id <= CHOSEN; id++)
        EXPECT_OK(vr_mapped_add(&mapped, &(struct vr_mapped_range){10 * place[id], 10 * place[id] + 5, 0, VR_MAPPED_LARGE, 0}));
    assert_true(vr_mapped_check(&mapped));
    assert_true(depth_of(&mapped, mapped.root) < 100); // about 25, and 2,000 for a list
    vr_mapped_release(&mapped);
}

// Two ranges that are made to overlap: the upper one extended down, or the lower one up.
static void overlapping_ranges_are_no_set(void **state) {
    (void)state;
    for (int below = 0; below < 2; below++) {
        struct vr_mapped mapped = {0};
        EXPECT_OK(vr_mapped_add(&mapped, &(struct vr_mapped_range){10, 20, 0, VR_MAPPED_LARGE, 0}));
        EXPECT_OK(vr_mapped_add(&mapped, &(struct vr_mapped_range){30, 40, 0, VR_MAPPED_LARGE, 0}));
        assert_true(vr_mapped_check(&mapped));
        for (uint32_t id = 1; id < mapped.count; id++) {
            struct vr_mapped_range *range = &mapped.nodes[id].range;
            if (below && range->start == 10) range->end = 31;
            if (!below && range->start == 30) range->start = 19;
        }
        assert_false(vr_mapped_check(&mapped));
        vr_mapped_release(&mapped);
    }
}

// --- ages ---------------------------------------------------------------------------------------------------------------------------
enum { SEGMENTS = 40 };

// Segments at increasing addresses, with unknown ages.
static void make_start(struct vr_start *start, struct vr_start_segment *segments) {
    *start = (struct vr_start){.segments = segments, .segment_count = SEGMENTS};
    for (size_t i = 0; i < SEGMENTS; i++) segments[i] = (struct vr_start_segment){.address = (i + 1) * VR_MIB, .size = VR_MIB};
}

static void ages_agree_with_all_pairs(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct vr_start_segment segments[SEGMENTS];
        struct vr_start start;
        struct vr_ages ages = {0};
        size_t order[SEGMENTS], inferred = 0, pairs = random_below(3 * SEGMENTS), told = 0;
        make_start(&start, segments);
        for (size_t i = 0; i < SEGMENTS; i++) order[i] = i;
        for (size_t i = SEGMENTS; i > 1; i--) {
            const size_t at = random_below(i), other = order[at];
            order[at] = order[i - 1];
            order[i - 1] = other;
        }
        for (size_t i = 0; i < pairs; i++) {
            const size_t a = random_below(SEGMENTS), b = random_below(SEGMENTS);
            if (a != b)
                assert_int_equal(vr_ages_note(&ages, segments[order[a < b ? a : b]].address, segments[order[a < b ? b : a]].address),
                                 VRAM_OK);
        }
        assert_int_equal(vr_ages_note(&ages, VR_MIB / 2, VR_MIB), VRAM_OK); // of a segment that does not exist
        assert_int_equal(vr_ages_apply(&ages, &start, &inferred), VRAM_OK);
        for (size_t i = 0; i + 1 < ages.count; i++) {
            const uint64_t older = segments[ages.pairs[i].older / VR_MIB - 1].counter,
                           younger = segments[ages.pairs[i].younger / VR_MIB - 1].counter;
            assert_true(older < younger);
        }
        uint64_t sum = 0;
        for (size_t i = 0; i < SEGMENTS; i++) {
            sum += segments[i].counter;
            told += segments[i].counter != i + 1;
        }
        assert_int_equal(sum, SEGMENTS * (SEGMENTS + 1) / 2);
        assert_int_equal(inferred, told);
        vr_ages_release(&ages);
    }
}

// A pair with an address inside a segment, or below or above all, changes nothing.
static void ages_of_no_segment_change_nothing(void **state) {
    (void)state;
    struct vr_start_segment segments[SEGMENTS];
    struct vr_start start;
    struct vr_ages ages = {0};
    size_t inferred = 1;
    make_start(&start, segments);
    const uint64_t strangers[] = {VR_MIB / 2, segments[20].address + 1, segments[20].address - 1, segments[SEGMENTS - 1].address + VR_MIB};
    for (size_t i = 0; i < VR_COUNT_OF(strangers); i++) {
        EXPECT_OK(vr_ages_note(&ages, strangers[i], segments[0].address));
        EXPECT_OK(vr_ages_note(&ages, segments[SEGMENTS - 1].address, strangers[i]));
    }
    EXPECT_OK(vr_ages_apply(&ages, &start, &inferred));
    assert_int_equal(inferred, 0);
    for (size_t i = 0; i < SEGMENTS; i++) assert_int_equal(segments[i].counter, i + 1);
    vr_ages_release(&ages);
}

// Forged ages may form a circle: every segment still gets a place, and those outside the circle the right one.
static void circles_of_ages_end(void **state) {
    (void)state;
    struct vr_start_segment segments[SEGMENTS];
    struct vr_start start;
    struct vr_ages ages = {0};
    size_t inferred = 0;
    make_start(&start, segments);
    for (size_t i = 0; i < 10; i++) assert_int_equal(vr_ages_note(&ages, segments[i].address, segments[(i + 1) % 10].address), VRAM_OK);
    assert_int_equal(vr_ages_note(&ages, segments[30].address, segments[20].address), VRAM_OK);
    assert_int_equal(vr_ages_apply(&ages, &start, &inferred), VRAM_OK);
    bool taken[SEGMENTS + 1] = {false};
    for (size_t i = 0; i < SEGMENTS; i++) {
        assert_true(segments[i].counter >= 1 && segments[i].counter <= SEGMENTS && !taken[segments[i].counter]);
        taken[segments[i].counter] = true;
    }
    assert_true(segments[30].counter < segments[20].counter);
    vr_ages_release(&ages);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_as_plain_pages),         cmocka_unit_test(no_order_of_addresses_makes_a_list),
        cmocka_unit_test(a_range_learns_its_pool_once),  cmocka_unit_test(ages_agree_with_all_pairs),
        cmocka_unit_test(overlapping_ranges_are_no_set), cmocka_unit_test(ages_of_no_segment_change_nothing),
        cmocka_unit_test(circles_of_ages_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
