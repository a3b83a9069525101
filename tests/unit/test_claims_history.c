// Tests statements in PyTorch's guide about the memory history that no other test covers. tests/coverage.md lists every statement with its
// test.
#include "support/history.h"

static const char *block_name(const struct vram_recording *recording, size_t row) {
    const struct vr_model *model = model_of(recording);
    const uint32_t stack = model->blocks.stack[row];
    if (stack == 0) return "";
    return vr_model_string(model, model->frames.name[model->stacks.frame[model->stacks.offset[stack]]]);
}

__attribute__((noinline)) static uint64_t take_here(struct vr_world *world, uint64_t size_bytes) {
    const uint64_t address = take(world, size_bytes, 0);
    __asm__ volatile("");
    return address;
}

// enabled="state" records the stacks of live blocks, and no events.
static void state_alone_knows_who_made_what_lives(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    start(&world, &(struct vram_history_options){.enabled = VRAM_HISTORY_STATE, .stacks = VRAM_HISTORY_STACKS_C});
    uint64_t block[20];
    for (size_t i = 0; i < VR_COUNT_OF(block); i++) block[i] = take_here(&world, 3 * VR_MIB);
    for (size_t i = 1; i < VR_COUNT_OF(block); i++) give(&world, block[i]);
    struct vram_history_counts counts;
    vram_get_history_counts(world.allocator, &counts);
    assert_true(counts.recording && counts.kept <= 1);
    struct vram_recording *recording = snap(&world, NULL);
    assert_true(vram_recording_event_count(recording, 0) <= 1);
    assert_int_equal(model_of(recording)->blocks.address[0], block[0]);
    assert_int_equal(model_of(recording)->blocks.state[0], VR_STATE_ALLOCATED);
    assert_non_null(strstr(block_name(recording, 0), "take"));
    vram_recording_destroy(recording);
    give(&world, block[0]);
    history_end(&world);
}

// stacks="python" in a program without Python: stacks are empty, and machine code is not unwound.
static void python_alone_takes_no_machine_code(void **state) {
    (void)state;
    static const enum vram_history_stacks kinds[] = {VRAM_HISTORY_STACKS_PYTHON, VRAM_HISTORY_STACKS_ALL};
    for (size_t i = 0; i < VR_COUNT_OF(kinds); i++) {
        struct vr_world world;
        history_world(&world, "", 1, 0);
        start(&world, &(struct vram_history_options){.stacks = kinds[i]});
        const uint64_t block = take_here(&world, 3 * VR_MIB);
        struct vram_recording *recording = snap(&world, NULL);
        const struct vr_history *history = &model_of(recording)->histories[0];
        assert_int_equal(history->count, 2);
        assert_int_equal(history->stack[1] != 0, kinds[i] == VRAM_HISTORY_STACKS_ALL);
        assert_int_equal(model_of(recording)->blocks.stack[0], history->stack[1]);
        vram_recording_destroy(recording);
        give(&world, block);
        history_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_alone_knows_who_made_what_lives),
        cmocka_unit_test(python_alone_takes_no_machine_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
