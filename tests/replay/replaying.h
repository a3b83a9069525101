// replaying.h: replays that must succeed, of recordings of one device. For cmocka programs only.
#ifndef VR_TEST_REPLAYING_H
#define VR_TEST_REPLAYING_H

#include "support/expect.h"
#include "vram/recording.h"
#include "vram/replay.h"

VR_INLINE struct vram_recording *read_bytes(const char *bytes, size_t length) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {0};
    if (vram_recording_read_memory(bytes, length, "test", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    return recording;
}

VR_INLINE struct vram_exact_result *exact(const struct vram_recording *recording) {
    struct vram_exact_result *result = NULL;
    struct vram_error error = {0};
    if (vram_replay_exact(recording, NULL, &result, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(result->device_count, 1);
    return result;
}

VR_INLINE struct vram_whatif_result *whatif(const struct vram_recording *recording, const struct vram_whatif_options *options) {
    struct vram_whatif_result *result = NULL;
    struct vram_error error = {0};
    if (vram_replay_whatif(recording, options, &result, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(result->device_count, 1);
    return result;
}

#endif
