// Tests statements in PyTorch's and NVIDIA's guides about graphs and their memory, except the tables in test_seed_graph_tables.c.
// tests/coverage.md lists every statement with its test.
#include "support/table.h"
#include "support/waits.h"
#include "vram/pool.h"
#include "vram/sim.h"

static void open_world(struct vr_world *world, const char *conf, uint64_t memory_bytes) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
}

static struct vram_graph *begin_with(struct vr_world *world, uint64_t stream, const struct vram_graph_options *options) {
    struct vram_graph *graph = NULL;
    EXPECT_OK(vram_graph_begin(world->allocator, 0, stream, options, &graph, NULL));
    return graph;
}

static struct vram_graph *begin(struct vr_world *world, uint64_t stream) { return begin_with(world, stream, NULL); }

static uint64_t pool_of(struct vr_world *world, uint64_t block) {
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world->allocator, block, &info));
    return info.pool.first;
}

// --- bytes ----------------------------------------------------------------------------------------------------------------------------

enum { VALUES = 5 };

static float *at(uint64_t address) { return (float *)(uintptr_t)address; }

// A kernel: out[i] = in[i] * factor.
struct kernel {
    uint64_t out, in;
    float factor;
    unsigned runs;
};

static void multiply(void *argument) {
    struct kernel *kernel = argument;
    for (int i = 0; i < VALUES; i++) at(kernel->out)[i] = at(kernel->in)[i] * kernel->factor;
    kernel->runs++;
}

static void launch(struct vr_world *world, uint64_t stream, struct kernel *kernel) {
    EXPECT_OK(vram_sim_launch(world->sim, 0, stream, multiply, kernel, 1000));
}

static void fill(uint64_t address, float value) {
    for (int i = 0; i < VALUES; i++) at(address)[i] = value;
}

static void expect_values(uint64_t address, float value) {
    for (int i = 0; i < VALUES; i++) assert_true(at(address)[i] == value);
}

// Opens a machine whose device memory can be read and written; skips the test if that is impossible (under ThreadSanitizer).
static void backed_world(struct vr_world *world) {
    const struct vr_world_options options = {.sim = {.memory_bytes = VR_GIB, .backed = true}, .conf = ""};
    uint64_t probe = 0;
    EXPECT_OK(vr_world_open(world, &options));
    if (vram_malloc(world->allocator, 0, 4096, 0, &probe) != VRAM_OK) {
        (void)vr_world_close(world);
        skip();
    }
    expect_free(world, probe);
}

static struct vram_graph *capture(struct vr_world *world, uint64_t stream, struct vram_pool *pool, struct kernel *kernel) {
    struct vram_graph *graph = begin_with(world, stream, &(struct vram_graph_options){.pool = pool});
    if (kernel->out == 0) kernel->out = expect_malloc(world, VALUES * sizeof(float), stream);
    launch(world, stream, kernel);
    EXPECT_OK(vram_graph_end(graph, NULL));
    return graph;
}

// The guide's first graph: warm-up on a side stream, capture, new data in the same input, launch on any stream.
static void a_captured_kernel_runs_at_each_launch(void **state) {
    (void)state;
    struct vr_world world;
    backed_world(&world);
    const uint64_t warm = world.stream[0][1], own = world.stream[0][2];
    struct kernel kernel = {.in = expect_malloc(&world, VALUES * sizeof(float), 0), .factor = 2};
    kernel.out = expect_malloc(&world, VALUES * sizeof(float), warm);
    const uint64_t warm_output = kernel.out;
    fill(kernel.in, 1);
    for (int i = 0; i < 3; i++) launch(&world, warm, &kernel);
    assert_int_equal(kernel.runs, 3);
    kernel.out = 0;
    struct vram_graph *graph = capture(&world, own, NULL, &kernel);
    assert_int_equal(kernel.runs, 3); // captured kernels do not run
    const uint64_t streams[] = {own, warm, world.stream[0][3], 0};
    for (size_t i = 0; i < VR_COUNT_OF(streams); i++) {
        fill(kernel.in, (float)(3 + i));
        EXPECT_OK(vram_graph_launch(graph, streams[i], NULL));
        expect_values(kernel.out, 2 * (float)(3 + i));
    }
    assert_int_equal(kernel.runs, 7);
    expect_values(warm_output, 2);
    vram_graph_destroy(graph);
    expect_end(&world);
}

// Adjacent layers: one graph's output is the next one's input without a copy; and one buffer is the input of both in turn.
static void graphs_feed_each_other(void **state) {
    (void)state;
    struct vr_world world;
    backed_world(&world);
    const uint64_t stream = world.stream[0][1], buffer = expect_malloc(&world, 4096, 0);
    struct kernel first = {.in = buffer, .factor = 2};
    struct vram_graph *one = capture(&world, stream, NULL, &first);
    struct kernel second = {.in = first.out, .factor = 5};
    struct vram_graph *two = capture(&world, stream, vram_graph_pool(one), &second);
    struct kernel third = {.in = buffer + 512, .factor = 3};
    struct vram_graph *three = capture(&world, stream, vram_graph_pool(one), &third);
    for (int round = 1; round <= 10; round++) {
        fill(buffer, (float)round);
        EXPECT_OK(vram_graph_launch(one, stream, NULL));
        EXPECT_OK(vram_graph_launch(two, stream, NULL));
        fill(buffer + 512, (float)round * 100);
        EXPECT_OK(vram_graph_launch(three, stream, NULL));
        expect_values(second.out, 10 * (float)round);
        expect_values(third.out, 300 * (float)round);
    }
    vram_graph_destroy(one);
    vram_graph_destroy(two);
    vram_graph_destroy(three);
    expect_end(&world);
}

// A stream that does not wait for the captured one takes no part: its work runs at once, and its memory is not the graph's.
static void what_does_not_branch_out_is_not_captured(void **state) {
    (void)state;
    struct vr_world world;
    backed_world(&world);
    const uint64_t stream = world.stream[0][1], other = world.stream[0][2];
    struct kernel kernel = {.in = expect_malloc(&world, 4096, 0), .factor = 2};
    fill(kernel.in, 4);
    struct vram_graph *graph = begin_with(&world, stream, &(struct vram_graph_options){.mode = VRAM_CAPTURE_RELAXED});
    kernel.out = expect_malloc(&world, 4096, other);
    assert_int_equal(pool_of(&world, kernel.out), 0);
    launch(&world, other, &kernel);
    expect_values(kernel.out, 8);
    expect_wait_stream(&world, other, stream);
    const uint64_t inside = expect_malloc(&world, 4096, other);
    assert_int_not_equal(pool_of(&world, inside), 0);
    expect_wait_stream(&world, stream, other);
    EXPECT_OK(vram_graph_end(graph, NULL));
    EXPECT_OK(vram_graph_launch(graph, stream, NULL));
    assert_int_equal(kernel.runs, 1);
    vram_graph_destroy(graph);
    expect_end(&world);
}

// --- amounts of memory ------------------------------------------------------------------------------------------------------------------

enum { GRAPHS = 10 };

// Ten graphs, each with its own input of 4 GiB, need 40 GiB of inputs; with a shared input, 4.
static void inputs_of_many_graphs(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct vr_world world;
        struct vram_graph *graphs[GRAPHS];
        open_world(&world, "", 80 * VR_GIB);
        const uint64_t stream = world.stream[0][1];
        for (int i = 0; i < GRAPHS; i++) {
            if (i == 0 || !shared) (void)expect_malloc(&world, 4 * VR_GIB, 0);
            graphs[i] = begin(&world, stream);
            (void)expect_malloc(&world, 4 * VR_GIB, stream);
            EXPECT_OK(vram_graph_end(graphs[i], NULL));
        }
        expect_row(&world, "all captured", shared ? "44.000 44.000 0.000 44.000" : "80.000 80.000 0.000 80.000");
        for (int i = 0; i < GRAPHS; i++) vram_graph_destroy(graphs[i]);
        expect_end(&world);
    }
}

// Two inputs, two outputs and one intermediate need 20 GiB; two graphs with their own pools need 24.
static void one_graph_in_place_of_two(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "", 80 * VR_GIB);
    const uint64_t stream = world.stream[0][1];
    for (int i = 0; i < 2; i++) (void)expect_malloc(&world, 4 * VR_GIB, 0);
    struct vram_graph *graph = begin(&world, stream);
    for (int i = 0; i < 2; i++) {
        const uint64_t intermediate = expect_malloc(&world, 4 * VR_GIB, stream);
        (void)expect_malloc(&world, 4 * VR_GIB, stream);
        expect_free(&world, intermediate);
    }
    EXPECT_OK(vram_graph_end(graph, NULL));
    expect_row(&world, "captured", "16.000 16.000 0.000 20.000");
    vram_graph_destroy(graph);
    expect_end(&world);
}

// A device of 10 GiB: a program that fits without a capture does not fit in one, because nothing can be released meanwhile.
static void a_capture_may_run_out_where_the_program_does_not(void **state) {
    (void)state;
    for (int captured = 0; captured < 2; captured++) {
        struct vr_world world;
        open_world(&world, "", 10 * VR_GIB);
        const uint64_t stream = world.stream[0][1], forgotten = expect_malloc(&world, 4 * VR_GIB, 0);
        struct vram_graph *graph = captured ? begin(&world, stream) : NULL;
        (void)expect_malloc(&world, 4 * VR_GIB, stream);
        expect_free(&world, forgotten);
        uint64_t last = 0;
        const enum vram_status status = vram_malloc(world.allocator, 0, 4 * VR_GIB, stream, &last);
        assert_int_equal(status, captured ? VRAM_OUT_OF_MEMORY : VRAM_OK);
        EXPECT_CURRENT(&world, reserved_bytes, 8 * VR_GIB);
        if (captured) EXPECT_OK(vram_graph_end(graph, NULL)); // the capture continues
        vram_graph_destroy(graph);
        expect_end(&world);
    }
}

// --- uses on other streams -----------------------------------------------------------------------------------------------------------

// A program that joins the other stream before it frees need not record the use. Only the graph pool's memory is reused like this.
static void a_joined_stream_need_not_be_told(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "", 80 * VR_GIB);
    const uint64_t stream = world.stream[0][1], side = world.stream[0][2], outside = expect_malloc(&world, 4 * VR_GIB, stream);
    struct vram_graph *graph = begin(&world, stream);
    const uint64_t x1 = expect_malloc(&world, 4 * VR_GIB, stream);
    expect_wait_stream(&world, side, stream);
    EXPECT_OK(vram_sim_busy(world.sim, 0, side, 1000));
    expect_wait_stream(&world, stream, side);
    expect_free(&world, x1);
    assert_int_equal(expect_malloc(&world, 4 * VR_GIB, stream), x1);
    expect_free(&world, outside);
    assert_int_not_equal(expect_malloc(&world, 4 * VR_GIB, stream), outside);
    expect_row(&world, "both", "8.000 8.000 0.000 12.000");
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    expect_end(&world);
}

// graph_capture_record_stream_reuse: nothing is reused while the streams are not joined.
static void reuse_in_a_capture_needs_a_join(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "graph_capture_record_stream_reuse:True", 80 * VR_GIB);
    const uint64_t stream = world.stream[0][1], side = world.stream[0][2];
    struct vram_graph *graph = begin(&world, stream);
    const uint64_t x1 = expect_malloc(&world, 4 * VR_GIB, stream);
    expect_wait_stream(&world, side, stream);
    EXPECT_OK(vram_sim_busy(world.sim, 0, side, 1000));
    EXPECT_OK(vram_record_stream(world.allocator, x1, side));
    expect_free(&world, x1);
    assert_int_not_equal(expect_malloc(&world, 4 * VR_GIB, stream), x1);
    expect_row(&world, "apart", "4.000 8.000 0.000 8.000");
    expect_wait_stream(&world, stream, side);
    assert_int_equal(expect_malloc(&world, 4 * VR_GIB, stream), x1);
    expect_row(&world, "joined", "8.000 8.000 0.000 8.000");
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    expect_end(&world);
}

// Five gradients accumulated in a capture. On one stream, or with the option, memory does not grow with the steps.
static void accumulate(const char *conf, bool one_stream) {
    struct vr_world world;
    open_world(&world, conf, 80 * VR_GIB);
    const uint64_t stream = world.stream[0][1], side = world.stream[0][2];
    (void)expect_malloc(&world, 4 * VR_GIB, 0); // x
    struct vram_graph *graph = begin(&world, stream);
    expect_free(&world, expect_malloc(&world, 4 * VR_GIB, stream)); // x * 2
    const uint64_t grad = expect_malloc(&world, 4 * VR_GIB, stream);
    expect_row(&world, "Step 0", "8.000 8.000 0.000 8.000");
    for (int step = 1; step < 5; step++) {
        const uint64_t product = expect_malloc(&world, 4 * VR_GIB, stream);
        if (!one_stream) {
            expect_wait_stream(&world, side, stream);
            EXPECT_OK(vram_record_stream(world.allocator, product, side));
            EXPECT_OK(vram_sim_busy(world.sim, 0, side, 1000));
            expect_wait_stream(&world, stream, side);
        }
        expect_free(&world, product);
        EXPECT_CURRENT(&world, reserved_bytes, 12 * VR_GIB);
    }
    expect_free(&world, grad);
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    expect_end(&world);
}

static void gradients_need_not_grow(void **state) {
    (void)state;
    accumulate("", true);
    accumulate("graph_capture_record_stream_reuse:True", false);
}

// --- lifetimes and order ----------------------------------------------------------------------------------------------------------------

static void a_pool_lives_until_graph_and_blocks_are_gone(void **state) {
    (void)state;
    for (int block_first = 0; block_first < 2; block_first++) {
        struct vr_world world;
        open_world(&world, "", 0);
        const uint64_t stream = world.stream[0][1];
        struct vram_graph *graph = begin(&world, stream);
        const uint64_t output = expect_malloc(&world, 40 * VR_MIB, stream);
        EXPECT_OK(vram_graph_end(graph, NULL));
        for (int i = 0; i < 2; i++) {
            if ((i == 0) == (block_first != 0)) {
                expect_free(&world, output);
            } else {
                vram_graph_destroy(graph);
            }
            EXPECT_OK(vram_empty_cache(world.allocator));
            EXPECT_CURRENT(&world, reserved_bytes, i == 0 ? 40 * VR_MIB : 0);
            if (i > 0) continue;
            const uint64_t other = expect_malloc(&world, 40 * VR_MIB, stream);
            assert_int_not_equal(other, output);
            expect_free(&world, other);
        }
        expect_end(&world);
    }
}

static enum vram_status run_region(uint64_t stream, void *user) {
    struct vr_world *world = user;
    uint64_t temporary = 0;
    VR_TRY(vram_malloc(world->allocator, 0, 30 * VR_MIB, stream, &temporary));
    VR_TRY(vram_sim_busy(world->sim, 0, stream, 1000));
    return vram_free(world->allocator, temporary);
}

// Parts of a network captured one by one, between which the program decides, may run in any order.
static void parts_made_apart_run_in_any_order(void **state) {
    static const int order[] = {0, 1, 0, 2, 2, 1, 0, 0, 2, 1};
    (void)state;
    struct vr_world world;
    struct vram_graph *graphs[3];
    open_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1];
    const struct vram_graph_callable callable = {run_region, &world};
    for (int i = 0; i < 3; i++) EXPECT_OK(vram_graph_capture_all(world.allocator, 0, stream, &callable, 1, 3, &graphs[i], NULL));
    for (size_t i = 0; i < VR_COUNT_OF(order); i++) EXPECT_OK(vram_graph_launch(graphs[order[i]], stream, NULL));
    EXPECT_CURRENT(&world, reserved_bytes,
                   90 * VR_MIB); // the price: a pool each; the warm-ups' memory was released before the next capture
    for (int i = 0; i < 3; i++) vram_graph_destroy(graphs[i]);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_captured_kernel_runs_at_each_launch),
        cmocka_unit_test(graphs_feed_each_other),
        cmocka_unit_test(what_does_not_branch_out_is_not_captured),
        cmocka_unit_test(inputs_of_many_graphs),
        cmocka_unit_test(one_graph_in_place_of_two),
        cmocka_unit_test(a_capture_may_run_out_where_the_program_does_not),
        cmocka_unit_test(a_joined_stream_need_not_be_told),
        cmocka_unit_test(reuse_in_a_capture_needs_a_join),
        cmocka_unit_test(gradients_need_not_grow),
        cmocka_unit_test(a_pool_lives_until_graph_and_blocks_are_gone),
        cmocka_unit_test(parts_made_apart_run_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
