// table.h: a row of the tables in PyTorch's and NVIDIA's guides: allocated, active, inactive split and reserved GiB of the large pool, to
// three decimals. For cmocka programs only.
#ifndef VR_TEST_TABLE_H
#define VR_TEST_TABLE_H

#include <stdio.h>

#include "support/expect.h"

VR_INLINE void expect_row(struct vr_world *world, const char *tag, const char *expected) {
    const struct vram_stats stats = expect_stats(world);
    const int64_t bytes[] = {stats.allocated_bytes[VRAM_STAT_LARGE_POOL].current, stats.active_bytes[VRAM_STAT_LARGE_POOL].current,
                             stats.inactive_split_bytes[VRAM_STAT_LARGE_POOL].current, stats.reserved_bytes[VRAM_STAT_LARGE_POOL].current};
    char found[128] = "";
    for (size_t i = 0; i < VR_COUNT_OF(bytes); i++) {
        const size_t used = strlen(found);
        (void)snprintf(found + used, sizeof found - used, i ? " %.3f" : "%.3f", (double)bytes[i] / (double)VR_GIB);
    }
    if (strcmp(found, expected) != 0) print_error("%s:\n", tag);
    assert_string_equal(found, expected);
}

#endif
