// test_pools.c: tests generated recordings (selfmade.h) with private pools, with and without pool ids on their events.

#include <stdio.h>

#include "model/recording.h"
#include "replay/replaying.h"
#include "replay/selfmade.h"
#include "support/apart.h"
#include "support/random.h"

static const char *const confs[] = {"", "expandable_segments:True", "roundup_power2_divisions:4", "max_split_size_mb:32"};

static struct selfmade_options with_pools(const char *conf, uint64_t seed) {
    return (struct selfmade_options){.conf = conf,
                                     .seed = seed,
                                     .memory_bytes = 80 * VR_GIB,
                                     .operations = 1500,
                                     .streams = 1 + (unsigned)(seed % 3),
                                     .pools = 1 + (unsigned)(seed % 4)};
}

// Sums over the replays of a test.
struct sums {
    uint64_t allocations;
    uint64_t private_allocations;
    uint64_t releases;
    uint64_t oom_events;
    uint64_t equal;
    uint64_t partial;
    uint64_t left_out;
};

// Replays the recording, which must agree completely (or, with `partial`, as far as it can be determined).
static void replay(const struct selfmade *made, size_t cut, uint64_t seed, bool partial, struct sums *sums) {
    struct vram_recording *recording = selfmade_recording(made, cut);
    struct vram_exact_result *result = exact(recording);
    const struct vram_exact_device *device = &result->devices[0];
    if (!result->agrees && !(partial && device->verdict == VRAM_EXACT_PARTIAL)) {
        (void)!vram_exact_text(result, "self-made", NULL, to_stderr, NULL);
        fail_msg("conf '%s' seed %llu cut %zu", made->conf, (unsigned long long)seed, cut);
    }
    assert_int_equal(device->at_recorded_address, device->allocations);
    assert_int_equal(device->segment_events_agreeing, device->segment_events);
    assert_int_equal(device->releases_agreeing, device->releases);
    assert_int_equal(device->final_blocks_equal, made->block_count);
    assert_int_equal(device->final_blocks_extra, 0);
    assert_int_equal(device->left_out_allocations > 0 || device->reason[0] != '\0', device->verdict == VRAM_EXACT_PARTIAL);
    sums->allocations += device->allocations;
    sums->private_allocations += device->private_allocations;
    sums->releases += device->releases;
    sums->oom_events += device->oom_events_agreeing;
    sums->equal += device->verdict == VRAM_EXACT_EQUAL;
    sums->partial += device->verdict == VRAM_EXACT_PARTIAL;
    sums->left_out += device->left_out_allocations;
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
}

// --- replays of our own recordings --------------------------------------------------------------------------------------------
static void histories_with_pools_are_exact(void **state) {
    (void)state;
    struct sums sums = {0};
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        for (uint64_t seed = 1; seed <= 12; seed++) {
            struct selfmade made;
            const struct selfmade_options options = with_pools(confs[c], seed);
            selfmade_run(&made, &options);
            replay(&made, 0, seed, false, &sums);
            selfmade_release(&made);
        }
    }
    assert_true(sums.private_allocations > 10000);
    assert_true(sums.private_allocations < sums.allocations);
    assert_true(sums.releases > 3000);
}

// Such pools have ordinary segments even if the settings say expandable ones.
static void pools_with_functions_of_their_own_are_exact(void **state) {
    (void)state;
    struct sums sums = {0};
    size_t segments = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct selfmade made;
        struct selfmade_options options = with_pools("expandable_segments:True", seed);
        options.functions = true;
        selfmade_run(&made, &options);
        for (size_t i = 0; i < made.count; i++) segments += made.records[i].action == VR_RECORD_SEGMENT_ALLOC;
        replay(&made, 0, seed, false, &sums);
        selfmade_release(&made);
    }
    assert_true(segments > 100 && sums.private_allocations > 1000);
}

// The start has private segments and blocks, which must be found by undoing the remaining events.
static void cut_histories_with_pools_are_exact(void **state) {
    (void)state;
    struct sums sums = {0};
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct selfmade made;
            struct selfmade_options options = with_pools(confs[c], seed);
            options.small_sizes = true;
            selfmade_run(&made, &options);
            for (size_t i = 1; i <= 6; i++) replay(&made, made.count * i / 7, seed, false, &sums);
            selfmade_release(&made);
        }
    }
    assert_true(sums.private_allocations > 10000);
}

static void histories_with_pools_and_ooms_are_exact(void **state) {
    (void)state;
    struct sums sums = {0};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct selfmade made;
        struct selfmade_options options = with_pools("", seed);
        options.memory_bytes = 384 * VR_MIB;
        selfmade_run(&made, &options);
        replay(&made, 0, seed, false, &sums);
        selfmade_release(&made);
    }
    assert_true(sums.oom_events > 100);
}

// --- without pool ids -----------------------------------------------------------------------------------------------------------
static bool shows_pools(const struct selfmade *made) {
    for (size_t i = 0; i < made->block_count; i++) {
        if (made->blocks[i].block.pool.first != 0 || made->blocks[i].block.pool.second != 0) return true;
    }
    return false;
}

// PyTorch before 2.12: only the final state contains pools. Pools gone by then cannot be determined; the rest must agree.
static void events_without_pool_ids(void **state) {
    (void)state;
    struct sums sums = {0};
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        for (uint64_t seed = 1; seed <= 24; seed++) {
            struct selfmade made;
            struct selfmade_options options = with_pools(confs[c], seed);
            selfmade_run(&made, &options);
            made.events_without_pools = true;
            for (size_t i = 0; i < 4 && shows_pools(&made); i++) replay(&made, made.count * i * 2 / 7, seed, true, &sums);
            selfmade_release(&made);
        }
    }
    assert_true(sums.equal > 20 && sums.partial > 100);
    assert_true(sums.left_out > 0 && sums.private_allocations > 5000);
}

// If nothing indicates pools, their memory is attributed to the default pools, and the replay must differ.
static void histories_that_hide_their_pools_differ(void **state) {
    (void)state;
    unsigned differing = 0, runs = 0;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct selfmade made;
            const struct selfmade_options options = with_pools(confs[c], seed);
            selfmade_run(&made, &options);
            made.events_without_pools = made.segments_without_pools = true;
            struct vram_recording *recording = selfmade_recording(&made, 0);
            struct vram_exact_result *result = exact(recording);
            differing += !result->agrees;
            runs++;
            vram_exact_result_destroy(result);
            vram_recording_destroy(recording);
            selfmade_release(&made);
        }
    }
    assert_int_equal(differing, runs);
}

// Leaving out what cannot be determined must not hide a different allocator.
static void wrong_settings_are_no_unknown_pools(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct selfmade made;
        const struct selfmade_options options = with_pools("", seed);
        selfmade_run(&made, &options);
        made.events_without_pools = true;
        made.conf = "roundup_power2_divisions:4";
        struct vram_recording *recording = selfmade_recording(&made, 0);
        struct vram_exact_result *result = exact(recording);
        assert_int_equal(result->devices[0].verdict, VRAM_EXACT_DIFFERENT);
        assert_int_equal(result->devices[0].left_out_allocations, 0);
        vram_exact_result_destroy(result);
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
}

// --- what if --------------------------------------------------------------------------------------------------------------------
// With the settings it ran with, a program needs what it needed, in each of its pools.
static void own_settings_give_own_peaks(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct selfmade made;
        const struct selfmade_options options = with_pools(confs[seed % 3], seed);
        selfmade_run(&made, &options);
        struct vram_recording *recording = selfmade_recording(&made, 0);
        for (int start = 0; start < 2; start++) {
            const struct vram_whatif_options run = {.start = start == 0 ? VRAM_WHATIF_COLD : VRAM_WHATIF_RECORDED};
            struct vram_whatif_result *result = whatif(recording, &run);
            assert_true(result->finished);
            assert_true(result->devices[0].private_allocations > 50);
            assert_int_equal(result->devices[0].peak_reserved_bytes, made.stats.reserved_bytes[VRAM_STAT_ALL].peak);
            assert_int_equal(result->devices[0].peak_active_bytes, made.stats.active_bytes[VRAM_STAT_ALL].peak);
            assert_int_equal(result->devices[0].final_reserved_bytes, made.stats.reserved_bytes[VRAM_STAT_ALL].current);
            vram_whatif_result_destroy(result);
        }
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
}

// --- damaged pool data -----------------------------------------------------------------------------------------------------------
static uint64_t random_state;
static uint64_t random_below(uint64_t bound) { return vr_random_below(&random_state, bound); }

// Damages pool data: an id, whether there is one, or what determines the id.
static void damage(struct vr_model *model) {
    struct vr_history *history = &model->histories[0];
    const size_t at = random_below(history->count), from = random_below(history->count);
    switch (random_below(7)) {
    case 0: history->pool_first[at] = history->pool_first[from]; break;
    case 1: history->pool_second[at] = vr_mix64(random_state); break;
    case 2: set_has(history, at, vr_entry_has(history, at) ^ VR_HAS_POOL_ID); break;
    case 3: history->action[at] = history->action[from]; break;
    case 4: history->address[at] = history->address[from]; break;
    case 5: history->size_bytes[at] = (uint64_t)1 << random_below(64); break;
    default:
        if (model->segments.count > 0) model->segments.pool_first[random_below(model->segments.count)] = random_below(3);
        break;
    }
}

static void damaged_pools_do_no_harm(void **state) {
    (void)state;
    unsigned wrong = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct selfmade made;
        struct selfmade_options options = with_pools(confs[seed % VR_COUNT_OF(confs)], seed);
        options.operations = 300;
        selfmade_run(&made, &options);
        made.events_without_pools = seed % 3 == 0;
        struct vram_recording *recording = selfmade_recording(&made, seed % 5 == 0 ? made.count / 2 : 0);
        random_state = seed;
        open_apart(&recording->model.histories[0]);
        for (uint64_t i = 0; i <= seed % 4; i++) damage(&recording->model);
        struct vram_exact_result *result = exact(recording);
        wrong += !result->agrees;
        vram_exact_result_destroy(result);
        for (int start = 0; start < 2; start++) {
            const struct vram_whatif_options run = {.start = start == 0 ? VRAM_WHATIF_COLD : VRAM_WHATIF_RECORDED,
                                                    .memory_bytes = seed % 2 == 0 ? VR_GIB : 0};
            vram_whatif_result_destroy(whatif(recording, &run));
        }
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
    assert_true(wrong > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_with_pools_are_exact),
        cmocka_unit_test(pools_with_functions_of_their_own_are_exact),
        cmocka_unit_test(cut_histories_with_pools_are_exact),
        cmocka_unit_test(histories_with_pools_and_ooms_are_exact),
        cmocka_unit_test(events_without_pool_ids),
        cmocka_unit_test(histories_that_hide_their_pools_differ),
        cmocka_unit_test(wrong_settings_are_no_unknown_pools),
        cmocka_unit_test(own_settings_give_own_peaks),
        cmocka_unit_test(damaged_pools_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
