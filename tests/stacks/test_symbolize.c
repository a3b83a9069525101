// Tests stacks through a recording file and back to names: machine code is stored as offsets in modules.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "model/recording.h"
#include "support/expect.h"
#include "vram/log.h"
#include "vram/recording.h"
#include "vram/stack.h"

VR_NOINLINE static uint32_t taken_in_a_named_function(struct vram_stacks *stacks) {
    const uint32_t id = vram_stack_take(stacks, VRAM_STACK_C, 0);
    VR_NO_TAIL_CALL();
    return id;
}

// Concatenates the names of the first event's stack, innermost first.
static void read_names(const struct vram_recording *recording, char *text, size_t capacity) {
    const struct vr_model *model = vr_recording_model(recording);
    assert_int_equal(model->histories[0].count, 2);
    const uint32_t stack = model->histories[0].stack[0];
    assert_int_equal(stack, model->histories[0].stack[1]);
    text[0] = '\0';
    for (uint64_t at = model->stacks.offset[stack]; at < model->stacks.offset[stack + 1]; at++) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, capacity - length, "%s\n", vr_model_string(model, model->frames.name[model->stacks.frame[at]]));
    }
}

static void names_come_back(void **state) {
    (void)state;
    char path[64], before[8192], after[8192];
    (void)snprintf(path, sizeof path, "test_symbolize.%d.vram", (int)getpid());
    struct vram_stacks *stacks;
    struct vram_log *log;
    EXPECT_OK(vram_stacks_create(NULL, &stacks));
    EXPECT_OK(vram_log_create(path, NULL, &log, NULL));
    const uint32_t stack = taken_in_a_named_function(stacks);
    struct vram_log_event events[2] = {{.address = 4096, .size_bytes = 512, .action = VRAM_LOG_ALLOC, .time_ns = 1000000},
                                       {.address = 4096, .size_bytes = 512, .action = VRAM_LOG_FREE_REQUESTED, .time_ns = 2000000}};
    for (int i = 0; i < 2; i++) EXPECT_OK(vram_stack_log(stacks, stack, log, &events[i].stack));
    assert_int_equal(events[0].stack, events[1].stack);
    EXPECT_OK(vram_log_append(log, events, 2));
    EXPECT_OK(vram_log_close(log));
    vram_stacks_destroy(stacks);

    struct vram_recording *recording;
    EXPECT_OK(vram_recording_read_file(path, &recording, NULL));
    assert_int_equal(unlink(path), 0);
    read_names(recording, before, sizeof before);
    assert_null(strstr(before, "taken_in_a_named_function"));
    assert_memory_equal(before, "0x", 2);

    struct vram_symbols_counts counts;
    EXPECT_OK(vram_recording_symbolize(recording, NULL, &counts));
    assert_true(counts.frames >= 4 && counts.named >= 3 && counts.named <= counts.frames && counts.modules >= 2);
    EXPECT_OK(vr_model_check(vr_recording_model(recording), NULL));
    read_names(recording, after, sizeof after);
    assert_memory_equal(after, "taken_in_a_named_function\nnames_come_back\n", strlen("taken_in_a_named_function\nnames_come_back\n"));
    // Resolved frames are not looked up again.
    EXPECT_OK(vram_recording_symbolize(recording, NULL, &counts));
    assert_int_equal(counts.named, 0);
    vram_recording_destroy(recording);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_recording_symbolize(NULL, NULL, &counts));
}

struct heard {
    char names[2][64]; // of the innermost frames
    int64_t lines[2];
    size_t calls, most;
};

static bool hear(void *user, size_t index, const struct vram_frame *frame) {
    struct heard *heard = user;
    if (heard->names[index][0] == '\0') {
        (void)snprintf(heard->names[index], sizeof heard->names[index], "%s", frame->name);
        heard->lines[index] = frame->line;
    }
    return ++heard->calls < heard->most;
}

static int by_address(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void addresses_of_one_module(void **state) {
    (void)state;
    Dl_info info;
    assert_int_not_equal(dladdr((void *)(uintptr_t)names_come_back, &info), 0);
    const uint64_t base = (uintptr_t)info.dli_fbase, first = (uintptr_t)names_come_back - base + 1,
                   second = (uintptr_t)read_names - base + 1;
    uint64_t offsets[2] = {first, second};
    qsort(offsets, 2, sizeof offsets[0], by_address);
    const size_t of_first = offsets[0] == first ? 0 : 1;

    struct heard heard = {.most = SIZE_MAX};
    EXPECT_OK(vram_symbolize("/proc/self/exe", NULL, offsets, 2, NULL, hear, &heard));
    assert_string_equal(heard.names[of_first], "names_come_back");
    assert_string_equal(heard.names[1 - of_first], "read_names");
    struct heard only_names = {.most = SIZE_MAX};
    EXPECT_OK(vram_symbolize("/proc/self/exe", "", offsets, 2, &(struct vram_symbols_options){.names_only = true}, hear, &only_names));
    assert_string_equal(only_names.names[of_first], "names_come_back");
    assert_true(only_names.lines[0] == 0 && only_names.lines[1] == 0);
    struct heard one = {.most = 1};
    EXPECT_OK(vram_symbolize("/proc/self/exe", NULL, offsets, 2, NULL, hear, &one));
    assert_int_equal(one.calls, 1);

    struct heard none = {.most = SIZE_MAX};
    EXPECT_OK(vram_symbolize("/nowhere/libnothing.so", NULL, offsets, 2, NULL, hear, &none));
    EXPECT_OK(vram_symbolize("/proc/self/exe", "00112233", offsets, 2, NULL, hear, &none)); // another build
    EXPECT_OK(vram_symbolize("/proc/self/exe", NULL, NULL, 0, NULL, hear, &none));
    const uint64_t falling[] = {offsets[1], offsets[0]}, twice[] = {first, first};
    EXPECT_STATUS(INVALID_ARGUMENT, vram_symbolize("/proc/self/exe", NULL, falling, 2, NULL, hear, &none));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_symbolize("/proc/self/exe", NULL, twice, 2, NULL, hear, &none));
    assert_int_equal(none.calls, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_come_back), cmocka_unit_test(addresses_of_one_module)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
