// Compares the contents of pictures over a window with slow second computations: the largest allocations, segments and their lifetimes, the
// grid of addresses, and the answers to `timeline`, `segments`, `map` and `allocations`.
#include <math.h>
#include "analyze/segment_lives.h"
#include "explore/tables/coverage.h"
#include "explore/tables/picture_rows.h"
#include "support/answers.h"
#include "support/random.h"

static uint64_t dice_state;
static uint64_t dice(uint64_t below) { return vr_random_below(&dice_state, below); }

static void neighbours_in_an_ordered_set(void **state) {
    (void)state;
    static const size_t limits[] = {1, 63, 64, 65, 300, 4096, 20000};
    for (size_t l = 0; l < VR_COUNT_OF(limits); l++) {
        const size_t limit = limits[l];
        struct vr_ordered set;
        bool *has = calloc(limit, 1);
        assert_int_equal(VRAM_OK, vr_ordered_init(&set, limit));
        for (size_t round = 0; round < 300; round++) {
            const size_t number = dice(limit);
            has[number] = dice(3) != 0;
            if (has[number])
                vr_ordered_add(&set, number);
            else
                vr_ordered_remove(&set, number);
            const size_t from = dice(limit);
            size_t next = from, previous = from;
            while (next < limit && !has[next]) next++;
            while (previous != SIZE_MAX && !has[previous]) previous--;
            assert_int_equal(vr_ordered_next(&set, from), next == limit ? SIZE_MAX : next);
            assert_int_equal(vr_ordered_previous(&set, from), previous);
        }
        vr_ordered_release(&set);
        free(has);
    }
}

enum { ROWS = 500, EVENTS = 900 };

struct lives {
    struct vr_lifetimes lifetimes;
    uint64_t size[ROWS], address[ROWS];
    uint32_t birth[ROWS], death[ROWS], stack[ROWS];
    int64_t time_us[EVENTS];
};

static void make_lives(struct lives *lives, size_t start) {
    lives->lifetimes = (struct vr_lifetimes){.address = lives->address,
                                             .size_bytes = lives->size,
                                             .birth = lives->birth,
                                             .death = lives->death,
                                             .stack = lives->stack,
                                             .count = ROWS,
                                             .start_count = start};
    uint32_t event = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (i >= start) event += dice(2) + (i > start);
        lives->size[i] = dice(4) == 0 ? 512 : 1 + dice(1u << dice(20));
        lives->birth[i] = i < start ? VR_BEFORE_TRACE : event;
        const uint64_t death = (i < start ? 0 : event) + 1 + dice(dice(10) == 0 ? EVENTS : 30);
        lives->death[i] = death < EVENTS ? (uint32_t)death : VR_NEVER;
    }
    for (size_t i = 0; i < EVENTS; i++)
        lives->time_us[i] = (i == 0 ? 1000 : lives->time_us[i - 1]) + (int64_t)(dice(20) == 0 ? dice(5000) : dice(3));
}

static int falling(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static void the_largest_are_found_without_looking_at_all(void **state) {
    (void)state;
    static struct lives lives;
    for (size_t round = 0; round < 400; round++) {
        make_lives(&lives, dice(20));
        const struct vr_lifetimes *l = &lives.lifetimes;
        struct vr_axis_span span = {.time_us = round % 2 == 0 ? NULL : lives.time_us, .events = EVENTS};
        const double length = round % 2 == 0 ? EVENTS : (double)(lives.time_us[EVENTS - 1] - lives.time_us[0] + 1);
        span.from = (double)dice((uint64_t)length - 1);
        span.to = span.from + 1 + (double)dice((uint64_t)(length - span.from));
        struct vr_largest *largest = NULL;
        assert_int_equal(VRAM_OK, vr_largest_create(l, &span, &largest));
        assert_true(vr_largest_check(largest));
        // Rows of the window: some listed, the others as a range.
        const size_t begin = l->start_count + dice(ROWS - l->start_count), end = begin + dice(ROWS - begin + 1);
        uint32_t listed[ROWS];
        size_t listed_count = 0;
        for (size_t i = 0; i < begin; i++) {
            if (dice(3) == 0) listed[listed_count++] = (uint32_t)i;
        }
        double weights[ROWS], least = dice(2) == 0 ? 0 : (double)dice(100000);
        size_t expected = 0;
        for (size_t i = 0; i < listed_count; i++) weights[expected++] = vr_axis_span_area(&span, l, listed[i]);
        for (size_t i = begin; i < end; i++) weights[expected++] = vr_axis_span_area(&span, l, i);
        qsort(weights, expected, sizeof *weights, falling);
        while (expected > 0 && weights[expected - 1] < least) expected--;
        const size_t limit = dice(80);
        if (expected > limit) expected = limit;
        uint32_t *rows = NULL;
        size_t count = 0;
        const struct vr_largest_choice choice = {&span, listed, listed_count, begin, end, limit, least};
        assert_int_equal(VRAM_OK, vr_largest_pick(largest, &choice, &rows, &count));
        assert_int_equal(count, expected);
        double found[ROWS];
        for (size_t i = 0; i < count; i++) {
            if (i != 0) assert_true(rows[i] > rows[i - 1]);
            found[i] = vr_axis_span_area(&span, l, rows[i]);
        }
        qsort(found, count, sizeof *found, falling);
        for (size_t i = 0; i < count; i++) assert_true(found[i] == weights[i]);
        free(rows);
        vr_largest_destroy(largest);
    }
}

// --- segments ------------------------------------------------------------------------------------------------------------

enum { PAGES = 40, PAGE = 4096, SEGMENT_EVENTS = 200, MOST_SEGMENTS = PAGES };

// A random history of reservations, the reserved pages before event 0 and after each event, and the final segments.
struct reserving {
    bool reserved[SEGMENT_EVENTS + 1][PAGES];
    struct vr_model model;
    struct vr_view view;
    struct vr_history history;
    uint8_t action[SEGMENT_EVENTS], kind[MOST_SEGMENTS], expandable[MOST_SEGMENTS];
    uint64_t address[SEGMENT_EVENTS], size[SEGMENT_EVENTS], stream[SEGMENT_EVENTS], pools[SEGMENT_EVENTS];
    uint32_t stack[SEGMENT_EVENTS], has[SEGMENT_EVENTS];
    uint64_t segment_address[MOST_SEGMENTS], segment_bytes[MOST_SEGMENTS], segment_numbers[MOST_SEGMENTS];
    uint32_t segment_has[MOST_SEGMENTS];
    size_t rows[MOST_SEGMENTS];
};

static uint64_t page_address(size_t page) { return (uint64_t)(page + 16) * PAGE; }

// Reserves runs of free pages and releases runs of reserved ones, in pieces that differ from those reserved.
static void make_event(struct reserving *made, size_t event) {
    bool *now = made->reserved[event + 1];
    memcpy(now, made->reserved[event], PAGES);
    const size_t page = dice(PAGES);
    const bool was = now[page];
    size_t end = page + 1;
    while (end < PAGES && now[end] == was && dice(4) != 0) end++;
    for (size_t i = page; i < end; i++) now[i] = !was;
    const bool mapping = dice(2) == 0;
    made->action[event] = (uint8_t)(was ? (mapping ? VR_ACTION_SEGMENT_UNMAP : VR_ACTION_SEGMENT_FREE)
                                        : (mapping ? VR_ACTION_SEGMENT_MAP : VR_ACTION_SEGMENT_ALLOC));
    made->address[event] = page_address(page);
    made->size[event] = (end - page) * PAGE;
    made->stream[event] = 7;
}

static void make_reserving(struct reserving *made) {
    memset(made, 0, sizeof *made);
    for (size_t page = 0; page < PAGES; page++) made->reserved[0][page] = dice(3) == 0;
    for (size_t i = 0; i < SEGMENT_EVENTS; i++) make_event(made, i);
    made->history = (struct vr_history){.action = made->action,
                                        .address = made->address,
                                        .size_bytes = made->size,
                                        .stream = {.apart = made->stream},
                                        .stack = made->stack,
                                        .has = {.apart = made->has},
                                        .pool_first = made->pools,
                                        .pool_second = made->pools,
                                        .count = SEGMENT_EVENTS};
    size_t count = 0;
    for (size_t page = 0; page < PAGES;) {
        size_t end = page + 1;
        if (made->reserved[SEGMENT_EVENTS][page]) {
            while (end < PAGES && made->reserved[SEGMENT_EVENTS][end] && dice(2) == 0) end++;
            made->segment_address[count] = page_address(page);
            made->segment_bytes[count] = (end - page) * PAGE;
            made->rows[count] = count;
            count++;
        }
        page = end;
    }
    made->model.segments = (struct vr_segments){.address = made->segment_address,
                                                .total_bytes = made->segment_bytes,
                                                .stream = made->segment_numbers,
                                                .pool_first = made->segment_numbers,
                                                .pool_second = made->segment_numbers,
                                                .stack = made->stack,
                                                .has = made->segment_has,
                                                .kind = made->kind,
                                                .expandable = made->expandable,
                                                .count = count};
    made->view = (struct vr_view){.model = &made->model, .history = &made->history, .segments = made->rows, .segment_count = count};
}

static void segments_are_rectangles_that_tile_what_is_reserved(void **state) {
    (void)state;
    static struct reserving made;
    for (size_t round = 0; round < 150; round++) {
        make_reserving(&made);
        struct vr_segment_lives lives;
        assert_int_equal(VRAM_OK, vr_segment_lives_build(&made.view, &lives));
        const struct vr_lifetimes *rows = &lives.lifetimes;
        size_t most = 0;
        for (size_t i = 1; i < rows->count; i++) assert_true(rows->birth[i] + 1 >= rows->birth[i - 1] + 1);
        for (int64_t event = -1; event < SEGMENT_EVENTS; event++) {
            unsigned covered[PAGES] = {0};
            size_t live = 0;
            for (size_t i = 0; i < rows->count; i++) {
                if (!vr_lifetimes_live_at(rows, i, event)) continue;
                live++;
                for (uint64_t a = rows->address[i]; a < rows->address[i] + rows->size_bytes[i]; a += PAGE) covered[a / PAGE - 16]++;
            }
            if (live > most) most = live;
            for (size_t page = 0; page < PAGES; page++) {
                assert_int_equal(covered[page], made.reserved[event + 1][page]);
                const size_t found = vr_segment_lives_find(&lives, page_address(page) + dice(PAGE), event);
                assert_int_equal(found != SIZE_MAX, made.reserved[event + 1][page]);
            }
        }
        assert_int_equal(rows->peak.count, most);
        vr_segment_lives_release(&lives);
    }
}

// --- the grid --------------------------------------------------------------------------------------------------------------

static void the_grid_says_how_full_addresses_were(void **state) {
    (void)state;
    static struct lives lives;
    for (size_t round = 0; round < 20; round++) {
        make_lives(&lives, dice(10));
        // Each allocation has its own place, so that it fills one segment.
        uint64_t at = 1u << 20;
        for (size_t i = 0; i < ROWS; i++) {
            lives.address[i] = at;
            at += lives.size[i] + (dice(3) == 0 ? 4096 : 0);
        }
        // Every allocation and free needs its own event.
        for (size_t i = 0; i < ROWS; i++) {
            lives.birth[i] = i < lives.lifetimes.start_count ? VR_BEFORE_TRACE : (uint32_t)(2 * (i - lives.lifetimes.start_count));
            const size_t death = (i < lives.lifetimes.start_count ? 0 : lives.birth[i]) + 1 + 2 * dice(40);
            lives.death[i] = VR_NEVER;
            bool taken = death >= 2 * ROWS;
            for (size_t j = 0; j < i; j++) taken = taken || lives.death[j] == death;
            if (!taken) lives.death[i] = (uint32_t)death;
        }
        struct vr_history history = {.count = 2 * ROWS};
        const struct vr_view view = {.history = &history};
        const struct vr_segment_lives none = {.stream = NULL};
        struct vr_event_rows rows;
        struct vr_coverage *coverage = NULL;
        assert_int_equal(VRAM_OK, vr_event_rows_build(&view, &lives.lifetimes, &rows));
        assert_true(vr_event_rows_check(&rows, &lives.lifetimes));
        assert_int_equal(VRAM_OK, vr_coverage_begin(&view, &none, &lives.lifetimes, &rows, &coverage));
        for (double share = 0; share < 1;) assert_int_equal(VRAM_OK, vr_coverage_go_on(coverage, 1 + dice(300), &share));
        assert_true(vr_coverage_check(coverage));
        uint64_t total = 0;
        for (size_t i = 0; i < ROWS; i++) {
            assert_int_equal(vr_coverage_place(coverage, lives.address[i]), total);
            total += lives.size[i];
        }
        assert_int_equal(vr_coverage_total(coverage), total);
        const size_t first = dice(2 * ROWS - 1), end = first + 1 + dice(2 * ROWS - first), most = 1 + dice(30);
        uint32_t live[ROWS];
        size_t live_count = 0;
        for (size_t i = 0; i < ROWS; i++) {
            if (vr_lifetimes_live_at(&lives.lifetimes, i, (int64_t)first - 1)) live[live_count++] = (uint32_t)i;
        }
        const uint64_t low = dice(total / 2), high = low + 1 + dice(total - low);
        struct vr_grid grid;
        assert_int_equal(VRAM_OK,
                         vr_coverage_count(coverage, &(struct vr_grid_window){live, live_count, first, end, most, low, high}, &grid));
        assert_true(grid.columns <= most && grid.first + grid.columns * grid.spacing >= end);
        const double cell = (double)(high - low) / VR_COVERAGE_CELLS;
        for (unsigned trial = 0; trial < 100; trial++) {
            const size_t c = dice(grid.columns), k = dice(VR_COVERAGE_CELLS);
            const size_t begin = first + c * grid.spacing, stop = begin + grid.spacing < end ? begin + grid.spacing : end;
            double full = 0;
            for (size_t event = begin; event < stop; event++) {
                for (size_t i = 0; i < ROWS; i++) {
                    if (!vr_lifetimes_live_at(&lives.lifetimes, i, (int64_t)event)) continue;
                    const double place = (double)vr_coverage_place(coverage, lives.address[i]) - (double)low;
                    const double from = place > (double)k * cell ? place : (double)k * cell;
                    const double to =
                        place + (double)lives.size[i] < (double)(k + 1) * cell ? place + (double)lives.size[i] : (double)(k + 1) * cell;
                    if (to > from) full += to - from;
                }
            }
            const double expected = full / cell / (double)(stop - begin) * 255;
            const double found = grid.full[c * VR_COVERAGE_CELLS + k];
            assert_true(found >= expected - 0.51 && found <= expected + 1.01);
        }
        free(grid.full);
        vr_coverage_destroy(coverage);
        vr_event_rows_release(&rows);
    }
}

// --- answers ---------------------------------------------------------------------------------------------------------------

// Returns a column's numbers as doubles, for free().
static double *numbers_of(const struct bytes *answer, const char *name, size_t *count) {
    const struct column column = column_of(answer, name);
    double *numbers = calloc(column.count + 1, sizeof *numbers);
    for (size_t i = 0; i < column.count; i++) {
        if (strcmp(column.type, "f64") == 0)
            memcpy(&numbers[i], column.bytes + 8 * i, 8);
        else
            numbers[i] = strcmp(column.type, "u8") == 0 ? column.bytes[i] : u32(column.bytes + 4 * i);
    }
    *count = column.count;
    return numbers;
}

// One segment of 8 KiB at 0x10000, one of 4 KiB at 0x20000 that is freed, a private pool's at 0x30000. Times are 10 apart.
static const char story[] =
    "{\"segments\": [{\"device\": 0, \"address\": 65536, \"total_size\": 8192, \"stream\": 0, \"segment_pool_id\": [0, 0], \"blocks\": ["
    "{\"address\": 65536, \"size\": 2048, \"requested_size\": 2000, \"state\": \"active_allocated\", \"frames\": []},"
    "{\"address\": 67584, \"size\": 6144, \"state\": \"inactive\", \"frames\": []}]},"
    "{\"device\": 0, \"address\": 196608, \"total_size\": 4096, \"stream\": 5, \"segment_pool_id\": [0, 1], \"blocks\": ["
    "{\"address\": 196608, \"size\": 4096, \"state\": \"inactive\", \"frames\": []}]}],"
    "\"device_traces\": [["
    "{\"action\": \"segment_alloc\", \"addr\": 131072, \"size\": 4096, \"stream\": 0, \"time_us\": 10},"
    "{\"action\": \"alloc\", \"addr\": 131072, \"size\": 1000, \"stream\": 0, \"time_us\": 20, \"frames\": [{\"name\": \"f\", "
    "\"filename\": "
    "\"a.py\", \"line\": 5}]},"
    "{\"action\": \"alloc\", \"addr\": 67584, \"size\": 300, \"stream\": 0, \"time_us\": 30, \"frames\": [{\"name\": \"g\", \"filename\": "
    "\"b.py\", \"line\": 6}]},"
    "{\"action\": \"free_requested\", \"addr\": 131072, \"size\": 1000, \"stream\": 0, \"time_us\": 40},"
    "{\"action\": \"free_completed\", \"addr\": 131072, \"size\": 1000, \"stream\": 0, \"time_us\": 50},"
    "{\"action\": \"segment_free\", \"addr\": 131072, \"size\": 4096, \"stream\": 0, \"time_us\": 60},"
    "{\"action\": \"segment_alloc\", \"addr\": 196608, \"size\": 4096, \"stream\": 5, \"time_us\": 70},"
    "{\"action\": \"free_requested\", \"addr\": 67584, \"size\": 300, \"stream\": 0, \"time_us\": 80},"
    "{\"action\": \"free_completed\", \"addr\": 67584, \"size\": 300, \"stream\": 0, \"time_us\": 90}]]}";

static void expect_numbers(struct vram_explorer *explorer, const char *question, const char *name, const double *expected, size_t most) {
    struct bytes answer = ask(explorer, question);
    size_t count = 0;
    double *numbers = numbers_of(&answer, name, &count);
    if (count != most) fail_msg("%s: %s has %zu numbers instead of %zu", question, name, count, most);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] != expected[i] && !(isnan(numbers[i]) && isnan(expected[i])))
            fail_msg("%s: %s[%zu] is %g instead of %g", question, name, i, numbers[i], expected[i]);
    }
    free(numbers);
    free(answer.bytes);
}
#define EXPECT(question, name, ...)                                                                                                        \
    expect_numbers(explorer, question, name, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void the_story_is_stacked(void **state) {
    (void)state;
    struct vram_explorer *explorer = open_text(story);
    // Row 0 existed before (2000 bytes), row 1 has events 1 to 3, row 2 has 2 to 7 and moves down at 3.
    EXPECT("timeline?pixels=9", "row", 0, 1, 2);
    EXPECT("timeline?pixels=9", "flags", 1 + 2 + 4 + 8, 0, 0);
    EXPECT("timeline?pixels=9", "bytes", 2000, 1000, 300);
    EXPECT("timeline?pixels=9", "first_step", 0, 1, 2, 4);
    EXPECT("timeline?pixels=9", "position", 0, 1, 2, 3);
    EXPECT("timeline?pixels=9", "base", 0, 2000, 3000, 2000);
    EXPECT("timeline?pixels=9", "end", 9, 3, 7);
    EXPECT("timeline?pixels=9", "drawn", 2000, 3000, 3300, 2300, 2300, 2300, 2300, 2000, 2000);
    EXPECT("timeline?pixels=9", "allocated", 2000, 3000, 3300, 3300, 2300, 2300, 2300, 2300, 2000);
    EXPECT("timeline?pixels=9", "active", 2000, 3000, 3300, 3300, 3300, 2300, 2300, 2300, 2300);
    EXPECT("timeline?pixels=9", "reserved", 12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288, 12288);
    EXPECT("timeline?pixels=9&notion=active", "end", 9, 4, 8);
    EXPECT("timeline?pixels=9&notion=active", "requested", 9, 3, 7);
    // A window in the middle with one shape: the others are in the band.
    EXPECT("timeline?from=2&to=5&pixels=3&limit=1", "row", 0);
    EXPECT("timeline?from=2&to=5&pixels=3&limit=1", "drawn", 2000, 2000, 2000);
    EXPECT("timeline?from=2&to=5&pixels=3&limit=1", "allocated", 3300, 3300, 2300);
    EXPECT("timeline?axis=time&pixels=8&event=3", "end", 81, 30, 70);
    expect_text(explorer, "timeline?axis=time&event=3", "\"event_position\": 40");
    expect_text(explorer, "timeline?event=8", "\"event_position\": 9");
    expect_text(explorer, "timeline", "\"groups\": [\"<no frames>\", \"a.py:5:f\", \"b.py:6:g\"]");
    expect_text(explorer, "timeline?by=pool", "\"groups\": [\"default pool\"");
    // Shapes of less than half a pixel go to the band: one pixel is 3300 bytes and 9 events.
    EXPECT("timeline?pixels=1&height=1", "row", 0);
    vram_explorer_destroy(explorer);
}

static void the_story_has_segments_and_a_map(void **state) {
    (void)state;
    struct vram_explorer *explorer = open_text(story);
    EXPECT("segments?pixels=9", "bytes", 8192, 4096, 4096);
    EXPECT("segments?pixels=9", "birth", NAN, 0, 6);
    EXPECT("segments?pixels=9", "end", 9, 5, 9);
    expect_text(explorer, "segments", "\"groups\": [\"default pool, stream 0\", \"private pool (0, 1), stream 5\"]");
    expect_text(explorer, "allocation?segment=2", "\"label\": \"s30000_0\", \"kind\": \"segment\", \"pool_name\": \"private pool (0, 1)\"");
    expect_text(explorer, "allocation?label=s20000_0", "\"bytes\": 4096, \"birth_event\": 0, \"birth_time_us\": 10, \"death_event\": 5");
    // Positions: 0x10000 at 0, 0x20000 at 8192, 0x30000 at 12288.
    EXPECT("map?pixels=9", "range_place", 0, 8192, 12288);
    EXPECT("map?pixels=9", "range_address_low", 0x10000, 0x20000, 0x30000);
    EXPECT("map?pixels=9", "place", 0, 8192, 2048);
    EXPECT("map?pixels=9", "begin", 0, 1, 2);
    EXPECT("map?pixels=9", "end", 9, 3, 7);
    EXPECT("map?pixels=9", "completed", 9, 4, 8);
    EXPECT("map?pixels=9", "segment_place", 0, 8192, 12288);
    EXPECT("map?pixels=9", "segment_private", 0, 0, 1);
    EXPECT("map?pixels=9&low=8192&high=12288", "row", 1);
    EXPECT("map?pixels=9", "grid_position", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    expect_text(explorer, "map", "\"total\": 16384");
    EXPECT("allocations", "version", 0, 0, 0);
    EXPECT("allocations", "address_low", 0x10000, 0x20000, 0x10800);
    vram_explorer_destroy(explorer);
}

// Doubles have 53 bits, so addresses and streams are transferred as halves, without loss.
static void all_64_bits_of_addresses_and_streams_come(void **state) {
    (void)state;
    static const char text[] = "{\"segments\": [{\"device\": 0, \"address\": 18446744073709543425, \"total_size\": 4096, \"stream\": "
                               "9223372036854775807, \"blocks\": [{\"size\": 4096, \"state\": \"active_allocated\"}]}], "
                               "\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 18446744073709543425, \"size\": 4096, \"stream\": "
                               "9223372036854775807}, {\"action\": \"alloc\", \"addr\": 9007199254740993, \"size\": 8, \"stream\": -2}]]}";
    struct vram_explorer *explorer = open_text(text);
    EXPECT("allocations", "address_low", 0xffffe001, 1);
    EXPECT("allocations", "address_high", 0xffffffff, 0x200000);
    EXPECT("allocations", "stream_low", 0xffffffff, 0xfffffffe);
    EXPECT("allocations", "stream_high", 0x7fffffff, 0xffffffff);
    EXPECT("allocations", "stream_known", 1, 1);
    EXPECT("segments", "address_low", 0xffffe001);
    EXPECT("segments", "address_high", 0xffffffff);
    EXPECT("map", "range_address_high", 0x200000, 0xffffffff);
    EXPECT("map", "range_address_low", 1, 0xffffe001);
    vram_explorer_destroy(explorer);
}

// Pools whose numbers collide when shifted and combined are still two groups.
static void segments_of_two_pools_are_two_groups(void **state) {
    (void)state;
    static const char text[] = "{\"segments\": [{\"device\": 0, \"address\": 65536, \"total_size\": 8192, \"stream\": 0, "
                               "\"segment_pool_id\": [1, 0], \"blocks\": [{\"size\": 8192, \"state\": \"inactive\"}]}, "
                               "{\"device\": 0, \"address\": 196608, \"total_size\": 4096, \"stream\": 0, "
                               "\"segment_pool_id\": [0, 65536], \"blocks\": [{\"size\": 4096, \"state\": \"inactive\"}]}], "
                               "\"device_traces\": [[]]}";
    struct vram_explorer *explorer = open_text(text);
    expect_text(explorer, "segments", "\"groups\": [\"private pool (1, 0), stream 0\", \"private pool (0, 65536), stream 0\"]");
    vram_explorer_destroy(explorer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_in_an_ordered_set),
        cmocka_unit_test(the_largest_are_found_without_looking_at_all),
        cmocka_unit_test(segments_are_rectangles_that_tile_what_is_reserved),
        cmocka_unit_test(the_grid_says_how_full_addresses_were),
        cmocka_unit_test(the_story_is_stacked),
        cmocka_unit_test(the_story_has_segments_and_a_map),
        cmocka_unit_test(segments_of_two_pools_are_two_groups),
        cmocka_unit_test(all_64_bits_of_addresses_and_streams_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
