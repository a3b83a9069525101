// Tests the simulator's devices: their attributes, peers and contexts.
#include "sim/device/sim_card.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

static struct vram_driver *open_text(const char *text) {
    struct vram_sim_options options;
    assert_int_equal(vram_sim_parse(text, &options, NULL), VRAM_OK);
    return open_sim(&options);
}

static int attribute(struct vram_driver *driver, int number, int device) {
    int value = -2;
    assert_cu(vr_cu(driver, device_get_attribute, &value, number, device), SUCCESS);
    return value;
}

static void every_attribute_is_answered(void **state) {
    static const char *const texts[] = {"", "device=t4", "device=gb10", "device=p100", "device=gb200", "device=orin", "device=mi300x"};
    for (size_t i = 0; i < VR_COUNT_OF(texts); i++) {
        struct vram_driver *driver = open_text(texts[i]);
        int value = 7;
        for (int number = 1; number <= 161; number++) assert_cu(vr_cu(driver, device_get_attribute, &value, number, 0), SUCCESS);
        assert_int_not_equal(attribute(driver, 13, 0), 0); // clock
        assert_int_not_equal(attribute(driver, 39, 0), 0); // threads of a multiprocessor
        value = 7;
        assert_cu(vr_cu(driver, device_get_attribute, &value, 162, 0), INVALID_VALUE);
        assert_cu(vr_cu(driver, device_get_attribute, &value, 0, 0), INVALID_VALUE);
        assert_cu(vr_cu(driver, device_get_attribute, &value, 1, 1), INVALID_DEVICE);
        assert_int_equal(value, 7);
        vram_driver_destroy(driver);
    }
    (void)state;
}

// Every attribute in NVIDIA's headers, as in the committed facts, is a row, under one of its names.
static void the_attributes_are_nvidias(void **state) {
    static const struct {
        const char *name;
        int number;
    } facts[] = {
#define V(enumeration, name, value, first, last) {#name, value},
#include "../../simulator/standins/facts/cuda_values.def"
#undef V
    };
    static const struct {
        const char *name;
        int number;
    } rows[] = {
#define X(number, name, value) {"CU_DEVICE_ATTRIBUTE_" #name, number},
#include "sim/device/attributes.def"
#undef X
    };
    int most = 0;
    for (size_t i = 0; i < VR_COUNT_OF(facts); i++)
        if (strcmp(facts[i].name, "CU_DEVICE_ATTRIBUTE_MAX") == 0) most = facts[i].number;
    assert_int_equal(VR_COUNT_OF(rows), most - 1);
    for (size_t row = 0; row < VR_COUNT_OF(rows); row++) {
        assert_int_equal(rows[row].number, row + 1);
        size_t at = 0;
        while (at < VR_COUNT_OF(facts) && strcmp(facts[at].name, rows[row].name) != 0) at++;
        assert_in_range(at, 0, VR_COUNT_OF(facts) - 1);
        assert_int_equal(facts[at].number, rows[row].number);
    }
    (void)state;
}

static void a_known_device_is_what_it_is_called(void **state) {
    struct vram_driver *driver = open_text("device=h100");
    char name[64];
    uint64_t total = 0;
    assert_cu(vr_cu(driver, device_get_name, name, sizeof name, 0), SUCCESS);
    assert_string_equal(name, "NVIDIA H100 80GB HBM3");
    assert_cu(vr_cu(driver, device_total_mem, &total, 0), SUCCESS);
    assert_int_equal(total, 85017755648);
    assert_int_equal(attribute(driver, 75, 0), 9);
    assert_int_equal(attribute(driver, 16, 0), 132);
    assert_int_equal(attribute(driver, 97, 0), 232448); // shared memory for a block that opts in
    assert_int_equal(attribute(driver, 38, 0), 50 * 1024 * 1024);
    vram_driver_destroy(driver);
    driver = open_text("device=h100,memory=1GiB");
    assert_cu(vr_cu(driver, device_total_mem, &total, 0), SUCCESS);
    assert_int_equal(total, VR_GIB);
    vram_driver_destroy(driver);
    (void)state;
}

static void devices_may_be_unlike(void **state) {
    struct vram_driver *driver = open_text("device=h100+t4,devices=3");
    int count = 0, can = -1;
    assert_cu(vr_cu(driver, device_get_count, &count), SUCCESS);
    assert_int_equal(count, 3); // an h100, a t4, an h100
    assert_int_equal(attribute(driver, 16, 1), 40);
    assert_int_equal(attribute(driver, 16, 2), 132);
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 0, 1), SUCCESS);
    assert_int_equal(can, 0);
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 0, 2), SUCCESS);
    assert_int_equal(can, 1);
    vram_driver_destroy(driver);
    driver = open_text("device=rtx4090+rtx4090");
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 0, 1), SUCCESS);
    assert_int_equal(can, 0);
    vram_driver_destroy(driver);
    (void)state;
}

static void a_context_takes_what_the_device_says(void **state) {
    struct vram_driver *driver = open_text("device=t4,context=device");
    uint64_t available = 0, total = 0;
    assert_cu(vr_cu(driver, mem_get_info, &available, &total), SUCCESS);
    assert_int_equal(total - available, 115 * VR_MIB);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    vram_driver_destroy(driver);
    driver = open_text("device=t4"); // defaults to bytes=none, as elsewhere in the library
    assert_cu(vr_cu(driver, mem_get_info, &available, &total), SUCCESS);
    assert_int_equal(total, available);
    vram_driver_destroy(driver);
    (void)state;
}

// On 6.0 a block may use less shared memory than a multiprocessor has.
static bool shares_all(const struct vr_sim_architecture *arch) {
    const int most = arch->major == 6 ? 49152 : arch->shared_bytes;
    return arch->shared_optin_bytes + arch->reserved_bytes == most && most <= arch->shared_bytes;
}

static void check_card(const struct vr_sim_card *card, uint32_t number, const struct vram_sim_model *model) {
    const struct vr_sim_architecture *arch = vr_sim_architecture_of(card);
    const bool told = card->kind != VR_SIM_INTEGRATED && card->kind != VR_SIM_INSTINCT; // known to NVML
    assert_string_equal(card->key, model->key);
    assert_int_equal(vr_sim_card_find(model->key, strlen(model->key)), number);
    assert_true(arch->major == card->major && arch->minor == card->minor); // it has its own row
    assert_true(card->total_bytes > VR_GIB && (card->context_mib > 0 || card->kind == VR_SIM_INSTINCT) &&
                card->context_mib * VR_MIB < card->total_bytes / 16);
    assert_true(told ? card->nvml_mib * VR_MIB > card->total_bytes : card->nvml_mib == 0);
    assert_true(card->nvml_mib * VR_MIB < card->total_bytes + card->total_bytes / 16);
    assert_true(shares_all(arch));
    assert_int_equal(strspn(card->estimated, "MPLCBE"), strlen(card->estimated));
    assert_string_equal(vram_sim_model_estimated(card->key), card->estimated);
    assert_string_equal(vr_sim_board_of(card)->key, told ? card->key : ""); // each has a row in boards.def
}

static void the_table_is_sound(void **state) {
    struct vram_sim_model model;
    uint32_t count = 0, amd = 0;
    for (; vram_sim_model_at(count, &model); count++) check_card(vr_sim_card_at(count + 1), count + 1, &model);
    for (; vram_sim_amd_model_at(amd, &model); amd++) {
        const struct vr_sim_card *card = vr_sim_card_at(count + amd + 1);
        assert_int_equal(card->kind, VR_SIM_INSTINCT);
        check_card(card, count + amd + 1, &model);
    }
    assert_int_equal(count, 54);
    assert_int_equal(amd, 2);
    assert_int_equal(count + amd, vr_sim_card_count());
    assert_in_range(vr_sim_card_count(), 1, 63); // `vram fit` has a bit for each
    assert_false(vram_sim_model_at(UINT32_MAX, &model));
    assert_false(vram_sim_model_at(0, NULL));
    assert_false(vram_sim_amd_model_at(0, NULL));
    assert_string_equal(vram_sim_model_estimated(NULL), "");
    assert_string_equal(vram_sim_model_estimated("h1000"), "");
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_attribute_is_answered),          cmocka_unit_test(the_attributes_are_nvidias),
                                       cmocka_unit_test(a_known_device_is_what_it_is_called),  cmocka_unit_test(devices_may_be_unlike),
                                       cmocka_unit_test(a_context_takes_what_the_device_says), cmocka_unit_test(the_table_is_sound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
