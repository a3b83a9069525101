// Tests roles, derived from stacks, from which passes memory lives through, from the user's rules, and from the program's own notes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "analyze/roles.h"
#include "base/text.h"
#include "vram/profile.h"
#include "vram/recording.h"
#include "vram/roles.h"

// Frames as JSON text.
#define FRAME(file, name)  "{\"filename\": \"" file "\", \"line\": 7, \"name\": \"" name "\"}"
#define TRAIN              FRAME("/home/me/train.py", "<module>")
#define FRAMES_OF_LOAD     FRAME("/lib/torch/nn/modules/module.py", "_apply") "," TRAIN
#define FRAMES_OF_INPUT    FRAME("/home/me/data.py", "get_batch") "," TRAIN
#define FRAMES_OF_FORWARD  FRAME("/home/me/model.py", "forward") "," FRAME("/lib/torch/nn/modules/module.py", "_call_impl") "," TRAIN
#define FRAMES_OF_STEP     FRAME("/lib/torch/optim/adamw.py", "step") "," TRAIN
#define FRAMES_OF_STATE    FRAME("/lib/torch/optim/adamw.py", "_init_group") "," FRAMES_OF_STEP
#define FRAMES_OF_CHECK    FRAME("/lib/torch/utils/checkpoint.py", "recompute_fn") "," FRAME("/lib/torch/utils/checkpoint.py", "unpack_hook")
#define FRAMES_OF_AGAIN    FRAME("/home/me/model.py", "forward") "," FRAMES_OF_CHECK
#define FRAMES_OF_GATHER   FRAME("/lib/torch/distributed/distributed_c10d.py", "all_gather") "," TRAIN
#define FRAMES_OF_CACHE    FRAME("/lib/transformers/cache_utils.py", "update") "," FRAMES_OF_FORWARD
#define FRAMES_OF_SEED     FRAME("/lib/torch/autograd/__init__.py", "_make_grads") "," FRAME("/lib/torch/autograd/__init__.py", "backward")
#define FRAMES_OF_BACKWARD ""
#define NATIVE(name)       FRAME("??", name)
#define FRAMES_OF_ENGINE   NATIVE("torch::autograd::Engine::thread_main(...)")
#define FRAMES_OF_SCRATCH  NATIVE("void at::cuda::blas::gemm_and_bias<float>(bool, bool)") "," FRAMES_OF_FORWARD
#define FRAMES_OF_ROOM     NATIVE("torch::autograd::THPVariable_zeros(_object*, _object*, _object*)") "," TRAIN

struct made {
    struct vr_text json;
    size_t events;
};

static void put(struct made *made, const char *action, uint64_t address, uint64_t bytes, const char *frames, const char *said) {
    vr_text_printf(
        &made->json,
        "%s{\"action\": \"%s\", \"addr\": %llu, \"size\": %llu, \"stream\": 0, \"time_us\": %zu, \"user_metadata\": \"%s\", \"frames\": [",
        made->events == 0 ? "" : ",", action, (unsigned long long)address * 1048576, (unsigned long long)bytes, 100 + 10 * made->events,
        said);
    vr_text_puts(&made->json, frames);
    vr_text_puts(&made->json, "]}");
    made->events++;
}
static void take(struct made *made, uint64_t address, uint64_t bytes, const char *frames) {
    put(made, "alloc", address, bytes, frames, "");
}
static void give(struct made *made, uint64_t address, uint64_t bytes) { put(made, "free_requested", address, bytes, TRAIN, ""); }

static void begin(struct made *made) {
    *made = (struct made){.events = 0};
    vr_text_puts(&made->json, "{\"segments\": [], \"device_traces\": [[");
}

static struct vram_recording *end(struct made *made, const char *annotations) {
    vr_text_puts(&made->json, "]], \"external_annotations\": [");
    vr_text_puts(&made->json, annotations);
    vr_text_puts(&made->json, "]}");
    struct vram_recording *recording = NULL;
    struct vram_error error;
    if (vram_recording_read_memory(made->json.bytes, made->json.length, "made", &recording, &error) != VRAM_OK)
        fail_msg("%s", error.message);
    vr_text_release(&made->json);
    return recording;
}

enum { STEPS = 2, STEP_EVENTS = 21 };

// A training step; its allocations have addresses 10 to 20.
static void put_step(struct made *made, bool first) {
    take(made, 10, 64, FRAMES_OF_INPUT);
    take(made, 11, 4000, FRAMES_OF_FORWARD);
    take(made, 12, 300, FRAMES_OF_FORWARD);
    give(made, 12, 300);
    take(made, 13, 500, FRAMES_OF_GATHER);
    give(made, 13, 500);
    take(made, 14, 4, TRAIN); // the loss
    take(made, 15, 4000, FRAMES_OF_AGAIN);
    take(made, 16, 700, FRAMES_OF_BACKWARD);
    give(made, 15, 4000);
    take(made, 17, 1000, FRAMES_OF_BACKWARD);
    give(made, 16, 700);
    give(made, 11, 4000);
    take(made, 12, 77, FRAMES_OF_BACKWARD);
    give(made, 12, 77);
    if (first) take(made, 18, 2000, FRAMES_OF_STATE);
    take(made, 19, 900, FRAMES_OF_STEP);
    give(made, 19, 900);
    give(made, 17, 1000);
    give(made, 14, 4);
    give(made, 10, 64);
}

static struct vram_recording *make_training(void) {
    struct made made;
    begin(&made);
    take(&made, 1, 1000, FRAMES_OF_LOAD);
    take(&made, 2, 8519680, FRAMES_OF_FORWARD);
    for (int step = 0; step < STEPS; step++) put_step(&made, step == 0);
    return end(&made, "");
}

// As PyTorch 2.15 allocates and frees it with each product.
static void a_workspace_that_does_not_stay(void **state) {
    (void)state;
    struct made made;
    struct vram_roles *roles = NULL;
    begin(&made);
    take(&made, 1, 1000, FRAMES_OF_LOAD);
    take(&made, 2, 8519680, FRAMES_OF_FORWARD);
    give(&made, 2, 8519680);
    take(&made, 3, 8519680, FRAMES_OF_BACKWARD);
    give(&made, 3, 8519680);
    put_step(&made, true);
    struct vram_recording *recording = end(&made, "");
    assert_int_equal(vram_roles_create(recording, NULL, &roles, NULL), VRAM_OK);
    assert_int_equal(roles->made[VRAM_ROLE_WORKSPACES].bytes, 2 * 8519680);
    vram_roles_destroy(roles);
    vram_recording_destroy(recording);
}

static void roles_of_a_training_step(void **state) {
    (void)state;
    static const enum vram_role expected[2 + STEP_EVENTS] = {
        VRAM_ROLE_PARAMETERS,  VRAM_ROLE_WORKSPACES,    VRAM_ROLE_INPUT,           VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_TEMPORARIES,
        VRAM_ROLE_UNKNOWN,     VRAM_ROLE_COMMUNICATION, VRAM_ROLE_UNKNOWN,         VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_RECOMPUTED,
        VRAM_ROLE_TEMPORARIES, VRAM_ROLE_UNKNOWN,       VRAM_ROLE_GRADIENTS,       VRAM_ROLE_UNKNOWN,     VRAM_ROLE_UNKNOWN,
        VRAM_ROLE_TEMPORARIES, VRAM_ROLE_UNKNOWN,       VRAM_ROLE_OPTIMIZER_STATE, VRAM_ROLE_TEMPORARIES, VRAM_ROLE_UNKNOWN,
    };
    struct vram_recording *recording = make_training();
    struct vram_roles *roles = NULL;
    assert_int_equal(vram_roles_create(recording, NULL, &roles, NULL), VRAM_OK);
    for (size_t i = 0; i < VR_COUNT_OF(expected); i++) {
        if (roles->of_event[i] != expected[i])
            fail_msg("event %zu is %s, not %s", i, vram_role_word(roles->of_event[i]), vram_role_word(expected[i]));
    }
    uint64_t at_peak = 0;
    for (size_t i = 0; i < VRAM_ROLE_COUNT; i++) {
        at_peak += roles->at_peak[i].bytes;
        assert_true(roles->at_peak[i].bytes <= roles->highest[i].bytes && roles->highest[i].bytes <= roles->made[i].bytes);
    }
    assert_int_equal(at_peak, 8519680 + 1000 + 2000 + 64 + 4000 + 4 + 4000 + 700);
    assert_int_equal(roles->at_peak[VRAM_ROLE_RECOMPUTED].bytes, 4000);
    assert_int_equal(roles->made[VRAM_ROLE_GRADIENTS].bytes, 2000);
    assert_int_equal(roles->highest[VRAM_ROLE_GRADIENTS].bytes, 1000);
    assert_int_equal(roles->stacked_unknown_bytes, 0);
    assert_true(roles->module_count > 0);
    assert_string_equal(roles->modules[0].name, "/home/me/model.py:7:forward");
    vram_roles_destroy(roles);
    vram_recording_destroy(recording);
}

static void a_cache_of_keys_is_one_where_nothing_is_trained(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    take(&made, 1, 1000, FRAMES_OF_LOAD);
    for (uint64_t token = 0; token < 3; token++) {
        take(&made, 2 + token, 100 * (token + 1), FRAMES_OF_CACHE);
        if (token != 0) give(&made, 1 + token, 100 * token);
        take(&made, 10, 50, FRAMES_OF_FORWARD);
        give(&made, 10, 50);
    }
    struct vram_recording *recording = end(&made, "");
    struct vram_roles *roles = NULL;
    assert_int_equal(vram_roles_create(recording, NULL, &roles, NULL), VRAM_OK);
    assert_int_equal(roles->made[VRAM_ROLE_KV_CACHE].bytes, 600);
    assert_int_equal(roles->made[VRAM_ROLE_ACTIVATIONS].bytes, 150);
    assert_int_equal(roles->made[VRAM_ROLE_PARAMETERS].bytes, 1000);
    vram_roles_destroy(roles);
    vram_recording_destroy(recording);
}

// The user's rules take precedence over everything, the program's notes over stacks.
static void rules_and_notes_come_before_stacks(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    take(&made, 1, 1000, FRAMES_OF_FORWARD);
    put(&made, "annotate", 1, 1000, TRAIN, "vram.role parameters layers.0.up.weight");
    put(&made, "alloc", 2, 300, FRAMES_OF_FORWARD, "vram.module layers.1");
    take(&made, 3, 500, FRAMES_OF_FORWARD);
    take(&made, 4, 70, FRAMES_OF_INPUT);
    take(&made, 5, 7, FRAMES_OF_FORWARD);
    struct vram_recording *recording =
        end(&made, "{\"name\": \"vram.role gradients 0x300000 layers.0.up.weight\", \"stage\": \"START\", \"device\": 0, \"time_us\": 135},"
                   "{\"name\": \"vram.module layers.2\", \"stage\": \"START\", \"device\": 0, \"time_us\": 145},"
                   "{\"name\": \"vram.module layers.2\", \"stage\": \"END\", \"device\": 0, \"time_us\": 155}");
    const struct vram_roles_options options = {.device = -1, .rules = "# mine\n\n kv_cache\tget_.atch \r\nunknown get_batch\n"};
    struct vram_roles *roles = NULL;
    assert_int_equal(vram_roles_create(recording, &options, &roles, NULL), VRAM_OK);
    assert_int_equal(roles->of_event[0], VRAM_ROLE_PARAMETERS);
    assert_int_equal(roles->of_event[2], VRAM_ROLE_ACTIVATIONS);
    assert_int_equal(roles->of_event[3], VRAM_ROLE_GRADIENTS);
    assert_int_equal(roles->of_event[4], VRAM_ROLE_KV_CACHE);
    assert_int_equal(roles->module_count, 4);
    assert_string_equal(roles->modules[0].name, "layers.0.up");
    assert_string_equal(roles->modules[1].name, "layers.0.up");
    assert_string_equal(roles->modules[2].name, "layers.1");
    assert_string_equal(roles->modules[3].name, "layers.2");
    vram_roles_destroy(roles);
    vram_recording_destroy(recording);
}

static void wrong_rules_are_named_by_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"weights .*", "line 1: unknown role 'weights'"},
        {"# a\n\ninput\n", "line 3: expected a regular expression after 'input'"},
        {"input x\nkv_cache (", "line 2: invalid regular expression '('"},
        {"input a{2000}", "line 1: the regular expression has more than 1000 repetitions"},
        {"Input x", "line 1: unknown role 'Input'"},
    };
    struct vr_role_rules rules = {.rule = NULL};
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) {
        struct vram_error error = {.status = VRAM_OK};
        assert_int_equal(vr_role_rules_parse(wrong[i].text, &rules, &error), VRAM_INVALID_ARGUMENT);
        if (strncmp(error.message, wrong[i].message, strlen(wrong[i].message)) != 0) fail_msg("%s", error.message);
        assert_null(rules.rule);
    }
    struct vr_text many = {0};
    for (int i = 0; i < 201; i++) vr_text_puts(&many, "input x\n");
    assert_int_equal(vr_role_rules_parse(vr_text_string(&many), &rules, NULL), VRAM_LIMIT);
    vr_text_release(&many);
    assert_int_equal(vr_role_rules_parse(NULL, &rules, NULL), VRAM_OK);
    assert_int_equal(rules.count, 0);
}

// Memory from before the history has no stack: a block of a gradient's size that stays is its parameter, a second and third one the
// optimizer's states.
static void old_blocks_pair_with_gradients(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_step(&made, false);
    put_step(&made, false);
    vr_text_puts(&made.json,
                 "]], \"segments\": [{\"device\": 0, \"address\": 209715200, \"total_size\": 4194304, \"stream\": 0, \"blocks\": [");
    for (int i = 0; i < 3; i++)
        vr_text_printf(&made.json, "{\"address\": %d, \"size\": 1048576, \"requested_size\": 1000, \"state\": \"active_allocated\"},",
                       209715200 + i * 1048576);
    vr_text_puts(&made.json,
                 "{\"address\": 212860928, \"size\": 1048576, \"requested_size\": 5, \"state\": \"active_allocated\"}]}], \"x\": [[");
    struct vram_recording *recording = end(&made, "");
    struct vram_roles *roles = NULL;
    assert_int_equal(vram_roles_create(recording, NULL, &roles, NULL), VRAM_OK);
    assert_int_equal(roles->made[VRAM_ROLE_PARAMETERS].bytes, 1005);
    assert_int_equal(roles->made[VRAM_ROLE_OPTIMIZER_STATE].bytes, 2000);
    vram_roles_destroy(roles);
    vram_recording_destroy(recording);
}

static void roles_are(struct vram_recording *recording, const enum vram_role *expected, size_t count) {
    struct vram_roles *roles = NULL;
    assert_int_equal(vram_roles_create(recording, NULL, &roles, NULL), VRAM_OK);
    for (size_t i = 0; i < count; i++) {
        if (roles->of_event[i] != expected[i])
            fail_msg("event %zu is %s, not %s", i, vram_role_word(roles->of_event[i]), vram_role_word(expected[i]));
    }
    vram_roles_destroy(roles);
    vram_recording_destroy(recording);
}

// The seed of the backward pass is not a gradient; memory that cuBLAS calls allocate themselves is scratch.
static void seeds_and_scratch_of_products(void **state) {
    (void)state;
    static const enum vram_role expected[] = {VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_WORKSPACES, VRAM_ROLE_UNKNOWN, VRAM_ROLE_TEMPORARIES,
                                              VRAM_ROLE_GRADIENTS};
    struct made made;
    begin(&made);
    take(&made, 1, 4000, FRAMES_OF_FORWARD);
    take(&made, 2, 1048576, FRAMES_OF_SCRATCH);
    give(&made, 2, 1048576);
    take(&made, 3, 4, FRAMES_OF_SEED);
    take(&made, 4, 1000, FRAMES_OF_BACKWARD);
    give(&made, 1, 4000);
    give(&made, 3, 4);
    roles_are(end(&made, ""), expected, VR_COUNT_OF(expected));
}

// Memory for a result, allocated outside modules: an activation if modules ran and nothing is trained, else a kernel's argument.
static void room_for_results(void **state) {
    (void)state;
    static const enum vram_role after_modules[] = {VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_ACTIVATIONS};
    static const enum vram_role alone[] = {VRAM_ROLE_INPUT, VRAM_ROLE_UNKNOWN};
    struct made made;
    begin(&made);
    take(&made, 1, 1000, FRAMES_OF_FORWARD);
    take(&made, 2, 1000, FRAMES_OF_ROOM);
    give(&made, 1, 1000);
    take(&made, 1, 1000, FRAMES_OF_ROOM);
    give(&made, 2, 1000);
    roles_are(end(&made, ""), after_modules, VR_COUNT_OF(after_modules));
    begin(&made);
    take(&made, 1, 1000, FRAMES_OF_ROOM);
    put(&made, "segment_alloc", 8, 2097152, FRAMES_OF_ROOM, "");
    take(&made, 2, 1000, FRAMES_OF_ROOM);
    give(&made, 1, 1000);
    roles_are(end(&made, ""), alone, VR_COUNT_OF(alone));
}

// DDP's buckets are communication, including those it makes again in forward(); what it copies to the device is input.
static void buckets_of_ddp(void **state) {
    (void)state;
#define DDP(name)     FRAME("/lib/torch/nn/parallel/distributed.py", name)
#define DDP_IN_A_CALL DDP("_pre_forward") "," DDP("forward") "," FRAME("/lib/torch/nn/modules/module.py", "_call_impl") "," TRAIN
    static const enum vram_role expected[] = {VRAM_ROLE_COMMUNICATION, VRAM_ROLE_COMMUNICATION, VRAM_ROLE_INPUT, VRAM_ROLE_ACTIVATIONS};
    struct made made;
    begin(&made);
    take(&made, 1, 1000, DDP("_ddp_init_helper") "," DDP("__init__") "," TRAIN);
    take(&made, 2, 1000, DDP_IN_A_CALL);
    take(&made, 3, 64, FRAME("/lib/torch/distributed/utils.py", "_to_kwargs") "," DDP_IN_A_CALL);
    take(&made, 4, 4000, FRAMES_OF_FORWARD);
    roles_are(end(&made, ""), expected, VR_COUNT_OF(expected));
}

// Uninformative frames determine no role.
static void stacks_that_tell_nothing(void **state) {
    (void)state;
    static const enum vram_role expected[] = {VRAM_ROLE_UNKNOWN, VRAM_ROLE_UNKNOWN};
    struct made made;
    begin(&made);
    take(&made, 1, 1000, FRAME("/home/me/foo.py", "foo"));
    take(&made, 2, 1000, FRAME("/home/me/foo.py", "bar"));
    give(&made, 1, 1000);
    roles_are(end(&made, ""), expected, VR_COUNT_OF(expected));
}

// Allocations outside modules after a backward pass: live during the next forward pass means input, freed earlier means temporary; for
// memory that stays, only its stack can tell that it should not.
static void what_is_made_between_passes(void **state) {
    (void)state;
    static const enum vram_role expected[] = {VRAM_ROLE_PARAMETERS,  VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_GRADIENTS, VRAM_ROLE_UNKNOWN,
                                              VRAM_ROLE_TEMPORARIES, VRAM_ROLE_UNKNOWN,     VRAM_ROLE_INPUT,     VRAM_ROLE_ACTIVATIONS,
                                              VRAM_ROLE_UNKNOWN,     VRAM_ROLE_GRADIENTS,   VRAM_ROLE_UNKNOWN,   VRAM_ROLE_TEMPORARIES};
    struct made made;
    begin(&made);
    take(&made, 1, 1000, FRAMES_OF_LOAD);
    take(&made, 2, 4000, FRAMES_OF_FORWARD);
    take(&made, 3, 1000, FRAMES_OF_ENGINE);
    give(&made, 2, 4000);
    take(&made, 4, 900, TRAIN);
    give(&made, 4, 900);
    take(&made, 5, 64, TRAIN);
    take(&made, 2, 4000, FRAMES_OF_FORWARD);
    give(&made, 5, 64);
    take(&made, 6, 1000, FRAMES_OF_ENGINE);
    take(&made, 7, 8, TRAIN);
    take(&made, 8, 8, FRAME("/lib/torch/nn/utils/clip_grad.py", "_get_total_norm") "," TRAIN);
    roles_are(end(&made, ""), expected, VR_COUNT_OF(expected));
}

// A program without modules: what its thread frees outside Python was computed for it, and what remains is a gradient.
static void training_without_modules(void **state) {
    (void)state;
    static const enum vram_role expected[] = {VRAM_ROLE_INPUT, VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_TEMPORARIES, VRAM_ROLE_UNKNOWN,
                                              VRAM_ROLE_GRADIENTS};
    struct made made;
    begin(&made);
    take(&made, 1, 700, TRAIN);
    take(&made, 2, 4000, TRAIN);
    take(&made, 3, 500, FRAMES_OF_BACKWARD);
    give(&made, 2, 4000);
    take(&made, 4, 1000, FRAMES_OF_BACKWARD);
    give(&made, 3, 500);
    take(&made, 6, 77, FRAMES_OF_BACKWARD);
    give(&made, 6, 77);
    take(&made, 5, 8, TRAIN);
    roles_are(end(&made, ""), expected, VR_COUNT_OF(expected));
}

static bool keep(void *user, const char *bytes, size_t count) {
    vr_text_append(user, bytes, count);
    return true;
}

// The report by role has a history's totals, including roles with nothing at the peak.
static void reports_by_role_have_totals(void **state) {
    (void)state;
    struct vram_recording *recording = make_training();
    const struct vram_profile_options options = {.device = -1, .by = "role"};
    struct vr_text text = {0}, json = {0};
    assert_int_equal(vram_profile_text(recording, &options, NULL, NULL, keep, &text, NULL), VRAM_OK);
    assert_int_equal(vram_profile_json(recording, &options, NULL, keep, &json, NULL), VRAM_OK);
    assert_non_null(strstr(vr_text_string(&text), "allocated in all"));
    assert_non_null(strstr(vr_text_string(&text), "2  gradients"));
    assert_non_null(strstr(vr_text_string(&json), "\"name\": \"gradients\",\n   \"highest_bytes\": 1000,\n   \"highest_count\": 1,\n"
                                                  "   \"made_bytes\": 2000,\n   \"made_count\": 2\n"));
    vr_text_release(&text);
    vr_text_release(&json);
    vram_recording_destroy(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_of_a_training_step),
        cmocka_unit_test(a_workspace_that_does_not_stay),
        cmocka_unit_test(a_cache_of_keys_is_one_where_nothing_is_trained),
        cmocka_unit_test(rules_and_notes_come_before_stacks),
        cmocka_unit_test(wrong_rules_are_named_by_line),
        cmocka_unit_test(old_blocks_pair_with_gradients),
        cmocka_unit_test(seeds_and_scratch_of_products),
        cmocka_unit_test(room_for_results),
        cmocka_unit_test(stacks_that_tell_nothing),
        cmocka_unit_test(what_is_made_between_passes),
        cmocka_unit_test(training_without_modules),
        cmocka_unit_test(reports_by_role_have_totals),
        cmocka_unit_test(buckets_of_ddp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
