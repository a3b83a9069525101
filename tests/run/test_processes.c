// Tests vram_processes_find() with a stand-in for NVIDIA's management library (fake_nvml.c). Arguments: its path.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "vram/accounts.h"
#include "vram/oom.h"

static const char *fake;

// The whole device, a part of one, and one that the library does not know.
static const unsigned char whole[16] = {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11};
static const unsigned char part[16] = {0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22};
static const unsigned char other[16] = {0x33};

static enum vram_status ask(const char *library, const char *said, const unsigned char *uuid, const char *bus_id,
                            struct vram_processes *processes, struct vram_error *error) {
    (void)setenv("VRAM_NVML", library, 1);
    (void)setenv("FAKE_NVML", said, 1);
    *processes = (struct vram_processes){.count = 77};
    *error = (struct vram_error){.message = ""};
    return vram_processes_find(uuid, bus_id, processes, error);
}

static void devices_are_found_by_what_names_them(void **state) {
    (void)state;
    static struct vram_processes processes;
    struct vram_error error;
    const struct {
        const char *said;
        const unsigned char *uuid;
        const char *bus_id;
        enum vram_status status;
    } rows[] = {{"7:1", whole, NULL, VRAM_OK},
                {"7:1", part, NULL, VRAM_OK},
                {"7:1", other, NULL, VRAM_UNSUPPORTED},
                {"7:1", other, "0000:65:00.0", VRAM_OK},
                {"7:1", NULL, "0000:65:00.0", VRAM_OK},
                {"stranger 7:1", whole, "0000:65:00.0", VRAM_OK},
                {"7:1", NULL, "0000:66:00.0", VRAM_UNSUPPORTED},
                {"nowhere", whole, "0000:65:00.0", VRAM_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(ask(fake, rows[i].said, rows[i].uuid, rows[i].bus_id, &processes, &error), rows[i].status);
        assert_int_equal(processes.count, rows[i].status == VRAM_OK ? 1 : 77); // unchanged on failure
        if (rows[i].status != VRAM_OK) assert_string_equal(error.message, "NVML cannot find the device: Not Found");
    }
}

static void this_process_is_told_apart(void **state) {
    (void)state;
    static struct vram_processes processes;
    struct vram_error error;
    assert_int_equal(ask(fake, "4000000001:5 self:70 draws:self:80", whole, NULL, &processes, &error), VRAM_OK);
    assert_true(processes.has_self);
    assert_int_equal(processes.self_bytes, 80);
    assert_int_equal(processes.count, 1);
    assert_int_equal(ask(fake, "self:-", whole, NULL, &processes, &error), VRAM_OK);
    assert_true(processes.has_self && processes.self_bytes == VRAM_NOT_KNOWN && processes.count == 0);
    assert_int_equal(ask(fake, "4000000001:5", whole, NULL, &processes, &error), VRAM_OK);
    assert_false(processes.has_self);
}

static void what_is_not_there_is_said(void **state) {
    (void)state;
    static struct vram_processes processes;
    struct vram_error error;
    assert_int_equal(ask("/nowhere/libnvidia-ml.so.1", "", whole, NULL, &processes, &error), VRAM_UNSUPPORTED);
    assert_memory_equal(error.message, "NVML is not available: ", 23);
    assert_int_equal(ask("libm.so.6", "", whole, NULL, &processes, &error), VRAM_UNSUPPORTED);
    assert_string_equal(error.message, "libm.so.6 is not NVIDIA's management library");
    assert_int_equal(ask(fake, "no-init", whole, NULL, &processes, &error), VRAM_UNSUPPORTED);
    assert_int_equal(ask(fake, "fails", whole, NULL, &processes, &error), VRAM_DRIVER);
    assert_int_equal(processes.count, 77);
    assert_int_equal(vram_processes_find(NULL, NULL, &processes, &error), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_processes_find(whole, NULL, NULL, NULL), VRAM_INVALID_ARGUMENT);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    fake = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_found_by_what_names_them),
        cmocka_unit_test(this_process_is_told_apart),
        cmocka_unit_test(what_is_not_there_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
