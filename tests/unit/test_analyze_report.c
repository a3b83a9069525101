// Tests whole reports of small recordings: causes of out-of-memory events, usage, remarks, ties, limits, failing sinks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/text.h"
#include "vram/recording.h"
#include "vram/report.h"

#define M *1048576

// Returns the report of a JSON recording; fails the test on an error.
static struct vram_report *report_of(const char *json, const struct vram_report_options *options) {
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_error error = {.message = ""};
    const enum vram_status status = vram_recording_read_memory(json, strlen(json), NULL, &recording, &error);
    if (status != VRAM_OK) fail_msg("%s in %s", error.message, json);
    assert_int_equal(vram_report_create(recording, options, &report, &error), VRAM_OK);
    vram_recording_destroy(recording);
    return report;
}

// Write pieces of recordings. Sizes are in MiB.
static void put_segment(struct vr_text *text, const char *comma, uint64_t address, uint64_t size, uint64_t stream, const char *pool,
                        const char *kind, const char *blocks) {
    vr_text_printf(text,
                   "%s{\"device\": 0, \"address\": %llu, \"total_size\": %llu, \"allocated_size\": 0, \"active_size\": 0, \"stream\": %llu,"
                   "\"segment_pool_id\": %s, \"segment_type\": \"%s\", \"is_expandable\": false, \"frames\": [], \"blocks\": [%s]}",
                   comma, (unsigned long long)(address M), (unsigned long long)(size M), (unsigned long long)stream, pool, kind, blocks);
}

static void put_block(struct vr_text *text, uint64_t address, uint64_t size, const char *state) {
    vr_text_printf(text, "%s{\"address\": %llu, \"size\": %llu, \"requested_size\": %llu, \"state\": \"%s\", \"frames\": []}",
                   text->length == 0 ? "" : ",", (unsigned long long)(address M), (unsigned long long)(size M),
                   (unsigned long long)(size M), state);
}

static struct vram_report *report_of_oom(const struct vr_text *segments, const char *events, uint64_t request, uint64_t driver_free,
                                         uint64_t stream) {
    struct vr_text text = {0};
    vr_text_printf(
        &text,
        "{\"segments\": [%s], \"device_traces\": [[%s{\"action\": \"oom\", \"device_free\": %llu, \"size\": %llu, \"stream\": %llu}]],"
        "\"allocator_settings\": {}}",
        vr_text_string(segments), events, (unsigned long long)(driver_free M), (unsigned long long)(request M), (unsigned long long)stream);
    struct vram_report *report = report_of(vr_text_string(&text), NULL);
    vr_text_release(&text);
    return report;
}

struct oom_case {
    const char *name;
    uint64_t first_free, second_free; // two holes in a segment of 100 MiB
    const char *used_state;           // of the block of 20 MiB between them
    uint64_t segment_stream;
    const char *pool, *kind;
    uint64_t request, driver_free;
    enum vram_report_oom_cause cause;
    uint64_t usable, usable_largest, other_stream, other_pool;
};

static void causes_of_running_out(void **state) {
    (void)state;
    static const struct oom_case cases[] = {
        {"fragmented", 50, 30, "active_allocated", 0, "[0, 0]", "large", 60, 4, VRAM_OOM_FRAGMENTED, 80, 50, 0, 0},
        {"full", 10, 10, "active_allocated", 0, "[0, 0]", "large", 60, 4, VRAM_OOM_FULL, 20, 10, 0, 0},
        {"limit", 10, 10, "active_allocated", 0, "[0, 0]", "large", 60, 64, VRAM_OOM_LIMIT, 20, 10, 0, 0},
        {"stream", 50, 30, "active_allocated", 7, "[0, 0]", "large", 60, 4, VRAM_OOM_OTHER_STREAMS, 0, 0, 80, 0},
        {"private", 50, 30, "active_allocated", 0, "[0, 3]", "large", 60, 4, VRAM_OOM_PRIVATE_POOLS, 0, 0, 0, 0},
        {"class", 50, 30, "active_allocated", 0, "[0, 0]", "small", 60, 4, VRAM_OOM_OTHER_POOLS, 0, 0, 0, 80},
        {"pending", 20, 20, "active_pending_free", 0, "[0, 0]", "large", 60, 4, VRAM_OOM_PENDING, 40, 20, 0, 0},
        {"contradiction", 70, 10, "active_allocated", 0, "[0, 0]", "large", 60, 4, VRAM_OOM_CONTRADICTORY, 80, 70, 0, 0},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        const struct oom_case *c = &cases[i];
        struct vr_text blocks = {0}, segments = {0};
        const uint64_t used = 100 - c->first_free - c->second_free;
        put_block(&blocks, 1000, c->first_free, "inactive");
        put_block(&blocks, 1000 + c->first_free, used, c->used_state);
        put_block(&blocks, 1100 - c->second_free, c->second_free, "inactive");
        put_segment(&segments, "", 1000, 100, c->segment_stream, c->pool, c->kind, vr_text_string(&blocks));
        struct vram_report *report = report_of_oom(&segments, "", c->request, c->driver_free, 0);
        assert_int_equal(report->device_count, 1);
        assert_int_equal(report->devices[0].oom_count, 1);
        const struct vram_report_oom *oom = &report->devices[0].ooms[0];
        if (oom->cause != c->cause) fail_msg("%s: cause %d, not %d (%s)", c->name, (int)oom->cause, (int)c->cause, oom->text);
        assert_true(oom->has_picture);
        assert_int_equal(oom->reserved_bytes, 100 M);
        assert_int_equal(oom->free_bytes, (c->first_free + c->second_free) M);
        assert_int_equal(oom->usable_bytes, c->usable M);
        assert_int_equal(oom->usable_largest_bytes, c->usable_largest M);
        assert_int_equal(oom->other_stream_bytes, c->other_stream M);
        assert_int_equal(oom->other_pool_bytes, c->other_pool M);
        vram_report_destroy(report);
        vr_text_release(&blocks);
        vr_text_release(&segments);
    }
}

// Memory freed or released after the event must not count as free at the event, and memory allocated after it not as reserved.
static void oom_sees_the_moment_and_not_the_end(void **state) {
    (void)state;
    const char json[] =
        "{\"segments\": [{\"device\": 0, \"address\": 419430400, \"total_size\": 20971520, \"allocated_size\": 0, \"active_size\": 0,"
        "\"stream\": 0, \"segment_type\": \"large\", \"blocks\": [{\"address\": 419430400, \"size\": 20971520,"
        "\"requested_size\": 0, \"state\": \"inactive\", \"frames\": []}]}], \"device_traces\": [["
        "{\"action\": \"segment_alloc\", \"addr\": 104857600, \"size\": 104857600, \"stream\": 0},"
        "{\"action\": \"alloc\", \"addr\": 104857600, \"size\": 41943040, \"stream\": 0},"
        "{\"action\": \"oom\", \"device_free\": 0, \"size\": 83886080, \"stream\": 0},"
        "{\"action\": \"free_requested\", \"addr\": 104857600, \"size\": 41943040, \"stream\": 0},"
        "{\"action\": \"free_completed\", \"addr\": 104857600, \"size\": 41943040, \"stream\": 0},"
        "{\"action\": \"segment_free\", \"addr\": 104857600, \"size\": 104857600, \"stream\": 0},"
        "{\"action\": \"segment_alloc\", \"addr\": 419430400, \"size\": 20971520, \"stream\": 0}]]}";
    struct vram_report *report = report_of(json, NULL);
    const struct vram_report_oom *oom = &report->devices[0].ooms[0];
    assert_int_equal(oom->reserved_bytes, 100 M);
    assert_int_equal(oom->allocated_bytes, 40 M);
    assert_int_equal(oom->free_bytes, 60 M);
    assert_int_equal(oom->largest_free_bytes, 60 M);
    assert_int_equal(oom->cause, VRAM_OOM_FULL);
    assert_int_equal(report->devices[0].reserved.peak_bytes, 100 M);
    assert_int_equal(report->devices[0].reserved.end_bytes, 20 M);
    vram_report_destroy(report);
}

static void usage_adds_up(void **state) {
    (void)state;
    struct vr_text mixed = {0}, whole = {0}, segments = {0};
    put_block(&mixed, 1000, 30, "active_allocated");
    put_block(&mixed, 1030, 10, "active_pending_free");
    put_block(&mixed, 1040, 60, "inactive");
    put_block(&whole, 2000, 40, "inactive");
    put_segment(&segments, "", 1000, 100, 0, "[0, 0]", "large", vr_text_string(&mixed));
    put_segment(&segments, ",", 2000, 50, 5, "[0, 0]", "large", vr_text_string(&whole));
    struct vram_report *report = report_of_oom(&segments, "", 500, 0, 0);
    const struct vram_report_device *device = &report->devices[0];
    assert_int_equal(device->usage.reserved_bytes, 150 M);
    assert_int_equal(device->usage.requested_bytes, 30 M);
    assert_int_equal(device->usage.rounding_bytes, 0);
    assert_int_equal(device->usage.pending_bytes, 10 M);
    assert_int_equal(device->usage.free_block_bytes, 60 M);
    assert_int_equal(device->usage.cached_bytes, 40 M);
    assert_int_equal(device->usage.unaccounted_bytes, 10 M);
    assert_int_equal(device->usage.largest_free_bytes, 60 M);
    assert_int_equal(device->pool_count, 2);
    assert_int_equal(device->pools[0].reserved_bytes, 100 M);
    assert_int_equal(device->pools[1].stream, 5);
    assert_int_equal(device->pools[1].cached_bytes, 40 M);
    assert_int_equal(device->mismatches[4], 1);
    assert_string_equal(vram_report_mismatch_name(4), "total_size");
    assert_null(vram_report_mismatch_name(5));
    assert_string_equal(vram_report_state_name(0), "inactive");
    assert_null(vram_report_state_name(99));
    vram_report_destroy(report);
    vr_text_release(&mixed);
    vr_text_release(&whole);
    vr_text_release(&segments);
}

static bool has_note(const struct vram_report *report, enum vram_report_note_kind kind, const char *code) {
    for (size_t i = 0; i < report->note_count; i++) {
        if (report->notes[i].kind == kind && strcmp(report->notes[i].code, code) == 0) return true;
    }
    return false;
}

static void remarks(void **state) {
    (void)state;
    static const struct {
        const char *json, *missing, *contradiction;
    } cases[] = {
        {"{\"segments\": [], \"device_traces\": []}", "empty", NULL},
        {"{\"segments\": [], \"device_traces\": []}", "no_settings", NULL},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"snapshot\", \"addr\": 0, \"size\": 0, \"stream\": 0}]],"
         "\"allocator_settings\": {\"trace_alloc_overflowed\": true}}",
         "overflow", NULL},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"snapshot\", \"addr\": 0, \"size\": 0, \"stream\": 0}]]}", "no_allocations",
         NULL},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 512, \"size\": 8, \"stream\": 0}]]}", "no_stacks",
         "history_and_state"},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"segment_free\", \"addr\": 512, \"size\": 8, \"stream\": 0},"
         "{\"action\": \"segment_alloc\", \"addr\": 512, \"size\": 16, \"stream\": 0}]]}",
         "no_times", "reserved_negative"},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"free\", \"addr\": 512, \"size\": 8, \"stream\": 0, \"time_us\": 5},"
         "{\"action\": \"alloc\", \"addr\": 512, \"size\": 8, \"stream\": 0, \"time_us\": 4}, {\"action\": \"free\", \"addr\": 512, "
         "\"size\": 8,"
         "\"stream\": 0, \"time_us\": 6}]]}",
         "starts_late", "times_backwards"},
        {"{\"segments\": [], \"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 512, \"size\": 4, \"stream\": 0},"
         "{\"action\": \"alloc\", \"addr\": 512, \"size\": 8, \"stream\": 0},"
         "{\"action\": \"free_completed\", \"addr\": 512, \"size\": 8, \"stream\": 0},"
         "{\"action\": \"segment_free\", \"addr\": 512, \"size\": 4, \"stream\": 0}]]}",
         "filtered", "peak_above_reserved"},
        {"[]", "empty", NULL},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vram_report *report = report_of(cases[i].json, NULL);
        if (!has_note(report, VRAM_NOTE_MISSING, cases[i].missing)) fail_msg("%s: no remark %s", cases[i].json, cases[i].missing);
        if (cases[i].contradiction != NULL && !has_note(report, VRAM_NOTE_CONTRADICTION, cases[i].contradiction)) {
            fail_msg("%s: no remark %s", cases[i].json, cases[i].contradiction);
        }
        vram_report_destroy(report);
    }
}

static bool keep(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

// If a whole program's reserved bytes do not cover the allocated ones, they are not called consistent. Contradictory figures are named.
static void figures_that_contradict_each_other_are_named(void **state) {
    (void)state;
    static const struct {
        const char *settings, *said;
    } cases[] = {{"", "live memory (8 B) exceeds the peak of reserved memory (4 B)"},
                 {"\"vram_run_process\": \"7\"", "the history ends with 8 B live, but the final blocks hold 0 B"}};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_text json = {0}, text = {0};
        vr_text_printf(&json,
                       "{\"segments\": [], \"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 512, \"size\": 4, "
                       "\"stream\": 0}, {\"action\": \"alloc\", \"addr\": 512, \"size\": 8, \"stream\": 0}, {\"action\": "
                       "\"segment_free\", \"addr\": 512, \"size\": 4, \"stream\": 0}]], \"allocator_settings\": {%s}}",
                       cases[i].settings);
        struct vram_report *report = report_of(vr_text_string(&json), NULL);
        assert_int_equal(vram_report_json(report, NULL, keep, &text), VRAM_OK);
        const char *reserved = strstr(vr_text_string(&text), "\"reserved\": {");
        assert_non_null(reserved);
        const char *consistent = strstr(reserved, "\"consistent\": "), *word = i == 0 ? "true" : "false";
        assert_true(consistent != NULL && strncmp(consistent + 14, word, strlen(word)) == 0);
        assert_non_null(strstr(vr_text_string(&text), cases[i].said));
        vr_text_release(&json);
        vr_text_release(&text);
        vram_report_destroy(report);
    }
}

#define NATIVE(name)        "{\"filename\": \"??\", \"line\": 0, \"name\": \"" name "\"}"
#define RECORDED            NATIVE("torch::unwind::unwind()") "," NATIVE("torch::CapturedTraceback::gather(bool, bool, bool)")
#define ALLOCATED           RECORDED "," NATIVE("c10::cuda::CUDACachingAllocator::Native::malloc(void**)")
#define TORCH_LINE          "{\"filename\": \"/v/torch/optim/adamw.py\", \"line\": 7, \"name\": \"step\"}"
#define LIBRARY(file, name) "{\"filename\": \"" file "\", \"line\": 0, \"name\": \"" name "\"}"
#define WRAPPER             "{\"filename\": \"/v/site-packages/cupy/_core/core.py\", \"line\": 4, \"name\": \"empty\"}"
#define OWN_LINE            "{\"filename\": \"/home/me/a.py\", \"line\": 3, \"name\": \"loss\"}"

// Stacks with C++ frames begin with the frames that recorded them. The report shows the most informative frame, without its arguments.
static void machine_code_is_told_by_what_it_did(void **state) {
    (void)state;
    static const struct {
        const char *frames, *name, *shown;
    } cases[] = {
        {ALLOCATED "," NATIVE("at::_ops::mul::call(at::Tensor)") "," OWN_LINE "," TORCH_LINE, "/home/me/a.py:3:loss",
         "/home/me/a.py:3:loss\n"},
        {ALLOCATED "," NATIVE("at::_ops::mul::call(at::Tensor)") "," TORCH_LINE, "/v/torch/optim/adamw.py:7:step",
         "/v/torch/optim/adamw.py:7:step\n"},
        {ALLOCATED
         "," NATIVE("at::_ops::bmm::call(at::Tensor)") "," NATIVE("torch::autograd::generated::BmmBackward0::apply(v<int (*)(x)>&&)"),
         "??:0:torch::autograd::generated::BmmBackward0::apply(v<int (*)(x)>&&)", " torch::autograd::generated::BmmBackward0::apply\n"},
        {ALLOCATED "," NATIVE("at::_ops::empty::call(long)") "," NATIVE("at::_ops::zeros::call(long)") "," NATIVE("clone"),
         "??:0:at::_ops::zeros::call(long)", " at::_ops::zeros::call\n"},
        {ALLOCATED "," NATIVE("(anonymous namespace)::grow(long) const") "," NATIVE("main"), "??:0:(anonymous namespace)::grow(long) const",
         " (anonymous namespace)::grow\n"},
        {ALLOCATED, "??:0:c10::cuda::CUDACachingAllocator::Native::malloc(void**)", " c10::cuda::CUDACachingAllocator::Native::malloc\n"},
        {RECORDED, "??:0:torch::unwind::unwind()", " torch::unwind::unwind\n"},
        {NATIVE("Pool::operator()(long)") "," NATIVE("main"), "??:0:Pool::operator()(long)", " Pool::operator()\n"},
        // Wrappers, bindings and runtimes are a site only if there is nothing else.
        {WRAPPER "," OWN_LINE, "/home/me/a.py:3:loss", "/home/me/a.py:3:loss\n"},
        {WRAPPER, "/v/site-packages/cupy/_core/core.py:4:empty", "/v/site-packages/cupy/_core/core.py:4:empty\n"},
        {LIBRARY("/l/libcudart.so.12", "0x10") "," LIBRARY("/l/libcublas.so.12", "0x20") "," LIBRARY("/opt/solver", "0x38b00"),
         "/opt/solver:0:0x38b00", " solver+0x38b00\n"},
        {NATIVE("void thrust::allocate<int>(long)") "," NATIVE("cudaMalloc") "," NATIVE("grid::resize(long)") "," NATIVE("main"),
         "??:0:grid::resize(long)", " grid::resize\n"},
        {NATIVE("cudarc::driver::alloc") "," NATIVE("core::ops::function::FnOnce::call_once") "," NATIVE("nn::Layer::forward"),
         "??:0:nn::Layer::forward", " nn::Layer::forward\n"},
        {LIBRARY("/x/python-3.12.7/Python/ceval.c", "_PyEval_EvalFrameDefault") "," OWN_LINE, "/home/me/a.py:3:loss", "a.py:3:loss\n"},
        {LIBRARY("/usr/lib/python3.11/contextlib.py", "inner") "," OWN_LINE, "/home/me/a.py:3:loss", "a.py:3:loss\n"},
        // A C++ program that calls PyTorch, and an extension's kernel that PyTorch calls.
        {NATIVE("at::_ops::empty::call(long)") "," NATIVE("model::forward()") "," NATIVE("main"), "??:0:model::forward()",
         " model::forward\n"},
        {NATIVE("flash_bwd(long)") "," NATIVE("torch::autograd::PyNode::apply(v)") "," NATIVE("start_thread"),
         "??:0:torch::autograd::PyNode::apply(v)", " torch::autograd::PyNode::apply\n"},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_text text = {0};
        vr_text_printf(&text,
                       "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 512, \"size\": 64, \"stream\": 0, "
                       "\"frames\": [%s]}]]}",
                       cases[i].frames);
        struct vram_report *report = report_of(vr_text_string(&text), NULL);
        assert_string_equal(report->devices[0].allocated.sites[0].name, cases[i].name);
        vr_text_release(&text);
        assert_int_equal(vram_report_text(report, NULL, NULL, keep, &text), VRAM_OK);
        if (strstr(vr_text_string(&text), cases[i].shown) == NULL) fail_msg("no%s in %s", cases[i].shown, vr_text_string(&text));
        vram_report_destroy(report);
        vr_text_release(&text);
    }
}

// If one function makes all allocations, returns whether the page says where its callers are listed.
static bool hints_at_callers(const char *second_caller) {
    struct vr_text json = {0}, page = {0};
    static const char *const callers[] = {"weights", NULL};
    vr_text_puts(&json, "{\"segments\": [], \"device_traces\": [[");
    for (unsigned i = 0; i < 2; i++) {
        vr_text_printf(
            &json,
            "%s{\"action\": \"alloc\", \"addr\": %u, \"size\": 3000000, \"stream\": 0, \"frames\": ["
            "{\"filename\": \"wrap.c\", \"line\": 5, \"name\": \"mal\"}, {\"filename\": \"main.c\", \"line\": 7, \"name\": \"%s\"}]}",
            i == 0 ? "" : ",", 4096 * (i + 1), callers[i] == NULL ? second_caller : callers[i]);
    }
    vr_text_puts(&json, "]], \"allocator_settings\": {}}");
    struct vram_report *report = report_of(vr_text_string(&json), NULL);
    assert_int_equal(vram_report_text(report, NULL, NULL, keep, &page), VRAM_OK);
    const bool hints = strstr(vr_text_string(&page), "vram report --stack") != NULL;
    vram_report_destroy(report);
    vr_text_release(&json);
    vr_text_release(&page);
    return hints;
}

static void callers_of_one_function_are_hinted_at(void **state) {
    (void)state;
    assert_true(hints_at_callers("cache"));
    assert_false(hints_at_callers("weights"));
}

// Equal bytes and counts are sorted by name, even if one file's name is a prefix of the other's.
static void ties_are_ordered_by_name(void **state) {
    (void)state;
    struct vr_text text = {0};
    static const char *const frames[][2] = {{"b.py", "f"}, {"a.py:1", "g"}, {"a.py", "z"},
                                            {"a.py", "f"}, {"<x>.py", "h"}, {"/q/torch/y.py", "k"}};
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    for (size_t i = 0; i < VR_COUNT_OF(frames); i++) {
        vr_text_printf(&text,
                       "%s{\"action\": \"alloc\", \"addr\": %zu, \"size\": 64, \"stream\": 0, \"frames\": [{\"filename\": \"%s\", "
                       "\"line\": 1, \"name\": \"%s\"}]}",
                       i == 0 ? "" : ",", 512 * (i + 1), frames[i][0], frames[i][1]);
    }
    vr_text_puts(&text, "]]}");
    const struct vram_report_options three = {.top = 3};
    static const char *const wanted[] = {"/q/torch/y.py:1:k", "<x>.py:1:h", "a.py:1:1:g", "a.py:1:f", "a.py:1:z", "b.py:1:f"};
    for (size_t run = 0; run < 2; run++) {
        struct vram_report *report = report_of(vr_text_string(&text), run == 0 ? NULL : &three);
        const struct vram_report_live *live = &report->devices[0].allocated;
        assert_int_equal(live->distinct_sites, 6);
        assert_int_equal(live->site_count, run == 0 ? 6 : 3);
        for (size_t i = 0; i < live->site_count; i++) assert_string_equal(live->sites[i].name, wanted[i]);
        for (size_t i = 1; i < live->stack_count; i++) assert_true(strcmp(live->stacks[i - 1].name, live->stacks[i].name) < 0);
        vram_report_destroy(report);
    }
    vr_text_release(&text);
}

static void too_many_devices_are_refused(void **state) {
    (void)state;
    struct vr_text text = {0};
    vr_text_puts(&text, "[");
    for (unsigned d = 0; d < 300; d++) {
        vr_text_printf(
            &text, "%s{\"device\": %u, \"address\": 512, \"total_size\": 512, \"stream\": 0, \"segment_type\": \"small\", \"blocks\": []}",
            d == 0 ? "" : ",", d * 1000);
    }
    vr_text_puts(&text, "]");
    struct vram_recording *recording;
    struct vram_report *report = NULL;
    struct vram_error error;
    const enum vram_status read = vram_recording_read_memory(vr_text_string(&text), text.length, NULL, &recording, &error);
    // Either the reader or the report may refuse such a file; neither may succeed.
    if (read == VRAM_OK) {
        assert_int_equal(vram_report_create(recording, NULL, &report, &error), VRAM_LIMIT);
        assert_non_null(strstr(error.message, "256 devices"));
        assert_null(report);
        vram_recording_destroy(recording);
    }
    vr_text_release(&text);
}

// Host memory has its own device number in the library; the text lists it after the devices.
static void pinned_host_memory_is_no_device(void **state) {
    (void)state;
    struct vr_text segments = {0}, pinned = {0}, blocks = {0}, text = {0};
    put_block(&blocks, 100, 2, "active_allocated");
    put_segment(&segments, "", 100, 2, 0, "[0, 0]", "large", vr_text_string(&blocks));
    vr_text_release(&blocks);
    put_block(&blocks, 500, 4, "active_allocated");
    put_segment(&pinned, "", 500, 4, 0, "[0, 0]", "large", vr_text_string(&blocks));
    vr_text_printf(&text, "{\"segments\": [%s], \"device_traces\": [[]], \"host_segments\": [%s], \"host_traces\": [%s]}",
                   vr_text_string(&segments), vr_text_string(&pinned), "{\"action\": \"alloc\", \"addr\": 524288000, \"size\": 4194304}");
    struct vram_report *report = report_of(vr_text_string(&text), NULL);
    assert_int_equal(report->trace_lists, 1);
    assert_int_equal(report->device_count, 2);
    assert_false(report->devices[0].is_host);
    assert_true(report->devices[1].is_host);
    struct vr_text page = {0}, json = {0};
    assert_int_equal(vram_report_text(report, NULL, NULL, keep, &page), VRAM_OK);
    assert_non_null(strstr(vr_text_string(&page), ", 1 device and pinned host memory, 1 event\n"));
    assert_non_null(strstr(vr_text_string(&page), "\nPinned host memory ="));
    assert_null(strstr(vr_text_string(&page), "Device 1"));
    assert_int_equal(vram_report_json(report, NULL, keep, &json), VRAM_OK);
    assert_non_null(strstr(vr_text_string(&json), "\"device_trace_lists\": 1,"));
    assert_non_null(strstr(vr_text_string(&json), "\"host\": {"));
    assert_null(strstr(vr_text_string(&json), "\"1\": {"));
    assert_non_null(strstr(vr_text_string(&json), "\"device\": \"host\""));
    vram_report_destroy(report);
    vr_text_release(&segments);
    vr_text_release(&pinned);
    vr_text_release(&blocks);
    vr_text_release(&text);
    vr_text_release(&page);
    vr_text_release(&json);
}

// A note about a device and the host is printed once and names both.
static void notes_name_what_they_are_of(void **state) {
    (void)state;
    static const char events[] = "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 512}";
    static const struct {
        const char *devices, *prefix;
    } cases[] = {{"[%s]", "- device 0, pinned host memory: events have no times"},
                 {"[%s], [%s]", "- devices 0, 1, pinned host memory: events have no times"},
                 {"[]", "- pinned host memory: events have no times"}};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_text json = {0}, page = {0};
        vr_text_printf(&json, "{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 512, \"stream\": 0, \"blocks\": []}], ");
        vr_text_puts(&json, "\"device_traces\": [");
        for (const char *c = cases[i].devices; *c != '\0'; c++) {
            if (c[0] == '%')
                vr_text_puts(&json, events);
            else if (c[0] != 's')
                vr_text_append(&json, c, 1);
        }
        vr_text_printf(&json, "], \"host_segments\": [], \"host_traces\": [%s]}", events);
        struct vram_report *report = report_of(vr_text_string(&json), NULL);
        assert_int_equal(vram_report_text(report, NULL, NULL, keep, &page), VRAM_OK);
        if (strstr(vr_text_string(&page), cases[i].prefix) == NULL) fail_msg("no %s in %s", cases[i].prefix, vr_text_string(&page));
        vram_report_destroy(report);
        vr_text_release(&json);
        vr_text_release(&page);
    }
}

static bool refuse(void *user, const char *bytes, size_t length) {
    (void)bytes;
    *(size_t *)user += length;
    return false;
}

static void sinks_and_arguments(void **state) {
    (void)state;
    size_t seen = 0;
    struct vram_error error;
    struct vram_report *report = NULL;
    assert_int_equal(vram_report_create(NULL, NULL, &report, &error), VRAM_INVALID_ARGUMENT);
    assert_null(report);
    vram_report_destroy(NULL);
    report = report_of("{\"segments\": [], \"device_traces\": []}", NULL);
    assert_int_equal(vram_report_json(report, NULL, refuse, &seen), VRAM_IO);
    assert_true(seen != 0);
    assert_int_equal(vram_report_text(report, NULL, NULL, refuse, &seen), VRAM_IO);
    struct vr_text text = {0};
    assert_int_equal(vram_report_text(report, NULL, NULL, keep, &text), VRAM_OK);
    assert_non_null(strstr(vr_text_string(&text), "nothing was allocated"));
    vr_text_release(&text);
    vram_report_destroy(report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_of_running_out),
        cmocka_unit_test(oom_sees_the_moment_and_not_the_end),
        cmocka_unit_test(usage_adds_up),
        cmocka_unit_test(remarks),
        cmocka_unit_test(ties_are_ordered_by_name),
        cmocka_unit_test(callers_of_one_function_are_hinted_at),
        cmocka_unit_test(figures_that_contradict_each_other_are_named),
        cmocka_unit_test(machine_code_is_told_by_what_it_did),
        cmocka_unit_test(too_many_devices_are_refused),
        cmocka_unit_test(pinned_host_memory_is_no_device),
        cmocka_unit_test(notes_name_what_they_are_of),
        cmocka_unit_test(sinks_and_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
