// Reads of the simulated driver's device memory that do not give what a GPU would have given: which are found, and which are not.
#include "sim_fixture.h"

#include "driver/sim/sim.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry work(.param .u64 first, .param .align 8 .b8 rest[24])\n{\n ret;\n}\n";

static struct vr_sim_read seen; // all of a test
static uint64_t calls;

static void on_read(const struct vr_sim_read *read) {
    seen.unwritten_bytes += read->unwritten_bytes;
    seen.not_kept_bytes += read->not_kept_bytes;
    seen.passed_bytes += read->passed_bytes;
    calls++;
}

static struct vram_driver *open_watched(enum vram_sim_bytes kind) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.bytes = kind, .memory_bytes = VR_GIB});
    vr_sim_of(driver)->on_read = on_read;
    seen = (struct vr_sim_read){0};
    calls = 0;
    return driver;
}

static uint64_t alloc(struct vram_driver *driver, uint64_t size_bytes) {
    uint64_t address = 0;
    assert_cu(vr_cu(driver, mem_alloc, &address, size_bytes), SUCCESS);
    return address;
}

// What one read of that many bytes adds.
static struct vr_sim_read look(struct vram_driver *driver, uint64_t address, uint64_t size_bytes) {
    unsigned char bytes[256];
    const struct vr_sim_read before = seen;
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, size_bytes), SUCCESS);
    return (struct vr_sim_read){.unwritten_bytes = seen.unwritten_bytes - before.unwritten_bytes,
                                .not_kept_bytes = seen.not_kept_bytes - before.not_kept_bytes,
                                .passed_bytes = seen.passed_bytes - before.passed_bytes};
}

static void memory_that_nobody_wrote(void **state) {
    for (enum vram_sim_bytes kind = VRAM_SIM_BYTES_SPARSE; kind <= VRAM_SIM_BYTES_NONE; kind++) {
        struct vram_driver *driver = open_watched(kind);
        const uint64_t address = alloc(driver, VR_MIB), other = alloc(driver, VR_MIB);
        assert_int_equal(look(driver, address, 16).unwritten_bytes, 16);
        assert_cu(vr_cu(driver, memcpy_htod, address, "12345678", 8), SUCCESS);
        assert_int_equal(look(driver, address, 16).unwritten_bytes, 8);
        assert_int_equal(calls, 2);
        assert_int_equal(look(driver, address, 8).unwritten_bytes, 0);
        assert_int_equal(calls, 2);
        // A copy on the device carries it; a copy into the host is the read.
        assert_cu(vr_cu(driver, memcpy_async, other, address, 16, 0), SUCCESS);
        assert_int_equal(calls, 2);
        assert_int_equal(look(driver, other, 16).unwritten_bytes, 8);
        assert_cu(vr_cu(driver, memset_d8, address, 0, VR_MIB), SUCCESS);
        assert_int_equal(look(driver, address, 200).unwritten_bytes, 0);
        // Freed memory that is taken anew was written by nobody.
        uint64_t piece, stream;
        assert_cu(vr_cu(driver, stream_create, &stream, 0), SUCCESS);
        for (int i = 0; i < 2; i++) {
            assert_cu(vr_cu(driver, mem_alloc_async, &piece, 100, stream), SUCCESS);
            assert_int_equal(look(driver, piece, 100).unwritten_bytes, 100);
            assert_cu(vr_cu(driver, memset_d8_async, piece, 1, 100, stream), SUCCESS);
            assert_cu(vr_cu(driver, mem_free_async, piece, stream), SUCCESS);
        }
        vram_driver_destroy(driver);
    }
    (void)state;
}

static void large_copies_that_are_not_kept(void **state) {
    static unsigned char bytes[VR_SIM_SMALL_COPY_BYTES + 1];
    struct vram_driver *driver = open_watched(VRAM_SIM_BYTES_NONE);
    const uint64_t address = alloc(driver, VR_MIB);
    assert_cu(vr_cu(driver, memcpy_htod, address, bytes, sizeof bytes), SUCCESS);
    const struct vr_sim_read read = look(driver, address, 32);
    assert_int_equal(read.not_kept_bytes, 32);
    assert_int_equal(read.unwritten_bytes, 0);
    vram_driver_destroy(driver);
    (void)state;
}

static void launch(struct vr_sim *sim, uint64_t function, uint64_t first, uint64_t second, uint64_t stream) {
    uint64_t rest[3] = {7, second, 0};
    void *parameters[] = {&first, rest};
    assert_cu(vr_sim_call_launch_kernel(sim, function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL), SUCCESS);
}

static void memory_that_a_kernel_was_given(void **state) {
    struct vram_driver *driver = open_watched(VRAM_SIM_BYTES_SPARSE);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t module, function, stream, graph, exec;
    const uint64_t address = alloc(driver, VR_MIB), other = alloc(driver, VR_MIB);
    assert_cu(vr_sim_call_module_load_data(sim, &module, ptx), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_htod, address, "0123456789abcdef", 16), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, other, 3, 512), SUCCESS);
    launch(sim, function, address + 8, 0, 0);
    assert_int_equal(look(driver, address, 8).passed_bytes, 0);
    assert_int_equal(look(driver, address, 16).passed_bytes, 8);
    assert_int_equal(look(driver, other, 100).passed_bytes, 0);
    launch(sim, function, 0x1234, other, 0); // in a struct
    assert_int_equal(look(driver, other, 100).passed_bytes, 100);
    // Copied, it stays what it is; written anew, it is known.
    assert_cu(vr_cu(driver, memcpy_async, address + 1024, address, 16, 0), SUCCESS);
    assert_int_equal(look(driver, address + 1024, 16).passed_bytes, 8);
    assert_cu(vr_cu(driver, memcpy_htod, address, "0123456789", 10), SUCCESS);
    assert_int_equal(look(driver, address, 16).passed_bytes, 6);
    assert_cu(vr_cu(driver, memset_d8, other, 3, 50), SUCCESS);
    assert_int_equal(look(driver, other, 100).passed_bytes, 50);
    // A graph's kernel is given it at each launch.
    assert_cu(vr_cu(driver, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, VR_CU_STREAM_CAPTURE_MODE_RELAXED), SUCCESS);
    launch(sim, function, address, 0, stream);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_int_equal(look(driver, address, 8).passed_bytes, 0);
    for (int i = 0; i < 2; i++) {
        assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
        assert_int_equal(look(driver, address, 8).passed_bytes, 8);
        assert_cu(vr_cu(driver, memcpy_htod, address, "01234567", 8), SUCCESS);
        assert_int_equal(look(driver, address, 8).passed_bytes, 0);
    }
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_nobody_wrote),
        cmocka_unit_test(large_copies_that_are_not_kept),
        cmocka_unit_test(memory_that_a_kernel_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
