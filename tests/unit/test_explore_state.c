#define _GNU_SOURCE
// Segments and blocks after any event: against snapshots that the allocator itself made at that moment, and against a naive second way.
#include <stdio.h>

#include "explore/explorer.h"
#include "explore/moment.h"
#include "support/history.h"

static const struct vram_history_options NO_STACKS = {.context = VRAM_HISTORY_NONE};

enum { OPERATIONS = 900, MOST_LIVE = 60, SNAPSHOTS = 12 };

struct run {
    struct vr_world world;
    uint64_t seed;
    uint64_t live[MOST_LIVE];
    size_t live_count;
    struct vram_recording *snapshots[SNAPSHOTS];
    size_t snapshot_count;
};

static uint64_t dice(struct run *run, uint64_t below) {
    run->seed += 0x9e3779b97f4a7c15u;
    return vr_mix64(run->seed) % below;
}

static uint64_t random_size(struct run *run) {
    switch (dice(run, 5)) {
    case 0: return 1 + dice(run, 4000);
    case 1: return 1 + dice(run, VR_MIB);
    case 2: return VR_MIB + dice(run, 3 * VR_MIB);
    case 3: return VR_MIB + dice(run, 12 * VR_MIB);
    default: return 10 * VR_MIB + dice(run, 40 * VR_MIB);
    }
}

static void operate(struct run *run) {
    struct vr_world *world = &run->world;
    const uint64_t action = dice(run, 100);
    if (action < 55 && run->live_count < MOST_LIVE) {
        uint64_t address = 0;
        const uint64_t stream = dice(run, 3) == 0 ? world->stream[0][1] : 0;
        if (vram_malloc(world->allocator, 0, random_size(run), stream, &address) == VRAM_OK) run->live[run->live_count++] = address;
    } else if (action < 95 && run->live_count != 0) {
        const size_t which = dice(run, run->live_count);
        if (dice(run, 4) == 0) OK(vram_record_stream(world->allocator, run->live[which], world->stream[0][2]));
        OK(vram_free(world->allocator, run->live[which]));
        run->live[which] = run->live[--run->live_count];
    } else if (action < 97) {
        OK(vr_world_complete(world, 0, world->stream[0][2]));
    } else if (action == 97) {
        OK(vr_world_complete(world, 0, world->stream[0][2]));
        OK(vram_empty_cache(world->allocator));
    }
}

// What a snapshot says lies at [address, end) of kind: its segments, and its blocks that are not inactive.
static void compare(const struct vr_model *model, const struct vr_moment *moment, const char *what) {
    const struct vr_segments *segments = &model->segments;
    const struct vr_blocks *blocks = &model->blocks;
    size_t block = 0;
    if (moment->segment_count != segments->count) fail_msg("%s: %zu segments, not %zu", what, moment->segment_count, segments->count);
    for (size_t s = 0; s < moment->segment_count; s++) {
        const struct vr_moment_segment *found = &moment->segments[s];
        size_t row = 0;
        while (row < segments->count && segments->address[row] != found->address) row++;
        if (row == segments->count) fail_msg("%s: no segment at %llx", what, (unsigned long long)found->address);
        assert_int_equal(found->end - found->address, segments->total_bytes[row]);
        assert_int_equal(found->stream, segments->stream[row]);
        assert_int_equal(found->kind, segments->kind[row]);
        assert_int_equal(found->expandable, segments->expandable[row]);
        for (uint64_t b = segments->first_block[row]; b < segments->first_block[row + 1]; b++) {
            if (!vr_state_active(blocks->state[b])) continue;
            assert_true(block < moment->block_count);
            const struct vr_moment_block *at = &moment->blocks[block++];
            if (at->address != blocks->address[b] || at->size_bytes != blocks->size_bytes[b])
                fail_msg("%s: block %llx of %llu, not %llx of %llu (asked %llu)", what, (unsigned long long)at->address,
                         (unsigned long long)at->size_bytes, (unsigned long long)blocks->address[b],
                         (unsigned long long)blocks->size_bytes[b], (unsigned long long)at->asked_bytes);
            assert_int_equal(at->asked_bytes, blocks->requested_bytes[b]);
            assert_int_equal((at->flags & VR_BLOCK_PENDING) != 0, !vr_state_allocated(blocks->state[b]));
        }
    }
    assert_int_equal(block, moment->block_count);
}

static void run_and_compare(const char *conf, uint64_t seed) {
    struct run run = {.seed = seed};
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 600 * VR_MIB, .manual_completion = true}, .conf = conf, .without_record = true};
    OK(vr_world_open(&run.world, &options));
    for (size_t i = 0; i < 40; i++) operate(&run); // unrecorded: what follows begins with memory in use
    start(&run.world, &NO_STACKS);
    for (size_t i = 0; i < OPERATIONS; i++) {
        operate(&run);
        if (i % (OPERATIONS / SNAPSHOTS) == OPERATIONS / SNAPSHOTS - 1) run.snapshots[run.snapshot_count++] = snap(&run.world, NULL);
    }
    const struct vram_recording *whole = run.snapshots[run.snapshot_count - 1];
    struct vr_views views;
    OK(vr_views_build(model_of(whole), &views, NULL));
    assert_int_equal(views.count, 1);
    struct vr_seen_device device = {.view = &views.view[0]};
    size_t made = 0, checked = 0;
    for (size_t i = 0; i <= device.view->history->count; i++) {
        const bool last = i == device.view->history->count;
        if (!last && device.view->history->action[i] != VR_ACTION_SNAPSHOT) continue;
        struct vr_moment moment;
        char what[80];
        snprintf(what, sizeof what, "'%s' seed %llu event %zu", conf, (unsigned long long)seed, i);
        OK(vr_moment_at(&device, (int64_t)i - 1, &moment));
        compare(model_of(run.snapshots[made++]), &moment, what);
        const struct vr_moment_sums *sums = &moment.sums;
        assert_int_equal(sums->reserved_bytes, sums->allocated_bytes + sums->pending_bytes + sums->free_bytes);
        checked += moment.block_count;
        vr_moment_release(&moment);
    }
    assert_int_equal(made, run.snapshot_count);
    assert_true(checked > 100);
    vr_seen_release(&device);
    vr_views_release(&views);
    for (size_t i = 0; i < run.snapshot_count; i++) vram_recording_destroy(run.snapshots[i]);
    while (run.live_count != 0) OK(vram_free(run.world.allocator, run.live[--run.live_count]));
    history_end(&run.world);
}

static void the_state_is_what_the_allocator_said_then(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        run_and_compare("", seed);
        run_and_compare("expandable_segments:True", seed);
        run_and_compare("max_split_size_mb:24", seed);
        run_and_compare("roundup_power2_divisions:4", seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_is_what_the_allocator_said_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
