// Tests cuCheckpointProcess*: a process's calls are locked, its device memory is released and restored.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <unistd.h>

#include "os/os.h"
#include "sim/sim.h"
#include "sim/sim_abi.h"
#include "sim/sim_calls.h"
#include "unit/sim_fixture.h"

enum { ROUNDS = 1000 };
#define BYTES (64 * VR_MIB)

static int own(void) { return (int)vr_os_process_id(); }

static enum vr_sim_process_state state_of(struct vr_sim *sim) {
    int state = -1;
    assert_cu(vr_sim_call_checkpoint_process_get_state(sim, own(), &state), SUCCESS);
    return (enum vr_sim_process_state)state;
}

static void all_memory_goes_and_comes_back(void **state) {
    (void)state;
    const struct vram_sim_options options = {.memory_bytes = VR_GIB, .context_bytes = 3 * VR_MIB, .bytes = VRAM_SIM_BYTES_SPARSE};
    struct vram_driver *driver = open_sim(&options);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t address, physical, small;
    uint32_t written = 0, read = 0;
    const struct vr_cu_allocation_prop prop = {.type = 1, .location = {.type = 1}};
    assert_cu(vr_cu(driver, mem_alloc, &address, BYTES), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &small, 1000), SUCCESS);
    assert_cu(vr_cu(driver, mem_create, &physical, BYTES, &prop, 0), SUCCESS);
    const uint64_t used = vram_sim_memory_used(driver, 0);
    assert_true(used >= 2 * BYTES + 3 * VR_MIB);
    for (int round = 0; round < ROUNDS; round++, written++) {
        assert_cu(vr_cu(driver, memcpy_htod, address, &written, sizeof written), SUCCESS);
        assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), NULL), SUCCESS);
        assert_int_equal(vram_sim_memory_used(driver, 0), used);
        assert_cu(vr_sim_call_checkpoint_process_checkpoint(sim, own(), NULL), SUCCESS);
        assert_int_equal(vram_sim_memory_used(driver, 0), 0);
        assert_true(vr_sim_check(sim));
        assert_cu(vr_sim_call_checkpoint_process_restore(sim, own(), NULL), SUCCESS);
        assert_int_equal(state_of(sim), VR_SIM_PROCESS_LOCKED);
        assert_cu(vr_sim_call_checkpoint_process_unlock(sim, own(), NULL), SUCCESS);
        assert_int_equal(vram_sim_memory_used(driver, 0), used);
        assert_cu(vr_cu(driver, memcpy_dtoh, &read, address, sizeof read), SUCCESS);
        assert_int_equal(read, written);
    }
    vram_driver_destroy(driver);
}

// Another program took the memory meanwhile.
static void a_restore_needs_the_memory(void **state) {
    (void)state;
    const struct vram_sim_options options = {.memory_bytes = VR_GIB};
    struct vram_driver *driver = open_sim(&options);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, BYTES), SUCCESS);
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), NULL), SUCCESS);
    assert_cu(vr_sim_call_checkpoint_process_checkpoint(sim, own(), NULL), SUCCESS);
    assert_int_equal(vram_sim_set_memory(driver, 0, BYTES - 1), VRAM_OK);
    assert_cu(vr_sim_call_checkpoint_process_restore(sim, own(), NULL), OUT_OF_MEMORY);
    assert_int_equal(state_of(sim), VR_SIM_PROCESS_CHECKPOINTED);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_int_equal(vram_sim_set_memory(driver, 0, BYTES), VRAM_OK);
    const struct vr_cu_device_pair same = {{1}, {1}}, other = {{1}, {2}};
    struct vr_cu_checkpoint_restore moved = {.pairs = &other, .pair_count = 1};
    assert_cu(vr_sim_call_checkpoint_process_restore(sim, own(), &moved), NOT_SUPPORTED);
    moved.pairs = NULL;
    assert_cu(vr_sim_call_checkpoint_process_restore(sim, own(), &moved), INVALID_VALUE);
    moved.pairs = &same;
    assert_cu(vr_sim_call_checkpoint_process_restore(sim, own(), &moved), SUCCESS);
    vram_driver_destroy(driver); // locked
}

static void each_step_needs_its_state(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = vr_sim_of(driver);
    int value = 0;
    assert_cu(vr_sim_call_checkpoint_process_checkpoint(sim, own(), NULL), ILLEGAL_STATE);
    assert_cu(vr_sim_call_checkpoint_process_restore(sim, own(), NULL), ILLEGAL_STATE);
    assert_cu(vr_sim_call_checkpoint_process_unlock(sim, own(), NULL), ILLEGAL_STATE);
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own() + 1, NULL), NOT_SUPPORTED);
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, 0, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_checkpoint_process_get_state(sim, own(), NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_checkpoint_process_get_restore_thread_id(sim, own(), &value), SUCCESS);
    assert_int_equal(value, own());
    const struct vr_cu_checkpoint_lock reserved = {.reserved = {1}};
    const struct vr_cu_checkpoint_reserved set = {{0, 1}};
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), &reserved), INVALID_VALUE);
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), NULL), SUCCESS);
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), NULL), ILLEGAL_STATE);
    assert_cu(vr_sim_call_checkpoint_process_checkpoint(sim, own(), &set), INVALID_VALUE);
    assert_cu(vr_sim_call_checkpoint_process_unlock(sim, own(), &set), INVALID_VALUE);
    assert_cu(vr_sim_call_checkpoint_process_unlock(sim, own(), NULL), SUCCESS);
    assert_int_equal(state_of(sim), VR_SIM_PROCESS_RUNNING);
    vram_driver_destroy(driver);
}

static void the_lock_waits_for_work(void **state) {
    enum { MILLISECOND = 1000000 };
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t stream;
    assert_int_equal(vram_sim_stream_create(driver, 0, &stream), VRAM_OK);
    assert_int_equal(vram_sim_busy(driver, 0, stream, 50 * MILLISECOND), VRAM_OK);
    const struct vr_cu_checkpoint_lock brief = {.timeout_ms = 5};
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), &brief), NOT_READY);
    assert_int_equal(state_of(sim), VR_SIM_PROCESS_RUNNING);
    assert_true(vram_sim_clock_ns(driver) >= 5 * MILLISECOND && vram_sim_clock_ns(driver) < 50 * MILLISECOND);
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), NULL), SUCCESS);
    assert_true(vram_sim_clock_ns(driver) >= 50 * MILLISECOND);
    vram_driver_destroy(driver);
}

struct caller {
    struct vram_driver *driver;
    uint64_t context;
    _Atomic bool began, ended;
};

static void allocate_elsewhere(void *argument) {
    struct caller *caller = argument;
    uint64_t address = 0;
    atomic_store(&caller->began, true);
    if (vr_cu(caller->driver, ctx_set_current, caller->context) == VR_CU_SUCCESS &&
        vr_cu(caller->driver, mem_alloc, &address, BYTES) == VR_CU_SUCCESS)
        atomic_store(&caller->ended, true);
}

static void calls_of_other_threads_wait(void **state) {
    (void)state;
    struct caller caller = {.driver = open_sim(NULL)};
    struct vr_sim *sim = vr_sim_of(caller.driver);
    struct vr_thread thread;
    assert_cu(vr_cu(caller.driver, ctx_get_current, &caller.context), SUCCESS);
    assert_cu(vr_sim_call_checkpoint_process_lock(sim, own(), NULL), SUCCESS);
    assert_int_equal(vr_thread_start(&thread, allocate_elsewhere, &caller), VRAM_OK);
    while (!atomic_load(&caller.began)) (void)usleep(1000);
    (void)usleep(20000);
    assert_false(atomic_load(&caller.ended));
    assert_cu(vr_sim_call_checkpoint_process_checkpoint(sim, own(), NULL), SUCCESS);
    assert_cu(vr_sim_call_checkpoint_process_restore(sim, own(), NULL), SUCCESS);
    assert_cu(vr_sim_call_checkpoint_process_unlock(sim, own(), NULL), SUCCESS);
    vr_thread_join(&thread);
    assert_true(atomic_load(&caller.ended));
    vram_driver_destroy(caller.driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_memory_goes_and_comes_back), cmocka_unit_test(a_restore_needs_the_memory),
        cmocka_unit_test(each_step_needs_its_state),      cmocka_unit_test(the_lock_waits_for_work),
        cmocka_unit_test(calls_of_other_threads_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
