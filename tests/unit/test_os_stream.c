#define _GNU_SOURCE
// Tests writing to special files: output to the program's own files goes where the program writes, and removes nothing. Also tests one-time
// initialization.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/once.h"
#include "os/os.h"
#include "support/expect.h"

static char path[64], name[64];

static int open_file(void **state) {
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/test_os_stream_XXXXXX");
    const int file = mkstemp(path);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", file);
    return file < 0;
}

static int remove_file(void **state) {
    (void)state;
    return remove(path);
}

static void a_log_keeps_what_it_has(void **state) {
    (void)state;
    const int file = (int)strtol(name + sizeof "/dev/fd/" - 1, NULL, 10);
    FILE *stream;
    assert_int_equal(write(file, "before ", 7), 7);
    assert_int_equal(vr_os_stream_open(name, &stream), VRAM_OK);
    assert_int_equal(fwrite("page ", 1, 5, stream), 5);
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(write(file, "after", 5), 5); // still open, positioned after the page
    char text[32] = "";
    assert_int_equal(pread(file, text, sizeof text - 1, 0), 17);
    assert_string_equal(text, "before page after");
    (void)close(file);
    assert_int_equal(vr_os_stream_open(name, &stream), VRAM_IO);
    assert_int_equal(errno, EBADF);
}

static void plain_files_are_made_elsewhere(void **state) {
    (void)state;
    static const char *const names[] = {"/dev/fd/",         "/dev/fd/x", "/dev/fd/1x", "/dev/fd/-1",
                                        "/dev/fd/99999999", "/dev/none", "",           "none/none"};
    FILE *stream;
    assert_int_equal(vr_os_stream_open(path, &stream), VRAM_UNSUPPORTED);
    for (size_t i = 0; i < VR_COUNT_OF(names); i++)
        assert_int_equal(vr_os_stream_open(names[i], &stream), i == 0 ? VRAM_IO : VRAM_UNSUPPORTED);
    assert_int_equal(vr_os_stream_open("/dev/null", &stream), VRAM_OK);
    assert_int_equal(fclose(stream), 0);
}

static void the_standard_streams(void **state) {
    (void)state;
    static const char *const names[] = {"/dev/stdout", "/dev/stderr"};
    for (int i = 0; i < 2; i++) {
        int pipe_ends[2];
        const int kept = dup(i + 1);
        FILE *stream;
        char text[8] = "";
        assert_int_equal(pipe(pipe_ends), 0);
        assert_int_equal(dup2(pipe_ends[1], i + 1), i + 1);
        const enum vram_status status = vr_os_stream_open(names[i], &stream);
        assert_int_equal(dup2(kept, i + 1), i + 1);
        assert_int_equal(status, VRAM_OK);
        assert_true(fputs("text", stream) >= 0 && fclose(stream) == 0);
        assert_int_equal(read(pipe_ends[0], text, sizeof text), 4);
        assert_string_equal(text, "text");
        (void)close(pipe_ends[0]), (void)close(pipe_ends[1]), (void)close(kept);
    }
}

static void a_pipe_that_nobody_reads_is_refused(void **state) {
    (void)state;
    FILE *stream;
    char text[8];
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)alarm(20); // instead of waiting forever
    assert_int_equal(vr_os_stream_open(path, &stream), VRAM_IO);
    assert_int_equal(errno, ENXIO);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(vr_os_stream_open(path, &stream), VRAM_OK);
    assert_int_equal(fcntl(fileno(stream), F_GETFL) & O_NONBLOCK, 0);
    assert_true(fputs("page", stream) >= 0 && fclose(stream) == 0);
    assert_int_equal(read(reader, text, sizeof text), 4);
    (void)close(reader);
    (void)alarm(0);
}

static int prepared;
static void prepare(void) { prepared++; }

// Forked while another thread was initializing: in the child, that thread never finishes.
static void what_a_lost_thread_began_is_done_anew(void **state) {
    static struct vr_once once, begun;
    (void)state;
    vr_once(&once, prepare);
    vr_once(&once, prepare);
    assert_int_equal(prepared, 1);
    atomic_store(&begun.state, vr_os_process_id() + 1);
    (void)alarm(20);
    vr_once(&begun, prepare);
    (void)alarm(0);
    assert_int_equal(prepared, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_log_keeps_what_it_has, open_file, remove_file),
        cmocka_unit_test_setup_teardown(plain_files_are_made_elsewhere, open_file, remove_file),
        cmocka_unit_test(the_standard_streams),
        cmocka_unit_test_setup_teardown(a_pipe_that_nobody_reads_is_refused, open_file, remove_file),
        cmocka_unit_test(what_a_lost_thread_began_is_done_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
