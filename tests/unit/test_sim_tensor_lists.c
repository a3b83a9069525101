// The argument of PyTorch's kernels for lists of tensors: which tensors a launch uses, in both forms, and stale values after them.
#include "sim_fixture.h"

#include <stdlib.h>

#include "sim/modules/sim_tensor_lists.h"

enum { LARGE_TENSORS = 448, LARGE_BLOCKS = 2240, SMALL_TENSORS = 110, SMALL_BLOCKS = 320, CHUNK = 65536 };

#define ADD                                                                                                                                \
    "_ZN2at6native55_GLOBAL__N__f86471ef_22_ForeachBinaryOpList_cu_a911ec4325multi_tensor_apply_kernelINS1_"                               \
    "18TensorListMetadataILi2EEENS1_"                                                                                                      \
    "24BinaryOpListAlphaFunctorIfLi2ELi2ELi0EEEJSt4plusIfEfEEEvT_T0_DpT1_"
#define SCALE                                                                                                                              \
    "_ZN2at6native57_GLOBAL__N__86b9896c_24_ForeachBinaryOpScalar_cu_86b9896c25multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEE"  \
    "NS1_21BinaryOpScalarFunctorIfLi1ELi1ELi0EEEJSt10multipliesIfEfEEEvT_T0_DpT1_"

struct large {
    uint64_t addresses[2][LARGE_TENSORS], elements[LARGE_TENSORS];
    uint16_t tensor_of[LARGE_BLOCKS];
    uint32_t chunk_of[LARGE_BLOCKS], first;
};

struct small {
    uint64_t addresses[1][SMALL_TENSORS], elements[SMALL_TENSORS];
    uint8_t tensor_of[SMALL_BLOCKS];
    uint32_t chunk_of[SMALL_BLOCKS], first;
};

static struct vr_sim_accesses accesses;

static void expect(size_t at, uint64_t address, uint64_t bytes, enum vr_check_effect effect) {
    assert_true(at < accesses.count);
    assert_int_equal(accesses.items[at].address, address);
    assert_int_equal(accesses.items[at].size_bytes, bytes);
    assert_int_equal(accesses.items[at].effect, effect);
    assert_true(accesses.items[at].open);
}

// Three tensors, of which the second has three chunks. The third block of that is in the next launch.
static void lists_of_two(void **state) {
    struct large argument = {.elements = {5000, 3 * CHUNK, 99}};
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        argument.addresses[0][i] = 0x1000 * (i + 1);
        argument.addresses[1][i] = 0x100000 * (i + 1);
    }
    argument.tensor_of[1] = argument.tensor_of[2] = argument.tensor_of[3] = 1;
    argument.chunk_of[2] = 1;
    argument.chunk_of[3] = 2;
    accesses.count = 0;
    assert_true(vr_sim_tensor_lists(ADD, (const unsigned char *)&argument, sizeof argument, 3, 4, &accesses));
    assert_int_equal(accesses.count, 4);
    expect(0, 0x1000, 20000, VR_CHECK_WRITE);
    expect(1, 0x100000, 20000, VR_CHECK_READ);
    expect(2, 0x2000, 2 * CHUNK * 4, VR_CHECK_WRITE);
    expect(3, 0x200000, 2 * CHUNK * 4, VR_CHECK_READ);
    // The next launch goes on with the second tensor, whose beginning it does not use.
    argument.tensor_of[0] = 1;
    argument.chunk_of[0] = 2;
    argument.tensor_of[1] = 2;
    argument.chunk_of[1] = 0;
    accesses.count = 0;
    assert_true(vr_sim_tensor_lists(ADD, (const unsigned char *)&argument, sizeof argument, 2, 4, &accesses));
    assert_int_equal(accesses.count, 2);
    expect(0, 0x3000, 99 * 4, VR_CHECK_WRITE);
}

static void the_small_form(void **state) {
    struct small argument = {.addresses = {{0x1000, 0x2000}}, .elements = {10, 20}};
    (void)state;
    argument.tensor_of[1] = 1;
    accesses.count = 0;
    assert_true(vr_sim_tensor_lists(SCALE, (const unsigned char *)&argument, sizeof argument, 2, 2, &accesses));
    assert_int_equal(accesses.count, 2);
    expect(1, 0x2000, 40, VR_CHECK_WRITE);
}

static void other_layouts(void **state) {
    static const unsigned char bytes[sizeof(struct large)];
    (void)state;
    accesses.count = 0;
    assert_false(vr_sim_tensor_lists(ADD, bytes, sizeof bytes - 8, 1, 4, &accesses));
    assert_false(vr_sim_tensor_lists(SCALE, bytes, sizeof bytes, 1, 4, &accesses));
    assert_false(vr_sim_tensor_lists(ADD, bytes, sizeof bytes, LARGE_BLOCKS + 1, 4, &accesses));
    assert_false(vr_sim_tensor_lists("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi2EEEvT_", bytes, sizeof bytes, 1, 4, &accesses));
    assert_int_equal(accesses.count, 0);
}

static int release(void **state) {
    (void)state;
    free(accesses.items);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_two),
        cmocka_unit_test(the_small_form),
        cmocka_unit_test(other_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
