// Tests streams for programs that use only the public headers.
#include "support/expect.h"

#include "vram/sim.h"
#include "vram/vram.h"

static void a_stream_delays_the_reuse_of_a_block(void **state) {
    (void)state;
    struct vram_driver *driver = NULL;
    struct vram_allocator *allocator = NULL;
    uint64_t other = 0, first = 0, second = 0, third = 0;
    EXPECT_OK(vram_sim_create(&(struct vram_sim_options){.profile = VRAM_SIM_FREE}, &driver));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_sim_stream_create(driver, 0, &other)); // the device is not used yet
    EXPECT_OK(vram_create(&(struct vram_create_info){.driver = driver}, &allocator, NULL));
    EXPECT_OK(vram_malloc(allocator, 0, 1000, 0, &first));
    EXPECT_OK(vram_sim_stream_create(driver, 0, &other));
    assert_int_not_equal(other, 0);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_sim_stream_create(driver, 1, &other));

    EXPECT_OK(vram_sim_busy(driver, 0, other, 1000));
    EXPECT_OK(vram_record_stream(allocator, first, other));
    EXPECT_OK(vram_free(allocator, first));
    EXPECT_OK(vram_malloc(allocator, 0, 1000, 0, &second));
    assert_int_not_equal(second, first);
    EXPECT_OK(vram_sim_advance(driver, 1000));
    EXPECT_OK(vram_malloc(allocator, 0, 1000, 0, &third));
    assert_int_equal(third, first);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_stream_delays_the_reuse_of_a_block)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
