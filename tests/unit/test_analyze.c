// Compares parts of the analysis with simpler implementations: the hash of stacks, lifetimes of random histories.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analyze/oom_cause.h"
#include "analyze/lifetimes.h"
#include "analyze/report_parts.h"
#include "analyze/sites.h"
#include "support/random.h"

static uint64_t random_state;

static uint64_t random_below(uint64_t n) { return vr_random_below(&random_state, n); }

static uint64_t sha1_of(const char *text, size_t times) {
    struct vr_sha1 sha1;
    vr_sha1_init(&sha1);
    for (size_t i = 0; i < times; i++) vr_sha1_add(&sha1, text, strlen(text));
    return vr_sha1_end(&sha1);
}

static void sha1_of_the_standard(void **state) {
    (void)state;
    assert_true(sha1_of("", 1) == 0xda39a3ee5e6b4b0du);
    assert_true(sha1_of("abc", 1) == 0xa9993e364706816au);
    assert_true(sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1) == 0x84983e441c3bd26eu);
    assert_true(sha1_of("a", 1000000) == 0x34aa973cd4c4daa4u);
}

// --- lifetimes against lists searched from end to end ------------------------------------------------------------------------
enum { MOST_EVENTS = 60, MOST_BLOCKS = 8, ADDRESSES = 10 };

struct tiny {
    uint8_t action[MOST_EVENTS];
    uint64_t address[MOST_EVENTS], size_bytes[MOST_EVENTS];
    uint32_t stack[MOST_EVENTS];
    uint64_t block_address[MOST_BLOCKS], block_size[MOST_BLOCKS];
    uint32_t block_stack[MOST_BLOCKS];
    uint8_t block_state[MOST_BLOCKS];
    size_t block_rows[MOST_BLOCKS];
    struct vr_model model;
    struct vr_history history;
    struct vr_view view;
};

static void make_tiny(struct tiny *tiny, bool sound) {
    static const uint8_t actions[] = {VR_ACTION_ALLOC, VR_ACTION_FREE_REQUESTED, VR_ACTION_FREE_COMPLETED, VR_ACTION_FREE,
                                      VR_ACTION_SEGMENT_ALLOC};
    const size_t events = random_below(MOST_EVENTS + 1);
    bool live[ADDRESSES] = {false};
    uint64_t sizes[ADDRESSES] = {0};
    memset(tiny, 0, sizeof *tiny);
    for (size_t i = 0; i < events; i++) {
        const uint64_t address = random_below(ADDRESSES);
        tiny->address[i] = address;
        tiny->action[i] = actions[random_below(VR_COUNT_OF(actions))];
        tiny->size_bytes[i] = 1 + random_below(4);
        if (sound) {
            tiny->action[i] = live[address] ? VR_ACTION_FREE : VR_ACTION_ALLOC;
            tiny->size_bytes[i] = live[address] ? sizes[address] : tiny->size_bytes[i];
            sizes[address] = tiny->size_bytes[i];
            live[address] = !live[address];
        }
        tiny->stack[i] = 1;
    }
    size_t blocks = 0;
    for (size_t a = 0; a < ADDRESSES && blocks < MOST_BLOCKS; a++) {
        if (sound ? !live[a] : random_below(2) == 0) continue;
        tiny->block_address[blocks] = sound ? a : random_below(ADDRESSES);
        tiny->block_size[blocks] = sound ? sizes[a] : 1 + random_below(4);
        tiny->block_state[blocks] = sound ? VR_STATE_ALLOCATED : (uint8_t)random_below(VR_STATE_COUNT);
        tiny->block_stack[blocks] = 2;
        tiny->block_rows[blocks] = blocks;
        blocks++;
    }
    tiny->history = (struct vr_history){
        .action = tiny->action, .address = tiny->address, .size_bytes = tiny->size_bytes, .stack = tiny->stack, .count = events};
    tiny->model.blocks = (struct vr_blocks){.address = tiny->block_address,
                                            .size_bytes = tiny->block_size,
                                            .requested_bytes = tiny->block_size,
                                            .stack = tiny->block_stack,
                                            .state = tiny->block_state,
                                            .count = blocks};
    tiny->view = (struct vr_view){.model = &tiny->model, .history = &tiny->history, .blocks = tiny->block_rows, .block_count = blocks};
}

// By address: 0 if not live, else 1 + size. Applies the rules R4 to R7 to an array.
struct plain {
    uint64_t live[ADDRESSES];
    uint64_t anomalies[VRAM_ANOMALY_COUNT];
    uint64_t start, peak, end;
    int64_t peak_event;
    size_t peak_count;
};

static uint64_t total_of(const uint64_t *live, size_t *count) {
    uint64_t total = 0;
    *count = 0;
    for (size_t a = 0; a < ADDRESSES; a++) {
        total += live[a] == 0 ? 0 : live[a] - 1;
        *count += live[a] != 0;
    }
    return total;
}

static void plain_replay(const struct tiny *tiny, enum vr_lifetime_kind kind, struct plain *plain) {
    const uint8_t free_action = kind == VR_LIFETIME_ALLOCATED ? VR_ACTION_FREE_REQUESTED : VR_ACTION_FREE_COMPLETED;
    uint64_t final_blocks[ADDRESSES] = {0};
    *plain = (struct plain){.peak_event = -1};
    for (size_t b = 0; b < tiny->view.block_count; b++) {
        const bool live = kind == VR_LIFETIME_ALLOCATED ? vr_state_allocated(tiny->block_state[b]) : vr_state_active(tiny->block_state[b]);
        if (live) final_blocks[tiny->block_address[b]] = 1 + tiny->block_size[b];
    }
    memcpy(plain->live, final_blocks, sizeof final_blocks);
    for (size_t i = tiny->history.count; i-- > 0;) {
        uint64_t *live = &plain->live[tiny->address[i]];
        if (tiny->action[i] == VR_ACTION_ALLOC) {
            if (*live == 0) plain->anomalies[VRAM_ANOMALY_UNDO_ALLOC_NOT_LIVE]++;
            if (*live != 0 && *live - 1 != tiny->size_bytes[i]) plain->anomalies[VRAM_ANOMALY_UNDO_ALLOC_SIZE_DIFFERS]++;
            *live = 0;
        } else if (tiny->action[i] == free_action || tiny->action[i] == VR_ACTION_FREE) {
            if (*live != 0) plain->anomalies[VRAM_ANOMALY_UNDO_FREE_ALREADY_LIVE]++;
            *live = 1 + tiny->size_bytes[i];
        }
    }
    plain->start = plain->peak = plain->end = total_of(plain->live, &plain->peak_count);
    for (size_t i = 0; i < tiny->history.count; i++) {
        uint64_t *live = &plain->live[tiny->address[i]];
        size_t count;
        if (tiny->action[i] == VR_ACTION_ALLOC) {
            if (*live != 0) plain->anomalies[VRAM_ANOMALY_ALLOC_ON_LIVE]++;
            *live = 1 + tiny->size_bytes[i];
        } else if (tiny->action[i] == free_action || tiny->action[i] == VR_ACTION_FREE) {
            if (*live == 0) plain->anomalies[VRAM_ANOMALY_FREE_NOT_LIVE]++;
            if (*live != 0 && *live - 1 != tiny->size_bytes[i]) plain->anomalies[VRAM_ANOMALY_FREE_SIZE_DIFFERS]++;
            *live = 0;
        }
        plain->end = total_of(plain->live, &count);
        if (plain->end <= plain->peak) continue;
        plain->peak = plain->end;
        plain->peak_event = (int64_t)i;
        plain->peak_count = count;
    }
    for (size_t a = 0; a < ADDRESSES; a++) {
        plain->anomalies[VRAM_ANOMALY_END_BLOCK_NOT_LIVE] += final_blocks[a] != 0 && plain->live[a] == 0;
        plain->anomalies[VRAM_ANOMALY_END_LIVE_NOT_BLOCK] += final_blocks[a] == 0 && plain->live[a] != 0;
    }
}

static void compare_lifetimes(const struct tiny *tiny, enum vr_lifetime_kind kind, bool sound) {
    struct plain plain;
    struct vr_lifetimes built;
    uint64_t totals[7], largest = 0;
    plain_replay(tiny, kind, &plain);
    const size_t points = tiny->history.count < 7 ? tiny->history.count : 7;
    assert_int_equal(vr_lifetimes_build(&tiny->view, kind, points == 0 ? NULL : totals, points, &built), VRAM_OK);
    assert_true(vr_lifetimes_check(&built, &tiny->view));
    assert_int_equal(built.start.bytes, plain.start);
    assert_int_equal(built.peak.bytes, plain.peak);
    assert_int_equal(built.peak.count, plain.peak_count);
    assert_int_equal(built.peak_event, plain.peak_event);
    assert_int_equal(built.end.bytes, plain.end);
    for (size_t a = 0; a < VRAM_ANOMALY_COUNT; a++) {
        assert_int_equal(built.anomalies[a], plain.anomalies[a]);
        if (sound) assert_int_equal(built.anomalies[a], 0);
    }
    for (size_t p = 0; p < points; p++) largest = totals[p] > largest ? totals[p] : largest;
    if (points != 0) assert_int_equal(largest, plain.peak);
    uint64_t live_bytes = 0;
    size_t live_count = 0;
    for (size_t i = 0; i < built.count; i++) {
        if (!vr_lifetimes_live_at(&built, i, built.peak_event)) continue;
        live_bytes += built.size_bytes[i];
        live_count++;
    }
    assert_int_equal(live_bytes, plain.peak);
    assert_int_equal(live_count, plain.peak_count);
    for (size_t i = 1; i < built.count; i++) {
        assert_true(i < built.start_count ? built.address[i - 1] < built.address[i]
                                          : i == built.start_count || built.birth[i - 1] < built.birth[i]);
    }
    vr_lifetimes_release(&built);
}

static void lifetimes_agree_with_plain_replay(void **state) {
    (void)state;
    struct tiny tiny;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        random_state = seed << 20;
        const bool sound = seed % 2 == 0;
        make_tiny(&tiny, sound);
        // A valid history may end with more live blocks than the table has rows.
        const bool whole = tiny.view.block_count < MOST_BLOCKS;
        compare_lifetimes(&tiny, VR_LIFETIME_ALLOCATED, sound && whole);
        compare_lifetimes(&tiny, VR_LIFETIME_ACTIVE, sound && whole);
    }
}

// --- the rows kept by a report, compared with all rows ---------------------------------------------------------------------------
static size_t row_in(const struct vr_lifetimes *kept, const struct vr_lifetimes *all, size_t row, size_t from) {
    while (from < kept->count && (kept->birth[from] != all->birth[row] || kept->address[from] != all->address[row])) from++;
    return from;
}

static uint32_t age_of(const struct vr_lifetimes *all, size_t row) { return all->death[row] - all->birth[row]; }

// Returns whether fewer than `top` completed lifetimes precede this one in the order longer, larger, earlier.
static bool is_among_longest(const struct vr_lifetimes *all, size_t row, size_t top) {
    size_t before = 0;
    if (row < all->start_count || all->death[row] == VR_NEVER) return false;
    for (size_t i = all->start_count; i < all->count; i++) {
        if (all->death[i] == VR_NEVER || i == row) continue;
        if (age_of(all, i) != age_of(all, row))
            before += age_of(all, i) > age_of(all, row);
        else
            before += all->size_bytes[i] != all->size_bytes[row] ? all->size_bytes[i] > all->size_bytes[row] : i < row;
    }
    return before < top;
}

static bool is_looked_at(const struct tiny *tiny, const struct vr_lifetimes *all, size_t row, size_t top) {
    if (all->death[row] == VR_NEVER || vr_lifetimes_live_at(all, row, all->peak_event) || is_among_longest(all, row, top)) return true;
    for (size_t i = 0; i < tiny->history.count; i++)
        if (tiny->action[i] == VR_ACTION_OOM && vr_lifetimes_live_at(all, row, (int64_t)i)) return true;
    return false;
}

static void compare_rows(const struct tiny *tiny, const struct vr_report_lifetimes *found, const struct vr_lifetimes *all, size_t top) {
    const struct vr_lifetimes *kept = &found->rows;
    struct vram_report_sum sums[4] = {{0}};
    size_t at = 0;
    uint64_t largest = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct vram_report_sum *sum = &sums[(i < all->start_count) * 2 + (all->death[i] == VR_NEVER)];
        sum->count++;
        sum->bytes += all->size_bytes[i];
        if (i >= all->start_count && all->size_bytes[i] > largest) largest = all->size_bytes[i];
        const size_t row = row_in(kept, all, i, at);
        assert_true(row < kept->count || !is_looked_at(tiny, all, i, top));
        if (row == kept->count) continue;
        assert_true(kept->size_bytes[row] == all->size_bytes[i] && kept->death[row] == all->death[i] && kept->stack[row] == all->stack[i]);
        at = row + 1; // in the same order
    }
    assert_memory_equal(&found->born_and_freed, &sums[0], sizeof *sums);
    assert_memory_equal(&found->born_and_kept, &sums[1], sizeof *sums);
    assert_memory_equal(&found->inherited_and_freed, &sums[2], sizeof *sums);
    assert_memory_equal(&found->inherited_and_kept, &sums[3], sizeof *sums);
    assert_true(found->largest_bytes == largest);
}

static void compare_report(const struct tiny *tiny) {
    enum { POINTS = 7 };
    struct vr_report_lifetimes found[VR_LIFETIME_KINDS];
    uint64_t allocated[POINTS], active[POINTS], all_totals[POINTS], *const totals[] = {allocated, active};
    const size_t top = 1 + random_below(4), points = tiny->history.count < POINTS ? tiny->history.count : POINTS;
    assert_int_equal(vr_report_lifetimes_find(&tiny->view, top, totals, points, found), VRAM_OK);
    for (size_t k = 0; k < VR_LIFETIME_KINDS; k++) {
        struct vr_lifetimes all;
        const struct vr_lifetimes *kept = &found[k].rows;
        assert_int_equal(vr_lifetimes_build(&tiny->view, (enum vr_lifetime_kind)k, points == 0 ? NULL : all_totals, points, &all), VRAM_OK);
        if (points != 0) assert_memory_equal(totals[k], all_totals, points * sizeof *all_totals);
        assert_memory_equal(kept->anomalies, all.anomalies, sizeof all.anomalies);
        assert_true(kept->peak_event == all.peak_event && kept->start_count <= all.start_count);
        assert_memory_equal(&kept->start, &all.start, sizeof all.start);
        assert_memory_equal(&kept->peak, &all.peak, sizeof all.peak);
        assert_memory_equal(&kept->end, &all.end, sizeof all.end);
        assert_memory_equal(&kept->final_state, &all.final_state, sizeof all.final_state);
        compare_rows(tiny, &found[k], &all, top);
        vr_lifetimes_release(&all);
    }
    vr_report_lifetimes_release(found);
}

static void reports_agree_with_all_lifetimes(void **state) {
    (void)state;
    static struct tiny tiny;
    random_state = 23;
    for (int round = 0; round < 20000; round++) {
        make_tiny(&tiny, random_below(2) == 0);
        for (size_t i = 0; i < tiny.history.count; i++) {
            if (random_below(20) == 0) tiny.action[i] = VR_ACTION_OOM;
            // Sizes whose sum overflows.
            if (round % 4 == 0 && random_below(4) == 0) tiny.size_bytes[i] = UINT64_MAX - random_below(3);
        }
        compare_report(&tiny);
    }
}

// --- the layout at a moment ------------------------------------------------------------------------------------------------------
enum { CELLS = 24 };

// Maps and unmaps random ranges on a line of cells; the layout after any event must equal the one noted then.
static void layout_is_the_picture_that_was(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 400; seed++) {
        random_state = seed << 24;
        uint8_t action[40];
        uint64_t address[40], size_bytes[40], zeros[40] = {0};
        bool pictures[41][CELLS] = {{false}};
        const size_t events = random_below(41);
        for (size_t i = 0; i < events; i++) {
            memcpy(pictures[i + 1], pictures[i], sizeof pictures[i]);
            const size_t first = random_below(CELLS);
            size_t end = first + 1;
            while (end < CELLS && pictures[i][end] == pictures[i][first] && random_below(3) != 0) end++;
            action[i] = pictures[i][first] ? VR_ACTION_SEGMENT_UNMAP : VR_ACTION_SEGMENT_MAP;
            address[i] = first * 4096;
            size_bytes[i] = (end - first) * 4096;
            for (size_t c = first; c < end; c++) pictures[i + 1][c] = !pictures[i][first];
        }
        // The final state as segments of one cell each.
        uint64_t segment_address[CELLS], segment_bytes[CELLS];
        uint8_t kind[CELLS], expandable[CELLS];
        size_t rows[CELLS], segments = 0;
        for (size_t c = 0; c < CELLS; c++) {
            if (!pictures[events][c]) continue;
            segment_address[segments] = c * 4096;
            segment_bytes[segments] = 4096;
            kind[segments] = VR_KIND_SMALL;
            expandable[segments] = 1;
            rows[segments] = segments;
            segments++;
        }
        const struct vr_model model = {.segments = {.address = segment_address,
                                                    .total_bytes = segment_bytes,
                                                    .stream = zeros,
                                                    .pool_first = zeros,
                                                    .pool_second = zeros,
                                                    .kind = kind,
                                                    .expandable = expandable,
                                                    .count = segments}};
        const struct vr_history history = {.action = action,
                                           .address = address,
                                           .size_bytes = size_bytes,
                                           .stream = {.apart = zeros},
                                           .pool_first = zeros,
                                           .pool_second = zeros,
                                           .count = events};
        const struct vr_view view = {.model = &model, .history = &history, .segments = rows, .segment_count = segments};
        for (size_t moment = 0; moment <= events; moment++) {
            struct vr_layout_range *ranges;
            size_t count;
            bool seen[CELLS] = {false};
            assert_int_equal(vr_layout_at(&view, (int64_t)moment - 1, &ranges, &count), VRAM_OK);
            for (size_t r = 0; r < count; r++) {
                for (uint64_t at = ranges[r].address; at < ranges[r].end; at += 4096) seen[at / 4096] = true;
                if (r != 0) assert_true(ranges[r - 1].end < ranges[r].address);
            }
            assert_memory_equal(seen, pictures[moment], sizeof seen);
            free(ranges);
        }
    }
}

static void runs_of_events_cover_them_all(void **state) {
    (void)state;
    static const size_t events[] = {1, 5, 240, 241, 479, 1000003};
    for (size_t e = 0; e < VR_COUNT_OF(events); e++) {
        const size_t points = events[e] < 240 ? events[e] : 240;
        assert_int_equal(vr_point_first(events[e], points, 0), 0);
        assert_int_equal(vr_point_first(events[e], points, points), events[e]);
        for (size_t p = 0; p < points; p++) assert_true(vr_point_first(events[e], points, p) < vr_point_first(events[e], points, p + 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha1_of_the_standard),
        cmocka_unit_test(lifetimes_agree_with_plain_replay),
        cmocka_unit_test(reports_agree_with_all_lifetimes),
        cmocka_unit_test(layout_is_the_picture_that_was),
        cmocka_unit_test(runs_of_events_cover_them_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
