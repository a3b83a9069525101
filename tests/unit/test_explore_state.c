#define _GNU_SOURCE
// Compares segments and blocks after any event with snapshots that the allocator made at that moment, and with a naive second computation.
#include "explore/explored/explored.h"
#include "explore/explored/state_at_event.h"
#include "support/answers.h"
#include "support/history.h"
#include "support/random.h"

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

static uint64_t dice(struct run *run, uint64_t below) { return vr_random_below(&run->seed, below); }

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

// Compares segments, and blocks that are not inactive, with the snapshot.
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
                         (unsigned long long)blocks->size_bytes[b], (unsigned long long)at->requested_bytes);
            assert_int_equal(at->requested_bytes, blocks->requested_bytes[b]);
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
    for (size_t i = 0; i < 40; i++) operate(&run); // not recorded, so that the recording begins with memory in use
    start(&run.world, &NO_STACKS);
    for (size_t i = 0; i < OPERATIONS; i++) {
        operate(&run);
        if (i % (OPERATIONS / SNAPSHOTS) == OPERATIONS / SNAPSHOTS - 1) run.snapshots[run.snapshot_count++] = snap(&run.world, NULL);
    }
    const struct vram_recording *whole = run.snapshots[run.snapshot_count - 1];
    struct vr_views views;
    OK(vr_views_build(model_of(whole), &views, NULL));
    assert_int_equal(views.count, 1);
    struct vr_explored_device device = {.view = &views.view[0]};
    size_t made = 0, checked = 0;
    for (double share = 0; share < 1;) OK(vr_explored_moments_go_on(&device, 1 + dice(&run, 100), &share));
    for (size_t i = 0; i <= device.view->history->count; i++) {
        const bool last = i == device.view->history->count;
        if (!last && device.view->history->action[i] != VR_ACTION_SNAPSHOT) continue;
        struct vr_moment moment;
        char what[80];
        snprintf(what, sizeof what, "'%s' seed %llu event %zu", conf, (unsigned long long)seed, i);
        OK(vr_moment_at(&device, (int64_t)i - 1, &moment));
        compare(model_of(run.snapshots[made++]), &moment, what);
        assert_true(vr_moment_check(&moment));
        checked += moment.block_count;
        vr_moment_release(&moment);
    }
    assert_int_equal(made, run.snapshot_count);
    assert_true(checked > 100);
    for (int kind = 0; kind < VR_CURVE_COUNT; kind++) {
        const struct vr_curve *curve = NULL;
        OK(vr_explored_curve(&device, (enum vr_curve_kind)kind, &curve));
        assert_true(vr_curve_check(curve));
    }
    vr_explored_release(&device);
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

// --- the list of events ---------------------------------------------------------------------------------------------------
enum { EVENTS = 400 };

struct made_event {
    const char *action;
    unsigned address, size, stream, frame;
};

// Makes events that need not be consistent, because the list of events shows them all.
static void make_events(struct made_event *events, uint64_t seed, struct vr_text *json) {
    static const char *const actions[] = {"alloc", "free_requested", "free_completed", "segment_alloc", "oom", "snapshot"};
    vr_text_puts(json, "{\"segments\": [], \"device_traces\": [[");
    for (size_t i = 0; i < EVENTS; i++) {
        const uint64_t dice = vr_mix64(seed * 7919 + i);
        events[i] = (struct made_event){actions[dice % 6], 4096 * (1 + (unsigned)(dice >> 8) % 20), 1 + (unsigned)(dice >> 16) % 5000,
                                        (unsigned)(dice >> 32) % 3, (unsigned)(dice >> 40) % 5};
        vr_text_printf(json,
                       "%s{\"action\": \"%s\", \"%s\": %u, \"size\": %u, \"stream\": %u, \"frames\": [{\"name\": \"f%u\", "
                       "\"filename\": \"a.py\", \"line\": 1}]}",
                       i == 0 ? "" : ",", events[i].action, strcmp(events[i].action, "oom") == 0 ? "device_free" : "addr",
                       events[i].address, events[i].size, events[i].stream, events[i].frame);
    }
    vr_text_puts(json, "]]}");
}

static bool wanted(const struct made_event *event, unsigned which) {
    const bool oom = strcmp(event->action, "oom") == 0;
    switch (which) {
    case 0: return true;
    case 1: return strcmp(event->action, "alloc") == 0 || oom;
    case 2: return event->size >= 1000 && event->size <= 3000;
    case 3: return event->stream == 2;
    case 4: return !oom && event->address <= 0x5010 && 0x5010 < event->address + event->size;
    default: return event->stream == 1 && event->size >= 2000;
    }
}

static void the_list_has_what_the_filter_lets_through(void **state) {
    (void)state;
    static const char *const filters[] = {"",          "&action=alloc,oom", "&least=1000&most=3000",
                                          "&stream=2", "&address=5010",     "&stream=1&least=2000"};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct made_event events[EVENTS];
        struct vr_text json = {0};
        make_events(events, seed, &json);
        struct vram_explorer *explorer = open_text(json.bytes);
        // Twice, and never the same one in a row, so that lists are kept, found again and dropped.
        for (unsigned trial = 0; trial < 2 * VR_COUNT_OF(filters); trial++) {
            const unsigned which = trial * 5 % VR_COUNT_OF(filters);
            const size_t first = vr_mix64(seed + trial) % 30;
            char question[120];
            snprintf(question, sizeof question, "events?first=%zu&count=37%s", first, filters[which]);
            struct bytes answer = ask(explorer, question);
            size_t place = 0, shown = 0;
            const struct column column = column_of(&answer, "event");
            for (size_t i = 0; i < EVENTS; i++) {
                if (!wanted(&events[i], which) || place++ < first || shown == 37) continue;
                assert_true(shown < column.count);
                assert_int_equal(u32(column.bytes + 4 * shown++), i);
            }
            assert_int_equal(shown, column.count);
            free(answer.bytes);
            char total[40];
            snprintf(total, sizeof total, "\"total\": %zu,", place);
            expect_text(explorer, question, total);
        }
        vram_explorer_destroy(explorer);
        vr_text_release(&json);
    }
}

static const char story[] =
    "{\"segments\": [{\"device\": 0, \"address\": 2097152, \"total_size\": 2097152, \"stream\": 7, \"segment_type\": \"small\", "
    "\"blocks\": "
    "[{\"address\": 2097152, \"size\": 1024, \"requested_size\": 1000, \"state\": \"active_allocated\"}, {\"address\": 2098176, \"size\": "
    "2096128, \"state\": \"inactive\"}]}], \"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 2097152, \"size\": 2097152, "
    "\"stream\": 7}, {\"action\": \"alloc\", \"addr\": 2097152, \"size\": 700, \"stream\": 7}, {\"action\": \"free_requested\", \"addr\": "
    "2097152, \"size\": 700, \"stream\": 7}, {\"action\": \"free_completed\", \"addr\": 2097152, \"size\": 700, \"stream\": 7}, "
    "{\"action\": "
    "\"alloc\", \"addr\": 2097152, \"size\": 1000, \"stream\": 7, \"frames\": [{\"name\": \"here\", \"filename\": \"b.py\", \"line\": "
    "3}]}, "
    "{\"action\": \"alloc\", \"addr\": 16777216, \"size\": 512, \"stream\": 7}, {\"action\": \"oom\", \"device_free\": 5, \"size\": 99328, "
    "\"stream\": 7}]], \"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"max_split_size_mb:64\", \"max_split_size\": 67108864, "
    "\"expandable_segments\": false, \"of_the_future\": [1]}}";

static void a_small_history_is_told_as_it_was(void **state) {
    (void)state;
    struct vram_explorer *explorer = open_text(story);
    expect_text(explorer, "state?event=-1", "\"segments\": 0, \"blocks\": 0, \"reserved_bytes\": 0");
    expect_text(explorer, "state?event=1",
                "\"segments\": 1, \"blocks\": 1, \"reserved_bytes\": 2097152, \"allocated_bytes\": 1024, \"requested_bytes\": 700, "
                "\"pending_bytes\": 0, \"free_bytes\": 2096128, \"free_pieces\": 1, \"largest_free_bytes\": 2096128, \"cached_bytes\": 0, "
                "\"largest_hole_bytes\": 2096128");
    expect_text(explorer, "state?event=2",
                "\"allocated_bytes\": 0, \"requested_bytes\": 0, \"pending_bytes\": 1024, \"free_bytes\": 2096128");
    expect_text(explorer, "state?event=3",
                "\"pending_bytes\": 0, \"free_bytes\": 2097152, \"free_pieces\": 1, "
                "\"largest_free_bytes\": 2097152, \"cached_bytes\": 2097152, \"largest_hole_bytes\": 0, \"outside_bytes\": 0");
    expect_text(explorer, "state?event=4", "\"owners\": [{\"stream\": \"7\", \"kind\": \"small\", \"expandable\": false}]");
    expect_text(explorer, "state?event=4", "\"name\": \"b.py:3:here\", \"bytes\": 1024, \"count\": 1}");
    // The second allocation was never freed, but is not in the final state: the recording is inconsistent.
    expect_text(explorer, "state",
                "\"outside_bytes\": 512, \"owners\": [{\"stream\": \"7\", \"kind\": \"small\", \"expandable\": false}, "
                "{\"reserved\": false}]");
    expect_text(explorer, "event?event=3", "\"action\": \"free_completed\", \"bytes\": 700, \"stream\": 7, \"label\": \"b200000_0\"");
    expect_text(explorer, "event?event=4", "\"label\": \"b200000_1\", \"address\": \"0x200000\", \"row\": 1, \"allocated_after\": 1000");
    expect_text(explorer, "event?event=0", "\"label\": \"s200000_0\"");
    expect_text(explorer, "event?event=6", "\"action\": \"oom\", \"bytes\": 99328, \"stream\": 7, \"device_free_bytes\": 5");
    expect_text(explorer, "events?text=here", "\"total\": 1,");
    expect_text(explorer, "events?event=5&action=alloc", "\"total\": 3, \"first\": 0, \"position\": 2");
    expect_text(explorer, "oom", "\"oom\": [{\"index\": 6, \"size\": 99328, \"device_free\": 5}]");
    expect_text(explorer, "settings", "{\"key\": \"max_split_size\", \"value\": 67108864, \"meaning\": \"blocks of this size");
    expect_text(explorer, "settings", "\"usual\": false, \"default\": -1}");
    expect_text(explorer, "settings", "{\"key\": \"of_the_future\", \"value\": [1]}");
    expect_text(explorer, "settings", "\"conf\": \"max_split_size_mb:64\"");
    struct bytes none = {0};
    struct vram_error error = {0};
    assert_int_equal(vram_explorer_ask(explorer, "events?action=dance", keep, &none, &error), VRAM_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "unknown action 'dance'"));
    assert_int_equal(vram_explorer_ask(explorer, "events?address=xyz", keep, &none, &error), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_explorer_ask(explorer, "state?event=7", keep, &none, &error), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_explorer_ask(explorer, "event", keep, &none, &error), VRAM_INVALID_ARGUMENT);
    vram_explorer_destroy(explorer);
}

// 0x200000 was reserved before the recording and is again at 1. Of the pages mapped at 3, those from 0x500000 are unmapped at 4 and mapped
// again at 5.
static const char places[] = "{\"segments\": [], \"device_traces\": [["
                             "{\"action\": \"segment_free\", \"addr\": 2097152, \"size\": 2097152, \"stream\": 0},"
                             "{\"action\": \"segment_alloc\", \"addr\": 2097152, \"size\": 2097152, \"stream\": 0},"
                             "{\"action\": \"segment_free\", \"addr\": 2097152, \"size\": 2097152, \"stream\": 0},"
                             "{\"action\": \"segment_map\", \"addr\": 4194304, \"size\": 2097152, \"stream\": 0},"
                             "{\"action\": \"segment_unmap\", \"addr\": 5242880, \"size\": 1048576, \"stream\": 0},"
                             "{\"action\": \"segment_map\", \"addr\": 5242880, \"size\": 1048576, \"stream\": 0},"
                             "{\"action\": \"segment_unmap\", \"addr\": 5242880, \"size\": 1048576, \"stream\": 0},"
                             "{\"action\": \"segment_unmap\", \"addr\": 4194304, \"size\": 1048576, \"stream\": 0}]]}";

// The list of events uses the same label for a segment as the segment itself.
static void events_and_segments_have_the_same_labels(void **state) {
    (void)state;
    static const struct {
        const char *label, *lives;
    } events[] = {
        {"s200000_0", "\"birth_event\": null, \"death_event\": 0"}, {"s200000_1", "\"birth_event\": 1, \"death_event\": 2"},
        {"s200000_1", "\"birth_event\": 1, \"death_event\": 2"},    {"s400000_0", "\"birth_event\": 3, \"death_event\": 7"},
        {"s500000_0", "\"birth_event\": 3, \"death_event\": 4"},    {"s500000_1", "\"birth_event\": 5, \"death_event\": 6"},
        {"s500000_1", "\"birth_event\": 5, \"death_event\": 6"},    {"s400000_0", "\"birth_event\": 3, \"death_event\": 7"},
    };
    struct vram_explorer *explorer = open_text(places);
    for (size_t i = 0; i < VR_COUNT_OF(events); i++) {
        char question[64], label[64];
        snprintf(question, sizeof question, "event?event=%zu", i);
        snprintf(label, sizeof label, "\"label\": \"%s\"", events[i].label);
        expect_text(explorer, question, label);
        snprintf(question, sizeof question, "allocation?label=%s", events[i].label);
        expect_text(explorer, question, label);
        expect_text(explorer, question, events[i].lives);
    }
    vram_explorer_destroy(explorer);
}

// Segments whose pool is unknown are not labelled as the default pool, neither as lanes nor individually.
static void a_pool_that_is_not_recorded_is_not_named(void **state) {
    (void)state;
    struct vram_explorer *explorer = open_text(places);
    expect_text(explorer, "segments?lanes=1", "{\"name\": \"pool not recorded");
    expect_text(explorer, "allocation?segment=0", "\"pool_name\": \"pool not recorded\"");
    expect_text(explorer, "allocation?segment=0", "\"stream\": 0, \"mapped\"");
    vram_explorer_destroy(explorer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_is_what_the_allocator_said_then), cmocka_unit_test(the_list_has_what_the_filter_lets_through),
        cmocka_unit_test(a_small_history_is_told_as_it_was),         cmocka_unit_test(events_and_segments_have_the_same_labels),
        cmocka_unit_test(a_pool_that_is_not_recorded_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
