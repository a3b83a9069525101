// Tests lend_graph_pools with random programs against a naive model. Each piece of the device's memory knows the last work of each stream
// on it. A vector clock per stream knows what the stream is ordered after, from the events that the allocator records and waits for. Memory
// is handed out only after all earlier work on it, and a launch touches nothing that is lent or still in use.
//
// Usage: test_lending_random [OPERATIONS [SEED]]
#include <stdio.h>

#include "base/hash.h"
#include "driver/abi.h"
#include "driver/driver.h"
#include "support/expect.h"
#include "support/random.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { WORKERS = 4, CAPTURER = 4, STREAMS = 5, GRAPHS = 4, POOLS = 2, CAPTURED = 6, MOST_LIVE = 48, PIECE = 16 * 1024 };
#define MIB            VR_MIB
#define MEMORY_BYTES   (96 * (uint64_t)MIB)
#define ALLOC_BASE     UINT64_C(0x300000000000)
#define RESERVE_BASE   UINT64_C(0x400000000000)
#define RESERVED_BYTES (16 * (uint64_t)VR_GIB)
#define PIECES         ((MEMORY_BYTES + RESERVED_BYTES) / PIECE)

static uint64_t operations = 1000000, first_seed = 1, seed_now, operation_now;
static struct { uint64_t loans, launches, refused, captures, failed; } seen;

struct clock {
    uint32_t at[STREAMS]; // by stream: the last work that has completed or is ordered before
};

// --- the model of the driver ---------------------------------------------------------------------------------------------------------

// Passes every call on, and notes what events order.
struct ordering_driver {
    struct vram_driver head;
    struct vram_driver *inner;
    uint64_t stream[STREAMS];
    struct clock of[STREAMS];
    struct clock host;      // work that is known to be over
    struct vr_map of_event; // event -> 1 + its place
    struct clock events[4096];
    size_t event_count;
    uint64_t calls;
};

static void join_clock(struct clock *clock, const struct clock *other) {
    for (int i = 0; i < STREAMS; i++)
        if (clock->at[i] < other->at[i]) clock->at[i] = other->at[i];
}

static struct clock *clock_of(struct ordering_driver *order, uint64_t stream) {
    for (int i = 0; i < STREAMS; i++)
        if (order->stream[i] == stream) return &order->of[i];
    fail_msg("the allocator used a stream that it does not have");
    return NULL;
}

static struct clock *event_clock(struct ordering_driver *order, uint64_t event) {
    uint64_t place = vr_map_get(&order->of_event, event);
    if (place == 0) {
        place = ++order->event_count;
        assert_true(place <= VR_COUNT_OF(order->events));
        EXPECT_OK(vr_map_set(&order->of_event, event, place));
    }
    return &order->events[place - 1];
}

// clang-format off
#define WITH_SELF(...) (struct vram_driver *self, __VA_ARGS__)
#define WITH_INNER(...) (order->inner, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)                   \
    static vr_cu_result call_order_##member WITH_SELF parameters {                    \
        struct ordering_driver *order = (struct ordering_driver *)(void *)self;       \
        order->calls++;                                                               \
        return order->inner->calls->member WITH_INNER arguments;                      \
    }
#include "driver/calls.def"
#undef X
static const struct vr_driver_calls forwarded = {
#define X(member, symbol, exported, version, parameters, arguments) call_order_##member,
#include "driver/calls.def"
#undef X
};
// clang-format on

static struct ordering_driver *order_of(struct vram_driver *self) { return (struct ordering_driver *)(void *)self; }

static vr_cu_result record_event(struct vram_driver *self, uint64_t event, uint64_t stream) {
    const vr_cu_result result = call_order_event_record(self, event, stream);
    if (result == VR_CU_SUCCESS) *event_clock(order_of(self), event) = *clock_of(order_of(self), stream);
    return result;
}
static vr_cu_result wait_event(struct vram_driver *self, uint64_t stream, uint64_t event, unsigned flags) {
    const vr_cu_result result = call_order_stream_wait_event(self, stream, event, flags);
    if (result == VR_CU_SUCCESS) join_clock(clock_of(order_of(self), stream), event_clock(order_of(self), event));
    return result;
}
static vr_cu_result query_event(struct vram_driver *self, uint64_t event) {
    const vr_cu_result result = call_order_event_query(self, event);
    if (result == VR_CU_SUCCESS) join_clock(&order_of(self)->host, event_clock(order_of(self), event));
    return result;
}
static vr_cu_result synchronize_event(struct vram_driver *self, uint64_t event) {
    const vr_cu_result result = call_order_event_synchronize(self, event);
    if (result == VR_CU_SUCCESS) join_clock(&order_of(self)->host, event_clock(order_of(self), event));
    return result;
}
static vr_cu_result synchronize_stream(struct vram_driver *self, uint64_t stream) {
    const vr_cu_result result = call_order_stream_synchronize(self, stream);
    if (result == VR_CU_SUCCESS) join_clock(&order_of(self)->host, clock_of(order_of(self), stream));
    return result;
}
// It waits for the device.
static vr_cu_result free_memory(struct vram_driver *self, uint64_t address) {
    const vr_cu_result result = call_order_mem_free(self, address);
    for (int i = 0; i < STREAMS && result == VR_CU_SUCCESS; i++) join_clock(&order_of(self)->host, &order_of(self)->of[i]);
    return result;
}

static uint64_t progress_of(struct vram_driver *self) { return vr_driver_progress(order_of(self)->inner); }

static void open_driver(struct ordering_driver *order, struct vram_driver *inner) {
    static struct vr_driver_calls calls;
    calls = forwarded;
    calls.event_record = record_event;
    calls.stream_wait_event = wait_event;
    calls.event_query = query_event;
    calls.event_synchronize = synchronize_event;
    calls.stream_synchronize = synchronize_stream;
    calls.mem_free = free_memory;
    *order = (struct ordering_driver){.head = {.calls = &calls, .progress = progress_of, .kind = "ordering"}, .inner = inner};
}

// --- the program and its memory ------------------------------------------------------------------------------------------------------

struct live_block {
    uint64_t address, size;
    int pool; // of a graph, whose program requested it; -1: of the default pools
    bool loan;
    bool uses[STREAMS];
};

struct captured {
    struct vram_graph *graph;
    int pool;
    struct live_block touched[CAPTURED]; // what the capture was handed out
    bool kept[CAPTURED];                 // not freed yet
    struct clock end;                    // of its last launch, which the driver orders before the next one
};

struct program {
    uint64_t random;
    struct vram_driver *sim;
    struct ordering_driver order;
    struct vram_allocator *allocator;
    uint64_t event;
    struct vram_pool *pools[POOLS], *extra; // extra: of a capture in progress
    int home[POOLS];                        // the stream of the captures into the pool
    int last_launch[POOLS];                 // the stream; -1: none
    bool lent_since[POOLS][STREAMS];        // since the last launch on the stream
    bool own_work[POOLS][STREAMS];          // on memory that it requested from the pool
    bool requests;                          // it also requests memory from the pools of graphs
    bool shared;                            // graphs of a pool use the same memory, so that the program orders their launches
    bool captures;
    struct captured graphs[GRAPHS];
    struct live_block live[MOST_LIVE];
    size_t live_count;
    struct clock *eager, *launches; // by piece: the last work on it
};

static uint64_t draw(struct program *program, uint64_t limit) { return vr_random_below(&program->random, limit); }

static size_t piece_of(uint64_t address) {
    const size_t piece = address < RESERVE_BASE ? (address - ALLOC_BASE) / PIECE : (MEMORY_BYTES + address - RESERVE_BASE) / PIECE;
    assert_true(piece < PIECES);
    return piece;
}

static struct clock known_to(const struct ordering_driver *order, int stream) {
    struct clock clock = order->of[stream];
    join_clock(&clock, &order->host);
    return clock;
}

// Fails unless everything that was done on the block comes before the stream's next work.
static void expect_over(const struct program *program, const struct clock *work, const struct live_block *block, int stream,
                        const char *what) {
    const struct clock known = known_to(&program->order, stream);
    for (size_t i = piece_of(block->address), end = i + block->size / PIECE; i < end; i++)
        for (int s = 0; s < STREAMS; s++)
            if (work[i].at[s] > known.at[s]) fail_msg("%s on stream %d may still run when stream %d gets its memory", what, s, stream);
}

static void note_work(const struct program *program, struct clock *work, const struct live_block *block, int stream) {
    const uint32_t number = program->order.of[stream].at[stream];
    for (size_t i = piece_of(block->address), end = i + block->size / PIECE; i < end; i++) work[i].at[stream] = number;
}

static void work_on(struct program *program, const struct live_block *block, int stream) {
    program->order.of[stream].at[stream]++;
    note_work(program, program->eager, block, stream);
    if (block->pool >= 0 && !block->loan) program->own_work[block->pool][stream] = true;
    EXPECT_OK(vram_sim_busy(program->sim, 0, program->order.stream[stream], 1 + draw(program, 100000)));
}

// The program itself makes a stream wait for another.
static void order_streams(struct program *program, int before, int after) {
    struct vram_driver *driver = &program->order.head;
    if (before == after) return;
    assert_int_equal(vr_cu(driver, event_record, program->event, program->order.stream[before]), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(driver, stream_wait_event, program->order.stream[after], program->event, 0), VR_CU_SUCCESS);
}

// --- requests ------------------------------------------------------------------------------------------------------------------------

static uint64_t draw_size(struct program *program) {
    static const uint64_t most[] = {4, 64, 300, 800};
    return PIECE * (1 + draw(program, most[draw(program, VR_COUNT_OF(most))]));
}

static int pool_with(const struct program *program, struct vram_pool_id id) {
    for (int i = 0; i < POOLS; i++)
        if (vram_get_pool_id(program->pools[i]).first == id.first) return i;
    return -1;
}

static void one_malloc(struct program *program) {
    const int asked = program->requests && draw(program, 12) == 0 ? (int)draw(program, POOLS) : -1;
    const int stream = asked >= 0 ? program->home[asked] : (int)draw(program, WORKERS);
    struct live_block block = {.size = draw_size(program), .pool = asked};
    const uint64_t handle = program->order.stream[stream];
    const enum vram_status status = asked >= 0 ? vram_pool_malloc(program->pools[asked], block.size, handle, &block.address)
                                               : vram_malloc(program->allocator, 0, block.size, handle, &block.address);
    if (status != VRAM_OK) {
        EXPECT_STATUS(OUT_OF_MEMORY, status);
        seen.failed++;
        return;
    }
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(program->allocator, block.address, &info));
    const int lender = asked < 0 && info.pool.first != 0 ? pool_with(program, info.pool) : -1;
    block.loan = lender >= 0;
    block.uses[stream] = true;
    expect_over(program, program->eager, &block, stream, "work");
    if (asked < 0) expect_over(program, program->launches, &block, stream, "a launch");
    if (block.loan) {
        block.pool = lender;
        seen.loans++;
        assert_false(program->captures);
        for (int s = 0; s < STREAMS; s++) program->lent_since[lender][s] = true;
    }
    work_on(program, &block, stream);
    program->live[program->live_count++] = block;
}

static void free_at(struct program *program, size_t index) {
    EXPECT_OK(vram_free(program->allocator, program->live[index].address));
    program->live[index] = program->live[--program->live_count];
}

static void one_use(struct program *program) {
    struct live_block *block = &program->live[draw(program, program->live_count)];
    const int stream = (int)draw(program, WORKERS);
    if (!block->uses[stream]) {
        EXPECT_OK(vram_record_stream(program->allocator, block->address, program->order.stream[stream]));
        for (int s = 0; s < WORKERS; s++) // the program orders its own work
            if (block->uses[s]) order_streams(program, s, stream);
        block->uses[stream] = true;
    }
    work_on(program, block, stream);
}

// --- graphs --------------------------------------------------------------------------------------------------------------------------

static void free_captured(struct program *program, struct captured *captured, int i) {
    if (!captured->kept[i]) return;
    captured->kept[i] = false;
    EXPECT_OK(vram_free(program->allocator, captured->touched[i].address));
}

static void capture_graph(struct program *program, struct captured *captured, int pool) {
    const uint64_t stream = program->order.stream[program->home[pool]];
    const struct vram_graph_options options = {.pool = program->pools[pool], .keep_cache = true};
    captured->pool = pool;
    EXPECT_OK(vram_graph_begin(program->allocator, 0, stream, &options, &captured->graph, NULL));
    for (int i = 0; i < CAPTURED; i++) {
        captured->touched[i] = (struct live_block){.size = PIECE * (1 + draw(program, 150)), .pool = pool};
        EXPECT_OK(vram_malloc(program->allocator, 0, captured->touched[i].size, stream, &captured->touched[i].address));
        EXPECT_OK(vram_sim_launch(program->sim, 0, stream, NULL, NULL, 1000));
        captured->kept[i] = true;
        if (program->shared && draw(program, 2) == 0) free_captured(program, captured, i);
    }
    EXPECT_OK(vram_graph_end(captured->graph, NULL));
}

// Frees the program's blocks in the pool of a graph: loans, or blocks that it requested from the pool.
static void leave_pool(struct program *program, int pool, bool loans) {
    for (size_t i = program->live_count; i-- > 0;)
        if (program->live[i].pool == pool && program->live[i].loan == loans) free_at(program, i);
}

// The program itself orders a launch after its own work on memory that it requested from the pool.
static void follow_own_work(struct program *program, int pool, int stream) {
    leave_pool(program, pool, false);
    for (int s = 0; s < WORKERS; s++)
        if (program->own_work[pool][s]) order_streams(program, s, stream);
    if (program->shared && program->last_launch[pool] >= 0) order_streams(program, program->last_launch[pool], stream);
}

static bool any_loan(const struct program *program, int pool) {
    for (size_t i = 0; i < program->live_count; i++)
        if (program->live[i].loan && program->live[i].pool == pool) return true;
    return false;
}

static void touch_captured(struct program *program, struct captured *captured, int stream) {
    struct ordering_driver *order = &program->order;
    join_clock(&order->of[stream], &captured->end);
    for (int i = 0; i < CAPTURED; i++) expect_over(program, program->eager, &captured->touched[i], stream, "a borrower");
    order->of[stream].at[stream]++;
    for (int i = 0; i < CAPTURED; i++) note_work(program, program->launches, &captured->touched[i], stream);
    captured->end = order->of[stream];
}

static void one_launch(struct program *program) {
    struct captured *captured = &program->graphs[draw(program, GRAPHS)];
    const int pool = captured->pool, stream = (int)draw(program, WORKERS);
    struct ordering_driver *order = &program->order;
    follow_own_work(program, pool, stream);
    if (draw(program, 4) != 0) leave_pool(program, pool, true);
    const uint64_t calls = order->calls;
    const enum vram_status status = vram_pool_launch_begin(program->pools[pool], order->stream[stream], NULL);
    if (status != VRAM_OK) {
        EXPECT_STATUS(LENT, status);
        assert_true(any_loan(program, pool) || (program->captures && program->lent_since[pool][stream]));
        seen.refused++;
        return;
    }
    assert_false(any_loan(program, pool));
    if (!program->lent_since[pool][stream] && !program->captures) assert_int_equal(order->calls, calls);
    touch_captured(program, captured, stream);
    assert_int_equal(vr_cu(&order->head, graph_launch, vram_graph_exec(captured->graph), order->stream[stream]), VR_CU_SUCCESS);
    vram_pool_launch_end(program->pools[pool]);
    program->lent_since[pool][stream] = false;
    program->last_launch[pool] = stream;
    seen.launches++;
}

// Begins or ends a capture of other code.
static void switch_capture(struct program *program) {
    uint64_t graph = 0;
    if (!program->captures) {
        EXPECT_OK(vram_capture_begin(program->extra, program->order.stream[CAPTURER], VRAM_CAPTURE_RELAXED, NULL));
    } else {
        EXPECT_OK(vram_capture_end(program->extra, program->order.stream[CAPTURER], &graph, NULL));
        assert_int_equal(vr_cu(program->sim, graph_destroy, graph), VR_CU_SUCCESS);
        seen.captures++;
    }
    program->captures = !program->captures;
}

// --- programs ------------------------------------------------------------------------------------------------------------------------

static void one_operation(struct program *program) {
    const uint64_t kind = draw(program, 1000);
    if (kind < 2 || (program->captures && kind < 60)) {
        switch_capture(program);
        if (!program->captures) one_launch(program); // of memory whose free the capture deferred
    } else if (kind < 3) {
        EXPECT_OK(vram_empty_cache(program->allocator));
    } else if (kind < 30) {
        EXPECT_OK(vram_sim_advance(program->sim, draw(program, 300000)));
    } else if (kind < 40) {
        free_captured(program, &program->graphs[draw(program, GRAPHS)], (int)draw(program, CAPTURED));
    } else if (kind < 120) {
        one_launch(program);
    } else if (kind < 300 && program->live_count != 0) {
        one_use(program);
    } else if (program->live_count != 0 && (program->live_count == MOST_LIVE || kind < 620)) {
        free_at(program, draw(program, program->live_count));
    } else {
        one_malloc(program);
    }
}

static void open_program(struct program *program, uint64_t seed) {
    static const char *const confs[] = {"lend_graph_pools:True", "lend_graph_pools:True,reclaim_streams:True",
                                        "lend_graph_pools:True,expandable_segments:True", "lend_graph_pools:True,paged:True"};
    const struct vram_sim_options options = {.memory_bytes = MEMORY_BYTES,
                                             .addresses = VRAM_SIM_REUSE,
                                             .alloc_base = ALLOC_BASE,
                                             .reserve_base = RESERVE_BASE,
                                             .reserve_alignment = 2 * MIB};
    *program = (struct program){.random = seed, .shared = seed % 2 == 0, .requests = seed % 3 == 0};
    EXPECT_OK(vram_sim_create(&options, &program->sim));
    open_driver(&program->order, program->sim);
    uint64_t context = 0;
    assert_int_equal(vr_cu(program->sim, primary_ctx_retain, &context, 0), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->sim, ctx_set_current, context), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->sim, event_create, &program->event, VR_CU_EVENT_DISABLE_TIMING), VR_CU_SUCCESS);
    const struct vram_create_info info = {.driver = &program->order.head, .conf = confs[seed / 2 % VR_COUNT_OF(confs)]};
    EXPECT_OK(vram_create(&info, &program->allocator, NULL));
    program->eager = calloc(PIECES, sizeof *program->eager);
    program->launches = calloc(PIECES, sizeof *program->launches);
    assert_true(program->eager != NULL && program->launches != NULL);
    const struct vram_pool_options for_graph = {.for_graph = true};
    EXPECT_OK(vram_pool_create(program->allocator, 0, &for_graph, &program->extra));
    for (int i = 0; i < STREAMS; i++) EXPECT_OK(vram_sim_stream_create(program->sim, 0, &program->order.stream[i]));
    for (int i = 0; i < POOLS; i++) {
        EXPECT_OK(vram_pool_create(program->allocator, 0, &for_graph, &program->pools[i]));
        program->home[i] = (int)draw(program, WORKERS);
        program->last_launch[i] = -1;
    }
    for (int i = 0; i < GRAPHS; i++) capture_graph(program, &program->graphs[i], i % POOLS);
}

static void close_program(struct program *program) {
    struct vram_error error = {0};
    if (program->captures) switch_capture(program);
    while (program->live_count != 0) free_at(program, program->live_count - 1);
    for (int i = 0; i < GRAPHS * CAPTURED; i++) free_captured(program, &program->graphs[i / CAPTURED], i % CAPTURED);
    for (int i = 0; i < GRAPHS; i++) vram_graph_destroy(program->graphs[i].graph);
    for (int i = 0; i < POOLS; i++) vram_pool_release(program->pools[i]);
    vram_pool_release(program->extra);
    EXPECT_OK(vram_empty_cache(program->allocator));
    if (vram_check(program->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
    vram_destroy(program->allocator);
    assert_int_equal(vr_cu(program->sim, event_destroy, program->event), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->sim, primary_ctx_release, 0), VR_CU_SUCCESS);
    assert_int_equal(vram_sim_memory_used(program->sim, 0), 0);
    vram_driver_destroy(program->sim);
    vr_map_release(&program->order.of_event);
    free(program->eager);
    free(program->launches);
}

static void no_byte_of_a_graph_is_touched(void **state) {
    (void)state;
    static struct program program;
    const uint64_t each = 20000;
    for (uint64_t done = 0, seed = first_seed; done < operations; done += each, seed++) {
        seed_now = seed;
        open_program(&program, seed);
        for (uint64_t i = 0; i < each; i++) {
            struct vram_error error = {0};
            operation_now = i;
            one_operation(&program);
            if (i % 500 == 0 && vram_check(program.allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
        }
        close_program(&program);
    }
    printf("%llu operations: %llu loans, %llu launches, %llu refused, %llu captures, %llu requests without memory\n",
           (unsigned long long)operations, (unsigned long long)seen.loans, (unsigned long long)seen.launches,
           (unsigned long long)seen.refused, (unsigned long long)seen.captures, (unsigned long long)seen.failed);
    assert_true(seen.loans > operations / 200 && seen.launches > operations / 50 && seen.refused != 0 && seen.captures != 0);
}

int main(int argc, char **argv) {
    if (argc > 1) operations = strtoull(argv[1], NULL, 10);
    if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_byte_of_a_graph_is_touched)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed != 0) printf("seed %llu, operation %llu\n", (unsigned long long)seed_now, (unsigned long long)operation_now);
    return failed;
}
