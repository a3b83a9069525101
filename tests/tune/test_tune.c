// Tests the search for settings, on recordings with known answers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/text.h"
#include "replay/option_strings.h"
#include "vram/recordings.h"
#include "vram/vram.h"

// A program that causes fragmentation: many blocks of 30 MiB, every other one freed, then blocks of 40 MiB that fit no hole. Live at the
// end: half of the first and all of the second.
enum { FIRST = 40, SECOND = 20 };

static void event(struct vr_text *json, const char *action, unsigned number, unsigned mib) {
    vr_text_printf(json, "%s{\"action\": \"%s\", \"addr\": %llu, \"size\": %llu, \"stream\": 0}",
                   json->bytes[json->length - 1] == '[' ? "" : ",", action, (1ull << 40) + number * (1ull << 30),
                   (unsigned long long)mib << 20);
}

// Every block had its own segment.
static void segments_left(struct vr_text *json) {
    for (unsigned i = 0; i < FIRST + SECOND; i++) {
        const unsigned mib = i < FIRST ? 30 : 40;
        const unsigned long long address = (1ull << 40) + i * (1ull << 30), bytes = (unsigned long long)mib << 20;
        vr_text_printf(json,
                       "%s{\"device\": 0, \"address\": %llu, \"total_size\": %llu, \"stream\": 0, \"segment_type\": \"large\", \"blocks\": "
                       "[{\"address\": %llu, \"size\": %llu, \"requested_size\": %llu, \"state\": \"%s\"}]}",
                       i == 0 ? "" : ",", address, bytes, address, bytes, bytes, i < FIRST && i % 2 == 1 ? "inactive" : "active_allocated");
    }
}

static struct vram_recording *fragmenting(void) {
    struct vr_text json = {0};
    struct vram_recording *recording = NULL;
    struct vram_error error = {0};
    vr_text_puts(&json, "{\"segments\": [");
    segments_left(&json);
    vr_text_puts(&json, "], \"device_traces\": [[");
    for (unsigned i = 0; i < FIRST; i++) event(&json, "alloc", i, 30);
    for (unsigned i = 1; i < FIRST; i += 2) {
        event(&json, "free_requested", i, 30);
        event(&json, "free_completed", i, 30);
    }
    for (unsigned i = 0; i < SECOND; i++) event(&json, "alloc", FIRST + i, 40);
    vr_text_puts(&json, "]]}");
    if (vram_recording_read_memory(json.bytes, json.length, "fragmenting", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    vr_text_release(&json);
    return recording;
}

static const struct vram_tune_setting *find(const struct vram_tune_result *result, const char *conf) {
    for (size_t i = 0; i < result->setting_count; i++) {
        if (!result->settings[i].today && strcmp(result->settings[i].conf, conf) == 0) return &result->settings[i];
    }
    fail_msg("'%s' was not tried", conf);
    return NULL;
}

#define MIB ((uint64_t)1 << 20)

// Replays the setting itself, without what the search inferred from other replays.
static bool completes_in(const struct vram_recording *recording, const struct vram_tune_setting *setting) {
    struct vram_whatif_result *played = NULL;
    const struct vram_whatif_options options = {.conf = setting->today ? NULL : setting->conf, .memory_bytes = setting->needed_bytes};
    assert_int_equal(VRAM_OK, vram_replay_whatif(recording, &options, &played, NULL));
    const bool finished = played->finished;
    vram_whatif_result_destroy(played);
    return finished;
}

// Replays with ample memory: settings that behave alike are tried once for all of them.
static void assert_is_as_played(const struct vram_recording *recording, const struct vram_tune_setting *setting) {
    struct vram_whatif_result *played = NULL;
    const struct vram_whatif_options options = {.conf = setting->today ? NULL : setting->conf};
    assert_int_equal(VRAM_OK, vram_replay_whatif(recording, &options, &played, NULL));
    assert_int_equal(played->device_count, 1);
    const struct vram_whatif_device *device = &played->devices[0];
    uint64_t calls = 0;
    for (size_t i = 0; i < device->call_count; i++) {
        static const char *const counted[] = {"cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap"};
        for (size_t n = 0; n < sizeof counted / sizeof *counted; n++)
            if (strcmp(device->calls[i].name, counted[n]) == 0) calls += device->calls[i].count;
    }
    if (setting->peak_reserved_bytes != device->peak_reserved_bytes || setting->peak_active_bytes != device->peak_active_bytes ||
        setting->driver_calls != calls || setting->driver_time_ns != device->driver_time_ns)
        fail_msg("'%s' is told to need something else than a replay shows", setting->conf);
    vram_whatif_result_destroy(played);
}

static void each_setting_comes_to_what_a_replay_shows(void **state) {
    (void)state;
    struct vram_recording *recording = fragmenting();
    const struct vram_recording *const one = recording;
    struct vram_tune_result *result = NULL;
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, NULL, &result, NULL));
    // No segment is larger than 40 MiB, and nothing is collected, so these equal the defaults.
    static const char *const alike[] = {"max_split_size_mb:64", "max_split_size_mb:1024", "garbage_collection_threshold:0.8"};
    for (size_t i = 0; i < result->setting_count; i++) {
        assert_is_as_played(recording, &result->settings[i]);
        assert_true(completes_in(recording, &result->settings[i]));
    }
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        assert_int_equal(find(result, alike[i])->needed_bytes, find(result, "")->needed_bytes);
    assert_int_not_equal(find(result, "max_split_size_mb:32")->needed_bytes, 0);
    // Otherwise seven or more replays each.
    assert_true(result->runs < 4 * result->setting_count);
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

static void what_is_needed_is_found(void **state) {
    (void)state;
    struct vram_recording *recording = fragmenting();
    const struct vram_recording *const one = recording;
    struct vram_tune_result *result = NULL;
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, NULL, &result, NULL));
    assert_int_equal(result->devices, 1);
    // The peak of live bytes: 20 of 30 MiB and 20 of 40 MiB, since the first 40 MiB come after the frees: 1400 MiB. Before, 1200.
    const struct vram_tune_setting *defaults = find(result, ""), *expandable = find(result, "expandable_segments:True");
    assert_int_equal(defaults->peak_active_bytes, 1400 * MIB);
    // The defaults reserve all the 30 MiB segments and the new ones; when memory is short they release the free segments.
    assert_int_equal(defaults->peak_reserved_bytes, (40 * 30 + 20 * 40) * MIB);
    assert_int_equal(defaults->needed_bytes, 1400 * MIB);
    // In a hole of 30 MiB, one page of 20 MiB can be released: 20 holes keep 10 MiB each.
    assert_int_equal(expandable->needed_bytes, (1400 + 20 * 10) * MIB);
    assert_int_equal(result->settings[result->best].needed_bytes, 1400 * MIB);
    assert_true(result->settings[0].today && strcmp(result->settings[0].conf, "") == 0);
    for (size_t i = 0; i < result->setting_count; i++) assert_true(completes_in(recording, &result->settings[i]));
    assert_in_range(result->runs, 1, 153); // 167 if every trial is replayed
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

static bool collect(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

// Two streams in turn, each needing what the other has just freed: half the memory suffices if it changes streams.
static void what_only_this_allocator_could_save_is_told_apart(void **state) {
    (void)state;
    struct vr_text json = {0};
    struct vram_recording *recording = NULL;
    struct vram_tune_result *result = NULL;
    vr_text_puts(&json, "{\"segments\": [");
    for (unsigned stream = 0; stream <= 32; stream += 32) {
        const unsigned long long address = (1ull << 40) + stream * (1ull << 30), bytes = 100ull << 20;
        vr_text_printf(
            &json,
            "%s{\"device\": 0, \"address\": %llu, \"total_size\": %llu, \"stream\": %u, \"segment_type\": \"large\", \"blocks\": "
            "[{\"address\": %llu, \"size\": %llu, \"requested_size\": 0, \"state\": \"inactive\"}]}",
            stream == 0 ? "" : ",", address, bytes, stream, address, bytes);
    }
    vr_text_puts(&json, "], \"device_traces\": [[");
    for (unsigned i = 0; i < 8; i++) {
        const unsigned stream = i % 2 * 32;
        for (int action = 0; action < 3; action++) {
            static const char *const actions[] = {"alloc", "free_requested", "free_completed"};
            vr_text_printf(&json, "%s{\"action\": \"%s\", \"addr\": %llu, \"size\": %llu, \"stream\": %u}",
                           i + (unsigned)action == 0 ? "" : ",", actions[action], (1ull << 40) + stream * (1ull << 30), 100ull << 20,
                           stream);
        }
    }
    vr_text_puts(&json, "]]}");
    assert_int_equal(VRAM_OK, vram_recording_read_memory(json.bytes, json.length, "streams", &recording, NULL));
    const struct vram_recording *const one = recording;
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, NULL, &result, NULL));
    const struct vram_tune_setting *reclaim = find(result, "reclaim_streams:True"), *today = &result->settings[0];
    assert_true(reclaim->beyond && find(result, "share_live_pools:True")->beyond && !today->beyond);
    assert_int_equal(today->peak_reserved_bytes, 200 * MIB);
    assert_int_equal(reclaim->peak_reserved_bytes, 100 * MIB);
    assert_int_equal(reclaim->driver_calls + 1, today->driver_calls);
    assert_false(result->settings[result->best].beyond);
    struct vr_text text = {0};
    assert_int_equal(VRAM_OK, vram_tune_text(result, "x", NULL, collect, &text));
    assert_non_null(strstr(vr_text_string(&text), "and one extra option:\n    reclaim_streams:True: needs as much, holds 100.0 MiB less, "
                                                  "driver calls: 1 less\n    share_live_pools:True: changes nothing here\n"));
    vr_text_release(&text);
    vr_text_release(&json);
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

static void a_memory_that_is_given_is_answered(void **state) {
    (void)state;
    struct vram_recording *recording = fragmenting();
    const struct vram_recording *const one = recording;
    struct vram_tune_result *result = NULL;
    struct vram_tune_options options = {.memory_bytes = 1500 * MIB, .threads = 3};
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, &options, &result, NULL));
    assert_true(result->settings[result->best].fits);
    assert_true(find(result, "")->fits && find(result, "")->retries != 0);
    vram_tune_result_destroy(result);
    options.memory_bytes = 1300 * MIB;
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, &options, &result, NULL));
    for (size_t i = 0; i < result->setting_count; i++) assert_false(result->settings[i].fits);
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

// With ample memory, an inferred result equals the replay's.
static void plenty_of_memory_comes_to_what_a_replay_in_it_does(void **state) {
    (void)state;
    struct vram_recording *recording = fragmenting();
    const struct vram_recording *const one = recording;
    struct vram_tune_result *result = NULL;
    const struct vram_tune_options options = {.memory_bytes = 8192 * MIB};
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, NULL, &result, NULL));
    const uint64_t runs = result->runs;
    vram_tune_result_destroy(result);
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, &options, &result, NULL));
    assert_in_range(result->runs, 1, runs - 1); // today's setting fits, so no other is searched
    for (size_t i = 0; i < result->setting_count; i++) {
        const struct vram_tune_setting *setting = &result->settings[i];
        const struct vram_whatif_options within = {.conf = setting->today ? NULL : setting->conf, .memory_bytes = options.memory_bytes};
        struct vram_whatif_result *replay = NULL;
        assert_int_equal(VRAM_OK, vram_replay_whatif(recording, &within, &replay, NULL));
        assert_int_equal(setting->fits, !replay->devices[0].out_of_memory);
        assert_int_equal(setting->driver_time_ns, replay->devices[0].driver_time_ns);
        assert_int_equal(setting->retries, replay->devices[0].retries);
        vram_whatif_result_destroy(replay);
    }
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

// Writes the result's text at a width; *widest is its widest line.
static struct vr_text text_of(const struct vram_tune_result *result, unsigned columns, size_t *widest) {
    const struct vram_style style = {.columns = columns};
    struct vr_text text = {0};
    assert_int_equal(VRAM_OK, vram_tune_text(result, NULL, &style, collect, &text));
    *widest = 0;
    for (const char *line = text.bytes; *line != '\0'; line += strcspn(line, "\n") + 1) {
        if (strcspn(line, "\n") > *widest) *widest = strcspn(line, "\n");
    }
    return text;
}

// If today's setting fits, even narrowly, nothing needs to change, and nothing else is searched.
static void todays_setting_stays_where_it_fits(void **state) {
    (void)state;
    struct vram_recording *recording = fragmenting();
    const struct vram_recording *const one = recording;
    for (uint64_t memory_bytes = 1402 * MIB; memory_bytes <= 2000 * MIB; memory_bytes += 50 * MIB) {
        struct vram_tune_result *result = NULL;
        const struct vram_tune_options options = {.memory_bytes = memory_bytes};
        assert_int_equal(VRAM_OK, vram_tune(&one, 1, &options, &result, NULL));
        assert_int_equal(result->best, 0);
        for (size_t i = 0; i < result->setting_count; i++) {
            const struct vram_tune_setting *setting = &result->settings[i];
            assert_int_equal(setting->fits_with_room, setting->fits && setting->needed_bytes <= memory_bytes - memory_bytes / 16);
            assert_true(i < 2 || setting->beyond);
        }
        vram_tune_result_destroy(result);
    }
    vram_recording_destroy(recording);
}

// The recorded live bytes are the lower bound, even if blocks were larger: 20 of 30 and 20 of 40 MiB.
static void the_floor_is_what_was_live(void **state) {
    (void)state;
    struct vram_recording *recording = fragmenting();
    const struct vram_recording *const one = recording;
    struct vram_tune_result *result = NULL;
    assert_int_equal(VRAM_OK, vram_tune(&one, 1, NULL, &result, NULL));
    assert_int_equal(result->live_bytes, 1400 * MIB);
    assert_int_equal(result->active_bytes, 1400 * MIB);
    // Today's setting needs the minimum, but reserves 2000 MiB with ample memory: pages reserve less, and need more.
    const struct vram_tune_setting *best = &result->settings[result->best];
    assert_true(best->needed_bytes <= result->settings[0].needed_bytes);
    assert_true(best->peak_reserved_bytes <= result->settings[0].peak_reserved_bytes);
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

// Opens a recording from the folder of cases, if it exists; NULL: skipped.
static struct vram_recording *case_of(const char *name) {
    char path[512];
    const char *folder = getenv("VRAM_CASES");
    struct vram_recording *recording = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", folder == NULL ? "" : folder, name);
    if (folder == NULL || vram_recording_read_file(path, &recording, NULL) != VRAM_OK) return NULL;
    return recording;
}

static struct vram_tune_result *tuned(const struct vram_recording *recording, uint64_t memory_bytes) {
    struct vram_tune_result *result = NULL;
    const struct vram_tune_options options = {.memory_bytes = memory_bytes};
    assert_int_equal(VRAM_OK, vram_tune(&recording, 1, &options, &result, NULL));
    return result;
}

// One option string needs 1.4 GiB less than today's and reserves 38.9 GiB more: never the answer.
static void no_answer_holds_more_than_today(void **state) {
    (void)state;
    struct vram_recording *recording = case_of("tune_holds.vram");
    if (recording == NULL) skip();
    struct vram_tune_result *result = tuned(recording, 0);
    assert_string_equal(result->settings[result->best].conf, "expandable_segments:True");
    assert_true(result->settings[result->best].peak_reserved_bytes < result->settings[0].peak_reserved_bytes);
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

// 890,241,024 bytes are live, in blocks of 900 MiB.
static void blocks_are_not_what_is_live(void **state) {
    (void)state;
    struct vram_recording *recording = case_of("tune_floor.pickle");
    if (recording == NULL) skip();
    struct vram_tune_result *result = tuned(recording, 0);
    assert_int_equal(result->live_bytes, 890241024);
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

// Freed memory that waits for another stream is not live.
static void what_waits_is_not_live(void **state) {
    (void)state;
    struct vram_recording *recording = case_of("recstream.pickle");
    if (recording == NULL) skip();
    struct vram_tune_result *result = tuned(recording, 0);
    size_t widest;
    struct vr_text text = {0};
    assert_int_equal(result->live_bytes, 256 * MIB);
    assert_int_equal(result->active_bytes, 1536 * MIB);
    text = text_of(result, 80, &widest);
    assert_non_null(strstr(text.bytes, "256.0 MiB is live at the peak; no setting can go below that."));
    assert_non_null(strstr(text.bytes, "1.2 GiB more was freed but was waiting for other streams"));
    assert_true(widest <= 80);
    vr_text_release(&text);
    vram_tune_result_destroy(result);
    vram_recording_destroy(recording);
}

static void threads_change_nothing(void **state) {
    (void)state;
    struct vram_recording *recording = fragmenting();
    const struct vram_recording *const two[] = {recording, recording};
    struct vr_text first = {0}, other = {0};
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        const struct vram_tune_options options = {.threads = threads};
        struct vram_tune_result *result = NULL;
        assert_int_equal(VRAM_OK, vram_tune(two, 2, &options, &result, NULL));
        assert_int_equal(VRAM_OK, vram_tune_json(result, NULL, collect, threads == 1 ? &first : &other));
        vram_tune_result_destroy(result);
    }
    assert_string_equal(first.bytes, other.bytes);
    vr_text_release(&first);
    vr_text_release(&other);
    vram_recording_destroy(recording);
}

static void names_of_settings_are_never_cut(void **state) {
    (void)state;
    char confs[][80] = {"", "expandable_segments:True,roundup_power2_divisions:16",
                        "max_split_size_mb:128,garbage_collection_threshold:0.8"};
    struct vram_tune_setting settings[3];
    for (size_t i = 0; i < 3; i++)
        settings[i] = (struct vram_tune_setting){
            .conf = confs[i], .today = i == 0, .needed_bytes = (1000 + i) * MIB, .peak_reserved_bytes = 1100 * MIB, .driver_calls = 12345};
    for (unsigned columns = 80; columns <= 140; columns += 20) {
        for (uint64_t memory = 0; memory <= 24000 * MIB; memory += 24000 * MIB) {
            const struct vram_tune_result result = {.variable = "PYTORCH_CUDA_ALLOC_CONF",
                                                    .settings = settings,
                                                    .setting_count = 3,
                                                    .best = 1,
                                                    .cheaper = VRAM_TUNE_NONE,
                                                    .memory_bytes = memory};
            size_t widest;
            struct vr_text text = text_of(&result, columns, &widest);
            assert_null(strstr(text.bytes, "..."));
            assert_non_null(strstr(text.bytes, "expandable_segments:True,"));
            assert_non_null(strstr(text.bytes, "roundup_power2_divisions:16"));
            assert_true(widest <= columns);
            assert_true((strstr(text.bytes, "retries") != NULL) == (memory != 0));
            vr_text_release(&text);
        }
    }
}

static void a_gain_below_one_percent_is_none(void **state) {
    (void)state;
    char today[] = "", best[] = "expandable_segments:True";
    static const char nothing[] = "Today's setting is within 1 %: nothing worth changing.", paste[] = "PYTORCH_CUDA_ALLOC_CONF=expandable";
    for (uint64_t more = 0; more <= 20; more++) {
        struct vram_tune_setting settings[] = {{.conf = today, .today = true, .needed_bytes = (1000 + more) * MIB},
                                               {.conf = best, .needed_bytes = 1000 * MIB}};
        const struct vram_tune_result result = {
            .settings = settings, .setting_count = 2, .best = 1, .cheaper = VRAM_TUNE_NONE, .variable = "PYTORCH_CUDA_ALLOC_CONF"};
        size_t widest;
        struct vr_text text = text_of(&result, 80, &widest);
        assert_true((strstr(text.bytes, nothing) != NULL) == (more <= 10));
        assert_true((strstr(text.bytes, paste) != NULL) == (more > 10));
        vr_text_release(&text);
    }
}

static void what_fits_already_needs_no_change(void **state) {
    (void)state;
    char today[] = "", best[] = "max_split_size_mb:128";
    static const char nothing[] = "It fits in 1.5 GiB with today's setting: nothing to change.", paste[] = "PYTORCH_CUDA_ALLOC_CONF=max";
    for (unsigned fits = 0; fits < 2; fits++) {
        struct vram_tune_setting settings[] = {
            {.conf = today, .today = true, .fits = fits != 0, .needed_bytes = 2000 * MIB, .driver_time_ns = 2000, .retries = 3},
            {.conf = best, .fits = true, .needed_bytes = 1000 * MIB, .driver_time_ns = 1000}};
        const struct vram_tune_result result = {.variable = "PYTORCH_CUDA_ALLOC_CONF",
                                                .settings = settings,
                                                .setting_count = 2,
                                                .best = 1,
                                                .cheaper = VRAM_TUNE_NONE,
                                                .memory_bytes = 1536 * MIB};
        size_t widest;
        struct vr_text text = text_of(&result, 80, &widest);
        assert_true((strstr(text.bytes, nothing) != NULL) == (fits != 0));
        assert_true((strstr(text.bytes, "releases its whole cache 3 times") != NULL) == (fits != 0));
        assert_true((strstr(text.bytes, paste) != NULL) == (fits == 0));
        vr_text_release(&text);
    }
}

static void what_fits_with_nothing_has_no_line_to_paste(void **state) {
    (void)state;
    char today[] = "", best[] = "max_split_size_mb:128";
    struct vram_tune_setting settings[] = {{.conf = today, .today = true, .needed_bytes = 2000 * MIB},
                                           {.conf = best, .needed_bytes = 1700 * MIB}};
    const struct vram_tune_result result = {.variable = "PYTORCH_CUDA_ALLOC_CONF",
                                            .settings = settings,
                                            .setting_count = 2,
                                            .best = 1,
                                            .cheaper = VRAM_TUNE_NONE,
                                            .live_bytes = 1600 * MIB,
                                            .memory_bytes = 1536 * MIB};
    size_t widest;
    struct vr_text text = text_of(&result, 80, &widest);
    assert_non_null(strstr(text.bytes, "Nothing fits in 1.5 GiB."));
    assert_non_null(strstr(text.bytes, "max_split_size_mb:128 comes closest:\n  it needs 1.7 GiB per device."));
    assert_non_null(strstr(text.bytes, "exceeds it by 64.0 MiB"));
    assert_null(strstr(text.bytes, "PYTORCH_CUDA_ALLOC_CONF="));
    vr_text_release(&text);
}

// Two parts: what a program needs, and what it reserves with ample memory.
static void what_is_held_in_vain_is_said(void **state) {
    (void)state;
    char today[] = "", less[] = "expandable_segments:True";
    struct vram_tune_setting settings[] = {{.conf = today, .today = true, .needed_bytes = 300 * MIB, .peak_reserved_bytes = 3584 * MIB},
                                           {.conf = less, .needed_bytes = 300 * MIB, .peak_reserved_bytes = 512 * MIB}};
    struct vram_tune_result result = {
        .settings = settings, .setting_count = 2, .holds_less = 1, .cheaper = VRAM_TUNE_NONE, .variable = "PYTORCH_CUDA_ALLOC_CONF"};
    size_t widest;
    struct vr_text text = text_of(&result, 80, &widest);
    assert_non_null(strstr(text.bytes, "but it holds\n  3.5 GiB with memory to spare. This setting holds less:\n"));
    assert_non_null(strstr(text.bytes, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
    vr_text_release(&text);
    result.holds_less = VRAM_TUNE_NONE;
    text = text_of(&result, 80, &widest);
    assert_non_null(strstr(text.bytes, "Today's setting holds 3.5 GiB with memory to spare: 3.2 GiB more than\n"));
    assert_null(strstr(text.bytes, "PYTORCH_CUDA_ALLOC_CONF="));
    vr_text_release(&text);
}

// The same choice for every question: the least need, within 1 %, then the fewest reserved bytes, then the most common setting.
static void ties_go_to_what_holds_less(void **state) {
    (void)state;
    static const struct {
        uint64_t needed[3], held[3], most_held;
        size_t choice;
    } cases[] = {
        {{1000, 1005, 1002}, {3000, 1500, 2000}, UINT64_MAX, 1}, {{1000, 1005, 1002}, {2000, 2010, 1990}, UINT64_MAX, 0},
        {{1000, 900, 950}, {1000, 3000, 1000}, 2000, 2},         {{1000, 900, 950}, {3000, 3000, 3000}, 2000, 1},
        {{1000, 985, 1100}, {1000, 1000, 500}, UINT64_MAX, 1},
    };
    static const size_t rows[] = {0, 1, 2};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vram_tune_setting settings[3];
        for (size_t s = 0; s < 3; s++)
            settings[s] =
                (struct vram_tune_setting){.needed_bytes = cases[i].needed[s] * MIB, .peak_reserved_bytes = cases[i].held[s] * MIB};
        const uint64_t most = cases[i].most_held == UINT64_MAX ? UINT64_MAX : cases[i].most_held * MIB;
        assert_int_equal(vr_choose_setting(settings, rows, 3, most), cases[i].choice);
    }
}

static void nothing_to_tune_is_said(void **state) {
    (void)state;
    static const char empty[] = "{\"segments\": [], \"device_traces\": []}";
    struct vram_recording *recording = NULL;
    struct vram_tune_result *result = NULL;
    struct vram_error error = {0};
    assert_int_equal(VRAM_OK, vram_recording_read_memory(empty, strlen(empty), "empty", &recording, NULL));
    const struct vram_recording *const one = recording;
    assert_int_equal(VRAM_BAD_INPUT, vram_tune(&one, 1, NULL, &result, &error));
    assert_non_null(strstr(error.message, "nothing to tune"));
    assert_null(result);
    vram_recording_destroy(recording);
}

// More than any device has is not replayed: 271 bytes of a log with four live TiB would make two million pages repeatedly.
static void more_than_any_device_holds_is_refused(void **state) {
    (void)state;
    struct vr_text log = {0};
    struct vram_recording *recording = NULL;
    struct vram_tune_result *result = NULL;
    struct vram_whatif_result *played = NULL;
    struct vram_error error = {0};
    vr_text_puts(&log, "Thread,Time,Action,Pointer,Size,Stream\n");
    for (unsigned i = 0; i < 4; i++)
        vr_text_printf(&log, "1,00:00:00.%06u,allocate,0x%llx,%llu,0\n", i, 0x7F0000000000ull + (i * (1ull << 40)), 1ull << 40);
    assert_int_equal(VRAM_OK, vram_recording_read_memory(log.bytes, log.length, "log.csv", &recording, NULL));
    const struct vram_recording *const one = recording;
    assert_int_equal(VRAM_BAD_INPUT, vram_tune(&one, 1, NULL, &result, &error));
    assert_non_null(strstr(error.message, "nothing to tune"));
    const struct vram_whatif_options options = {.conf = "paged:True", .memory_bytes = 8ull << 40};
    assert_int_equal(VRAM_OK, vram_replay_whatif(recording, &options, &played, NULL));
    assert_true(played->devices[0].contradiction);
    assert_string_equal(played->devices[0].reason, "more than 1.0 TiB is live after event 1, more than any device has");
    vram_whatif_result_destroy(played);
    vram_recording_destroy(recording);
    vr_text_release(&log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_setting_comes_to_what_a_replay_shows),
        cmocka_unit_test(what_is_needed_is_found),
        cmocka_unit_test(what_only_this_allocator_could_save_is_told_apart),
        cmocka_unit_test(a_memory_that_is_given_is_answered),
        cmocka_unit_test(plenty_of_memory_comes_to_what_a_replay_in_it_does),
        cmocka_unit_test(todays_setting_stays_where_it_fits),
        cmocka_unit_test(the_floor_is_what_was_live),
        cmocka_unit_test(no_answer_holds_more_than_today),
        cmocka_unit_test(blocks_are_not_what_is_live),
        cmocka_unit_test(what_waits_is_not_live),
        cmocka_unit_test(what_fits_with_nothing_has_no_line_to_paste),
        cmocka_unit_test(what_is_held_in_vain_is_said),
        cmocka_unit_test(ties_go_to_what_holds_less),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(names_of_settings_are_never_cut),
        cmocka_unit_test(a_gain_below_one_percent_is_none),
        cmocka_unit_test(nothing_to_tune_is_said),
        cmocka_unit_test(more_than_any_device_holds_is_refused),
        cmocka_unit_test(what_fits_already_needs_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
