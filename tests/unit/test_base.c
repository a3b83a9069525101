// Tests the basic helpers: searching, ordering, text in a caller's buffer, one-time initialization.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/invariant.h"
#include "base/text.h"
#include "base/stat.h"
#include "os/once.h"
#include "support/random.h"

static uint64_t dice_state;
static uint64_t dice(uint64_t below) { return vr_random_below(&dice_state, below); }

static void the_first_that_does_not_come_before(void **state) {
    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t numbers[40];
        const size_t count = dice(VR_COUNT_OF(numbers) + 1), begin = dice(count + 1), end = begin + dice(count - begin + 1);
        for (size_t i = 0; i < count; i++) numbers[i] = dice(20);
        qsort(numbers, count, sizeof *numbers, vr_order_u64);
        const uint64_t wanted = dice(22);
        size_t expected = begin, found = SIZE_MAX;
        while (expected < end && numbers[expected] < wanted) expected++;
        VR_LOWER_BOUND(found, i, begin, end, numbers[i] < wanted);
        assert_int_equal(found, expected);
    }
    // Above half of all indices; and an empty range is not accessed.
    size_t found = 0;
    VR_LOWER_BOUND(found, i, SIZE_MAX - 9, SIZE_MAX - 1, i < SIZE_MAX - 3);
    assert_int_equal(found, SIZE_MAX - 3);
    VR_LOWER_BOUND(found, i, 7, 7, (fail(), i > 0));
    assert_int_equal(found, 7);
}

static void numbers_have_an_order(void **state) {
    (void)state;
    const uint64_t ascending[] = {0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < VR_COUNT_OF(ascending); i++) {
        for (size_t j = 0; j < VR_COUNT_OF(ascending); j++) {
            const int expected = i < j ? -1 : i > j;
            assert_int_equal(VR_ORDER(ascending[i], ascending[j]), expected);
            assert_int_equal(vr_order_u64(&ascending[i], &ascending[j]), expected);
            assert_int_equal(vr_order_u64_pair((uint64_t[]){7, ascending[i]}, (uint64_t[]){7, ascending[j]}), expected);
            assert_int_equal(vr_order_u64_pair((uint64_t[]){ascending[i], 5}, (uint64_t[]){ascending[j], 5}), expected);
        }
    }
    assert_int_equal(vr_order_u64_pair((uint64_t[]){1, 9}, (uint64_t[]){2, 3}), -1);
}

static void a_sink_counts_what_does_not_fit(void **state) {
    (void)state;
    const char *const whole = "one 2 three";
    const size_t length = strlen(whole);
    for (size_t capacity = 0; capacity <= length + 2; capacity++) {
        char text[20];
        memset(text, '#', sizeof text);
        struct vr_sink sink = vr_sink_begin(capacity == 0 ? NULL : text, capacity);
        assert_true(capacity == 0 || text[0] == '\0');
        vr_sink_printf(&sink, "%s %d", "one", 2);
        vr_sink_printf(&sink, " three");
        assert_int_equal(sink.length, length);
        const size_t fits = capacity == 0 ? 0 : length < capacity ? length : capacity - 1;
        if (capacity != 0) {
            assert_memory_equal(text, whole, fits);
            assert_int_equal(text[fits], '\0');
        }
        for (size_t i = capacity; i < sizeof text; i++) assert_int_equal(text[i], '#');
    }
}

static void a_counter_knows_its_peak(void **state) {
    (void)state;
    struct vram_stat stat = {0};
    for (int i = 0; i < 3; i++) vr_stat_add(&stat, 100);
    vr_stat_add(&stat, -250);
    vr_stat_add(&stat, 20);
    assert_int_equal(stat.current, 70);
    assert_int_equal(stat.peak, 300);
    assert_int_equal(stat.allocated, 320);
    assert_int_equal(stat.freed, 250);
}

static enum vram_status is_even(uint64_t number, struct vram_error *error) {
    VR_INVARIANT(number % 2 == 0, "a number is odd", number);
    return VRAM_OK;
}

static void a_broken_invariant_says_what_and_where(void **state) {
    (void)state;
    struct vram_error error = {.message = ""};
    assert_int_equal(is_even(16, &error), VRAM_OK);
    assert_string_equal(error.message, "");
    assert_int_equal(is_even(17, &error), VRAM_MISMATCH);
    assert_string_equal(error.message, "a number is odd (at 0x11)");
}

static struct vr_once once;
static unsigned times;
static uint64_t made; // read without a lock after vr_once

static void make(void) {
    for (int i = 0; i < 100; i++) vr_os_yield();
    times++;
    made = 4711;
}

static void *come_through(void *user) {
    vr_once(&once, make);
    *(uint64_t *)user = made;
    return NULL;
}

static void it_is_done_once(void **state) {
    (void)state;
    pthread_t threads[8];
    uint64_t seen[VR_COUNT_OF(threads)] = {0};
    for (size_t i = 0; i < VR_COUNT_OF(threads); i++) assert_int_equal(pthread_create(&threads[i], NULL, come_through, &seen[i]), 0);
    for (size_t i = 0; i < VR_COUNT_OF(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(seen[i], 4711);
    }
    assert_int_equal(times, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_does_not_come_before),    cmocka_unit_test(numbers_have_an_order),
        cmocka_unit_test(a_sink_counts_what_does_not_fit),        cmocka_unit_test(a_counter_knows_its_peak),
        cmocka_unit_test(a_broken_invariant_says_what_and_where), cmocka_unit_test(it_is_done_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
