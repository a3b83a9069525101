// Tests the text form of simulator options.
#include "unit/sim_fixture.h"
#include "vram/sim.h"

static void every_key_is_read(void **state) {
    struct vram_sim_options options;
    const char *text = "devices=2,memory=16GiB,profile=dear,addresses=reuse,alloc_base=0x200000000000,alloc_alignment=4MiB,"
                       "alloc_small_alignment=256,reserve_base=0x500000000000,reserve_alignment=2MiB,manual,backed=0";
    assert_int_equal(vram_sim_parse(text, &options, NULL), VRAM_OK);
    assert_int_equal(options.device_count, 2);
    assert_int_equal(options.memory_bytes, 16 * VR_GIB);
    assert_int_equal(options.profile, VRAM_SIM_DEAR);
    assert_int_equal(options.addresses, VRAM_SIM_REUSE);
    assert_int_equal(options.alloc_base, 0x200000000000);
    assert_int_equal(options.alloc_alignment, 4 * VR_MIB);
    assert_int_equal(options.alloc_small_alignment, 256);
    assert_int_equal(options.reserve_base, 0x500000000000);
    assert_int_equal(options.reserve_alignment, 2 * VR_MIB);
    assert_true(options.manual_completion);
    assert_false(options.backed);
    struct vram_driver *driver;
    assert_int_equal(vram_sim_create(&options, &driver), VRAM_OK);
    vram_driver_destroy(driver);
    assert_int_equal(vram_sim_parse("", &options, NULL), VRAM_OK);
    assert_int_equal(options.device_count, 0);
    assert_int_equal(vram_sim_parse("backed,memory=1", &options, NULL), VRAM_OK);
    assert_true(options.backed);
    assert_int_equal(options.memory_bytes, 1);
    static const char *const kinds[] = {"backed=1", "bytes=all", "bytes=sparse", "bytes=none"};
    for (size_t i = 0; i < VR_COUNT_OF(kinds); i++) {
        assert_int_equal(vram_sim_parse(kinds[i], &options, NULL), VRAM_OK);
        assert_int_equal(options.bytes, i);
    }
    // The last of the two keys wins.
    assert_int_equal(vram_sim_parse("backed,bytes=sparse", &options, NULL), VRAM_OK);
    assert_int_equal(options.bytes, VRAM_SIM_BYTES_SPARSE);
    assert_int_equal(vram_sim_parse("bytes=sparse,backed", &options, NULL), VRAM_OK);
    assert_int_equal(options.bytes, VRAM_SIM_BYTES_BACKED);
    assert_true(options.backed);
    assert_int_equal(vram_sim_parse("device=h100+t4,context=device,addresses=driver", &options, NULL), VRAM_OK);
    assert_int_equal(options.model_count, 2);
    assert_int_not_equal(options.models[0], options.models[1]);
    assert_true(options.context_bytes == VRAM_SIM_CONTEXT_OF_DEVICE);
    assert_int_equal(options.addresses, VRAM_SIM_DRIVER);
    assert_int_equal(vram_sim_parse("context=400MiB,addresses=windows", &options, NULL), VRAM_OK);
    assert_int_equal(options.context_bytes, 400 * VR_MIB);
    (void)state;
}

static void mistakes_are_pointed_at(void **state) {
    static const struct {
        const char *text;
        uint64_t offset;
        const char *message; // part of it
    } mistakes[] = {
        {"devices=1,memry=5", 10, "memry"},
        {"memory=5GB", 7, "5GB"},
        {"memory=", 7, "memory"},
        {"memory", 0, "needs a value"},
        {"memory=0x", 7, "0x"},
        {"memory=99999999999999999999", 7, "memory"},
        {"memory=99999999999999TiB", 7, "memory"},
        {"devices=4294967296", 8, "devices"},
        {"profile=fast", 8, "fast"},
        {"manual=yes", 7, "yes"},
        {"bytes=some", 6, "some"},
        {"=5", 0, "unknown"},
        {"device=h1000", 7, "h1000"},
        {"device=", 7, "device"},
        {"device=h100+", 7, "h100+"},
        {"device", 0, "needs a value"},
        {"context=much", 8, "much"},
    };
    for (size_t i = 0; i < VR_COUNT_OF(mistakes); i++) {
        struct vram_sim_options options = {.device_count = 77};
        struct vram_error error;
        assert_int_equal(vram_sim_parse(mistakes[i].text, &options, &error), VRAM_BAD_OPTION);
        assert_int_equal(error.offset, mistakes[i].offset);
        assert_non_null(strstr(error.message, mistakes[i].message));
        assert_int_equal(options.device_count, 77);
    }
    assert_int_equal(vram_sim_parse(NULL, NULL, NULL), VRAM_INVALID_ARGUMENT);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_key_is_read), cmocka_unit_test(mistakes_are_pointed_at)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
