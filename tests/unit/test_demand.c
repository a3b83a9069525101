// Tests the findings about the memory in use when a request fails, and the changes that would reduce it, on handmade histories with known
// answers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/text.h"
#include "vram/demand.h"
#include "vram/oom.h"
#include "vram/recording.h"
#include "vram/report.h"

#define MIB ((uint64_t)1 << 20)

// Frames as JSON text, innermost first.
#define FRAME(file, line, name) "{\"filename\": \"" file "\", \"line\": " #line ", \"name\": \"" name "\"}"
#define MODULE_CALL             FRAME("/lib/torch/nn/modules/module.py", 1, "_call_impl")
#define TRAIN                   FRAME("/home/me/train.py", 7, "main")
#define LOAD                    FRAME("/lib/torch/nn/modules/module.py", 9, "_apply") "," FRAME("/home/me/train.py", 3, "main")
#define BLOCK_OF(line)                                                                                                                     \
    FRAME("/home/me/model.py", line, "forward") "," MODULE_CALL "," FRAME("/home/me/model.py", 40, "forward") "," MODULE_CALL "," TRAIN
#define HEAD     FRAME("/home/me/model.py", 50, "forward") "," MODULE_CALL "," TRAIN
#define VALIDATE FRAME("/home/me/model.py", 10, "forward") "," MODULE_CALL "," FRAME("/home/me/train.py", 90, "validate")
#define STEP     FRAME("/lib/torch/optim/adamw.py", 5, "step") "," TRAIN
#define STATE    FRAME("/lib/torch/optim/adamw.py", 6, "_init_group") "," STEP
#define KEEP     FRAME("/home/me/train.py", 31, "keep") "," TRAIN
#define CACHE    FRAME("/lib/transformers/cache_utils.py", 4, "update") "," HEAD
#define BACKWARD ""

struct made {
    struct vr_text json;
    size_t events;
    uint64_t next; // next address
};

static void put(struct made *made, const char *action, uint64_t address, uint64_t bytes, const char *frames) {
    vr_text_printf(&made->json, "%s{\"action\": \"%s\", \"%s\": %llu, \"size\": %llu, \"stream\": 0, \"time_us\": %zu, \"frames\": [",
                   made->events == 0 ? "" : ",", action, strcmp(action, "oom") == 0 ? "device_free" : "addr", (unsigned long long)address,
                   (unsigned long long)bytes, 100 + 10 * made->events);
    vr_text_puts(&made->json, frames);
    vr_text_puts(&made->json, "]}");
    made->events++;
}

static uint64_t take(struct made *made, uint64_t mib, const char *frames) {
    const uint64_t address = made->next;
    made->next += mib * MIB;
    put(made, "alloc", address, mib * MIB, frames);
    return address;
}
static void give(struct made *made, uint64_t address, uint64_t mib) {
    put(made, "free_requested", address, mib * MIB, TRAIN);
    put(made, "free_completed", address, mib * MIB, TRAIN);
}
static void fail_at(struct made *made, uint64_t mib, const char *frames) { put(made, "oom", 0, mib * MIB, frames); }

static void begin(struct made *made) {
    *made = (struct made){.next = (uint64_t)1 << 40};
    vr_text_puts(&made->json, "{\"segments\": [], \"device_traces\": [[");
}

static struct vram_report *end(struct made *made, uint64_t memory_bytes) {
    struct vram_recording *recording = NULL;
    struct vram_report *report = NULL;
    struct vram_error error;
    const struct vram_report_options options = {.memory_bytes = memory_bytes};
    vr_text_puts(&made->json, "]]}");
    if (vram_recording_read_memory(made->json.bytes, made->json.length, "made", &recording, &error) != VRAM_OK)
        fail_msg("%s", error.message);
    assert_int_equal(vram_report_create(recording, &options, &report, &error), VRAM_OK);
    vram_recording_destroy(recording);
    vr_text_release(&made->json);
    return report;
}

static const struct vram_report_demand *demand_of(const struct vram_report *report) {
    const struct vram_report_device *device = &report->devices[0];
    const struct vram_report_demand *demand = device->oom_count == 0 ? device->demand : device->ooms[device->oom_count - 1].demand;
    assert_non_null(demand);
    return demand;
}

static const struct vram_report_remedy *remedy_of(const struct vram_report_demand *demand, enum vram_remedy remedy) {
    for (size_t i = 0; i < demand->remedy_count; i++) {
        if (demand->remedies[i].remedy == remedy) return &demand->remedies[i];
    }
    return NULL;
}

enum { BLOCKS = 4 };

// A step of a model with four blocks, each called by line 40: 30 MiB is kept for the backward pass and 10 MiB is the result, in addition
// to `fixed` parameters of 6 MiB each; the loss takes 20.
static void put_step(struct made *made, bool keep_graph) {
    uint64_t inside[BLOCKS], result[BLOCKS], loss, gradient[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        const uint64_t passing = take(made, 5, BLOCK_OF(10));
        inside[i] = take(made, 30, BLOCK_OF(11));
        give(made, passing, 5);
        result[i] = take(made, 10, BLOCK_OF(12));
    }
    loss = take(made, 20, HEAD);
    const uint64_t seed = take(made, 20, BACKWARD);
    give(made, loss, 20);
    for (int i = BLOCKS; i-- > 0;) {
        gradient[i] = take(made, 6, BACKWARD);
        const uint64_t passing = take(made, 10, BACKWARD);
        if (!keep_graph) give(made, inside[i], 30);
        if (!keep_graph) give(made, result[i], 10);
        give(made, passing, 10);
        if (i == BLOCKS - 1) give(made, seed, 20);
    }
    const uint64_t scratch = take(made, 6, STEP);
    give(made, scratch, 6);
    for (int i = 0; i < BLOCKS; i++) give(made, gradient[i], 6);
}

static void put_model(struct made *made) {
    for (int i = 0; i < BLOCKS; i++) (void)take(made, 6, LOAD);
}

// Peak: 24 parameters, 160 of blocks, loss 20 and seed 20: 224. With each block recomputed: 24, results 40, the last block's 30 again, seed
// 20, gradient 6 and 10 for the gradient passed on.
static void recomputing_and_a_smaller_batch(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_model(&made);
    put_step(&made, false);
    put_step(&made, false);
    struct vram_report *report = end(&made, 150 * MIB);
    const struct vram_report_demand *demand = demand_of(report);
    assert_int_equal(demand->demand, VRAM_DEMAND_ROLE);
    assert_int_equal(demand->role, VRAM_ROLE_ACTIVATIONS);
    assert_int_equal(demand->wanted_bytes, 224 * MIB);
    const struct vram_report_remedy *remedy = remedy_of(demand, VRAM_REMEDY_RECOMPUTE);
    assert_non_null(remedy);
    assert_string_equal(remedy->site, "/home/me/model.py:40:forward");
    assert_int_equal(remedy->calls, BLOCKS);
    assert_int_equal(remedy->bytes, BLOCKS * 30 * MIB);
    assert_int_equal(remedy->left_bytes, (24 + 40 + 30 + 20 + 6 + 10) * MIB);
    assert_true(remedy->fits);
    assert_true(strstr(remedy->text, "94.0 MiB less, 130.0 MiB in total, which fits") != NULL);
    remedy = remedy_of(demand, VRAM_REMEDY_BATCH);
    assert_non_null(remedy);
    const double most = (150.0 - 24 - 150.0 / 64) / 200; // a 64th of the room is reserved for rounding
    assert_true(remedy->factor > most - 0.001 && remedy->factor < most + 0.001);
    assert_true(remedy->fits);
    vram_report_destroy(report);
}

// A call lasts until its last allocation: what it keeps exists as well, and is freed afterwards.
static void a_call_ends_with_its_last_allocation(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_model(&made);
    uint64_t inside[BLOCKS], result[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        inside[i] = take(&made, 30, BLOCK_OF(11));
        result[i] = take(&made, 10, BLOCK_OF(12));
        give(&made, take(&made, 50, BLOCK_OF(10)), 50);
    }
    const uint64_t loss = take(&made, 20, HEAD);
    for (int i = BLOCKS; i-- > 0;) {
        (void)take(&made, 6, BACKWARD);
        give(&made, inside[i], 30);
        give(&made, result[i], 10);
    }
    give(&made, loss, 20);
    struct vram_report *report = end(&made, 150 * MIB);
    const struct vram_report_remedy *remedy = remedy_of(demand_of(report), VRAM_REMEDY_RECOMPUTE);
    assert_non_null(remedy);
    assert_int_equal(remedy->left_bytes, (24 + BLOCKS * 10 + 30 + 50) * MIB);
    vram_report_destroy(report);
}

static void a_list_that_grows(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_model(&made);
    for (int i = 0; i < 12; i++) {
        put_step(&made, false);
        (void)take(&made, 8, KEEP);
    }
    fail_at(&made, 30, BLOCK_OF(11));
    struct vram_report *report = end(&made, 0);
    const struct vram_report_demand *demand = demand_of(report);
    assert_int_equal(demand->demand, VRAM_DEMAND_GROWTH);
    assert_int_equal(demand->bytes, 12 * 8 * MIB);
    assert_string_equal(demand->sites[0].name, "/home/me/train.py:31:keep");
    assert_int_equal(demand->remedies[0].remedy, VRAM_REMEDY_RELEASE);
    assert_true(strstr(report->devices[0].ooms[0].text, "a leak: 96.0 MiB") == report->devices[0].ooms[0].text);
    vram_report_destroy(report);
}

static void graphs_that_are_kept(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_model(&made);
    for (int i = 0; i < 10; i++) put_step(&made, true);
    fail_at(&made, 30, BLOCK_OF(11));
    struct vram_report *report = end(&made, 0);
    const struct vram_report_demand *demand = demand_of(report);
    assert_true(demand->demand == VRAM_DEMAND_RETAINED || demand->demand == VRAM_DEMAND_GROWTH);
    assert_string_equal(demand->sites[0].name, "/home/me/model.py:11:forward");
    vram_report_destroy(report);
}

static void validation_with_a_graph(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_model(&made);
    put_step(&made, false);
    put_step(&made, false);
    for (int i = 0; i < 8; i++) (void)take(&made, 30, VALIDATE);
    fail_at(&made, 30, VALIDATE);
    struct vram_report *report = end(&made, 0);
    const struct vram_report_demand *demand = demand_of(report);
    assert_int_equal(demand->demand, VRAM_DEMAND_NOT_TRAINED);
    assert_int_equal(demand->bytes, 8 * 30 * MIB);
    assert_int_equal(demand->remedies[0].remedy, VRAM_REMEDY_NO_GRAD);
    vram_report_destroy(report);
}

static void the_first_step_of_an_optimizer(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_model(&made);
    for (int i = 0; i < BLOCKS; i++) (void)take(&made, 3, BLOCK_OF(11));
    for (int i = 0; i < BLOCKS; i++) {
        (void)take(&made, 6, BACKWARD);
        give(&made, ((uint64_t)1 << 40) + (uint64_t)(24 + 3 * i) * MIB, 3);
    }
    for (int i = 0; i < 5; i++) (void)take(&made, 6, STATE);
    fail_at(&made, 6, STATE);
    struct vram_report *report = end(&made, 0);
    const struct vram_report_demand *demand = demand_of(report);
    assert_int_equal(demand->demand, VRAM_DEMAND_FIRST_STEP);
    assert_int_equal(demand->bytes, 30 * MIB);
    const struct vram_report_remedy *remedy = remedy_of(demand, VRAM_REMEDY_STATE_OFFLOAD);
    assert_true(remedy != NULL && remedy->saved_bytes == 30 * MIB && remedy->fits);
    vram_report_destroy(report);
}

static void one_request(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    (void)take(&made, 10, KEEP);
    fail_at(&made, 400, KEEP);
    struct vram_report *report = end(&made, 0);
    assert_int_equal(demand_of(report)->demand, VRAM_DEMAND_REQUEST);
    vram_report_destroy(report);
}

static void keys_and_values(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    put_model(&made);
    for (int i = 0; i < 20; i++) {
        const uint64_t passing = take(&made, 5, HEAD);
        (void)take(&made, 10 + (uint64_t)i, CACHE);
        give(&made, passing, 5);
    }
    fail_at(&made, 10, CACHE);
    struct vram_report *report = end(&made, 0);
    const struct vram_report_demand *demand = demand_of(report);
    assert_true(demand->demand == VRAM_DEMAND_ROLE || demand->demand == VRAM_DEMAND_GROWTH);
    assert_int_equal(demand->of_role[VRAM_ROLE_KV_CACHE].bytes, demand->bytes);
    vram_report_destroy(report);
}

// Two backward passes without an optimizer step in between: the second adds to gradients that were live during its forward pass.
static void gradients_that_live_on(void **state) {
    (void)state;
    struct made made;
    begin(&made);
    (void)take(&made, 100, LOAD);
    for (int i = 0; i < 2; i++) {
        const uint64_t inside = take(&made, 50, BLOCK_OF(11));
        const uint64_t gradient = take(&made, 100, BACKWARD);
        give(&made, inside, 50);
        if (i == 1) give(&made, gradient, 100);
    }
    (void)take(&made, 150, BLOCK_OF(11));
    fail_at(&made, 40, BLOCK_OF(12));
    struct vram_report *report = end(&made, 0);
    const struct vram_report_demand *demand = demand_of(report);
    assert_int_equal(demand->demand, VRAM_DEMAND_HELD_GRADIENTS);
    assert_int_equal(demand->bytes, 100 * MIB);
    const struct vram_report_remedy *remedy = remedy_of(demand, VRAM_REMEDY_GRADIENTS_NONE);
    assert_non_null(remedy);
    assert_true(remedy->fits);
    vram_report_destroy(report);
}

// Two layers of one size: gradients that the second backward pass has recreated by the time of the failure save nothing.
static void gradients_of_one_size(void **state) {
    (void)state;
    for (uint64_t again = 0; again <= 2; again++) {
        struct made made;
        begin(&made);
        (void)take(&made, 100, LOAD);
        const uint64_t first = take(&made, 50, BLOCK_OF(11));
        (void)take(&made, 60, BACKWARD);
        (void)take(&made, 60, BACKWARD);
        give(&made, first, 50);
        (void)take(&made, 50, BLOCK_OF(11));
        for (uint64_t i = 0; i < again; i++) give(&made, take(&made, 60, BACKWARD), 60);
        fail_at(&made, 200, BACKWARD);
        struct vram_report *report = end(&made, 0);
        const struct vram_report_remedy *remedy = remedy_of(demand_of(report), VRAM_REMEDY_GRADIENTS_NONE);
        assert_int_equal(remedy == NULL ? 0 : remedy->saved_bytes, (2 - again) * 60 * MIB);
        vram_report_destroy(report);
    }
}

static void names_of_all(void **state) {
    (void)state;
    for (size_t i = 0; i < VRAM_DEMAND_COUNT; i++) assert_non_null(vram_demand_name(i));
    for (size_t i = 0; i < VRAM_REMEDY_COUNT; i++) assert_non_null(vram_remedy_name(i));
    assert_null(vram_demand_name(VRAM_DEMAND_COUNT));
    assert_null(vram_remedy_name(VRAM_REMEDY_COUNT));
    assert_null(vram_remedy_name(SIZE_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recomputing_and_a_smaller_batch),
        cmocka_unit_test(a_call_ends_with_its_last_allocation),
        cmocka_unit_test(a_list_that_grows),
        cmocka_unit_test(graphs_that_are_kept),
        cmocka_unit_test(validation_with_a_graph),
        cmocka_unit_test(the_first_step_of_an_optimizer),
        cmocka_unit_test(one_request),
        cmocka_unit_test(keys_and_values),
        cmocka_unit_test(gradients_that_live_on),
        cmocka_unit_test(gradients_of_one_size),
        cmocka_unit_test(names_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
