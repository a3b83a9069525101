// Tests the simulated driver with many threads on one instance, and many instances at once.
#include <pthread.h>
#include <stdatomic.h>

#include "unit/sim_fixture.h"
#include "vram/sim.h"

#define THREADS 4
#define ROUNDS  2000

struct job {
    struct vram_driver *driver;
    uint64_t context;
    uint64_t seed;
    atomic_int *errors;
    uint64_t clock_ns; // result
};

// Counts a failure, because cmocka's assertions belong to the main thread.
static void expect(struct job *job, bool condition) {
    if (!condition) atomic_fetch_add(job->errors, 1);
}

static void work(struct job *job) {
    struct vram_driver *driver = job->driver;
    uint64_t stream, event, current, random = job->seed;
    expect(job, vr_cu(driver, ctx_get_current, &current) == VR_CU_SUCCESS && current == 0);
    expect(job, vr_cu(driver, stream_create, &stream, 0) == VR_CU_INVALID_CONTEXT);
    expect(job, vr_cu(driver, ctx_set_current, job->context) == VR_CU_SUCCESS);
    expect(job, vr_cu(driver, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING) == VR_CU_SUCCESS);
    expect(job, vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING) == VR_CU_SUCCESS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t address, base, size;
        random = vr_mix64(random + i);
        expect(job, vr_cu(driver, mem_alloc, &address, 1 + random % VR_MIB) == VR_CU_SUCCESS);
        expect(job, vr_cu(driver, mem_get_address_range, &base, &size, address + random % VR_MIB) == VR_CU_SUCCESS && base == address);
        expect(job, vr_cu(driver, event_record, event, i % 2 == 0 ? stream : VR_CU_STREAM_PER_THREAD) == VR_CU_SUCCESS);
        expect(job, vr_cu(driver, event_synchronize, event) == VR_CU_SUCCESS);
        expect(job, vr_cu(driver, event_query, event) == VR_CU_SUCCESS);
        expect(job, vr_cu(driver, mem_free, address) == VR_CU_SUCCESS);
    }
    expect(job, vr_cu(driver, event_destroy, event) == VR_CU_SUCCESS);
    expect(job, vr_cu(driver, stream_destroy, stream) == VR_CU_SUCCESS);
    job->clock_ns = vram_sim_clock_ns(driver);
}

static void *run(void *opaque) {
    work(opaque);
    return NULL;
}

static void run_all(struct job *jobs) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run, &jobs[i]), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void threads_share_an_instance(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.manual_completion = true});
    atomic_int errors = 0;
    struct job jobs[THREADS];
    uint64_t context;
    assert_cu(vr_cu(driver, ctx_get_current, &context), SUCCESS);
    for (uint64_t i = 0; i < THREADS; i++) jobs[i] = (struct job){driver, context, i, &errors, 0};
    run_all(jobs);
    assert_int_equal(atomic_load(&errors), 0);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_int_equal(vram_sim_calls(driver, "cuMemAlloc"), THREADS * ROUNDS);
    vram_driver_destroy(driver);
    (void)state;
}

static void instances_do_not_disturb_each_other(void **state) {
    struct job jobs[THREADS];
    atomic_int errors = 0;
    for (int i = 0; i < THREADS; i++) {
        struct vram_driver *driver;
        uint64_t context;
        assert_int_equal(vram_sim_create(NULL, &driver), VRAM_OK);
        assert_cu(vr_cu(driver, primary_ctx_retain, &context, 0), SUCCESS);
        jobs[i] = (struct job){driver, context, 5, &errors, 0}; // the same work in each
    }
    run_all(jobs);
    assert_int_equal(atomic_load(&errors), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(jobs[i].clock_ns, jobs[0].clock_ns);
        vram_driver_destroy(jobs[i].driver);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_an_instance),
        cmocka_unit_test(instances_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
