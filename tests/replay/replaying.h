// replaying.h: replays of recordings of one device that must succeed. For cmocka programs only.
#ifndef VR_TEST_REPLAYING_H
#define VR_TEST_REPLAYING_H

#include "support/expect.h"

#include <stdio.h>

#include "vram/recording.h"
#include "vram/replay.h"

// Snapshots as text: a segment of 2 MiB with blocks, and a history.
#define SEGMENT(blocks)                                                                                                                    \
    "{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"blocks\":[" blocks  \
    "]}],"
#define BLOCK(address, size, state) "{\"address\":" #address ",\"size\":" #size ",\"requested_size\":" #size ",\"state\":\"" state "\"}"
#define TRACE(events)               "\"device_traces\":[[" events "]]}"
#define EVENT(name, address, size)  "{\"action\":\"" name "\",\"addr\":" #address ",\"size\":" #size ",\"stream\":0}"
#define WHOLE_FREE                  BLOCK(4194304, 2097152, "inactive")
#define ONE_USED                    BLOCK(4194304, 1024, "active_allocated") "," BLOCK(4195328, 2096128, "inactive")

VR_INLINE struct vram_recording *read_bytes(const char *bytes, size_t length) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {0};
    if (vram_recording_read_memory(bytes, length, "test", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    return recording;
}

VR_INLINE struct vram_recording *read_string(const char *json) { return read_bytes(json, strlen(json)); }

VR_INLINE bool to_stderr(void *user, const char *bytes, size_t length) {
    (void)user;
    return fwrite(bytes, 1, length, stderr) == length;
}

VR_INLINE struct vram_exact_result *exact(const struct vram_recording *recording) {
    struct vram_exact_result *result = NULL;
    struct vram_error error = {0};
    if (vram_replay_exact(recording, NULL, &result, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(result->device_count, 1);
    return result;
}

VR_INLINE enum vram_exact_verdict verdict_of_string(const char *json) {
    struct vram_recording *recording = read_string(json);
    struct vram_exact_result *result = exact(recording);
    const enum vram_exact_verdict verdict = result->devices[0].verdict;
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
    return verdict;
}

VR_INLINE struct vram_whatif_result *whatif(const struct vram_recording *recording, const struct vram_whatif_options *options) {
    struct vram_whatif_result *result = NULL;
    struct vram_error error = {0};
    if (vram_replay_whatif(recording, options, &result, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(result->device_count, 1);
    return result;
}

#endif
