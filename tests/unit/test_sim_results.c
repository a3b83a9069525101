// Tests results computed on the host instead of by kernels: their levels, and the effect of copies, fills and reads.
#include "sim/sim.h"
#include "sim/streams/sim_callbacks.h"
#include "sim_fixture.h"
#include "vram/sim.h"

enum { COUNT = 8 };

static struct vram_driver *open_sparse(uint64_t *memory) {
    const struct vram_sim_options options = {.bytes = VRAM_SIM_BYTES_SPARSE};
    struct vram_driver *driver = open_sim(&options);
    assert_cu(vr_cu(driver, mem_alloc, memory, 4096), SUCCESS);
    return driver;
}

static void look(struct vram_driver *driver, uint64_t address, int32_t *numbers, uint8_t *levels) {
    uint8_t room[COUNT * sizeof *numbers];
    assert_cu(vr_sim_results_look(vr_sim_of(driver), address, COUNT, sizeof *numbers, numbers, room), SUCCESS);
    memcpy(levels, room, COUNT);
}

static const int32_t given[COUNT] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t given_levels[COUNT] = {VR_SIM_KNOWN,   VR_SIM_LIKELY, VR_SIM_LIKELY, VR_SIM_UNTOUCHED,
                                            VR_SIM_UNKNOWN, VR_SIM_KNOWN,  VR_SIM_KNOWN,  VR_SIM_UNKNOWN};

// Per element; untouched elements keep their level.
static void elements_have_levels(void **state) {
    (void)state;
    uint64_t memory;
    int32_t numbers[COUNT];
    uint8_t levels[COUNT];
    struct vram_driver *driver = open_sparse(&memory);
    assert_cu(vr_cu(driver, memset_d8, memory + 3 * sizeof *numbers, 9, 2 * sizeof *numbers), SUCCESS);
    assert_cu(vr_sim_results_put(vr_sim_of(driver), memory, COUNT, sizeof *given, given, given_levels), SUCCESS);
    look(driver, memory, numbers, levels);
    const int32_t expected[COUNT] = {1, 2, 3, 0x09090909, 5, 6, 7, 8};
    assert_memory_equal(numbers, expected, sizeof expected);
    const uint8_t found[COUNT] = {VR_SIM_KNOWN,   VR_SIM_LIKELY, VR_SIM_LIKELY, VR_SIM_KNOWN,
                                  VR_SIM_UNKNOWN, VR_SIM_KNOWN,  VR_SIM_KNOWN,  VR_SIM_UNKNOWN};
    assert_memory_equal(levels, found, sizeof found);
    const uint8_t unknown[COUNT] = {VR_SIM_UNKNOWN, VR_SIM_UNKNOWN};
    assert_cu(vr_sim_results_put(vr_sim_of(driver), memory, 2, sizeof *given, NULL, unknown), SUCCESS);
    look(driver, memory, numbers, levels);
    assert_int_equal(numbers[0], 0);
    assert_int_equal(levels[0], VR_SIM_UNKNOWN);
    vram_driver_destroy(driver);
}

// A copy on the device carries levels along; a fill and a copy from the host make memory known.
static void copies_carry_levels(void **state) {
    (void)state;
    uint64_t memory;
    int32_t numbers[COUNT];
    uint8_t levels[COUNT], before[COUNT];
    struct vram_driver *driver = open_sparse(&memory);
    assert_cu(vr_sim_results_put(vr_sim_of(driver), memory, COUNT, sizeof *given, given, given_levels), SUCCESS);
    look(driver, memory, numbers, before);
    assert_cu(vr_cu(driver, memcpy_async, memory + 2048, memory, sizeof given, 0), SUCCESS);
    look(driver, memory + 2048, numbers, levels);
    assert_memory_equal(levels, before, sizeof before);
    assert_int_equal(numbers[2], 3);
    assert_cu(vr_cu(driver, memcpy_htod, memory, given, sizeof given), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, memory + 2048, 0, sizeof given), SUCCESS);
    for (int i = 0; i < 2; i++) {
        look(driver, memory + (uint64_t)i * 2048, numbers, levels);
        for (size_t j = 0; j < COUNT; j++) assert_int_equal(levels[j], VR_SIM_KNOWN);
    }
    vram_driver_destroy(driver);
}

static struct vr_sim_read noted;
static int gave;
static void come(struct vr_sim_reader *reader) { *reader = (struct vr_sim_reader){.place = 1}; }
static void give(struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    (void)reader;
    gave += (int)read->gap_count;
}
static void notify(const struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    (void)reader;
    noted.passed_bytes += read->passed_bytes;
    noted.unwritten_bytes += read->unwritten_bytes;
}
static const struct vr_sim_watch watch = {come, give, notify};

// Known values are read and not counted; likely ones are read, counted, and may be replaced.
static void likely_reads_are_counted(void **state) {
    (void)state;
    uint64_t memory;
    int32_t numbers[COUNT];
    struct vram_driver *driver = open_sparse(&memory);
    vr_sim_of(driver)->watch = &watch;
    noted = (struct vr_sim_read){0};
    assert_cu(vr_sim_results_put(vr_sim_of(driver), memory, COUNT, sizeof *given, given, NULL), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, numbers, memory, sizeof numbers), SUCCESS);
    assert_memory_equal(numbers, given, sizeof given);
    assert_int_equal(noted.passed_bytes + noted.unwritten_bytes, 0);
    const uint8_t likely[COUNT] = {VR_SIM_LIKELY};
    assert_cu(vr_sim_results_put(vr_sim_of(driver), memory, COUNT, sizeof *given, given, likely), SUCCESS);
    gave = 0;
    assert_cu(vr_cu(driver, memcpy_dtoh, numbers, memory, sizeof numbers), SUCCESS);
    assert_memory_equal(numbers, given, sizeof given);
    assert_int_equal(noted.passed_bytes, sizeof *given);
    assert_int_equal(gave, 1);
    vram_driver_destroy(driver);
}

// An operation announces its kernel's count: the next copy of one number gets it, and no later one.
static void an_operation_answers_its_own_read(void **state) {
    (void)state;
    uint64_t memory;
    int32_t number = -1;
    struct vram_driver *driver = open_sparse(&memory);
    struct vr_sim *sim = vr_sim_of(driver);
    assert_cu(vr_sim_results_after(sim, 0, 0), SUCCESS);
    const int64_t counted = 42;
    vr_sim_answers_say(sim, &counted, 1, VR_SIM_KNOWN);
    assert_cu(vr_cu(driver, memcpy_dtoh, &number, memory, sizeof number), SUCCESS);
    assert_int_equal(number, 42);
    assert_cu(vr_cu(driver, memcpy_dtoh, &number, memory, sizeof number), SUCCESS);
    assert_int_equal(number, 0);
    vram_driver_destroy(driver);
}

// Memory under a shield is not an output of the thread's kernels; shields of nested operations end first.
static void shields_are_a_stack(void **state) {
    (void)state;
    uint64_t memory;
    struct vram_driver *driver = open_sparse(&memory);
    struct vr_sim *sim = vr_sim_of(driver);
    assert_false(vr_sim_is_shielded(sim, memory));
    vr_sim_shields_add(sim, memory, 64);
    vr_sim_shields_add(sim, memory + 512, 64);
    assert_true(vr_sim_is_shielded(sim, memory + 63) && vr_sim_is_shielded(sim, memory + 512));
    assert_false(vr_sim_is_shielded(sim, memory + 64) || vr_sim_is_shielded(sim, memory + 511));
    vr_sim_shields_cut(sim, 1);
    assert_true(vr_sim_is_shielded(sim, memory));
    assert_false(vr_sim_is_shielded(sim, memory + 512));
    for (uint64_t i = 0; i < 2 * VR_SIM_SHIELDS_MOST; i++) vr_sim_shields_add(sim, memory + 1024, 8);
    assert_int_equal(vr_sim_results_here(sim)->shield_count, VR_SIM_SHIELDS_MOST);
    vr_sim_shields_cut(sim, 0);
    assert_false(vr_sim_is_shielded(sim, memory + 1024));
    vram_driver_destroy(driver);
}

struct other_thread {
    struct vr_sim *sim;
    vr_cu_result result, without;
};

static void after_in_a_thread(void *argument) {
    struct other_thread *other = argument;
    vr_mutex_lock(&other->sim->lock);
    other->result = vr_sim_results_after(other->sim, 0, 0);
    other->without = vr_sim_results_after(other->sim, 1, 0);
    vr_mutex_unlock(&other->sim->lock);
}

// For example autograd's thread, which computes before it calls the driver.
static void a_thread_needs_no_context(void **state) {
    (void)state;
    const struct vram_sim_options options = {.bytes = VRAM_SIM_BYTES_SPARSE, .device_count = 2};
    struct vram_driver *driver = open_sim(&options);
    struct other_thread other = {.sim = vr_sim_of(driver)};
    struct vr_thread thread;
    assert_int_equal(vr_thread_start(&thread, after_in_a_thread, &other), 0);
    vr_thread_join(&thread);
    assert_cu(other.result, SUCCESS);
    assert_cu(other.without, INVALID_CONTEXT);
    vram_driver_destroy(driver);
}

// Refuses memory that is neither a device's nor accessible host memory, a capturing stream, and a device whose memory is host memory.
static void what_cannot_be_is_refused(void **state) {
    (void)state;
    uint64_t memory, stream, graph;
    int32_t numbers[COUNT];
    uint8_t levels[COUNT * sizeof *numbers];
    struct vram_driver *driver = open_sparse(&memory);
    struct vr_sim *sim = vr_sim_of(driver);
    assert_cu(vr_sim_results_put(sim, memory + 4096 - 4, COUNT, sizeof *given, given, NULL), INVALID_VALUE);
    assert_cu(vr_sim_results_look(sim, (uint64_t)(uintptr_t)given, COUNT, sizeof *given, numbers, levels), INVALID_VALUE);
    assert_cu(vr_sim_results_put(sim, memory, UINT64_MAX / 2, 4, given, NULL), INVALID_VALUE);
    assert_cu(vr_sim_results_forget(sim, memory, 8192), INVALID_VALUE);
    assert_cu(vr_cu(driver, stream_create, &stream, 1), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, 0), SUCCESS);
    assert_cu(vr_sim_results_after(sim, 0, stream), STREAM_CAPTURE_UNSUPPORTED);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    vram_driver_destroy(driver);
    const struct vram_sim_options options = {.backed = true};
    driver = open_sim(&options);
    assert_cu(vr_sim_results_after(vr_sim_of(driver), 0, 0), NOT_SUPPORTED);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_have_levels),      cmocka_unit_test(copies_carry_levels),
        cmocka_unit_test(likely_reads_are_counted),  cmocka_unit_test(an_operation_answers_its_own_read),
        cmocka_unit_test(shields_are_a_stack),       cmocka_unit_test(a_thread_needs_no_context),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
