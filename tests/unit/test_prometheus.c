// Tests statistics for Prometheus: the text, the file that is always complete, the variable, forks.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/text.h"
#include "support/world.h"
#include "vram/stats.h"

#define OK(call) assert_int_equal((call), VRAM_OK)

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static bool refuse(void *user, const char *bytes, size_t length) {
    (void)user, (void)bytes, (void)length;
    return false;
}

static void expect_line(const char *text, const char *line) {
    const char *found = strstr(text, line);
    if (found == NULL || (found != text && found[-1] != '\n') || found[strlen(line)] != '\n') fail_msg("no line '%s' in:\n%s", line, text);
}

static void open_world(struct vr_world *world) {
    const struct vr_world_options options = {.sim = {.device_count = 2}, .conf = "", .without_record = true};
    OK(vr_world_open(world, &options));
}

static void numbers_are_those_of_the_statistics(void **state) {
    (void)state;
    struct vr_world world;
    struct vr_text text = {0};
    uint64_t small, large;
    open_world(&world);
    OK(vram_malloc(world.allocator, 0, 1000, 0, &small));
    OK(vram_malloc(world.allocator, 0, 3 * VR_MIB, 0, &large));
    OK(vram_free(world.allocator, large));
    OK(vram_prometheus_write(world.allocator, append, &text));
    expect_line(text.bytes, "# TYPE vram_allocated_bytes gauge");
    expect_line(text.bytes, "vram_allocated_bytes{device=\"0\",pool=\"small\"} 1024");
    expect_line(text.bytes, "vram_allocated_bytes{device=\"0\",pool=\"large\"} 0");
    expect_line(text.bytes, "vram_requested_bytes{device=\"0\",pool=\"small\"} 1000");
    expect_line(text.bytes, "vram_reserved_bytes{device=\"0\",pool=\"small\"} 2097152");
    expect_line(text.bytes, "vram_reserved_bytes{device=\"0\",pool=\"large\"} 20971520");
    expect_line(text.bytes, "vram_peak_allocated_bytes{device=\"0\"} 3146752");
    expect_line(text.bytes, "# TYPE vram_freed_bytes_total counter");
    expect_line(text.bytes, "vram_freed_bytes_total{device=\"0\",pool=\"large\"} 3145728");
    expect_line(text.bytes, "vram_allocations_total{device=\"0\",pool=\"large\"} 1");
    expect_line(text.bytes, "vram_device_allocs_total{device=\"0\"} 2");
    // An unused device is not listed.
    assert_null(strstr(text.bytes, "device=\"1\""));
    assert_int_equal(vram_prometheus_write(world.allocator, refuse, NULL), VRAM_IO);
    vr_text_release(&text);
    assert_int_equal(vr_world_close(&world), 0);
}

static char *read_file(const char *path) {
    static char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    (void)fclose(file);
    return bytes;
}

// Waits for the line to appear in the file, which must be complete at every check.
static void wait_for(const char *path, const char *line) {
    for (int i = 0; i < 2000; i++) {
        const char *text = read_file(path);
        assert_non_null(text);
        assert_non_null(strstr(text, "vram_device_frees_total{"));
        if (strstr(text, line) != NULL) return;
        (void)usleep(5000);
    }
    fail_msg("'%s' did not appear", line);
}

static void a_file_follows_the_program(void **state) {
    (void)state;
    struct vr_world world;
    char pattern[] = "vram_prometheus_%p.prom", path[64];
    const struct vram_prometheus_options options = {.file = pattern, .interval_ns = 2000000};
    uint64_t address;
    (void)snprintf(path, sizeof path, "vram_prometheus_%d.prom", (int)getpid());
    open_world(&world);
    OK(vram_malloc(world.allocator, 0, 512, 0, &address));
    OK(vram_prometheus_start(world.allocator, &options, NULL));
    wait_for(path, "vram_allocations{device=\"0\",pool=\"small\"} 1\n");
    OK(vram_free(world.allocator, address));
    wait_for(path, "vram_allocations{device=\"0\",pool=\"small\"} 0\n");
    // A second start replaces the first. The final state is written, however long the interval is.
    const struct vram_prometheus_options slow = {.file = path, .interval_ns = (uint64_t)3600 * 1000000000};
    OK(vram_prometheus_start(world.allocator, &slow, NULL));
    OK(vram_malloc(world.allocator, 0, 512, 0, &address));
    OK(vram_free(world.allocator, address));
    vram_prometheus_stop(world.allocator);
    vram_prometheus_stop(world.allocator);
    assert_non_null(strstr(read_file(path), "vram_frees_total{device=\"0\",pool=\"small\"} 2\n"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(vr_world_close(&world), 0);
}

static void a_child_leaves_the_file_alone(void **state) {
    (void)state;
    struct vr_world world;
    int status;
    const char *path = "vram_prometheus_fork.prom";
    const struct vram_prometheus_options options = {.file = path, .interval_ns = (uint64_t)3600 * 1000000000};
    open_world(&world);
    OK(vram_prometheus_start(world.allocator, &options, NULL));
    assert_int_equal(unlink(path), 0);
    const pid_t child = fork();
    if (child == 0) {
        vram_prometheus_stop(world.allocator);
        _exit(access(path, F_OK) == 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    vram_prometheus_stop(world.allocator);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(vr_world_close(&world), 0);
}

static void the_variable(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum vram_status status;
    } rows[] = {
        {"", VRAM_OK},
        {"off", VRAM_OK},
        {"vram_prometheus_env.prom,interval=500ms", VRAM_OK},
        {"vram_prometheus_env.prom", VRAM_OK},
        {"vram_prometheus_env.prom,interval=0s", VRAM_BAD_OPTION},
        {"vram_prometheus_env.prom,interval=5h", VRAM_BAD_OPTION},
        {"vram_prometheus_env.prom,every=5s", VRAM_BAD_OPTION},
        {"vram_%q.prom", VRAM_INVALID_ARGUMENT},
        {"no/such/folder/x.prom", VRAM_IO},
    };
    struct vr_world world;
    open_world(&world);
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct vram_allocator *allocator = NULL;
        struct vram_error error;
        const struct vram_create_info info = {.driver = world.sim};
        assert_int_equal(setenv("VRAM_PROMETHEUS", rows[i].text, 1), 0);
        assert_int_equal(vram_create(&info, &allocator, &error), rows[i].status);
        if (rows[i].status == VRAM_OK) vram_destroy(allocator);
        const bool written = access("vram_prometheus_env.prom", F_OK) == 0;
        assert_int_equal(written, rows[i].status == VRAM_OK && rows[i].text[0] == 'v');
        if (written) assert_int_equal(unlink("vram_prometheus_env.prom"), 0);
    }
    assert_int_equal(unsetenv("VRAM_PROMETHEUS"), 0);
    assert_int_equal(vr_world_close(&world), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_statistics),
        cmocka_unit_test(a_file_follows_the_program),
        cmocka_unit_test(a_child_leaves_the_file_alone),
        cmocka_unit_test(the_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
