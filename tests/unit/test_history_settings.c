#define _GNU_SOURCE
// Tests the memory history's settings as text: file names, the environment, what an out-of-memory error leaves.
#include <stdio.h>
#include <unistd.h>

#include "support/history.h"

static void paths_are_expanded(void **state) {
    (void)state;
    char path[256], want[256], host[64];
    size_t length = 0;
    assert_int_equal(gethostname(host, sizeof host), 0);
    (void)unsetenv("RANK");
    (void)unsetenv("SLURM_PROCID");
    (void)setenv("OMPI_COMM_WORLD_RANK", "../3", 1); // not a number, and must not name a folder
    (void)setenv("PMI_RANK", "12", 1);
    OK(vram_expand_path("a%%b_%p_%r_%h", path, sizeof path, &length));
    (void)snprintf(want, sizeof want, "a%%b_%d_12_%s", (int)getpid(), host);
    assert_string_equal(path, want);
    assert_int_equal(length, strlen(want));
    (void)setenv("RANK", "7", 1);
    OK(vram_expand_path("%r", path, 1, &length));
    assert_string_equal(path, "");
    assert_int_equal(length, 1);
    OK(vram_expand_path("%t", path, sizeof path, &length));
    assert_int_equal(length, strlen("20260131T235959Z"));
    assert_int_equal(strspn(path, "0123456789TZ"), length);
    assert_int_equal(vram_expand_path("x%d", path, sizeof path, NULL), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_expand_path("x%", path, sizeof path, NULL), VRAM_INVALID_ARGUMENT);
    (void)unsetenv("RANK");
    (void)unsetenv("OMPI_COMM_WORLD_RANK");
    (void)unsetenv("PMI_RANK");
}

static enum vram_status with_environment(struct vr_world *world, const char *history, const char *on_oom, struct vram_error *error) {
    if (history != NULL) (void)setenv("VRAM_HISTORY", history, 1);
    if (on_oom != NULL) (void)setenv("VRAM_ON_OOM", on_oom, 1);
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_MIB}, .conf = "", .without_record = true};
    OK(vr_world_open(world, &options));
    vram_destroy(world->allocator);
    world->allocator = NULL;
    const struct vram_create_info info = {.driver = world->driver, .conf = ""};
    const enum vram_status status = vram_create(&info, &world->allocator, error);
    (void)unsetenv("VRAM_HISTORY");
    (void)unsetenv("VRAM_ON_OOM");
    return status;
}

static void the_environment_starts_a_history(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error = {.message = ""};
    char dump[] = "/tmp/test_history_XXXXXX", text[128];
    const int file = mkstemp(dump);
    assert_true(file >= 0);
    (void)close(file);
    (void)snprintf(text, sizeof text, "all,context=none,max_entries=3,skip_actions=segment_alloc+free_completed,dump=%s", dump);
    OK(with_environment(&world, text, NULL, &error));
    for (uint64_t i = 0; i < 5; i++) give(&world, take(&world, 100 + i, 0));
    struct vram_history_counts counts;
    vram_get_history_counts(world.allocator, &counts);
    assert_int_equal(counts.events, 10);
    assert_int_equal(counts.kept, 3);
    history_end(&world);
    struct vram_recording *recording = NULL;
    OK(vram_recording_read_file(dump, &recording, &error));
    assert_int_equal(vram_recording_event_count(recording, 0), 3);
    vram_recording_destroy(recording);
    (void)remove(dump);

    OK(with_environment(&world, "off", "off", &error));
    vram_get_history_counts(world.allocator, &counts);
    assert_false(counts.recording);
    history_end(&world);
}

static void wrong_settings_are_errors(void **state) {
    (void)state;
    static const struct {
        const char *history, *on_oom, *message;
        uint64_t offset;
    } rows[] = {
        {"all,stacks=rust", NULL, "VRAM_HISTORY: character 5: \"stacks\" is unknown or has an invalid value", 4},
        {"everything", NULL, "VRAM_HISTORY: character 1: \"everything\" is unknown or has an invalid value", 0},
        {"all,max_entries=0", NULL, "VRAM_HISTORY: character 5: \"max_entries\" is unknown or has an invalid value", 4},
        {"all,max_entries=99999999999999999999", NULL, "VRAM_HISTORY: character 5: \"max_entries\" is unknown or has an invalid value", 4},
        {"all,,", NULL, "VRAM_HISTORY: character 5: \"\" is unknown or has an invalid value", 4},
        {"all,skip_actions=", NULL, "VRAM_HISTORY: character 5: \"skip_actions\" is unknown or has an invalid value", 4},
        {"all,skip_actions=malloc", NULL, "unknown action \"malloc\"", VRAM_NO_OFFSET},
        {"all,dump=%q", NULL, "VRAM_HISTORY: invalid file name \"%q\": % must be followed by p, r, h, t or %", VRAM_NO_OFFSET},
        {NULL, "explode", "VRAM_ON_OOM: unknown value \"explode\"; expected dump, dump:PATTERN, report or report:PATTERN", 0},
        {NULL, "dump:%q", "VRAM_ON_OOM: invalid file name \"%q\": % must be followed by p, r, h, t or %", VRAM_NO_OFFSET},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct vr_world world;
        struct vram_error error = {.message = ""};
        assert_int_not_equal(with_environment(&world, rows[i].history, rows[i].on_oom, &error), VRAM_OK);
        assert_null(world.allocator);
        assert_string_equal(error.message, rows[i].message);
        assert_int_equal(error.offset, rows[i].offset);
        history_end(&world);
    }
}

static void a_text_starts_and_stops(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error = {.message = ""};
    struct vram_history_counts counts;
    history_world(&world, "", 1, 0);
    OK(vram_history_start_text(world.allocator, "all,context=none,max_entries=7", &error));
    give(&world, take(&world, 100, 0));
    OK(vram_history_start_text(world.allocator, "context=none,clear_history", &error));
    vram_get_history_counts(world.allocator, &counts);
    assert_true(counts.recording && counts.events == 0);
    assert_int_equal(vram_history_start_text(world.allocator, "all,dump=x.pickle", &error), VRAM_BAD_OPTION);
    assert_int_equal(vram_history_start_text(world.allocator, "all,context=some", &error), VRAM_BAD_OPTION);
    assert_int_equal(error.offset, 4);
    assert_int_equal(vram_history_start_text(world.allocator, "all,file=/no/such/folder/x.vram", &error), VRAM_IO);
    vram_get_history_counts(world.allocator, &counts);
    assert_true(counts.recording);
    OK(vram_history_start_text(world.allocator, "off", &error));
    vram_get_history_counts(world.allocator, &counts);
    assert_false(counts.recording);
    history_end(&world);
}

static void out_of_memory_leaves_a_file(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error = {.message = ""};
    char folder[] = "/tmp/test_history_XXXXXX", pattern[64], path[64];
    assert_non_null(mkdtemp(folder));
    for (int report = 0; report < 2; report++) {
        uint64_t none = 0;
        (void)snprintf(pattern, sizeof pattern, "%s:%s/%%p.out", report ? "report" : "dump", folder);
        (void)snprintf(path, sizeof path, "%s/%d.out", folder, (int)getpid());
        OK(with_environment(&world, "all,context=none", pattern, &error));
        const uint64_t block = take(&world, 8 * VR_MIB, 0);
        assert_int_equal(vram_malloc(world.allocator, 0, 60 * VR_MIB, 0, &none), VRAM_OUT_OF_MEMORY);
        if (report) {
            char text[64] = "";
            FILE *stream = fopen(path, "rb");
            assert_non_null(stream);
            assert_true(fread(text, 1, sizeof text - 1, stream) > 0);
            (void)fclose(stream);
            assert_memory_equal(text, "Out of memory: tried to allocate 60.00 MiB", 42);
        } else {
            struct vram_recording *recording = NULL;
            OK(vram_recording_read_file(path, &recording, &error));
            EXPECT_EVENTS(recording, 0, {VR_ACTION_SEGMENT_ALLOC, block, 20 * VR_MIB}, {VR_ACTION_ALLOC, block, 8 * VR_MIB},
                          {VR_ACTION_OOM, 44 * VR_MIB, 60 * VR_MIB});
            expect_exact(recording);
            vram_recording_destroy(recording);
        }
        assert_int_equal(remove(path), 0);
        history_end(&world);
    }
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_expanded),          cmocka_unit_test(the_environment_starts_a_history),
        cmocka_unit_test(wrong_settings_are_errors),   cmocka_unit_test(a_text_starts_and_stops),
        cmocka_unit_test(out_of_memory_leaves_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
