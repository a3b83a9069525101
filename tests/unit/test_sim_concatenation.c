// The arguments of PyTorch's kernels for torch.cat(): what is read of the inputs, what is written of the output, and unknown layouts.
#include "sim_fixture.h"

#include <stdlib.h>

#include "sim/modules/sim_concatenation.h"

enum { TENSORS = 128, WIDTH = 4, OUTPUT = 0x100000 };

#define PART(variant, own)                                                                                                                 \
    "_ZN2at6native40_GLOBAL__N__f1f992fe_8_Shape_cu_49f7391c" variant "INS1_10OpaqueTypeILj4EEEjLi2ELi128ELi1E" own                        \
    "EEvPT_NS1_25CatArrInputTensorMetadataIS5_T0_XT2_EXT3_EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_"

struct inputs {
    uint64_t addresses[TENSORS];
    uint32_t places[TENSORS], sizes[TENSORS], elements[TENSORS];
    uint8_t contiguous[TENSORS];
    uint32_t shape[8];
};

static struct vr_sim_accesses accesses;

static bool look(const char *name, const struct inputs *inputs, uint32_t count, uint32_t inputs_bytes) {
    struct vr_sim_parameter parameters[] = {
        {.size_bytes = 8}, {.size_bytes = inputs_bytes}, {.size_bytes = 32}, {.size_bytes = 4}, {.size_bytes = 4}};
    const uint64_t output = OUTPUT;
    const uint32_t shape[8] = {0}, dimension = 0, row = 10;
    const void *const list[] = {&output, inputs, shape, &dimension, &row};
    const struct vr_sim_kernel kernel = {
        .name = (char *)(uintptr_t)name, .parameters = parameters, .parameter_count = 5, .has_parameters = true};
    const struct vr_sim_arguments arguments = {.list = (void *const *)(uintptr_t)list};
    accesses.count = 0;
    return vr_sim_concatenation(&kernel, &arguments, count, &accesses);
}

static void expect(size_t at, uint64_t address, uint64_t bytes, enum vr_check_effect effect) {
    assert_true(at < accesses.count);
    assert_int_equal(accesses.items[at].address, address);
    assert_int_equal(accesses.items[at].size_bytes, bytes);
    assert_int_equal(accesses.items[at].effect, effect);
}

// Rows of ten elements: three of the first tensor, five of the second, whose own elements lie apart.
static const struct inputs two = {
    .addresses = {0x1000, 0x2000, 0xdead}, .places = {0, 3, 99}, .sizes = {3, 5, 99}, .elements = {30, 50, 99}, .contiguous = {1}};

static void inputs_and_rows(void **state) {
    (void)state;
    assert_true(look(PART("26CatArrayBatchedCopy_contig", ""), &two, 2, sizeof two));
    assert_int_equal(accesses.count, 4);
    expect(0, 0x1000, 30 * WIDTH, VR_CHECK_READ);
    expect(1, OUTPUT, 30 * WIDTH, VR_CHECK_WRITE);
    expect(2, 0x2000, 0, VR_CHECK_READ);
    expect(3, OUTPUT + 30 * WIDTH, 50 * WIDTH, VR_CHECK_WRITE);
    assert_true(look(PART("35CatArrayBatchedCopy_alignedK_contig", "Li8E"), &two, 1, sizeof two));
    assert_int_equal(accesses.count, 2);
}

// The variant with vectors counts rows in vectors: only where the output begins is certain.
static void vectors(void **state) {
    (void)state;
    assert_true(look(PART("30CatArrayBatchedCopy_vectorized", "Li16ELi4E"), &two, 2, sizeof two));
    assert_int_equal(accesses.count, 3);
    expect(1, OUTPUT, 0, VR_CHECK_WRITE);
}

static void other_kernels(void **state) {
    struct inputs empty = two;
    (void)state;
    empty.elements[0] = 0;
    assert_true(look(PART("19CatArrayBatchedCopy", ""), &empty, 1, sizeof empty));
    assert_int_equal(accesses.count, 0);
    assert_false(look(PART("19CatArrayBatchedCopy", ""), &two, TENSORS + 1, sizeof two));
    assert_false(look(PART("19CatArrayBatchedCopy", ""), &two, 2, sizeof two - 8));
    assert_false(look("_ZN2at6native19CatArrayBatchedCopyIfEEvPT_", &two, 2, sizeof two));
    assert_false(look("CatArrayBatchedCopy", &two, 2, sizeof two));
    assert_int_equal(accesses.count, 0);
    free(accesses.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_and_rows),
        cmocka_unit_test(vectors),
        cmocka_unit_test(other_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
