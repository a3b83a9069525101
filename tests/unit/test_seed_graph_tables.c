// Tests the guides' tables whose programs capture a graph: the same operations through vram/pool.h give the same rows. A program's first
// graph captures on its own stream, as torch.cuda.graph() does.
#include "support/table.h"
#include "support/waits.h"
#include "vram/pool.h"

static void open_world(struct vr_world *world, const char *conf) {
    const struct vr_world_options options = {.sim = {.memory_bytes = 80 * VR_GIB}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
}

static struct vram_graph *begin(struct vr_world *world, uint64_t stream, struct vram_pool *pool) {
    const struct vram_graph_options options = {.pool = pool};
    struct vram_graph *graph = NULL;
    EXPECT_OK(vram_graph_begin(world->allocator, 0, stream, &options, &graph, NULL));
    return graph;
}

static void use_on(struct vr_world *world, uint64_t block, uint64_t stream) {
    EXPECT_OK(vram_record_stream(world->allocator, block, stream));
    assert_int_equal(vr_cu(world->sim, memset_d8_async, block, 1, VR_MIB, stream), VR_CU_SUCCESS);
}

static void pools_of_two_graphs(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "");
    const uint64_t stream = world.stream[0][1];
    (void)expect_malloc(&world, 4 * VR_GIB, 0); // x1
    (void)expect_malloc(&world, 4 * VR_GIB, 0); // x2
    expect_row(&world, "After alloc x1, x2", "8.000 8.000 0.000 8.000");
    struct vram_graph *graphs[2];
    static const char *const rows[] = {"12.000 12.000 0.000 16.000", "16.000 16.000 0.000 24.000"};
    for (int i = 0; i < 2; i++) {
        graphs[i] = begin(&world, stream, NULL);
        const uint64_t intermediate = expect_malloc(&world, 4 * VR_GIB, stream);
        (void)expect_malloc(&world, 4 * VR_GIB, stream); // out
        expect_free(&world, intermediate);
        expect_row(&world, "After del intermediate", rows[i]);
        EXPECT_OK(vram_graph_end(graphs[i], NULL));
    }
    for (int i = 0; i < 2; i++) vram_graph_destroy(graphs[i]);
    expect_end(&world);
}

// "Total: ~20GB (2 inputs + 2 outputs + 1 shared intermediate)"
static void one_pool_for_two_graphs(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "");
    const uint64_t stream = world.stream[0][1];
    (void)expect_malloc(&world, 4 * VR_GIB, 0);
    (void)expect_malloc(&world, 4 * VR_GIB, 0);
    struct vram_graph *graphs[2];
    for (int i = 0; i < 2; i++) {
        graphs[i] = begin(&world, stream, i == 0 ? NULL : vram_graph_pool(graphs[0]));
        const uint64_t intermediate = expect_malloc(&world, 4 * VR_GIB, stream);
        (void)expect_malloc(&world, 4 * VR_GIB, stream);
        expect_free(&world, intermediate);
        EXPECT_OK(vram_graph_end(graphs[i], NULL));
    }
    expect_row(&world, "both captured", "16.000 16.000 0.000 20.000");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) EXPECT_OK(vram_graph_launch(graphs[i], stream, NULL));
    }
    for (int i = 0; i < 2; i++) vram_graph_destroy(graphs[i]);
    expect_end(&world);
}

// "Intermediate tensors after capture", USE_GRAPH=1.
static void temporaries_after_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "");
    const uint64_t stream = world.stream[0][1];
    (void)expect_malloc(&world, 4 * VR_GIB, 0);
    expect_free(&world, expect_malloc(&world, 4 * VR_GIB, 0));
    expect_row(&world, "After alloc x1, del t1", "4.000 4.000 0.000 8.000");
    struct vram_graph *graph = begin(&world, stream, NULL);
    expect_row(&world, "After enter context", "4.000 4.000 0.000 4.000");
    const uint64_t t2 = expect_malloc(&world, 4 * VR_GIB, stream);
    (void)expect_malloc(&world, 4 * VR_GIB, stream);
    expect_free(&world, t2);
    expect_row(&world, "After alloc out1, del t2", "8.000 8.000 0.000 12.000");
    EXPECT_OK(vram_graph_end(graph, NULL));
    expect_free(&world, expect_malloc(&world, 4 * VR_GIB, 0));
    expect_row(&world, "After alloc t3, del t3", "8.000 8.000 0.000 16.000");
    vram_graph_destroy(graph);
    expect_end(&world);
}

// "Memory fragmentation across pools" under each option.
static void fragmentation(const char *conf, const char *const rows[4]) {
    struct vr_world world;
    open_world(&world, conf);
    const uint64_t stream = world.stream[0][1];
    expect_free(&world, expect_malloc(&world, 8 * VR_GIB, 0));
    expect_row(&world, "After del temp", rows[0]);
    (void)expect_malloc(&world, VR_GIB, 0); // small
    (void)expect_malloc(&world, VR_GIB, 0); // x
    expect_row(&world, "After alloc x", rows[1]);
    struct vram_graph *graph = begin(&world, stream, NULL);
    expect_row(&world, "After empty cache", rows[2]);
    const uint64_t intermediate = expect_malloc(&world, VR_GIB, stream);
    (void)expect_malloc(&world, VR_GIB, stream); // out
    expect_free(&world, intermediate);
    expect_row(&world, "After del intermediate", rows[3]);
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    expect_end(&world);
}

static void fragmentation_by_option(void **state) {
    (void)state;
    fragmentation("", (const char *const[]){"0.000 0.000 0.000 8.000", "2.000 2.000 6.000 8.000", "2.000 2.000 6.000 8.000",
                                            "3.000 3.000 6.000 10.000"});
    fragmentation("expandable_segments:True", (const char *const[]){"0.000 0.000 0.000 8.008", "2.000 2.000 0.000 8.008",
                                                                    "2.000 2.000 0.000 2.012", "3.000 3.000 0.000 4.023"});
    fragmentation("max_split_size_mb:128", (const char *const[]){"0.000 0.000 0.000 8.000", "2.000 2.000 0.000 10.000",
                                                                 "2.000 2.000 0.000 2.000", "3.000 3.000 0.000 4.000"});
}

// "Expandable segments cannot reclaim memory during capture."
static void expandable_in_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "expandable_segments:True");
    const uint64_t stream = world.stream[0][1];
    struct vram_graph *graph = begin(&world, stream, NULL);
    expect_free(&world, expect_malloc(&world, 8 * VR_GIB, stream));
    expect_row(&world, "After del temp", "0.000 0.000 0.000 8.008");
    const uint64_t x = expect_malloc(&world, 2 * VR_GIB, stream);
    expect_row(&world, "After alloc x", "2.000 2.000 0.000 8.008");
    const uint64_t y = expect_malloc(&world, 8 * VR_GIB, stream);
    expect_row(&world, "After alloc y", "10.000 10.000 0.000 10.000");
    expect_free(&world, x);
    expect_free(&world, y);
    expect_row(&world, "After del x, y", "0.000 0.000 0.000 10.000");
    const uint64_t z = expect_malloc(&world, 16 * VR_GIB, stream);
    expect_row(&world, "After alloc z", "16.000 16.000 0.000 16.016");
    expect_free(&world, z);
    expect_row(&world, "After del z", "0.000 0.000 0.000 16.016");
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "After empty cache", "0.000 0.000 0.000 16.016");
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    expect_row(&world, "After del graph", "0.000 0.000 0.000 16.016");
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "After empty cache", "0.000 0.000 0.000 0.000");
    expect_end(&world);
}

// "Deferred memory recycling", USE_GRAPH=1, without and with graph_capture_record_stream_reuse.
static void deferred_recycling(const char *conf, const char *const rows[5]) {
    struct vr_world world;
    open_world(&world, conf);
    const uint64_t stream = world.stream[0][1], side = world.stream[0][2];
    struct vram_graph *graph = begin(&world, stream, NULL);
    const uint64_t x1 = expect_malloc(&world, 4 * VR_GIB, stream);
    expect_row(&world, "After alloc x1", rows[0]);
    expect_wait_stream(&world, side, stream);
    use_on(&world, x1, side);
    expect_wait_stream(&world, stream, side);
    expect_free(&world, x1);
    expect_row(&world, "After del x1", rows[1]);
    expect_free(&world, expect_malloc(&world, 1, stream)); // t1
    expect_row(&world, "After alloc t1", rows[2]);
    (void)expect_malloc(&world, 4 * VR_GIB, stream); // x2
    expect_row(&world, "After alloc x2", rows[3]);
    EXPECT_OK(vram_graph_end(graph, NULL));
    (void)expect_malloc(&world, 1, 0); // t2
    expect_row(&world, "After alloc t2", rows[4]);
    vram_graph_destroy(graph);
    expect_end(&world);
}

static void deferred_recycling_by_option(void **state) {
    (void)state;
    deferred_recycling("", (const char *const[]){"4.000 4.000 0.000 4.000", "0.000 4.000 0.000 4.000", "0.000 4.000 0.000 4.000",
                                                 "4.000 8.000 0.000 8.000", "4.000 4.000 0.000 8.000"});
    deferred_recycling("graph_capture_record_stream_reuse:True",
                       (const char *const[]){"4.000 4.000 0.000 4.000", "0.000 4.000 0.000 4.000", "0.000 0.000 0.000 4.000",
                                             "4.000 4.000 0.000 4.000", "4.000 4.000 0.000 4.000"});
}

// "Gradient accumulator cross-stream memory growth": autograd's allocations, step by step.
static void gradients_in_capture(void **state) {
    static const char *const rows[] = {"8.000 8.000 0.000 8.000", "8.000 12.000 0.000 12.000", "8.000 16.000 0.000 16.000",
                                       "8.000 20.000 0.000 20.000", "8.000 24.000 0.000 24.000"};
    (void)state;
    struct vr_world world;
    open_world(&world, "");
    const uint64_t stream = world.stream[0][1], side = world.stream[0][2];
    (void)expect_malloc(&world, 4 * VR_GIB, 0); // x
    struct vram_graph *graph = begin(&world, stream, NULL);
    expect_row(&world, "Before capture", "4.000 4.000 0.000 4.000");
    expect_wait_stream(&world, side, stream);
    const uint64_t y = expect_malloc(&world, 4 * VR_GIB, stream); // x * 2
    expect_free(&world, y);
    const uint64_t grad = expect_malloc(&world, 4 * VR_GIB, stream); // its gradient, which becomes x.grad
    assert_int_equal(grad, y);
    expect_row(&world, "Step 0", rows[0]);
    for (int step = 1; step < 5; step++) {
        const uint64_t product = expect_malloc(&world, 4 * VR_GIB, stream);
        use_on(&world, product, side); // read by the accumulator, which adds it to x.grad on its own stream
        use_on(&world, grad, side);
        expect_wait_stream(&world, stream, side);
        expect_free(&world, product);
        expect_row(&world, "Step", rows[step]);
        expect_wait_stream(&world, side, stream);
    }
    expect_free(&world, grad);
    expect_wait_stream(&world, stream, side);
    EXPECT_OK(vram_graph_end(graph, NULL));
    expect_row(&world, "After capture", "4.000 24.000 0.000 24.000");
    vram_graph_destroy(graph);
    expect_end(&world);
}

// "cudaFree is suppressed during capture", USE_GRAPH=1.
static void release_in_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "");
    const uint64_t stream = world.stream[0][1];
    const uint64_t x1 = expect_malloc(&world, 4 * VR_GIB, 0);
    expect_row(&world, "After alloc x1", "4.000 4.000 0.000 4.000");
    struct vram_graph *graph = begin(&world, stream, NULL);
    (void)expect_malloc(&world, 4 * VR_GIB, stream); // x2
    expect_row(&world, "After alloc x2", "8.000 8.000 0.000 8.000");
    expect_free(&world, x1);
    expect_row(&world, "After del x1", "4.000 4.000 0.000 8.000");
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_row(&world, "After empty cache", "4.000 4.000 0.000 8.000");
    (void)expect_malloc(&world, 4 * VR_GIB, stream); // x3
    expect_row(&world, "After alloc x3", "8.000 8.000 0.000 12.000");
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_of_two_graphs),       cmocka_unit_test(one_pool_for_two_graphs),
        cmocka_unit_test(temporaries_after_capture), cmocka_unit_test(fragmentation_by_option),
        cmocka_unit_test(expandable_in_capture),     cmocka_unit_test(deferred_recycling_by_option),
        cmocka_unit_test(gradients_in_capture),      cmocka_unit_test(release_in_capture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
