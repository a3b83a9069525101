// without_gpu.c: tests a program that embeds the allocator without a GPU, on a simulated driver: the test decides when work completes,
// counts the driver's calls, and makes any of them fail.
#include <stdio.h>
#include <vram/sim.h>
#include <vram/vram.h>

#define MIB (1ull << 20)

// The code under test: allocates two buffers, or none.
static enum vram_status take_two(struct vram_allocator *allocator, uint64_t buffer[2]) {
    enum vram_status status = vram_malloc(allocator, 0, 30 * MIB, 0, &buffer[0]);
    if (status != VRAM_OK) return status;
    status = vram_malloc(allocator, 0, 50 * MIB, 0, &buffer[1]);
    if (status != VRAM_OK) vram_free(allocator, buffer[0]);
    return status;
}

// Makes each driver call fail in turn. Nothing may stay live, whatever the status.
static int test_failures(struct vram_driver *inner) {
    struct vram_driver *driver;
    int refused = 0;
    if (vram_driver_fault(inner, &driver) != VRAM_OK) return 1;
    for (uint64_t nth = 1; nth < 1000; nth++) {
        struct vram_allocator *allocator;
        uint64_t buffer[2];
        if (vram_create(&(struct vram_create_info){.driver = driver}, &allocator, NULL) != VRAM_OK) return 1;
        if (vram_driver_fault_set(driver, NULL, nth, 2 /* CUDA_ERROR_OUT_OF_MEMORY */) != VRAM_OK) return 1;
        const uint64_t failed_before = vram_driver_fault_count(driver);
        const enum vram_status status = take_two(allocator, buffer);
        const bool failed = vram_driver_fault_count(driver) != failed_before;
        struct vram_stats stats;
        if (vram_driver_fault_set(driver, NULL, 0, 0) != VRAM_OK || vram_get_stats(allocator, 0, &stats) != VRAM_OK) return 1;
        const int64_t live = stats.allocated_bytes[VRAM_STAT_ALL].current;
        if (live != (status == VRAM_OK ? (int64_t)(80 * MIB) : 0))
            return printf("call %llu: live %lld\n", (unsigned long long)nth, (long long)live), 1;
        refused += status != VRAM_OK;
        vram_destroy(allocator);
        if (!failed) break; // fewer calls than nth: all were tried
    }
    vram_driver_destroy(driver);
    printf("%d failures of the driver, each answered\n", refused);
    return refused == 0 || vram_sim_live_objects(inner) != 0;
}

// A block used by another stream is reused only after that stream's work is done.
static int test_streams(struct vram_driver *driver) {
    struct vram_allocator *allocator;
    uint64_t first, second, stream;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &allocator, NULL) != VRAM_OK) return 1;
    if (vram_malloc(allocator, 0, 8 * MIB, 0, &first) != VRAM_OK || vram_sim_stream_create(driver, 0, &stream) != VRAM_OK) return 1;
    if (vram_record_stream(allocator, first, stream) != VRAM_OK || vram_free(allocator, first) != VRAM_OK) return 1;
    const uint64_t asked = vram_sim_calls(driver, "cuEventQuery");
    if (vram_malloc(allocator, 0, 8 * MIB, 0, &second) != VRAM_OK || second == first) return 1;
    printf("%llu query whether the stream is done\n", (unsigned long long)(vram_sim_calls(driver, "cuEventQuery") - asked));
    uint64_t third;
    if (vram_sim_complete_all(driver) != VRAM_OK || vram_malloc(allocator, 0, 8 * MIB, 0, &third) != VRAM_OK) return 1;
    vram_destroy(allocator);
    return third != first;
}

int main(void) {
    struct vram_driver *driver;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30, .manual_completion = true}, &driver) != VRAM_OK) return 1;
    const int wrong = test_failures(driver) + test_streams(driver);
    vram_driver_destroy(driver);
    return wrong;
}
