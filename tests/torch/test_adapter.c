// Tests the functions for PyTorch on a simulated device: first use, failures, hooks, threads. The process has one allocator, so the tests
// depend on their order.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

#include <cmocka.h>

#include "vram/status.h"
#include "vram_torch.h"

enum { KIB = 1 << 10, MIB = 1 << 20, THREADS = 4, ROUNDS = 20000, HELD = 32 };

static struct {
    char function[64];
    char message[2048];
    int calls;
} raised;

static void note(const char *function, const char *file, uint32_t line, const char *message) {
    (void)file, (void)line;
    (void)snprintf(raised.function, sizeof raised.function, "%s", function);
    (void)snprintf(raised.message, sizeof raised.message, "%s", message);
    raised.calls++;
}

static const char *last_error(void) {
    static char text[2048];
    (void)vram_torch_error(text, sizeof text);
    return text;
}

// Returns one counter from a device's JSON object.
static long long counter(int device, const char *name) {
    char key[128], text[16384];
    assert_in_range(vram_torch_stats_json(device, text, sizeof text), 1, sizeof text - 1);
    (void)snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtoll(at + strlen(key), NULL, 10);
}

// --- first use ----------------------------------------------------------------------------------------------------------------------

static void what_prevents_the_allocator_is_said(void **state) {
    (void)state;
    uint64_t address = 7;
    uint32_t count = 7;
    assert_int_equal(setenv("VRAM_SIM", "memory=1GiB,devices=3,nonsense=1", 1), 0);
    assert_int_equal(vram_torch_allocate(KIB, 0, 0, &address), VRAM_BAD_OPTION);
    assert_int_equal(address, 7);
    assert_non_null(strstr(last_error(), "nonsense"));
    assert_null(vram_torch_malloc(KIB, 0, NULL));
    assert_int_equal(vram_torch_device_count(&count), VRAM_BAD_OPTION);
    assert_int_equal(count, 7);
    char text[8] = "before";
    assert_int_equal(vram_torch_stats_json(0, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(vram_torch_summary(0, 1, NULL, 0), 0);
    assert_int_equal(vram_torch_configuration(NULL, 0), 0);

    vram_torch_set_raise(note);
    vram_torch_init(3);
    assert_int_equal(raised.calls, 1);
    assert_string_equal(raised.function, "vram_torch_init");
    assert_string_equal(raised.message, last_error());
    vram_torch_set_raise(NULL);
    vram_torch_init(3);
    assert_int_equal(raised.calls, 1);

    assert_int_equal(setenv("VRAM_SIM", "memory=1GiB,devices=3", 1), 0);
    assert_int_equal(setenv("VRAM_ALLOC_CONF", "max_split_size_mb:3", 1), 0);
    assert_int_equal(vram_torch_allocate(KIB, 0, 0, &address), VRAM_BAD_OPTION);
    assert_non_null(strstr(last_error(), "max_split_size_mb"));
}

static void the_next_call_tries_again(void **state) {
    (void)state;
    uint32_t count = 0;
    char conf[64];
    assert_int_equal(setenv("VRAM_SIM", "memory=1GiB,devices=3,manual", 1), 0);
    assert_int_equal(setenv("VRAM_ALLOC_CONF", "max_split_size_mb:200", 1), 0);
    vram_torch_init(3);
    assert_int_equal(vram_torch_device_count(&count), VRAM_OK);
    assert_int_equal(count, 3);
    assert_int_equal(vram_torch_configuration(conf, sizeof conf), strlen("max_split_size_mb:200"));
    assert_string_equal(conf, "max_split_size_mb:200");
    // The environment has no effect from now on.
    assert_int_equal(setenv("VRAM_SIM", "memory=2GiB,devices=1", 1), 0);
    uint64_t free_bytes = 0, total_bytes = 0;
    assert_int_equal(vram_torch_memory_info(2, &free_bytes, &total_bytes), VRAM_OK);
    assert_int_equal(total_bytes, 1024ull * MIB);
}

// --- memory -------------------------------------------------------------------------------------------------------------------------

static void blocks_have_the_allocators_sizes(void **state) {
    (void)state;
    void *small = vram_torch_malloc(1, 0, NULL);
    void *large = vram_torch_malloc(3 * MIB, 1, NULL);
    assert_non_null(small);
    assert_non_null(large);
    assert_int_equal(counter(0, "allocated_bytes.all.current"), 512);
    assert_int_equal(counter(0, "requested_bytes.all.current"), 1);
    assert_int_equal(counter(0, "reserved_bytes.all.current"), 2 * MIB);
    assert_int_equal(counter(1, "allocated_bytes.all.current"), 3 * MIB);
    assert_int_equal(counter(1, "reserved_bytes.all.current"), 20 * MIB);
    assert_int_equal(counter(2, "reserved_bytes.all.current"), 0);

    size_t bytes = 0;
    assert_ptr_equal(vram_torch_base_alloc((char *)large + MIB, &bytes), large);
    assert_int_equal(bytes, 20 * MIB);
    assert_ptr_equal(vram_torch_base_alloc(small, NULL), small);
    int unknown = 0;
    bytes = 7;
    assert_ptr_equal(vram_torch_base_alloc(&unknown, &bytes), &unknown);
    assert_int_equal(bytes, 0);

    // PyTorch's other arguments for a freed block do not matter.
    vram_torch_free(small, 99, 77, &unknown);
    vram_torch_free(large, 0, -1, NULL);
    assert_int_equal(counter(0, "allocated_bytes.all.current"), 0);
    assert_int_equal(counter(1, "allocated_bytes.all.current"), 0);
    vram_torch_reset();
    assert_int_equal(counter(0, "reserved_bytes.all.current") + counter(1, "reserved_bytes.all.current"), 0);
}

static void nothing_is_nothing(void **state) {
    (void)state;
    vram_torch_set_raise(note);
    const int before = raised.calls;
    assert_null(vram_torch_malloc(0, 0, NULL));
    vram_torch_free(NULL, 0, 0, NULL);
    vram_torch_record_stream(NULL, NULL);
    assert_int_equal(raised.calls, before);
    vram_torch_set_raise(NULL);
    assert_int_equal(counter(0, "allocation.all.current"), 0);
}

static void a_block_used_elsewhere_waits(void **state) {
    (void)state;
    void *const other = (void *)(uintptr_t)2; // CU_STREAM_PER_THREAD
    void *block = vram_torch_malloc(4 * KIB, 0, NULL);
    vram_torch_record_stream(block, other);
    vram_torch_free(block, 0, 0, NULL);
    assert_int_equal(counter(0, "allocated_bytes.all.current"), 0);
    assert_int_equal(counter(0, "active_bytes.all.current"), 4 * KIB);
    void *second = vram_torch_malloc(4 * KIB, 0, NULL);
    assert_ptr_not_equal(second, block);
    vram_torch_free(second, 0, 0, NULL);
    vram_torch_reset(); // waits for the other stream
    assert_int_equal(counter(0, "active_bytes.all.current"), 0);
    assert_int_equal(counter(0, "reserved_bytes.all.current"), 0);

    int foreign = 0;
    vram_torch_set_raise(note);
    const int before = raised.calls;
    vram_torch_record_stream(&foreign, other);
    assert_int_equal(raised.calls, before);
    vram_torch_set_raise(NULL);
    assert_int_equal(vram_torch_use_on((uint64_t)(uintptr_t)&foreign, 2), VRAM_INVALID_POINTER);
}

// --- failures -----------------------------------------------------------------------------------------------------------------------

static void a_request_too_large_is_reported(void **state) {
    (void)state;
    char report[2048], first[2048];
    assert_int_equal(vram_torch_oom_text(report, sizeof report), 0);
    assert_string_equal(report, "");
    assert_null(vram_torch_malloc(2048ll * MIB, 0, NULL));
    assert_in_range(vram_torch_oom_text(first, sizeof first), 100, sizeof first - 1);
    assert_non_null(strstr(first, "request of 2.00 GiB on device 0"));
    static const char begin[] = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1024.00 MiB of which ";
    assert_int_equal(strncmp(last_error(), begin, sizeof begin - 1), 0);
    assert_string_equal(strstr(last_error(), "Out of memory: "), first);

    vram_torch_set_raise(note);
    const int before = raised.calls;
    assert_null(vram_torch_malloc(-1, 1, NULL)); // PyTorch's size_t of all ones
    assert_int_equal(raised.calls, before + 1);
    assert_string_equal(raised.function, "vram_torch_malloc");
    assert_string_equal(raised.message, last_error());
    vram_torch_set_raise(NULL);
    (void)vram_torch_oom_text(report, sizeof report);
    assert_non_null(strstr(report, "on device 1"));
    // Cut to the capacity, with the full length returned.
    char cut[16];
    assert_int_equal(vram_torch_oom_text(cut, sizeof cut), strlen(report));
    assert_int_equal(strlen(cut), sizeof cut - 1);
    assert_int_equal(strncmp(cut, report, strlen(cut)), 0);
    assert_int_equal(counter(0, "num_ooms"), 1);
}

static void a_share_of_the_memory_can_be_set(void **state) {
    (void)state;
    vram_torch_memory_fraction(0.25, 2);
    assert_null(vram_torch_malloc(300 * MIB, 2, NULL));
    assert_non_null(strstr(last_error(), "256.00 MiB"));
    vram_torch_memory_fraction(1.0, 2);
    void *block = vram_torch_malloc(300 * MIB, 2, NULL);
    assert_non_null(block);
    vram_torch_free(block, 0, 0, NULL);

    vram_torch_set_raise(note);
    const int before = raised.calls;
    vram_torch_memory_fraction(1.5, 0);
    assert_int_equal(raised.calls, before + 1);
    assert_string_equal(raised.function, "vram_torch_memory_fraction");
    vram_torch_memory_fraction(0.5, 3);
    assert_int_equal(raised.calls, before + 2);
    vram_torch_set_raise(NULL);
}

static void mistakes_are_statuses(void **state) {
    (void)state;
    uint64_t address = 7;
    assert_int_equal(vram_torch_allocate(KIB, 3, 0, &address), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_torch_allocate(KIB, -1, 0, &address), VRAM_INVALID_ARGUMENT);
    assert_int_equal(address, 7);
    assert_int_equal(vram_torch_release(12345), VRAM_INVALID_POINTER);
    assert_int_equal(vram_torch_allocate(KIB, 0, 0, &address), VRAM_OK);
    assert_int_equal(vram_torch_release(address), VRAM_OK);
    assert_int_equal(vram_torch_release(address), VRAM_INVALID_POINTER);
    assert_int_equal(vram_torch_configure("no_such_option:1"), VRAM_BAD_OPTION);
    assert_non_null(strstr(last_error(), "no_such_option"));
    assert_int_equal(vram_torch_check_options("max_split_size_mb:x"), VRAM_BAD_OPTION);
    assert_int_equal(vram_torch_check_options(NULL), VRAM_OK);
    assert_int_equal(vram_torch_reset_peak_stats(-1), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_torch_reset_accumulated_stats(64), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_torch_stats_json(64, NULL, 0), 0);
    assert_int_equal(vram_torch_configure("max_split_size_mb:64"), VRAM_OK);
    assert_int_equal(vram_torch_check(), VRAM_OK);
}

// --- threads ------------------------------------------------------------------------------------------------------------------------

static atomic_uint failures;

// Counts failures, because cmocka's assertions belong to one thread.
static void *work(void *argument) {
    uint64_t random = 88172645463325252ull + (uint64_t)(uintptr_t)argument;
    void *held[HELD] = {NULL};
    for (int round = 0; round < ROUNDS; round++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        void **slot = &held[random % HELD];
        if (*slot != NULL) {
            vram_torch_free(*slot, 0, 0, NULL);
            *slot = NULL;
        } else {
            *slot = vram_torch_malloc(1 + (ssize_t)((random >> 8) % (2 * MIB)), 0, (void *)(uintptr_t)(random >> 40 & 1));
            if (*slot == NULL) atomic_fetch_add(&failures, 1);
        }
        char text[64];
        if (round % 1000 == 0 && vram_torch_stats_json(0, text, sizeof text) == 0) atomic_fetch_add(&failures, 1);
        if (round % 5000 == 0 && vram_torch_empty_cache() != VRAM_OK) atomic_fetch_add(&failures, 1);
        // Each thread has its own last error.
        if (round % 100 == 0 && vram_torch_release((uint64_t)(uintptr_t)argument) != VRAM_INVALID_POINTER) atomic_fetch_add(&failures, 1);
    }
    for (int i = 0; i < HELD; i++) vram_torch_free(held[i], 0, 0, NULL);
    return NULL;
}

static void threads_share_the_allocator(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(counter(0, "allocation.all.current"), 0);
    assert_int_equal(counter(0, "allocated_bytes.all.current"), 0);
    assert_int_equal(vram_torch_check(), VRAM_OK);
    vram_torch_reset();
    assert_int_equal(counter(0, "reserved_bytes.all.current"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_prevents_the_allocator_is_said), cmocka_unit_test(the_next_call_tries_again),
        cmocka_unit_test(blocks_have_the_allocators_sizes),    cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(a_block_used_elsewhere_waits),        cmocka_unit_test(a_request_too_large_is_reported),
        cmocka_unit_test(a_share_of_the_memory_can_be_set),    cmocka_unit_test(mistakes_are_statuses),
        cmocka_unit_test(threads_share_the_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
