// Checks the tables of the history and of models after every random operation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "history/logblock.h"
#include "history/ring.h"
#include "history/stack_table.h"
#include "model/builder.h"
#include "support/random.h"

static void a_ring_keeps_its_newest(void **state) {
    (void)state;
    uint64_t random = 1;
    struct vr_ring ring = {.capacity = 100};
    uint64_t stored = 0;
    for (size_t i = 0; i < 20000; i++) {
        const uint64_t draw = vr_random_below(&random, 1000);
        if (draw == 0) {
            vr_ring_clear(&ring);
            stored = 0;
        } else if (draw < 4) {
            assert_int_equal(vr_ring_resize(&ring, vr_random_below(&random, 300)), VRAM_OK);
        } else if (draw < 10) {
            struct vr_event *events;
            size_t count;
            const uint64_t mark = vr_ring_mark(&ring);
            assert_int_equal(vr_ring_copy(&ring, mark, &events, &count), VRAM_OK);
            assert_true(count <= ring.capacity && (count == 0 || events[count - 1].address == stored - 1));
            for (size_t k = 1; k < count; k++) assert_int_equal(events[k].address, events[k - 1].address + 1);
            free(events);
        } else {
            vr_ring_lock(&ring);
            const uint64_t wanted = 1 + draw % 2, before = ring.stored;
            struct vr_event *event = draw % 3 == 0 ? vr_ring_room_locked(&ring, wanted) : NULL;
            if (event != NULL) {
                for (uint64_t k = 0; k < wanted; k++) event[k] = (struct vr_event){.address = stored++};
                assert_int_equal(ring.stored, before + wanted);
            } else { // the table is reset, or has no room yet
                event = vr_ring_next_locked(&ring);
                assert_non_null(event);
                *event = (struct vr_event){.address = stored++};
            }
            vr_ring_unlock(&ring);
        }
        vr_ring_lock(&ring);
        assert_true(vr_ring_check_locked(&ring));
        vr_ring_unlock(&ring);
    }
    vr_ring_clear(&ring);
}

static void fill(uint64_t *random, struct vr_log_batch *batch, size_t count) {
    static const uint64_t few[VR_LOG_COLUMN_COUNT] = {
        [VR_LOG_COLUMN_ACTION] = 12, [VR_LOG_COLUMN_ADDRESS] = 50, [VR_LOG_COLUMN_SIZE] = 9,    [VR_LOG_COLUMN_STACK] = 5,
        [VR_LOG_COLUMN_DEVICE] = 2,  [VR_LOG_COLUMN_THREAD] = 300, [VR_LOG_COLUMN_CONTEXT] = 3, [VR_LOG_COLUMN_STREAM] = 1 << 20};
    batch->count = count;
    batch->time_unit_ns = 1;
    for (size_t column = 0; column < VR_LOG_COLUMN_COUNT; column++) {
        for (size_t i = 0; i < count; i++) batch->column[column][i] = vr_random_below(random, few[column] == 0 ? UINT64_MAX : few[column]);
    }
}

// The largest value shows a reader whether all events refer to existing rows. Addresses, sizes and times have no bound.
static bool is_bounded(size_t column) {
    return column != VR_LOG_COLUMN_ADDRESS && column != VR_LOG_COLUMN_SIZE && column != VR_LOG_COLUMN_TIME;
}

static void a_batch_comes_back_as_it_was(void **state) {
    (void)state;
    uint64_t random = 2;
    struct vr_log_batch batch = {.count = 0}, back = {.count = 0};
    assert_true(vr_log_batch_check(&batch));
    for (size_t round = 0; round < 200; round++) {
        const size_t count = 1 + vr_random_below(&random, 700);
        struct vr_bytes bytes = {.data = NULL};
        assert_int_equal(vr_log_batch_reserve(&batch, count), VRAM_OK);
        fill(&random, &batch, count);
        vr_log_events_write(&bytes, &batch);
        assert_false(bytes.failed);
        assert_true(vr_log_batch_check(&batch));
        assert_int_equal(vr_log_events_read(bytes.data, bytes.count, count, &back), VRAM_OK);
        assert_true(vr_log_batch_check(&back));
        for (size_t column = 0; column < VR_LOG_COLUMN_COUNT; column++) {
            assert_memory_equal(batch.column[column], back.column[column], count * sizeof(uint64_t));
            uint64_t largest = 0;
            for (size_t i = 0; i < count; i++) largest = batch.column[column][i] > largest ? batch.column[column][i] : largest;
            if (is_bounded(column)) assert_int_equal(back.largest[column], largest);
        }
        vr_bytes_release(&bytes);
    }
    vr_log_batch_release(&batch);
    vr_log_batch_release(&back);
}

// Makes an event: most resemble the previous one, some are of another kind, and addresses recur within this block or from an earlier one.
static struct vr_log_record_event random_event(uint64_t *random, const struct vr_log_record_event *last) {
    struct vr_log_record_event event = *last;
    event.action = (uint32_t)vr_random_below(random, VR_ACTION_UNKNOWN);
    if (vr_random_below(random, 3) != 0) event.address = vr_random_below(random, 300) * 512 + (vr_random_below(random, 50) == 0);
    if (vr_random_below(random, 2) == 0)
        event.size_bytes = vr_random_below(random, 3) == 0 ? vr_random_next(random) : vr_random_below(random, 9) * 512;
    event.time_ns += vr_random_below(random, 5) == 0 ? 0 : vr_random_below(random, 100000);
    if (vr_random_below(random, 100) == 0) event.time_ns -= vr_random_below(random, 10000000);
    if (vr_random_below(random, 4) == 0) event.stack = (uint32_t)vr_random_below(random, 1000);
    if (vr_random_below(random, 4) == 0) event.thread = (uint32_t)vr_random_below(random, 5);
    if (vr_random_below(random, 9) == 0) event.stream = vr_random_below(random, 3) * 1000;
    if (vr_random_below(random, 99) == 0) event.metadata = (uint32_t)vr_random_below(random, 1000);
    if (vr_random_below(random, 99) == 0) event.pool_second = vr_random_below(random, 3);
    return event;
}

static void compare_times(const struct vr_log_encoder *encoder, const struct vr_log_batch *batch) {
    int64_t first = INT64_MAX, last = INT64_MIN, first_us, last_us;
    for (size_t i = 0; i < batch->count; i++) {
        const int64_t time = (int64_t)batch->column[VR_LOG_COLUMN_TIME][i];
        first = time < first ? time : first;
        last = time > last ? time : last;
    }
    vr_log_encoder_times(encoder, &first_us, &last_us);
    assert_int_equal(first_us, first / 1000);
    assert_int_equal(last_us, last / 1000);
}

// Encoding events as they come gives the same bytes as encoding the columns at the end.
static void events_are_encoded_as_they_come(void **state) {
    (void)state;
    enum { CAPACITY = 700 };
    uint64_t random = 5;
    struct vr_log_encoder encoder = {.count = 0};
    struct vr_log_batch batch = {.count = 0};
    struct vr_log_record_event last = {.time_ns = UINT64_C(1700000000000000001)}, turned = {.head = 0};
    assert_int_equal(vr_log_encoder_reserve(&encoder, CAPACITY), VRAM_OK);
    assert_int_equal(vr_log_batch_reserve(&batch, CAPACITY), VRAM_OK);
    bool turns = true;
    for (size_t round = 0; round < 400; round++) {
        const size_t count = 1 + vr_random_below(&random, round % 3 == 0 ? CAPACITY : 20);
        struct vr_bytes one_by_one = {.data = NULL}, at_once = {.data = NULL};
        batch.count = 0;
        batch.time_unit_ns = 1;
        for (size_t i = 0; i < count; i++) {
            last = random_event(&random, &last);
            uint64_t row[2][VR_LOG_COLUMN_COUNT] = {{0}};
            vr_log_rare_columns(&last, row[0]);
            vr_log_rare_columns(&turned, row[1]);
            if (turns || memcmp(row[0], row[1], sizeof row[0]) != 0) vr_log_encoder_turn(&encoder, &last);
            turned = last;
            turns = false;
            const bool completes = last.action == VR_ACTION_FREE_REQUESTED && i + 1 < count;
            vr_log_encoder_add(&encoder, last.action, last.address, last.size_bytes, last.time_ns, last.stack, i == 0);
            vr_log_batch_add(&batch, &last);
            if (!completes) continue;
            last.action = VR_ACTION_FREE_COMPLETED;
            vr_log_encoder_add_completion(&encoder, last.action);
            vr_log_batch_add(&batch, &last);
            i++;
        }
        vr_log_encoder_write(&encoder, &one_by_one);
        vr_log_events_write(&at_once, &batch);
        assert_false(one_by_one.failed || at_once.failed);
        assert_int_equal(one_by_one.count, at_once.count);
        assert_memory_equal(one_by_one.data, at_once.data, at_once.count);
        compare_times(&encoder, &batch);
        vr_log_encoder_clear(&encoder);
        vr_bytes_release(&one_by_one);
        vr_bytes_release(&at_once);
    }
    vr_log_encoder_release(&encoder);
    vr_log_batch_release(&batch);
}

// Times in whole microseconds are written in microseconds, and a time common to all rows is written once.
static void times_are_as_coarse_as_they_are(void **state) {
    (void)state;
    static const struct {
        uint64_t first, step, unit;
    } cases[] = {{5000000, 0, 1000}, {5000000, 1000, 1000}, {5000000, 700, 1}, {5000001, 0, 1}};
    for (size_t k = 0; k < VR_COUNT_OF(cases); k++) {
        struct vr_log_encoder encoder = {.count = 0};
        struct vr_log_batch back = {.count = 0};
        struct vr_bytes bytes = {.data = NULL};
        const struct vr_log_record_event event = {.time_ns = cases[k].first};
        assert_int_equal(vr_log_encoder_reserve(&encoder, 100), VRAM_OK);
        vr_log_encoder_turn(&encoder, &event);
        for (uint64_t i = 0; i < 100; i++)
            vr_log_encoder_add(&encoder, VR_ACTION_ALLOC, i * 512, 512, event.time_ns + i * cases[k].step, 0, i == 0);
        vr_log_encoder_write(&encoder, &bytes);
        assert_int_equal(vr_log_events_read(bytes.data, bytes.count, 100, &back), VRAM_OK);
        assert_int_equal(back.time_unit_ns, cases[k].unit);
        for (uint64_t i = 0; i < 100; i++)
            assert_int_equal(back.column[VR_LOG_COLUMN_TIME][i] * back.time_unit_ns, event.time_ns + i * cases[k].step);
        vr_bytes_release(&bytes);
        vr_log_batch_release(&back);
        vr_log_encoder_release(&encoder);
    }
}

static void stacks_are_found_by_their_words(void **state) {
    (void)state;
    uint64_t random = 3;
    struct vram_stacks *stacks;
    assert_int_equal(vram_stacks_create(NULL, &stacks), VRAM_OK);
    for (size_t i = 0; i < 5000; i++) {
        uint64_t words[8], hash = stacks->secret;
        const size_t count = 1 + vr_random_below(&random, VR_COUNT_OF(words));
        for (size_t k = 0; k < count; k++) {
            words[k] = 1 + vr_random_below(&random, k == 0 ? 3000 : 4);
            hash = vr_stack_hash(hash, words[k]);
        }
        const uint32_t id = vr_stacks_intern(stacks, words, count, hash);
        const struct vr_stack *stack = vr_stacks_get(stacks, id);
        assert_true(stack != NULL && stack->count == count);
        assert_memory_equal(stack->words, words, count * sizeof words[0]);
        if (i % 500 == 0) assert_true(vr_stacks_check(stacks));
    }
    assert_true(vr_stacks_check(stacks));
    vram_stacks_destroy(stacks);
}

static void a_builder_has_everything_once(void **state) {
    (void)state;
    uint64_t random = 4;
    struct vr_builder builder;
    assert_int_equal(vr_builder_init(&builder, 1 << 20), VRAM_OK);
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < 40000 && status == VRAM_OK; i++) {
        char text[24];
        uint32_t name, frame = 0, stack, frames[4];
        const int length = snprintf(text, sizeof text, "text %d", (int)vr_random_below(&random, 1 + i));
        status = vr_builder_string(&builder, text, (size_t)length, &name);
        if (status == VRAM_OK) status = vr_builder_frame(&builder, name, name / 2, (int64_t)vr_random_below(&random, 9), &frame);
        for (size_t k = 0; k < VR_COUNT_OF(frames); k++) frames[k] = k == 0 ? frame : (uint32_t)vr_random_below(&random, frame + 1);
        if (status == VRAM_OK) status = vr_builder_stack(&builder, frames, vr_random_below(&random, 5), &stack);
        if (i % 1000 == 0) assert_true(vr_builder_check(&builder));
    }
    // The builder stops at its budget, and is still consistent.
    assert_int_equal(status, VRAM_LIMIT);
    assert_true(vr_builder_check(&builder));
    vr_builder_release(&builder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_keeps_its_newest),         cmocka_unit_test(a_batch_comes_back_as_it_was),
        cmocka_unit_test(events_are_encoded_as_they_come), cmocka_unit_test(times_are_as_coarse_as_they_are),
        cmocka_unit_test(stacks_are_found_by_their_words), cmocka_unit_test(a_builder_has_everything_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
