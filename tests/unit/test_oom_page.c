#define _GNU_SOURCE
// Tests the page that a program prints itself when memory runs out (VRAM_ON_OOM=report): cause and cure, in bounded time, from any thread.
#include <stdio.h>
#include <unistd.h>

#include "os/os.h"
#include "support/history.h"
#include "vram/oom.h"
#include "vram/recording.h"
#include "vram/report.h"
#include "vram/sim.h"

#define M *VR_MIB

struct page {
    struct vr_world world;
    char folder[64], path[128];
};

// Opens an allocator with these variables, whose pages (or snapshots) go to their own folder.
static void begin(struct page *page, const char *history, const char *what, uint64_t memory_bytes) {
    char pattern[160];
    const struct vr_world_options options = {
        .sim = {.memory_bytes = memory_bytes, .context_bytes = 100 M}, .conf = "", .without_record = true};
    (void)snprintf(page->folder, sizeof page->folder, "/tmp/test_oom_page_XXXXXX");
    assert_non_null(mkdtemp(page->folder));
    (void)snprintf(page->path, sizeof page->path, "%s/page", page->folder);
    (void)snprintf(pattern, sizeof pattern, "%s:%s", what, page->path);
    OK(vr_world_open(&page->world, &options));
    vram_destroy(page->world.allocator);
    page->world.allocator = NULL;
    (void)setenv("VRAM_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    (void)setenv("VRAM_ON_OOM", pattern, 1);
    if (history != NULL) (void)setenv("VRAM_HISTORY", history, 1);
    const struct vram_create_info info = {.driver = page->world.driver, .conf = ""};
    OK(vram_create(&info, &page->world.allocator, NULL));
    (void)unsetenv("VRAM_ON_OOM");
    (void)unsetenv("VRAM_HISTORY");
}

static void end(struct page *page) {
    assert_int_equal(remove(page->path), 0);
    assert_int_equal(rmdir(page->folder), 0); // the folder was empty
    history_end(&page->world);
}

static void read_page(const struct page *page, char *text, size_t capacity) {
    FILE *file = fopen(page->path, "rb");
    assert_non_null(file);
    const size_t length = fread(text, 1, capacity - 1, file);
    text[length] = '\0';
    (void)fclose(file);
}

static void expect(const char *text, const char *wanted) {
    if (strstr(text, wanted) == NULL) fail_msg("\"%s\" is not in\n%s", wanted, text);
}

// Leaves only `kept` in use, in the middle of a segment of 100 MiB.
static void hollow(struct vr_world *world, uint64_t kept) {
    give(world, take(world, 100 M, 0));
    const uint64_t low = take(world, (100 M - kept) / 2, 0);
    (void)take(world, kept, 0);
    const uint64_t high = take(world, (100 M - kept) / 2, 0);
    give(world, low);
    give(world, high);
}

static void fail_to_take(struct vr_world *world, uint64_t size_bytes) {
    uint64_t address;
    assert_int_equal(vram_malloc(world->allocator, 0, size_bytes, 0, &address), VRAM_OUT_OF_MEMORY);
}

static void the_page_has_cause_and_cure(void **state) {
    (void)state;
    struct page page;
    char text[16384];
    begin(&page, "all,context=none", "report", 220 M);
    hollow(&page.world, 20 M);
    const uint64_t used = vram_sim_memory_used(page.world.driver, 0);
    fail_to_take(&page.world, 60 M);
    assert_int_equal(vram_sim_memory_used(page.world.driver, 0), used); // the device's memory was not used for it
    read_page(&page, text, sizeof text);
    expect(text, "Out of memory: tried to allocate 60.00 MiB");
    expect(text, "    why   fragmentation: 80.0 MiB was free");
    expect(text, "    cure  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n");
    expect(text, "u  not known     100.0 MiB"); // the context, whose size is unknown
    expect(text, "    others not known: NVML is not available:");
    // The replays' own out of memory must not replace the program's.
    struct vram_oom last;
    assert_true(vram_last_oom(&last));
    assert_int_equal(last.requested_bytes, 60 M);
    assert_int_equal(last.device_total_bytes, 220 M);
    end(&page);
}

static void without_a_history_it_says_so(void **state) {
    (void)state;
    struct page page;
    char text[16384];
    begin(&page, NULL, "report", 220 M);
    hollow(&page.world, 20 M);
    fail_to_take(&page.world, 60 M);
    read_page(&page, text, sizeof text);
    expect(text, "No history was recorded. With VRAM_HISTORY=all");
    assert_null(strstr(text, "    cure"));
    end(&page);
}

static void a_history_in_a_file_has_what_lay_outside(void **state) {
    (void)state;
    struct page page;
    char text[16384], log[64] = "/tmp/test_oom_page_XXXXXX", history[128];
    const int file = mkstemp(log);
    assert_true(file >= 0);
    (void)close(file);
    (void)snprintf(history, sizeof history, "all,context=none,file=%s", log);
    begin(&page, history, "report", 220 M);
    hollow(&page.world, 20 M);
    fail_to_take(&page.world, 60 M);
    read_page(&page, text, sizeof text);
    expect(text, "The history is in the file that VRAM_HISTORY names");
    end(&page);
    struct vram_recording *recording = NULL;
    struct vram_report *report = NULL;
    OK(vram_recording_read_file(log, &recording, NULL));
    OK(vram_report_create(recording, NULL, &report, NULL));
    assert_int_equal(report->devices[0].oom_count, 1);
    assert_int_equal(report->devices[0].ooms[0].outside_bytes, 100 M);
    assert_non_null(report->devices[0].ooms[0].accounts);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
    assert_int_equal(remove(log), 0);
}

static void a_snapshot_has_what_lay_outside(void **state) {
    (void)state;
    struct page page;
    begin(&page, "all,context=none", "dump", 220 M);
    hollow(&page.world, 20 M);
    fail_to_take(&page.world, 60 M);
    struct vram_recording *recording = NULL;
    struct vram_report *report = NULL;
    OK(vram_recording_read_file(page.path, &recording, NULL));
    OK(vram_report_create(recording, NULL, &report, NULL));
    const struct vram_report_oom *oom = &report->devices[0].ooms[0];
    assert_int_equal(oom->device_total_bytes, 220 M);
    assert_int_equal(oom->outside_bytes, 100 M);
    assert_non_null(oom->accounts);
    assert_memory_equal(oom->accounts->why, "NVML is not available", 21);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
    end(&page);
}

// Many failures at once: every thread writes, and none waits for another.
enum { THREADS = 4, FAILURES = 5 };
static void keep_failing(void *argument) {
    struct vr_world *world = argument;
    for (int i = 0; i < FAILURES; i++) {
        uint64_t address, small;
        if (vram_malloc(world->allocator, 0, 4 M, 0, &small) == VRAM_OK) (void)!vram_free(world->allocator, small);
        (void)!vram_malloc(world->allocator, 0, 60 M, 0, &address);
    }
}

static void threads_fail_at_once(void **state) {
    (void)state;
    struct page page;
    struct vr_thread threads[THREADS];
    char text[16384];
    begin(&page, "all,context=none", "report", 220 M);
    hollow(&page.world, 20 M);
    for (size_t i = 0; i < THREADS; i++) OK(vr_thread_start(&threads[i], keep_failing, &page.world));
    for (size_t i = 0; i < THREADS; i++) vr_thread_join(&threads[i]);
    read_page(&page, text, sizeof text); // one of them, complete
    assert_memory_equal(text, "Out of memory: tried to allocate 60.00 MiB", 42);
    expect(text, "    cure  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n");
    end(&page);
}

// --- time limit ---------------------------------------------------------------------------------------------------------------------

static void a_search_ends_in_time(void **state) {
    (void)state;
    enum { ROUNDS = 5000 };
    struct vr_world world;
    const struct vram_history_options no_stacks = {.context = VRAM_HISTORY_NONE};
    history_world(&world, "", 1, 120 M);
    start(&world, &no_stacks);
    hollow(&world, 20 M);
    for (int i = 0; i < ROUNDS; i++) give(&world, take(&world, 3 M, 0));
    fail_to_take(&world, 60 M);
    struct vram_recording *recording = snap(&world, NULL);
    struct vram_report *report = NULL;
    struct vram_cures *whole = NULL, *none = NULL, *some = NULL;
    OK(vram_report_create(recording, NULL, &report, NULL));
    OK(vram_cures_find(recording, report, &whole, NULL));
    assert_int_equal(whole->cures[0].verdict, VRAM_CURE_SETTING);
    OK(vram_cures_find_within(recording, report, 1, &none, NULL));
    assert_int_equal(none->cures[0].verdict, VRAM_CURE_UNFINISHED);
    assert_int_equal(none->cures[0].tried, 0);
    assert_string_equal(none->cures[0].conf, "");
    OK(vram_cures_find_within(recording, report, UINT64_MAX, &some, NULL)); // without a time limit: the same search
    assert_int_equal(some->cures[0].verdict, VRAM_CURE_SETTING);
    assert_string_equal(some->cures[0].conf, whole->cures[0].conf);
    assert_int_equal(some->cures[0].needed_bytes, whole->cures[0].needed_bytes);
    vram_cures_destroy(some);
    // With a limit: the best found by then, and not much later.
    for (uint64_t most_ns = 1000000; most_ns < 200000000; most_ns *= 3) {
        const uint64_t before = vr_os_monotonic_ns();
        OK(vram_cures_find_within(recording, report, most_ns, &some, NULL));
        const uint64_t took = vr_os_monotonic_ns() - before;
        const enum vram_cure_verdict verdict = some->cures[0].verdict;
        assert_true(verdict == VRAM_CURE_SETTING || verdict == VRAM_CURE_UNFINISHED);
        if (verdict == VRAM_CURE_SETTING) assert_true(some->cures[0].held_bytes != 0 && some->cures[0].needed_bytes <= 120 M);
        assert_true(took < 20000000000u);
        vram_cures_destroy(some);
    }
    vram_cures_destroy(none);
    vram_cures_destroy(whole);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
    history_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_has_cause_and_cure),
        cmocka_unit_test(without_a_history_it_says_so),
        cmocka_unit_test(a_snapshot_has_what_lay_outside),
        cmocka_unit_test(a_history_in_a_file_has_what_lay_outside),
        cmocka_unit_test(threads_fail_at_once),
        cmocka_unit_test(a_search_ends_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
