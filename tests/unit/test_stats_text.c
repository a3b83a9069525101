// Compares both texts of the statistics with text written by hand from PyTorch's rules.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "vram/stats.h"

static void set(struct vram_stat *stat, int64_t current, int64_t peak, int64_t allocated, int64_t freed) {
    *stat = (struct vram_stat){current, peak, allocated, freed};
}

static struct vram_stats sample(void) {
    struct vram_stats stats;
    memset(&stats, 0, sizeof stats);
    set(&stats.allocated_bytes[VRAM_STAT_ALL], 786431, 786432, 805306368, 1 << 20);
    set(&stats.allocated_bytes[VRAM_STAT_LARGE_POOL], 512, 786432, 805306367, 0);
    set(&stats.allocated_bytes[VRAM_STAT_SMALL_POOL], 785919, 1023, 1, 1 << 20);
    set(&stats.reserved_bytes[VRAM_STAT_ALL], (int64_t)80 << 30, (int64_t)767 << 30, (int64_t)768 << 30, (int64_t)900 << 40);
    set(&stats.allocation[VRAM_STAT_ALL], 749999, 750000, 749999999, 750000000);
    set(&stats.allocation[VRAM_STAT_LARGE_POOL], 1, 999, 1000, 999999999);
    set(&stats.oversize_segments, 1, 750000, 750000000, 0);
    stats.num_ooms = 3;
    stats.num_alloc_retries = 14;
    stats.max_split_size = -1;
    return stats;
}

static const char summary[] = "|===========================================================================|\n"
                              "|                  vram: CUDA memory summary, device ID  1                  |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "|            CUDA OOMs: 3            |        cudaMalloc retries: 14        |\n"
                              "|===========================================================================|\n"
                              "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Allocated memory      | 786431 B   |    768 KiB |    768 MiB |   1024 KiB |\n"
                              "|       from large pool |    512 B   |    768 KiB |    767 MiB |      0 KiB |\n"
                              "|       from small pool | 785919 B   |      0 KiB |      0 MiB |   1024 KiB |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Active memory         |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|       from large pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Requested memory      |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|       from large pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| GPU reserved memory   |  81920 MiB | 785408 MiB |    768 GiB |    900 TiB |\n"
                              "|       from large pool |      0 MiB |      0 MiB |      0 GiB |      0 TiB |\n"
                              "|       from small pool |      0 MiB |      0 MiB |      0 GiB |      0 TiB |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Non-releasable memory |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|       from large pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Allocations           |  749999    |     750 K  |  749999 K  |     750 M  |\n"
                              "|       from large pool |       1    |       0 K  |       1 K  |     999 M  |\n"
                              "|       from small pool |       0    |       0 K  |       0 K  |       0 M  |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Active allocs         |       0    |       0    |       0    |       0    |\n"
                              "|       from large pool |       0    |       0    |       0    |       0    |\n"
                              "|       from small pool |       0    |       0    |       0    |       0    |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| GPU reserved segments |       0    |       0    |       0    |       0    |\n"
                              "|       from large pool |       0    |       0    |       0    |       0    |\n"
                              "|       from small pool |       0    |       0    |       0    |       0    |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Non-releasable allocs |       0    |       0    |       0    |       0    |\n"
                              "|       from large pool |       0    |       0    |       0    |       0    |\n"
                              "|       from small pool |       0    |       0    |       0    |       0    |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Oversize allocations  |       0    |       0    |       0    |       0    |\n"
                              "|---------------------------------------------------------------------------|\n"
                              "| Oversize GPU segments |       1    |     750 K  |     750 M  |       0    |\n"
                              "|===========================================================================|\n";

static void assert_same_text(const char *text, const char *wanted) {
    size_t same = 0;
    while (text[same] != '\0' && text[same] == wanted[same]) same++;
    if (text[same] != wanted[same]) fail_msg("at byte %zu: got\n%.150s\nwanted\n%.150s", same, text + same, wanted + same);
}

static void the_summary_is_pytorchs_table(void **state) {
    (void)state;
    const struct vram_stats stats = sample();
    char text[8192];
    assert_int_equal(vram_stats_summary(&stats, 1, 0, text, sizeof text), sizeof summary - 1);
    assert_same_text(text, summary);
}

static void an_abbreviated_summary_has_no_pools(void **state) {
    (void)state;
    const struct vram_stats stats = sample();
    char text[8192], wanted[8192];
    size_t length = 0;
    for (const char *line = summary; *line != '\0'; line = strchr(line, '\n') + 1) {
        const size_t bytes = (size_t)(strchr(line, '\n') - line) + 1;
        assert_int_equal(bytes, 78);
        if (strncmp(line + 1, "       from", 11) == 0) continue;
        memcpy(wanted + length, line, bytes);
        length += bytes;
    }
    wanted[length] = '\0';
    assert_int_equal(vram_stats_summary(&stats, 1, 1, text, sizeof text), length);
    assert_same_text(text, wanted);
}

// Keys are in byte order, and every counter of the struct has its own value.
static void json_has_every_flat_key_once_and_sorted(void **state) {
    (void)state;
    struct vram_stats stats;
    int64_t *numbers = (int64_t *)&stats;
    const size_t count = sizeof stats / sizeof(int64_t);
    for (size_t i = 0; i < count; i++) numbers[i] = (int64_t)i - 5;
    char text[16384], previous[96] = "";
    assert_true(vram_stats_json(&stats, text, sizeof text) < sizeof text);
    bool *seen = calloc(count, sizeof *seen);
    assert_non_null(seen);
    assert_memory_equal(text, "{\n", 2);
    size_t members = 0;
    const char *line = text + 2;
    for (; *line == ' '; line = strchr(line, '\n') + 1, members++) {
        char key[96];
        long long value;
        assert_int_equal(sscanf(line, "  \"%95[^\"]\": %lld", key, &value), 2);
        assert_true(strcmp(previous, key) < 0);
        memcpy(previous, key, sizeof previous);
        assert_in_range(value + 5, 0, count - 1);
        assert_false(seen[value + 5]);
        seen[value + 5] = true;
    }
    assert_string_equal(line, "}\n");
    assert_int_equal(members, count);
    assert_int_equal(members, 9 * 12 + 7 + 2 * 4 + 1); // the last is moved_bytes
    free(seen);
}

// Every key of torch.cuda.memory_stats() in PyTorch 2.15 but the pools' own, and one of ours.
static void json_names_are_pytorchs(void **state) {
    (void)state;
    static const char *const families[] = {"active",          "active_bytes",   "allocated_bytes",
                                           "allocation",      "inactive_split", "inactive_split_bytes",
                                           "requested_bytes", "reserved_bytes", "segment"};
    static const char *const pools[] = {".all", ".large_pool", ".small_pool"}, *const numbers[] = {".allocated", ".current", ".freed",
                                                                                                   ".peak"};
    static const char *const others[] = {"max_split_size",       "moved_bytes",      "num_alloc_retries",  "num_device_alloc",
                                         "num_device_free",      "num_ooms",         "num_oom_rejections", "num_sync_all_streams",
                                         "oversize_allocations", "oversize_segments"};
    struct vram_stats stats = sample();
    stats.moved_bytes = 1; // written where it is not 0
    char text[16384], wanted[96];
    assert_true(vram_stats_json(&stats, text, sizeof text) < sizeof text);
    size_t count = 0;
    for (size_t f = 0; f < VR_COUNT_OF(families) * VR_COUNT_OF(pools) * VR_COUNT_OF(numbers); f++, count++) {
        (void)snprintf(wanted, sizeof wanted, "\"%s%s%s\": ", families[f / 12], pools[f / 4 % 3], numbers[f % 4]);
        assert_non_null(strstr(text, wanted));
    }
    for (size_t o = 0; o < VR_COUNT_OF(others); o++) {
        const bool oversize = strncmp(others[o], "oversize", 8) == 0;
        for (size_t n = 0; n < (oversize ? VR_COUNT_OF(numbers) : 1); n++, count++) {
            (void)snprintf(wanted, sizeof wanted, "\"%s%s\": ", others[o], oversize ? numbers[n] : "");
            assert_non_null(strstr(text, wanted));
        }
    }
    size_t colons = 0;
    for (const char *colon = strchr(text, ':'); colon != NULL; colon = strchr(colon + 1, ':')) colons++;
    assert_int_equal(colons, count); // and no other
}

static void json_values_stand_at_their_keys(void **state) {
    (void)state;
    const struct vram_stats stats = sample();
    char text[16384];
    assert_true(vram_stats_json(&stats, text, sizeof text) < sizeof text);
    static const char *const members[] = {
        "\"allocated_bytes.all.allocated\": 805306368,",
        "\"allocated_bytes.all.current\": 786431,",
        "\"allocated_bytes.all.freed\": 1048576,",
        "\"allocated_bytes.all.peak\": 786432,",
        "\"allocated_bytes.large_pool.current\": 512,",
        "\"allocated_bytes.small_pool.current\": 785919,",
        "\"allocation.all.peak\": 750000,",
        "\"max_split_size\": -1,",
        "\"num_ooms\": 3,",
        "\"num_alloc_retries\": 14,",
        "\"oversize_segments.current\": 1,",
        "\"reserved_bytes.all.current\": 85899345920,",
    };
    for (size_t i = 0; i < VR_COUNT_OF(members); i++)
        if (strstr(text, members[i]) == NULL) fail_msg("no %s in %s", members[i], text);
    assert_non_null(strstr(text, "\"segment.small_pool.peak\": 0\n}\n"));
}

// Any capacity gives a NUL-terminated prefix and the full length.
static void texts_are_cut_to_the_capacity(void **state) {
    (void)state;
    const struct vram_stats stats = sample();
    static char whole[2][16384], cut[16384];
    const size_t lengths[2] = {vram_stats_json(&stats, whole[0], sizeof whole[0]),
                               vram_stats_summary(&stats, 0, 0, whole[1], sizeof whole[1])};
    assert_int_equal(vram_stats_json(&stats, NULL, 0), lengths[0]);
    assert_int_equal(vram_stats_summary(&stats, 0, 0, NULL, 0), lengths[1]);
    for (int which = 0; which < 2; which++) {
        assert_int_equal(strlen(whole[which]), lengths[which]);
        for (size_t capacity = 1; capacity <= lengths[which] + 2; capacity += capacity < 200 ? 1 : 97) {
            memset(cut, '#', sizeof cut);
            const size_t wanted = which == 0 ? vram_stats_json(&stats, cut, capacity) : vram_stats_summary(&stats, 0, 0, cut, capacity);
            assert_int_equal(wanted, lengths[which]);
            const size_t kept = capacity - 1 < wanted ? capacity - 1 : wanted;
            assert_memory_equal(cut, whole[which], kept);
            assert_int_equal(cut[kept], '\0');
            assert_int_equal(cut[capacity], '#');
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_summary_is_pytorchs_table),           cmocka_unit_test(an_abbreviated_summary_has_no_pools),
        cmocka_unit_test(json_has_every_flat_key_once_and_sorted), cmocka_unit_test(json_names_are_pytorchs),
        cmocka_unit_test(json_values_stand_at_their_keys),         cmocka_unit_test(texts_are_cut_to_the_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
