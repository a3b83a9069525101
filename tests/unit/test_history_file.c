// Tests files of a history: a file replaced by another ends with the state of that moment, including pinned memory, and the child of a fork
// leaves its parent's file alone.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/history.h"
#include "vram/host.h"
#include "vram/report.h"

enum { PATH_BYTES = 256 };

static char folder[] = "/tmp/vram-files-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}
static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static const char *path_of(char path[PATH_BYTES], const char *name) {
    (void)snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return path;
}

static struct vram_recording *read_file(const char *path, enum vram_recording_ending ending) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {.message = ""};
    if (vram_recording_read_file(path, &recording, &error) != VRAM_OK) fail_msg("%s: %s", path, error.message);
    assert_int_equal(vram_get_recording_ending(recording), ending);
    OK(vr_model_check(model_of(recording), &error));
    return recording;
}

// Returns the state in a recording as one number.
static uint64_t sum_of_state(const struct vram_recording *recording) {
    const struct vr_model *model = model_of(recording);
    uint64_t sum = model->segments.count;
    for (size_t i = 0; i < model->segments.count; i++) {
        sum = vr_mix64(sum ^ model->segments.address[i]) + model->segments.total_bytes[i] + model->segments.device[i];
        sum = vr_mix64(sum ^ model->segments.stream[i]) + model->segments.kind[i] + 2 * model->segments.expandable[i];
    }
    for (size_t i = 0; i < model->blocks.count; i++) {
        sum = vr_mix64(sum ^ model->blocks.address[i]) + model->blocks.size_bytes[i];
        sum = vr_mix64(sum ^ model->blocks.requested_bytes[i]) + model->blocks.state[i];
    }
    return sum;
}

static size_t count_of(const struct vram_recording *recording, enum vr_action action) {
    const struct vr_history *history = &model_of(recording)->histories[0];
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++) count += history->action[i] == action;
    return count;
}

static void another_file(void **state) {
    (void)state;
    char first[PATH_BYTES], second[PATH_BYTES];
    struct vr_world world;
    history_world(&world, NULL, 2, (uint64_t)1 << 30);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .file = path_of(first, "first.vram")});
    const uint64_t a = take(&world, 5000, 0), b = take(&world, 3 << 20, world.stream[0][1]);
    give(&world, a);
    struct vram_recording *snapshot = snap(&world, NULL);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .file = path_of(second, "second.vram")});
    struct vram_recording *recording = read_file(first, VRAM_RECORDING_WHOLE);
    assert_int_equal(sum_of_state(recording), sum_of_state(snapshot));
    assert_non_null(vram_recording_setting(recording, "expandable_segments"));
    assert_int_equal(count_of(recording, VR_ACTION_ALLOC), 2);
    expect_exact(recording);
    vram_recording_destroy(recording);
    vram_recording_destroy(snapshot);
    // Later events are only in the other file.
    give(&world, b);
    snapshot = snap(&world, NULL);
    OK(vram_history_stop(world.allocator));
    recording = read_file(second, VRAM_RECORDING_WHOLE);
    assert_int_equal(sum_of_state(recording), sum_of_state(snapshot));
    assert_int_equal(count_of(recording, VR_ACTION_ALLOC), 0);
    assert_int_equal(count_of(recording, VR_ACTION_FREE_COMPLETED), 1);
    vram_recording_destroy(recording);
    vram_recording_destroy(snapshot);
    history_end(&world);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(unlink(second), 0);
}

// The settings are in the file from the start, because a program may be killed.
static void settings_of_an_open_file(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct vr_world world;
    struct vram_report *report = NULL;
    history_world(&world, "max_split_size_mb:64", 1, (uint64_t)1 << 30);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .file = path_of(path, "open.vram")});
    (void)take(&world, 5000, 0);
    struct vram_recording *recording = read_file(path, VRAM_RECORDING_OPEN);
    assert_string_equal(vram_recording_setting(recording, "PYTORCH_CUDA_ALLOC_CONF"), "\"max_split_size_mb:64\"");
    OK(vram_report_create(recording, NULL, &report, NULL));
    assert_true(report->has_settings);
    for (size_t i = 0; i < report->note_count; i++) assert_string_not_equal(report->notes[i].code, "no_settings");
    vram_report_destroy(report);
    vram_recording_destroy(recording);
    history_end(&world);
    assert_int_equal(unlink(path), 0);
}

// The history may also change from a file to the ring.
static void a_ring_after_a_file(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct vr_world world;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .file = path_of(path, "file.vram")});
    const uint64_t a = take(&world, 5000, 0);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    give(&world, a);
    struct vram_recording *recording = snap(&world, NULL);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_FREE_REQUESTED, a, 5000}, {VR_ACTION_FREE_COMPLETED, a, 5000});
    vram_recording_destroy(recording);
    recording = read_file(path, VRAM_RECORDING_WHOLE);
    assert_int_equal(model_of(recording)->blocks.count, 2);
    assert_int_equal(model_of(recording)->blocks.state[0], VR_STATE_ALLOCATED);
    vram_recording_destroy(recording);
    history_end(&world);
    assert_int_equal(unlink(path), 0);
}

// Pinned memory is in the state of a file, and in snapshots even without events.
static void pinned_memory(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct vr_world world;
    struct vram_host *host = NULL;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    OK(vram_host_create(&(struct vram_host_create_info){.driver = world.driver}, &host, NULL));
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .file = path_of(path, "pinned.vram"), .host = host});
    void *pinned = NULL, *freed = NULL;
    OK(vram_host_malloc(host, 100000, 0, &pinned));
    OK(vram_host_malloc(host, 5000, 0, &freed));
    OK(vram_host_free(host, freed));
    const uint64_t a = take(&world, 5000, 0);
    struct vram_recording *snapshot = snap(&world, &(struct vram_snapshot_options){.without_history = true});
    const struct vr_model *model = model_of(snapshot);
    assert_int_equal(model->host_count, 1);
    assert_int_equal(model->segments.count, 3);
    assert_int_equal(model->histories[model->history_count - 1].count, 0);
    OK(vram_history_stop(world.allocator));
    struct vram_recording *recording = read_file(path, VRAM_RECORDING_WHOLE);
    assert_int_equal(model_of(recording)->host_count, 1);
    assert_int_equal(sum_of_state(recording), sum_of_state(snapshot));
    vram_recording_destroy(recording);
    vram_recording_destroy(snapshot);
    give(&world, a);
    OK(vram_host_free(host, pinned));
    vram_host_destroy(host);
    history_end(&world);
    assert_int_equal(unlink(path), 0);
}

// --- children ------------------------------------------------------------------------------------------------------------------------

// Runs `child` in a child process, which must succeed. Returns its process id.
static long in_child(void (*child)(struct vr_world *world), struct vr_world *world) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(world);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return (long)pid;
}

// Uses _exit, because a failed assertion in the child must not run the parent's tests.
#define MUST(condition)                                                                                                                    \
    if (!(condition)) _exit(1)

static void allocate_and_stop(struct vr_world *world) {
    for (int i = 0; i < 100; i++) {
        uint64_t address = 0;
        MUST(vram_malloc(world->allocator, 0, 7000, 0, &address) == VRAM_OK);
        MUST(vram_step(world->allocator, 0, "child") == VRAM_OK);
        if (i % 2 == 0) MUST(vram_free(world->allocator, address) == VRAM_OK);
    }
    MUST(vram_history_stop(world->allocator) == VRAM_OK);
}

static void records_nothing(struct vr_world *world) {
    struct vram_history_counts counts;
    vram_get_history_counts(world->allocator, &counts);
    MUST(!counts.recording && counts.events == 0);
    allocate_and_stop(world);
    // The child may start its own history.
    MUST(vram_history_start(world->allocator, NULL, NULL) == VRAM_OK);
    uint64_t address = 0;
    MUST(vram_malloc(world->allocator, 0, 7000, 0, &address) == VRAM_OK);
    vram_get_history_counts(world->allocator, &counts);
    MUST(counts.recording && counts.events != 0);
}

static void the_parents_file(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct vr_world world;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    start(&world, &(struct vram_history_options){.file = path_of(path, "parent.vram"), .stacks = VRAM_HISTORY_STACKS_C});
    const uint64_t a = take(&world, 5000, 0);
    (void)in_child(records_nothing, &world);
    const uint64_t b = take(&world, 6000, 0);
    OK(vram_step(world.allocator, 0, "parent"));
    OK(vram_history_stop(world.allocator));
    struct vram_recording *recording = read_file(path, VRAM_RECORDING_WHOLE);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_SEGMENT_ALLOC, a, 2 << 20}, {VR_ACTION_ALLOC, a, 5000}, {VR_ACTION_ALLOC, b, 6000});
    assert_int_equal(model_of(recording)->annotation_count, 1);
    vram_recording_destroy(recording);
    give(&world, a);
    give(&world, b);
    history_end(&world);
    assert_int_equal(unlink(path), 0);
}

static void a_file_for_each_process(void **state) {
    (void)state;
    char text[PATH_BYTES + 16], path[PATH_BYTES], name[64];
    struct vr_world world;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    (void)snprintf(text, sizeof text, "file=%s/of-%%p.vram", folder);
    OK(vram_history_start_text(world.allocator, text, NULL));
    const uint64_t a = take(&world, 5000, 0);
    const long child = in_child(allocate_and_stop, &world);
    OK(vram_history_stop(world.allocator));
    (void)snprintf(name, sizeof name, "of-%ld.vram", (long)getpid());
    struct vram_recording *recording = read_file(path_of(path, name), VRAM_RECORDING_WHOLE);
    assert_int_equal(count_of(recording, VR_ACTION_ALLOC), 1);
    vram_recording_destroy(recording);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(name, sizeof name, "of-%ld.vram", child);
    recording = read_file(path_of(path, name), VRAM_RECORDING_WHOLE);
    assert_int_equal(count_of(recording, VR_ACTION_ALLOC), 100);
    assert_int_equal(count_of(recording, VR_ACTION_FREE_COMPLETED), 50);
    assert_int_equal(model_of(recording)->annotation_count, 100);
    vram_recording_destroy(recording);
    assert_int_equal(unlink(path), 0);
    give(&world, a);
    history_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_file),     cmocka_unit_test(a_ring_after_a_file),     cmocka_unit_test(pinned_memory),
        cmocka_unit_test(the_parents_file), cmocka_unit_test(a_file_for_each_process), cmocka_unit_test(settings_of_an_open_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
