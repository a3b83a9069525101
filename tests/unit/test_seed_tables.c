// Tests the tables that PyTorch's and NVIDIA's guides print for small programs: the same operations give the same rows. Columns are
// allocated, active, inactive split and reserved GiB of the large pool, to three decimals, as printed there. Only rows that need no
// capture.
#include "support/table.h"

static void open_streams(struct vr_world *world, const char *conf) {
    const struct vr_world_options options = {.sim = {.memory_bytes = 80 * VR_GIB}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
}

static void caching_allocator_statistics(void **state) {
    (void)state;
    struct vr_world world;
    open_streams(&world, "");
    const uint64_t stream = world.stream[0][1];
    const uint64_t x1 = expect_malloc(&world, 4 * VR_GIB, 0);
    expect_row(&world, "After alloc x1", "4.000 4.000 0.000 4.000");
    expect_free(&world, x1);
    expect_row(&world, "After del x1", "0.000 0.000 0.000 4.000");
    const uint64_t x2 = expect_malloc(&world, VR_GIB, 0);
    expect_row(&world, "After alloc x2", "1.000 1.000 3.000 4.000");
    expect_free(&world, x2);
    expect_row(&world, "After del x2", "0.000 0.000 0.000 4.000");
    const uint64_t x3 = expect_malloc(&world, VR_GIB, 0);
    expect_row(&world, "After alloc x3", "1.000 1.000 3.000 4.000");
    EXPECT_OK(vram_record_stream(world.allocator, x3, stream));
    expect_free(&world, x3);
    expect_row(&world, "After del x3", "0.000 1.000 3.000 4.000");
    const uint64_t t1 = expect_malloc(&world, 1, stream);
    expect_row(&world, "After alloc t1", "0.000 0.000 0.000 4.000");
    expect_free(&world, t1);
    (void)expect_malloc(&world, VR_GIB, stream);
    expect_row(&world, "After alloc x4", "1.000 1.000 0.000 5.000");
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "After empty cache", "1.000 1.000 0.000 1.000");
    (void)expect_malloc(&world, VR_GIB, stream);
    expect_row(&world, "After alloc x5", "2.000 2.000 0.000 2.000");
    expect_end(&world);
}

// "Intermediate tensors after capture", USE_GRAPH=0.
static void temporaries_without_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_streams(&world, "");
    (void)expect_malloc(&world, 4 * VR_GIB, 0); // x1
    const uint64_t t1 = expect_malloc(&world, 4 * VR_GIB, 0);
    expect_free(&world, t1);
    expect_row(&world, "After alloc x1, del t1", "4.000 4.000 0.000 8.000");
    const uint64_t t2 = expect_malloc(&world, 4 * VR_GIB, 0);
    (void)expect_malloc(&world, 4 * VR_GIB, 0); // out1
    expect_free(&world, t2);
    expect_row(&world, "After alloc out1, del t2", "8.000 8.000 0.000 12.000");
    expect_free(&world, expect_malloc(&world, 4 * VR_GIB, 0)); // t3
    expect_row(&world, "After alloc t3, del t3", "8.000 8.000 0.000 12.000");
    expect_end(&world);
}

// "Memory fragmentation across pools", up to the capture: the results of default options, expandable segments and max_split_size.
static void fragmentation(const char *conf, const char *after_x, const char *after_empty, const char *after_temp) {
    struct vr_world world;
    open_streams(&world, conf);
    expect_free(&world, expect_malloc(&world, 8 * VR_GIB, 0));
    expect_row(&world, "After del temp", after_temp);
    (void)expect_malloc(&world, VR_GIB, 0); // small
    (void)expect_malloc(&world, VR_GIB, 0); // x
    expect_row(&world, "After alloc x", after_x);
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "After empty cache", after_empty);
    expect_end(&world);
}

static void fragmentation_by_option(void **state) {
    (void)state;
    fragmentation("", "2.000 2.000 6.000 8.000", "2.000 2.000 6.000 8.000", "0.000 0.000 0.000 8.000");
    fragmentation("expandable_segments:True", "2.000 2.000 0.000 8.008", "2.000 2.000 0.000 2.012", "0.000 0.000 0.000 8.008");
    fragmentation("max_split_size_mb:128", "2.000 2.000 0.000 10.000", "2.000 2.000 0.000 2.000", "0.000 0.000 0.000 8.000");
}

// The operations of the expandable example outside a capture: the rows before its empty_cache are the same.
static void expandable_growth(void **state) {
    (void)state;
    struct vr_world world;
    open_streams(&world, "expandable_segments:True");
    expect_free(&world, expect_malloc(&world, 8 * VR_GIB, 0));
    expect_row(&world, "After del temp", "0.000 0.000 0.000 8.008");
    const uint64_t x = expect_malloc(&world, 2 * VR_GIB, 0);
    expect_row(&world, "After alloc x", "2.000 2.000 0.000 8.008");
    const uint64_t y = expect_malloc(&world, 8 * VR_GIB, 0);
    expect_row(&world, "After alloc y", "10.000 10.000 0.000 10.000");
    expect_free(&world, x);
    expect_free(&world, y);
    expect_row(&world, "After del x, y", "0.000 0.000 0.000 10.000");
    const uint64_t z = expect_malloc(&world, 16 * VR_GIB, 0);
    expect_row(&world, "After alloc z", "16.000 16.000 0.000 16.016");
    expect_free(&world, z);
    expect_row(&world, "After del z", "0.000 0.000 0.000 16.016");
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "After empty cache", "0.000 0.000 0.000 0.000");
    expect_end(&world);
}

// "Deferred memory recycling", USE_GRAPH=0.
static void recycling_without_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_streams(&world, "");
    const uint64_t current = world.stream[0][1], side = world.stream[0][2];
    const uint64_t x1 = expect_malloc(&world, 4 * VR_GIB, current);
    EXPECT_OK(vram_record_stream(world.allocator, x1, side));
    expect_row(&world, "After alloc x1", "4.000 4.000 0.000 4.000");
    expect_free(&world, x1);
    expect_row(&world, "After del x1", "0.000 4.000 0.000 4.000");
    const uint64_t t1 = expect_malloc(&world, 1, current);
    expect_row(&world, "After alloc t1", "0.000 0.000 0.000 4.000");
    expect_free(&world, t1);
    assert_int_equal(expect_malloc(&world, 4 * VR_GIB, current), x1);
    expect_row(&world, "After alloc x2", "4.000 4.000 0.000 4.000");
    (void)expect_malloc(&world, 1, 0);
    expect_row(&world, "After alloc t2", "4.000 4.000 0.000 4.000");
    expect_end(&world);
}

// "Gradient accumulator cross-stream memory growth": the warm-up. x is on the default stream, gradients on the side stream; x.grad holds
// the last gradient while the next is made.
static void gradient_warm_up(void **state) {
    (void)state;
    struct vr_world world;
    open_streams(&world, "");
    const uint64_t side = world.stream[0][1];
    (void)expect_malloc(&world, 4 * VR_GIB, 0);
    expect_row(&world, "Before warmup", "4.000 4.000 0.000 4.000");
    uint64_t grad = 0;
    for (int step = 0; step < 5; step++) {
        const uint64_t intermediate = expect_malloc(&world, 4 * VR_GIB, side);
        expect_free(&world, intermediate);
        const uint64_t fresh = expect_malloc(&world, 4 * VR_GIB, side);
        EXPECT_OK(vram_free(world.allocator, grad));
        grad = fresh;
        expect_row(&world, "Step", step == 0 ? "8.000 8.000 0.000 8.000" : "8.000 8.000 0.000 12.000");
    }
    expect_free(&world, grad);
    expect_row(&world, "After warmup", "4.000 4.000 0.000 12.000");
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "Before capture", "4.000 4.000 0.000 4.000");
    expect_end(&world);
}

// "cudaFree is suppressed during capture", USE_GRAPH=0.
static void release_without_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_streams(&world, "");
    const uint64_t x1 = expect_malloc(&world, 4 * VR_GIB, 0);
    expect_row(&world, "After alloc x1", "4.000 4.000 0.000 4.000");
    (void)expect_malloc(&world, 4 * VR_GIB, 0);
    expect_row(&world, "After alloc x2", "8.000 8.000 0.000 8.000");
    expect_free(&world, x1);
    expect_row(&world, "After del x1", "4.000 4.000 0.000 8.000");
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "After empty cache", "4.000 4.000 0.000 4.000");
    (void)expect_malloc(&world, 4 * VR_GIB, 0);
    expect_row(&world, "After alloc x3", "8.000 8.000 0.000 8.000");
    expect_end(&world);
}

// The guide's example of divisions, one power of two higher: four steps remain between 2^n and 2^(n+1).
static void four_divisions(void **state) {
    (void)state;
    struct vr_world world;
    open_streams(&world, "roundup_power2_divisions:4");
    static const uint64_t sizes[][2] = {{1024, 1024}, {1025, 1280}, {1200, 1280}, {1280, 1280}, {1281, 1536}, {1537, 1792}, {1793, 2048}};
    for (size_t i = 0; i < VR_COUNT_OF(sizes); i++) {
        const uint64_t block = expect_malloc(&world, sizes[i][0] * 1024 * 1024, 0);
        assert_int_equal(expect_size(&world, block), sizes[i][1] * 1024 * 1024);
        expect_free(&world, block);
        EXPECT_OK(vram_empty_cache(world.allocator));
    }
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caching_allocator_statistics), cmocka_unit_test(temporaries_without_capture),
        cmocka_unit_test(fragmentation_by_option),      cmocka_unit_test(expandable_growth),
        cmocka_unit_test(recycling_without_capture),    cmocka_unit_test(gradient_warm_up),
        cmocka_unit_test(release_without_capture),      cmocka_unit_test(four_divisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
