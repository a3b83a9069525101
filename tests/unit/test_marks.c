// Tests annotations and steps of a history: the newest are kept, oldest first, in any order of arrival.
#include "live/tracer.h"
#include "support/history.h"
#include "support/random.h"

static void the_newest_marks_are_kept(void **state) {
    (void)state;
    enum { MOST = 7, MARKS = 400 };
    struct vr_world world;
    struct vram_error error = {.message = ""};
    uint64_t seed = 3;
    history_world(&world, "", 1, 0);
    OK(vram_history_start_text(world.allocator, "all,context=none,max_entries=7", &error));
    struct vr_tracer *tracer = vr_tracer_of(world.allocator);
    for (int i = 0; i < MARKS; i++) {
        const uint64_t what = vr_random_below(&seed, 20);
        if (what == 0) OK(vram_history_start_text(world.allocator, "all,context=none,max_entries=7,clear_history", &error));
        const size_t before = tracer->marks.count;
        OK(what % 3 == 0   ? vram_step(world.allocator, 0, "step")
           : what % 3 == 1 ? vram_annotation_begin(world.allocator, 0, "part")
                           : vram_annotation_end(world.allocator, 0, "part"));
        vr_mutex_lock(&tracer->marks_mutex);
        assert_true(vr_marks_check(&tracer->marks));
        assert_int_equal(tracer->marks.count, before == MOST ? MOST : before + 1);
        vr_mutex_unlock(&tracer->marks_mutex);
    }
    history_end(&world);
}

// A history restarted with another limit keeps the newest marks.
static void the_limit_may_change(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error = {.message = ""};
    uint64_t seed = 5, most = 7;
    size_t expected = 0;
    history_world(&world, "", 1, 0);
    OK(vram_history_start_text(world.allocator, "all,context=none,max_entries=7", &error));
    struct vr_tracer *tracer = vr_tracer_of(world.allocator);
    for (int i = 0; i < 400; i++) {
        if (vr_random_below(&seed, 6) == 0) {
            char text[64];
            most = 1 + vr_random_below(&seed, 9);
            (void)snprintf(text, sizeof text, "all,context=none,max_entries=%d", (int)most);
            OK(vram_history_start_text(world.allocator, text, &error));
            if (expected > most) expected = most;
        }
        OK(vram_step(world.allocator, 0, "step"));
        expected += expected < most;
        vr_mutex_lock(&tracer->marks_mutex);
        assert_true(vr_marks_check(&tracer->marks));
        assert_int_equal(tracer->marks.count, expected);
        for (size_t k = 1; k < expected; k++) {
            const struct vr_mark *items = tracer->marks.items;
            const size_t next = tracer->marks.next;
            assert_true(items[(next + k - 1) % expected].ticks <= items[(next + k) % expected].ticks);
        }
        vr_mutex_unlock(&tracer->marks_mutex);
    }
    history_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_newest_marks_are_kept), cmocka_unit_test(the_limit_may_change)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
