// Tests the functions of vram/allocator.h (out of memory: test_allocator_oom.c): their results, their refusals, and that a refusal changes
// nothing.
#define _POSIX_C_SOURCE 200809L // setenv
#include <stdio.h>

#include "driver/driver.h"
#include "support/expect.h"
#include "vram/sim.h"

// --- creating -----------------------------------------------------------------------------------------------------------

static void creating(void **state) {
    (void)state;
    struct vram_driver *sim = NULL;
    EXPECT_OK(vram_sim_create(NULL, &sim));
    struct vram_create_info info = {.driver = sim, .conf = "max_split_size_mb:64", .ignore_environment = true};
    struct vram_allocator *allocator = NULL;
    EXPECT_OK(vram_create(&info, &allocator, NULL));
    assert_non_null(allocator);
    vram_destroy(allocator);

    struct vram_error error = {0};
    allocator = (struct vram_allocator *)(void *)&error;
    info.conf = "max_split_size_mb:64,no_such_option:1";
    EXPECT_STATUS(BAD_OPTION, vram_create(&info, &allocator, &error));
    assert_ptr_equal(allocator, &error); // unchanged
    assert_int_equal(error.status, VRAM_BAD_OPTION);
    assert_int_equal(error.offset, strlen("max_split_size_mb:64,"));
    assert_non_null(strstr(error.message, "no_such_option"));
    EXPECT_STATUS(BAD_OPTION, vram_create(&info, &allocator, NULL));

    // Destroying an allocator leaves nothing in the driver, whether it was never used or its blocks were never freed.
    info.conf = "expandable_segments:True";
    EXPECT_OK(vram_create(&info, &allocator, NULL));
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(allocator, 0, 30 * VR_MIB, 0, &address));
    EXPECT_OK(vram_malloc(allocator, 0, 3, 0, &address));
    vram_destroy(allocator);
    vram_destroy(NULL);
    assert_int_equal(vram_sim_live_objects(sim), 0);
    assert_int_equal(vram_sim_memory_used(sim, 0), 0);
    vram_driver_destroy(sim);
}

static void options_from_the_environment(void **state) {
    (void)state;
    struct vram_driver *sim = NULL;
    EXPECT_OK(vram_sim_create(NULL, &sim));
    struct vram_create_info info = {.driver = sim};
    struct vram_allocator *allocator = NULL;
    char conf[64] = "";
    assert_int_equal(setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:99", 1), 0);
    EXPECT_OK(vram_create(&info, &allocator, NULL));
    (void)vram_configuration(allocator, conf, sizeof conf);
    assert_string_equal(conf, "max_split_size_mb:99");
    vram_destroy(allocator);
    assert_int_equal(setenv("VRAM_ALLOC_CONF", "max_split_size_mb:77", 1), 0); // the first of the three names wins
    EXPECT_OK(vram_create(&info, &allocator, NULL));
    (void)vram_configuration(allocator, conf, sizeof conf);
    assert_string_equal(conf, "max_split_size_mb:77");
    vram_destroy(allocator);
    info.ignore_environment = true;
    EXPECT_OK(vram_create(&info, &allocator, NULL));
    assert_int_equal(vram_configuration(allocator, conf, sizeof conf), 0);
    assert_string_equal(conf, "");
    vram_destroy(allocator);
    assert_int_equal(unsetenv("VRAM_ALLOC_CONF"), 0);
    assert_int_equal(unsetenv("PYTORCH_CUDA_ALLOC_CONF"), 0);
    vram_driver_destroy(sim);
}

// --- memory -----------------------------------------------------------------------------------------------------------------

static void zero_bytes_and_address_zero(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    uint64_t address = 77;
    EXPECT_OK(vram_malloc(world.allocator, 0, 0, 0, &address));
    assert_int_equal(address, 0);
    EXPECT_OK(vram_free(world.allocator, 0));
    EXPECT_OK(vram_record_stream(world.allocator, 0, world.stream[0][1]));
    EXPECT_NO_RECORDS(&world);
    EXPECT_CURRENT(&world, allocation, 0);
    assert_int_equal(expect_stats(&world).allocation[0].allocated, 0);
    expect_end(&world);
}

static void refused_arguments(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    uint64_t address = 77;
    double fraction = 2;
    struct vram_stats stats;
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc(world.allocator, 1, 100, 0, &address));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc(world.allocator, UINT32_MAX, 100, 0, &address));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_empty_cache_device(world.allocator, 1));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_get_stats(world.allocator, 1, &stats));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_get_stats(world.allocator, VRAM_MAX_DEVICES, &stats));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_reset_peak_stats(world.allocator, 1));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_reset_accumulated_stats(world.allocator, 1));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_set_memory_fraction(world.allocator, 1, 0.5));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_set_memory_fraction(world.allocator, 0, -0.1));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_set_memory_fraction(world.allocator, 0, 1.1));
    const volatile double zero = 0;
    EXPECT_STATUS(INVALID_ARGUMENT, vram_set_memory_fraction(world.allocator, 0, zero / zero));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_set_memory_limit(world.allocator, 1, 100));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_memory_fraction(world.allocator, 1, &fraction));
    uint64_t free_bytes = 5, total_bytes = 6;
    EXPECT_STATUS(INVALID_ARGUMENT, vram_memory_info(world.allocator, 1, &free_bytes, &total_bytes));
    assert_int_equal(address, 77);
    assert_true(fraction == 2);
    assert_true(free_bytes == 5 && total_bytes == 6);
    uint32_t count = 0;
    EXPECT_OK(vram_device_count(world.allocator, &count));
    assert_int_equal(count, 1);
    expect_end(&world);
}

static void enormous_requests(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    static const uint64_t sizes[] = {(uint64_t)1 << 60, UINT64_MAX, UINT64_MAX - 511, UINT64_MAX / 2, (uint64_t)1 << 63};
    uint64_t address = 77;
    for (size_t i = 0; i < VR_COUNT_OF(sizes); i++) {
        EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, sizes[i], 0, &address));
    }
    assert_int_equal(address, 77);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), 0); // refused before any driver call
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, ((uint64_t)1 << 60) - 1, 0, &address));
    EXPECT_SCALAR(&world, num_ooms, 1);
    expect_end(&world);
}

// A foreign address, one inside a block, a freed one, and one that waits for a stream are all invalid.
static void bad_pointers(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t other = world.stream[0][2];
    const uint64_t small = expect_malloc(&world, 2000, 0), large = expect_malloc(&world, 30 * VR_MIB, 0),
                   freed = expect_malloc(&world, 600, 0);
    const uint64_t pending = expect_malloc(&world, 4 * VR_MIB, 0);
    expect_free(&world, freed);
    EXPECT_OK(vram_record_stream(world.allocator, pending, other));
    expect_free(&world, pending);
    vr_world_forget(&world);
    const uint64_t bad[] = {1,         511,         0x1234567890, UINT64_MAX,  UINT64_MAX - 511,   (uint64_t)1 << 47,   (uint64_t)1 << 63,
                            small + 1, small + 512, small + 2048, large + 512, large + 2 * VR_MIB, large + 30 * VR_MIB, large - 512,
                            freed,     pending,     pending + 512};
    for (size_t i = 0; i < VR_COUNT_OF(bad); i++) {
        struct vram_block_info info = {.address = 9};
        if (vram_free(world.allocator, bad[i]) != VRAM_INVALID_POINTER) fail_msg("0x%llx was freed", (unsigned long long)bad[i]);
        EXPECT_STATUS(INVALID_POINTER, vram_record_stream(world.allocator, bad[i], other));
        EXPECT_STATUS(INVALID_POINTER, vram_get_block_info(world.allocator, bad[i], &info));
        assert_int_equal(info.address, 9);
        assert_int_equal(vram_allocated_size(world.allocator, bad[i]), 0);
    }
    assert_int_equal(vram_allocated_size(world.allocator, 0), 0);
    EXPECT_NO_RECORDS(&world);
    EXPECT_CURRENT(&world, allocation, 2);

    // Another allocator's block is also foreign.
    struct vr_world second;
    const struct vr_world_options apart = {.sim = {.alloc_base = 0x310000000000}};
    EXPECT_OK(vr_world_open(&second, &apart));
    const uint64_t foreign = expect_malloc(&second, 2000, 0);
    EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, foreign));
    EXPECT_STATUS(INVALID_POINTER, vram_free(second.allocator, small));
    expect_free(&second, foreign);
    EXPECT_STATUS(INVALID_POINTER, vram_free(second.allocator, foreign));
    expect_end(&second);
    expect_free(&world, small);
    expect_free(&world, large);
    expect_end(&world);
}

static void two_devices(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.device_count = 2, .memory_bytes = 64 * VR_MIB}};
    EXPECT_OK(vr_world_open(&world, &options));
    uint64_t first = 0, second = 0, none = 0;
    EXPECT_OK(vram_malloc(world.allocator, 0, 40 * VR_MIB, 0, &first));
    EXPECT_OK(vram_malloc(world.allocator, 1, 50 * VR_MIB, 0, &second));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 1, 30 * VR_MIB, 0, &none));
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 40 * VR_MIB);
    assert_int_equal(vram_sim_memory_used(world.sim, 1), 50 * VR_MIB);
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.device, 1);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, second, &info));
    assert_int_equal(info.device, 1);
    expect_free(&world, first);
    expect_free(&world, second);
    struct vram_stats stats;
    EXPECT_OK(vram_get_stats(world.allocator, 1, &stats));
    assert_int_equal(stats.num_ooms, 1);
    EXPECT_SCALAR(&world, num_ooms, 0);
    EXPECT_OK(vram_empty_cache_device(world.allocator, 1));
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 40 * VR_MIB);
    assert_int_equal(vram_sim_memory_used(world.sim, 1), 0);
    EXPECT_OK(vram_empty_cache(world.allocator));
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    uint32_t count = 0;
    EXPECT_OK(vram_device_count(world.allocator, &count));
    assert_int_equal(count, 2);
    expect_end(&world);
}

// A block may be used on another device's stream; its event is recorded there.
static void use_on_another_device(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.device_count = 2, .manual_completion = true}};
    EXPECT_OK(vr_world_open(&world, &options));
    const uint64_t block = expect_malloc(&world, 30 * VR_MIB, world.stream[0][1]);
    EXPECT_OK(vram_record_stream(world.allocator, block, world.stream[1][1]));
    expect_free(&world, block);
    EXPECT_OK(vr_world_complete(&world, 0, world.stream[0][1]));
    assert_int_not_equal(expect_malloc(&world, 30 * VR_MIB, world.stream[0][1]), block);
    EXPECT_CURRENT(&world, active, 2);
    EXPECT_OK(vr_world_complete(&world, 1, world.stream[1][1]));
    assert_int_equal(expect_malloc(&world, 30 * VR_MIB, world.stream[0][1]), block);
    expect_end(&world);
}

// No call needs a current context, and each keeps the current one.
static void any_current_context(void **state) {
    (void)state;
    for (int with_other = 0; with_other < 2; with_other++) {
        struct vr_world world;
        const struct vr_world_options options = {.sim = {.device_count = 2, .memory_bytes = 100 * VR_MIB}, .conf = "max_split_size_mb:32"};
        EXPECT_OK(vr_world_open(&world, &options));
        const uint64_t wanted = with_other ? world.context[1] : 0;
        uint64_t current = 0, free_bytes = 0, total_bytes = 0;
        assert_int_equal(vr_cu(world.sim, ctx_set_current, wanted), VR_CU_SUCCESS);
        const uint64_t block = expect_malloc(&world, 40 * VR_MIB, world.stream[0][1]);
        EXPECT_OK(vram_record_stream(world.allocator, block, world.stream[0][2]));
        expect_free(&world, block);
        const uint64_t retried = expect_malloc(&world, 80 * VR_MIB, world.stream[0][1]);
        expect_free(&world, retried);
        EXPECT_OK(vram_configure(world.allocator, "expandable_segments:True", NULL));
        expect_free(&world, expect_malloc(&world, 8 * VR_MIB, 0));
        EXPECT_OK(vram_memory_info(world.allocator, 0, &free_bytes, &total_bytes));
        EXPECT_OK(vram_empty_cache(world.allocator));
        uint64_t none = 0;
        EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 200 * VR_MIB, 0, &none));
        vram_set_caching(world.allocator, false);
        const uint64_t direct = expect_malloc(&world, 5 * VR_MIB, 0);
        (void)expect_malloc(&world, 5 * VR_MIB, 0);
        expect_free(&world, direct);
        assert_int_equal(vram_sim_memory_used(world.sim, 0), 5 * VR_MIB);
        EXPECT_OK(vram_check(world.allocator, NULL));
        assert_int_equal(vr_cu(world.sim, ctx_get_current, &current), VR_CU_SUCCESS);
        assert_int_equal(current, wanted);
        vr_world_destroy_allocator(&world);
        assert_int_equal(vr_cu(world.sim, ctx_get_current, &current), VR_CU_SUCCESS);
        assert_int_equal(current, wanted);
        assert_int_equal(vr_world_close(&world), 0);
    }
}

// --- queries ------------------------------------------------------------------------------------------------------------------------

static void facts_about_a_block(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1];
    const uint64_t first = expect_malloc(&world, 3 * VR_MIB, stream), block = expect_malloc(&world, 5 * VR_MIB - 100, stream);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, block, &info));
    assert_int_equal(info.address, block);
    assert_int_equal(info.size_bytes, 5 * VR_MIB);
    assert_int_equal(info.requested_bytes, 5 * VR_MIB - 100);
    assert_int_equal(info.segment_address, first);
    assert_int_equal(info.segment_bytes, 20 * VR_MIB);
    assert_int_equal(info.stream, stream);
    assert_int_equal(info.device, 0);
    assert_false(info.expandable);
    const uint64_t bytes[] = {block, block + 1, block + 512, block + 5 * VR_MIB - 1};
    for (size_t i = 0; i < VR_COUNT_OF(bytes); i++) {
        struct vram_block_info found = {0};
        EXPECT_OK(vram_find_block(world.allocator, bytes[i], &found));
        assert_int_equal(found.address, block);
        assert_int_equal(found.requested_bytes, info.requested_bytes);
    }
    const uint64_t outside[] = {0, block + 5 * VR_MIB, first + 20 * VR_MIB, UINT64_MAX, first - 1};
    for (size_t i = 0; i < VR_COUNT_OF(outside); i++) EXPECT_STATUS(INVALID_POINTER, vram_find_block(world.allocator, outside[i], &info));
    expect_free(&world, block);
    EXPECT_STATUS(INVALID_POINTER, vram_find_block(world.allocator, block + 1, &info));
    expect_end(&world);
}

struct seen {
    struct vram_block_view view[8];
    size_t count, stop_after;
};

static bool visit(const struct vram_block_view *view, void *user) {
    struct seen *seen = user;
    if (seen->count < VR_COUNT_OF(seen->view)) seen->view[seen->count] = *view;
    seen->count++;
    return seen->count != seen->stop_after;
}

static void walking(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct seen seen = {0};
    EXPECT_OK(vram_walk(world.allocator, 0, visit, &seen));
    assert_int_equal(seen.count, 0);
    const uint64_t small = expect_malloc(&world, 100, 0), pending = expect_malloc(&world, 700, 0),
                   large = expect_malloc(&world, 10 * VR_MIB, 0);
    EXPECT_OK(vram_record_stream(world.allocator, pending, world.stream[0][1]));
    expect_free(&world, pending);
    EXPECT_OK(vram_walk(world.allocator, 0, visit, &seen));
    assert_int_equal(seen.count, 4);
    const struct {
        uint64_t address, size_bytes, requested_bytes;
        enum vram_block_state state;
        bool small_pool;
    } expected[] = {{small, 512, 100, VRAM_BLOCK_ALLOCATED, true},
                    {pending, 1024, 700, VRAM_BLOCK_PENDING, true},
                    {pending + 1024, 2 * VR_MIB - 1536, 0, VRAM_BLOCK_FREE, true},
                    {large, 10 * VR_MIB, 10 * VR_MIB, VRAM_BLOCK_ALLOCATED, false}};
    for (size_t i = 0; i < VR_COUNT_OF(expected); i++) {
        assert_int_equal(seen.view[i].block.address, expected[i].address);
        assert_int_equal(seen.view[i].block.size_bytes, expected[i].size_bytes);
        assert_int_equal(seen.view[i].block.requested_bytes, expected[i].requested_bytes);
        assert_int_equal(seen.view[i].state, expected[i].state);
        assert_int_equal(seen.view[i].small_pool, expected[i].small_pool);
    }
    seen = (struct seen){.stop_after = 2};
    EXPECT_OK(vram_walk(world.allocator, 0, visit, &seen));
    assert_int_equal(seen.count, 2);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_walk(world.allocator, 1, visit, &seen));
    expect_end(&world);
}

// --- settings ---------------------------------------------------------------------------------------------------------------------

static bool note_pinned_limit(const struct vram_option *option, void *user) {
    if (strcmp(option->key, "pinned_max_cached_size_mb") == 0) (void)snprintf(user, 32, "%s", option->value);
    return true;
}

// An option set by one string, and not reset by the next, stays in force.
static void options_in_force(void **state) {
    (void)state;
    struct vr_world world;
    char value[32] = "";
    expect_world(&world, "pinned_max_cached_size_mb:64", 0);
    EXPECT_OK(vram_configure(world.allocator, "max_split_size_mb:64", NULL));
    EXPECT_OK(vram_options_in_force(world.allocator, note_pinned_limit, value));
    assert_string_equal(value, "64");
    expect_end(&world);
}

static void expect_conf(struct vr_world *world, const char *expected) {
    char text[256] = "";
    (void)vram_configuration(world->allocator, text, sizeof text);
    assert_string_equal(text, expected);
}

// Setting one option keeps those that a string would reset, and a failed call changes nothing.
static void one_option_changes(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error;
    expect_world(&world, "max_split_size_mb:64,roundup_power2_divisions:[256:1,>:4]", 0);
    EXPECT_OK(vram_set_option(world.allocator, "garbage_collection_threshold", "0.5", NULL));
    expect_conf(&world, "max_split_size_mb:64,garbage_collection_threshold:0.5,roundup_power2_divisions:[256:1,>:4]");
    EXPECT_OK(vram_set_option(world.allocator, "roundup_power2_divisions", NULL, NULL));
    EXPECT_OK(vram_set_option(world.allocator, "release_lock_on_hipmalloc", " on ", NULL));
    expect_conf(&world, "max_split_size_mb:64,garbage_collection_threshold:0.5,release_lock_on_cudamalloc:True");
    // A block of 80 MiB is no longer split, and serves 70 MiB as a whole.
    const uint64_t large = expect_malloc(&world, 80 * VR_MIB, 0);
    expect_free(&world, large);
    assert_int_equal(expect_malloc(&world, 70 * VR_MIB, 0), large);
    assert_int_equal(expect_size(&world, large), 80 * VR_MIB);
    const struct {
        const char *key, *value, *message;
        size_t offset;
    } wrong[] = {
        {"pagd", "True", "unknown option 'pagd' (did you mean 'paged'?), at character 1 of the option string", 0},
        {"paged", "maybe", "paged: expected True or False, found 'maybe', at character 7 of the option string", 6},
        {"paged", "", "paged: expected True or False, found the end, at character 7 of the option string", 6},
        {"paged", "True,max_split_size_mb:32", "expected the end of the value, found ',', at character 11 of the option string", 10},
        {"paged:True", NULL, "expected the end of the value, found ':', at character 6 of the option string", 5},
        {"", "1", "expected an option name, found ':', at character 1 of the option string", 0},
        {"large_segment_size_mb", "80", "max_split_size_mb and max_non_split_rounding_mb must be at least large_segment_size_mb",
         VRAM_NO_OFFSET},
        {"backend", "cudaMallocAsync", "the backend cannot be changed after the allocator was created", VRAM_NO_OFFSET},
        {"pytorch", "2.6", "the PyTorch version cannot be changed after the allocator was created", VRAM_NO_OFFSET},
    };
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) {
        EXPECT_STATUS(BAD_OPTION, vram_set_option(world.allocator, wrong[i].key, wrong[i].value, &error));
        assert_string_equal(error.message, wrong[i].message);
        assert_int_equal(error.offset, wrong[i].offset);
        expect_conf(&world, "max_split_size_mb:64,garbage_collection_threshold:0.5,release_lock_on_cudamalloc:True");
    }
    expect_free(&world, large);
    expect_end(&world);
}

// The rounding of blocks that are not split follows the large segment until it is set.
static void what_follows_the_large_segment(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    EXPECT_OK(vram_set_option(world.allocator, "large_segment_size_mb", "32", NULL));
    expect_conf(&world, "large_segment_size_mb:32");
    EXPECT_OK(vram_set_option(world.allocator, "max_non_split_rounding_mb", "64", NULL));
    EXPECT_OK(vram_set_option(world.allocator, "large_segment_size_mb", NULL, NULL));
    expect_conf(&world, "max_non_split_rounding_mb:64");
    EXPECT_OK(vram_set_option(world.allocator, "max_non_split_rounding_mb", NULL, NULL));
    expect_conf(&world, "");
    EXPECT_OK(vram_set_option(world.allocator, "expandable_segments_reserve_by_class", "[a:0.5]", NULL));
    expect_conf(&world, "expandable_segments_reserve_by_class:[a:0.5]");
    EXPECT_OK(vram_set_option(world.allocator, "expandable_segments_reserve_by_class", NULL, NULL));
    expect_conf(&world, "");
    expect_end(&world);
}

static void configuration_text(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "max_split_size_mb:64", 0);
    char text[64];
    assert_int_equal(vram_configuration(world.allocator, text, sizeof text), 20);
    assert_string_equal(text, "max_split_size_mb:64");
    assert_int_equal(vram_configuration(world.allocator, text, 5), 20);
    assert_string_equal(text, "max_");
    text[0] = 'x';
    assert_int_equal(vram_configuration(world.allocator, text, 1), 20);
    assert_string_equal(text, "");
    assert_int_equal(vram_configuration(world.allocator, NULL, 0), 20);
    EXPECT_OK(vram_configure(world.allocator, "", NULL));
    assert_int_equal(vram_configuration(world.allocator, text, sizeof text), 0);
    EXPECT_OK(vram_configure(world.allocator, NULL, NULL));
    assert_int_equal(vram_configuration(world.allocator, text, sizeof text), 0);
    struct vram_error error = {0};
    static const char *const bad[] = {"max_split_size_mb",   "max_split_size_mb:1", "nonsense:1", "garbage_collection_threshold:2", ",,",
                                      "expandable_segments:"};
    for (size_t i = 0; i < VR_COUNT_OF(bad); i++) {
        if (vram_configure(world.allocator, bad[i], &error) != VRAM_BAD_OPTION) fail_msg("\"%s\" was accepted", bad[i]);
        assert_true(error.offset <= strlen(bad[i]));
        assert_true(error.message[0] != '\0');
    }
    assert_int_equal(vram_configuration(world.allocator, text, sizeof text), 0);
    expect_end(&world);
}

static void limits(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 1001);
    double fraction = 0;
    EXPECT_OK(vram_memory_fraction(world.allocator, 0, &fraction));
    assert_true(fraction == 1);
    EXPECT_OK(vram_set_memory_fraction(world.allocator, 0, 0.5)); // 500.5 bytes: the nearest is 501
    uint64_t none = 0;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 1, 0, &none));
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.limit_bytes, 501);
    EXPECT_OK(vram_memory_fraction(world.allocator, 0, &fraction));
    assert_true(fraction > 0.5 && fraction < 0.501);
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, UINT64_MAX));
    EXPECT_OK(vram_memory_fraction(world.allocator, 0, &fraction));
    assert_true(fraction == 1);
    EXPECT_OK(vram_set_memory_fraction(world.allocator, 0, 0));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 1, 0, &none));
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.limit_bytes, 0);
    assert_true(oom.limit_hit);
    EXPECT_OK(vram_set_memory_fraction(world.allocator, 0, 1));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 1, 0, &none));
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.limit_bytes, UINT64_MAX);
    assert_false(oom.limit_hit);
    expect_end(&world);
}

static void without_caching(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", VR_GIB);
    assert_true(vram_caching(world.allocator));
    const uint64_t cached = expect_malloc(&world, 3 * VR_MIB, 0);
    vram_set_caching(world.allocator, false);
    assert_false(vram_caching(world.allocator));
    const uint64_t direct = expect_malloc(&world, 3 * VR_MIB, 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 23 * VR_MIB);
    EXPECT_CURRENT(&world, allocation, 1);
    assert_true(expect_size(&world, direct) >= 3 * VR_MIB);
    uint64_t none = 1;
    EXPECT_OK(vram_malloc(world.allocator, 0, 0, 0, &none));
    assert_int_equal(none, 0);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 2 * VR_GIB, 0, &none));
    // Each block remembers whether it was allocated with caching.
    expect_free(&world, cached);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 23 * VR_MIB);
    vram_set_caching(world.allocator, true);
    EXPECT_OK(vram_record_stream(world.allocator, direct, world.stream[0][1]));
    expect_free(&world, direct);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 20 * VR_MIB);
    EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, direct));
    vram_set_caching(world.allocator, false);
    (void)expect_malloc(&world, 100, 0); // vram_destroy() frees it
    expect_end(&world);
}

static void memory_info(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", VR_GIB);
    uint64_t free_bytes = 0, total_bytes = 0;
    EXPECT_OK(vram_memory_info(world.allocator, 0, &free_bytes, &total_bytes));
    assert_int_equal(total_bytes, VR_GIB);
    assert_int_equal(free_bytes, VR_GIB);
    (void)expect_malloc(&world, 100 * VR_MIB, 0);
    EXPECT_OK(vram_memory_info(world.allocator, 0, &free_bytes, &total_bytes));
    assert_int_equal(free_bytes, VR_GIB - 100 * VR_MIB);
    expect_end(&world);
}

// --- statistics -----------------------------------------------------------------------------------------------------------------------

static void statistics_of_an_unused_device(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const struct vram_stats stats = expect_stats(&world);
#define NOTHING(name, is_bytes, text)                                                                                                      \
    for (int pool = 0; pool < VRAM_STAT_POOLS; pool++) {                                                                                   \
        assert_int_equal(stats.name[pool].current, 0);                                                                                     \
        assert_int_equal(stats.name[pool].peak, 0);                                                                                        \
        assert_int_equal(stats.name[pool].allocated, 0);                                                                                   \
        assert_int_equal(stats.name[pool].freed, 0);                                                                                       \
    }
    VRAM_STAT_FAMILIES(NOTHING)
#undef NOTHING
    assert_int_equal(stats.num_sync_all_streams, 0);
    EXPECT_OK(vram_empty_cache(world.allocator)); // nothing to wait for on a device that was never used
    EXPECT_SCALAR(&world, num_sync_all_streams, 0);
    EXPECT_OK(vram_check(world.allocator, NULL));
    expect_end(&world);
}

// expandable_segments_reserve_by_class: the size of a stream's reservations shows in requests that do not fit into one of them.
static void reservations_by_class(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True,expandable_segments_reserve:1G,expandable_segments_reserve_by_class:[comm:100M,wide:4G]",
                 0);
    const uint64_t comm = world.stream[0][1], wide = world.stream[0][2];
    char long_name[64];
    memset(long_name, 'x', sizeof long_name);
    long_name[40] = '\0';
    EXPECT_STATUS(INVALID_ARGUMENT, vram_set_stream_class(world.allocator, comm, long_name));
    EXPECT_OK(vram_set_stream_class(world.allocator, comm, "wide"));
    EXPECT_OK(vram_set_stream_class(world.allocator, wide, "wide"));
    EXPECT_OK(vram_set_stream_class(world.allocator, comm, "comm"));
    EXPECT_OK(vram_set_stream_class(world.allocator, 0, "nobody"));
    uint64_t block = 0;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 101 * VR_MIB, comm, &block));
    expect_free(&world, expect_malloc(&world, 100 * VR_MIB, comm));
    expect_free(&world, expect_malloc(&world, 4 * VR_GIB, wide));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 2 * VR_GIB, 0, &block));
    expect_free(&world, expect_malloc(&world, VR_GIB, 0));
    EXPECT_OK(vram_set_stream_class(world.allocator, comm, NULL));
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_free(&world, expect_malloc(&world, VR_GIB, comm));
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating),
        cmocka_unit_test(options_from_the_environment),
        cmocka_unit_test(zero_bytes_and_address_zero),
        cmocka_unit_test(refused_arguments),
        cmocka_unit_test(enormous_requests),
        cmocka_unit_test(bad_pointers),
        cmocka_unit_test(two_devices),
        cmocka_unit_test(use_on_another_device),
        cmocka_unit_test(any_current_context),
        cmocka_unit_test(facts_about_a_block),
        cmocka_unit_test(reservations_by_class),
        cmocka_unit_test(walking),
        cmocka_unit_test(configuration_text),
        cmocka_unit_test(one_option_changes),
        cmocka_unit_test(what_follows_the_large_segment),
        cmocka_unit_test(options_in_force),
        cmocka_unit_test(limits),
        cmocka_unit_test(without_caching),
        cmocka_unit_test(memory_info),
        cmocka_unit_test(statistics_of_an_unused_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
