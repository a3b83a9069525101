// Tests which reads of the simulated driver's memory are detected as returning other values than a GPU would.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_fixture.h"

#include "sim/sim.h"
#include "sim/streams/sim_callbacks.h"
#include "os/os.h"
#include "vram/sim.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry work(.param .u64 first, .param .align 8 .b8 rest[24])\n{\n ret;\n}\n";

static struct vr_sim_read seen;        // sum over a test
static uint64_t calls, comers, teller; // calls of the reporter and of the announcer, and the read that was reported last
static _Atomic int seen_behind;
static _Atomic bool may_go;
static const char *given; // the value for reads; NULL: none

static void come(struct vr_sim_reader *reader) { reader->place = ++comers; }

static void give(struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    if (given == NULL) return;
    reader->value = given;
    for (size_t i = 0; i < read->gap_count; i++) memcpy(read->gaps[i].bytes, given, (size_t)read->gaps[i].size_bytes);
}

static void notify(const struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    teller = reader->place;
    seen.unwritten_bytes += read->unwritten_bytes;
    seen.not_kept_bytes += read->not_kept_bytes;
    seen.passed_bytes += read->passed_bytes;
    calls++;
}

static const struct vr_sim_watch watch = {come, give, notify};

static struct vram_driver *open_watched(enum vram_sim_bytes kind) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.bytes = kind, .memory_bytes = VR_GIB});
    vr_sim_of(driver)->watch = &watch;
    given = NULL;
    seen = (struct vr_sim_read){0};
    calls = 0;
    return driver;
}

static uint64_t alloc(struct vram_driver *driver, uint64_t size_bytes) {
    uint64_t address = 0;
    assert_cu(vr_cu(driver, mem_alloc, &address, size_bytes), SUCCESS);
    return address;
}

// Returns what one read of that many bytes adds.
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
        // A copy on the device makes its target unknown, too; a copy to the host is the read.
        assert_cu(vr_cu(driver, memcpy_async, other, address, 16, 0), SUCCESS);
        assert_int_equal(calls, 2);
        assert_int_equal(look(driver, other, 16).unwritten_bytes, 8);
        assert_cu(vr_cu(driver, memset_d8, address, 0, VR_MIB), SUCCESS);
        assert_int_equal(look(driver, address, 200).unwritten_bytes, 0);
        // Freed memory that is allocated again has not been written.
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
    // A copy keeps its state; writing it again makes it known.
    assert_cu(vr_cu(driver, memcpy_async, address + 1024, address, 16, 0), SUCCESS);
    assert_int_equal(look(driver, address + 1024, 16).passed_bytes, 8);
    assert_cu(vr_cu(driver, memcpy_htod, address, "0123456789", 10), SUCCESS);
    assert_int_equal(look(driver, address, 16).passed_bytes, 6);
    assert_cu(vr_cu(driver, memset_d8, other, 3, 50), SUCCESS);
    assert_int_equal(look(driver, other, 100).passed_bytes, 50);
    // A graph's kernel gets it at each launch.
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

// Captured under a shield, a kernel leaves the contents at each launch; of other kernels, the output can be queried.
static void kernels_of_graphs_that_the_host_computes(void **state) {
    struct vram_driver *driver = open_watched(VRAM_SIM_BYTES_SPARSE);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t module, function, stream, graph, exec, places[4], sizes[4];
    const uint64_t address = alloc(driver, VR_MIB), other = alloc(driver, VR_MIB);
    assert_cu(vr_sim_call_module_load_data(sim, &module, ptx), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
    assert_cu(vr_cu(driver, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), SUCCESS);
    assert_int_equal(vr_sim_captured_take(sim, NULL, NULL, 0), 0);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, VR_CU_STREAM_CAPTURE_MODE_RELAXED), SUCCESS);
    vr_sim_shields_add(sim, 0, UINT64_MAX);
    launch(sim, function, address, 0, stream);
    vr_sim_shields_cut(sim, 0);
    launch(sim, function, other, 0, stream);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_int_equal(vr_sim_captured_take(sim, places, sizes, 4), 1);
    assert_int_equal(places[0], other);
    assert_int_equal(vr_sim_captured_take(sim, places, sizes, 4), 0);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, address, 3, 512), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, other, 3, 512), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_int_equal(look(driver, address, 8).passed_bytes, 0);
    assert_int_equal(look(driver, other, 8).passed_bytes, 8);
    vram_driver_destroy(driver);
    (void)state;
}

// Uses the kernel's own counts of pages, which tests/pages hides.
static uint64_t resident_bytes(void) {
    char line[256];
    unsigned long long resident_kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %llu kB", &resident_kib) == 1) break;
    assert_int_equal(fclose(file), 0);
    return resident_kib * 1024;
}

// Unwritten memory copied to the host is zero: fresh host memory stays untouched and uses no memory.
static void zeros_take_no_memory_of_the_host(void **state) {
    enum { SIZE = 128 << 20, PART = 1 << 20 };
    struct vram_driver *driver = open_watched(VRAM_SIM_BYTES_SPARSE);
    const uint64_t address = alloc(driver, SIZE);
    unsigned char *bytes = calloc(1, SIZE);
    assert_non_null(bytes);
    assert_cu(vr_cu(driver, memset_d8, address, 0, SIZE / 2), SUCCESS); // one half is a fill
    assert_cu(vr_cu(driver, memset_d8, address + PART, 7, PART), SUCCESS);
    memset(bytes + 3, 9, 5000);
    const uint64_t before = resident_bytes();
    for (int i = 0; i < 2; i++) {
        assert_cu(vr_cu(driver, memcpy_dtoh, bytes + i, address, SIZE - PART), SUCCESS);
        assert_true(resident_bytes() - before < 16 * PART);
        assert_true(bytes[i] == 0 && bytes[i + 4000] == 0 && bytes[i + PART - 1] == 0);
        assert_true(bytes[i + PART] == 7 && bytes[i + 2 * PART - 1] == 7 && bytes[i + 2 * PART] == 0);
    }
    free(bytes);
    vram_driver_destroy(driver);
    (void)state;
}

static void look_behind(void *argument) {
    const unsigned char *bytes = argument;
    if (memcmp(bytes, "valu", 4) == 0) atomic_fetch_add(&seen_behind, 1);
}

static void wait_a_little(void *argument) {
    (void)argument;
    while (!atomic_load(&may_go)) (void)vr_os_monotonic_ns();
}

// A host function after a copy, in the same launch or stream, sees the value that the copy's read gets, whether functions run in the
// calling thread or on their own.
static void values_are_there_when_the_copy_is_done(void **state) {
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        static unsigned char bytes[4];
        uint64_t stream, graph, exec;
        struct vram_driver *driver =
            open_sim(&(struct vram_sim_options){.bytes = VRAM_SIM_BYTES_SPARSE, .memory_bytes = VR_GIB, .host_thread = threads == 1});
        vr_sim_of(driver)->watch = &watch;
        given = "value";
        atomic_store(&seen_behind, 0);
        const uint64_t address = alloc(driver, VR_MIB);
        assert_cu(vr_cu(driver, stream_create, &stream, 1), SUCCESS);
        assert_cu(vr_cu(driver, stream_begin_capture, stream, 0), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_async, (uint64_t)(uintptr_t)bytes, address, 4, stream), SUCCESS);
        assert_cu(vr_cu(driver, launch_host_func, stream, look_behind, bytes), SUCCESS);
        assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
        assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
        assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
        assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
        assert_int_equal(atomic_load(&seen_behind), 1);
        vram_driver_destroy(driver);
    }
}

// A copy made by a host function's thread is reported under the call that requested it.
static void copies_behind_a_function_are_their_own_calls(void **state) {
    (void)state;
    static unsigned char bytes[4];
    uint64_t stream;
    struct vram_driver *driver =
        open_sim(&(struct vram_sim_options){.bytes = VRAM_SIM_BYTES_SPARSE, .memory_bytes = VR_GIB, .host_thread = true});
    vr_sim_of(driver)->watch = &watch;
    given = "value";
    calls = comers = 0;
    atomic_store(&may_go, false);
    const uint64_t address = alloc(driver, VR_MIB), other = alloc(driver, VR_MIB);
    assert_cu(vr_cu(driver, stream_create, &stream, 1), SUCCESS);
    assert_cu(vr_cu(driver, launch_host_func, stream, wait_a_little, NULL), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, (uint64_t)(uintptr_t)bytes, address, 4, stream), SUCCESS); // the first announced
    assert_cu(vr_cu(driver, memcpy_async, address, other, 4, 0), SUCCESS);                           // another one that reads nothing
    assert_int_equal(calls, 0);
    atomic_store(&may_go, true);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_memory_equal(bytes, "valu", 4);
    vram_driver_destroy(driver);
    assert_int_equal(calls, 1);
    assert_int_equal(teller, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_nobody_wrote),
        cmocka_unit_test(large_copies_that_are_not_kept),
        cmocka_unit_test(memory_that_a_kernel_was_given),
        cmocka_unit_test(zeros_take_no_memory_of_the_host),
        cmocka_unit_test(kernels_of_graphs_that_the_host_computes),
        cmocka_unit_test(values_are_there_when_the_copy_is_done),
        cmocka_unit_test(copies_behind_a_function_are_their_own_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
