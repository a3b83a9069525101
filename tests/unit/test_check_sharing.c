// Three checkers with one board, as three processes have them: each finding between two of them has to be right by a naive model, in which
// every piece of work has the set of all work before it. A board with any content must not crash a checker, nor keep it busy.
#include <stdlib.h>

#include "check/check.h"
#include "unit/sim_fixture.h"

enum { PROCESSES = 3, STREAMS = 2, EVENTS = 3, WORKS = 300, BYTES = 40, WORDS = WORKS / 64 + 1, KEY = 77 };

static uint64_t *board;

static struct vr_check_board *get_board(void) { return (struct vr_check_board *)(void *)board; }
static bool is_live(uint64_t process) { return process != 0; }
static uint32_t number_of(const struct vr_check_use *use) { return use->stack; }

// ---- The naive model. Its streams are those of all processes, and the hosts are one.

struct naive_work {
    uint64_t before[WORDS]; // works that come before it, and itself
    int process;
    uint64_t from, end;
    bool writes;
};

static struct {
    struct naive_work works[WORKS];
    int count, host;
    int last[PROCESSES][STREAMS];
    int events[EVENTS];
} naive;

static bool comes_before(int first, int second) { return (naive.works[second].before[first / 64] >> first % 64 & 1) != 0; }

static void come_after(int work, int other) {
    for (int i = 0; other >= 0 && i < WORDS; i++) naive.works[work].before[i] |= naive.works[other].before[i];
}

static int add_work(int process) {
    const int work = naive.count++;
    naive.works[work] = (struct naive_work){.process = process};
    naive.works[work].before[work / 64] |= (uint64_t)1 << work % 64;
    come_after(work, naive.host);
    return work;
}

static int add_on(int process, int stream) {
    const int work = add_work(process);
    come_after(work, naive.last[process][stream]);
    return naive.last[process][stream] = work;
}

static bool conflict(int first, int second) {
    const struct naive_work *a = &naive.works[first], *b = &naive.works[second];
    return a->process != b->process && a->from < b->end && b->from < a->end && (a->writes || b->writes) && !comes_before(first, second);
}

// ---- Both at once.

static uint64_t seed;
static uint64_t number_below(uint64_t limit) { return (seed = vr_mix64(seed + 1)) % limit; }

static struct vr_check *checks[PROCESSES];
static struct vr_check_point *points[EVENTS]; // of the last record
static int recorded_by[EVENTS];
static uint64_t right, wrong, expected;
static bool hostile;

static void note_finding(void *user, const struct vr_check_finding *finding) {
    (void)user;
    if (finding->kind != VR_CHECK_SHARING) return;
    const int first = (int)finding->earlier.stack - 1, second = (int)finding->later.stack - 1;
    if (!hostile && conflict(first, second) && finding->earlier.process == (uint64_t)naive.works[first].process + 1)
        right++;
    else
        wrong++;
}

static uint64_t address_in(int process) { return 0x10000 * ((uint64_t)process + 1); }

static void do_work(int process, int stream) {
    const int work = add_on(process, stream);
    struct naive_work *made = &naive.works[work];
    made->from = number_below(BYTES);
    made->end = made->from + 1 + number_below(BYTES - made->from);
    made->writes = number_below(3) == 0;
    const struct vr_check_access access = {.address = address_in(process) + made->from,
                                           .size_bytes = made->end - made->from,
                                           .effect = made->writes ? VR_CHECK_WRITE : VR_CHECK_READ};
    bool any = false;
    for (int i = 0; i < work && !any; i++) any = conflict(i, work);
    expected += any;
    vr_check_work(checks[process], (uint64_t)stream + 1, (struct vr_check_place){.stack = (uint32_t)work + 1}, &access, 1);
}

static void do_event(int process, int stream) {
    const int event = (int)number_below(EVENTS);
    const uint64_t key = 100 + (uint64_t)event, name = (uint64_t)stream + 1;
    if (number_below(2) == 0) {
        naive.events[event] = add_on(process, stream);
        vr_check_point_drop(points[event]);
        points[event] = NULL;
        vr_check_mark(checks[process], name, &points[event]);
        vr_check_share_event(checks[process], key, points[event]);
        recorded_by[event] = process;
        return;
    }
    const bool own = recorded_by[event] == process;
    if (number_below(5) == 0) {
        come_after(naive.host = add_work(process), naive.events[event]);
        if (own) vr_check_host_wait(checks[process], points[event]);
        vr_check_host_wait_shared(checks[process], key);
        return;
    }
    come_after(add_on(process, stream), naive.events[event]);
    vr_check_wait_shared(checks[process], name, key);
    if (own) vr_check_wait(checks[process], name, points[event]);
}

static void do_host_wait(int process, int stream) {
    const int work = add_work(process);
    come_after(work, naive.last[process][stream]);
    naive.host = work;
    vr_check_host_wait_stream(checks[process], (uint64_t)stream + 1);
}

static void begin_process(int process) {
    const struct vr_check_sharing_ops ops = {.process = (uint64_t)process + 1, .board = get_board, .is_live = is_live, .number = number_of};
    assert_int_equal(vr_check_create(note_finding, NULL, &checks[process]), VRAM_OK);
    vr_check_join(checks[process], &ops);
    for (uint64_t i = 1; i <= STREAMS; i++) vr_check_stream_open(checks[process], i, 7, 0, VR_CHECK_NON_BLOCKING);
    vr_check_segment(checks[process], address_in(process), BYTES, false, (struct vr_check_place){0});
    vr_check_share(checks[process], address_in(process), BYTES, KEY, process == 0);
}

static void begin(uint64_t with) {
    seed = with;
    board = calloc(1, vr_check_board_bytes());
    assert_non_null(board);
    naive.count = 0;
    naive.host = -1;
    memset(naive.last, 0xff, sizeof naive.last);
    memset(naive.events, 0xff, sizeof naive.events);
    for (int i = 0; i < PROCESSES; i++) begin_process(i);
    for (int i = 0; i < EVENTS; i++) {
        vr_check_share_event(checks[0], 100 + (uint64_t)i, NULL); // exported, not recorded
        recorded_by[i] = 0;
    }
}

static void end(void) {
    for (int i = 0; i < EVENTS; i++) vr_check_point_drop(points[i]);
    memset(points, 0, sizeof points);
    for (int i = 0; i < PROCESSES; i++) {
        assert_false(vr_check_has_failed(checks[i]));
        vr_check_destroy(checks[i]);
    }
    free(board);
}

static void do_something(void) {
    const int process = (int)number_below(PROCESSES), stream = (int)number_below(STREAMS);
    const uint64_t what = number_below(20);
    if (what < 11)
        do_work(process, stream);
    else if (what < 19)
        do_event(process, stream);
    else
        do_host_wait(process, stream);
}

static void findings_are_right(void **state) {
    (void)state;
    for (uint64_t i = 1; i <= 300; i++) {
        begin(i * 1000003);
        while (naive.count < WORKS - 2) do_something();
        end();
    }
    assert_int_equal(wrong, 0);
    assert_true(expected > 1000);
    assert_true(right > expected / 2); // a doubt counts as order, so not all are found
}

// Without an event of another process nothing is in doubt: whatever conflicts is found.
static void two_processes_without_events(void **state) {
    (void)state;
    right = wrong = expected = 0;
    for (uint64_t i = 1; i <= 300; i++) {
        begin(i * 999983);
        uint64_t missed = 0;
        while (naive.count < WORKS - 2) {
            const uint64_t before = expected, found = right;
            const int process = (int)number_below(2), stream = (int)number_below(STREAMS);
            if (number_below(10) == 0)
                do_host_wait(process, stream);
            else
                do_work(process, stream);
            missed += expected > before && right == found;
        }
        end();
        assert_int_equal(missed, 0);
    }
    assert_int_equal(wrong, 0);
    assert_true(right > 1000);
}

static void a_free_by_the_owner(void **state) {
    (void)state;
    hostile = true; // the model does not know frees
    begin(1);
    wrong = 0;
    const struct vr_check_access access = {.address = address_in(1), .size_bytes = 4, .effect = VR_CHECK_READ};
    vr_check_work(checks[1], 1, (struct vr_check_place){.stack = 1}, &access, 1);
    assert_int_equal(wrong, 0);
    vr_check_segment_end(checks[0], address_in(0), BYTES, true, (struct vr_check_place){.stack = 2}); // while process 1 reads it
    assert_int_equal(wrong, 1);
    vr_check_host_wait_stream(checks[1], 1);
    vr_check_work(checks[1], 2, (struct vr_check_place){.stack = 3}, &access, 1); // after the free
    assert_int_equal(wrong, 2);
    vr_check_alone(checks[0]);
    vr_check_work(checks[1], 2, (struct vr_check_place){.stack = 4}, &access, 1); // the owner has withdrawn
    assert_int_equal(wrong, 2);
    end();
    hostile = false;
}

static void any_content(void **state) {
    (void)state;
    hostile = true;
    assert_true(vr_check_board_bytes() > 1000);
    for (uint64_t i = 1; i <= 20; i++) {
        begin(i * 7919);
        while (naive.count < WORKS - 2) {
            do_something();
            for (int j = 0; j < 200; j++)
                board[number_below(vr_check_board_bytes() / sizeof *board)] = number_below(2) == 0 ? number_below(200) : vr_mix64(seed);
        }
        end();
    }
    hostile = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(findings_are_right), cmocka_unit_test(two_processes_without_events),
                                       cmocka_unit_test(a_free_by_the_owner), cmocka_unit_test(any_content)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
