// Tests green contexts: parts of a device's multiprocessors.
#include "sim/sim.h"
#include "sim/sim_abi.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

static struct vram_driver *open_device(const char *text, struct vr_sim **sim) {
    struct vram_sim_options options = {0};
    assert_int_equal(vram_sim_parse(text, &options, NULL), VRAM_OK);
    struct vram_driver *driver = open_sim(&options);
    *sim = vr_sim_of(driver);
    return driver;
}

static void multiprocessors_are_split(void **state) {
    (void)state;
    static const struct {
        const char *device;
        unsigned whole, least, flags, groups, each, rest;
    } cases[] = {
        {"device=h100", 132, 16, 0, 8, 16, 4}, {"device=h100", 132, 1, 0, 16, 8, 4},     {"device=h100", 132, 1, 1, 66, 2, 0},
        {"device=h100", 132, 132, 0, 0, 0, 0}, {"device=a100-80", 108, 5, 0, 18, 6, 0},  {"device=a100-80", 108, 0, 0, 27, 4, 0},
        {"device=t4", 40, 12, 0, 3, 12, 4},    {"device=a100-80", 108, 109, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_sim *sim;
        struct vram_driver *driver = open_device(cases[i].device, &sim);
        struct vr_cu_dev_resource whole, groups[128], rest;
        unsigned count = 0;
        assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &whole, 1), SUCCESS);
        assert_int_equal(whole.multiprocessors, cases[i].whole);
        assert_cu(vr_sim_call_dev_sm_resource_split_by_count(sim, NULL, &count, &whole, NULL, cases[i].flags, cases[i].least), SUCCESS);
        assert_int_equal(count, cases[i].groups);
        count = 128;
        const vr_cu_result result =
            vr_sim_call_dev_sm_resource_split_by_count(sim, groups, &count, &whole, &rest, cases[i].flags, cases[i].least);
        if (cases[i].groups == 0) {
            assert_int_equal(result, VR_CU_INVALID_RESOURCE_CONFIGURATION);
            assert_int_equal(count, 128);
        } else {
            assert_int_equal(result, VR_CU_SUCCESS);
            assert_int_equal(count, cases[i].groups);
            for (unsigned at = 0; at < count; at++) assert_int_equal(groups[at].multiprocessors, cases[i].each);
            assert_int_equal(rest.multiprocessors, cases[i].rest);
            assert_int_equal(rest.type, cases[i].rest == 0 ? 0 : 1);
        }
        vram_driver_destroy(driver);
    }
}

static void a_green_context_is_the_primary_one(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100", &sim);
    struct vr_cu_dev_resource whole, half[2], asked;
    unsigned count = 2;
    uint64_t description, green, context, primary, stream, of = 7, id = 0;
    assert_cu(vr_cu(driver, ctx_get_current, &primary), SUCCESS);
    assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &whole, 1), SUCCESS);
    assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &whole, 10000), INVALID_RESOURCE_TYPE);
    assert_cu(vr_sim_call_dev_sm_resource_split_by_count(sim, half, &count, &whole, NULL, 0, 64), SUCCESS);
    assert_cu(vr_sim_call_dev_resource_generate_desc(sim, &description, half, 1), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_create(sim, &green, description, 0, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_green_ctx_create(sim, &green, primary, 0, 1), INVALID_HANDLE);
    assert_cu(vr_sim_call_green_ctx_create(sim, &green, description, 1, 1), INVALID_DEVICE);
    assert_cu(vr_sim_call_green_ctx_create(sim, &green, description, 0, 1), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_get_dev_resource(sim, green, &asked, 1), SUCCESS);
    assert_int_equal(asked.multiprocessors, 64);
    assert_cu(vr_sim_call_green_ctx_get_id(sim, green, &id), SUCCESS);
    assert_true(id != 0);
    assert_cu(vr_sim_call_ctx_from_green_ctx(sim, &context, green), SUCCESS);
    assert_int_equal(context, primary);
    assert_cu(vr_sim_call_green_ctx_stream_create(sim, &stream, green, 0, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_green_ctx_stream_create(sim, &stream, green, 1, -1), SUCCESS);
    assert_cu(vr_sim_call_stream_get_green_ctx(sim, stream, &of), SUCCESS);
    assert_int_equal(of, green);
    assert_cu(vr_sim_call_stream_get_green_ctx(sim, 0, &of), SUCCESS);
    assert_int_equal(of, 0);
    assert_cu(vr_sim_call_stream_get_ctx_v2(sim, stream, &context, &of), SUCCESS);
    assert_int_equal(of, green);
    assert_cu(vr_sim_call_stream_get_ctx_v2(sim, 0, &context, &of), SUCCESS);
    assert_int_equal(of, 0);
    assert_cu(vr_sim_call_stream_get_dev_resource(sim, stream, &asked, 1), SUCCESS);
    assert_int_equal(asked.multiprocessors, 64);
    assert_cu(vr_sim_call_stream_get_dev_resource(sim, 0, &asked, 1), SUCCESS);
    assert_int_equal(asked.multiprocessors, whole.multiprocessors);
    assert_cu(vr_sim_call_stream_get_dev_resource(sim, 0, &asked, 2), INVALID_RESOURCE_TYPE);
    assert_cu(vr_cu(driver, stream_destroy, stream), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_destroy(sim, green), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_destroy(sim, green), INVALID_CONTEXT);
    assert_cu(vr_sim_call_ctx_from_green_ctx(sim, &context, green), INVALID_CONTEXT);
    vram_driver_destroy(driver);
}

// As PyTorch makes them: multiprocessors and a queue resource, or only the queue resource.
static void queues_for_work_are_told_again(void **state) {
    (void)state;
    enum { QUEUES = 1000, BALANCED = 1 };
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100", &sim);
    struct vr_cu_dev_resource wanted[3], asked;
    uint64_t description, green;
    assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &wanted[0], 1), SUCCESS);
    assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &wanted[1], QUEUES), SUCCESS);
    assert_int_equal(wanted[1].workloads, 8);
    wanted[1].scope = 2;
    assert_cu(vr_sim_call_dev_resource_generate_desc(sim, &description, wanted, 2), INVALID_RESOURCE_CONFIGURATION);
    wanted[1].scope = BALANCED;
    wanted[1].workloads = 2;
    wanted[2] = wanted[1];
    assert_cu(vr_sim_call_dev_resource_generate_desc(sim, &description, wanted, 3), INVALID_RESOURCE_CONFIGURATION);
    for (unsigned first = 0; first < 2; first++) {
        assert_cu(vr_sim_call_dev_resource_generate_desc(sim, &description, wanted + first, 2 - first), SUCCESS);
        assert_cu(vr_sim_call_green_ctx_create(sim, &green, description, 0, 1), SUCCESS);
        assert_cu(vr_sim_call_green_ctx_get_dev_resource(sim, green, &asked, 1), SUCCESS);
        assert_int_equal(asked.multiprocessors, 132);
        assert_cu(vr_sim_call_green_ctx_get_dev_resource(sim, green, &asked, QUEUES), SUCCESS);
        assert_true(asked.workloads == 2 && asked.scope == BALANCED && asked.device == 0);
        assert_cu(vr_sim_call_green_ctx_destroy(sim, green), SUCCESS);
    }
    vram_driver_destroy(driver);
}

static void parts_have_the_sizes_that_were_asked_for(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100", &sim);
    struct vr_cu_dev_resource whole, parts[2], rest;
    struct vr_cu_sm_group wanted[2] = {{.multiprocessors = 16}, {.multiprocessors = 0}}, odd = {.multiprocessors = 9};
    assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &whole, 1), SUCCESS);
    assert_cu(vr_sim_call_dev_sm_resource_split(sim, parts, 2, &whole, &rest, 0, wanted), SUCCESS);
    assert_int_equal(parts[0].multiprocessors, 16);
    assert_int_equal(parts[1].multiprocessors, 112);
    assert_int_equal(wanted[1].multiprocessors, 112);
    assert_int_equal(rest.multiprocessors, 4);
    assert_cu(vr_sim_call_dev_sm_resource_split(sim, NULL, 1, &whole, NULL, 0, &odd), INVALID_RESOURCE_CONFIGURATION);
    odd.coscheduled = 3;
    assert_cu(vr_sim_call_dev_sm_resource_split(sim, NULL, 1, &whole, NULL, 0, &odd), SUCCESS);
    odd.multiprocessors = 135;
    assert_cu(vr_sim_call_dev_sm_resource_split(sim, parts, 1, &whole, &rest, 0, &odd), INVALID_RESOURCE_CONFIGURATION);
    assert_int_equal(parts[0].multiprocessors, 16); // as before
    assert_cu(vr_sim_call_dev_sm_resource_split(sim, parts, 0, &whole, NULL, 0, wanted), INVALID_VALUE);
    assert_cu(vr_sim_call_dev_sm_resource_split(sim, parts, 1, &rest, NULL, 0, NULL), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static uint64_t stream_of(struct vram_driver *driver, uint64_t work_ns) {
    uint64_t stream;
    assert_cu(vr_cu(driver, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), SUCCESS);
    if (work_ns != 0) assert_int_equal(vram_sim_busy(driver, 0, stream, work_ns), VRAM_OK);
    return stream;
}

// An event of a context follows the work of all its streams, and all of them can wait for one.
static void events_are_of_whole_contexts(void **state) {
    (void)state;
    static const char *const settings[] = {"device=h100", "device=h100,manual"};
    for (size_t i = 0; i < VR_COUNT_OF(settings); i++) {
        struct vr_sim *sim;
        struct vram_driver *driver = open_device(settings[i], &sim);
        uint64_t context, event, second;
        assert_cu(vr_cu(driver, ctx_get_current, &context), SUCCESS);
        assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
        assert_cu(vr_cu(driver, event_create, &second, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
        assert_cu(vr_sim_call_ctx_wait_event(sim, context, event), SUCCESS); // never recorded
        const uint64_t slow = stream_of(driver, 5000000), quick = stream_of(driver, 1000);
        assert_cu(vr_sim_call_ctx_record_event(sim, context, event), SUCCESS);
        assert_cu(vr_cu(driver, stream_synchronize, quick), SUCCESS);
        assert_cu(vr_cu(driver, event_query, event), NOT_READY);
        assert_cu(vr_sim_call_ctx_wait_event(sim, context, event), SUCCESS);
        assert_cu(vr_cu(driver, event_record, second, quick), SUCCESS);
        assert_cu(vr_cu(driver, event_query, second), NOT_READY);
        assert_cu(vr_cu(driver, stream_synchronize, slow), SUCCESS);
        assert_cu(vr_cu(driver, event_query, event), SUCCESS);
        assert_cu(vr_cu(driver, event_synchronize, second), SUCCESS);
        assert_cu(vr_sim_call_ctx_record_event(sim, 0, event), INVALID_CONTEXT);
        assert_cu(vr_sim_call_ctx_record_event(sim, context, 0), INVALID_HANDLE);
        assert_cu(vr_sim_call_green_ctx_record_event(sim, context, event), INVALID_CONTEXT);
        assert_cu(vr_cu(driver, stream_begin_capture, quick, VR_CU_STREAM_CAPTURE_MODE_RELAXED), SUCCESS);
        assert_cu(vr_sim_call_ctx_record_event(sim, context, event), STREAM_CAPTURE_UNSUPPORTED);
        assert_true(vr_sim_check(sim));
        vram_driver_destroy(driver);
    }
}

static void events_of_a_green_context_are_of_its_streams(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100", &sim);
    struct vr_cu_dev_resource whole;
    uint64_t description, green, stream, event;
    assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &whole, 1), SUCCESS);
    assert_cu(vr_sim_call_dev_resource_generate_desc(sim, &description, &whole, 1), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_create(sim, &green, description, 0, 1), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_stream_create(sim, &stream, green, 1, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    (void)stream_of(driver, 1000000); // on another context's stream
    assert_cu(vr_sim_call_green_ctx_record_event(sim, green, event), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), SUCCESS);
    assert_int_equal(vram_sim_busy(driver, 0, stream, 1000000), VRAM_OK);
    assert_cu(vr_sim_call_green_ctx_record_event(sim, green, event), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), NOT_READY);
    assert_cu(vr_sim_call_green_ctx_wait_event(sim, green, event), SUCCESS);
    assert_cu(vr_cu(driver, event_synchronize, event), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_destroy(sim, green), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_wait_event(sim, green, event), INVALID_CONTEXT);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiprocessors_are_split),      cmocka_unit_test(a_green_context_is_the_primary_one),
        cmocka_unit_test(queues_for_work_are_told_again), cmocka_unit_test(parts_have_the_sizes_that_were_asked_for),
        cmocka_unit_test(events_are_of_whole_contexts),   cmocka_unit_test(events_of_a_green_context_are_of_its_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
