// Makes every driver call fail once: repeats a workload on pinned memory with the 1st, 2nd, 3rd ... call refused, including those at the
// end, until it passes without a refusal. Then also refuses a second call soon after the first. Every status must be plausible, the state
// valid, and nothing left in the driver. With a history on, its events must lead to the state in a snapshot.
#include "host_fixture.h"

#include "driver/fault/fault.h"
#include "model/recording.h"
#include "vram/history.h"
#include "vram/recording.h"
#include "vram/sim.h"
#include "vram/snapshot.h"

struct round {
    struct fixture fixture;
    struct vram_driver *fault;
    uint64_t first, second;           // streams
    struct vram_allocator *allocator; // its history records the pinned memory; NULL: none
};

static bool passed(struct round *round, enum vram_status status) {
    check(&round->fixture);
    assert_true(status == VRAM_OK || status == VRAM_DRIVER || status == VRAM_OUT_OF_MEMORY);
    return status == VRAM_OK;
}

static void *try_get(struct round *round, struct vram_host_pool *pool, uint64_t size, uint64_t stream) {
    void *pointer = NULL;
    const enum vram_status status =
        pool == NULL ? vram_host_malloc(round->fixture.host, size, stream, &pointer) : vram_host_pool_malloc(pool, size, stream, &pointer);
    if (!passed(round, status)) assert_null(pointer); // unchanged
    if (pointer != NULL) memset(pointer, 0x5a, size);
    return pointer;
}

// A free that could not set its fence keeps the block: it can be freed again, once per refused call.
static void try_put(struct round *round, void *pointer) {
    enum { MOST_REFUSALS = 2 };
    int refusals = 0;
    while (!passed(round, vram_host_free(round->fixture.host, pointer)) && vram_host_allocated_size(round->fixture.host, pointer) != 0)
        assert_true(++refusals <= MOST_REFUSALS);
}

static void use(struct round *round, void *pointer, uint64_t stream) {
    if (pointer != NULL) (void)passed(round, vram_host_record_stream(round->fixture.host, pointer, stream));
}

static void workload(struct round *round) {
    struct vram_host *host = round->fixture.host;
    struct vram_host_pool *pool = NULL;
    expect_ok(vram_host_pool_create(host, NULL, &pool));
    void *a = try_get(round, NULL, 3000, round->first), *b = try_get(round, NULL, 2 * VR_MIB, round->second);
    use(round, a, round->first);
    use(round, a, round->second);
    use(round, b, 0);
    try_put(round, a);
    expect_ok(vram_sim_complete(round->fixture.sim, round->first));
    void *c = try_get(round, pool, 3000, round->first);
    use(round, c, round->first);
    try_put(round, b);
    expect_ok(vram_sim_complete_all(round->fixture.sim));
    a = try_get(round, NULL, 4096, 0);
    (void)passed(round, vram_host_empty_cache(host));
    try_put(round, c);
    try_put(round, a);
    (void)passed(round, vram_host_pool_empty_cache(pool));
    void *none = try_get(round, NULL, (uint64_t)1 << 52, 0); // waits for everything, and fails
    assert_null(none);
    (void)try_get(round, NULL, 70000, 0); // never freed
    vram_host_pool_release(pool);
}

// --- the history ----------------------------------------------------------------------------------------------------------------------

// Driver calls of the history bypass the faults, so that only those of pinned memory count.
static void start_history(struct round *round) {
    const struct vram_create_info info = {.driver = round->fixture.sim, .conf = ""};
    expect_ok(vram_create(&info, &round->allocator, NULL));
    const struct vram_history_options options = {.context = VRAM_HISTORY_NONE, .host = round->fixture.host};
    expect_ok(vram_history_start(round->allocator, &options, NULL));
}

enum { MOST_BLOCKS = 16, NOT_PINNED = VR_STATE_COUNT };

// The state of each address according to the events.
struct ledger {
    uint64_t address[MOST_BLOCKS];
    int state[MOST_BLOCKS]; // enum vr_block_state, or NOT_PINNED
    size_t count;
};

static int *state_at(struct ledger *ledger, uint64_t address) {
    size_t at = 0;
    while (at < ledger->count && ledger->address[at] != address) at++;
    if (at == ledger->count) {
        assert_true(at < MOST_BLOCKS);
        ledger->address[at] = address;
        ledger->state[ledger->count++] = NOT_PINNED;
    }
    return &ledger->state[at];
}

// Each event is allowed in one state of its address, and leads to another.
static void follow(const struct vr_history *history, struct ledger *ledger) {
    static const struct {
        int from, to;
    } steps[VR_ACTION_COUNT] = {
        [VR_ACTION_SEGMENT_ALLOC] = {NOT_PINNED, VR_STATE_INACTIVE},
        [VR_ACTION_ALLOC] = {VR_STATE_INACTIVE, VR_STATE_ALLOCATED},
        [VR_ACTION_FREE_REQUESTED] = {VR_STATE_ALLOCATED, VR_STATE_PENDING_FREE},
        [VR_ACTION_FREE_COMPLETED] = {VR_STATE_PENDING_FREE, VR_STATE_INACTIVE},
        [VR_ACTION_SEGMENT_FREE] = {VR_STATE_INACTIVE, NOT_PINNED},
    };
    for (size_t i = 0; i < history->count; i++) {
        if (history->action[i] == VR_ACTION_OOM) continue; // has no address
        int *state = state_at(ledger, history->address[i]);
        if (*state != steps[history->action[i]].from || steps[history->action[i]].from == steps[history->action[i]].to)
            fail_msg("event %zu: %s in state %d", i, vr_action_name(history->action[i]), *state);
        *state = steps[history->action[i]].to;
    }
}

// Checks that every block of the snapshot is in the state the events left it, and that none is missing.
static void expect_history(struct round *round) {
    struct ledger ledger = {.count = 0};
    struct vram_recording *recording = NULL;
    struct vram_error error = {.message = ""};
    expect_ok(vram_snapshot(round->allocator, NULL, &recording, &error));
    const struct vr_model *model = vr_recording_model(recording);
    expect_ok(vr_model_check(model, &error));
    assert_int_equal(model->host_count, 1);
    const struct vr_history *history = &model->histories[model->history_count - 1];
    follow(history, &ledger);
    size_t pinned = 0;
    for (size_t i = 0; i < ledger.count; i++) pinned += ledger.state[i] != NOT_PINNED;
    assert_int_equal(model->blocks.count, pinned);
    for (size_t i = 0; i < pinned; i++) assert_int_equal(model->blocks.state[i], *state_at(&ledger, model->blocks.address[i]));
    const struct vram_host_stats stats = stats_of(&round->fixture);
    int64_t handed_out = 0;
    for (size_t i = 0; i < history->count; i++) handed_out += history->action[i] == VR_ACTION_ALLOC;
    assert_int_equal(handed_out, stats.active_requests.allocated);
    vram_recording_destroy(recording);
    expect_ok(vram_history_stop(round->allocator));
    vram_destroy(round->allocator);
}

// Which calls to refuse: call number nth, with a result; and, if then_nth is not 0, the then_nth call after it, with an unknown error.
struct refusal {
    uint64_t nth, then_nth;
    int32_t result;
};

// Returns whether a call was refused.
static bool run(const char *conf, const struct refusal *refusal, bool history) {
    struct round round = {.allocator = NULL};
    open_with_fault(&round.fixture, &round.fault, conf);
    struct vram_driver *sim = round.fixture.sim;
    uint64_t context;
    assert_cu(vr_cu(sim, primary_ctx_retain, &context, 0), SUCCESS);
    round.first = new_stream(&round.fixture, 0);
    round.second = new_stream(&round.fixture, 0);
    if (history) start_history(&round);
    expect_ok(vram_driver_fault_set(round.fault, NULL, refusal->nth, refusal->result));
    if (refusal->then_nth != 0) vr_fault_then(round.fault, refusal->then_nth, VR_CU_UNKNOWN);
    workload(&round);
    check(&round.fixture);
    if (history) expect_history(&round);
    vram_host_destroy(round.fixture.host);
    const bool refused = vram_driver_fault_count(round.fault) != 0;
    const uint64_t left = vram_sim_live_objects(sim);
    if (left != 2)
        fail_msg("\"%s\", call %llu and %llu after it: %llu objects are left", conf, (unsigned long long)refusal->nth,
                 (unsigned long long)refusal->then_nth, (unsigned long long)left - 2);
    assert_cu(vr_cu(sim, primary_ctx_release, 0), SUCCESS);
    assert_int_equal(vram_sim_live_objects(sim), 0); // the allocator has released the context
    vram_driver_destroy(round.fault);
    vram_driver_destroy(sim);
    return refused;
}

static void every_call_fails(bool history, uint64_t then_nth) {
    static const char *const confs[] = {"", "pinned_use_cuda_host_register:True", "pinned_free_catch_all:True,pinned_max_cached_size_mb:1",
                                        "pinned_reserve_segment_size_mb:1", "pinned_use_background_threads:True"};
    static const int32_t results[] = {VR_CU_OUT_OF_MEMORY, VR_CU_UNKNOWN};
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        for (size_t k = 0; k < VR_COUNT_OF(results); k++) {
            struct refusal refusal = {.nth = 1, .then_nth = then_nth, .result = results[k]};
            while (run(confs[i], &refusal, history)) refusal.nth++;
            assert_true(refusal.nth > 60);
        }
    }
}

static void every_call_fails_without_a_history(void **state) {
    (void)state;
    every_call_fails(false, 0);
}

static void every_call_fails_with_a_history(void **state) {
    (void)state;
    every_call_fails(true, 0);
}

static void every_pair_of_calls_fails(void **state) {
    (void)state;
    for (uint64_t then_nth = 1; then_nth <= 3; then_nth++) every_call_fails(then_nth % 2 != 0, then_nth);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_fails_without_a_history),
        cmocka_unit_test(every_call_fails_with_a_history),
        cmocka_unit_test(every_pair_of_calls_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
