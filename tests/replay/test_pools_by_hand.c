// test_pools_by_hand.c: tests small recordings with private pools, event by event, with and without pool ids.
#include "base/text.h"
#include "replay/replaying.h"

#define BASE  0x7f0000000000u
#define SMALL (2 * VR_MIB)
#define LARGE (20 * VR_MIB)

// An event, or a block of the final state (action: its state).
struct line {
    const char *action;
    uint64_t offset; // from BASE
    uint64_t size;
    struct vram_pool_id pool;
};

#define GRAPH                                                                                                                              \
    { 1, 0 }
#define USER                                                                                                                               \
    { 0, 2 }
#define NONE                                                                                                                               \
    { 0, 0 }
#define FREE(offset, size, ...)                                                                                                            \
    {"free_requested", offset, size, __VA_ARGS__}, { "free_completed", offset, size, __VA_ARGS__ }

// A segment of the final state: its blocks are the next `blocks` lines.
struct part {
    uint64_t offset;
    uint64_t size;
    struct vram_pool_id pool;
    size_t blocks;
};

static void put_pool(struct vr_text *text, const char *key, struct vram_pool_id pool) {
    vr_text_printf(text, ",\"%s\":[%llu,%llu]", key, (unsigned long long)pool.first, (unsigned long long)pool.second);
}

static void put_line(struct vr_text *text, const struct line *line, const char *kind, const char *address) {
    vr_text_printf(text, "{\"%s\":\"%s\",\"%s\":%llu,\"size\":%llu,\"stream\":0", kind, line->action, address,
                   (unsigned long long)(BASE + line->offset), (unsigned long long)line->size);
}

// Returns the requested size: that of the last allocation at its address, else the block's own.
static uint64_t requested_for(const struct line *block, const struct line *events, size_t event_count) {
    for (size_t i = event_count; i-- > 0;) {
        if (events[i].offset == block->offset && strcmp(events[i].action, "alloc") == 0) return events[i].size;
    }
    return block->size;
}

static struct vram_recording *by_hand(const struct part *parts, size_t part_count, const struct line *picture, const struct line *events,
                                      size_t event_count, bool ids) {
    struct vr_text text = {0};
    vr_text_puts(&text, "{\"segments\":[");
    for (size_t i = 0; i < part_count; i++) {
        vr_text_printf(&text, "%s{\"device\":0,\"address\":%llu,\"total_size\":%llu,\"stream\":0,\"segment_type\":\"%s\"",
                       i == 0 ? "" : ",", (unsigned long long)(BASE + parts[i].offset), (unsigned long long)parts[i].size,
                       parts[i].size == SMALL ? "small" : "large");
        put_pool(&text, "segment_pool_id", parts[i].pool);
        vr_text_puts(&text, ",\"blocks\":[");
        for (size_t b = 0; b < parts[i].blocks; b++, picture++) {
            if (b > 0) vr_text_puts(&text, ",");
            put_line(&text, picture, "state", "address");
            vr_text_printf(&text, ",\"requested_size\":%llu}", (unsigned long long)requested_for(picture, events, event_count));
        }
        vr_text_puts(&text, "]}");
    }
    vr_text_puts(&text, "],\"device_traces\":[[");
    for (size_t i = 0; i < event_count; i++) {
        if (i > 0) vr_text_puts(&text, ",");
        put_line(&text, &events[i], "action", "addr");
        if (ids) put_pool(&text, "pool_id", events[i].pool);
        vr_text_puts(&text, "}");
    }
    vr_text_puts(&text, "]]}");
    struct vram_recording *recording = read_bytes(text.bytes, text.length);
    vr_text_release(&text);
    return recording;
}

// Replays it with or without pool ids on the events. The caller destroys the result.
static struct vram_exact_result *replay_by_hand(const struct part *parts, size_t part_count, const struct line *picture,
                                                const struct line *events, size_t event_count, bool ids) {
    struct vram_recording *recording = by_hand(parts, part_count, picture, events, event_count, ids);
    struct vram_exact_result *result = exact(recording);
    vram_recording_destroy(recording);
    return result;
}

static enum vram_exact_verdict verdict_of(const struct part *parts, size_t part_count, const struct line *picture,
                                          const struct line *events, size_t event_count, bool ids) {
    struct vram_exact_result *result = replay_by_hand(parts, part_count, picture, events, event_count, ids);
    const enum vram_exact_verdict verdict = result->devices[0].verdict;
    vram_exact_result_destroy(result);
    return verdict;
}
#define VERDICT(parts, picture, events, ids) verdict_of(parts, VR_COUNT_OF(parts), picture, events, VR_COUNT_OF(events), ids)

// One stream and requests of one size: only the pools separate them.
static const struct line three_pools[] = {
    {"segment_alloc", 0, SMALL, NONE},
    {"alloc", 0, 1024, NONE},
    FREE(0, 1024, NONE),
    {"segment_alloc", SMALL, SMALL, GRAPH}, // although the default pool has a block for it
    {"alloc", SMALL, 1024, GRAPH},
    {"segment_alloc", 2 * SMALL, SMALL, USER},
    {"alloc", 2 * SMALL, 1024, USER},
    FREE(SMALL, 1024, GRAPH),
    {"alloc", 2 * SMALL + 1024, 1024, USER}, // three free blocks fit, two of them at lower addresses
    {"alloc", SMALL, 1024, GRAPH},
    {"alloc", 0, 1024, NONE},
};
static const struct part three_parts[] = {{0, SMALL, NONE, 2}, {SMALL, SMALL, GRAPH, 2}, {2 * SMALL, SMALL, USER, 3}};
static const struct line three_pictures[] = {
    {"active_allocated", 0, 1024, NONE},
    {"inactive", 1024, SMALL - 1024, NONE},
    {"active_allocated", SMALL, 1024, NONE},
    {"inactive", SMALL + 1024, SMALL - 1024, NONE},
    {"active_allocated", 2 * SMALL, 1024, NONE},
    {"active_allocated", 2 * SMALL + 1024, 1024, NONE},
    {"inactive", 2 * SMALL + 2048, SMALL - 2048, NONE},
};

static void pools_keep_equal_requests_apart(void **state) {
    (void)state;
    for (int ids = 0; ids < 2; ids++) {
        struct vram_exact_result *result = replay_by_hand(three_parts, 3, three_pictures, three_pools, VR_COUNT_OF(three_pools), ids != 0);
        assert_int_equal(result->devices[0].verdict, VRAM_EXACT_EQUAL);
        assert_int_equal(result->devices[0].allocations, 6);
        assert_int_equal(result->devices[0].private_allocations, 4);
        assert_int_equal(result->devices[0].final_blocks_equal, 7);
        vram_exact_result_destroy(result);
    }
    // Merges the two private pools, and puts the default pool's segment into one of them.
    struct line events[VR_COUNT_OF(three_pools)];
    struct part parts[] = {{0, SMALL, NONE, 2}, {SMALL, SMALL, GRAPH, 2}, {2 * SMALL, SMALL, GRAPH, 3}};
    memcpy(events, three_pools, sizeof events);
    for (size_t i = 0; i < VR_COUNT_OF(events); i++) {
        if (events[i].pool.second != 0) events[i].pool = (struct vram_pool_id)GRAPH;
    }
    assert_int_equal(VERDICT(parts, three_pictures, events, true), VRAM_EXACT_DIFFERENT);
    parts[0].pool = parts[1].pool = (struct vram_pool_id)USER;
    assert_int_equal(VERDICT(parts, three_pictures, three_pools, true), VRAM_EXACT_DIFFERENT);
}

// Default pools release large segments first; private ones small first, and only without references.
static const struct part nothing[1];
static const struct line releases[] = {
    {"segment_alloc", 0, SMALL, GRAPH},
    {"alloc", 0, 1024, GRAPH},
    {"segment_alloc", SMALL, LARGE, GRAPH},
    {"alloc", SMALL, 3 * VR_MIB, GRAPH},
    {"segment_alloc", SMALL + LARGE, SMALL, NONE},
    {"alloc", SMALL + LARGE, 1024, NONE},
    {"segment_alloc", 2 * SMALL + LARGE, LARGE, NONE},
    {"alloc", 2 * SMALL + LARGE, 3 * VR_MIB, NONE},
    FREE(0, 1024, GRAPH),
    FREE(SMALL, 3 * VR_MIB, GRAPH),
    FREE(SMALL + LARGE, 1024, NONE),
    FREE(2 * SMALL + LARGE, 3 * VR_MIB, NONE),
    {"segment_free", 2 * SMALL + LARGE, LARGE, NONE},
    {"segment_free", SMALL + LARGE, SMALL, NONE},
    {"segment_free", 0, SMALL, GRAPH},
    {"segment_free", SMALL, LARGE, GRAPH},
};

static enum vram_exact_verdict verdict_with_swapped(size_t a, size_t b) {
    struct line events[VR_COUNT_OF(releases)];
    memcpy(events, releases, sizeof events);
    events[a] = releases[b];
    events[b] = releases[a];
    return verdict_of(nothing, 0, NULL, events, VR_COUNT_OF(events), true);
}

static void order_of_private_releases(void **state) {
    (void)state;
    enum { FIRST = VR_COUNT_OF(releases) - 4 };
    assert_int_equal(verdict_with_swapped(0, 0), VRAM_EXACT_EQUAL);
    assert_int_equal(verdict_with_swapped(FIRST, FIRST + 1), VRAM_EXACT_DIFFERENT);
    assert_int_equal(verdict_with_swapped(FIRST + 2, FIRST + 3), VRAM_EXACT_DIFFERENT);
}

// A destroyed pool releases its own memory; a referenced one keeps it when the cache is emptied.
static void pools_go_alone_and_held_pools_stay(void **state) {
    (void)state;
    enum { FIRST = VR_COUNT_OF(releases) - 4 };
    const struct part with_default[] = {{SMALL + LARGE, SMALL, NONE, 1}, {2 * SMALL + LARGE, LARGE, NONE, 1}};
    const struct line default_free[] = {{"inactive", SMALL + LARGE, SMALL, NONE}, {"inactive", 2 * SMALL + LARGE, LARGE, NONE}};
    struct line alone[VR_COUNT_OF(releases) - 2];
    memcpy(alone, releases, FIRST * sizeof *alone);
    memcpy(alone + FIRST, releases + FIRST + 2, 2 * sizeof *alone);
    assert_int_equal(VERDICT(with_default, default_free, alone, true), VRAM_EXACT_EQUAL);

    const struct part with_pool[] = {{0, SMALL, GRAPH, 1}, {SMALL, LARGE, GRAPH, 1}};
    const struct line pool_free[] = {{"inactive", 0, SMALL, NONE}, {"inactive", SMALL, LARGE, NONE}};
    assert_int_equal(verdict_of(with_pool, 2, pool_free, releases, FIRST + 2, true), VRAM_EXACT_EQUAL);

    // The pool's large segment is kept, although its small one is released.
    const struct part half[] = {{SMALL, LARGE, GRAPH, 1}};
    assert_int_equal(verdict_of(half, 1, pool_free + 1, releases, FIRST + 3, true), VRAM_EXACT_DIFFERENT);
}

// An unreferenced pool keeps segments with live blocks; once they are free, the next pass must release them.
static void what_is_left_of_a_pool_goes_with_the_next_pass(void **state) {
    (void)state;
    static const struct line events[] = {
        {"segment_alloc", 0, SMALL, GRAPH},
        {"alloc", 0, 1024, GRAPH},
        {"segment_alloc", SMALL, LARGE, GRAPH},
        {"alloc", SMALL, 3 * VR_MIB, GRAPH},
        FREE(0, 1024, GRAPH),
        {"segment_free", 0, SMALL, GRAPH}, // destroyed
        {"segment_alloc", 0, SMALL, NONE},
        {"alloc", 0, 1024, NONE},
        FREE(SMALL, 3 * VR_MIB, GRAPH),
        FREE(0, 1024, NONE),
        {"segment_free", 0, SMALL, NONE},
        {"segment_free", SMALL, LARGE, GRAPH},
    };
    const struct part kept[] = {{SMALL, LARGE, GRAPH, 1}};
    const struct line picture[] = {{"inactive", SMALL, LARGE, NONE}};
    assert_int_equal(verdict_of(nothing, 0, NULL, events, VR_COUNT_OF(events), true), VRAM_EXACT_EQUAL);
    assert_int_equal(verdict_of(kept, 1, picture, events, VR_COUNT_OF(events) - 1, true), VRAM_EXACT_DIFFERENT);
}

// One address, two segments in succession: without pool ids only the one in the final state can be attributed.
static void an_address_used_twice(void **state) {
    (void)state;
    static const struct line events[] = {
        {"segment_alloc", 0, SMALL, NONE}, {"alloc", 0, 1024, NONE},          FREE(0, 1024, NONE),
        {"segment_free", 0, SMALL, NONE},  {"segment_alloc", 0, SMALL, USER}, {"alloc", 0, 1024, USER},
    };
    const struct part parts[] = {{0, SMALL, USER, 2}};
    for (int ids = 0; ids < 2; ids++) {
        struct vram_exact_result *result = replay_by_hand(parts, 1, three_pictures, events, VR_COUNT_OF(events), ids != 0);
        assert_int_equal(result->devices[0].verdict, VRAM_EXACT_EQUAL);
        assert_int_equal(result->devices[0].allocations, 2);
        assert_int_equal(result->devices[0].private_allocations, 1);
        vram_exact_result_destroy(result);
    }
}

// The events of a released private segment have no id, so its requests are left out: the default pool could have served them.
static void undetermined_pools_are_left_out(void **state) {
    (void)state;
    static const struct line events[] = {
        {"segment_alloc", 0, SMALL, NONE},
        {"alloc", 0, 1024, NONE},
        {"segment_alloc", SMALL, SMALL, GRAPH},
        {"alloc", SMALL, 1024, GRAPH},
        {"segment_alloc", 2 * SMALL, SMALL, USER},
        {"alloc", 2 * SMALL, 1024, USER},
        FREE(SMALL, 1024, GRAPH),
        {"segment_free", SMALL, SMALL, GRAPH},
        {"alloc", 2 * SMALL + 1024, 1024, USER},
    };
    const struct part parts[] = {three_parts[0], three_parts[2]};
    const struct line picture[] = {three_pictures[0], three_pictures[1], three_pictures[4], three_pictures[5], three_pictures[6]};
    assert_int_equal(VERDICT(parts, picture, events, true), VRAM_EXACT_EQUAL);
    struct vram_exact_result *result = replay_by_hand(parts, 2, picture, events, VR_COUNT_OF(events), false);
    assert_int_equal(result->devices[0].verdict, VRAM_EXACT_PARTIAL);
    assert_false(result->agrees);
    assert_int_equal(result->devices[0].allocations, 3);
    assert_int_equal(result->devices[0].private_allocations, 2);
    assert_int_equal(result->devices[0].left_out_allocations, 1);
    assert_true(strlen(result->devices[0].reason) > 20);
    vram_exact_result_destroy(result);
}

// A final state without a history, with blocks that wait for other streams.
static void a_picture_with_waiting_blocks_in_pools(void **state) {
    (void)state;
    struct line picture[VR_COUNT_OF(three_pictures)];
    memcpy(picture, three_pictures, sizeof picture);
    picture[2].action = "active_pending_free";
    picture[5].action = "active_awaiting_free";
    struct vram_exact_result *result = replay_by_hand(three_parts, 3, picture, NULL, 0, false);
    assert_int_equal(result->devices[0].verdict, VRAM_EXACT_NO_HISTORY);
    assert_int_equal(result->devices[0].final_blocks_equal, 7);
    vram_exact_result_destroy(result);
}

// An event of one pool with a block in another's segment.
static void events_that_name_another_pool_differ(void **state) {
    (void)state;
    struct line events[VR_COUNT_OF(three_pools)];
    memcpy(events, three_pools, sizeof events);
    events[VR_COUNT_OF(events) - 1].pool = (struct vram_pool_id){7, 0};
    assert_int_equal(VERDICT(three_parts, three_pictures, events, true), VRAM_EXACT_DIFFERENT);
    struct vram_recording *recording = by_hand(three_parts, 3, three_pictures, events, VR_COUNT_OF(events), true);
    struct vram_whatif_result *run = whatif(recording, NULL);
    assert_true(run->finished);
    vram_whatif_result_destroy(run);
    vram_recording_destroy(recording);
}

// During a capture nothing is released to the driver: the cached segment still exists afterwards.
static void an_oom_in_a_capture_keeps_the_cache(void **state) {
    (void)state;
    const struct line events[] = {
        {"segment_alloc", 0, LARGE, NONE},      {"alloc", 0, SMALL, NONE},     FREE(0, SMALL, NONE),
        {"segment_alloc", LARGE, SMALL, GRAPH}, {"alloc", LARGE, 1024, GRAPH}, {"oom", 0, 2 * LARGE, GRAPH},
        {"alloc", LARGE + 1024, 1024, GRAPH},   {"alloc", 0, SMALL, NONE},
    };
    const struct part parts[] = {{0, LARGE, NONE, 2}, {LARGE, SMALL, GRAPH, 3}};
    const struct line picture[] = {{"active_allocated", 0, SMALL, NONE},
                                   {"inactive", SMALL, LARGE - SMALL, NONE},
                                   {"active_allocated", LARGE, 1024, NONE},
                                   {"active_allocated", LARGE + 1024, 1024, NONE},
                                   {"inactive", LARGE + 2048, SMALL - 2048, NONE}};
    assert_int_equal(VERDICT(parts, picture, events, true), VRAM_EXACT_EQUAL);
    // A failed request that a cached block of its pool could have served is a difference, even in a capture.
    struct line served[VR_COUNT_OF(events)];
    memcpy(served, events, sizeof served);
    served[6].size = 1024;
    assert_int_equal(VERDICT(parts, picture, served, true), VRAM_EXACT_DIFFERENT);
    // Without a private pool there was no capture: the failing request would have released the segment.
    const struct line plain[] = {events[0], events[1], events[2], events[3], {"oom", 0, 2 * LARGE, NONE}, events[8]};
    assert_int_equal(verdict_of(parts, 1, picture, plain, VR_COUNT_OF(plain), true), VRAM_EXACT_DIFFERENT);
}

// MemPool(no_split=True): each request has its own segment, although the first one had room.
static void a_pool_whose_blocks_are_not_split(void **state) {
    (void)state;
    const struct line events[] = {
        {"segment_alloc", 0, SMALL, USER},     {"alloc", 0, 1024, USER},
        {"segment_alloc", SMALL, SMALL, USER}, {"alloc", SMALL, 512, USER},
        FREE(2 * SMALL, 1024, USER), // from before the history: the whole third segment
        {"alloc", 2 * SMALL, 2048, USER},      {"segment_alloc", 3 * SMALL, LARGE, USER},
        {"alloc", 3 * SMALL, 2 * SMALL, USER},
    };
    const struct part parts[] = {{0, SMALL, USER, 1}, {SMALL, SMALL, USER, 1}, {2 * SMALL, SMALL, USER, 1}, {3 * SMALL, LARGE, USER, 1}};
    const struct line picture[] = {{"active_allocated", 0, SMALL, USER},
                                   {"active_allocated", SMALL, SMALL, USER},
                                   {"active_allocated", 2 * SMALL, SMALL, USER},
                                   {"active_allocated", 3 * SMALL, LARGE, USER}};
    assert_int_equal(VERDICT(parts, picture, events, true), VRAM_EXACT_EQUAL);
    struct vram_recording *recording = by_hand(parts, VR_COUNT_OF(parts), picture, events, VR_COUNT_OF(events), true);
    struct vram_whatif_result *run = whatif(recording, NULL);
    assert_int_equal(run->devices[0].peak_reserved_bytes, 3 * SMALL + LARGE);
    vram_whatif_result_destroy(run);
    vram_recording_destroy(recording);
}

// A foreign recording may have a segment of zero bytes: an inconsistency that must not affect any pool.
static void segments_of_no_bytes_contradict(void **state) {
    (void)state;
    struct vram_recording *recording =
        read_string("{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\","
                    "\"segment_pool_id\":[1,0],"
                    "\"blocks\":[" ONE_USED "]}]," TRACE(EVENT("segment_alloc", 67108864, 0) "," EVENT(
                        "segment_free", 67108864, 0) "," EVENT("segment_alloc", 4194304, 2097152) "," EVENT("alloc", 4194304, 1024)));
    struct vram_exact_result *result = exact(recording);
    assert_int_equal(result->devices[0].verdict, VRAM_EXACT_CONTRADICTION);
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
}

static void too_many_pools_are_refused(void **state) {
    (void)state;
    enum { MANY = 5000 };
    static struct line events[MANY];
    for (size_t i = 0; i < MANY; i++) events[i] = (struct line){"segment_alloc", i * SMALL, SMALL, {i + 1, 0}};
    struct vram_recording *recording = by_hand(nothing, 0, NULL, events, MANY, true);
    struct vram_exact_result *result = NULL;
    struct vram_whatif_result *run = NULL;
    struct vram_error error = {0};
    EXPECT_STATUS(BAD_INPUT, vram_replay_exact(recording, NULL, &result, &error));
    assert_non_null(strstr(error.message, "pools"));
    EXPECT_STATUS(BAD_INPUT, vram_replay_whatif(recording, NULL, &run, &error));
    vram_recording_destroy(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_keep_equal_requests_apart),
        cmocka_unit_test(order_of_private_releases),
        cmocka_unit_test(pools_go_alone_and_held_pools_stay),
        cmocka_unit_test(what_is_left_of_a_pool_goes_with_the_next_pass),
        cmocka_unit_test(an_address_used_twice),
        cmocka_unit_test(undetermined_pools_are_left_out),
        cmocka_unit_test(a_picture_with_waiting_blocks_in_pools),
        cmocka_unit_test(events_that_name_another_pool_differ),
        cmocka_unit_test(an_oom_in_a_capture_keeps_the_cache),
        cmocka_unit_test(a_pool_whose_blocks_are_not_split),
        cmocka_unit_test(segments_of_no_bytes_contradict),
        cmocka_unit_test(too_many_pools_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
