// history.h: for tests of histories: opens a machine with a history, and parses its snapshots.
#ifndef VR_TEST_HISTORY_H
#define VR_TEST_HISTORY_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/recording.h"
#include "support/world.h"
#include "vram/history.h"
#include "vram/replay.h"
#include "vram/snapshot.h"

#define OK(call) assert_int_equal((call), VRAM_OK)

// Opens a machine without another listener.
static inline void history_world(struct vr_world *world, const char *conf, uint32_t devices, uint64_t memory_bytes) {
    const struct vr_world_options options = {
        .sim = {.device_count = devices, .memory_bytes = memory_bytes}, .conf = conf, .without_record = true};
    OK(vr_world_open(world, &options));
}

static inline void history_end(struct vr_world *world) { assert_int_equal(vr_world_close(world), 0); }

static inline uint64_t take(struct vr_world *world, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    OK(vram_malloc(world->allocator, 0, size_bytes, stream, &address));
    return address;
}

static inline void give(struct vr_world *world, uint64_t address) { OK(vram_free(world->allocator, address)); }

static inline void start(struct vr_world *world, const struct vram_history_options *options) {
    struct vram_error error = {.message = ""};
    const enum vram_status status = vram_history_start(world->allocator, options, &error);
    if (status != VRAM_OK) fail_msg("%s", error.message);
}

static inline struct vram_recording *snap(struct vr_world *world, const struct vram_snapshot_options *options) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {.message = ""};
    if (vram_snapshot(world->allocator, options, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    OK(vr_model_check(vr_recording_model(recording), &error));
    return recording;
}

static inline const struct vr_model *model_of(const struct vram_recording *recording) { return vr_recording_model(recording); }

// Checks that every device of the recording replays exactly, including addresses.
static inline void expect_exact(const struct vram_recording *recording) {
    struct vram_exact_result *result = NULL;
    struct vram_error error = {.message = ""};
    if (vram_replay_exact(recording, NULL, &result, &error) != VRAM_OK) fail_msg("%s", error.message);
    for (size_t i = 0; i < result->device_count; i++) {
        const enum vram_exact_verdict verdict = result->devices[i].verdict;
        if (verdict != VRAM_EXACT_EQUAL) fail_msg("device %u: %s", result->devices[i].device, vram_exact_verdict_name(verdict));
    }
    vram_exact_result_destroy(result);
}

struct want {
    enum vr_action action;
    uint64_t address;
    uint64_t size_bytes;
};
static inline void expect_events(const struct vram_recording *recording, size_t device, const struct want *want, size_t count) {
    const struct vr_history *history = &model_of(recording)->histories[device];
    for (size_t i = 0; i < count && i < history->count; i++) {
        if (history->action[i] == want[i].action && history->address[i] == want[i].address && history->size_bytes[i] == want[i].size_bytes)
            continue;
        fail_msg("event %zu is %s at %#llx of %llu, not %s at %#llx of %llu", i, vr_action_name((enum vr_action)history->action[i]),
                 (unsigned long long)history->address[i], (unsigned long long)history->size_bytes[i], vr_action_name(want[i].action),
                 (unsigned long long)want[i].address, (unsigned long long)want[i].size_bytes);
    }
    assert_int_equal(history->count, count);
}
#define EXPECT_EVENTS(recording, device, ...)                                                                                              \
    expect_events((recording), (device), (const struct want[]){__VA_ARGS__}, VR_COUNT_OF(((const struct want[]){__VA_ARGS__})))

#endif
