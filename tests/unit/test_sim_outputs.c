// Tests which arguments the simulated driver considers a kernel's outputs, by its mangled name: names are from PyTorch 2.6 and 2.15, nvcc's
// samples and Triton.
#include "sim_fixture.h"

#include <string.h>

#include "check/check.h"
#include "sim/modules/sim_outputs.h"
#include "sim/sim.h"
#include "vram/sim.h"

// One letter per parameter: c pointer to const, p other pointer, v not a pointer.
static void check_signature(const char *name, const char *expected) {
    struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST];
    const size_t count = vr_sim_signature(name, types);
    if (expected == NULL) {
        assert_int_equal(count, SIZE_MAX);
        return;
    }
    assert_int_equal(count, strlen(expected));
    for (size_t i = 0; i < count; i++) assert_int_equal(!types[i].pointer ? 'v' : types[i].to_constant ? 'c' : 'p', expected[i]);
}

static void signatures_are_read(void **state) {
    (void)state;
    check_signature("_Z9vectorAddPKfS0_Pfi", "ccpv");
    check_signature("_Z3addIiEvPT_PKS0_S1_", "pcp");
    check_signature("_Z4fillv", "");
    check_signature("_Z4bothPVKfPPKcRKi", "cpv");
    check_signature("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1ELb0EEEEviT0_T1_", "vvv");
    check_signature("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_", "vvv");
    check_signature("_ZN2at6native24vectorized_gather_kernelILi16EiEEvPcS2_PT0_illllb", "pppvvvvvv");
    check_signature("_ZN2at6native49_GLOBAL__N__173e7606_16_Bucketization_cu_723a43a424searchsorted_cuda_kernelIN3c108BFloat16EiEEvPT0_PKT_"
                    "S9_PKllllbb",
                    "pcccvvvvv");
    check_signature("_ZN2at6native6sbtopk10gatherTopKIN3c108BFloat16EmLin1ELb0EEEvNS_4cuda6detail10TensorInfoIKT_T0_EESA_SA_bSA_SA_NS7_IS8_"
                    "SA_EESA_NS7_IlSA_EESA_PS8_",
                    "vvvvvvvvvvp");
    check_signature("_ZplPKfPi", "cp");
    check_signature("_Z4makeB5cxx11PKfPi", "cp");
    check_signature("_Z4makeB5cxx11B2v2Pi", "p");
    check_signature("triton_poi_fused_add_0", NULL);
    check_signature("_Z", NULL);
    check_signature("_ZN2at", NULL);
    check_signature("_Z1fIS_EvS99_", NULL);
    check_signature("_Z999999999999999999999f", NULL);
    char deep[3000] = "_Z1f";
    memset(deep + 4, 'P', sizeof deep - 5);
    deep[sizeof deep - 1] = '\0';
    check_signature(deep, NULL);
}

static struct vr_sim_image *image;

// Makes a kernel whose code is `code`; NULL: not known.
static struct vr_sim_kernel *make_by_code(const char *name, size_t count, const uint32_t *sizes, const char *code) {
    vr_sim_image_release(image);
    image = calloc(1, sizeof *image);
    assert_non_null(image);
    image->references = 1;
    struct vr_sim_kernel *kernel = vr_sim_image_add_kernel(image, name, strlen(name));
    uint32_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        offset = (uint32_t)vr_round_up(offset, sizes[i] >= 8 ? 8 : sizes[i]);
        assert_true(vr_sim_kernel_add_parameter(kernel, i, offset, sizes[i]));
        offset += sizes[i];
    }
    kernel->has_parameters = true;
    if (code != NULL) vr_sim_kernel_follow(kernel, code, strlen(code));
    assert_true(vr_sim_kernel_find_outputs(kernel));
    return kernel;
}

static struct vr_sim_kernel *make(const char *name, size_t count, const uint32_t *sizes) { return make_by_code(name, count, sizes, NULL); }

static void outputs_are_found(void **state) {
    (void)state;
    const struct vr_sim_kernel *kernel = make("_Z9vectorAddPKfS0_Pfi", 4, (uint32_t[]){8, 8, 8, 4});
    assert_int_equal(kernel->output_count, 1);
    assert_int_equal(kernel->outputs[0].parameter, 2);
    assert_int_equal(kernel->outputs[0].elements, 0);
    // The first operand is the output, with this many elements of this many bytes.
    kernel =
        make("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm"
             "2EEEEviT0_T1_",
             3, (uint32_t[]){4, 8, 16});
    assert_int_equal(kernel->output_count, 1);
    assert_int_equal(kernel->outputs[0].parameter, 2);
    assert_int_equal(kernel->outputs[0].count, 1);
    assert_int_equal(kernel->outputs[0].elements, 1);
    assert_int_equal(kernel->outputs[0].element_bytes, 4);
    // A struct for a tensor of const elements is input; in another, only the first word is an address.
    kernel =
        make("_ZN2at6native6sbtopk10gatherTopKIN3c108BFloat16EmLin1ELb0EEEvNS_4cuda6detail10TensorInfoIKT_T0_EESA_SA_bSA_SA_NS7_IS8_SA_EE"
             "SA_NS7_IlSA_EESA_PS8_",
             11, (uint32_t[]){416, 8, 8, 1, 8, 8, 416, 8, 416, 8, 8});
    assert_int_equal(kernel->output_count, 3);
    assert_int_equal(kernel->outputs[0].parameter, 6);
    assert_int_equal(kernel->outputs[0].words, 1);
    assert_int_equal(kernel->outputs[1].parameter, 8);
    assert_int_equal(kernel->outputs[2].parameter, 10);
    // A reduction's output follows its source.
    kernel = make("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_9MinMaxOpsIbbiEEjbLi4ELi4EEEEEvT1_", 1, (uint32_t[]){1040});
    assert_int_equal(kernel->output_count, 1);
    assert_int_equal(kernel->outputs[0].from, 130 - 7);
    assert_int_equal(kernel->outputs[0].words, 5);
    // The struct of an attention kernel has the lengths of the sequences, which the program reads again; other structs may be results.
    kernel = make("_ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_16FlashAttnFwdSm90IiEEEEEEvNT_6ParamsE", 1, (uint32_t[]){1344});
    assert_int_equal(kernel->output_count, 0);
    kernel = make("_ZN7cutlass13device_kernelIN5other4GemmEEEvNT_6ParamsE", 1, (uint32_t[]){1344});
    assert_int_equal(kernel->output_count, 1);
    // Names that are not mangled show nothing about outputs.
    kernel = make("triton_poi_fused_add_0", 3, (uint32_t[]){8, 8, 4});
    assert_int_equal(kernel->output_count, 2);
    // Their code does: this one reads behind its first parameter, and writes behind its second.
    static const char code[] =
        "(.param .u64 a, .param .u64 b) { ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.global.u32 %r1, [%rd1]; "
        "st.global.u32 [%rd2], %r1; ret; }";
    kernel = make_by_code("triton_poi_fused_add_0", 2, (uint32_t[]){8, 8}, code);
    assert_int_equal(kernel->output_count, 1);
    assert_int_equal(kernel->outputs[0].parameter, 1);
    vr_sim_image_release(image);
    image = NULL;
}

// The number of contiguous elements, and the size of the smallest of them: a comparison of floats writes bools.
static void elements_of_operands(void **state) {
    (void)state;
    static const struct {
        const char *functor;
        uint32_t bytes;
    } kernels[] = {{"NS0_13BUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEE", 4},
                   {"NS0_13BinaryFunctorIffbNS0_16CompareEqFunctorIfEEEE", 1},
                   {"NS0_12_GLOBAL__N_114CompareFunctorIlEE", 1},
                   {"NS0_13AUnaryFunctorIN3c104HalfES5_S5_NS0_15binary_internal10MulFunctorIfEEEE", 2},
                   {"NS0_13BUnaryFunctorIdddNS0_15binary_internal10MulFunctorIdEEEE", 8},
                   {"ZZZNS0_15exp_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE0_clEvEUlfE_", 1}};
    for (size_t i = 0; i < VR_COUNT_OF(kernels); i++) {
        char name[400];
        (void)snprintf(name, sizeof name, "_ZN2at6native29vectorized_elementwise_kernelILi4E%sSt5arrayIPcLm2EEEEviT0_T1_",
                       kernels[i].functor);
        struct vr_sim_kernel *kernel = make(name, 3, (uint32_t[]){4, 8, 16});
        assert_true(vr_sim_kernel_find_operands(kernel));
        assert_int_equal(kernel->operand_count, 2);
        assert_int_equal(kernel->operands[0].effect, VR_CHECK_WRITE);
        assert_int_equal(kernel->operands[1].effect, VR_CHECK_READ);
        assert_int_equal(kernel->operands[1].elements, 1);
        assert_int_equal(kernel->operands[1].element_bytes, kernels[i].bytes);
        vr_sim_image_release(image);
        image = NULL;
    }
}

// --- reads ----------------------------------------------------------------------------------------------------------

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry _Z9vectorAddPKfS0_Pfi(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n ret;\n}\n";

static uint64_t function_of(struct vr_sim *sim) {
    uint64_t module, function;
    assert_cu(vr_sim_call_module_load_data(sim, &module, ptx), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "_Z9vectorAddPKfS0_Pfi"), SUCCESS);
    return function;
}

static void add(struct vr_sim *sim, uint64_t function, uint64_t a, uint64_t b, uint64_t c) {
    uint32_t count = 1;
    void *parameters[] = {&a, &b, &c, &count};
    assert_cu(vr_sim_call_launch_kernel(sim, function, 1, 1, 1, 32, 1, 1, 0, 0, parameters, NULL), SUCCESS);
}

static bool reads(struct vram_driver *driver, uint64_t address, const char *expected) {
    char bytes[4096];
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, strlen(expected)), SUCCESS);
    return memcmp(bytes, expected, strlen(expected)) == 0;
}

static bool reads_zeros(struct vram_driver *driver, uint64_t address, uint64_t size_bytes) {
    char bytes[4096];
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, size_bytes), SUCCESS);
    for (uint64_t i = 0; i < size_bytes; i++)
        if (bytes[i] != 0) return false;
    return true;
}

static void write(struct vram_driver *driver, uint64_t address, const char *text) {
    assert_cu(vr_cu(driver, memcpy_htod, address, text, strlen(text)), SUCCESS);
}

// Inputs stay and outputs become unknown, whatever is next to them.
static void outputs_are_not_read_back(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.bytes = VRAM_SIM_BYTES_SPARSE, .memory_bytes = VR_GIB});
    struct vr_sim *sim = vr_sim_of(driver);
    const uint64_t function = function_of(sim);
    uint64_t at;
    assert_cu(vr_cu(driver, mem_alloc, &at, VR_MIB), SUCCESS);
    for (uint64_t block = 0; block < 4; block++) write(driver, at + block * 512, "what was there");
    add(sim, function, at, at + 512, at + 1024);
    assert_true(reads(driver, at, "what was there"));
    assert_true(reads(driver, at + 512, "what was there"));
    assert_true(reads_zeros(driver, at + 1024, 14));
    assert_true(reads(driver, at + 1536, "what was there")); // another block, which may be in use
    // A read that begins in the output finds the other block unknown, too; later writes are kept.
    assert_true(reads_zeros(driver, at + 1024, 1024));
    write(driver, at + 1536, "anew");
    char bytes[1024];
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, at + 1024, sizeof bytes), SUCCESS);
    assert_memory_equal(bytes + 512, "anew", 5); // and nothing of what followed
    // A copy of an output is also unknown.
    assert_cu(vr_cu(driver, memcpy_async, at + 4096, at + 1024, 14, 0), SUCCESS);
    assert_true(reads_zeros(driver, at + 4096, 14));
    // Memory written in one piece becomes unknown in one piece; an adjacent write that does not start at a block's beginning belongs to it.
    write(driver, at + 8192, "one two three four five six");
    write(driver, at + 8192 + 27, "seven");
    add(sim, function, at, at, at + 8192 + 4);
    assert_true(reads(driver, at + 8192, "one "));
    assert_true(reads_zeros(driver, at + 8192 + 4, 28));
    // Written again by the host, it is known again.
    write(driver, at + 1024, "fresh");
    assert_true(reads(driver, at + 1024, "fresh"));
    assert_true(vr_sim_check(sim));
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_read),
        cmocka_unit_test(outputs_are_found),
        cmocka_unit_test(elements_of_operands),
        cmocka_unit_test(outputs_are_not_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
