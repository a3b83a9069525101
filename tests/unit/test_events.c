// Tests vram/events.h: every event reported to the program, with contexts that blocks and segments keep.
#include "support/expect.h"
#include "os/os.h"
#include "support/history.h"
#include "support/random.h"
#include "vram/events.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { MIB = 1 << 20, MOST = 4096 };

// A program that counts: contexts are numbers, each with a reference count.
struct program {
    struct vr_world *world;
    struct vram_event events[MOST];
    size_t count;
    uint64_t made;
    int references[MOST];
    int live; // references of all contexts
};

static void note_event(const struct vram_event *event, void *user) {
    struct program *program = user;
    assert_true(program->count < MOST);
    if (event->context != NULL) assert_true(program->references[(uintptr_t)event->context] > 0);
    program->events[program->count++] = *event;
}

static void *take_context(void *user) {
    struct program *program = user;
    assert_true(++program->made < MOST);
    program->references[program->made]++;
    program->live++;
    return (void *)(uintptr_t)program->made;
}

static void retain(void *context, void *user) {
    struct program *program = user;
    assert_true(program->references[(uintptr_t)context]++ > 0);
    program->live++;
}

static void release(void *context, void *user) {
    struct program *program = user;
    assert_true(program->references[(uintptr_t)context]-- > 0);
    program->live--;
}

static void listen(struct program *program, enum vram_context_level level) {
    const struct vram_event_listener listener = {note_event, take_context, retain, release, level, program};
    EXPECT_OK(vram_set_event_listener(program->world->allocator, &listener));
}

static void expect_event(struct program *program, size_t at, enum vram_event_action action, uint64_t address, uint64_t size_bytes) {
    assert_true(at < program->count);
    const struct vram_event *event = &program->events[at];
    assert_int_equal(event->action, action);
    assert_int_equal(event->address, address);
    assert_int_equal(event->size_bytes, size_bytes);
    assert_true(event->time_ns > 1600000000ull * 1000000000ull);
}

static void each_event_with_its_context(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    static struct program program;
    program = (struct program){.world = &world};
    listen(&program, VRAM_CONTEXT_ALL);
    const uint64_t stream = world.stream[0][1];
    const uint64_t a = expect_malloc(&world, 1000, stream);
    expect_event(&program, 0, VRAM_EVENT_SEGMENT_ALLOC, a, 2 * MIB);
    expect_event(&program, 1, VRAM_EVENT_ALLOC, a, 1000);
    assert_int_equal(program.events[1].stream, stream);
    const uint64_t first = (uintptr_t)program.events[1].context;
    assert_int_not_equal(first, 0);
    const uint64_t b = expect_malloc(&world, 3000, stream);
    assert_int_not_equal((uintptr_t)program.events[2].context, first);
    void *context = NULL;
    EXPECT_OK(vram_block_context(world.allocator, a, &context));
    assert_int_equal((uintptr_t)context, first);
    release(context, &program);
    EXPECT_STATUS(INVALID_POINTER, vram_block_context(world.allocator, a + 512, &context));
    EXPECT_OK(vram_annotate(world.allocator, a, "weights"));
    expect_event(&program, 3, VRAM_EVENT_ANNOTATE, a, 1000);
    expect_free(&world, a);
    expect_event(&program, 4, VRAM_EVENT_FREE_REQUESTED, a, 1000);
    expect_event(&program, 5, VRAM_EVENT_FREE_COMPLETED, a, 1000);
    assert_int_not_equal((uintptr_t)program.events[4].context, first); // its own context, as the level requires
    // The segment keeps the context of the call that created it as long as it exists.
    assert_true(program.references[first] > 0);
    expect_free(&world, b);
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_event(&program, 8, VRAM_EVENT_SEGMENT_FREE, a, 2 * MIB);
    assert_int_equal(program.references[first], 0);
    EXPECT_OK(vram_set_event_listener(world.allocator, NULL));
    assert_int_equal(program.live, 0);
    const size_t events = program.count;
    expect_free(&world, expect_malloc(&world, 1000, stream));
    assert_int_equal(program.count, events);
    expect_end(&world);
}

// Without contexts for frees, a free event has the block's context.
static void frees_show_the_context_of_their_block(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    static struct program program;
    program = (struct program){.world = &world};
    listen(&program, VRAM_CONTEXT_ALLOC);
    const uint64_t stream = world.stream[0][1], other = world.stream[0][2];
    const uint64_t a = expect_malloc(&world, 1000, stream), b = expect_malloc(&world, 5 * MIB, stream);
    const void *of_a = program.events[1].context;
    EXPECT_OK(vram_sim_launch(world.sim, 0, other, NULL, NULL, 10));
    EXPECT_OK(vram_record_stream(world.allocator, a, other));
    expect_free(&world, a);
    assert_ptr_equal(program.events[program.count - 1].context, of_a);
    assert_int_equal(program.events[program.count - 1].action, VRAM_EVENT_FREE_REQUESTED);
    EXPECT_OK(vr_world_complete(&world, 0, other));
    const uint64_t c = expect_malloc(&world, 1000, stream);
    assert_int_equal(program.events[program.count - 2].action, VRAM_EVENT_FREE_COMPLETED);
    assert_int_equal((uintptr_t)program.events[program.count - 2].context, program.made); // of the request that found it
    // After it is replaced, the old listener keeps the contexts that it returned.
    static struct program later;
    later = (struct program){.world = &world};
    listen(&later, VRAM_CONTEXT_NEVER);
    expect_free(&world, b);
    expect_event(&later, 0, VRAM_EVENT_FREE_REQUESTED, b, 5 * MIB);
    expect_free(&world, c);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_OK(vram_set_event_listener(world.allocator, NULL));
    assert_int_equal(program.live, 0);
    assert_int_equal(later.made, 0);
    expect_end(&world);
}

static bool sees_contexts(const struct vram_block_view *view, void *user) {
    struct program *program = user;
    assert_true(program->references[(uintptr_t)view->segment_context] > 0);
    assert_int_equal(view->context != NULL, view->state != VRAM_BLOCK_FREE);
    if (view->context != NULL) expect_free(program->world, view->block.address);
    if (view->context != NULL) assert_true(program->references[(uintptr_t)view->context] > 0);
    return true;
}

static void a_walk_shows_contexts(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    static struct program program;
    program = (struct program){.world = &world};
    listen(&program, VRAM_CONTEXT_STATE);
    for (int i = 0; i < 5; i++) (void)expect_malloc(&world, 1000 << i, world.stream[0][1]);
    EXPECT_OK(vram_walk(world.allocator, 0, sees_contexts, &program));
    EXPECT_CURRENT(&world, allocated_bytes, 0);
    // vram_destroy() releases the rest.
    (void)expect_malloc(&world, 100, 0);
    vr_world_destroy_allocator(&world);
    assert_int_equal(program.live, 0);
    assert_int_equal(vr_world_close(&world), 0);
}

// A history and a listener work at once, independently.
static void with_a_history(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    static struct program program;
    program = (struct program){.world = &world};
    start(&world, NULL);
    const uint64_t a = expect_malloc(&world, 1000, 0);
    listen(&program, VRAM_CONTEXT_ALL);
    const uint64_t b = expect_malloc(&world, 2000, 0);
    expect_free(&world, a);
    EXPECT_OK(vram_set_event_listener(world.allocator, NULL));
    expect_free(&world, b);
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_history *history = &model_of(recording)->histories[0];
    const uint64_t addresses[] = {a, a, b, a, a, b, b};
    assert_int_equal(history->count, VR_COUNT_OF(addresses));
    for (size_t i = 0; i < VR_COUNT_OF(addresses); i++) {
        assert_int_equal(history->address[i], addresses[i]);
        assert_int_not_equal(history->stack[i], 0);
    }
    vram_recording_destroy(recording);
    assert_int_equal(program.count, 3);
    assert_int_equal(program.live, 0);
    history_end(&world);
}

static void outside_of_the_pools(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    static struct program program;
    program = (struct program){.world = &world};
    listen(&program, VRAM_CONTEXT_ALL);
    vram_set_caching(world.allocator, false);
    const uint64_t a = expect_malloc(&world, 1000, 0);
    void *context = NULL;
    EXPECT_OK(vram_block_context(world.allocator, a, &context));
    assert_ptr_equal(context, program.events[0].context);
    release(context, &program);
    expect_free(&world, a);
    expect_event(&program, 4, VRAM_EVENT_SEGMENT_FREE, a, 1000);
    (void)expect_malloc(&world, 1000, 0);
    EXPECT_OK(vram_set_event_listener(world.allocator, NULL));
    assert_int_equal(program.live, 0);
    expect_end(&world);
}

static void an_oom_is_an_event(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 64 * MIB);
    static struct program program;
    program = (struct program){.world = &world};
    listen(&program, VRAM_CONTEXT_ALL);
    uint64_t address = 0;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 100 * MIB + 1, 0, &address));
    expect_event(&program, 0, VRAM_EVENT_OOM, 64 * MIB, 100 * MIB + 512);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_set_event_listener(world.allocator, &(struct vram_event_listener){.take_context = take_context}));
    EXPECT_STATUS(INVALID_ARGUMENT,
                  vram_set_event_listener(world.allocator, &(struct vram_event_listener){.level = (enum vram_context_level)9}));
    expect_end(&world);
}

// --- threads ----------------------------------------------------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 20000 };

struct worker {
    struct vr_world *world;
    uint64_t stream;
    uint64_t random;
};

struct number {
    int value; // 77 while it is live
    _Atomic int references;
};

static _Atomic int64_t numbers;
static _Atomic uint64_t heard;

static void hear(const struct vram_event *event, void *user) {
    (void)user;
    if (event->context != NULL) assert_int_equal(((const struct number *)event->context)->value, 77);
    atomic_fetch_add(&heard, 1);
}

static void *take_number(void *user) {
    (void)user;
    struct number *made = malloc(sizeof *made);
    *made = (struct number){77, 1};
    atomic_fetch_add(&numbers, 1);
    return made;
}

static void retain_number(void *context, void *user) {
    (void)user;
    atomic_fetch_add(&((struct number *)context)->references, 1);
}

static void release_number(void *context, void *user) {
    (void)user;
    struct number *number = context;
    if (atomic_fetch_sub(&number->references, 1) != 1) return;
    number->value = 0;
    free(number);
    atomic_fetch_sub(&numbers, 1);
}

static void work(void *argument) {
    struct worker *worker = argument;
    struct vram_allocator *allocator = worker->world->allocator;
    uint64_t live[16] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t *slot = &live[vr_random_below(&worker->random, VR_COUNT_OF(live))];
        void *context = NULL;
        if (*slot == 0) {
            EXPECT_OK(vram_malloc(allocator, 0, 1 + vr_random_below(&worker->random, 3 * MIB), worker->stream, slot));
            continue;
        }
        EXPECT_OK(vram_block_context(allocator, *slot, &context));
        if (context != NULL) release_number(context, NULL);
        expect_free(worker->world, *slot);
        *slot = 0;
        if (i % 1000 == 0) EXPECT_OK(vram_empty_cache(allocator));
    }
    for (size_t i = 0; i < VR_COUNT_OF(live); i++) expect_free(worker->world, live[i]);
}

static void listeners_come_and_go_while_threads_work(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    struct worker workers[THREADS];
    struct vr_thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&world, world.stream[0][i % 3], (uint64_t)i};
        EXPECT_OK(vr_thread_start(&threads[i], work, &workers[i]));
    }
    for (int i = 0; i < 200; i++) {
        const enum vram_context_level level = (enum vram_context_level)(i % 4);
        const struct vram_event_listener listener = {hear, take_number, retain_number, release_number, level, NULL};
        EXPECT_OK(vram_set_event_listener(world.allocator, i % 3 == 2 ? NULL : &listener));
        vr_os_yield();
    }
    for (int i = 0; i < THREADS; i++) vr_thread_join(&threads[i]);
    EXPECT_OK(vram_set_event_listener(world.allocator, NULL));
    assert_int_equal(atomic_load(&numbers), 0);
    assert_true(atomic_load(&heard) > 0);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_with_its_context),
        cmocka_unit_test(frees_show_the_context_of_their_block),
        cmocka_unit_test(a_walk_shows_contexts),
        cmocka_unit_test(with_a_history),
        cmocka_unit_test(outside_of_the_pools),
        cmocka_unit_test(an_oom_is_an_event),
        cmocka_unit_test(listeners_come_and_go_while_threads_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
