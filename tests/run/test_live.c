// test_live.c: compares the table of live memory with a plain array, under random insertions and removals.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../adapters/preload/live.h"
#include "support/random.h"

#define KEYS  4000
#define STEPS 200000

static enum pl_space space_of(uint64_t key) { return key % 2 == 0 ? PL_SPACE_DEVICE : PL_SPACE_HOST; }

// Keys 2n and 2n + 1 are equal numbers in different spaces.
static uint64_t number_of(uint64_t key) { return key / 2 * 512; }

static void compare(struct pl_live *live, const uint64_t *serials) {
    size_t count = 0, seen = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        const struct pl_piece *piece = pl_live_find(live, space_of(key), number_of(key));
        assert_int_equal(piece != NULL, serials[key] != 0);
        if (piece != NULL) assert_int_equal(piece->serial, serials[key]);
        count += piece != NULL;
    }
    for (const struct pl_piece *at = pl_live_next(live, NULL); at != NULL; at = pl_live_next(live, (struct pl_piece *)(uintptr_t)at))
        seen++;
    assert_int_equal(seen, count);
    assert_int_equal(live->count, count);
}

static void random_lives(void **state) {
    (void)state;
    static uint64_t serials[KEYS];
    struct pl_live live = {0};
    uint64_t seed = 1;
    assert_null(pl_live_find(&live, PL_SPACE_DEVICE, 0));
    for (uint64_t step = 1; step <= STEPS; step++) {
        const uint64_t key = vr_random_next(&seed) % (step < STEPS / 2 ? KEYS : KEYS / 8);
        struct pl_piece *piece = pl_live_find(&live, space_of(key), number_of(key));
        if (piece != NULL) {
            pl_live_remove(&live, piece);
            serials[key] = 0;
        } else {
            piece = pl_live_add(&live, space_of(key), number_of(key));
            assert_non_null(piece);
            piece->serial = serials[key] = step;
        }
        if (step % 20000 == 0) compare(&live, serials);
    }
    // Removes all pieces while iterating.
    for (struct pl_piece *at = pl_live_next(&live, NULL); at != NULL; at = pl_live_next(&live, at)) pl_live_remove(&live, at);
    assert_int_equal(live.count, 0);
    pl_live_clear(&live);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
