// Tests addresses as NVIDIA's driver assigns them: regions of 32 MiB from the top, the newest first, the tightest gap, its low end.
#include "sim/sim.h"
#include "support/random.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

#define TOP UINT64_C(0x7d0000000000)

static struct vram_driver *open_driver(void) {
    const struct vram_sim_options options = {.addresses = VRAM_SIM_DRIVER};
    return open_sim(&options);
}

static uint64_t take(struct vram_driver *driver, uint64_t mib) {
    uint64_t address = 0;
    assert_cu(vr_cu(driver, mem_alloc, &address, mib * VR_MIB), SUCCESS);
    return address;
}

static void give(struct vram_driver *driver, uint64_t address) { assert_cu(vr_cu(driver, mem_free, address), SUCCESS); }

static void segments_of_20_mib_fall_by_32(void **state) {
    struct vram_driver *driver = open_driver();
    for (uint64_t i = 1; i <= 5; i++) assert_int_equal(take(driver, 20), TOP - i * 32 * VR_MIB);
    vram_driver_destroy(driver);
    (void)state;
}

// Consequences visible in the recordings.
static void what_is_left_over_is_taken_newest_first(void **state) {
    struct vram_driver *driver = open_driver();
    const uint64_t a = take(driver, 20), b = take(driver, 20);
    assert_int_equal(take(driver, 2), b + 20 * VR_MIB); // 2 MiB: the newest region's rest, increasing inside it
    assert_int_equal(take(driver, 2), b + 22 * VR_MIB);
    assert_int_equal(take(driver, 10), a + 20 * VR_MIB); // 8 MiB is left in the newest
    const uint64_t c = take(driver, 40);
    assert_int_equal(c, b - 64 * VR_MIB); // two regions, with 24 MiB left over
    assert_int_equal(take(driver, 20), c + 40 * VR_MIB);
    const uint64_t d = take(driver, 100);
    assert_int_equal(d, c - 128 * VR_MIB);
    assert_int_equal(take(driver, 26), d + 100 * VR_MIB);
    vram_driver_destroy(driver);
    (void)state;
}

static void an_empty_region_is_given_back_and_the_highest_hole_taken(void **state) {
    struct vram_driver *driver = open_driver();
    const uint64_t a = take(driver, 32), b = take(driver, 32), c = take(driver, 32);
    give(driver, a);
    give(driver, b);
    assert_int_equal(take(driver, 64), b); // both holes as one
    give(driver, c);
    assert_int_equal(take(driver, 20), c);
    assert_int_equal(take(driver, 12), c + 20 * VR_MIB);
    vram_driver_destroy(driver);
    (void)state;
}

static void the_tightest_gap_of_a_region_serves(void **state) {
    struct vram_driver *driver = open_driver();
    uint64_t piece[6];
    for (size_t i = 0; i < 6; i++) piece[i] = take(driver, (const uint64_t[]){6, 2, 4, 2, 10, 8}[i]);
    give(driver, piece[0]);
    give(driver, piece[2]);
    assert_int_equal(take(driver, 4), piece[2]);
    assert_int_equal(take(driver, 4), piece[0]);
    vram_driver_destroy(driver);
    (void)state;
}

static void small_sizes_share_pages(void **state) {
    struct vram_driver *driver = open_driver();
    uint64_t first = 0, second = 0;
    assert_cu(vr_cu(driver, mem_alloc, &first, 100), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &second, 100), SUCCESS);
    assert_int_equal(second, first + 512);
    assert_int_equal(take(driver, 2), first + 2 * VR_MIB);
    give(driver, first);
    give(driver, second);
    assert_int_equal(take(driver, 2), first); // the page is free again
    vram_driver_destroy(driver);
    (void)state;
}

static void reservations_rise_from_a_low_base(void **state) {
    struct vram_driver *driver = open_driver();
    uint64_t first = 0, second = 0;
    assert_cu(vr_cu(driver, mem_address_reserve, &first, 90 * VR_GIB + 20 * VR_MIB, 0, 0, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_address_reserve, &second, VR_GIB, 0, 0, 0), SUCCESS);
    assert_int_equal(first, 0x302000000);
    assert_int_equal(second, first + 90 * VR_GIB + 32 * VR_MIB);
    vram_driver_destroy(driver);
    (void)state;
}

// Memory between the two kinds of addresses belongs to the host.
static void host_memory_is_not_taken_for_device_memory(void **state) {
    struct vram_driver *driver = open_driver();
    static char host[64];
    uint64_t reserved = 0, stream = 0;
    const uint64_t address = take(driver, 20);
    assert_cu(vr_cu(driver, mem_address_reserve, &reserved, VR_GIB, 0, 0, 0), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, address, (uint64_t)(uintptr_t)host, sizeof host, stream), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void random_sizes_never_overlap(void **state) {
    struct vram_driver *driver = open_driver();
    static struct { uint64_t address, bytes; } live[200];
    uint64_t random = 11;
    for (size_t step = 0; step < 20000; step++) {
        const size_t at = (size_t)vr_random_below(&random, VR_COUNT_OF(live));
        if (live[at].address != 0) {
            give(driver, live[at].address);
            live[at].address = 0;
            continue;
        }
        live[at].bytes =
            vr_random_below(&random, 4) == 0 ? 1 + vr_random_below(&random, 3000000) : VR_MIB * (1 + vr_random_below(&random, 90));
        assert_cu(vr_cu(driver, mem_alloc, &live[at].address, live[at].bytes), SUCCESS);
        assert_true(vr_sim_regions_check(vr_sim_of(driver)));
        for (size_t i = 0; i < VR_COUNT_OF(live); i++)
            if (i != at && live[i].address != 0)
                assert_true(live[at].address + live[at].bytes <= live[i].address || live[i].address + live[i].bytes <= live[at].address);
    }
    for (size_t i = 0; i < VR_COUNT_OF(live); i++)
        if (live[i].address != 0) give(driver, live[i].address);
    assert_int_equal(take(driver, 32), TOP - 32 * VR_MIB); // nothing is left behind
    vram_driver_destroy(driver);
    (void)state;
}

// Reservations by hint and queued addresses inside regions: nothing overlaps, and the rule's state stays correct.
static void others_in_regions_are_seen(void **state) {
    struct vram_driver *driver = open_driver();
    struct vr_sim *sim = vr_sim_of(driver);
    static struct {
        uint64_t address, bytes;
        bool reserved;
    } live[64];
    uint64_t random = 5;
    for (size_t step = 0; step < 6000; step++) {
        const size_t at = (size_t)vr_random_below(&random, VR_COUNT_OF(live));
        if (live[at].address != 0) {
            if (live[at].reserved)
                assert_cu(vr_cu(driver, mem_address_free, live[at].address, live[at].bytes), SUCCESS);
            else
                give(driver, live[at].address);
            live[at].address = 0;
        } else {
            const uint64_t place = TOP - VR_MIB * 2 * (1 + vr_random_below(&random, 400)), kind = vr_random_below(&random, 8);
            live[at].reserved = kind == 0;
            live[at].bytes = 2 * VR_MIB * (1 + vr_random_below(&random, kind < 2 ? 3 : 30));
            if (kind == 2) live[at].bytes = 1 + vr_random_below(&random, 900000);
            if (kind == 1) assert_int_equal(vram_sim_queue_address(driver, place + 512), VRAM_OK);
            const vr_cu_result result = kind == 0 ? vr_cu(driver, mem_address_reserve, &live[at].address, live[at].bytes, 0, place, 0)
                                                  : vr_cu(driver, mem_alloc, &live[at].address, live[at].bytes);
            if (result != VR_CU_SUCCESS) live[at].address = 0; // the queued place was taken
        }
        assert_true(vr_sim_regions_check(sim));
        assert_true(vr_sim_ranges_check(&sim->spaces));
    }
    vram_driver_destroy(driver);
    (void)state;
}

static void devices_have_regions_of_their_own(void **state) {
    const struct vram_sim_options options = {.addresses = VRAM_SIM_DRIVER, .device_count = 2};
    struct vram_driver *driver = open_sim(&options);
    const uint64_t first = take(driver, 20);
    uint64_t context;
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 1), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    assert_int_equal(take(driver, 2), first - 32 * VR_MIB);
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(segments_of_20_mib_fall_by_32),
                                       cmocka_unit_test(what_is_left_over_is_taken_newest_first),
                                       cmocka_unit_test(an_empty_region_is_given_back_and_the_highest_hole_taken),
                                       cmocka_unit_test(the_tightest_gap_of_a_region_serves),
                                       cmocka_unit_test(small_sizes_share_pages),
                                       cmocka_unit_test(reservations_rise_from_a_low_base),
                                       cmocka_unit_test(host_memory_is_not_taken_for_device_memory),
                                       cmocka_unit_test(random_sizes_never_overlap),
                                       cmocka_unit_test(others_in_regions_are_seen),
                                       cmocka_unit_test(devices_have_regions_of_their_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
