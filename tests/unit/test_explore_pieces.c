// Checks that results prepared in pieces equal those computed at once, and that composed results (bundles of blocks, lanes of segments,
// steps of a loop) equal a naive second computation.
#include "analyze/profile.h"
#include "base/text.h"
#include "explore/explored/state_at_event.h"
#include "explore/query/step_search.h"
#include "explore/tables/lanes.h"
#include "support/answers.h"
#include "support/random.h"

static uint64_t seed = 7;
static uint64_t dice(uint64_t below) { return vr_random_below(&seed, below); }

// --- a loop ----------------------------------------------------------------------------------------------------------------
enum { TURNS = 9, MOST_EVENTS = 4000 };

// Allocations repeated in every iteration, some that stay, and the total after each event.
struct loop {
    struct vr_text json;
    double total[MOST_EVENTS];
    uint64_t address[MOST_EVENTS], size[MOST_EVENTS];
    unsigned owner[MOST_EVENTS]; // the line that allocated what the event allocates or frees
    size_t events;
};

static void add_event(struct loop *loop, const char *action, uint64_t address, uint64_t size, unsigned line) {
    const bool frees = action[0] == 'f';
    const double before = loop->events == 0 ? 0 : loop->total[loop->events - 1];
    assert_true(loop->events < MOST_EVENTS);
    vr_text_printf(&loop->json,
                   "%s{\"action\": \"%s\", \"addr\": %llu, \"size\": %llu, \"stream\": 0, \"time_us\": %zu, "
                   "\"frames\": [{\"filename\": \"m.py\", \"line\": %u, \"name\": \"f\"}]}",
                   loop->events == 0 ? "" : ",", action, (unsigned long long)address, (unsigned long long)size, loop->events, line);
    loop->address[loop->events] = address;
    loop->size[loop->events] = size;
    loop->owner[loop->events] = line;
    for (size_t i = loop->events; frees && i-- > 0;) {
        if (loop->address[i] != address) continue;
        loop->owner[loop->events] = loop->owner[i];
        break;
    }
    loop->total[loop->events++] = frees ? before - (double)size : before + (double)size;
}

static void make_loop(struct loop *loop) {
    *loop = (struct loop){.events = 0};
    vr_text_puts(&loop->json, "{\"segments\": [], \"device_traces\": [[");
    const size_t warm = dice(30), inner = 12 + dice(20);
    for (size_t i = 0; i < warm; i++) add_event(loop, "alloc", 1 << 20 | i << 12, 512 + dice(9) * 512, 3);
    for (size_t turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < inner; i++) add_event(loop, "alloc", 1 << 24 | i << 14, 1000 + 512 * i, 10 + (unsigned)i % 5);
        add_event(loop, "alloc", 1 << 28 | turn << 12, 700, 30);
        for (size_t i = inner; i-- > 0;) add_event(loop, "free_requested", 1 << 24 | i << 14, 1000 + 512 * i, 40);
    }
    vr_text_puts(&loop->json, "]]}");
}

static struct vram_recording *read_loop(const struct loop *loop) {
    struct vram_recording *recording = NULL;
    struct vram_error error;
    if (vram_recording_read_memory(loop->json.bytes, loop->json.length, "loop", &recording, &error) != VRAM_OK)
        fail_msg("%s", error.message);
    return recording;
}

static void same_steps(const struct vr_steps *a, const struct vr_steps *b) {
    assert_int_equal(a->source, b->source);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) assert_int_equal(a->first[i], b->first[i]);
}

// Steps and growth, prepared in pieces of any size.
static void pieces_find_what_the_whole_finds(void **state) {
    (void)state;
    for (size_t round = 0; round < 20; round++) {
        struct loop loop;
        make_loop(&loop);
        struct vram_recording *recording = read_loop(&loop);
        const struct vram_profile_options options = {.device = -1};
        const struct vr_step_wish wish = {.every = round % 2 == 0 ? 0 : 31};
        struct vr_profile subject;
        struct vr_grouping grouping;
        struct vr_steps steps;
        struct vr_growth growth;
        struct vr_steps_search *steps_search = NULL;
        struct vr_growth_search *growth_search = NULL;
        assert_int_equal(VRAM_OK, vr_profile_open(recording, &options, &subject, NULL));
        assert_int_equal(VRAM_OK, vr_profile_grouping(&subject, &options, &grouping, NULL));
        assert_int_equal(VRAM_OK, vr_steps_find(subject.view, &wish, &steps));
        if (wish.every == 0) assert_int_equal(steps.source, VR_STEPS_REPEATED);
        assert_int_equal(VRAM_OK, vr_steps_search_create(subject.view, &wish, &steps_search));
        double share = 0, before = 0;
        for (; share < 1; before = share) {
            assert_int_equal(VRAM_OK, vr_steps_search_go_on(steps_search, 1 + dice(40), &share));
            assert_true(share >= before && share <= 1);
        }
        same_steps(vr_steps_search_found(steps_search), &steps);
        assert_int_equal(VRAM_OK, vr_growth_find(&grouping, &steps, 10, &growth));
        assert_int_equal(VRAM_OK, vr_growth_search_create(&grouping, &steps, 10, &growth_search));
        for (share = 0; share < 1;) assert_int_equal(VRAM_OK, vr_growth_search_go_on(growth_search, 1 + dice(40), &share));
        const struct vr_growth *found = vr_growth_search_found(growth_search);
        assert_int_equal(found->count, growth.count);
        assert_true(growth.count > 0);
        for (size_t i = 0; i < growth.count; i++) {
            assert_int_equal(found->grower[i].key, growth.grower[i].key);
            assert_int_equal(found->grower[i].verdict, growth.grower[i].verdict);
            assert_memory_equal(found->grower[i].bytes, growth.grower[i].bytes, growth.point_count * sizeof(uint64_t));
        }
        vr_growth_search_destroy(growth_search);
        vr_steps_search_destroy(steps_search);
        vr_growth_release(&growth);
        vr_steps_release(&steps);
        vr_grouping_release(&grouping);
        vr_profile_close(&subject);
        vram_recording_destroy(recording);
        vr_text_release(&loop.json);
    }
}

// --- answers ---------------------------------------------------------------------------------------------------------------
static bool says(const struct bytes *answer, const char *part) {
    char *text = text_of(answer);
    const bool found = strstr(text, part) != NULL;
    free(text);
    return found;
}

static double number(const struct bytes *answer, const char *name, size_t i) {
    const struct column column = column_of(answer, name);
    double value = 0;
    assert_true(i < column.count && strcmp(column.type, "f64") == 0);
    memcpy(&value, column.bytes + i * sizeof value, sizeof value);
    return value;
}

static struct vram_explorer *explore(const struct loop *loop) {
    struct vram_explorer *explorer = NULL;
    assert_int_equal(VRAM_OK, vram_explorer_create(&explorer));
    assert_int_equal(VRAM_OK, vram_explorer_add(explorer, read_loop(loop), "loop", loop->json.length, NULL));
    return explorer;
}

static void same_answer(struct vram_explorer *a, struct vram_explorer *b, const char *question) {
    struct bytes x = ask(a, question), y = ask(b, question);
    assert_int_equal(x.length, y.length);
    assert_memory_equal(x.bytes, y.bytes, x.length);
    free(x.bytes);
    free(y.bytes);
}

// Asks with and without preparation, repeatedly, and after other queries of the same kind.
static void prepared_answers_are_the_same(void **state) {
    (void)state;
    static const char *const queries[] = {"state?event=50", "map?pixels=20", "leaks?top=5", "churn?by=size", "leaks?every=20&by=stack",
                                          "steps?pixels=9", "ranks",         "leaks?top=5", "churn?every=9", "groups?event=step:2"};
    struct loop loop;
    make_loop(&loop);
    struct vram_explorer *explorer = explore(&loop);
    for (size_t i = 0; i < VR_COUNT_OF(queries); i++) {
        struct vram_explorer *fresh = explore(&loop);
        char question[120];
        const char *values = strchr(queries[i], '?');
        const int name = (int)strcspn(queries[i], "?");
        snprintf(question, sizeof question, "prepare?for=%.*s%s%s", name, queries[i], values == NULL ? "" : "&",
                 values == NULL ? "" : values + 1);
        bool ready = strncmp(queries[i], "groups", 6) == 0; // has nothing to prepare
        for (size_t turn = 0; turn < 20 && !ready; turn++) {
            struct bytes answer = ask(explorer, question);
            ready = says(&answer, "\"ready\": true");
            free(answer.bytes);
        }
        assert_true(ready);
        same_answer(explorer, fresh, queries[i]);
        same_answer(explorer, fresh, queries[i]);
        vram_explorer_destroy(fresh);
    }
    struct vram_error error;
    struct bytes none = {0};
    assert_int_equal(VRAM_INVALID_ARGUMENT, vram_explorer_ask(explorer, "prepare?for=nothing", keep, &none, &error));
    assert_int_equal(VRAM_INVALID_ARGUMENT, vram_explorer_ask(explorer, "prepare?for=leaks&every=-3", keep, &none, &error));
    assert_int_equal(VRAM_INVALID_ARGUMENT, vram_explorer_ask(explorer, "groups?event=step:0", keep, &none, &error));
    assert_int_equal(VRAM_INVALID_ARGUMENT, vram_explorer_ask(explorer, "groups?event=step:5000", keep, &none, &error));
    assert_non_null(strstr(error.message, "step '5000' does not exist"));
    vram_explorer_destroy(explorer);
    vr_text_release(&loop.json);
}

// Recomputes each step's highest total and its moment, and the curve with a pixel per step, from the events.
static void steps_are_as_high_as_their_events(void **state) {
    (void)state;
    for (size_t round = 0; round < 10; round++) {
        struct loop loop;
        make_loop(&loop);
        struct vram_explorer *explorer = explore(&loop);
        const size_t every = 5 + dice(60), count = (loop.events + every - 1) / every;
        char question[80];
        snprintf(question, sizeof question, "steps?every=%zu&pixels=%zu", every, count);
        struct bytes answer = ask(explorer, question);
        for (size_t i = 0; i < count && count >= 3; i++) {
            const size_t end = (i + 1) * every < loop.events ? (i + 1) * every : loop.events;
            double high = -1, before = i == 0 ? 0 : loop.total[i * every - 1];
            size_t at = 0;
            for (size_t event = i * every; event < end; event++) {
                if (loop.total[event] > high) at = event;
                if (loop.total[event] > high) high = loop.total[event];
            }
            assert_true(number(&answer, "step_event", i) == (double)(i * every));
            assert_true(number(&answer, "step_peak", i) == high);
            assert_true(number(&answer, "step_peak_event", i) == (double)at);
            assert_true(number(&answer, "high", i) == (high > before ? high : before));
        }
        free(answer.bytes);
        vram_explorer_destroy(explorer);
        vr_text_release(&loop.json);
    }
}

// Returns the most that a line's allocations hold after an event of a window, or before its first.
static double naive_peak(const struct loop *loop, unsigned line, size_t from, size_t to) {
    double live = 0, peak = 0;
    for (size_t i = 0; i < to; i++) {
        const bool made = i == 0 || loop->total[i] > loop->total[i - 1];
        if (loop->owner[i] == line) live += made ? (double)loop->size[i] : -(double)loop->size[i];
        if (i + 1 == from || (i >= from && live > peak)) peak = live;
    }
    return peak;
}

// A curve of three pixels is far below a lane's peak, which lasts one event.
static void lanes_of_a_step_have_their_highest_moment(void **state) {
    (void)state;
    for (size_t round = 0; round < 20; round++) {
        static const unsigned lines[] = {3, 10, 11, 12, 13, 14, 30};
        struct loop loop;
        make_loop(&loop);
        struct vram_explorer *explorer = explore(&loop);
        const size_t from = dice(loop.events - 1), to = from + 1 + dice(loop.events - from - 1);
        char question[80], wanted[80], name[20];
        size_t found = 0;
        snprintf(question, sizeof question, "lanes?by=site&pixels=3&from=%zu&to=%zu", from, to);
        struct bytes answer = ask(explorer, question);
        char *text = text_of(&answer);
        for (size_t i = 0; i < VR_COUNT_OF(lines); i++) {
            snprintf(name, sizeof name, "\"m.py:%u:f\"", lines[i]);
            const char *lane = strstr(text, name);
            if (lane == NULL) continue;
            snprintf(wanted, sizeof wanted, "\"peak_bytes\": %.0f,", naive_peak(&loop, lines[i], from, to));
            const char *peak = strstr(lane, "\"peak_bytes\"");
            assert_non_null(peak);
            if (strncmp(peak, wanted, strlen(wanted)) != 0) fail_msg("%s: %.40s, not %s", name, peak, wanted);
            found++;
        }
        if (found == 0) fail_msg("%s: %.1500s", question, text);
        free(text);
        free(answer.bytes);
        vram_explorer_destroy(explorer);
        vr_text_release(&loop.json);
    }
}

// --- bundles ---------------------------------------------------------------------------------------------------------------
enum { SEGMENTS = 40, MOST_BLOCKS = 6000 };

struct crowd {
    struct vr_moment_segment segment[SEGMENTS];
    struct vr_moment_block block[MOST_BLOCKS];
    struct vr_moment moment;
};

static void make_crowd(struct crowd *crowd) {
    struct vr_moment *moment = &crowd->moment;
    *moment = (struct vr_moment){.segments = crowd->segment, .segment_count = SEGMENTS, .blocks = crowd->block};
    uint64_t address = 1 << 20;
    for (size_t s = 0; s < SEGMENTS; s++) {
        const uint64_t size = (1 + dice(20)) * VR_MIB;
        crowd->segment[s] =
            (struct vr_moment_segment){.address = address, .end = address + size, .first_block = (uint32_t)moment->block_count};
        const uint64_t most = dice(3) == 0 ? 4 * VR_MIB : 20000;
        for (uint64_t at = dice(5000); dice(300) != 0 && moment->block_count < MOST_BLOCKS; at += dice(3) * 512) {
            const uint64_t bytes = 512 * (1 + dice(most / 512));
            if (at + bytes > size) break;
            crowd->block[moment->block_count++] = (struct vr_moment_block){
                .address = address + at, .size_bytes = bytes, .requested_bytes = bytes - dice(512), .flags = (uint8_t)dice(8)};
            at += bytes;
        }
        moment->sums.reserved_bytes += size;
        address += size + dice(2) * VR_MIB;
    }
}

static size_t segment_of(const struct vr_moment *moment, size_t block) {
    size_t s = 0;
    while (s + 1 < SEGMENTS && moment->segments[s + 1].first_block <= block) s++;
    return s;
}

static void check_bundle(const struct vr_moment *moment, const struct vr_bundle *bundle, uint64_t grain) {
    const struct vr_bundle_sums sums = vr_bundle_sum(moment, bundle);
    uint64_t bytes = 0, asked = 0, pending = 0, largest = 0;
    for (size_t b = bundle->first; b < bundle->end; b++) {
        const struct vr_moment_block *block = &moment->blocks[b];
        bytes += block->size_bytes;
        asked += block->requested_bytes;
        pending += (block->flags & VR_BLOCK_PENDING) != 0 ? block->size_bytes : 0;
        largest = block->size_bytes > largest ? block->size_bytes : largest;
        assert_int_equal(segment_of(moment, b), segment_of(moment, bundle->first));
        if (bundle->end - bundle->first > 1) assert_true(block->size_bytes < grain);
    }
    assert_int_equal(sums.bytes, bytes);
    assert_int_equal(sums.requested_bytes, asked);
    assert_int_equal(moment->blocks[sums.largest].size_bytes, largest);
    assert_int_equal((sums.flags & VR_BLOCK_PENDING) != 0, pending > bytes / 2);
    if (bundle->end - bundle->first > 1) assert_true(sums.span_bytes <= grain);
}

static void bundles_leave_nothing_out(void **state) {
    (void)state;
    static struct crowd crowd;
    size_t bundled = 0;
    for (size_t round = 0; round < 60; round++) {
        make_crowd(&crowd);
        const struct vr_moment *moment = &crowd.moment;
        struct vr_bundles bundles;
        const size_t most = 1 + dice(800);
        assert_int_equal(VRAM_OK, vr_bundles_all(moment, most, &bundles));
        size_t next = 0;
        for (size_t i = 0; i < bundles.count; i++) {
            assert_int_equal(bundles.bundle[i].first, next);
            assert_true(bundles.bundle[i].end > next);
            next = bundles.bundle[i].end;
            check_bundle(moment, &bundles.bundle[i], bundles.grain_bytes);
        }
        assert_int_equal(next, moment->block_count);
        assert_true(bundles.count <= most || bundles.count <= SEGMENTS);
        bundled += bundles.grain_bytes != 0;
        vr_bundles_release(&bundles);
        const size_t first = dice(moment->block_count + 10);
        assert_int_equal(VRAM_OK, vr_bundles_page(moment, first, 50, &bundles));
        assert_int_equal(bundles.count, first >= moment->block_count       ? 0
                                        : moment->block_count - first < 50 ? moment->block_count - first
                                                                           : 50);
        for (size_t i = 0; i < bundles.count; i++) {
            assert_true(bundles.bundle[i].first == first + i && bundles.bundle[i].end == first + i + 1);
            const size_t s = segment_of(moment, first + i);
            assert_true(s >= bundles.first_segment && s < bundles.end_segment);
        }
        vr_bundles_release(&bundles);
    }
    assert_true(bundled > 20);
}

// --- lanes -----------------------------------------------------------------------------------------------------------------
enum { ROWS = 300, STARTED = 20 };

struct lives {
    uint64_t address[ROWS], size[ROWS], stream[ROWS], first[ROWS], second[ROWS];
    uint32_t birth[ROWS], death[ROWS], by_address[ROWS];
    uint8_t flags[ROWS];
    struct vr_segment_lives lives;
};

static void make_lives(struct lives *made, uint64_t pools) {
    for (size_t i = 0; i < ROWS; i++) {
        made->address[i] = (i + 1) << 24;
        made->size[i] = dice(2) == 0 ? 2 * VR_MIB : 20 * VR_MIB;
        made->stream[i] = dice(2) * 7;
        made->first[i] = 0;
        made->second[i] = dice(pools);
        made->flags[i] = (uint8_t)(dice(2) * VR_SEGMENT_MAPPED);
        made->by_address[i] = (uint32_t)i;
        made->birth[i] = i < STARTED ? VR_BEFORE_TRACE : (uint32_t)(2 * (i - STARTED));
        made->death[i] = dice(4) == 0 ? VR_NEVER : (uint32_t)((i < STARTED ? 0 : made->birth[i]) + 1 + 2 * dice(60));
    }
    made->lives = (struct vr_segment_lives){.lifetimes = {.address = made->address,
                                                          .size_bytes = made->size,
                                                          .birth = made->birth,
                                                          .death = made->death,
                                                          .count = ROWS,
                                                          .start_count = STARTED},
                                            .stream = made->stream,
                                            .pool_first = made->first,
                                            .pool_second = made->second,
                                            .flags = made->flags,
                                            .by_address = made->by_address};
}

static uint64_t naive_total(const struct lives *made, const struct vr_lanes *lanes, size_t lane, int64_t event) {
    uint64_t total = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (lanes->of[i] == lane && vr_lifetimes_live_at(&made->lives.lifetimes, i, event)) total += made->size[i];
    }
    return total;
}

static void lanes_have_what_their_segments_have(void **state) {
    (void)state;
    static struct lives made;
    static const struct vr_model model;
    const struct vr_view view = {.model = &model};
    for (size_t round = 0; round < 12; round++) {
        make_lives(&made, round % 2 == 0 ? 2 : 20);
        struct vr_lanes *lanes = NULL;
        assert_int_equal(VRAM_OK, vr_lanes_create(&view, &made.lives, &lanes));
        assert_true(vr_lanes_check(lanes, &made.lives));
        assert_int_equal(lanes->lane[lanes->count - 1].others != 0, round % 2 != 0);
        assert_int_equal(lanes->count, round % 2 == 0 ? 16 : VR_MOST_LANES);
        for (size_t i = 0; i < ROWS; i++) {
            const struct vr_lane *lane = &lanes->lane[lanes->of[i]];
            if (lane->others != 0) continue;
            assert_true(lane->stream == made.stream[i] && lane->pool_second == made.second[i]);
            assert_int_equal(lane->expandable, made.flags[i] != 0);
            assert_int_equal(lane->kind, made.size[i] == 2 * VR_MIB ? VRAM_REPORT_KIND_SMALL : VRAM_REPORT_KIND_LARGE);
        }
        for (size_t i = 0; i < lanes->count; i++) {
            uint64_t peak = 0;
            for (int64_t event = -1; event < 2 * ROWS; event++) {
                const uint64_t total = naive_total(&made, lanes, i, event);
                peak = total > peak ? total : peak;
            }
            assert_int_equal(lanes->lane[i].peak_bytes, peak);
            const size_t first = dice(2 * ROWS), end = first + dice(40);
            uint64_t largest = 0;
            for (int64_t event = (int64_t)first - 1; event < (int64_t)end; event++) {
                const uint64_t total = naive_total(&made, lanes, i, event);
                largest = total > largest ? total : largest;
            }
            assert_int_equal(vr_lane_largest(&lanes->lane[i], first, end), largest);
        }
        vr_lanes_destroy(lanes);
    }
}

// Pool numbers that a chain of plain mixes would confuse; all would then be one lane.
static void pools_made_to_collide_have_lanes_of_their_own(void **state) {
    (void)state;
    static struct lives made;
    static const struct vr_model model;
    const struct vr_view view = {.model = &model};
    struct vr_lanes *lanes = NULL;
    make_lives(&made, 1);
    for (size_t i = 0; i < ROWS; i++) {
        made.size[i] = 20 * VR_MIB;
        made.stream[i] = 0;
        made.flags[i] = 0;
        made.first[i] = i % 10;
        made.second[i] = vr_mix64(0) - vr_mix64(i % 10);
    }
    assert_int_equal(VRAM_OK, vr_lanes_create(&view, &made.lives, &lanes));
    assert_true(vr_lanes_check(lanes, &made.lives));
    assert_int_equal(lanes->count, 10);
    for (size_t i = 0; i < ROWS; i++) assert_int_equal(lanes->lane[lanes->of[i]].pool_first, i % 10);
    vr_lanes_destroy(lanes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_find_what_the_whole_finds),
        cmocka_unit_test(prepared_answers_are_the_same),
        cmocka_unit_test(steps_are_as_high_as_their_events),
        cmocka_unit_test(lanes_of_a_step_have_their_highest_moment),
        cmocka_unit_test(bundles_leave_nothing_out),
        cmocka_unit_test(lanes_have_what_their_segments_have),
        cmocka_unit_test(pools_made_to_collide_have_lanes_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
