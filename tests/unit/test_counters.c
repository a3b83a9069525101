// The allowances of counters.h beside a model that has none: it knows what all shards count, and the peaks. Whether something is a new
// peak, and what the statistics are after each change, is the same.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/counters.h"
#include "support/random.h"

enum { MOST_SHARDS = 3, KINDS = VR_POOLS, STEPS = 4000, SEEDS = 60 };

// What is counted, added up. waiting: blocks of the pool that wait for fences, and their bytes.
struct truth {
    int64_t current[KINDS][VR_FAMILIES], increased[KINDS][VR_FAMILIES], waiting[KINDS][2];
    int64_t peak[VRAM_STAT_POOLS][VR_VIEW_FAMILIES];
};

struct bench {
    struct vr_totals totals;
    struct vr_counters shard[MOST_SHARDS];
    struct vr_counters *shards[MOST_SHARDS];
    uint32_t count;
    struct truth truth;
    uint64_t refused, dealt, lent;
};

static int64_t value_of(const struct truth *truth, unsigned kind, int family) {
    switch (family) {
    case VR_F_ACTIVE: return truth->current[kind][VR_F_COUNT] + truth->waiting[kind][0];
    case VR_F_ACTIVE_BYTES: return truth->current[kind][VR_F_BYTES] + truth->waiting[kind][1];
    default: return truth->current[kind][family];
    }
}

// Raises the peaks to where the families stand; how many rose.
static int raise(struct truth *truth) {
    int raised = 0;
    for (int family = 0; family < VR_VIEW_FAMILIES; family++) {
        const int64_t large = value_of(truth, VR_LARGE, family), small = value_of(truth, VR_SMALL, family);
        const int64_t now[VRAM_STAT_POOLS] = {
            [VRAM_STAT_ALL] = large + small, [VRAM_STAT_SMALL_POOL] = small, [VRAM_STAT_LARGE_POOL] = large};
        for (int view = 0; view < VRAM_STAT_POOLS; view++) {
            if (now[view] <= truth->peak[view][family]) continue;
            truth->peak[view][family] = now[view];
            raised++;
        }
    }
    return raised;
}

static void open_bench(struct bench *bench, uint32_t count) {
    memset(bench, 0, sizeof *bench);
    bench->count = count;
    for (uint32_t i = 0; i < count; i++) bench->shards[i] = &bench->shard[i];
}

// On copies: what is put off stays so.
static void assert_alike(const struct bench *bench) {
    struct vr_totals totals = bench->totals;
    struct vr_counters copies[MOST_SHARDS], *shards[MOST_SHARDS];
    for (uint32_t i = 0; i < bench->count; i++) copies[i] = bench->shard[i], shards[i] = &copies[i];
    vr_totals_gather(&totals, shards, bench->count);
    assert_memory_equal(totals.current, bench->truth.current, sizeof totals.current);
    assert_memory_equal(totals.increased, bench->truth.increased, sizeof totals.increased);
    assert_memory_equal(totals.peak, bench->truth.peak, sizeof totals.peak);
    for (int family = 0; family < VR_FAMILIES; family++) {
        int64_t both = 0, all = 0;
        for (unsigned kind = 0; kind < KINDS; kind++) {
            const enum vram_stat_pool view = kind == VR_SMALL ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL;
            int64_t own = 0;
            for (uint32_t i = 0; i < bench->count; i++) own += vr_counters_own(&bench->shard[i], kind, family);
            assert_true(totals.current[kind][family] + own <= totals.peak[view][family]);
            all += totals.current[kind][family];
        }
        for (uint32_t i = 0; i < bench->count; i++) both += vr_counters_both(&bench->shard[i], family);
        assert_true(all + both <= totals.peak[VRAM_STAT_ALL][family]);
    }
    for (uint32_t i = 0; i < bench->count; i++) assert_true(vr_counters_check(&bench->shard[i]));
}

// A hand-out or a free, which may split or merge: no family falls below 0.
static struct vr_delta draw(const struct truth *truth, unsigned kind, uint64_t *random) {
    const bool comes = vr_random_below(random, 2) == 0 || truth->current[kind][VR_F_COUNT] == 0;
    const int64_t size = comes ? 512 * (int64_t)(1 + vr_random_below(random, kind == VR_SMALL ? 8 : 64)) : 0;
    const int64_t count = truth->current[kind][VR_F_COUNT], splits = truth->current[kind][VR_F_SPLITS];
    struct vr_delta delta = {{[VR_F_COUNT] = 1, [VR_F_BYTES] = size, [VR_F_REQUESTED] = size - (int64_t)vr_random_below(random, 511)}};
    for (int family = VR_F_COUNT; !comes && family <= VR_F_REQUESTED; family++) {
        delta.of[family] = -(family == VR_F_COUNT ? 1 : truth->current[kind][family] / count);
    }
    delta.of[VR_F_SPLITS] = (int64_t)vr_random_below(random, 3) - (splits > 0);
    if (delta.of[VR_F_SPLITS] == 2) delta.of[VR_F_SPLITS] = 1;
    delta.of[VR_F_SPLIT_BYTES] =
        delta.of[VR_F_SPLITS] >= 0 ? 512 * (int64_t)vr_random_below(random, 9) : -(truth->current[kind][VR_F_SPLIT_BYTES] / splits);
    return delta;
}

// As slack.c does it, and where that does not do, under all locks.
static void book(struct bench *bench, uint32_t at, unsigned kind, const struct vr_delta *delta, uint64_t *random) {
    struct vr_counters *own = bench->shards[at], *other = bench->shards[(at + 1) % bench->count];
    const int first = delta->of[VR_F_COUNT] > 0 ? 0 : VR_F_SPLITS;
    struct truth *truth = &bench->truth;
    for (int family = 0; family < VR_FAMILIES; family++) {
        truth->current[kind][family] += delta->of[family];
        truth->increased[kind][family] += vr_rise(delta->of[family]);
    }
    const int raised = raise(truth);
    bool fits = vr_counters_fit_from(own, kind, delta, first);
    if (!fits) bench->dealt += fits = vr_counters_make_fit(own, kind, delta, first);
    if (!fits && bench->count > 1 && vr_random_below(random, 2) == 0) {
        vr_counters_take_over(own, other, vr_random_below(random, 2) == 0);
        bench->lent += fits = vr_counters_make_fit(own, kind, delta, first);
    }
    if (raised > 0) assert_false(fits);
    if (fits) {
        vr_counters_apply(own, kind, delta);
    } else if (bench->count == 1) {
        vr_totals_apply_single(&bench->totals, own, kind, delta);
    } else {
        bench->refused++;
        vr_totals_gather(&bench->totals, bench->shards, bench->count);
        vr_totals_apply(&bench->totals, own, kind, delta, 0, 0);
        vr_totals_share(&bench->totals, bench->shards, bench->count, own);
    }
}

// A block of the pool begins to wait, or one of those that do no longer does.
static void wait_or_pass(struct bench *bench, uint32_t at, unsigned kind, uint64_t *random) {
    struct truth *truth = &bench->truth;
    const int64_t count = truth->current[kind][VR_F_COUNT], size = count != 0 ? truth->current[kind][VR_F_BYTES] / count : 0;
    if (vr_random_below(random, 2) == 0 && count != 0) {
        vr_totals_start_waiting(&bench->totals, bench->shards[at], kind, size);
        truth->current[kind][VR_F_COUNT]--, truth->current[kind][VR_F_BYTES] -= size;
        truth->waiting[kind][0]++, truth->waiting[kind][1] += size;
    } else if (truth->waiting[kind][0] != 0) {
        const int64_t waits = truth->waiting[kind][1] / truth->waiting[kind][0];
        const struct vr_delta nothing = {{0}};
        assert_true(vr_totals_stop_waiting(&bench->totals, bench->shards[at], kind, &nothing, waits));
        truth->waiting[kind][0]--, truth->waiting[kind][1] -= waits;
    }
}

static void reset_peaks(struct bench *bench) {
    vr_totals_gather(&bench->totals, bench->shards, bench->count);
    vr_totals_reset_peak(&bench->totals);
    vr_totals_share(&bench->totals, bench->shards, bench->count, bench->shards[0]);
    memset(bench->truth.peak, 0x80, sizeof bench->truth.peak);
    (void)raise(&bench->truth);
}

static void step(struct bench *bench, uint64_t *random) {
    const uint32_t at = (uint32_t)vr_random_below(random, bench->count);
    const unsigned kind = (unsigned)vr_random_below(random, KINDS);
    const uint64_t what = vr_random_below(random, 64);
    if (what == 0) {
        reset_peaks(bench);
    } else if (what < 8) {
        wait_or_pass(bench, at, kind, random);
    } else {
        const struct vr_delta delta = draw(&bench->truth, kind, random);
        book(bench, at, kind, &delta, random);
    }
    assert_alike(bench);
}

static void any_change_is_counted(void **state) {
    (void)state;
    for (uint32_t count = 1; count <= MOST_SHARDS; count++) {
        uint64_t refused = 0, dealt = 0, lent = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct bench bench;
            uint64_t random = seed * MOST_SHARDS + count;
            open_bench(&bench, count);
            reset_peaks(&bench);
            for (int i = 0; i < STEPS / (int)count; i++) step(&bench, &random);
            refused += bench.refused, dealt += bench.dealt, lent += bench.lent;
        }
        assert_in_range(dealt, 100, UINT64_MAX);
        if (count > 1) assert_in_range(refused, 100, UINT64_MAX);
        if (count > 1) assert_in_range(lent, 100, UINT64_MAX);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_change_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
