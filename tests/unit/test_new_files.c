#define _GNU_SOURCE
// Tests files that the library writes in a folder where others may plant anything: nothing existing is opened or followed, and others
// cannot read the result.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "support/history.h"
#include "vram/history.h"
#include "vram/log.h"
#include "vram/stats.h"

#define M *VR_MIB

static char folder[64], victim[96], path[96];

static int plant(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/test_new_files_XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(victim, sizeof victim, "%s/victim", folder);
    (void)snprintf(path, sizeof path, "%s/out.pickle", folder);
    FILE *file = fopen(victim, "w");
    assert_true(file != NULL && fputs("mine", file) >= 0 && fclose(file) == 0);
    assert_int_equal(symlink(victim, path), 0);
    for (int i = 0; i < 64; i++) { // the former names of temporary files
        char name[160];
        (void)snprintf(name, sizeof name, "%s.%d.%d.part", path, (int)getpid(), i);
        assert_int_equal(symlink(victim, name), 0);
    }
    return 0;
}

// Counts entries except the folder itself and its parent; `removes` also removes them.
static int count(bool removes) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int entries = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        entries++;
        if (removes) (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    (void)closedir(dir);
    return entries;
}

static int clear(void **state) {
    (void)state;
    (void)count(true);
    return rmdir(folder);
}

static void expect_victim(void) {
    char text[8] = "";
    FILE *file = fopen(victim, "r");
    assert_true(file != NULL && fread(text, 1, sizeof text - 1, file) == 4 && fclose(file) == 0);
    assert_string_equal(text, "mine");
}

static mode_t mode_of(const char *name) {
    struct stat facts;
    assert_int_equal(lstat(name, &facts), 0);
    assert_true(S_ISREG(facts.st_mode) && facts.st_size > 0);
    return facts.st_mode & 0777;
}

static void open_world(struct vr_world *world) {
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 M}, .conf = "", .without_record = true};
    OK(vr_world_open(world, &options));
}

static void snapshots(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    const int before = count(false);
    OK(vram_snapshot_save(world.allocator, NULL, path, NULL));
    expect_victim();
    assert_int_equal(mode_of(path), 0600);
    // The permissions of our file are kept.
    assert_int_equal(chmod(path, 0644), 0);
    OK(vram_snapshot_save(world.allocator, NULL, path, NULL));
    assert_int_equal(mode_of(path), 0644);
    assert_int_equal(count(false), before); // the link was replaced by the file
    assert_int_equal(vr_world_close(&world), 0);
}

static void prometheus(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    OK(vram_prometheus_start(world.allocator, &(struct vram_prometheus_options){.file = path}, NULL));
    vram_prometheus_stop(world.allocator);
    expect_victim();
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(vr_world_close(&world), 0);
}

static void out_of_memory(void **state) {
    (void)state;
    static const char *const ways[] = {"report", "dump"};
    for (int i = 0; i < 2; i++) {
        struct vr_world world;
        char pattern[128];
        uint64_t address;
        (void)unlink(path);
        assert_int_equal(symlink(victim, path), 0);
        open_world(&world);
        vram_destroy(world.allocator);
        (void)snprintf(pattern, sizeof pattern, "%s:%s", ways[i], path);
        (void)setenv("VRAM_ON_OOM", pattern, 1);
        (void)setenv("VRAM_NVML", "/nowhere/libnvidia-ml.so.1", 1);
        const struct vram_create_info info = {.driver = world.driver, .conf = ""};
        OK(vram_create(&info, &world.allocator, NULL));
        (void)unsetenv("VRAM_ON_OOM");
        assert_int_equal(vram_malloc(world.allocator, 0, 1000 M, 0, &address), VRAM_OUT_OF_MEMORY);
        expect_victim();
        assert_int_equal(mode_of(path), 0600);
        assert_int_equal(vr_world_close(&world), 0);
    }
}

// A link to something other than a regular file is not followed either: its owner could read along.
static void links_to_pipes(void **state) {
    (void)state;
    char pipe_name[96];
    struct vr_world world;
    (void)snprintf(pipe_name, sizeof pipe_name, "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe_name, 0600), 0);
    const int reader = open(pipe_name, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0 && unlink(path) == 0 && symlink(pipe_name, path) == 0);
    open_world(&world);
    OK(vram_snapshot_save(world.allocator, NULL, path, NULL));
    assert_int_equal(mode_of(path), 0600);
    char byte;
    assert_int_equal(read(reader, &byte, 1), 0);
    (void)close(reader);
    assert_int_equal(vr_world_close(&world), 0);
}

static void recordings(void **state) {
    (void)state;
    struct vram_log *log;
    for (int replace = 0; replace < 2; replace++) {
        const struct vram_log_options options = {.replace = replace};
        assert_int_equal(vram_log_create(path, &options, &log, NULL), VRAM_IO);
        expect_victim();
    }
    assert_int_equal(unlink(path), 0);
    OK(vram_log_create(path, NULL, &log, NULL));
    OK(vram_log_close(log));
    assert_int_equal(mode_of(path), 0600);
}

static void random_names(void **state) {
    (void)state;
    char names[2][sizeof path + VR_NEW_FILE_EXTRA + 1];
    for (int i = 0; i < 2; i++) {
        FILE *file;
        OK(vr_os_file_create_temporary(victim, names[i], sizeof names[i], &file));
        assert_int_equal(fclose(file), 0);
    }
    assert_string_not_equal(names[0], names[1]);
    int descriptor = -2;
    assert_int_equal(vr_os_file_create(path, &descriptor), VRAM_IO);
    assert_int_equal(descriptor, -2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(snapshots, plant, clear),     cmocka_unit_test_setup_teardown(prometheus, plant, clear),
        cmocka_unit_test_setup_teardown(out_of_memory, plant, clear), cmocka_unit_test_setup_teardown(links_to_pipes, plant, clear),
        cmocka_unit_test_setup_teardown(recordings, plant, clear),    cmocka_unit_test_setup_teardown(random_names, plant, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
