// Green contexts: parts of a device's multiprocessors.
#include "driver/sim/sim.h"
#include "driver/sim/sim_abi.h"
#include "unit/sim_fixture.h"

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
    assert_cu(vr_sim_call_device_get_dev_resource(sim, 0, &whole, 1000), INVALID_RESOURCE_TYPE);
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
    assert_cu(vr_cu(driver, stream_destroy, stream), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_destroy(sim, green), SUCCESS);
    assert_cu(vr_sim_call_green_ctx_destroy(sim, green), INVALID_CONTEXT);
    assert_cu(vr_sim_call_ctx_from_green_ctx(sim, &context, green), INVALID_CONTEXT);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiprocessors_are_split),
        cmocka_unit_test(a_green_context_is_the_primary_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
