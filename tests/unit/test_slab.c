// Tests the core's tables when they are full, by their own size or for lack of address space.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/block.h"

// Takes all items except 0, which is never used, and returns one.
static void fill(struct vr_slab *slab, enum vram_status when_full) {
    uint32_t *ids = calloc(slab->capacity, sizeof *ids), again = 0;
    assert_non_null(ids);
    assert_int_equal(VRAM_OK, vr_slab_take(slab, slab->capacity - 1, ids));
    for (uint32_t i = 0; i + 1 < slab->capacity; i++) assert_int_equal(ids[i], i + 1);
    assert_int_equal(when_full, vr_slab_take(slab, 1, &again));
    assert_int_equal(again, 0);
    vr_slab_give(slab, ids[7]);
    assert_int_equal(when_full, vr_slab_take(slab, 2, ids));
    assert_int_equal(VRAM_OK, vr_slab_take(slab, 1, &again));
    assert_int_equal(again, 8);
    free(ids);
}

static void a_full_table_is_a_limit(void **state) {
    (void)state;
    struct vr_slab slab;
    assert_int_equal(VRAM_OK, vr_slab_init(&slab, 64, 2048));
    assert_int_equal(slab.capacity, 2048);
    fill(&slab, VRAM_LIMIT);
    vr_slab_release(&slab);
}

// A table larger than any address space is made smaller; when it is full, the reason is then host memory.
static void a_table_that_was_cut_lacks_memory(void **state) {
    (void)state;
    struct vr_slab slab;
    const size_t item_bytes = (size_t)1 << 32; // 2^20 of them are 2^52 bytes
    assert_int_equal(VRAM_OK, vr_slab_init(&slab, item_bytes, 1u << 20));
    assert_in_range(slab.capacity, 1024, 1u << 15);
    fill(&slab, VRAM_NO_HOST_MEMORY);
    vr_slab_release(&slab);
}

// Not even the minimum size fits.
static void a_table_that_fits_nowhere_is_refused(void **state) {
    (void)state;
    struct vr_slab slab;
    assert_int_equal(VRAM_NO_HOST_MEMORY, vr_slab_init(&slab, (size_t)1 << 40, 1u << 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_table_is_a_limit),
        cmocka_unit_test(a_table_that_was_cut_lacks_memory),
        cmocka_unit_test(a_table_that_fits_nowhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
