// Annotations and steps of a history: the newest are kept, oldest first, whatever comes in which order.
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_newest_marks_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
