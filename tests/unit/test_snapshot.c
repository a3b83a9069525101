// Tests snapshots of a live allocator: they equal vram_walk(), are read back from every format, and their history replays exactly.
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "support/history.h"
#include "support/random.h"
#include "vram/host.h"
#include "vram/report.h"

// --- a program -------------------------------------------------------------------------------------------------------------------------

enum { LIVE = 200 };

struct program {
    struct vr_world *world;
    uint64_t random;
    uint64_t live[LIVE];
    uint32_t device[LIVE];
};

static uint64_t next_random(struct program *program) { return vr_random_next(&program->random); }

// Runs allocations of all sizes on all streams of all devices, uses by other streams, releases, private pools.
static void run(struct program *program, struct vram_pool *pool, int operations) {
    struct vr_world *world = program->world;
    for (int i = 0; i < operations; i++) {
        const uint64_t random = next_random(program);
        const size_t slot = random % LIVE;
        const uint32_t device = (uint32_t)(random >> 20) % world->device_count;
        const uint64_t stream = world->stream[device][(random >> 24) % VR_WORLD_STREAMS];
        if (program->live[slot] != 0) {
            if ((random >> 30) % 8 == 0)
                OK(vram_record_stream(world->allocator, program->live[slot], world->stream[program->device[slot]][1]));
            OK(vram_free(world->allocator, program->live[slot]));
            program->live[slot] = 0;
        } else {
            const uint64_t size = 1 + (random >> 40) % ((uint64_t)1 << (9 + (random >> 34) % 16));
            program->device[slot] = device;
            if (pool != NULL && device == 0 && (random >> 33) % 16 == 0) {
                OK(vram_pool_malloc(pool, size, stream, &program->live[slot]));
            } else {
                OK(vram_malloc(world->allocator, device, size, stream, &program->live[slot]));
            }
        }
        if (random % 997 == 0) OK(vram_empty_cache(world->allocator));
    }
}

static void finish(struct program *program) {
    for (size_t i = 0; i < LIVE; i++) OK(vram_free(program->world->allocator, program->live[i]));
}

// --- contents of a snapshot ----------------------------------------------------------------------------------------------------------

struct comparison {
    const struct vr_model *model;
    size_t row;
    uint32_t device;
};

static bool compare_block(const struct vram_block_view *view, void *user) {
    struct comparison *comparison = user;
    const struct vr_blocks *blocks = &comparison->model->blocks;
    const size_t row = comparison->row++;
    assert_true(row < blocks->count);
    assert_int_equal(blocks->address[row], view->block.address);
    assert_int_equal(blocks->size_bytes[row], view->block.size_bytes);
    assert_int_equal(blocks->requested_bytes[row], view->block.requested_bytes);
    static const uint8_t states[] = {VR_STATE_INACTIVE, VR_STATE_ALLOCATED, VR_STATE_PENDING_FREE};
    assert_int_equal(blocks->state[row], states[view->state]);
    const struct vr_segments *segments = &comparison->model->segments;
    size_t segment = 0;
    while (segments->first_block[segment + 1] <= row) segment++;
    assert_int_equal(segments->device[segment], comparison->device);
    assert_int_equal(segments->stream[segment], view->block.stream);
    assert_int_equal(segments->pool_first[segment], view->block.pool.first);
    assert_int_equal(segments->pool_second[segment], view->block.pool.second);
    assert_int_equal(segments->expandable[segment], view->block.expandable);
    assert_int_equal(segments->kind[segment], view->small_pool ? VR_KIND_SMALL : VR_KIND_LARGE);
    return true;
}

static void expect_sums(const struct vr_model *model, struct vr_world *world) {
    for (uint32_t d = 0; d < world->device_count; d++) {
        struct vram_stats stats;
        int64_t reserved = 0, allocated = 0, active = 0, requested = 0;
        OK(vram_get_stats(world->allocator, d, &stats));
        for (size_t i = 0; i < model->segments.count; i++) {
            if (model->segments.device[i] != d) continue;
            reserved += (int64_t)model->segments.total_bytes[i];
            allocated += (int64_t)model->segments.allocated_bytes[i];
            active += (int64_t)model->segments.active_bytes[i];
            requested += (int64_t)model->segments.requested_bytes[i];
        }
        assert_int_equal(reserved, stats.reserved_bytes[VRAM_STAT_ALL].current);
        assert_int_equal(allocated, stats.allocated_bytes[VRAM_STAT_ALL].current);
        assert_int_equal(active, stats.active_bytes[VRAM_STAT_ALL].current);
        assert_int_equal(requested, stats.requested_bytes[VRAM_STAT_ALL].current);
    }
}

static void random_programs_are_shown_and_replayed(const char *conf, uint64_t seed) {
    struct vr_world world;
    struct vram_pool *pool = NULL;
    history_world(&world, conf, 2, (uint64_t)8 << 30);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    struct program program = {.world = &world, .random = seed};
    for (int round = 0; round < 4; round++) {
        run(&program, pool, 500);
        struct vram_recording *recording = snap(&world, NULL);
        struct comparison comparison = {.model = model_of(recording)};
        for (; comparison.device < world.device_count; comparison.device++) {
            OK(vram_walk(world.allocator, comparison.device, compare_block, &comparison));
        }
        assert_int_equal(comparison.row, model_of(recording)->blocks.count);
        expect_sums(model_of(recording), &world);
        expect_exact(recording);
        vram_recording_destroy(recording);
    }
    finish(&program);
    vram_pool_release(pool);
    history_end(&world);
}

static void a_snapshot_is_the_state_and_its_history_leads_there(void **state) {
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:21", "roundup_power2_divisions:4"};
    for (uint64_t i = 0; i < 12; i++) random_programs_are_shown_and_replayed(confs[i % VR_COUNT_OF(confs)], i);
}

// A history that starts late leads from the state at its start to the snapshot.
static void a_history_may_start_late(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    struct program program = {.world = &world, .random = 99};
    run(&program, NULL, 1000);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    run(&program, NULL, 1000);
    struct vram_recording *recording = snap(&world, NULL);
    expect_exact(recording);
    vram_recording_destroy(recording);
    finish(&program);
    history_end(&world);
}

// --- settings and choices ----------------------------------------------------------------------------------------------------------------

static void settings_are_those_in_force(void **state) {
    (void)state;
    static const char conf[] = "max_split_size_mb:32,garbage_collection_threshold:0.5,roundup_power2_divisions:[64:8,>:1],"
                               "expandable_segments:True,pinned_num_register_threads:4,pinned_max_cached_size_mb:7";
    static const char *const want[][2] = {
        {"max_split_size", "33554432"},
        {"garbage_collection_threshold", "0.5"},
        {"expandable_segments", "true"},
        {"pinned_num_register_threads", "4"},
        {"release_lock_on_cudamalloc", "false"},
        {"pinned_use_cuda_host_register", "false"},
        {"graph_capture_record_stream_reuse", "false"},
        {"pinned_max_cached_size", "7340032"},
        {"trace_alloc_max_entries", "9223372036854775807"},
        {"trace_alloc_overflowed", "false"},
    };
    struct vr_world world;
    history_world(&world, conf, 1, 0);
    struct vram_recording *bare = snap(&world, NULL);
    assert_null(vram_recording_setting(bare, "trace_alloc_max_entries"));
    vram_recording_destroy(bare);
    start(&world, NULL);
    struct vram_recording *recording = snap(&world, NULL);
    for (size_t i = 0; i < VR_COUNT_OF(want); i++) assert_string_equal(vram_recording_setting(recording, want[i][0]), want[i][1]);
    const char *text = vram_recording_setting(recording, "PYTORCH_CUDA_ALLOC_CONF");
    assert_int_equal(strlen(text), strlen(conf) + 2);
    assert_memory_equal(text + 1, conf, strlen(conf));
    const char *divisions = vram_recording_setting(recording, "roundup_power2_divisions");
    assert_non_null(strstr(divisions, "\"64\": 8") != NULL ? divisions : strstr(divisions, "\"64\":8"));
    vram_recording_destroy(recording);
    history_end(&world);
}

static void a_snapshot_may_be_of_less(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_pool *pool = NULL;
    history_world(&world, "", 2, 0);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    uint64_t inside = 0, other = 0;
    const uint64_t outside = take(&world, 100, 0);
    OK(vram_pool_malloc(pool, 100, 0, &inside));
    OK(vram_malloc(world.allocator, 1, 100, 0, &other));
    struct vram_recording *recording = snap(&world, &(struct vram_snapshot_options){.pool = pool});
    assert_int_equal(vram_recording_segment_count(recording), 1);
    assert_int_equal(model_of(recording)->blocks.address[0], inside);
    vram_recording_destroy(recording);
    recording = snap(&world, &(struct vram_snapshot_options){.devices = 2});
    assert_int_equal(vram_recording_segment_count(recording), 1);
    assert_int_equal(model_of(recording)->segments.device[0], 1);
    assert_int_equal(vram_recording_event_count(recording, 0), 0);
    assert_int_equal(vram_recording_event_count(recording, 1), 2);
    vram_recording_destroy(recording);
    recording = snap(&world, &(struct vram_snapshot_options){.without_history = true});
    assert_int_equal(vram_recording_segment_count(recording), 3);
    assert_int_equal(vram_recording_event_count(recording, VRAM_ALL_DEVICES), 0);
    vram_recording_destroy(recording);
    recording = snap(&world, &(struct vram_snapshot_options){.segments_only = true});
    assert_int_equal(vram_get_recording_form(recording), VRAM_RECORDING_SEGMENT_LIST);
    assert_int_equal(vram_recording_segment_count(recording), 3);
    vram_recording_destroy(recording);
    give(&world, outside);
    give(&world, inside);
    give(&world, other);
    vram_pool_release(pool);
    history_end(&world);
}

// --- files ---------------------------------------------------------------------------------------------------------------------------

static void expect_same_events(const struct vr_history *a, const struct vr_model *of_a, const struct vr_history *b,
                               const struct vr_model *of_b) {
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->action[i], b->action[i]);
        assert_int_equal(a->address[i], b->address[i]);
        assert_int_equal(a->size_bytes[i], b->size_bytes[i]);
        assert_int_equal(vr_entry_stream(a, i), vr_entry_stream(b, i));
        assert_int_equal(a->time_us[i], b->time_us[i]);
        assert_int_equal(a->pool_second[i], b->pool_second[i]);
        assert_int_equal(a->thread[i], b->thread[i]);
        assert_int_equal(vr_entry_has(a, i), vr_entry_has(b, i));
        assert_string_equal(vr_model_string(of_a, a->metadata[i]), vr_model_string(of_b, b->metadata[i]));
        assert_string_equal(vr_model_string(of_a, a->context[i]), vr_model_string(of_b, b->context[i]));
        const uint64_t from_a = of_a->stacks.offset[a->stack[i]], from_b = of_b->stacks.offset[b->stack[i]];
        const uint64_t depth = of_a->stacks.offset[a->stack[i] + 1] - from_a;
        assert_int_equal(depth, of_b->stacks.offset[b->stack[i] + 1] - from_b);
        for (uint64_t f = 0; f < depth; f++) {
            const uint32_t x = of_a->stacks.frame[from_a + f], y = of_b->stacks.frame[from_b + f];
            assert_string_equal(vr_model_string(of_a, of_a->frames.name[x]), vr_model_string(of_b, of_b->frames.name[y]));
            assert_int_equal(of_a->frames.line[x], of_b->frames.line[y]);
        }
    }
}

static void every_format_comes_back(void **state) {
    (void)state;
    static const char *const ends[] = {"pickle", "json", "vram"};
    struct vr_world world;
    char folder[] = "/tmp/test_snapshot_XXXXXX", pattern[64], path[64];
    struct vram_error error = {.message = ""};
    assert_non_null(mkdtemp(folder));
    history_world(&world, "", 2, 0);
    start(&world, &(struct vram_history_options){.stacks = VRAM_HISTORY_STACKS_C});
    struct program program = {.world = &world, .random = 5};
    OK(vram_set_metadata("caf\xc3\xa9"));
    OK(vram_step(world.allocator, 0, "one"));
    run(&program, NULL, 500);
    OK(vram_set_metadata(NULL));
    for (size_t i = 0; i < VR_COUNT_OF(ends); i++) {
        struct vram_recording *direct = snap(&world, NULL), *read = NULL;
        (void)snprintf(pattern, sizeof pattern, "%s/%%p.%s", folder, ends[i]);
        (void)snprintf(path, sizeof path, "%s/%d.%s", folder, (int)getpid(), ends[i]);
        if (vram_snapshot_save(world.allocator, NULL, pattern, &error) != VRAM_OK) fail_msg("%s", error.message);
        OK(vram_recording_read_file(path, &read, &error));
        OK(vr_model_check(model_of(read), &error));
        // The file has one more event per device: the previous snapshot's.
        const struct vr_model *a = model_of(direct), *b = model_of(read);
        for (size_t d = 0; d < 2; d++) {
            struct vr_history shorter = b->histories[d];
            assert_int_equal(shorter.action[shorter.count - 1], VR_ACTION_SNAPSHOT);
            shorter.count--;
            // Times are converted with the current clock.
            for (size_t e = 0; e < shorter.count; e++) {
                assert_in_range(shorter.time_us[e] - a->histories[d].time_us[e] + 1000, 0, 2000);
                shorter.time_us[e] = a->histories[d].time_us[e];
            }
            expect_same_events(&a->histories[d], a, &shorter, b);
        }
        assert_int_equal(a->blocks.count, b->blocks.count);
        assert_int_equal(b->annotation_count, 1);
        expect_exact(read);
        vram_recording_destroy(direct);
        vram_recording_destroy(read);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    finish(&program);
    history_end(&world);
}

// Events that are streamed as they happen, and the final state.
static void a_streamed_history_comes_back(void **state) {
    (void)state;
    struct vr_world world;
    char path[] = "/tmp/test_snapshot_XXXXXX";
    struct vram_error error = {.message = ""};
    const int file = mkstemp(path);
    assert_true(file >= 0);
    (void)close(file);
    history_world(&world, "expandable_segments:True", 2, 0);
    struct program program = {.world = &world, .random = 17};
    run(&program, NULL, 300); // before: memory live then is known only from the final state
    start(&world, &(struct vram_history_options){.stacks = VRAM_HISTORY_STACKS_C, .file = path});
    OK(vram_set_metadata("streamed"));
    OK(vram_push_tag("tag"));
    OK(vram_step(world.allocator, 0, "one"));
    run(&program, NULL, 2000);
    vram_pop_tag();
    OK(vram_set_metadata(NULL));
    struct vram_history_counts counts;
    vram_get_history_counts(world.allocator, &counts);
    assert_true(counts.events > 2000);
    assert_int_equal(counts.kept, 0);
    assert_int_equal(counts.lost, 0);
    struct vram_recording *now = snap(&world, NULL), *read = NULL;
    OK(vram_history_stop(world.allocator));
    if (vram_recording_read_file(path, &read, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vram_recording_event_count(read, VRAM_ALL_DEVICES), counts.events + 2); // and the snapshot's own
    assert_int_equal(vram_recording_block_count(read), vram_recording_block_count(now));
    assert_string_equal(vram_recording_setting(read, "expandable_segments"), "true");
    const struct vr_model *model = model_of(read);
    assert_string_equal(vr_model_string(model, model->histories[0].metadata[0]), "streamed");
    assert_string_equal(vr_model_string(model, model->histories[1].tag[0]), "tag");
    assert_int_not_equal(model->histories[0].stack[0], 0);
    assert_int_equal(model->annotation_count, 1);
    expect_exact(read);
    vram_recording_destroy(now);
    vram_recording_destroy(read);
    assert_int_equal(remove(path), 0);
    finish(&program);
    history_end(&world);
}

static bool refuse(void *user, const char *bytes, size_t length) {
    (void)bytes;
    size_t *room = user;
    if (length > *room) return false;
    *room -= length;
    return true;
}

static void what_cannot_be_written_is_said(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error = {.message = ""};
    history_world(&world, "", 1, 0);
    start(&world, NULL);
    give(&world, take(&world, 100, 0));
    for (size_t room = 0; room < 2000; room += 400) {
        size_t left = room;
        const enum vram_status status = vram_snapshot_write(world.allocator, NULL, VRAM_FORMAT_PICKLE, refuse, &left, &error);
        assert_true(status == VRAM_OK || status == VRAM_IO);
        assert_true(room != 0 || status == VRAM_IO);
    }
    assert_int_equal(vram_snapshot_save(world.allocator, NULL, "/no/such/folder/x.pickle", &error), VRAM_IO);
    assert_non_null(strstr(error.message, "/no/such/folder/x.pickle"));
    assert_int_equal(vram_snapshot_save(world.allocator, NULL, "x%z.pickle", &error), VRAM_INVALID_ARGUMENT);
    assert_int_equal(access("x%z.pickle", F_OK), -1);
    history_end(&world);
}

// --- analysis ------------------------------------------------------------------------------------------------------------------------

static void analysis_takes_it_directly(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_report *report = NULL;
    struct vram_error error = {.message = ""};
    history_world(&world, "", 1, 0);
    start(&world, NULL);
    const uint64_t a = take(&world, 3 * VR_MIB, 0), b = take(&world, 5 * VR_MIB, 0);
    give(&world, a);
    struct vram_recording *recording = snap(&world, NULL);
    OK(vram_report_create(recording, NULL, &report, &error));
    assert_int_equal(report->device_count, 1);
    assert_int_equal(report->devices[0].events, 5);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
    give(&world, b);
    history_end(&world);
}

// --- pinned memory -------------------------------------------------------------------------------------------------------------------

static void pinned_memory_is_recorded_too(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_host *host = NULL;
    struct vram_error error = {.message = ""};
    history_world(&world, "", 1, 0);
    OK(vram_host_create(&(struct vram_host_create_info){.driver = world.driver, .conf = ""}, &host, &error));
    start(&world, &(struct vram_history_options){.host = host, .stacks = VRAM_HISTORY_STACKS_C});
    void *kept = NULL, *freed = NULL;
    OK(vram_host_malloc(host, 3000, 0, &kept));
    OK(vram_host_malloc(host, 100000, 0, &freed));
    OK(vram_host_free(host, freed));
    OK(vram_host_empty_cache(host));
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_model *model = model_of(recording);
    assert_int_equal(model->host_count, 1);
    assert_int_equal(model->history_count, 2);
    const uint64_t a = (uint64_t)(uintptr_t)kept, b = (uint64_t)(uintptr_t)freed;
    EXPECT_EVENTS(recording, 1, {VR_ACTION_SEGMENT_ALLOC, a, 4096}, {VR_ACTION_ALLOC, a, 3000}, {VR_ACTION_SEGMENT_ALLOC, b, 131072},
                  {VR_ACTION_ALLOC, b, 100000}, {VR_ACTION_FREE_REQUESTED, b, 100000}, {VR_ACTION_FREE_COMPLETED, b, 100000},
                  {VR_ACTION_SEGMENT_FREE, b, 131072});
    assert_int_equal(model->segments.count, 1);
    assert_true(vr_model_is_host(model, model->segments.device[0]));
    assert_int_equal(model->blocks.address[0], a);
    assert_int_equal(model->blocks.requested_bytes[0], 3000);
    const uint32_t stack = model->histories[1].stack[1];
    assert_string_equal(vr_model_string(model, model->frames.name[model->stacks.frame[model->stacks.offset[stack]]]),
                        "pinned_memory_is_recorded_too");
    vram_recording_destroy(recording);
    OK(vram_history_stop(world.allocator));
    OK(vram_host_free(host, kept));
    recording = snap(&world, NULL);
    assert_int_equal(vram_recording_event_count(recording, VRAM_ALL_DEVICES), 0);
    vram_recording_destroy(recording);
    vram_host_destroy(host);
    history_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_is_the_state_and_its_history_leads_there),
        cmocka_unit_test(a_history_may_start_late),
        cmocka_unit_test(settings_are_those_in_force),
        cmocka_unit_test(a_snapshot_may_be_of_less),
        cmocka_unit_test(every_format_comes_back),
        cmocka_unit_test(a_streamed_history_comes_back),
        cmocka_unit_test(what_cannot_be_written_is_said),
        cmocka_unit_test(analysis_takes_it_directly),
        cmocka_unit_test(pinned_memory_is_recorded_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
