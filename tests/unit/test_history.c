#define _GNU_SOURCE
// Tests the memory history: every action with its fields, rings, levels, words, marks (allocator.md §records).
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "vram/export.h"
#include "support/captures.h"
#include "support/history.h"

static const struct vram_history_options NO_STACKS = {.context = VRAM_HISTORY_NONE};

// --- actions -------------------------------------------------------------------------------------------------------------------------

static void each_action_is_recorded_in_order(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 64 * VR_MIB);
    start(&world, &NO_STACKS);
    const uint64_t small = take(&world, 100, 0), large = take(&world, 3 * VR_MIB, 0);
    OK(vram_annotate(world.allocator, large, "weights"));
    give(&world, small);
    uint64_t none = 0, free_bytes = 0, total = 0;
    OK(vram_memory_info(world.allocator, 0, &free_bytes, &total));
    assert_int_equal(vram_malloc(world.allocator, 0, 60 * VR_MIB + 100, 0, &none), VRAM_OUT_OF_MEMORY);
    give(&world, large);
    OK(vram_empty_cache(world.allocator));
    struct vram_recording *recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_SEGMENT_ALLOC, small, 2 * VR_MIB}, {VR_ACTION_ALLOC, small, 100},
                  {VR_ACTION_SEGMENT_ALLOC, large, 20 * VR_MIB}, {VR_ACTION_ALLOC, large, 3 * VR_MIB},
                  {VR_ACTION_ANNOTATE, large, 3 * VR_MIB}, {VR_ACTION_FREE_REQUESTED, small, 100}, {VR_ACTION_FREE_COMPLETED, small, 100},
                  {VR_ACTION_SEGMENT_FREE, small, 2 * VR_MIB}, {VR_ACTION_OOM, free_bytes + 2 * VR_MIB, 60 * VR_MIB + 512},
                  {VR_ACTION_FREE_REQUESTED, large, 3 * VR_MIB}, {VR_ACTION_FREE_COMPLETED, large, 3 * VR_MIB},
                  {VR_ACTION_SEGMENT_FREE, large, 20 * VR_MIB});
    const struct vr_history *history = &model_of(recording)->histories[0];
    assert_string_equal(vr_model_string(model_of(recording), history->metadata[4]), "weights");
    assert_true((vr_entry_has(history, 8) & VR_HAS_DEVICE_FREE) != 0 && (vr_entry_has(history, 8) & VR_HAS_ADDRESS) == 0);
    for (size_t i = 0; i < history->count; i++) {
        assert_int_equal(history->thread[i], gettid());
        assert_int_equal(history->stack[i], 0);
        assert_false(vr_entry_has(history, i) & VR_HAS_FRAMES);
        assert_string_equal(vr_model_string(model_of(recording), history->context[i]), "N/A");
        assert_true(i == 0 || history->time_us[i] >= history->time_us[i - 1]);
    }
    vram_recording_destroy(recording);
    history_end(&world);
}

static void a_free_that_waits_completes_later(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.manual_completion = true}, .conf = "", .without_record = true};
    OK(vr_world_open(&world, &options));
    start(&world, &NO_STACKS);
    const uint64_t stream = world.stream[0][1], block = take(&world, 100, 0);
    OK(vram_record_stream(world.allocator, block, stream));
    give(&world, block);
    struct vram_recording *before = snap(&world, NULL);
    EXPECT_EVENTS(before, 0, {VR_ACTION_SEGMENT_ALLOC, block, 2 * VR_MIB}, {VR_ACTION_ALLOC, block, 100},
                  {VR_ACTION_FREE_REQUESTED, block, 100});
    assert_int_equal(model_of(before)->blocks.state[0], VR_STATE_PENDING_FREE);
    OK(vr_world_complete(&world, 0, stream));
    const uint64_t next = take(&world, 200, 0);
    struct vram_recording *after = snap(&world, NULL);
    EXPECT_EVENTS(after, 0, {VR_ACTION_SEGMENT_ALLOC, block, 2 * VR_MIB}, {VR_ACTION_ALLOC, block, 100},
                  {VR_ACTION_FREE_REQUESTED, block, 100}, {VR_ACTION_SNAPSHOT, 0, 512}, {VR_ACTION_FREE_COMPLETED, block, 100},
                  {VR_ACTION_ALLOC, next, 200});
    expect_exact(before);
    expect_exact(after);
    vram_recording_destroy(before);
    vram_recording_destroy(after);
    history_end(&world);
}

static void pages_that_come_and_go_are_recorded(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "expandable_segments:True", 1, (uint64_t)1 << 30);
    start(&world, &NO_STACKS);
    const uint64_t block = take(&world, 30 * VR_MIB, 0);
    give(&world, block);
    OK(vram_empty_cache(world.allocator));
    struct vram_recording *recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_SEGMENT_MAP, block, 40 * VR_MIB}, {VR_ACTION_ALLOC, block, 30 * VR_MIB},
                  {VR_ACTION_FREE_REQUESTED, block, 30 * VR_MIB}, {VR_ACTION_FREE_COMPLETED, block, 30 * VR_MIB},
                  {VR_ACTION_SEGMENT_UNMAP, block, 40 * VR_MIB});
    expect_exact(recording);
    vram_recording_destroy(recording);
    history_end(&world);
}

static void events_name_their_private_pool(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_pool *pool = NULL;
    history_world(&world, "", 1, 0);
    start(&world, &NO_STACKS);
    OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    uint64_t inside = 0;
    OK(vram_pool_malloc(pool, 100, 0, &inside));
    const uint64_t outside = take(&world, 100, 0);
    give(&world, inside);
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_history *history = &model_of(recording)->histories[0];
    const uint64_t id = vram_get_pool_id(pool).second;
    assert_int_equal(history->count, 6);
    for (size_t i = 0; i < history->count; i++) {
        const bool ours = i != 2 && i != 3;
        assert_int_equal(history->pool_first[i], 0);
        assert_int_equal(history->pool_second[i], ours ? id : 0);
    }
    expect_exact(recording);
    vram_recording_destroy(recording);
    give(&world, outside);
    vram_pool_release(pool);
    history_end(&world);
}

// --- kept events ---------------------------------------------------------------------------------------------------------------------

static void the_newest_events_stay(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    const struct vram_history_options four = {.context = VRAM_HISTORY_NONE, .max_entries = 4};
    start(&world, &four);
    const uint64_t a = take(&world, 100, 0), b = take(&world, 200, 0);
    give(&world, a);
    give(&world, b);
    struct vram_recording *recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_FREE_REQUESTED, a, 100}, {VR_ACTION_FREE_COMPLETED, a, 100}, {VR_ACTION_FREE_REQUESTED, b, 200},
                  {VR_ACTION_FREE_COMPLETED, b, 200});
    assert_string_equal(vram_recording_setting(recording, "trace_alloc_overflowed"), "true");
    assert_string_equal(vram_recording_setting(recording, "trace_alloc_max_entries"), "4");
    vram_recording_destroy(recording);
    struct vram_history_counts counts;
    vram_get_history_counts(world.allocator, &counts);
    assert_int_equal(counts.events, 8); // three of the two allocations, four of the frees, and the snapshot's own
    assert_int_equal(counts.kept, 4);
    assert_int_equal(counts.lost, 0);

    // A smaller ring keeps the newest events; a larger one has room again.
    const struct vram_history_options two = {.context = VRAM_HISTORY_NONE, .max_entries = 2};
    start(&world, &two);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .max_entries = 100});
    const uint64_t c = take(&world, 300, 0);
    recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_FREE_COMPLETED, b, 200}, {VR_ACTION_SNAPSHOT, 0, 0}, {VR_ACTION_ALLOC, c, 300});
    vram_recording_destroy(recording);

    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .clear_history = true});
    give(&world, c);
    recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_FREE_REQUESTED, c, 300}, {VR_ACTION_FREE_COMPLETED, c, 300});
    assert_string_equal(vram_recording_setting(recording, "trace_alloc_overflowed"), "false");
    vram_recording_destroy(recording);
    history_end(&world);
}

static void rings_of_every_size_keep_the_newest(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    for (uint64_t entries = 1; entries < 12; entries++) {
        const struct vram_history_options options = {.context = VRAM_HISTORY_NONE, .max_entries = entries, .clear_history = true};
        start(&world, &options);
        uint64_t blocks[10];
        for (size_t i = 0; i < 10; i++) blocks[i] = take(&world, 100 + i, 0);
        struct vram_recording *recording = snap(&world, NULL);
        const struct vr_history *history = &model_of(recording)->histories[0];
        const size_t newest = entries < 10 ? (size_t)entries : 10;
        assert_true(history->count >= newest);
        for (size_t i = 0; i < newest; i++) assert_int_equal(history->size_bytes[history->count - 1 - i], 109 - i);
        vram_recording_destroy(recording);
        for (size_t i = 0; i < 10; i++) give(&world, blocks[i]);
    }
    history_end(&world);
}

static void skipped_actions_are_not_stored(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    static const char *const skip[] = {"free_completed", "segment_alloc"};
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .skip_actions = skip, .skip_count = 2});
    const uint64_t block = take(&world, 100, 0);
    give(&world, block);
    struct vram_recording *recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_ALLOC, block, 100}, {VR_ACTION_FREE_REQUESTED, block, 100});
    vram_recording_destroy(recording);

    // An unknown name changes nothing.
    static const char *const wrong[] = {"alloc", "malloc"};
    struct vram_error error;
    const struct vram_history_options bad = {.skip_actions = wrong, .skip_count = 2, .clear_history = true};
    assert_int_equal(vram_history_start(world.allocator, &bad, &error), VRAM_INVALID_ARGUMENT);
    assert_string_equal(error.message, "unknown action \"malloc\"");
    static const char *const words[] = {"unknown"};
    const struct vram_history_options unknown = {.skip_actions = words, .skip_count = 1};
    assert_int_equal(vram_history_start(world.allocator, &unknown, NULL), VRAM_INVALID_ARGUMENT);
    recording = snap(&world, NULL);
    assert_int_equal(model_of(recording)->histories[0].count, 3);
    vram_recording_destroy(recording);

    static const char *const free_requested[] = {"free_requested"};
    start(&world, &(struct vram_history_options){
                      .context = VRAM_HISTORY_NONE, .skip_actions = free_requested, .skip_count = 1, .clear_history = true});
    give(&world, take(&world, 100, 0));
    recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_ALLOC, block, 100}, {VR_ACTION_FREE_COMPLETED, block, 100});
    vram_recording_destroy(recording);
    history_end(&world);
}

static void nothing_is_recorded_before_and_after(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 2, 0);
    const uint64_t before = take(&world, 100, 0);
    OK(vram_history_stop(world.allocator));
    start(&world, &(struct vram_history_options){.devices = 2}); // the other device
    give(&world, before);
    struct vram_recording *recording = snap(&world, NULL);
    assert_int_equal(vram_recording_event_count(recording, VRAM_ALL_DEVICES), 0);
    vram_recording_destroy(recording);
    uint64_t there = 0;
    OK(vram_malloc(world.allocator, 1, 100, 0, &there)); // a device set up while the history is on
    recording = snap(&world, NULL);
    assert_int_equal(vram_recording_event_count(recording, 1), 2);
    vram_recording_destroy(recording);
    OK(vram_history_stop(world.allocator));
    OK(vram_free(world.allocator, there));
    recording = snap(&world, NULL);
    assert_int_equal(vram_recording_event_count(recording, VRAM_ALL_DEVICES), 0);
    vram_recording_destroy(recording);
    struct vram_history_counts counts;
    vram_get_history_counts(world.allocator, &counts);
    assert_false(counts.recording);
    assert_int_equal(counts.events, 0);
    start(&world, &(struct vram_history_options){.no_device_memory = true});
    give(&world, take(&world, 100, 0));
    vram_get_history_counts(world.allocator, &counts);
    assert_true(counts.recording && counts.events == 0);
    start(&world, &(struct vram_history_options){.enabled = VRAM_HISTORY_NONE});
    vram_get_history_counts(world.allocator, &counts);
    assert_false(counts.recording);
    history_end(&world);
}

// --- stacks --------------------------------------------------------------------------------------------------------------------------

// Returns the innermost name without the suffix that a compiler adds to a function it changed.
static const char *innermost(const struct vram_recording *recording, uint32_t stack) {
    static char name[64];
    const struct vr_model *model = model_of(recording);
    if (stack == 0) return "";
    (void)snprintf(name, sizeof name, "%s", vr_model_string(model, model->frames.name[model->stacks.frame[model->stacks.offset[stack]]]));
    name[strcspn(name, ".")] = '\0';
    return name;
}

__attribute__((noinline)) static uint64_t who_allocates(struct vr_world *world) {
    uint64_t address = 0;
    OK(vram_malloc(world->allocator, 0, 100, 0, &address));
    return address;
}
__attribute__((noinline)) static int who_frees(struct vr_world *world, uint64_t address) {
    const int status = (int)vram_free(world->allocator, address);
    __asm__ volatile("");
    return status;
}
__attribute__((noinline)) static int who_empties(struct vr_world *world) {
    const int status = (int)vram_empty_cache(world->allocator);
    __asm__ volatile("");
    return status;
}

static void levels_decide_who_carries_a_stack(void **state) {
    (void)state;
    static const struct {
        enum vram_history_level level;
        const char *block, *alloc, *free, *segment_free;
    } rows[] = {
        {VRAM_HISTORY_NONE, "", "", "", ""},
        {VRAM_HISTORY_STATE, "who_allocates", "", "", ""},
        {VRAM_HISTORY_ALLOC, "who_allocates", "who_allocates", "who_allocates", "who_allocates"},
        {VRAM_HISTORY_ALL, "who_allocates", "who_allocates", "who_frees", "who_empties"},
    };
    for (size_t r = 0; r < VR_COUNT_OF(rows); r++) {
        struct vr_world world;
        history_world(&world, "", 1, 0);
        start(&world, &(struct vram_history_options){.context = rows[r].level, .stacks = VRAM_HISTORY_STACKS_C});
        const uint64_t block = who_allocates(&world);
        struct vram_recording *live = snap(&world, NULL);
        assert_string_equal(innermost(live, model_of(live)->blocks.stack[0]), rows[r].block);
        assert_string_equal(innermost(live, model_of(live)->segments.stack[0]), rows[r].block);
        vram_recording_destroy(live);
        OK(who_frees(&world, block));
        OK(who_empties(&world));
        struct vram_recording *recording = snap(&world, NULL);
        const struct vr_history *history = &model_of(recording)->histories[0];
        const char *const want[] = {rows[r].alloc, rows[r].alloc, "", rows[r].free, rows[r].free, rows[r].segment_free};
        assert_int_equal(history->count, VR_COUNT_OF(want));
        for (size_t i = 0; i < VR_COUNT_OF(want); i++) assert_string_equal(innermost(recording, history->stack[i]), want[i]);
        assert_int_equal(history->stack[3], history->stack[4]);
        vram_recording_destroy(recording);
        history_end(&world);
    }
}

// Frees postponed by a capture end with it, in that call, whatever the thread did before.
static void the_end_of_a_capture_has_a_stack_of_its_own(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "graph_capture_record_stream_reuse:True", 1, VR_GIB);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    struct vram_pool *pool = expect_graph_pool(&world);
    start(&world, NULL);
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    const uint64_t block = take(&world, 30 * VR_MIB, a);
    expect_wait_stream(&world, b, a);
    kernel(&world, b);
    OK(vram_record_stream(world.allocator, block, b));
    give(&world, block);
    const uint64_t last = take(&world, 3 * VR_MIB, a);
    expect_wait_stream(&world, a, b);
    end(&world, pool, a);
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_history *history = &model_of(recording)->histories[0];
    const size_t completed = history->count - 1, alloc = history->count - 2;
    assert_int_equal(history->action[completed], VR_ACTION_FREE_COMPLETED);
    assert_int_equal(history->address[completed], block);
    assert_int_equal(history->action[alloc], VR_ACTION_ALLOC);
    assert_int_not_equal(history->stack[completed], 0);
    assert_int_not_equal(history->stack[completed], history->stack[alloc]);
    vram_recording_destroy(recording);
    give(&world, last);
    vram_pool_release(pool);
    history_end(&world);
}

static void a_block_handed_out_unrecorded_has_no_old_stack(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    start(&world, &(struct vram_history_options){.stacks = VRAM_HISTORY_STACKS_C});
    const uint64_t kept = who_allocates(&world), block = who_allocates(&world);
    OK(vram_annotate(world.allocator, block, "old name"));
    OK(vram_history_stop(world.allocator));
    give(&world, block);
    assert_int_equal(who_allocates(&world), block);
    struct vram_recording *recording = snap(&world, NULL);
    assert_string_equal(innermost(recording, model_of(recording)->blocks.stack[0]), "who_allocates"); // live blocks keep their stacks
    assert_string_equal(innermost(recording, model_of(recording)->blocks.stack[1]), "");
    assert_int_equal(model_of(recording)->extra_count, 0);
    vram_recording_destroy(recording);
    give(&world, kept);
    history_end(&world);
}

// --- words and marks -----------------------------------------------------------------------------------------------------------------

static const char *word(const struct vram_recording *recording, const uint32_t *column, size_t row) {
    return vr_model_string(model_of(recording), column[row]);
}

static void what_a_thread_says_stands_in_its_events(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .compile_context = true});
    const uint64_t first = take(&world, 100, 0);
    OK(vram_set_metadata("step \xc3\xa9 \"7\""));
    OK(vram_push_tag("model"));
    OK(vram_push_tag("weights"));
    OK(vram_push_context("Torch-Compiled Region: 0/0"));
    const uint64_t second = take(&world, 200, 0);
    vram_pop_tag();
    vram_pop_context();
    const uint64_t third = take(&world, 300, 0);
    vram_pop_tag();
    vram_pop_tag(); // one too many
    OK(vram_set_metadata(NULL));
    const uint64_t fourth = take(&world, 400, 0);
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_history *history = &model_of(recording)->histories[0];
    static const char *const want[][3] = {{"", "", "N/A"},
                                          {"step \xc3\xa9 \"7\"", "weights", "Torch-Compiled Region: 0/0"},
                                          {"step \xc3\xa9 \"7\"", "model", "N/A"},
                                          {"", "", "N/A"}};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(word(recording, history->metadata, i + 1), want[i][0]);
        assert_string_equal(word(recording, history->tag, i + 1), want[i][1]);
        assert_string_equal(word(recording, history->context, i + 1), want[i][2]);
        assert_int_equal((vr_entry_has(history, i + 1) & VR_HAS_CATEGORY) != 0, want[i][1][0] != '\0');
    }
    vram_recording_destroy(recording);
    const uint64_t all[] = {first, second, third, fourth};
    for (size_t i = 0; i < 4; i++) give(&world, all[i]);
    history_end(&world);
}

static void words_have_limits(void **state) {
    (void)state;
    char text[8];
    assert_int_equal(vram_set_metadata("\xff"), VRAM_INVALID_ARGUMENT);
    OK(vram_set_metadata("a longer text"));
    assert_int_equal(vram_metadata(text, sizeof text), strlen("a longer text"));
    assert_string_equal(text, "a longe");
    for (int i = 0; i < 32; i++) OK(vram_push_tag("deep"));
    assert_int_equal(vram_push_tag("deeper"), VRAM_LIMIT);
    for (int i = 0; i < 40; i++) vram_pop_tag();
    OK(vram_set_metadata(""));
    assert_int_equal(vram_metadata(text, sizeof text), 0);
}

static void contexts_are_recorded_on_demand(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    start(&world, &NO_STACKS);
    OK(vram_push_context("region"));
    const uint64_t block = take(&world, 100, 0);
    vram_pop_context();
    struct vram_recording *recording = snap(&world, NULL);
    assert_string_equal(word(recording, model_of(recording)->histories[0].context, 1), "N/A");
    vram_recording_destroy(recording);
    give(&world, block);
    history_end(&world);
}

static void names_stand_on_blocks(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    const uint64_t block = take(&world, 100, 0);
    OK(vram_annotate(world.allocator, block, "without a history"));
    assert_int_equal(vram_annotate(world.allocator, block + 512, "x"), VRAM_INVALID_POINTER);
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_model *model = model_of(recording);
    assert_int_equal(model->extra_count, 1);
    assert_int_equal(model->extras[0].owner, VR_OWNER_BLOCK);
    assert_int_equal(model->extras[0].row, 0);
    assert_string_equal(vr_model_string(model, model->extras[0].key), "user_metadata");
    assert_string_equal(vr_model_string(model, model->extras[0].value), "\"without a history\"");
    vram_recording_destroy(recording);
    give(&world, block);
    assert_int_equal(vram_annotate(world.allocator, block, "x"), VRAM_INVALID_POINTER);
    history_end(&world);
}

static void marks_are_kept_in_order(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    OK(vram_step(world.allocator, 0, "ignored: no history yet"));
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .max_entries = 3});
    OK(vram_annotation_begin(world.allocator, 0, "lost to the ring"));
    OK(vram_annotation_begin(world.allocator, 0, "forward"));
    OK(vram_annotation_end(world.allocator, 0, "forward"));
    OK(vram_step(world.allocator, 0, "step 1"));
    assert_int_equal(vram_step(world.allocator, VRAM_MAX_DEVICES, "no such device"), VRAM_INVALID_ARGUMENT);
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_model *model = model_of(recording);
    static const char *const want[][2] = {{"START", "forward"}, {"END", "forward"}, {"STEP", "step 1"}};
    assert_int_equal(model->annotation_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(vr_model_string(model, model->annotations[i].stage), want[i][0]);
        assert_string_equal(vr_model_string(model, model->annotations[i].name), want[i][1]);
        assert_true(i == 0 || model->annotations[i].time_us >= model->annotations[i - 1].time_us);
    }
    vram_recording_destroy(recording);
    history_end(&world);
}

static bool collect(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

// PyTorch's recordAnnotation() takes any pairs.
static void annotations_of_pairs(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, 0);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    const struct vram_pair whole[] = {{"name", "mm"}, {"stage", "START"}, {"shape", "[2, 3] \"x\""}}, part[] = {{"loss", "0.5"}};
    OK(vram_annotation_pairs(world.allocator, 0, whole, 3));
    OK(vram_annotation_pairs(world.allocator, 0, part, 1));
    const struct vram_pair wrong[] = {{"device", "1"}, {"", "x"}, {"a\nb", "x"}, {"a", "x\ty"}, {NULL, "x"}, {"a", NULL}};
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++)
        assert_int_equal(vram_annotation_pairs(world.allocator, 0, &wrong[i], 1), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_annotation_pairs(world.allocator, 0, whole, 0), VRAM_INVALID_ARGUMENT);
    struct vram_recording *recording = snap(&world, NULL);
    struct vr_text json = {0};
    assert_int_equal(VRAM_OK, vram_recording_write(recording, VRAM_FORMAT_JSON, collect, &json, NULL));
    const char *text = strstr(vr_text_string(&json), "\"external_annotations\"");
    assert_non_null(text);
    assert_non_null(strstr(text, "\"stage\":\"START\",\"name\":\"mm\",\"device\":0,\"time_us\":"));
    assert_non_null(strstr(text, "\"shape\":\"[2, 3] \\\"x\\\"\""));
    assert_non_null(strstr(text, "\"loss\":\"0.5\"}"));
    vr_text_release(&json);
    vram_recording_destroy(recording);
    history_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_action_is_recorded_in_order),
        cmocka_unit_test(a_free_that_waits_completes_later),
        cmocka_unit_test(pages_that_come_and_go_are_recorded),
        cmocka_unit_test(events_name_their_private_pool),
        cmocka_unit_test(the_newest_events_stay),
        cmocka_unit_test(rings_of_every_size_keep_the_newest),
        cmocka_unit_test(skipped_actions_are_not_stored),
        cmocka_unit_test(nothing_is_recorded_before_and_after),
        cmocka_unit_test(levels_decide_who_carries_a_stack),
        cmocka_unit_test(the_end_of_a_capture_has_a_stack_of_its_own),
        cmocka_unit_test(a_block_handed_out_unrecorded_has_no_old_stack),
        cmocka_unit_test(what_a_thread_says_stands_in_its_events),
        cmocka_unit_test(words_have_limits),
        cmocka_unit_test(contexts_are_recorded_on_demand),
        cmocka_unit_test(names_stand_on_blocks),
        cmocka_unit_test(marks_are_kept_in_order),
        cmocka_unit_test(annotations_of_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
