// Tests releasing address space when the process has as many mappings as the system allows.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/os.h"

enum { RANGE = 1 << 20, RANGES = 8, MAPPINGS_MOST = 1 << 20 };

// Creates mappings until the system refuses one. Neighbours have different protections, so that they are not merged.
static bool use_up_mappings(void) {
    for (size_t i = 0; i < MAPPINGS_MOST; i++) {
        if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return true;
    }
    return false;
}

// Runs in a separate process. Returns 77 if the system has no reachable limit.
static int give_back_reserved(void) {
    unsigned char *base[RANGES];
    for (size_t i = 0; i < RANGES; i++) {
        if (vr_os_reserve(RANGE, (void **)&base[i]) != VRAM_OK) return 2;
        base[i][0] = 7;
    }
    if (!use_up_mappings()) return 77;
    // The kernel has merged the ranges: removing one in the middle needs another mapping.
    for (size_t i = 1; i < RANGES; i += 2) vr_os_unreserve(base[i], RANGE);
    for (size_t i = 0; i < RANGES; i += 2) {
        if (base[i][0] != 7) return 3;
    }
    return 0;
}

static int give_back_mapped(void) {
    uint64_t address[RANGES], free_range = 0;
    if (vr_os_map(0, RANGES * (uint64_t)RANGE, 4096, true, &free_range) != VRAM_OK) return 2;
    vr_os_unmap(free_range, RANGES * (uint64_t)RANGE);
    for (size_t i = 0; i < RANGES; i++) {
        if (vr_os_map(free_range + i * RANGE, RANGE, 4096, true, &address[i]) != VRAM_OK) return 2;
        *(unsigned char *)(uintptr_t)address[i] = 7;
    }
    if (!use_up_mappings()) return 77;
    for (size_t i = 1; i < RANGES; i += 2) vr_os_unmap(address[i], RANGE);
    for (size_t i = 0; i < RANGES; i += 2) {
        if (*(unsigned char *)(uintptr_t)address[i] != 7) return 3;
    }
    return 0;
}

static void assert_ends_well(int (*work)(void)) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(work());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("ended with status %d", status);
}

static void reserved_ranges_go_without_a_mapping_to_spare(void **state) {
    (void)state;
    assert_ends_well(give_back_reserved);
}

static void mapped_ranges_go_without_a_mapping_to_spare(void **state) {
    (void)state;
    assert_ends_well(give_back_mapped);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserved_ranges_go_without_a_mapping_to_spare),
        cmocka_unit_test(mapped_ranges_go_without_a_mapping_to_spare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
