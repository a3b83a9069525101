// Refuses one allocation after another during replays and snapshots: the failure is reported, and never becomes a verdict.
#include "replay/replaying.h"

#include <unistd.h>

#include "vram/log.h"

// Wraps every allocation of the process.
#define STANDS_IN __attribute__((visibility("default")))
extern void *__libc_malloc(size_t size_bytes);
extern void *__libc_calloc(size_t count, size_t size_bytes);
extern void *__libc_realloc(void *old, size_t size_bytes);

static long to_go = -1; // allocations granted before one is refused; -1: all

static bool refused(void) { return to_go >= 0 && to_go-- == 0; }

STANDS_IN void *malloc(size_t size_bytes) { return refused() ? NULL : __libc_malloc(size_bytes); }
STANDS_IN void *calloc(size_t count, size_t size_bytes) { return refused() ? NULL : __libc_calloc(count, size_bytes); }
STANDS_IN void *realloc(void *old, size_t size_bytes) { return refused() ? NULL : __libc_realloc(old, size_bytes); }

// The second one differs, so it is replayed several times with other initial memories.
static const char *const recordings[] = {
    SEGMENT(ONE_USED) TRACE(EVENT("segment_alloc", 4194304, 2097152) "," EVENT("alloc", 4194304, 1024)),
    "{\"segments\":[{\"device\":0,\"address\":33554432,\"total_size\":20971520,\"stream\":0,\"segment_type\":\"large\",\"is_expandable\":"
    "true,"
    "\"blocks\":[" BLOCK(33554432, 2097152, "inactive") "," BLOCK(35651584, 2097152, "active_allocated") "," BLOCK(
        37748736, 16777216, "inactive") "]}],"
                                        "\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"expandable_segments:True\"}," TRACE(
                                            EVENT("segment_map", 33554432, 20971520) "," EVENT("alloc", 35651584, 2097152)),
};

// Checks that a result may only be missing, not wrong.
static void replays_without_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(recordings); i++) {
        struct vram_recording *recording = read_string(recordings[i]);
        struct vram_exact_result *whole = exact(recording);
        assert_int_equal(whole->devices[0].verdict, i == 0 ? VRAM_EXACT_EQUAL : VRAM_EXACT_DIFFERENT);
        bool all_granted = false;
        for (long granted = 0; !all_granted; granted++) {
            struct vram_exact_result *result = NULL;
            to_go = granted;
            const enum vram_status status = vram_replay_exact(recording, NULL, &result, NULL);
            all_granted = to_go >= 0;
            to_go = -1;
            if (status != VRAM_OK) {
                EXPECT_STATUS(NO_HOST_MEMORY, status);
                assert_null(result);
                continue;
            }
            assert_int_equal(result->devices[0].verdict, whole->devices[0].verdict);
            assert_int_equal(result->devices[0].difference_count, whole->devices[0].difference_count);
            assert_int_equal(result->devices[0].segment_events_agreeing, whole->devices[0].segment_events_agreeing);
            vram_exact_result_destroy(result);
        }
        vram_exact_result_destroy(whole);
        vram_recording_destroy(recording);
    }
}

static void pictures_without_memory(void **state) {
    (void)state;
    char path[64];
    const struct vram_log_block block = {0x1200, 512, 500, 0, VRAM_BLOCK_ALLOCATED};
    const struct vram_log_segment segment = {.address = 0x1000, .size_bytes = 4096, .blocks = &block, .block_count = 1};
    (void)snprintf(path, sizeof path, "test_replay_memory.%d.vram", (int)getpid());
    bool all_granted = false;
    for (long granted = 0; !all_granted; granted++) {
        const struct vram_log_options options = {.replace = true};
        struct vram_log *log = NULL;
        EXPECT_OK(vram_log_create(path, &options, &log, NULL));
        to_go = granted;
        const enum vram_status status = vram_log_state(log, &segment, 1);
        all_granted = to_go >= 0;
        to_go = -1;
        if (status != VRAM_OK) EXPECT_STATUS(NO_HOST_MEMORY, status);
        (void)!vram_log_close(log);
    }
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(replays_without_memory), cmocka_unit_test(pictures_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
