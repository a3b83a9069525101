// waits.h: makes one stream wait for another, like torch.cuda.Stream.wait_stream(). For cmocka programs only.
#ifndef VR_TEST_WAITS_H
#define VR_TEST_WAITS_H

#include "driver/driver.h"
#include "support/expect.h"

// Orders the later work of `stream` after the present work of `other`. In a capture this forks and joins.
VR_INLINE void expect_wait_stream(struct vr_world *world, uint64_t stream, uint64_t other) {
    uint64_t event = 0;
    assert_int_equal(vr_cu(world->sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, event_record, event, other), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, stream_wait_event, stream, event, 0), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, event_destroy, event), VR_CU_SUCCESS);
}

#endif
