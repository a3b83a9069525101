// Tests the index of a long recording file: when its entries are full, each covers twice as many blocks.
#include "support/expect.h"

#include <stdio.h>
#include <unistd.h>

#include "history/log_inside.h"
#include "model/recording.h"
#include "vram/recording.h"

static char path[64];

// Writes a block for each event.
static void put_blocks(struct vram_log *log, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const struct vram_log_event event = {
            .action = VRAM_LOG_ALLOC, .address = 4096 * (log->events + 1), .size_bytes = 512, .time_ns = 1000 * (log->events + 1)};
        EXPECT_OK(vram_log_append(log, &event, 1));
        EXPECT_OK(vr_log_seal_locked(log));
    }
}

// Checks the number of blocks per entry; the last one may have fewer.
static void expect_spans(const struct vram_log *log, size_t blocks) {
    assert_int_equal(log->span_count, (log->events + blocks - 1) / blocks);
    for (size_t i = 0; i < log->span_count; i++) {
        const uint64_t first = i * blocks, next = first + blocks < log->events ? first + blocks : log->events;
        assert_int_equal(log->spans[i].events, first);
        assert_int_equal(log->spans[i].first_us, first + 1);
        assert_int_equal(log->spans[i].last_us, next);
        assert_true(i == 0 || log->spans[i].offset > log->spans[i - 1].offset);
    }
}

static void a_full_index_is_halved(void **state) {
    (void)state;
    struct vram_log *log = NULL;
    struct vram_recording *recording = NULL;
    (void)snprintf(path, sizeof path, "test_log_index.%d.vram", (int)getpid());
    EXPECT_OK(vram_log_create(path, NULL, &log, NULL));
    put_blocks(log, VR_LOG_SPANS_MAX);
    expect_spans(log, 1);
    put_blocks(log, 1);
    expect_spans(log, 2);
    put_blocks(log, VR_LOG_SPANS_MAX - 1);
    expect_spans(log, 2);
    put_blocks(log, 3);
    expect_spans(log, 4);
    const uint64_t events = log->events;
    EXPECT_OK(vram_log_close(log));
    EXPECT_OK(vram_recording_read_file(path, &recording, NULL));
    assert_int_equal(vr_recording_model(recording)->histories[0].count, events);
    vram_recording_destroy(recording);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_full_index_is_halved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
