// Compares the order that the checker keeps in vector clocks with a naive one: every piece of work has the set of all work before it.
#include "check/check.h"
#include "unit/sim_fixture.h"

enum { STREAMS = 6, EVENTS = 4, WORKS = 400, BYTES = 48, WORDS = WORKS / 64 + 1 };

// ---- The naive model.

struct naive_work {
    uint64_t before[WORDS]; // works that come before it, and itself
    uint64_t address, end;  // bytes that it uses; none if equal
    enum vr_check_effect effect;
};

static struct {
    struct naive_work works[WORKS];
    int count;
    int last[STREAMS + 1]; // last work of each stream, and of the host (at STREAMS); -1: none
    int events[EVENTS];    // work of the record; -1: not recorded
} naive;

static const enum vr_check_stream_kind kinds[STREAMS] = {VR_CHECK_LEGACY,       VR_CHECK_BLOCKING,     VR_CHECK_BLOCKING,
                                                         VR_CHECK_NON_BLOCKING, VR_CHECK_NON_BLOCKING, VR_CHECK_NON_BLOCKING};

static void come_after(struct naive_work *work, int other) {
    for (int i = 0; other >= 0 && i < WORDS; i++) work->before[i] |= naive.works[other].before[i];
}

static struct naive_work *add_work(void) {
    struct naive_work *work = &naive.works[naive.count];
    *work = (struct naive_work){.address = 0};
    work->before[naive.count / 64] |= (uint64_t)1 << naive.count % 64;
    naive.count++;
    return work;
}

static struct naive_work *add_on(int stream) {
    struct naive_work *work = add_work();
    come_after(work, naive.last[stream]);
    come_after(work, naive.last[STREAMS]);
    for (int i = 0; i < STREAMS; i++) {
        const bool mutual = (kinds[stream] == VR_CHECK_LEGACY && kinds[i] == VR_CHECK_BLOCKING) ||
                            (kinds[stream] == VR_CHECK_BLOCKING && kinds[i] == VR_CHECK_LEGACY);
        if (mutual) come_after(work, naive.last[i]);
    }
    return work;
}

static void host_waits(int other) {
    struct naive_work *work = add_work();
    come_after(work, naive.last[STREAMS]);
    come_after(work, other);
    naive.last[STREAMS] = naive.count - 1;
}

// Returns whether earlier work that does not come before this work uses the same bytes, and at least one of the two writes.
static bool conflicts(int number) {
    const struct naive_work *work = &naive.works[number];
    for (int i = 0; i < number; i++) {
        const struct naive_work *old = &naive.works[i];
        if (old->address >= work->end || work->address >= old->end || old->address == old->end || work->address == work->end) continue;
        if (old->effect != VR_CHECK_WRITE && work->effect != VR_CHECK_WRITE) continue;
        if ((work->before[i / 64] >> i % 64 & 1) == 0) return true;
    }
    return false;
}

// ---- Both at once.

static uint64_t seed;
static uint64_t number_below(uint64_t limit) { return (seed = vr_mix64(seed + 1)) % limit; }

static uint32_t reported; // stack of the later use of the last finding
static uint64_t findings;
static void note_finding(void *user, const struct vr_check_finding *finding) {
    (void)user;
    if (finding->may) return;
    findings++;
    reported = finding->later.stack;
    assert_int_equal(finding->kind, VR_CHECK_RACE);
}

static struct vr_check_access random_access(struct naive_work *work) {
    work->address = number_below(BYTES);
    work->end = work->address + 1 + number_below(BYTES - work->address);
    work->effect = number_below(3) == 0 ? VR_CHECK_WRITE : VR_CHECK_READ;
    work->address += 0x1000;
    work->end += 0x1000;
    return (struct vr_check_access){.address = work->address, .size_bytes = work->end - work->address, .effect = work->effect};
}

static void compare_last(void) { assert_int_equal(reported == (uint32_t)naive.count, conflicts(naive.count - 1)); }

static void do_random_work(struct vr_check *check, int stream) {
    const struct vr_check_access access = random_access(add_on(stream));
    naive.last[stream] = naive.count - 1;
    vr_check_work(check, (uint64_t)stream + 1, (struct vr_check_place){.stack = (uint32_t)naive.count}, &access, 1);
    compare_last();
}

// Launches a graph of five steps, each after a random set of earlier ones.
static void do_random_launch(struct vr_check *check, int stream) {
    enum { STEPS = 5 };
    struct naive_work *start = add_on(stream);
    start->end = start->address;
    const int first = naive.count;
    vr_check_launch_begin(check, (uint64_t)stream + 1, STEPS, 0, (struct vr_check_place){0});
    for (int i = 0; i < STEPS; i++) {
        struct naive_work *work = add_work();
        size_t after[STEPS], count = 0;
        come_after(work, first - 1);
        for (int j = 0; j < i; j++) {
            if (number_below(3) != 0) continue;
            after[count++] = (size_t)j;
            come_after(work, first + j);
        }
        const struct vr_check_access access = random_access(work);
        vr_check_launch_step(check, after, count, (struct vr_check_place){.stack = (uint32_t)naive.count}, 0, &access, 1);
        compare_last();
    }
    vr_check_launch_end(check);
    struct naive_work *end = add_work();
    for (int i = 0; i < STEPS; i++) come_after(end, first + i);
    naive.last[stream] = naive.count - 1;
}

static void do_random_event(struct vr_check *check, int stream, struct vr_check_point **points) {
    const int event = (int)number_below(EVENTS);
    switch (number_below(3)) {
    case 0:
        (void)add_on(stream);
        naive.events[event] = naive.last[stream] = naive.count - 1;
        vr_check_mark(check, (uint64_t)stream + 1, &points[event]);
        break;
    case 1: // waiting for an event that was not recorded does nothing
        vr_check_wait(check, (uint64_t)stream + 1, points[event]);
        if (naive.events[event] < 0) break;
        come_after(add_on(stream), naive.events[event]);
        naive.last[stream] = naive.count - 1;
        break;
    default:
        if (number_below(4) == 0) {
            host_waits(naive.events[event]);
            vr_check_host_wait(check, points[event]);
        }
    }
}

static void do_random_wait(struct vr_check *check, int stream) {
    if (number_below(8) == 0) {
        for (int i = 0; i < STREAMS; i++) host_waits(naive.last[i]);
        vr_check_host_wait_streams(check, UINT32_MAX, 0);
        return;
    }
    if (kinds[stream] == VR_CHECK_LEGACY) {
        (void)add_on(stream);
        naive.last[stream] = naive.count - 1;
    }
    host_waits(naive.last[stream]);
    vr_check_host_wait_stream(check, (uint64_t)stream + 1);
}

static void run_random(uint64_t with) {
    struct vr_check *check;
    struct vr_check_point *points[EVENTS] = {NULL};
    seed = with;
    naive.count = 0;
    reported = 0;
    for (int i = 0; i <= STREAMS; i++) naive.last[i] = -1;
    for (int i = 0; i < EVENTS; i++) naive.events[i] = -1;
    assert_int_equal(vr_check_create(note_finding, NULL, &check), VRAM_OK);
    for (int i = 0; i < STREAMS; i++) vr_check_stream_open(check, (uint64_t)i + 1, 7, 0, kinds[i]);
    vr_check_segment(check, 0x1000, BYTES, false, (struct vr_check_place){0});
    while (naive.count < WORKS - 20) {
        const int stream = (int)number_below(STREAMS);
        const uint64_t what = number_below(20);
        if (what < 8)
            do_random_work(check, stream);
        else if (what < 17)
            do_random_event(check, stream, points);
        else if (what < 18)
            do_random_wait(check, stream);
        else
            do_random_launch(check, stream);
    }
    assert_false(vr_check_has_failed(check));
    for (int i = 0; i < EVENTS; i++) vr_check_point_drop(points[i]);
    vr_check_destroy(check);
}

static void same_order_as_the_naive_one(void **state) {
    for (uint64_t i = 1; i <= 300; i++) run_random(i * 1000003);
    assert_true(findings > 1000); // both answers occur
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_order_as_the_naive_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
