// seeded.h: seeded faults: small programs with one mistake each. A program runs twice, once with the mistake and once corrected.
#ifndef VR_TEST_VERIFY_SEEDED_H
#define VR_TEST_VERIFY_SEEDED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "driver/driver.h"
#include "support/world.h"
#include "vram/vram.h"

#define EXPECT_OK(call) assert_int_equal(call, VRAM_OK)

struct seeded {
    const char *name;
    enum vram_fault_kind kind;
    const char *conf;                                // in addition to verify:True
    void (*run)(struct vr_world *world, bool wrong); // the mistake is made if `wrong`
    const char *stacks[3];                           // functions that the report must name, in the order of its stacks
};

extern const struct seeded wrong_writes[], wrong_frees[], late_uses[];
extern const size_t wrong_write_count, wrong_free_count, late_use_count;

// The functions that reports name. Defined with external linkage in test_verify_faults.c, so that no compiler merges them.
uint64_t allocate_buffer(struct vr_world *world, uint64_t bytes, uint64_t stream);
uint64_t allocate_in_pool(struct vram_pool *pool, uint64_t bytes, uint64_t stream);
enum vram_status free_buffer(struct vr_world *world, uint64_t address);
enum vram_status free_once_more(struct vr_world *world, uint64_t address);
void verify_all(struct vr_world *world);
// Writes bytes on a stream, like a kernel.
void write_bytes(struct vr_world *world, uint64_t address, uint64_t bytes, uint64_t stream);

#endif
