// Tests slow growth: the verdicts on a server's call sites over hours, and the histories that allow none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analyze/slow_growth.h"
#include "base/text.h"
#include "vram/profile.h"
#include "vram/recording.h"

enum { MINUTE = 60, HOUR = 3600, MOST_LIVE = 4096 };

// A site's allocations, of which the test knows the birth.
struct site {
    struct vr_slow *slow;
    int64_t born_us[MOST_LIVE];
    size_t first, next; // live ones
};

static void at(const struct site *site, double seconds) { (void)vr_slow_pass(site->slow, 1000000 * (int64_t)seconds); }

static void allocate(struct site *site, uint64_t key, double seconds) {
    site->born_us[site->next++ % MOST_LIVE] = vr_slow_pass(site->slow, (int64_t)(1e6 * seconds));
    assert_int_equal(vr_slow_alloc(site->slow, key, 1 << 20), VRAM_OK);
}

static void free_oldest(struct site *site, uint64_t key, double seconds) {
    at(site, seconds);
    assert_int_equal(vr_slow_free(site->slow, key, site->born_us[site->first++ % MOST_LIVE], 1 << 20), VRAM_OK);
}

static struct vr_slow_course judged(const struct vr_slow *slow, uint64_t key) {
    struct vr_slow_course *courses = NULL, found = {.verdict = VR_SLOW_STEADY};
    size_t count = 0;
    assert_int_equal(vr_slow_judge(slow, &courses, &count), VRAM_OK);
    for (size_t i = 0; i < count; i++) {
        if (courses[i].key == key) found = courses[i];
    }
    free(courses);
    return found;
}

// The habit of a site every ten minutes: it keeps a block until `fills_until`, holds at most `most`, and frees what it borrowed.
struct habit {
    double hours, from, fills_until;
    size_t most;
    bool borrows; // and never keeps
};

static struct vr_slow_course course_of(const struct habit *habit) {
    struct site kept = {.slow = NULL}, borrowed = {.slow = NULL};
    assert_int_equal(vr_slow_create(&kept.slow), VRAM_OK);
    borrowed.slow = kept.slow;
    for (double now = 0; now < habit->hours * HOUR; now += 10 * MINUTE) {
        allocate(&borrowed, 2, now + 10);
        free_oldest(&borrowed, 2, now + 20);
        if (habit->borrows) {
            const size_t running = 1 + (size_t)(now / HOUR);
            for (size_t i = 0; i < running; i++) allocate(&kept, 1, now + 30);
            for (size_t i = 0; i < running; i++) free_oldest(&kept, 1, now + 590);
        } else if (now >= habit->from * HOUR && now < habit->fills_until * HOUR) {
            allocate(&kept, 1, now + 30);
            if (kept.next - kept.first > habit->most) free_oldest(&kept, 1, now + 31);
        }
    }
    const struct vr_slow_course course = judged(kept.slow, 1);
    assert_int_equal(judged(kept.slow, 2).verdict, VR_SLOW_STEADY);
    vr_slow_destroy(kept.slow);
    return course;
}

static void a_leak_is_found_with_its_rate_and_beginning(void **state) {
    (void)state;
    const struct vr_slow_course course = course_of(&(struct habit){.hours = 24, .from = 8, .fills_until = 24, .most = MOST_LIVE});
    assert_int_equal(course.verdict, VR_SLOW_LEAK);
    assert_true(course.sure);
    assert_true(course.bytes_per_hour > 5.5 * (1 << 20) && course.bytes_per_hour < 6.5 * (1 << 20));
    assert_true(course.since_us > 7.5 * HOUR * 1e6 && course.since_us < 9.5 * HOUR * 1e6);
    assert_true(course.grew_parts == course.parts && course.blocks > 80);
}

static void a_cache_that_is_full_is_no_leak(void **state) {
    (void)state;
    const struct vr_slow_course course = course_of(&(struct habit){.hours = 24, .fills_until = 20, .most = MOST_LIVE});
    assert_int_equal(course.verdict, VR_SLOW_FILLED);
    assert_true(course.last_us > 19.5 * HOUR * 1e6 && course.last_us < 20.5 * HOUR * 1e6);
}

static void a_cache_that_evicts_is_no_leak(void **state) {
    (void)state;
    assert_int_not_equal(course_of(&(struct habit){.hours = 24, .fills_until = 24, .most = 18}).verdict, VR_SLOW_LEAK);
    assert_int_not_equal(course_of(&(struct habit){.hours = 24, .fills_until = 24, .most = 120}).verdict, VR_SLOW_LEAK);
}

static void more_requests_are_no_leak(void **state) {
    (void)state;
    struct site site = {.slow = NULL};
    assert_int_equal(vr_slow_create(&site.slow), VRAM_OK);
    // Ever more requests of ten seconds run; some always do.
    for (size_t i = 0; i < 24 * 360; i++) {
        for (size_t n = 0; n < 1 + i / 360; n++) allocate(&site, 1, 10.0 * (double)i + 1);
        while (site.next - site.first > 2 * (1 + i / 360)) free_oldest(&site, 1, 10.0 * (double)i + 2);
    }
    assert_int_equal(judged(site.slow, 1).verdict, VR_SLOW_TRAFFIC);
    vr_slow_destroy(site.slow);
}

static void a_short_history_tells_nothing(void **state) {
    (void)state;
    assert_int_equal(course_of(&(struct habit){.hours = 0.9, .fills_until = 24, .most = MOST_LIVE}).verdict, VR_SLOW_STEADY);
}

// Times of damaged files: they go back, and are as far apart as they can be.
static void impossible_times_do_no_harm(void **state) {
    (void)state;
    static const int64_t times[] = {0, INT64_MAX, INT64_MIN, 5, INT64_MAX, -1};
    for (size_t begin = 0; begin < VR_COUNT_OF(times); begin++) {
        struct vr_slow *slow = NULL;
        assert_int_equal(vr_slow_create(&slow), VRAM_OK);
        for (size_t i = 0; i < VR_COUNT_OF(times); i++) {
            const int64_t born = vr_slow_pass(slow, times[(begin + i) % VR_COUNT_OF(times)]);
            assert_int_equal(vr_slow_alloc(slow, i % 2, UINT64_MAX - i), VRAM_OK);
            (void)vr_slow_pass(slow, times[i]);
            if (i % 2 == 0) assert_int_equal(vr_slow_free(slow, 0, born, UINT64_MAX - i), VRAM_OK);
        }
        (void)judged(slow, 0);
        vr_slow_destroy(slow);
    }
}

// Sizes of damaged files: their sums wrap around.
static void impossible_sizes_do_no_harm(void **state) {
    (void)state;
    struct vr_slow *slow = NULL;
    assert_int_equal(vr_slow_create(&slow), VRAM_OK);
    for (uint64_t i = 0; i < 2000; i++) {
        const int64_t born = vr_slow_pass(slow, (int64_t)i * 60000000);
        for (uint64_t key = 0; key < 8; key++) {
            const uint64_t bytes = UINT64_MAX >> (i % 7 + key);
            assert_int_equal(vr_slow_alloc(slow, key, bytes), VRAM_OK);
            if (key % 2 != 0 && i % 3 == 0) assert_int_equal(vr_slow_free(slow, key, born, bytes), VRAM_OK);
        }
    }
    for (uint64_t key = 0; key < 8; key++) assert_true(judged(slow, key).bytes_per_hour <= 1e18);
    vr_slow_destroy(slow);
}

// ---- recordings ----

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

// Makes a recording of `hours` on two devices, of which the second leaks at leak.py:7 every ten minutes. Its first event frees memory that
// was made before: the ring has lost its beginning.
static struct vram_recording *two_devices(double hours, bool times) {
    static const char frame[] = "\"stream\": 0, \"frames\": [{\"filename\": \"leak.py\", \"line\": 7, \"name\": \"keep\"}]";
    struct vr_text text = {0};
    struct vram_recording *recording = NULL;
    struct vram_error error;
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    vr_text_printf(&text, "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 999999999, \"time_us\": 1, %s}], [", frame);
    vr_text_printf(&text, "{\"action\": \"free_requested\", \"addr\": 4096, \"size\": 512, \"time_us\": 1, %s}", frame);
    for (size_t i = 0; (double)i < hours * 6; i++)
        vr_text_printf(&text, ", {\"action\": \"alloc\", \"addr\": %zu, \"size\": 1048576, \"time_us\": %zu, %s}", (i + 1) << 20,
                       times ? (i + 1) * 600000000 : 1, frame);
    vr_text_puts(&text, "]]}");
    if (vram_recording_read_memory(text.bytes, text.length, "made", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    vr_text_release(&text);
    return recording;
}

static size_t leaks_of(double hours, bool times, uint64_t memory_bytes, struct vr_text *json, struct vr_text *text) {
    struct vram_recording *recording = two_devices(hours, times);
    const struct vram_profile_options options = {.device = -1, .memory_bytes = memory_bytes};
    size_t leaks = 99, again = 98;
    assert_int_equal(vram_slow_leaks_json(recording, &options, "made", append, json, &leaks, NULL), VRAM_OK);
    assert_int_equal(vram_slow_leaks_text(recording, &options, "made", NULL, append, text, &again, NULL), VRAM_OK);
    assert_int_equal(leaks, again);
    vram_recording_destroy(recording);
    return leaks;
}

static void expect(struct vr_text *text, const char *part) {
    if (strstr(vr_text_string(text), part) == NULL) fail_msg("lacks \"%s\": %s", part, vr_text_string(text));
}

static void the_device_that_leaks_is_found(void **state) {
    (void)state;
    struct vr_text json = {0}, text = {0};
    assert_int_equal(leaks_of(12, true, (uint64_t)1 << 30, &json, &text), 1);
    expect(&json, "\"answer\": \"leak\"");
    expect(&json, "\"name\": \"leak.py:7:keep\"");
    expect(&json, "\"device\": 1");
    expect(&text, "1 leak: 6.1 MiB more per hour");
    expect(&text, "memory runs out in 6."); // 952 MiB at 6 MiB an hour
    vr_text_release(&json);
    vr_text_release(&text);
}

static void undetermined_growth_is_reported(void **state) {
    (void)state;
    struct vr_text json = {0}, text = {0};
    assert_int_equal(leaks_of(0.5, true, 0, &json, &text), 0);
    expect(&text, "cannot tell");
    assert_int_equal(leaks_of(12, false, 0, &json, &text), 0);
    expect(&json, "\"answer\": \"no_times\"");
    vr_text_release(&json);
    vr_text_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_is_found_with_its_rate_and_beginning),
        cmocka_unit_test(a_cache_that_is_full_is_no_leak),
        cmocka_unit_test(a_cache_that_evicts_is_no_leak),
        cmocka_unit_test(more_requests_are_no_leak),
        cmocka_unit_test(a_short_history_tells_nothing),
        cmocka_unit_test(impossible_times_do_no_harm),
        cmocka_unit_test(impossible_sizes_do_no_harm),
        cmocka_unit_test(the_device_that_leaks_is_found),
        cmocka_unit_test(undetermined_growth_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
