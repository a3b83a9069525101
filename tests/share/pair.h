// pair.h: this process's machine, with a fault driver, and the other process.
#ifndef VR_TEST_PAIR_H
#define VR_TEST_PAIR_H

#include "other.h"
#include "support/expect.h"

static const char *const confs[] = {"", "expandable_segments:True"};

struct pair {
    struct vr_world here;
    struct other there;
};

VR_INLINE void open_pair(struct pair *pair, const char *conf) {
    const struct vr_world_options options = {
        .sim = {.device_count = 2, .memory_bytes = VR_GIB, .backed = true}, .conf = conf, .faults = true};
    EXPECT_OK(vr_world_open(&pair->here, &options));
    assert_true(other_start(&pair->there, conf));
}

VR_INLINE struct other_reply ask(struct pair *pair, const struct other_order *order) {
    const struct other_reply reply = other_do(&pair->there, order);
    if (reply.status != VRAM_OK) fail_msg("order %d: %s %s", (int)order->what, vram_status_name(reply.status), reply.message);
    return reply;
}

VR_INLINE uint64_t get_there(struct pair *pair, uint64_t size_bytes) {
    return ask(pair, &(struct other_order){.what = OTHER_MALLOC, .size_bytes = size_bytes}).address;
}

// Closes both and checks that nothing is left on either side.
VR_INLINE void close_pair(struct pair *pair) {
    assert_int_equal(ask(pair, &(struct other_order){.what = OTHER_END}).left, 0);
    other_stop(&pair->there, 0);
    expect_end(&pair->here);
}

VR_INLINE struct vram_imported import_here(struct pair *pair, const struct other_reply *exported) {
    struct vram_imported imported = {.address = 0};
    struct vram_error error = {.message = ""};
    const enum vram_status status = vram_import(pair->here.allocator, exported->handle, exported->handle_bytes, &imported, &error);
    if (status != VRAM_OK) fail_msg("%s: %s", vram_status_name(status), error.message);
    assert_int_not_equal(imported.address, 0);
    return imported;
}

VR_INLINE struct vram_share_stats stats_here(struct pair *pair) {
    struct vram_share_stats stats;
    vram_get_share_stats(pair->here.allocator, &stats);
    return stats;
}

#endif
