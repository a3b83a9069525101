// Tests the sentences for handmade facts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/text.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"
#include "vram/demand.h"
#include "vram/profile.h"
#include "vram/recording.h"
#include "vram/replay.h"

#define MIB ((uint64_t)1 << 20)

static bool keep(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static void says(const struct vr_text *text, const char *part) {
    if (strstr(vr_text_string(text), part) == NULL) fail_msg("no \"%s\" in\n%s", part, vr_text_string(text));
}

static void differences_are_counted(void **state) {
    (void)state;
    struct vram_difference differences[2] = {{.kind = VRAM_DIFFERENT_OOM, .event_index = 7, .size_bytes = 2 * MIB},
                                             {.kind = VRAM_DIFFERENT_FINAL_BLOCK, .event_index = VRAM_NO_OFFSET, .size_bytes = MIB}};
    static const char *const parts[] = {NULL, "  device 3: 1 difference:\n    event 7, 2.0 MiB",
                                        "  device 3: 2 differences:\n    event 7, 2.0 MiB",
                                        "  device 3: 3 differences; the first:\n    event 7, 2.0 MiB"};
    for (size_t count = 0; count < VR_COUNT_OF(parts); count++) {
        struct vram_exact_device device = {.device = 3, .events = 9, .difference_count = count, .differences = differences};
        device.differences_kept = count < 2 ? count : 2;
        const struct vram_exact_result result = {.devices = &device, .device_count = 1, .conf = (char[]){""}, .recorded_conf = true};
        struct vr_text text = {0};
        assert_int_equal(vram_exact_text(&result, "x", NULL, keep, &text), VRAM_OK);
        if (parts[count] != NULL) says(&text, parts[count]);
        assert_int_equal(strstr(vr_text_string(&text), "difference") != NULL, count != 0);
        assert_int_equal(strstr(vr_text_string(&text), "at the end, 1.0 MiB") != NULL, count > 1);
        vr_text_release(&text);
    }
}

static void whose_rules_were_followed(void **state) {
    (void)state;
    static const struct {
        enum vram_rules_source by;
        const char *text, *json;
    } cases[] = {
        {VRAM_RULES_BY_KEYS, NULL, "\"pytorch_by\": \"keys\""},
        {VRAM_RULES_BY_EVENTS, "rules of PyTorch 2.6, inferred from the events; the keys indicate another version\n",
         "\"pytorch_by\": \"events\""},
        {VRAM_RULES_BY_CONF, "rules of PyTorch 2.6, as requested\n", "\"pytorch_by\": \"conf\""},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vram_exact_device device = {.events = 9};
        const struct vram_exact_result result = {
            .devices = &device, .device_count = 1, .conf = (char[]){""}, .pytorch = "2.6", .pytorch_by = cases[i].by};
        struct vr_text text = {0}, json = {0};
        assert_int_equal(vram_exact_text(&result, "x", NULL, keep, &text), VRAM_OK);
        assert_int_equal(vram_exact_json(&result, "x", keep, &json), VRAM_OK);
        if (cases[i].text != NULL) says(&text, cases[i].text);
        assert_int_equal(strstr(vr_text_string(&text), "rules of PyTorch") != NULL, cases[i].text != NULL);
        says(&json, cases[i].json);
        vr_text_release(&text);
        vr_text_release(&json);
    }
    assert_string_equal(vram_rules_source_name((enum vram_rules_source)3), "unknown");
}

// Live bytes are named only if they alone exceed the available memory. A setting beyond PyTorch is named by its option.
static void nothing_fits(void **state) {
    (void)state;
    static const struct {
        uint64_t live;
        const char *text;
        bool exceeds;
    } cases[] = {{3 * MIB, "  it needs 6.0 MiB per device.\n", false},
                 {4 * MIB, "  it needs 6.0 MiB per device.\n", false},
                 {5 * MIB, "  Live memory at the peak alone exceeds it by 1.0 MiB.\n", true}};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vram_tune_setting settings[] = {
            {.conf = (char[]){"max_split_size_mb:64,expandable_segments:True"}, .today = true},
            {.conf = (char[]){""}},
            {.conf = (char[]){"max_split_size_mb:64,expandable_segments:True,reclaim_streams:True"}, .beyond = true}};
        for (size_t k = 0; k < VR_COUNT_OF(settings); k++) {
            settings[k].needed_bytes = (k == 0 ? 6 : 8) * MIB;
            settings[k].peak_active_bytes = cases[i].live;
        }
        const struct vram_tune_result result = {.settings = settings,
                                                .setting_count = VR_COUNT_OF(settings),
                                                .cheaper = VRAM_TUNE_NONE,
                                                .memory_bytes = 4 * MIB,
                                                .live_bytes = cases[i].live,
                                                .devices = 1,
                                                .variable = "PYTORCH_CUDA_ALLOC_CONF"};
        struct vr_text text = {0};
        assert_int_equal(vram_tune_text(&result, "x", NULL, keep, &text), VRAM_OK);
        says(&text, "\n  Nothing fits in 4.0 MiB.\n  Today's setting comes closest:\n");
        says(&text, cases[i].text);
        assert_int_equal(strstr(vr_text_string(&text), "exceeds it by") != NULL, cases[i].exceeds);
        says(&text, "\n    reclaim_streams:True: needs 2.0 MiB more, ");
        vr_text_release(&text);
    }
}

// A demand names the holders with at least a quarter of the first one's bytes.
static void demands_name_their_sites(void **state) {
    (void)state;
    static const struct vram_report_group sites[] = {
        {.name = "a.py:1:f", .bytes = 8 * MIB}, {.name = "b.py:2:g", .bytes = 2 * MIB}, {.name = "c.py:3:h", .bytes = MIB}};
    static const struct {
        enum vram_demand demand;
        const char *before_sites;
    } cases[] = {{VRAM_DEMAND_RETAINED, ", most allocated by "},    {VRAM_DEMAND_GROWTH, ", allocated by "},
                 {VRAM_DEMAND_NOT_TRAINED, ", most allocated by "}, {VRAM_DEMAND_FIRST_STEP, ", allocated by "},
                 {VRAM_DEMAND_ROUNDING, ", most allocated by "},    {VRAM_DEMAND_ROLE, ", most allocated by "},
                 {VRAM_DEMAND_CALLER, ", most allocated by "}};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_arena arena = {0};
        struct vr_text text = {0};
        const struct vram_report_demand demand = {.demand = cases[i].demand,
                                                  .role = VRAM_ROLE_ACTIVATIONS,
                                                  .bytes = 11 * MIB,
                                                  .in_use_bytes = 20 * MIB,
                                                  .phase = "",
                                                  .sites = sites,
                                                  .site_count = VR_COUNT_OF(sites)};
        assert_int_equal(vr_demand_sentences(&arena, &demand), VRAM_OK);
        vr_text_printf(&text, "%sa.py:1:f (8.0 MiB) and b.py:2:g (2.0 MiB)", cases[i].before_sites);
        const size_t length = strlen(demand.text);
        assert_true(length > text.length);
        assert_string_equal(demand.text + length - text.length, vr_text_string(&text));
        vr_text_release(&text);
        vr_arena_release(&arena);
    }
}

// A refusal of pinned memory gives the system's remaining memory, or says that it is unknown.
static void refused_pinned_memory(void **state) {
    (void)state;
    static const struct {
        uint64_t total, available;
        const char *text;
    } cases[] = {
        {0, 0,
         "pinned host memory ran out, not the device's: 6.0 MiB was pinned when a request for 8.0 MiB more failed; the recording does not "
         "say how much "
         "the system had available"},
        {64 * MIB, 7 * MIB,
         "pinned host memory ran out, not the device's: 6.0 MiB was pinned, and the system had 7.0 MiB available, less than the 8.0 MiB "
         "requested"},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_arena arena = {0};
        const struct vram_report_oom oom = {.size_bytes = 8 * MIB,
                                            .is_host = true,
                                            .has_picture = true,
                                            .cause = VRAM_OOM_FULL,
                                            .allocated_bytes = 5 * MIB,
                                            .pending_bytes = MIB,
                                            .device_total_bytes = cases[i].total,
                                            .has_device_free = cases[i].total != 0,
                                            .device_free_bytes = cases[i].available};
        const struct vram_report_device device = {.is_host = true, .platform = "", .ooms = &oom, .oom_count = 1};
        assert_int_equal(vr_oom_sentences(&arena, &device), VRAM_OK);
        assert_string_equal(oom.text, cases[i].text);
        vr_arena_release(&arena);
    }
}

// Sites without a source line are named by their function or library, even after a stack number.
static void sites_are_shortened(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"model.py:12:forward", "model.py:12:forward"},
        {"gemm.cc:0:at::mm(int, int)", "at::mm"},
        {"/lib/libcuda.so.1:0:0x38b00", "libcuda.so.1+0x38b00"},
        {"stack 12: model.py:12:forward", "stack 12: model.py:12:forward"},
        {"stack 12: gemm.cc:0:at::mm(int, int)", "stack 12: at::mm"},
        {"stack 12: /lib/libcuda.so.1:0:0x38b00", "stack 12: libcuda.so.1+0x38b00"},
        {"stack 12.cc:0:f", "f"},
        {"stack : gemm.cc:0:f", "stack : f"},
        {"stack 1", "stack 1"},
        {"model.py:0:<module>", "model.py:0:<module>"},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_text text = {0};
        vr_text_site(&text, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(vr_text_string(&text), cases[i][1]);
        vr_text_release(&text);
    }
}

static void a_timeline_has_a_bold_title(void **state) {
    (void)state;
    static const struct vram_style colour = {.colour = true};
    const struct vram_report report = {.generation = ""};
    struct vr_text plain = {0}, coloured = {0};
    assert_int_equal(vram_timeline_text(&report, "my run", 8, NULL, keep, &plain), VRAM_OK);
    assert_string_equal(vr_text_string(&plain), "my run\n");
    assert_int_equal(vram_timeline_text(&report, "my run", 8, &colour, keep, &coloured), VRAM_OK);
    assert_string_equal(vr_text_string(&coloured), "\x1b[1mmy run\x1b[0m\n");
    vr_text_release(&plain);
    vr_text_release(&coloured);
}

// The marks form a column, so the text after them is aligned.
static void remedies_at_the_peak_are_aligned(void **state) {
    (void)state;
    static const struct vram_style plain = {.columns = 100};
    static const struct vram_report_remedy remedies[] = {{.text = "first"}, {.text = "second"}};
    struct vram_report_demand demand = {.in_use_bytes = 4 * MIB, .phase = "forward", .remedies = remedies, .remedy_count = 2};
    struct vr_text text = {0};
    demand.of_role[VRAM_ROLE_PARAMETERS].bytes = demand.of_role[VRAM_ROLE_ACTIVATIONS].bytes = 2 * MIB;
    vr_demand_at_peak(&text, &plain, &demand);
    says(&text, "The peak  in the forward pass\n");
    says(&text, "\n    holds  parameters 2.0 MiB (50.0 %), activations 2.0 MiB (50.0 %)\n    less   first\n    or     second\n");
    vr_text_release(&text);
}

// Makes a run of `size`, with weights and memory proportional to the size; with `other`, its peak is at a point that no other run reaches.
static struct vram_recording *run_of(uint64_t size, bool other) {
    struct vr_text json = {0};
    struct vram_recording *recording = NULL;
    static const char event[] =
        "{\"action\": \"alloc\", \"addr\": %d, \"size\": %llu, \"stream\": 0, \"frames\": [{\"filename\": \"model.py\", "
        "\"line\": %d, \"name\": \"%s\"}]},";
    vr_text_puts(&json, "{\"segments\": [], \"device_traces\": [[");
    vr_text_printf(&json, event, 4096, (unsigned long long)(4 * MIB), 1, "load");
    vr_text_printf(&json, event, 8388608, (unsigned long long)(size * MIB), 2, "forward");
    if (other) vr_text_printf(&json, event, 1 << 30, (unsigned long long)MIB, 3, "backward");
    json.length--;
    vr_text_puts(&json, "]]}");
    assert_int_equal(vram_recording_read_memory(json.bytes, json.length, "made", &recording, NULL), VRAM_OK);
    vr_text_release(&json);
    return recording;
}

// Text and JSON agree; only a peak that not every run has is reported as one that cannot be extrapolated.
static void forecasts_of_two_runs(void **state) {
    (void)state;
    for (int other = 0; other < 2; other++) {
        const struct vram_forecast asked = {
            .recording = {run_of(2, false), run_of(8, other == 1)}, .size = {2, 8}, .count = 2, .wanted = 16, .options = {.device = -1}};
        struct vram_forecast_result of_text = {0}, of_json = {0};
        struct vr_text text = {0}, json = {0};
        assert_int_equal(vram_forecast_text(&asked, NULL, keep, &text, &of_text, NULL), VRAM_OK);
        assert_int_equal(vram_forecast_json(&asked, keep, &json, &of_json, NULL), VRAM_OK);
        assert_memory_equal(&of_text, &of_json, sizeof of_text);
        if (other == 0) {
            assert_int_equal(of_json.allocated_bytes, 20 * MIB);
            says(&text, "\nat 16\n  allocated   20.0 MiB  (");
            says(&json, "\"allocated_bytes\": 20971520,");
        }
        assert_int_equal(strstr(vr_text_string(&text), "that peak cannot be extrapolated") != NULL, other == 1);
        says(&json, other == 1 ? "\"peaks_followed\": false" : "\"peaks_followed\": true");
        for (size_t i = 0; i < asked.count; i++) vram_recording_destroy((struct vram_recording *)(uintptr_t)asked.recording[i]);
        vr_text_release(&text);
        vr_text_release(&json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_counted),
        cmocka_unit_test(whose_rules_were_followed),
        cmocka_unit_test(nothing_fits),
        cmocka_unit_test(demands_name_their_sites),
        cmocka_unit_test(refused_pinned_memory),
        cmocka_unit_test(sites_are_shortened),
        cmocka_unit_test(a_timeline_has_a_bold_title),
        cmocka_unit_test(remedies_at_the_peak_are_aligned),
        cmocka_unit_test(forecasts_of_two_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
