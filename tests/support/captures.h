// captures.h: creates pools for graphs, captures into them, and work. For cmocka programs only.
#ifndef VR_TEST_CAPTURES_H
#define VR_TEST_CAPTURES_H

#include "support/waits.h"
#include "vram/pool.h"
#include "vram/sim.h"

VR_INLINE struct vram_pool *expect_graph_pool(struct vr_world *world) {
    const struct vram_pool_options options = {.for_graph = true};
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, &options, &pool));
    return pool;
}

VR_INLINE void kernel(struct vr_world *world, uint64_t stream) { EXPECT_OK(vram_sim_launch(world->sim, 0, stream, NULL, NULL, 10)); }

VR_INLINE uint64_t new_stream(struct vr_world *world) {
    uint64_t stream = 0;
    assert_int_equal(vr_cu(world->sim, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), VR_CU_SUCCESS);
    return stream;
}

VR_INLINE void begin(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode) {
    EXPECT_OK(vram_capture_begin(pool, stream, mode, NULL));
}

VR_INLINE void end(struct vr_world *world, struct vram_pool *pool, uint64_t stream) {
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(pool, stream, &graph, NULL));
    assert_int_equal(vr_cu(world->sim, graph_destroy, graph), VR_CU_SUCCESS);
}

#endif
