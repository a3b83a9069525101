// Tests each function of vram/host.h, on the simulated driver.
#include "host_fixture.h"

#include "os/os.h"
#include "vram/sim.h"

// --- sizes ----------------------------------------------------------------------------------------------------------------------

static void sizes_are_rounded(void **state) {
    (void)state;
    static const struct {
        const char *conf;
        uint64_t request, size;
    } rows[] = {
        {"", 1, 1},
        {"", 100, 128},
        {"", 512, 512},
        {"pinned_max_round_threshold_mb:1048576", 100, 128},
        {"", 513, 1024},
        {"", 3 * VR_MIB, 4 * VR_MIB},
        {"", 64 * VR_MIB, 64 * VR_MIB},
        {"", 64 * VR_MIB + 1, 72 * VR_MIB},
        {"", 128 * VR_MIB, 128 * VR_MIB},
        {"", 150 * VR_MIB, 160 * VR_MIB},
        {"", 5 * VR_GIB, 5 * VR_GIB},
        {"", 5 * VR_GIB + 1, 5 * VR_GIB + 64 * VR_MIB},
        {"pinned_max_round_threshold_mb:1048576", 5 * VR_GIB, 8 * VR_GIB},
        {"pinned_max_round_threshold_mb:100", 90 * VR_MIB, 128 * VR_MIB},
        {"pinned_max_round_threshold_mb:100", 100 * VR_MIB + 7, 100 * VR_MIB + 7},
        {"pinned_max_round_threshold_mb:256,pinned_max_cached_size_mb:64", 100 * VR_MIB, 100 * VR_MIB}, // will not be cached
        {"pinned_max_cached_size_mb:64", 63 * VR_MIB, 64 * VR_MIB},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct fixture fixture;
        open_with(&fixture, NULL, rows[i].conf);
        void *pointer = get(&fixture, rows[i].request);
        assert_int_equal(vram_host_allocated_size(fixture.host, pointer), rows[i].size);
        assert_int_equal(stats_of(&fixture).requested_bytes.current, rows[i].request);
        close_with(&fixture);
    }
}

static void no_bytes_are_no_pointer(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *pointer = &fixture;
    expect_ok(vram_host_malloc(fixture.host, 0, 0, &pointer));
    assert_null(pointer);
    put(&fixture, NULL);
    expect_ok(vram_host_record_stream(fixture.host, NULL, 0));
    assert_int_equal(calls(&fixture, "cuMemHostAlloc"), 0);
    close_with(&fixture);
}

// Reuses the smallest block that fits, the last freed among equal ones, and none that is twice as large.
static void reuse_is_the_best_fit(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *a = get(&fixture, 120 * VR_MIB), *b = get(&fixture, 176 * VR_MIB), *c = get(&fixture, 176 * VR_MIB);
    put(&fixture, b);
    put(&fixture, c);
    put(&fixture, a);
    assert_ptr_equal(get(&fixture, 113 * VR_MIB), a);
    void *other = get(&fixture, 88 * VR_MIB); // the others are twice as large
    assert_true(other != b && other != c);
    assert_ptr_equal(get(&fixture, 121 * VR_MIB), c);
    assert_ptr_equal(get(&fixture, 89 * VR_MIB), b);
    assert_int_equal(calls(&fixture, "cuMemHostAlloc"), 4);
    close_with(&fixture);
}

// Large cached blocks are released, smallest first, if the cache would exceed what was ever used.
static void large_blocks_do_not_pile_up(void **state) {
    (void)state;
    static const struct {
        const char *conf;
        uint64_t held_mib;
    } rows[] = {{"", 160 + 320 + 96}, {"pinned_max_round_threshold_mb:64", 80 + 160 + 320 + 96}};
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct fixture fixture;
        open_with(&fixture, NULL, rows[i].conf);
        put(&fixture, get(&fixture, 320 * VR_MIB));
        void *live = get(&fixture, 96 * VR_MIB);
        put(&fixture, get(&fixture, 80 * VR_MIB)); // 496 of 640 in total: nothing is released
        assert_int_equal(calls(&fixture, "cuMemFreeHost"), 0);
        put(&fixture, get(&fixture, 160 * VR_MIB)); // 656: the smallest is released
        put(&fixture, live);
        assert_int_equal(stats_of(&fixture).allocated_bytes.current / VR_MIB, rows[i].held_mib);
        close_with(&fixture);
    }
}

static void memory_can_be_written(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    unsigned char *pointers[20];
    for (unsigned i = 0; i < 20; i++) {
        pointers[i] = get(&fixture, (uint64_t)1 << i);
        memset(pointers[i], (int)i, (size_t)1 << i);
    }
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(pointers[i][0], i);
        assert_int_equal(pointers[i][((size_t)1 << i) - 1], i);
        put(&fixture, pointers[i]);
    }
    close_with(&fixture);
}

// --- wrong pointers -------------------------------------------------------------------------------------------------------------

static void strange_pointers_are_refused(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    char *pointer = get(&fixture, 4096);
    struct vram_host_block_info info;
    assert_int_equal(vram_host_free(fixture.host, pointer + 1), VRAM_INVALID_POINTER);
    assert_int_equal(vram_host_free(fixture.host, &fixture), VRAM_INVALID_POINTER);
    assert_int_equal(vram_host_record_stream(fixture.host, pointer + 8, 0), VRAM_INVALID_POINTER);
    assert_int_equal(vram_get_host_block_info(fixture.host, pointer + 8, &info), VRAM_INVALID_POINTER);
    assert_int_equal(vram_host_record_stream(fixture.host, pointer, VR_CU_STREAM_PER_THREAD), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_host_record_stream(fixture.host, pointer, 0xdead0000), VRAM_DRIVER);
    put(&fixture, pointer);
    assert_int_equal(vram_host_free(fixture.host, pointer), VRAM_INVALID_POINTER);
    assert_int_equal(vram_host_allocated_size(fixture.host, pointer), 0);
    close_with(&fixture);
}

static void bad_options_are_told(void **state) {
    (void)state;
    struct vram_driver *sim = NULL;
    expect_ok(vram_sim_create(NULL, &sim));
    struct vram_host *host = NULL;
    struct vram_error error = {.message = ""};
    const struct vram_host_create_info info = {.driver = sim, .conf = "pinned_num_register_threads:3"};
    assert_int_equal(vram_host_create(&info, &host, &error), VRAM_BAD_OPTION);
    assert_null(host);
    assert_int_equal(error.status, VRAM_BAD_OPTION);
    vram_driver_destroy(sim);
}

// --- streams --------------------------------------------------------------------------------------------------------------------

static void unused_blocks_come_back_at_once(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *pointer = get(&fixture, 1000);
    put(&fixture, pointer);
    assert_ptr_equal(get(&fixture, 1024), pointer);
    assert_int_equal(calls(&fixture, "cuEventRecord"), 0);
    close_with(&fixture);
}

static void every_stream_is_waited_for(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *pointer = get(&fixture, 4096);
    const uint64_t first = new_stream(&fixture, 0), second = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, pointer, first));
    expect_ok(vram_host_record_stream(fixture.host, pointer, second));
    expect_ok(vram_host_record_stream(fixture.host, pointer, first)); // an already recorded use is enough
    struct vram_host_block_info info;
    expect_ok(vram_get_host_block_info(fixture.host, pointer, &info));
    assert_int_equal(info.streams, 2);
    put(&fixture, pointer);
    assert_int_equal(calls(&fixture, "cuEventRecord"), 2);
    assert_int_equal(stats_of(&fixture).pending_bytes, 4096);
    void *second_block = get(&fixture, 4096);
    assert_true(second_block != pointer);
    expect_ok(vram_sim_complete(fixture.sim, first));
    void *third = get(&fixture, 4096);
    assert_true(third != pointer);
    expect_ok(vram_sim_complete(fixture.sim, second));
    assert_ptr_equal(get(&fixture, 4096), pointer);
    assert_int_equal(stats_of(&fixture).pending_bytes, 0);
    close_with(&fixture);
}

// A slow stream does not delay blocks that wait for another one.
static void streams_do_not_wait_for_each_other(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *slow = get(&fixture, 4096), *fast = get(&fixture, 4096);
    const uint64_t slow_stream = new_stream(&fixture, 0), fast_stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, slow, slow_stream));
    expect_ok(vram_host_record_stream(fixture.host, fast, fast_stream));
    put(&fixture, slow);
    put(&fixture, fast);
    expect_ok(vram_sim_complete(fixture.sim, fast_stream));
    assert_ptr_equal(get(&fixture, 4096), fast);
    close_with(&fixture);
}

static void events_are_used_again(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *pointer = get(&fixture, 4096);
    const uint64_t stream = new_stream(&fixture, 0);
    for (int round = 0; round < 50; round++) {
        expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
        put(&fixture, pointer);
        expect_ok(vram_sim_complete(fixture.sim, stream));
        assert_ptr_equal(get(&fixture, 4096), pointer);
    }
    assert_int_equal(calls(&fixture, "cuEventCreate"), 1);
    close_with(&fixture);
}

// Memory is pinned once; events belong to the streams' devices.
static void streams_of_two_devices(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, &(struct vram_sim_options){.device_count = 2, .manual_completion = true}, "");
    void *pointer = get(&fixture, 4096);
    uint64_t context;
    assert_cu(vr_cu(fixture.sim, primary_ctx_retain, &context, 1), SUCCESS);
    const uint64_t near = new_stream(&fixture, 0), far = new_stream(&fixture, 1);
    assert_cu(vr_cu(fixture.sim, ctx_set_current, context), SUCCESS);
    expect_ok(vram_host_record_stream(fixture.host, pointer, near));
    expect_ok(vram_host_record_stream(fixture.host, pointer, far));
    expect_ok(vram_host_record_stream(fixture.host, pointer, 0)); // device 1's: its context is current
    put(&fixture, pointer);
    assert_int_equal(calls(&fixture, "cuEventCreate"), 3);
    uint64_t current = 0;
    assert_cu(vr_cu(fixture.sim, ctx_get_current, &current), SUCCESS);
    assert_int_equal(current, context);
    expect_ok(vram_sim_complete(fixture.sim, near));
    expect_ok(vram_sim_complete(fixture.sim, far));
    void *other = get(&fixture, 4096);
    assert_true(other != pointer);
    expect_ok(vram_sim_complete(fixture.sim, 0));
    assert_ptr_equal(get(&fixture, 4096), pointer);
    assert_cu(vr_cu(fixture.sim, primary_ctx_release, 1), SUCCESS);
    close_with(&fixture);
}

// A program that works on device 1 gets no context on device 0.
static void memory_is_pinned_where_the_program_works(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, &(struct vram_sim_options){.device_count = 2}, "");
    uint64_t context;
    assert_cu(vr_cu(fixture.sim, primary_ctx_retain, &context, 1), SUCCESS);
    assert_cu(vr_cu(fixture.sim, ctx_set_current, context), SUCCESS);
    const uint64_t before = calls(&fixture, "cuDevicePrimaryCtxRetain");
    get(&fixture, 4096);
    assert_int_equal(calls(&fixture, "cuDevicePrimaryCtxRetain"), before + 1);
    uint64_t stream = 0;
    assert_int_equal(vram_sim_stream_create(fixture.sim, 0, &stream), VRAM_INVALID_ARGUMENT); // device 0 is not retained
    close_with(&fixture);
}

static void a_dead_context_holds_nothing_up(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, &(struct vram_sim_options){.device_count = 2, .manual_completion = true}, "");
    void *pointer = get(&fixture, 4096);
    uint64_t context;
    assert_cu(vr_cu(fixture.sim, primary_ctx_retain, &context, 1), SUCCESS);
    const uint64_t far = new_stream(&fixture, 1);
    expect_ok(vram_host_record_stream(fixture.host, pointer, far));
    put(&fixture, pointer);
    assert_cu(vr_cu(fixture.sim, primary_ctx_release, 1), SUCCESS);
    assert_ptr_equal(get(&fixture, 4096), pointer);
    close_with(&fixture);
}

// --- the cache --------------------------------------------------------------------------------------------------------------------

static void empty_cache_returns_what_is_free(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *a = get(&fixture, VR_MIB), *b = get(&fixture, VR_MIB), *c = get(&fixture, VR_MIB);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, b, stream));
    put(&fixture, a);
    put(&fixture, b);
    expect_ok(vram_host_empty_cache(fixture.host));
    struct vram_host_stats stats = stats_of(&fixture);
    assert_int_equal(stats.allocations.current, 2); // b waits, c is live
    assert_int_equal(stats.allocations.freed, 1);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    expect_ok(vram_host_empty_cache(fixture.host)); // checks first what has passed
    stats = stats_of(&fixture);
    assert_int_equal(stats.allocations.current, 1);
    assert_int_equal(stats.allocated_bytes.current, VR_MIB);
    assert_int_equal(calls(&fixture, "cuMemFreeHost"), 2);
    memset(c, 1, VR_MIB);
    close_with(&fixture);
}

static void blocks_above_the_cached_size_go_back(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "pinned_max_cached_size_mb:8");
    void *small = get(&fixture, 8 * VR_MIB), *large = get(&fixture, 9 * VR_MIB), *used = get(&fixture, 9 * VR_MIB);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, used, stream));
    put(&fixture, small);
    put(&fixture, large);
    put(&fixture, used);
    assert_int_equal(calls(&fixture, "cuMemFreeHost"), 1);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    assert_ptr_equal(get(&fixture, 8 * VR_MIB), small);
    assert_int_equal(calls(&fixture, "cuMemFreeHost"), 2);
    close_with(&fixture);
}

static void registered_memory_goes_back_as_it_came(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "pinned_use_cuda_host_register:True,pinned_num_register_threads:8");
    unsigned char *registered = get(&fixture, VR_MIB);
    unsigned char *small = get(&fixture, 600);
    memset(registered, 7, VR_MIB);
    memset(small, 7, 600);
    expect_ok(vram_host_configure(fixture.host, "pinned_use_cuda_host_register:False", NULL));
    void *allocated = get(&fixture, VR_MIB);
    struct vram_host_block_info info;
    expect_ok(vram_get_host_block_info(fixture.host, registered, &info));
    assert_int_equal(info.origin, VRAM_HOST_REGISTERED);
    expect_ok(vram_get_host_block_info(fixture.host, allocated, &info));
    assert_int_equal(info.origin, VRAM_HOST_ALLOCATED);
    put(&fixture, registered);
    put(&fixture, small);
    put(&fixture, allocated);
    expect_ok(vram_host_empty_cache(fixture.host));
    assert_int_equal(calls(&fixture, "cuMemHostRegister"), 2);
    assert_int_equal(calls(&fixture, "cuMemHostUnregister"), 2);
    assert_int_equal(calls(&fixture, "cuMemHostAlloc"), 1);
    assert_int_equal(calls(&fixture, "cuMemFreeHost"), 1);
    close_with(&fixture);
}

// The driver pins pages: two registrations that share a page cannot be released separately.
static void what_is_registered_has_pages_of_its_own(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "pinned_use_cuda_host_register:True");
    for (uint64_t size = 512; size <= 2 * vr_os_page_bytes(); size *= 2) {
        void *pointers[8];
        for (size_t i = 0; i < VR_COUNT_OF(pointers); i++) {
            pointers[i] = get(&fixture, size);
            assert_int_equal((uintptr_t)pointers[i] % vr_os_page_bytes(), 0);
        }
        for (size_t i = 0; i < VR_COUNT_OF(pointers); i++) put(&fixture, pointers[i]);
    }
    close_with(&fixture);
}

static void the_reserve_is_cut_and_kept(void **state) {
    (void)state;
    static const char *const confs[] = {"pinned_reserve_segment_size_mb:1",
                                        "pinned_reserve_segment_size_mb:1,pinned_use_cuda_host_register:True,pinned_max_cached_size_mb:1"};
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct fixture fixture;
        open_with(&fixture, NULL, confs[i]);
        char *a = get(&fixture, 1), *b = get(&fixture, 5000);
        assert_ptr_equal(a + 4096, b);
        struct vram_host_block_info info;
        expect_ok(vram_get_host_block_info(fixture.host, b, &info));
        assert_int_equal(info.origin, VRAM_HOST_RESERVED);
        assert_int_equal(info.size_bytes, 8192);
        assert_int_equal(stats_of(&fixture).reserve_used_bytes, 12288);
        void *outside = get(&fixture, VR_MIB); // does not fit inside
        expect_ok(vram_get_host_block_info(fixture.host, outside, &info));
        assert_int_not_equal(info.origin, VRAM_HOST_RESERVED);
        put(&fixture, a);
        put(&fixture, b);
        expect_ok(vram_host_empty_cache(fixture.host));
        assert_int_equal(stats_of(&fixture).allocations.current, 3);
        assert_ptr_equal(get(&fixture, 6000), b);
        close_with(&fixture);
    }
}

// --- out of memory --------------------------------------------------------------------------------------------------------------------

static void a_refusal_releases_the_cache(void **state) {
    (void)state;
    struct fixture fixture;
    struct vram_driver *fault = NULL;
    open_with_fault(&fixture, &fault, "");
    put(&fixture, get(&fixture, VR_MIB));
    expect_ok(vram_driver_fault_set(fault, "cuMemHostAlloc", 1, VR_CU_OUT_OF_MEMORY));
    get(&fixture, 4 * VR_MIB);
    struct vram_host_stats stats = stats_of(&fixture);
    assert_int_equal(stats.num_alloc_retries, 1);
    assert_int_equal(stats.num_ooms, 0);
    assert_int_equal(stats.allocations.freed, 1);
    close_with_fault(&fixture, fault);
}

static void a_refusal_waits_for_what_is_pending(void **state) {
    (void)state;
    struct fixture fixture;
    struct vram_driver *fault = NULL;
    open_with_fault(&fixture, &fault, "");
    void *pointer = get(&fixture, VR_MIB);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
    put(&fixture, pointer);
    void *same = NULL;
    expect_ok(vram_host_configure(fixture.host, "pinned_use_cuda_host_register:True", NULL));
    expect_ok(vram_driver_fault_set(fault, "cuMemHostRegister", 1, VR_CU_OUT_OF_MEMORY));
    expect_ok(vram_host_malloc(fixture.host, VR_MIB, 0, &same));
    assert_int_equal(calls(&fixture, "cuEventSynchronize"), 0); // the second try succeeded
    expect_ok(vram_host_free(fixture.host, same));
    void *huge = NULL;
    assert_int_equal(vram_host_malloc(fixture.host, (uint64_t)1 << 52, 0, &huge), VRAM_OUT_OF_MEMORY);
    assert_null(huge);
    assert_int_equal(calls(&fixture, "cuEventSynchronize"), 1);
    struct vram_host_stats stats = stats_of(&fixture);
    assert_int_equal(stats.num_ooms, 1);
    assert_int_equal(stats.allocations.current, 0);
    assert_int_equal(stats.pending_bytes, 0);
    assert_int_equal(vram_host_malloc(fixture.host, UINT64_MAX, 0, &huge), VRAM_OUT_OF_MEMORY);
    assert_int_equal(stats_of(&fixture).num_ooms, 2);
    close_with_fault(&fixture, fault);
}

static void what_the_driver_does_not_take_is_offered_again(void **state) {
    (void)state;
    static const struct {
        const char *conf;
        enum vram_status status;
    } rows[] = {{"", VRAM_DRIVER}, {"pinned_free_catch_all:True", VRAM_OK}};
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct fixture fixture;
        struct vram_driver *fault = NULL;
        open_with_fault(&fixture, &fault, rows[i].conf);
        put(&fixture, get(&fixture, VR_MIB));
        expect_ok(vram_driver_fault_set(fault, "cuMemFreeHost", 1, VR_CU_UNKNOWN));
        assert_int_equal(vram_host_empty_cache(fixture.host), rows[i].status);
        assert_int_equal(stats_of(&fixture).allocations.current, 1);
        check(&fixture);
        expect_ok(vram_host_empty_cache(fixture.host));
        assert_int_equal(stats_of(&fixture).allocations.current, 0);
        close_with_fault(&fixture, fault);
    }
}

static void a_fence_that_cannot_be_set(void **state) {
    (void)state;
    struct fixture fixture;
    struct vram_driver *fault = NULL;
    open_with_fault(&fixture, &fault, "");
    void *pointer = get(&fixture, 4096);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
    expect_ok(vram_driver_fault_set(fault, "cuEventRecord", 1, VR_CU_UNKNOWN));
    assert_int_equal(vram_host_free(fixture.host, pointer), VRAM_DRIVER);
    assert_int_equal(vram_host_allocated_size(fixture.host, pointer), 4096); // still live
    expect_ok(vram_host_configure(fixture.host, "pinned_free_catch_all:True", NULL));
    expect_ok(vram_driver_fault_set(fault, "cuEventRecord", 1, VR_CU_UNKNOWN));
    put(&fixture, pointer);
    void *other = get(&fixture, 4096); // the fence is set now, and pending
    assert_true(other != pointer);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    assert_ptr_equal(get(&fixture, 4096), pointer);
    close_with_fault(&fixture, fault);
}

// --- statistics -------------------------------------------------------------------------------------------------------------------

static void statistics_are_exact(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *a = get(&fixture, 1000), *b = get(&fixture, 3 * VR_MIB);
    put(&fixture, a);
    const struct vram_host_stats stats = stats_of(&fixture);
    const struct vram_stat requests = {1, 2, 2, 1}, blocks = {2, 2, 2, 0};
    const struct vram_stat active = {4 * VR_MIB, 4 * VR_MIB + 1024, 4 * VR_MIB + 1024, 1024};
    const struct vram_stat held = {4 * VR_MIB + 1024, 4 * VR_MIB + 1024, 4 * VR_MIB + 1024, 0};
    assert_memory_equal(&stats.active_requests, &requests, sizeof requests);
    assert_memory_equal(&stats.allocations, &blocks, sizeof blocks);
    assert_memory_equal(&stats.active_bytes, &active, sizeof active);
    assert_memory_equal(&stats.allocated_bytes, &held, sizeof held);
    assert_int_equal(stats.requested_bytes.current, 3 * VR_MIB);
    assert_int_equal(stats.bucket_allocation[10], 1);
    assert_int_equal(stats.bucket_allocation[22], 1);
    assert_int_equal(stats.host_alloc_time.count, 2);
    assert_int_equal(stats.host_free_time.count, 0);
    vram_host_reset_peak_stats(fixture.host);
    vram_host_reset_accumulated_stats(fixture.host);
    const struct vram_host_stats reset = stats_of(&fixture);
    assert_int_equal(reset.active_bytes.peak, 4 * VR_MIB);
    assert_int_equal(reset.active_bytes.allocated, 0);
    assert_int_equal(reset.allocations.current, 2);
    assert_int_equal(reset.host_alloc_time.count, 0);
    put(&fixture, b);
    close_with(&fixture);
}

// Times come from the virtual clock: pinning takes 0.34 s per GiB, the same in every run.
static void times_are_the_drivers(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, &(struct vram_sim_options){.memory_bytes = VR_GIB}, "");
    put(&fixture, get(&fixture, 64 * VR_MIB));
    put(&fixture, get(&fixture, VR_MIB));
    expect_ok(vram_host_empty_cache(fixture.host));
    const struct vram_host_stats stats = stats_of(&fixture);
    assert_int_equal(stats.host_alloc_time.count, 2);
    assert_in_range(stats.host_alloc_time.max_ns, 64 * 300000, 64 * 360000);
    assert_in_range(stats.host_alloc_time.min_ns, 300000, 360000);
    assert_int_equal(stats.host_alloc_time.total_ns, stats.host_alloc_time.max_ns + stats.host_alloc_time.min_ns);
    assert_int_equal(stats.host_free_time.count, 2);
    assert_true(stats.host_free_time.total_ns > 0);
    close_with(&fixture);
}

static void statistics_as_json(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, &(struct vram_sim_options){.profile = VRAM_SIM_FREE}, "");
    get(&fixture, 1000);
    const struct vram_host_stats stats = stats_of(&fixture);
    char text[4096], cut[40];
    const size_t length = vram_host_stats_json(&stats, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(vram_host_stats_json(&stats, NULL, 0), length);
    assert_int_equal(vram_host_stats_json(&stats, cut, sizeof cut), length);
    assert_memory_equal(cut, text, sizeof cut - 1);
    assert_int_equal(cut[sizeof cut - 1], '\0');
    assert_non_null(strstr(text, "\"active_bytes.current\": 1024,"));
    assert_non_null(strstr(text, "\"host_alloc_time.count\": 1,"));
    assert_non_null(strstr(text, "\"bucket_allocation\": [0,0,0,0,0,0,0,0,0,0,1,0,"));
    close_with(&fixture);
}

// --- listeners ------------------------------------------------------------------------------------------------------------------------

struct heard {
    struct vram_event events[32];
    size_t count;
};

static void hear(const struct vram_event *event, void *user) {
    struct heard *heard = user;
    assert_true(heard->count < VR_COUNT_OF(heard->events));
    heard->events[heard->count++] = *event;
}

static void expect_heard(struct heard *heard, const enum vram_event_action *actions, size_t count, const void *pointer, uint64_t size) {
    assert_int_equal(heard->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(heard->events[i].action, actions[i]);
        assert_int_equal(heard->events[i].address, (uintptr_t)pointer);
        assert_int_equal(heard->events[i].size_bytes, size);
    }
    heard->count = 0;
}

#define EXPECT_HEARD(heard, pointer, size, ...)                                                                                            \
    do {                                                                                                                                   \
        static const enum vram_event_action actions[] = {__VA_ARGS__};                                                                     \
        expect_heard(heard, actions, VR_COUNT_OF(actions), pointer, size);                                                                 \
    } while (0)

static void events_are_told_in_order(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    struct heard heard = {.count = 0};
    put(&fixture, get(&fixture, 2048)); // without a listener
    vram_host_set_event_listener(fixture.host, hear, &heard);
    void *block = get(&fixture, 1000);
    EXPECT_HEARD(&heard, block, 1024, VRAM_EVENT_SEGMENT_ALLOC, VRAM_EVENT_ALLOC);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, block, stream));
    put(&fixture, block);
    EXPECT_HEARD(&heard, block, 1024, VRAM_EVENT_FREE_REQUESTED);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    expect_ok(vram_host_empty_cache(fixture.host));
    assert_int_equal(heard.count, 3); // the first block has only one event, the end of its segment
    assert_int_equal(heard.events[0].action, VRAM_EVENT_FREE_COMPLETED);
    assert_int_equal(heard.events[1].action, VRAM_EVENT_SEGMENT_FREE);
    assert_int_equal(heard.events[2].action, VRAM_EVENT_SEGMENT_FREE);
    heard.count = 0;
    void *first = get(&fixture, 1000), *second = get(&fixture, 1000);
    put(&fixture, first);
    put(&fixture, second);
    heard.count = 0;
    expect_ok(vram_host_empty_cache(fixture.host)); // equal blocks are released in the order in which they were freed
    assert_int_equal(heard.count, 2);
    assert_int_equal(heard.events[0].address, (uintptr_t)first);
    assert_int_equal(heard.events[1].address, (uintptr_t)second);
    heard.count = 0;
    vram_host_set_event_listener(fixture.host, NULL, NULL);
    put(&fixture, get(&fixture, 1000));
    assert_int_equal(heard.count, 0);
    close_with(&fixture);
}

struct walked {
    struct vram_host_block_view blocks[8];
    size_t count, most;
};

static bool walk_on(const struct vram_host_block_view *block, void *user) {
    struct walked *walked = user;
    walked->blocks[walked->count++] = *block;
    return walked->count < walked->most;
}

static void a_walk_sees_every_block(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    void *live = get(&fixture, 1000), *pending = get(&fixture, 3000), *cached = get(&fixture, 70000);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, pending, stream));
    put(&fixture, pending);
    put(&fixture, cached);
    struct walked walked = {.most = VR_COUNT_OF(walked.blocks)};
    expect_ok(vram_host_walk(fixture.host, walk_on, &walked));
    assert_int_equal(walked.count, 3);
    for (size_t i = 0; i < walked.count; i++) {
        const struct vram_host_block_view *block = &walked.blocks[i];
        if (i > 0) assert_true((uintptr_t)block->pointer > (uintptr_t)walked.blocks[i - 1].pointer);
        const enum vram_block_state expected = block->pointer == live      ? VRAM_BLOCK_ALLOCATED
                                               : block->pointer == pending ? VRAM_BLOCK_PENDING
                                                                           : VRAM_BLOCK_FREE;
        assert_int_equal(block->state, expected);
        assert_int_equal(block->size_bytes, block->pointer == live ? 1024 : block->pointer == pending ? 4096 : 131072);
        assert_int_equal(block->requested_bytes, block->pointer == live ? 1000 : block->pointer == pending ? 3000 : 0);
    }
    walked = (struct walked){.most = 1};
    expect_ok(vram_host_walk(fixture.host, walk_on, &walked));
    assert_int_equal(walked.count, 1);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    put(&fixture, live);
    close_with(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_rounded),
        cmocka_unit_test(no_bytes_are_no_pointer),
        cmocka_unit_test(reuse_is_the_best_fit),
        cmocka_unit_test(large_blocks_do_not_pile_up),
        cmocka_unit_test(memory_can_be_written),
        cmocka_unit_test(strange_pointers_are_refused),
        cmocka_unit_test(bad_options_are_told),
        cmocka_unit_test(unused_blocks_come_back_at_once),
        cmocka_unit_test(every_stream_is_waited_for),
        cmocka_unit_test(streams_do_not_wait_for_each_other),
        cmocka_unit_test(events_are_used_again),
        cmocka_unit_test(streams_of_two_devices),
        cmocka_unit_test(memory_is_pinned_where_the_program_works),
        cmocka_unit_test(a_dead_context_holds_nothing_up),
        cmocka_unit_test(empty_cache_returns_what_is_free),
        cmocka_unit_test(blocks_above_the_cached_size_go_back),
        cmocka_unit_test(registered_memory_goes_back_as_it_came),
        cmocka_unit_test(what_is_registered_has_pages_of_its_own),
        cmocka_unit_test(the_reserve_is_cut_and_kept),
        cmocka_unit_test(a_refusal_releases_the_cache),
        cmocka_unit_test(a_refusal_waits_for_what_is_pending),
        cmocka_unit_test(what_the_driver_does_not_take_is_offered_again),
        cmocka_unit_test(a_fence_that_cannot_be_set),
        cmocka_unit_test(statistics_are_exact),
        cmocka_unit_test(times_are_the_drivers),
        cmocka_unit_test(statistics_as_json),
        cmocka_unit_test(events_are_told_in_order),
        cmocka_unit_test(a_walk_sees_every_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
