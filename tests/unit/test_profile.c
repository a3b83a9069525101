// Tests groups, trees, differences, steps and leaks against separately computed sums.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#include <math.h>

#include "analyze/growth.h"
#include "analyze/group_diff.h"
#include "analyze/text_search.h"
#include "analyze/stacktree.h"
#include "analyze/profile.h"
#include "base/json.h"
#include "model/recording.h"
#include "vram/recording.h"

enum { EVENTS = 2000, ADDRESSES = 60, SITES = 7 };

static struct vram_recording *read_text(const struct vr_text *text) {
    struct vram_recording *recording = NULL;
    struct vram_error error;
    if (vram_recording_read_memory(text->bytes, text->length, "made", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    return recording;
}

static void put_event(struct vr_text *text, bool first, const char *action, size_t address, uint64_t bytes, size_t site,
                      size_t line_shift) {
    vr_text_printf(text,
                   "%s{\"action\": \"%s\", \"addr\": %zu, \"size\": %llu, \"stream\": %zu, \"time_us\": 5, \"frames\": ["
                   "{\"filename\": \"model.py\", \"line\": %zu, \"name\": \"layer%zu\"}, "
                   "{\"filename\": \"train.py\", \"line\": 3, \"name\": \"step\"}]}",
                   first ? "" : ",", action, 4096 * (address + 1), (unsigned long long)bytes, site % 3, 10 * site + line_shift, site);
}

// Random allocations and frees by a few call sites; live[site] has bytes and count at the end of each event.
struct made {
    struct vr_text json;
    uint64_t bytes[EVENTS][SITES];
    uint64_t count[EVENTS][SITES];
};

static struct made *make(uint64_t seed) {
    struct made *made = calloc(1, sizeof *made);
    uint64_t size[ADDRESSES] = {0}, state = seed;
    size_t site[ADDRESSES] = {0};
    vr_text_puts(&made->json, "{\"segments\": [], \"device_traces\": [[");
    for (size_t i = 0; i < EVENTS; i++) {
        state = vr_mix64(state + i + 1);
        const size_t a = state % ADDRESSES;
        const bool frees = size[a] != 0;
        if (!frees) size[a] = 512 + (state >> 20) % 100000;
        if (!frees) site[a] = (state >> 40) % SITES;
        put_event(&made->json, i == 0, frees ? "free_requested" : "alloc", a, size[a], site[a], 0);
        if (i != 0) memcpy(made->bytes[i], made->bytes[i - 1], sizeof made->bytes[i]);
        if (i != 0) memcpy(made->count[i], made->count[i - 1], sizeof made->count[i]);
        made->bytes[i][site[a]] += frees ? 0 - size[a] : size[a];
        made->count[i][site[a]] += frees ? (uint64_t)-1 : 1;
        if (frees) size[a] = 0;
    }
    vr_text_puts(&made->json, "]]}");
    return made;
}

static void free_made(struct made *made) {
    vr_text_release(&made->json);
    free(made);
}

static void groups_are_what_was_added_up(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct made *made = make(seed);
        struct vram_recording *recording = read_text(&made->json);
        for (int64_t event = 0; event < EVENTS; event += 97) {
            const struct vram_profile_options options = {.device = -1, .moment = VRAM_PROFILE_EVENT, .event = event};
            struct vr_profile subject;
            struct vr_grouping grouping;
            struct vr_group *groups = NULL;
            size_t count = 0, expected = 0;
            assert_int_equal(vr_profile_open(recording, &options, &subject, NULL), VRAM_OK);
            assert_int_equal(vr_profile_grouping(&subject, &options, &grouping, NULL), VRAM_OK);
            assert_int_equal(vr_grouping_sum(&grouping, subject.rows, subject.count, &groups, &count), VRAM_OK);
            for (size_t site = 0; site < SITES; site++) expected += made->count[event][site] != 0;
            assert_int_equal(count, expected);
            for (size_t i = 0; i < count; i++) {
                struct vr_text name = {0};
                unsigned line, site;
                vr_grouping_name(&grouping, groups[i].key, &name);
                assert_int_equal(sscanf(vr_text_string(&name), "model.py:%u:layer%u", &line, &site), 2);
                assert_true(groups[i].bytes == made->bytes[event][site] && groups[i].count == made->count[event][site]);
                if (i != 0) assert_true(groups[i - 1].bytes >= groups[i].bytes);
                vr_text_release(&name);
            }
            free(groups);
            vr_grouping_release(&grouping);
            vr_profile_close(&subject);
        }
        vram_recording_destroy(recording);
        free_made(made);
    }
}

// Parents precede their children, and larger siblings come first, even if all nodes are picked.
static void picks_are_in_order(const struct vr_stacktree *tree, size_t most) {
    uint32_t *nodes = NULL;
    size_t count = 0;
    assert_int_equal(vr_stacktree_pick(tree, 1, most, &nodes, &count), VRAM_OK);
    assert_int_equal(count, most);
    assert_int_equal(nodes[0], 0);
    for (size_t i = 1; i < count; i++) {
        const struct vr_tree_node *node = &tree->node[nodes[i]];
        bool parent_before = false;
        for (size_t k = 0; k < i; k++) {
            parent_before = parent_before || nodes[k] == node->parent;
            if (tree->node[nodes[k]].parent == node->parent) assert_true(tree->node[nodes[k]].bytes[0] >= node->bytes[0]);
        }
        assert_true(parent_before);
    }
    free(nodes);
}

// Every node holds the sum of its children and its own stacks; the picked ones are the largest.
static void a_tree_adds_up(void **state) {
    (void)state;
    struct made *made = make(11);
    struct vram_recording *recording = read_text(&made->json);
    for (unsigned up = 0; up < 2; up++) {
        const struct vram_profile_options options = {.device = -1};
        struct vr_profile subject;
        struct vr_stacktree tree;
        assert_int_equal(vr_profile_open(recording, &options, &subject, NULL), VRAM_OK);
        assert_int_equal(vr_stacktree_init(&tree, up == 1, false), VRAM_OK);
        assert_int_equal(vr_stacktree_add(&tree, subject.model, &subject.lifetimes, subject.rows, subject.count, 0), VRAM_OK);
        assert_true(tree.node[0].bytes[0] == subject.lifetimes.peak.bytes);
        for (size_t i = 0; i < tree.count; i++) {
            uint64_t bytes = tree.node[i].own[0];
            for (size_t k = 1; k < tree.count; k++) bytes += tree.node[k].parent == i ? tree.node[k].bytes[0] : 0;
            assert_true(bytes == tree.node[i].bytes[0]);
        }
        picks_are_in_order(&tree, 6);
        picks_are_in_order(&tree, tree.count);
        vr_stacktree_release(&tree);
        vr_profile_close(&subject);
    }
    vram_recording_destroy(recording);
    free_made(made);
}

// Makes one allocation per site. A shift moves every line, `extra` sites are added, sizes are multiplied.
static struct vram_recording *one_each(size_t sites, uint64_t factor, size_t line_shift) {
    struct vr_text text = {0};
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    for (size_t i = 0; i < sites; i++) put_event(&text, i == 0, "alloc", i, factor * 1000 * (i + 1), i, line_shift);
    // Without final blocks, a history is only consistent if every allocation is freed.
    for (size_t i = 0; i < sites; i++) put_event(&text, false, "free_requested", i, factor * 1000 * (i + 1), i, line_shift);
    vr_text_puts(&text, "]]}");
    struct vram_recording *recording = read_text(&text);
    vr_text_release(&text);
    return recording;
}

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static void a_difference_names_what_grew_and_what_moved(void **state) {
    (void)state;
    struct vram_recording *before = one_each(4, 1, 0), *after = one_each(5, 3, 2);
    struct vr_text text = {0};
    struct vram_diff_result result;
    const struct vram_diff diff = {.recording = {before, after}, .title = {"a", "b"}, .options = {{.device = -1}, {.device = -1}}};
    assert_int_equal(vram_diff_json(&diff, append, &text, &result, NULL), VRAM_OK);
    assert_int_equal(result.bytes[0], 1000 + 2000 + 3000 + 4000);
    assert_int_equal(result.bytes[1], 3 * (1000 + 2000 + 3000 + 4000 + 5000));
    assert_int_equal(result.most_grown_bytes, 15000);
    // The fifth is new; the others moved by two lines and are three times as large.
    const char *first = strstr(text.bytes, "model.py:42:layer4"), *second = strstr(text.bytes, "model.py:32:layer3");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    assert_non_null(strstr(second, "\"before_bytes\": 4000"));
    assert_non_null(strstr(second, "\"after_bytes\": 12000"));
    assert_non_null(strstr(second, "\"remark\": \"moved\""));
    assert_non_null(strstr(first, "\"remark\": \"new\""));
    vr_text_release(&text);
    vram_recording_destroy(before);
    vram_recording_destroy(after);
}

enum { STEPS = 12, PER_STEP = 30 };

// A loop: each step makes PER_STEP temporaries, replaces one buffer, and keeps `leaked` bytes.
static struct vram_recording *loop(uint64_t leaked) {
    struct vr_text text = {0};
    size_t next = 1000;
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    put_event(&text, true, "alloc", 1, 5000, 5, 0);
    for (size_t step = 0; step < STEPS; step++) {
        put_event(&text, false, "free_requested", 1, 5000, 5, 0);
        put_event(&text, false, "alloc", 1, 5000, 5, 0);
        for (size_t i = 0; i < PER_STEP; i++) {
            put_event(&text, false, "alloc", 2, 10000 + 512 * i, 1, 0);
            put_event(&text, false, "free_requested", 2, 10000 + 512 * i, 1, 0);
        }
        if (leaked != 0) put_event(&text, false, "alloc", next++, leaked, 3, 0);
    }
    // Free what the loop left, so that the history is complete without final blocks.
    if (leaked != 0) {
        for (size_t address = 1000; address < next; address++) put_event(&text, false, "free_requested", address, leaked, 3, 0);
    }
    put_event(&text, false, "free_requested", 1, 5000, 5, 0);
    vr_text_puts(&text, "]]}");
    struct vram_recording *recording = read_text(&text);
    vr_text_release(&text);
    return recording;
}

static size_t hunt(const struct vram_recording *recording, const struct vram_profile_options *options, struct vr_text *text) {
    size_t leaks = 99;
    text->length = 0;
    assert_int_equal(vram_leaks_json(recording, options, "loop", append, text, &leaks, NULL), VRAM_OK);
    return leaks;
}

static void a_leak_is_found_and_a_cache_is_not_one(void **state) {
    (void)state;
    struct vr_text text = {0};
    const struct vram_profile_options found = {.device = -1}, given = {.device = -1, .every_events = 2 + 2 * PER_STEP + 1};
    struct vram_recording *leaky = loop(700), *sound = loop(0);
    assert_int_equal(hunt(leaky, &found, &text), 1);
    assert_non_null(strstr(text.bytes, "\"steps_from\": \"repeated\""));
    assert_non_null(strstr(text.bytes, "model.py:30:layer3"));
    assert_non_null(strstr(text.bytes, "\"bytes_per_step\": 700"));
    assert_int_equal(hunt(sound, &found, &text), 0);
    assert_int_equal(hunt(sound, &given, &text), 0);
    vr_text_release(&text);
    vram_recording_destroy(leaky);
    vram_recording_destroy(sound);
}

// A C program that allocates through its own function. A step frees the previous step's memory, is marked, and allocates the same again,
// all in one microsecond; then it keeps `leaked` bytes, from a caller of its own.
static void put_wrapped(struct vr_text *text, const char *action, size_t address, uint64_t bytes, size_t time_us, const char *caller) {
    vr_text_printf(
        text,
        "%s{\"action\": \"%s\", \"addr\": %zu, \"size\": %llu, \"stream\": 0, \"time_us\": %zu, \"frames\": ["
        "{\"filename\": \"wrap.c\", \"line\": 5, \"name\": \"mal\"}, {\"filename\": \"main.c\", \"line\": 7, \"name\": \"%s\"}]}",
        text->bytes[text->length - 1] == '[' ? "" : ",", action, 4096 * (address + 1), (unsigned long long)bytes, time_us, caller);
}

static struct vram_recording *wrapped_loop(uint64_t leaked) {
    struct vr_text text = {0}, marks = {0};
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    for (size_t step = 0; step < STEPS; step++) {
        const size_t now = 100 * step + 50;
        for (size_t i = 0; i < PER_STEP && step != 0; i++) put_wrapped(&text, "free_requested", i, 40000, now, "activation");
        vr_text_printf(&marks, "%s{\"stage\": \"STEP\", \"name\": \"step\", \"device\": 0, \"time_us\": %zu}", step == 0 ? "" : ",", now);
        // The part allocated in the mark's microsecond varies.
        for (size_t i = 0; i < PER_STEP; i++) put_wrapped(&text, "alloc", i, 40000, now + (i < step * 7 % PER_STEP ? 0 : 1), "activation");
        if (leaked != 0) put_wrapped(&text, "alloc", 1000 + step, leaked, now + 2, "cache");
    }
    const size_t end = 100 * STEPS + 50;
    for (size_t i = 0; i < PER_STEP; i++) put_wrapped(&text, "free_requested", i, 40000, end, "activation");
    for (size_t step = 0; step < STEPS && leaked != 0; step++) put_wrapped(&text, "free_requested", 1000 + step, leaked, end, "cache");
    vr_text_printf(&text, "]], \"external_annotations\": [%s]}", vr_text_string(&marks));
    struct vram_recording *recording = read_text(&text);
    vr_text_release(&text);
    vr_text_release(&marks);
    return recording;
}

static void a_step_begins_where_least_is_live_in_its_microsecond(void **state) {
    (void)state;
    struct vr_text text = {0};
    struct vram_recording *leaky = wrapped_loop(700), *sound = wrapped_loop(0);
    const struct vram_profile_options found = {.device = -1, .by = "site"};
    assert_int_equal(hunt(leaky, &found, &text), 1);
    assert_non_null(strstr(text.bytes, "\"steps_from\": \"marked\""));
    assert_non_null(strstr(text.bytes, "\"bytes_per_step\": 700"));
    assert_int_equal(hunt(sound, &found, &text), 0);
    vr_text_release(&text);
    vram_recording_destroy(leaky);
    vram_recording_destroy(sound);
}

// Short-lived memory of varying sizes at the same call site hides the leak from an analysis of call sites only.
static void a_function_that_everybody_allocates_through_hides_no_leak(void **state) {
    (void)state;
    enum { LIFE = 4 };
    struct vr_text json = {0}, text = {0};
    size_t leaks = 99;
    vr_text_puts(&json, "{\"segments\": [], \"device_traces\": [[");
    for (size_t step = 0; step < STEPS; step++) {
        if (step >= LIFE) put_wrapped(&json, "free_requested", step % LIFE, 40000 + (step - LIFE) * 7919 % 30000, 100 * step + 1, "batch");
        put_wrapped(&json, "alloc", step % LIFE, 40000 + step * 7919 % 30000, 100 * step + 2, "batch");
        put_wrapped(&json, "alloc", 1000 + step, 700, 100 * step + 3, "cache");
    }
    for (size_t step = STEPS - LIFE; step < STEPS; step++)
        put_wrapped(&json, "free_requested", step % LIFE, 40000 + step * 7919 % 30000, 100 * STEPS, "batch");
    for (size_t step = 0; step < STEPS; step++) put_wrapped(&json, "free_requested", 1000 + step, 700, 100 * STEPS, "cache");
    vr_text_puts(&json, "]], \"external_annotations\": [");
    for (size_t step = 0; step < STEPS; step++) {
        vr_text_printf(&json, "%s{\"stage\": \"STEP\", \"name\": \"step\", \"device\": 0, \"time_us\": %zu}", step == 0 ? "" : ",",
                       100 * step);
    }
    vr_text_puts(&json, "]}");
    struct vram_recording *recording = read_text(&json);
    const struct vram_profile_options by_default = {.device = -1}, by_site = {.device = -1, .by = "site"};
    assert_int_equal(hunt(recording, &by_site, &text), 0);
    assert_int_equal(hunt(recording, &by_default, &text), 1);
    assert_non_null(strstr(text.bytes, "\"by\": \"stack\""));
    assert_non_null(strstr(text.bytes, "\"bytes_per_step\": 700"));
    text.length = 0;
    assert_int_equal(vram_leaks_text(recording, &by_default, "wrapped", NULL, append, &text, &leaks, NULL), VRAM_OK);
    assert_int_equal(leaks, 1);
    assert_non_null(strstr(vr_text_string(&text), "       cache  main.c:7\n"));
    vr_text_release(&text);
    vr_text_release(&json);
    vram_recording_destroy(recording);
}

// One pass through a model: every layer keeps some memory and borrows some; then all is freed.
static struct vram_recording *pass(size_t layers) {
    struct vr_text text = {0};
    vr_text_puts(&text, "{\"segments\":[],\"device_traces\":[[");
    for (size_t i = 0; i < layers; i++) {
        for (size_t k = 0; k < 6; k++) put_event(&text, i + k == 0, "alloc", 100 + 6 * i + k, 1000 * (k + 1), (uint32_t)k, 0);
        put_event(&text, false, "alloc", 1, 8000, 7, 0);
        put_event(&text, false, "free_requested", 1, 8000, 7, 0);
    }
    for (size_t i = layers; i-- > 0;) {
        for (size_t k = 6; k-- > 0;) put_event(&text, false, "free_requested", 100 + 6 * i + k, 1000 * (k + 1), (uint32_t)k, 0);
    }
    vr_text_puts(&text, "]]}");
    struct vram_recording *recording = read_text(&text);
    vr_text_release(&text);
    return recording;
}

static void layers_are_no_steps(void **state) {
    (void)state;
    struct vr_text text = {0};
    const struct vram_profile_options found = {.device = -1};
    struct vram_recording *layers = pass(40), *steep = loop(4000);
    assert_int_equal(hunt(layers, &found, &text), 0);
    assert_non_null(strstr(text.bytes, "\"steps_sure\": false"));
    // A leak is found in a loop even if it soon exceeds all other memory.
    assert_int_equal(hunt(steep, &found, &text), 1);
    assert_non_null(strstr(text.bytes, "\"steps_sure\": true"));
    assert_non_null(strstr(text.bytes, "\"bytes_per_step\": 4000"));
    vr_text_release(&text);
    vram_recording_destroy(layers);
    vram_recording_destroy(steep);
}

// Compares slopes and points with a fit over every point of the history.
static void growth_is_the_slope_of_the_points(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct made *made = make(seed);
        struct vram_recording *recording = read_text(&made->json);
        const struct vram_profile_options options = {.device = -1};
        const struct vr_step_wish wish = {.every = 50};
        struct vr_profile subject;
        struct vr_grouping grouping;
        struct vr_steps steps;
        struct vr_growth growth;
        assert_int_equal(vr_profile_open(recording, &options, &subject, NULL), VRAM_OK);
        assert_int_equal(vr_profile_grouping(&subject, &options, &grouping, NULL), VRAM_OK);
        assert_int_equal(vr_steps_find(subject.view, &wish, &steps), VRAM_OK);
        assert_int_equal(steps.count, EVENTS / 50);
        assert_int_equal(vr_growth_find(&grouping, &steps, SITES, &growth), VRAM_OK);
        assert_int_equal(growth.point_count, steps.count - 1);
        for (size_t i = 0; i < growth.count; i++) {
            const unsigned site = (unsigned)(subject.model->frames.line[growth.grower[i].key] / 10);
            double slope = 0, variance = 0;
            for (size_t p = 0; p < growth.point_count; p++) {
                const double away = (double)p - (double)(growth.point_count - 1) / 2;
                assert_true(growth.grower[i].bytes[p] == made->bytes[growth.point[p] - 1][site]);
                slope += away * (double)growth.grower[i].bytes[p];
                variance += away * away;
            }
            slope /= variance;
            if (growth.grower[i].verdict == VR_VERDICT_LEAK)
                slope = (double)growth.grower[i].kept_bytes / (double)growth.grower[i].course_points;
            assert_true(fabs(growth.grower[i].bytes_per_step - slope) < 0.001 * fabs(slope) + 1);
        }
        vr_growth_release(&growth);
        vr_steps_release(&steps);
        vr_grouping_release(&grouping);
        vr_profile_close(&subject);
        vram_recording_destroy(recording);
        free_made(made);
    }
}

static size_t found(struct vram_recording *recording, const char *text, bool regex) {
    const struct vram_profile_options options = {.device = -1};
    struct vr_profile subject;
    struct vr_search search;
    struct vram_report_sum lot = {0};
    assert_int_equal(vr_profile_open(recording, &options, &subject, NULL), VRAM_OK);
    assert_int_equal(vr_search_init(&search, subject.model, text, regex, NULL), VRAM_OK);
    uint8_t *bits = calloc(subject.lifetimes.count / 8 + 1, 1);
    vr_search_rows(&search, subject.view, &subject.lifetimes, bits, &lot);
    size_t set = 0;
    for (size_t i = 0; i < subject.lifetimes.count; i++) set += bits[i / 8] >> i % 8 & 1;
    assert_int_equal(set, lot.count);
    free(bits);
    vr_search_release(&search);
    vr_profile_close(&subject);
    return set;
}

static void a_search_finds_frames_addresses_and_labels(void **state) {
    (void)state;
    struct vram_recording *recording = one_each(5, 1, 0);
    assert_int_equal(found(recording, "LAYER3", false), 1);
    assert_int_equal(found(recording, "train.py:3:step", false), 5);
    assert_int_equal(found(recording, "model.py:[12]0:", true), 2);
    assert_int_equal(found(recording, "layer9", false), 0);
    assert_int_equal(found(recording, "0x1000", false), 1);
    assert_int_equal(found(recording, "b2000_0", false), 1);
    assert_int_equal(found(recording, "b2000_1", false), 0);
    // The byte in the middle of the block at 0x3000.
    assert_int_equal(found(recording, "0x3010", false), 1);
    vram_recording_destroy(recording);
}

static void expressions_that_could_run_away_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"", "(", "(a)\\1", "(a{1,200}){1,200}", "a{5000}", "[z-a]"};
    struct vr_finder finder;
    struct vram_error error;
    for (size_t i = 0; i < VR_COUNT_OF(bad); i++) {
        assert_int_equal(vr_finder_init(&finder, bad[i], true, &error), VRAM_INVALID_ARGUMENT);
        vr_finder_release(&finder);
    }
    char longest[300];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(vr_finder_init(&finder, longest, false, &error), VRAM_INVALID_ARGUMENT);
    vr_finder_release(&finder);
}

// Siblings are adjacent from their parent's left end, the largest first.
static void a_flame_graph_has_no_overlap(void **state) {
    (void)state;
    static const size_t bytes[] = {8192, 6144, 5120, 5120};
    struct vr_text json = {0}, svg = {0};
    vr_text_puts(&json, "{\"segments\": [], \"device_traces\": [[");
    for (size_t i = 0; i < VR_COUNT_OF(bytes); i++)
        vr_text_printf(
            &json,
            "%s{\"action\": \"alloc\", \"addr\": %zu, \"size\": %zu, \"stream\": 0, \"frames\": [{\"filename\": \"a.py\", \"line\": %zu, "
            "\"name\": \"inner%zu\"}, {\"filename\": \"a.py\", \"line\": 1, \"name\": \"outer%d\"}]}",
            i == 0 ? "" : ",", 1048576 * (i + 1), bytes[i], i, i, i != 0);
    vr_text_puts(&json, "]]}");
    struct vram_recording *recording = read_text(&json);
    const struct vram_profile_options options = {.device = -1};
    assert_int_equal(vram_flame_svg(recording, NULL, &options, "x", append, &svg, NULL), VRAM_OK);
    static const struct {
        const char *x, *width;
        int depth;
        const char *name;
    } boxes[] = {{"0.000000", "1.000000", 0, "all"},           {"0.000000", "0.666667", 1, "outer1 a.py:1"},
                 {"0.666667", "0.333333", 1, "outer0 a.py:1"}, {"0.000000", "0.250000", 2, "inner1 a.py:1"},
                 {"0.250000", "0.208333", 2, "inner2 a.py:2"}, {"0.458333", "0.208333", 2, "inner3 a.py:3"},
                 {"0.666667", "0.333333", 2, "inner0"}};
    for (size_t i = 0; i < VR_COUNT_OF(boxes); i++) {
        struct vr_text box = {0};
        vr_text_printf(&box, "<g data-x=\"%s\" data-w=\"%s\" data-d=\"%d\" data-n=\"%s\"", boxes[i].x, boxes[i].width, boxes[i].depth,
                       boxes[i].name);
        if (strstr(vr_text_string(&svg), vr_text_string(&box)) == NULL) fail_msg("no %s in %s", vr_text_string(&box), vr_text_string(&svg));
        vr_text_release(&box);
    }
    vr_text_release(&json);
    vr_text_release(&svg);
    vram_recording_destroy(recording);
}

static void a_private_pool_has_two_numbers(void **state) {
    (void)state;
    struct vr_text json = {0}, page = {0};
    vr_text_puts(
        &json,
        "{\"segments\": [{\"device\": 0, \"address\": 2097152, \"total_size\": 2097152, \"stream\": 0, \"segment_pool_id\": [3, 41], "
        "\"blocks\": [{\"address\": 2097152, \"size\": 2097152, \"requested_size\": 2097152, \"state\": \"active_allocated\"}]}, "
        "{\"device\": 0, \"address\": 8388608, \"total_size\": 4194304, \"stream\": 0, \"segment_pool_id\": [0, 0], \"blocks\": "
        "[{\"address\": 8388608, \"size\": 4194304, \"requested_size\": 4194304, \"state\": \"active_allocated\"}]}]}");
    struct vram_recording *recording = read_text(&json);
    const struct vram_profile_options options = {.device = -1, .by = "pool", .moment = VRAM_PROFILE_END};
    assert_int_equal(vram_profile_text(recording, &options, NULL, NULL, append, &page, NULL), VRAM_OK);
    assert_non_null(strstr(vr_text_string(&page), "default pool"));
    assert_non_null(strstr(vr_text_string(&page), "private pool (3, 41)"));
    vr_text_release(&json);
    vr_text_release(&page);
    vram_recording_destroy(recording);
}

static void a_flame_graph_without_change_is_grey(void **state) {
    (void)state;
    static const char text[] =
        "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096, \"size\": %d, \"stream\": 0, \"frames\": "
        "[{\"filename\": \"a.py\", \"line\": 1, \"name\": \"same\"}]}]]}";
    struct vr_text before = {0}, after = {0}, same = {0}, grown = {0};
    vr_text_printf(&before, text, 4096);
    vr_text_printf(&after, text, 8192);
    struct vram_recording *old = read_text(&before), *new = read_text(&after);
    const struct vram_profile_options options = {.device = -1};
    assert_int_equal(vram_flame_svg(old, old, &options, "x", append, &same, NULL), VRAM_OK);
    assert_int_equal(vram_flame_svg(new, old, &options, "x", append, &grown, NULL), VRAM_OK);
    const char *box = strstr(vr_text_string(&same), "data-n=\"same");
    assert_non_null(box);
    assert_non_null(strstr(box, "fill=\"#ebebeb\"")); // 35 % of #c8c8c8 on white
    box = strstr(vr_text_string(&grown), "data-n=\"same");
    assert_non_null(box);
    assert_null(strstr(box, "fill=\"#ebebeb\""));
    vr_text_release(&before);
    vr_text_release(&after);
    vr_text_release(&same);
    vr_text_release(&grown);
    vram_recording_destroy(old);
    vram_recording_destroy(new);
}

static void a_flame_graph_escapes_what_a_stranger_wrote(void **state) {
    (void)state;
    struct vr_text json = {0}, svg = {0};
    vr_text_puts(
        &json, "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096, \"size\": 7777, \"stream\": 0, \"frames\": "
               "[{\"filename\": \"a\", \"line\": 1, \"name\": \"</title><script>alert(1)</script>;]]>\\u001b[2J\"}]}, "
               "{\"action\": \"free_requested\", \"addr\": 4096, \"size\": 7777, \"stream\": 0, \"frames\": []}]]}");
    struct vram_recording *recording = read_text(&json);
    const struct vram_profile_options options = {.device = -1};
    assert_int_equal(vram_flame_svg(recording, NULL, &options, "<x>", append, &svg, NULL), VRAM_OK);
    assert_null(strstr(svg.bytes, "<script>alert"));
    assert_null(strstr(svg.bytes, "<x>"));
    assert_null(strchr(svg.bytes, '\x1b'));
    svg.length = 0;
    assert_int_equal(vram_flame_folded(recording, NULL, &options, append, &svg, NULL), VRAM_OK);
    // One line, one frame.
    assert_null(strchr(svg.bytes, ';'));
    assert_string_equal(svg.bytes + svg.length - 6, " 7777\n");
    vr_text_release(&json);
    vr_text_release(&svg);
    vram_recording_destroy(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_what_was_added_up),
        cmocka_unit_test(a_tree_adds_up),
        cmocka_unit_test(a_difference_names_what_grew_and_what_moved),
        cmocka_unit_test(a_leak_is_found_and_a_cache_is_not_one),
        cmocka_unit_test(a_step_begins_where_least_is_live_in_its_microsecond),
        cmocka_unit_test(a_function_that_everybody_allocates_through_hides_no_leak),
        cmocka_unit_test(layers_are_no_steps),
        cmocka_unit_test(growth_is_the_slope_of_the_points),
        cmocka_unit_test(a_search_finds_frames_addresses_and_labels),
        cmocka_unit_test(expressions_that_could_run_away_are_refused),
        cmocka_unit_test(a_flame_graph_escapes_what_a_stranger_wrote),
        cmocka_unit_test(a_flame_graph_without_change_is_grey),
        cmocka_unit_test(a_flame_graph_has_no_overlap),
        cmocka_unit_test(a_private_pool_has_two_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
