// Tests PyTorch's fill kernels, recognized by their names: their output is written.
#include "sim_fixture.h"

#include "sim/sim.h"
#include "vram/sim.h"

#define VECTORIZED(type) "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorI" type "EESt5arrayIPcLm1EEEEviT0_T1_"
#define UNROLLED(type, store)                                                                                                              \
    "_ZN2at6native27unrolled_elementwise_kernelINS0_11FillFunctorI" type "EENS_6detail5ArrayIPcLi1EEELi4E23"                               \
    "TrivialOffsetCalculatorILi0EjES7_ILi1EjENS0_6memory15LoadWithoutCastENSA_" store "EEEviT_T0_T2_T3_T4_T5_"
#define ENTRY(name) ".visible .entry " name "(.param .u32 count, .param .align 8 .b8 value[8], .param .u64 to)\n{\n ret;\n}\n"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n" ENTRY(VECTORIZED("i")) ENTRY(VECTORIZED("l"))
    ENTRY(VECTORIZED("b")) ENTRY(UNROLLED("N3c108BFloat16E", "16StoreWithoutCast")) ENTRY(UNROLLED("i", "13StoreWithCastILi1EE"))
        ENTRY("triton_update") ENTRY("_Z6updatei4pairPx");

static struct vram_driver *driver;
static struct vr_sim *sim;
static uint64_t module;

static void open_kept(enum vram_sim_bytes kind) {
    driver = open_sim(&(struct vram_sim_options){.bytes = kind, .memory_bytes = VR_GIB});
    sim = vr_sim_of(driver);
    assert_cu(vr_sim_call_module_load_data(sim, &module, ptx), SUCCESS);
}

static uint64_t alloc(uint64_t size_bytes) {
    uint64_t address = 0;
    assert_cu(vr_cu(driver, mem_alloc, &address, size_bytes), SUCCESS);
    return address;
}

static void fill(const char *kernel, int count, uint64_t value, uint64_t to, uint64_t stream) {
    uint64_t function;
    void *parameters[] = {&count, &value, &to};
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, kernel), SUCCESS);
    assert_cu(vr_sim_call_launch_kernel(sim, function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL), SUCCESS);
}

// Checks that `count` elements of `width` bytes equal `value`, and that the next byte does not.
static void assert_filled(uint64_t at, unsigned count, unsigned width, uint64_t value) {
    unsigned char bytes[4096];
    const size_t size_bytes = (size_t)count * width;
    assert_true(size_bytes < sizeof bytes);
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, at, size_bytes + 1), SUCCESS);
    for (size_t i = 0; i < size_bytes; i += width) assert_memory_equal(bytes + i, &value, width);
    assert_int_equal(bytes[size_bytes], 0xee);
}

static void fills_of_all_widths(void **state) {
    for (enum vram_sim_bytes kind = VRAM_SIM_BYTES_SPARSE; kind <= VRAM_SIM_BYTES_NONE; kind++) {
        open_kept(kind);
        const uint64_t at = alloc(VR_MIB);
        assert_cu(vr_cu(driver, memset_d8, at, 0xee, VR_MIB), SUCCESS);
        fill(VECTORIZED("b"), 7, 1, at, 0);
        assert_filled(at, 7, 1, 1);
        fill(UNROLLED("N3c108BFloat16E", "16StoreWithoutCast"), 9, 0x3f80, at + 34, 0);
        assert_filled(at + 34, 9, 2, 0x3f80);
        fill(VECTORIZED("i"), 1000, 1, at + 4096, 0);
        assert_filled(at + 4096, 1000, 4, 1);
        fill(VECTORIZED("l"), 100, 1, at + 8192, 0);
        assert_filled(at + 8192, 100, 8, 1);
        fill(VECTORIZED("l"), 100, UINT64_MAX, at + 8192, 0);
        assert_filled(at + 8192, 100, 8, UINT64_MAX);
        vram_driver_destroy(driver);
    }
    (void)state;
}

// If there is nothing to fill, or no memory, the contents stay. If the fill is too long to keep, or another kernel runs, the contents are
// unknown.
static void what_fills_nothing(void **state) {
    open_kept(VRAM_SIM_BYTES_SPARSE);
    const uint64_t at = alloc(VR_MIB);
    assert_cu(vr_cu(driver, memset_d8, at, 0xee, VR_MIB), SUCCESS);
    fill(VECTORIZED("l"), 8193, 1, at + VR_MIB / 2, 0);
    fill(VECTORIZED("i"), 0, 1, at, 0);
    fill(VECTORIZED("i"), -1, 1, at, 0);
    fill(VECTORIZED("i"), 1 << 20, 1, at, 0); // longer than the allocation
    fill(UNROLLED("i", "13StoreWithCastILi1EE"), 10, 1, at + 1024, 0);
    assert_filled(at, 0, 1, 0);
    int there = 5;
    fill(VECTORIZED("i"), 1, 1, (uint64_t)(uintptr_t)&there, 0); // host memory that devices cannot access
    fill(VECTORIZED("i"), 1, 1, 0, 0);
    assert_int_equal(there, 5);
    vram_driver_destroy(driver);
    (void)state;
}

static void fills_of_a_graph(void **state) {
    uint64_t stream, graph, exec;
    open_kept(VRAM_SIM_BYTES_SPARSE);
    const uint64_t at = alloc(VR_MIB);
    assert_cu(vr_cu(driver, memset_d8, at, 0xee, VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, VR_CU_STREAM_CAPTURE_MODE_RELAXED), SUCCESS);
    fill(VECTORIZED("i"), 10, 7, at, stream);
    fill(VECTORIZED("l"), 10, 8, at + 64, stream);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_filled(at, 0, 1, 0);
    for (int i = 0; i < 2; i++) {
        assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
        assert_filled(at, 10, 4, 7);
        assert_filled(at + 64, 10, 8, 8);
        assert_cu(vr_cu(driver, memset_d8, at, 0xee, VR_MIB), SUCCESS);
    }
    vram_driver_destroy(driver);
    (void)state;
}

// Returns the first `width` bytes. Checks that all of them count as possibly written by a kernel if `passed`, else none.
static uint64_t value_at(uint64_t at, uint64_t width, bool passed) {
    uint64_t value = 0;
    sim->read.passed_bytes = 0;
    assert_cu(vr_cu(driver, memcpy_dtoh, &value, at, width), SUCCESS);
    assert_int_equal(sim->read.passed_bytes, passed ? width : 0);
    return value;
}

// Memory with a small fill is a counter if an unknown kernel gets it soon afterwards: its value remains.
static void fills_are_updated(void **state) {
    open_kept(VRAM_SIM_BYTES_NONE);
    const uint64_t at = alloc(VR_MIB);
    assert_cu(vr_cu(driver, memset_d8, at, 0xee, VR_MIB), SUCCESS);
    static const unsigned char before[1024] = {1, 2, 3};
    assert_cu(vr_cu(driver, memcpy_htod, at, before, sizeof before), SUCCESS);
    fill(VECTORIZED("i"), 2, 1, at, 0);
    assert_int_equal(value_at(at, 4, false), 1);
    for (int i = 0; i < 3; i++) {
        fill("triton_update", 1, 0, at, 0);
        assert_int_equal(value_at(at, 8, true), 0x100000001);
    }
    fill(VECTORIZED("l"), 1, 5, at + 512, 0);
    fill("triton_update", 1, 0, at + 512, 0);
    assert_int_equal(value_at(at + 512, 8, true), 5);
    // Memory after it becomes unknown with the launch, as does the inside of a fill for a kernel that gets only that.
    unsigned char bytes[64];
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, at + 512, sizeof bytes), SUCCESS);
    assert_int_equal(bytes[8], 0);
    fill(VECTORIZED("i"), 4, 1, at + 1024, 0);
    fill("triton_update", 1, 0, at + 1024 + 8, 0);
    assert_int_equal(value_at(at + 1024 + 8, 8, true), 0);
    // Writing again makes it known.
    fill(VECTORIZED("i"), 2, 9, at, 0);
    assert_int_equal(value_at(at, 4, false), 9);
    vram_driver_destroy(driver);
    (void)state;
}

// Memory used for something else is not a counter.
static void other_fills_are_not_read_back(void **state) {
    open_kept(VRAM_SIM_BYTES_SPARSE);
    const uint64_t at = alloc(VR_MIB);
    fill(VECTORIZED("i"), 2, 1, at, 0); // a kernel with known output
    fill("_Z6updatei4pairPx", 1, 0, at, 0);
    assert_int_equal(value_at(at, 8, true), 0);
    fill(VECTORIZED("i"), 2, 1, at, 0); // followed by too many launches
    for (int i = 0; i <= VR_SIM_FILL_LAUNCHES; i++) fill("triton_update", 1, 0, at + 4096, 0);
    fill("triton_update", 1, 0, at, 0);
    assert_int_equal(value_at(at, 8, true), 0);
    fill(VECTORIZED("i"), 1025, 1, at, 0); // large
    fill("triton_update", 1, 0, at, 0);
    assert_int_equal(value_at(at, 8, true), 0);
    fill(VECTORIZED("i"), 2, 1, at, 0); // overwritten meanwhile
    assert_cu(vr_cu(driver, memset_d8, at, 7, 8), SUCCESS);
    fill("triton_update", 1, 0, at, 0);
    assert_int_equal(value_at(at, 8, true), 0);
    assert_true(vr_sim_check(sim));
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_of_all_widths),
        cmocka_unit_test(what_fills_nothing),
        cmocka_unit_test(fills_of_a_graph),
        cmocka_unit_test(fills_are_updated),
        cmocka_unit_test(other_fills_are_not_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
