// Tests the cache of repeated lists of frames: what it keeps, and when it is full.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "snapshot/repeated_bytes.h"

enum { KEPT_BYTES = 1 << 20 }; // limit for all lists

static struct vr_budget budget;
static struct vr_echo echo;

static int begin(void **state) {
    (void)state;
    budget = (struct vr_budget){.limit_bytes = 64 * VR_MIB};
    echo = (struct vr_echo){0};
    return 0;
}

static int end(void **state) {
    (void)state;
    vr_echo_release(&echo, &budget);
    assert_int_equal(budget.used_bytes, 0);
    return 0;
}

// Adds a separate list for each stack. Returns whether it was kept.
static bool come(uint32_t stack, size_t length) {
    static unsigned char bytes[KEPT_BYTES + 1];
    memcpy(bytes, &stack, sizeof stack);
    if (!vr_echo_miss(&echo, bytes, length, stack)) return false;
    vr_echo_keep(&echo, &budget, bytes, length, stack);
    return true;
}

// The last list that fits is kept; the next one is not.
static void as_many_lists_as_there_are_places(void **state) {
    (void)state;
    for (uint32_t stack = 1; stack <= VR_ECHO_RUNS; stack++) assert_true(come(stack, 8));
    assert_int_equal(echo.run_count, VR_ECHO_RUNS);
    assert_int_equal(echo.runs[VR_ECHO_RUNS - 1].stack, VR_ECHO_RUNS);
    assert_false(vr_echo_miss(&echo, (const unsigned char *)"one more", 8, VR_ECHO_RUNS + 1));
    assert_int_equal(echo.used, 8 * VR_ECHO_RUNS);
}

static void as_many_bytes_as_may_be_kept(void **state) {
    (void)state;
    assert_true(come(1, KEPT_BYTES - 8));
    assert_false(come(2, 9));
    assert_true(come(3, 8));
    assert_int_equal(echo.used, KEPT_BYTES);
    assert_false(come(4, 4));
}

// The limit also applies to the first list.
static void a_first_list_that_is_too_long(void **state) {
    (void)state;
    assert_false(come(1, KEPT_BYTES + 1));
    assert_true(come(2, KEPT_BYTES));
    assert_false(come(3, 4));
    assert_int_equal(echo.used, KEPT_BYTES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_many_lists_as_there_are_places, begin, end),
        cmocka_unit_test_setup_teardown(as_many_bytes_as_may_be_kept, begin, end),
        cmocka_unit_test_setup_teardown(a_first_list_that_is_too_long, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
