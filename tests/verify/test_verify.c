// The edge cases of verify:True: an allocator without it, how a fault ends the process, what cannot be guarded, and the state left behind.
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verify/seeded.h"

#define STREAM(world) ((world)->stream[0][1])
enum { KIB = 1 << 10, MIB = 1 << 20 };

static void open_world(struct vr_world *world, const char *conf, enum vram_sim_bytes bytes) {
    const struct vr_world_options options = {
        .sim = {.device_count = 2, .memory_bytes = 4 * VR_GIB, .bytes = bytes}, .conf = conf, .without_record = true};
    EXPECT_OK(vr_world_open(world, &options));
}

static void close_world(struct vr_world *world) {
    struct vram_error error;
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vr_world_close(world), 0);
}

static void count_fault(const struct vram_fault *fault, void *user) {
    (void)fault;
    ++*(int *)user;
}

static uint64_t expect_malloc(struct vr_world *world, uint64_t bytes) {
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(world->allocator, 0, bytes, STREAM(world), &address));
    return address;
}

static void write_to(struct vr_world *world, uint64_t address, uint64_t bytes) {
    assert_int_equal(vr_cu(world->sim, memset_d8_async, address, 0x11, bytes, STREAM(world)), VR_CU_SUCCESS);
}

static struct vram_verify_counts counts_of(struct vr_world *world) {
    struct vram_verify_counts counts;
    EXPECT_OK(vram_get_verify_counts(world->allocator, &counts));
    return counts;
}

static void without_the_option_nothing_is_verified(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_verify_counts counts;
    open_world(&world, "", VRAM_SIM_BYTES_ALL);
    assert_int_equal(vram_verify(world.allocator, NULL), VRAM_UNSUPPORTED);
    assert_int_equal(vram_get_verify_counts(world.allocator, &counts), VRAM_UNSUPPORTED);
    assert_int_equal(vram_set_fault_handler(world.allocator, count_fault, NULL), VRAM_UNSUPPORTED);
    const uint64_t address = expect_malloc(&world, 1024);
    write_to(&world, address, 1040);
    EXPECT_OK(vram_free(world.allocator, address));
    assert_int_equal(vram_free(world.allocator, address), VRAM_INVALID_POINTER);
    close_world(&world);
}

static void the_option_is_fixed_at_creation(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    assert_int_equal(vram_set_option(world.allocator, "verify", "False", &error), VRAM_BAD_OPTION);
    assert_non_null(strstr(error.message, "verify cannot be changed"));
    EXPECT_OK(vram_set_option(world.allocator, "max_split_size_mb", "64", &error));
    close_world(&world);
}

static void keep_text(const struct vram_fault *fault, void *user) { (void)snprintf(user, 8192, "%s", fault->text); }

// A write past the end of a block that is found when the block is freed: the free has one stack, without the library's own functions.
static void the_free_that_finds_a_fault_has_one_stack(void **state) {
    (void)state;
    static char text[8192];
    struct vr_world world;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    EXPECT_OK(vram_set_fault_handler(world.allocator, keep_text, text));
    const uint64_t address = expect_malloc(&world, 4000);
    write_to(&world, address, 4004);
    EXPECT_OK(vram_free(world.allocator, address));
    assert_non_null(strstr(text, "vram: buffer-overflow"));
    assert_non_null(strstr(text, "freed by, and found there\n"));
    assert_null(strstr(text, "found by\n"));
    assert_null(strstr(text, "free_verified"));
    assert_null(strstr(text, "check_behind"));
    close_world(&world);
}

// --- the end of a process ---------------------------------------------------------------------------------------------------------------

// Frees a block twice in a child process. Returns how the child ended; its standard error stream goes into `text`.
static int end_of_child(const char *conf, char *text, size_t capacity) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct vr_world world;
        (void)dup2(ends[1], STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        open_world(&world, conf, VRAM_SIM_BYTES_ALL);
        const uint64_t address = expect_malloc(&world, 4 * KIB);
        (void)vram_free(world.allocator, address);
        (void)vram_free(world.allocator, address);
        _exit(7);
    }
    (void)close(ends[1]);
    size_t length = 0;
    for (ssize_t got; length + 1 < capacity && (got = read(ends[0], text + length, capacity - 1 - length)) > 0;) length += (size_t)got;
    text[length] = '\0';
    (void)close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_fault_ends_the_process(void **state) {
    (void)state;
    char text[8192];
    const int status = end_of_child("verify:True", text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "vram: double-free: the block was freed twice"));
    assert_non_null(strstr(text, "the block of 4096 bytes"));
    assert_non_null(strstr(text, "allocated by"));
    assert_non_null(strstr(text, "freed by"));
    assert_non_null(strstr(text, "called by"));
}

static void with_halt_off_the_process_continues(void **state) {
    (void)state;
    char text[8192];
    const int status = end_of_child("verify:True,verify_halt:False", text, sizeof text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_non_null(strstr(text, "vram: double-free"));
}

// --- what cannot be guarded -------------------------------------------------------------------------------------------------------------

static void a_driver_without_bytes_gives_no_alarm(void **state) {
    (void)state;
    struct vr_world world;
    int faults = 0;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_BACKED);
    EXPECT_OK(vram_set_fault_handler(world.allocator, count_fault, &faults));
    const uint64_t address = expect_malloc(&world, 5000), other = expect_malloc(&world, 30 * MIB);
    assert_int_equal(counts_of(&world).live_blocks, 2);
    assert_int_equal(counts_of(&world).unguarded_blocks, 2);
    EXPECT_OK(vram_verify(world.allocator, NULL));
    EXPECT_OK(vram_free(world.allocator, address));
    EXPECT_OK(vram_free(world.allocator, other));
    assert_int_equal(faults, 0);
    assert_int_equal(vram_free(world.allocator, address), VRAM_INVALID_POINTER);
    assert_int_equal(faults, 1);
    close_world(&world);
}

// A graph writes to its pool's memory at each launch, whatever the allocator does with it.
static void graphs_give_no_alarm(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_graph *graph = NULL;
    struct vram_error error;
    int faults = 0;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    EXPECT_OK(vram_set_fault_handler(world.allocator, count_fault, &faults));
    const uint64_t input = expect_malloc(&world, 8 * KIB), outside = expect_malloc(&world, 8 * KIB);
    EXPECT_OK(vram_graph_begin(world.allocator, 0, STREAM(&world), NULL, &graph, &error));
    const uint64_t between = expect_malloc(&world, 3 * KIB);
    write_to(&world, between, 3 * KIB);
    EXPECT_OK(vram_free(world.allocator, between));
    const uint64_t output = expect_malloc(&world, 2000);
    write_to(&world, output, 2000);
    EXPECT_OK(vram_free(world.allocator, outside)); // of the default pool, while a capture is under way
    EXPECT_OK(vram_graph_end(graph, &error));
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(vram_graph_launch(graph, STREAM(&world), &error));
        EXPECT_OK(vram_verify(world.allocator, NULL));
        EXPECT_OK(vram_free(world.allocator, expect_malloc(&world, 8 * KIB)));
    }
    EXPECT_OK(vram_free(world.allocator, output));
    EXPECT_OK(vram_free(world.allocator, input));
    assert_int_equal(faults, 0);
    vram_graph_destroy(graph);
    close_world(&world);
    assert_int_equal(faults, 0);
}

// A block that is freed while another stream captures is checked afterwards.
static void a_free_during_a_capture_is_checked_later(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_pool *pool = NULL;
    const struct vram_pool_options options = {.for_graph = true};
    int faults = 0;
    uint64_t graph = 0;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    EXPECT_OK(vram_set_fault_handler(world.allocator, count_fault, &faults));
    EXPECT_OK(vram_pool_create(world.allocator, 0, &options, &pool));
    const uint64_t address = expect_malloc(&world, 4 * KIB);
    write_to(&world, address, 4 * KIB + 4);
    EXPECT_OK(vram_capture_begin(pool, world.stream[0][2], VRAM_CAPTURE_GLOBAL, NULL));
    EXPECT_OK(vram_free(world.allocator, address));
    EXPECT_OK(vram_verify(world.allocator, NULL));
    assert_int_equal(faults, 0);
    EXPECT_OK(vram_capture_end(pool, world.stream[0][2], &graph, NULL));
    EXPECT_OK(vram_verify(world.allocator, NULL));
    assert_int_equal(faults, 1);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    vram_pool_release(pool);
    close_world(&world);
    assert_int_equal(faults, 1);
}

static void sleep_gives_no_alarm(void **state) {
    (void)state;
    static const enum vram_sleep_level levels[] = {VRAM_SLEEP_KEEP, VRAM_SLEEP_DISCARD, VRAM_SLEEP_ZERO};
    for (size_t i = 0; i < VR_COUNT_OF(levels); i++) {
        struct vr_world world;
        struct vram_error error;
        int faults = 0;
        open_world(&world, i == 0 ? "verify:True,sleepable:True" : "verify:True,expandable_segments:True", VRAM_SIM_BYTES_ALL);
        EXPECT_OK(vram_set_fault_handler(world.allocator, count_fault, &faults));
        const uint64_t address = expect_malloc(&world, 4 * KIB), other = expect_malloc(&world, 3 * MIB);
        EXPECT_OK(vram_free(world.allocator, expect_malloc(&world, 6 * MIB)));
        const struct vram_sleep_choice choice = {.level = levels[i]};
        EXPECT_OK(vram_sleep(world.allocator, 0, &choice, 1, NULL, &error));
        EXPECT_OK(vram_verify(world.allocator, NULL));
        EXPECT_OK(vram_free(world.allocator, other));
        EXPECT_OK(vram_wake(world.allocator, 0, &choice, 1, NULL, &error));
        EXPECT_OK(vram_verify(world.allocator, NULL));
        EXPECT_OK(vram_free(world.allocator, address));
        EXPECT_OK(vram_free(world.allocator, expect_malloc(&world, 5 * KIB)));
        close_world(&world);
        assert_int_equal(faults, 0);
    }
}

// A restored block comes without a request, at an address whose last block was freed.
static void a_restored_block_can_be_freed(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_pool *pool = NULL;
    struct vram_checkpoint *checkpoint = NULL;
    uint64_t address = 0;
    int faults = 0;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    EXPECT_OK(vram_set_fault_handler(world.allocator, count_fault, &faults));
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_pool_malloc(pool, 8 * MIB, STREAM(&world), &address));
    EXPECT_OK(vram_pool_checkpoint(pool, &checkpoint));
    EXPECT_OK(vram_free(world.allocator, address));
    EXPECT_OK(vram_pool_restore(pool, checkpoint, NULL));
    write_to(&world, address, 8 * MIB);
    EXPECT_OK(vram_free(world.allocator, address));
    EXPECT_OK(vram_verify(world.allocator, NULL));
    vram_checkpoint_destroy(checkpoint);
    vram_pool_release(pool);
    close_world(&world);
    assert_int_equal(faults, 0);
}

// No block is blamed for a failed driver call, whichever call it is and whenever it fails.
static void refused_driver_calls_give_no_alarm(void **state) {
    (void)state;
    uint64_t refused = 1;
    for (uint64_t nth = 1; refused != 0; nth++) {
        const struct vr_world_options options = {.sim = {.memory_bytes = 4 * VR_GIB, .bytes = VRAM_SIM_BYTES_ALL},
                                                 .conf = "verify:True,expandable_segments:True,large_segment_size_mb:11",
                                                 .faults = true};
        struct vr_world world;
        int faults = 0;
        EXPECT_OK(vr_world_open(&world, &options));
        EXPECT_OK(vram_set_fault_handler(world.allocator, count_fault, &faults));
        EXPECT_OK(vram_driver_fault_set(world.driver, NULL, nth, VR_CU_OUT_OF_MEMORY));
        for (int turn = 0; turn < 2; turn++) {
            uint64_t address = 0;
            while (vram_malloc(world.allocator, 0, 13 * MIB, STREAM(&world), &address) != VRAM_OK) continue;
            write_to(&world, address, 13 * MIB);
            EXPECT_OK(vram_free(world.allocator, address));
            if (turn == 0) (void)!vram_empty_cache(world.allocator);
        }
        (void)!vram_verify(world.allocator, NULL);
        refused = vram_driver_fault_count(world.driver);
        EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, VR_CU_SUCCESS));
        (void)vr_world_close(&world);
        assert_int_equal(faults, 0);
    }
}

// --- the state --------------------------------------------------------------------------------------------------------------------------

static void statistics_count_what_was_asked_for(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_stats stats;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    const uint64_t address = expect_malloc(&world, 4000);
    EXPECT_OK(vram_get_stats(world.allocator, 0, &stats));
    assert_int_equal(stats.requested_bytes[VRAM_STAT_ALL].current, 4000);
    assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].current, 4608);
    EXPECT_OK(vram_free(world.allocator, address));
    EXPECT_OK(vram_get_stats(world.allocator, 0, &stats));
    assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].current, 0);
    assert_int_equal(stats.active_bytes[VRAM_STAT_ALL].current, 4608);
    assert_int_equal(counts_of(&world).quarantined_bytes, 4608);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_OK(vram_get_stats(world.allocator, 0, &stats));
    assert_int_equal(stats.reserved_bytes[VRAM_STAT_ALL].current, 0);
    assert_int_equal(counts_of(&world).quarantined_bytes, 0);
    close_world(&world);
}

// As with malloc_usable_size() under a sanitizer, the redzone after the block is not counted.
static void the_usable_size_is_what_was_asked_for(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_block_info info;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    const uint64_t address = expect_malloc(&world, 4001);
    EXPECT_OK(vram_get_block_info(world.allocator, address, &info));
    assert_int_equal(info.size_bytes, 4001);
    assert_int_equal(vram_allocated_size(world.allocator, address), 4001);
    EXPECT_OK(vram_free(world.allocator, address));
    close_world(&world);
}

static void the_quarantine_is_released_before_a_request_fails(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "verify:True,verify_quarantine_mb:4096", VRAM_SIM_BYTES_SPARSE);
    for (int i = 0; i < 8; i++) EXPECT_OK(vram_free(world.allocator, expect_malloc(&world, (uint64_t)1500 * MIB)));
    close_world(&world);
}

// If memory is made of pages, the device itself refuses a late access to it.
static void a_late_access_of_pages_is_refused(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "verify:True,expandable_segments:True", VRAM_SIM_BYTES_ALL);
    const uint64_t address = expect_malloc(&world, 50 * MIB), inside = address + 25 * MIB;
    write_to(&world, inside, 4);
    EXPECT_OK(vram_free(world.allocator, address));
    assert_int_not_equal(vr_cu(world.sim, memset_d8_async, inside, 0x11, 4, STREAM(&world)), VR_CU_SUCCESS);
    EXPECT_OK(vram_verify(world.allocator, NULL));
    assert_int_not_equal(vr_cu(world.sim, memset_d8_async, inside, 0x11, 4, STREAM(&world)), VR_CU_SUCCESS);
    EXPECT_OK(vram_empty_cache(world.allocator));
    const uint64_t again = expect_malloc(&world, 50 * MIB);
    write_to(&world, again, 50 * MIB);
    EXPECT_OK(vram_free(world.allocator, again));
    close_world(&world);
}

// After a report the redzone is as it was: the same damage is reported once.
static void a_fault_is_reported_once(void **state) {
    (void)state;
    struct vr_world world;
    int faults = 0;
    uint64_t now = 0;
    open_world(&world, "verify:True", VRAM_SIM_BYTES_ALL);
    EXPECT_OK(vram_set_fault_handler(world.allocator, count_fault, &faults));
    const uint64_t address = expect_malloc(&world, 4000);
    write_to(&world, address, 4100);
    EXPECT_OK(vram_verify(world.allocator, &now));
    assert_int_equal(now, 1);
    EXPECT_OK(vram_verify(world.allocator, &now));
    assert_int_equal(now, 0);
    EXPECT_OK(vram_free(world.allocator, address));
    close_world(&world);
    assert_int_equal(faults, 1);
}

// New memory is poisoned, so that a program that reads what it never wrote gets no zeros.
static void new_memory_holds_the_poison(void **state) {
    (void)state;
    static const char *const confs[] = {"verify:True", "verify:True,expandable_segments:True", "verify:True,paged:True",
                                        "verify:True,backend:cudaMallocAsync"};
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct vr_world world;
        unsigned char bytes[64] = {0};
        open_world(&world, confs[i], VRAM_SIM_BYTES_ALL);
        for (int turn = 0; turn < 2; turn++) {
            const uint64_t address = expect_malloc(&world, 3 * MIB);
            assert_int_equal(vr_cu(world.sim, stream_synchronize, STREAM(&world)), VR_CU_SUCCESS);
            assert_int_equal(vr_cu(world.sim, memcpy_dtoh, bytes, address + MIB, sizeof bytes), VR_CU_SUCCESS);
            for (size_t k = 0; k < sizeof bytes; k++) assert_int_equal(bytes[k], VRAM_POISON_BYTE);
            write_to(&world, address, 3 * MIB);
            EXPECT_OK(vram_free(world.allocator, address));
        }
        close_world(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_option_nothing_is_verified),
        cmocka_unit_test(the_option_is_fixed_at_creation),
        cmocka_unit_test(the_free_that_finds_a_fault_has_one_stack),
        cmocka_unit_test(a_fault_ends_the_process),
        cmocka_unit_test(with_halt_off_the_process_continues),
        cmocka_unit_test(a_driver_without_bytes_gives_no_alarm),
        cmocka_unit_test(graphs_give_no_alarm),
        cmocka_unit_test(a_free_during_a_capture_is_checked_later),
        cmocka_unit_test(sleep_gives_no_alarm),
        cmocka_unit_test(a_restored_block_can_be_freed),
        cmocka_unit_test(refused_driver_calls_give_no_alarm),
        cmocka_unit_test(the_usable_size_is_what_was_asked_for),
        cmocka_unit_test(statistics_count_what_was_asked_for),
        cmocka_unit_test(the_quarantine_is_released_before_a_request_fails),
        cmocka_unit_test(a_late_access_of_pages_is_refused),
        cmocka_unit_test(a_fault_is_reported_once),
        cmocka_unit_test(new_memory_holds_the_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
