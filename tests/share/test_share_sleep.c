// Tests exported memory and suspended pools: memory that another process may have stays; once it is released the pool can be suspended, and
// an export after waking gives the new memory.
#include "support/expect.h"

#include <string.h>

#include "pair.h"
#include "vram/pool.h"
#include "vram/sim.h"
#include "vram/sleep.h"

static const char *const paged_confs[] = {"expandable_segments:True", "paged:True"};
enum { SIZE = 20 * VR_MIB }; // whole pages of either size

static struct vram_imported export_to_there(struct pair *pair, uint64_t ours) {
    struct other_order order = {.what = OTHER_IMPORT};
    size_t size = 0;
    EXPECT_OK(vram_export(pair->here.allocator, ours, order.handle, sizeof order.handle, &size, NULL));
    order.handle_bytes = (uint32_t)size;
    return ask(pair, &order).imported;
}

static void seen_there(struct pair *pair, uint64_t ours, uint64_t theirs, uint64_t seed) {
    other_write(ours, SIZE, seed);
    (void)ask(pair, &(struct other_order){.what = OTHER_READ, .address = theirs, .size_bytes = SIZE, .seed = seed});
}

static void release_there(struct pair *pair, uint64_t theirs) {
    (void)ask(pair, &(struct other_order){.what = OTHER_RELEASE, .address = theirs});
}

static void a_pool_sleeps_once_the_others_are_done(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(paged_confs); c++) {
        struct pair pair;
        struct vram_error error = {.message = ""};
        open_pair(&pair, paged_confs[c]);
        struct vram_allocator *here = pair.here.allocator;
        const uint64_t kept = expect_malloc(&pair.here, SIZE, 0), ours = expect_malloc(&pair.here, SIZE, 0);
        other_write(kept, SIZE, 5);
        const struct vram_imported theirs = export_to_there(&pair, ours);
        seen_there(&pair, ours, theirs.address, 7);
        EXPECT_STATUS(UNSUPPORTED, vram_sleep(here, 0, NULL, 0, NULL, &error));
        assert_non_null(strstr(error.message, "other processes may share its pages"));
        release_there(&pair, theirs.address);
        expect_free(&pair.here, ours);
        EXPECT_OK(vram_sleep(here, 0, NULL, 0, NULL, NULL));
        EXPECT_OK(vram_wake(here, 0, NULL, 0, NULL, NULL));
        assert_true(other_is(kept, SIZE, 5));
        const uint64_t again = expect_malloc(&pair.here, SIZE, 0);
        const struct vram_imported anew = export_to_there(&pair, again);
        seen_there(&pair, again, anew.address, 9);
        release_there(&pair, anew.address);
        expect_free(&pair.here, again);
        expect_free(&pair.here, kept);
        close_pair(&pair);
    }
}

// Pages are exported at an address of one pool, then suspended in another. The other process still has them mapped, and must not confuse
// them with pages exported at the first address later.
static void pages_that_slept_elsewhere_are_other_memory(void **state) {
    (void)state;
    struct pair pair;
    open_pair(&pair, "paged:True");
    struct vram_allocator *here = pair.here.allocator;
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(here, 0, NULL, &pool));
    const uint64_t ours = expect_malloc(&pair.here, SIZE, 0);
    const struct vram_imported before = export_to_there(&pair, ours);
    seen_there(&pair, ours, before.address, 7);
    EXPECT_OK(vram_export_end(here, ours));
    expect_free(&pair.here, ours);
    const uint64_t used = vram_sim_memory_used(pair.here.sim, 0);
    uint64_t inside = 0;
    EXPECT_OK(vram_pool_malloc(pool, SIZE, 0, &inside));
    assert_int_equal(vram_sim_memory_used(pair.here.sim, 0), used); // the same pages
    EXPECT_OK(vram_sleep(here, 0, &(struct vram_sleep_choice){.pool = pool, .level = VRAM_SLEEP_DISCARD}, 1, NULL, NULL));
    EXPECT_OK(vram_wake(here, 0, &(struct vram_sleep_choice){.pool = pool}, 1, NULL, NULL));
    expect_free(&pair.here, inside);
    vram_pool_release(pool);
    const uint64_t again = expect_malloc(&pair.here, SIZE, 0);
    assert_int_equal(again, ours);
    const struct vram_imported after = export_to_there(&pair, again);
    seen_there(&pair, again, after.address, 9);
    release_there(&pair, before.address);
    release_there(&pair, after.address);
    expect_free(&pair.here, again);
    close_pair(&pair);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "other") == 0) return other_main(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_sleeps_once_the_others_are_done),
        cmocka_unit_test(pages_that_slept_elsewhere_are_other_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
