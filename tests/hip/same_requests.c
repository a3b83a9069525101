// Makes the same requests on the named driver: streams, events behind record_stream, captures, expandable and paged segments, the driver's
// own pools, pinned memory, failing calls on a full device. Prints the results with addresses, so that AMD's runtime can be compared with
// NVIDIA's driver. usage: same_requests cuda|hip OPTIONS
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"
#include "vram/vram.h"

enum { SLOTS = 300, STEPS = 6000, STREAMS = 4, CAPTURE_BLOCKS = 20 };

static uint64_t state = 7;
static uint64_t dice(uint64_t sides) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % sides;
}

static int failures;
static void expect(const char *what, int good) {
    if (good) return;
    fprintf(stderr, "failed: %s\n", what);
    failures++;
}

static void requests(struct vram_allocator *allocator, const uint64_t *streams) {
    static uint64_t held[SLOTS];
    for (int step = 0; step < STEPS; step++) {
        uint64_t *slot = &held[dice(SLOTS)];
        if (*slot != 0) {
            if (dice(4) == 0) printf("record %d\n", (int)vram_record_stream(allocator, *slot, streams[dice(STREAMS)]));
            printf("free %d\n", (int)vram_free(allocator, *slot));
            *slot = 0;
            continue;
        }
        const uint64_t size = 1 + dice(dice(8) == 0 ? 64u << 20 : 64u << 10);
        const enum vram_status status = vram_malloc(allocator, 0, size, streams[dice(STREAMS)], slot);
        printf("malloc %d %" PRIx64 "\n", (int)status, *slot);
        if (step % 1500 == 1499) printf("empty %d\n", (int)vram_empty_cache(allocator));
    }
    for (int i = 0; i < SLOTS; i++) expect("free", vram_free(allocator, held[i]) == VRAM_OK);
}

static void capture(struct vram_driver *driver, struct vram_allocator *allocator, uint64_t stream) {
    struct vram_pool *pool = NULL;
    uint64_t graph = 0, exec = 0, blocks[CAPTURE_BLOCKS];
    struct vram_error error = {0};
    expect("pool", vram_pool_create(allocator, 0, NULL, &pool) == VRAM_OK);
    expect("begin", vram_capture_begin(pool, stream, VRAM_CAPTURE_THREAD_LOCAL, &error) == VRAM_OK);
    for (int i = 0; i < CAPTURE_BLOCKS; i++) {
        expect("malloc in a capture", vram_malloc(allocator, 0, 1000000 + dice(5000000), stream, &blocks[i]) == VRAM_OK);
        expect("fill", vr_cu(driver, memset_d8_async, blocks[i], (uint8_t)i, 4096, stream) == VR_CU_SUCCESS);
        printf("captured %" PRIx64 "\n", blocks[i]);
    }
    for (int i = 0; i < CAPTURE_BLOCKS; i++) expect("free in a capture", vram_free(allocator, blocks[i]) == VRAM_OK);
    expect("end", vram_capture_end(pool, stream, &graph, &error) == VRAM_OK);
    expect("instantiate", vr_cu(driver, graph_instantiate, &exec, graph, 0) == VR_CU_SUCCESS);
    expect("launch", vr_cu(driver, graph_launch, exec, stream) == VR_CU_SUCCESS);
    expect("wait", vr_cu(driver, stream_synchronize, stream) == VR_CU_SUCCESS);
    uint8_t found = 0xff;
    expect("read", vr_cu(driver, memcpy_dtoh, &found, blocks[CAPTURE_BLOCKS - 1], 1) == VR_CU_SUCCESS);
    expect("what the graph wrote", found == CAPTURE_BLOCKS - 1);
    expect("destroy", vr_cu(driver, graph_exec_destroy, exec) == VR_CU_SUCCESS && vr_cu(driver, graph_destroy, graph) == VR_CU_SUCCESS);
    vram_pool_release(pool);
}

static void pinned(struct vram_driver *driver, uint64_t stream) {
    struct vram_host *host = NULL;
    void *pointer = NULL;
    expect("pinned", vram_host_create(&(struct vram_host_create_info){.driver = driver, .conf = ""}, &host, NULL) == VRAM_OK);
    for (int i = 0; i < 50; i++) {
        expect("pinned memory", vram_host_malloc(host, 1 + dice(1 << 20), stream, &pointer) == VRAM_OK);
        memset(pointer, 1, 1);
        expect("pinned free", vram_host_free(host, pointer) == VRAM_OK);
    }
    vram_host_destroy(host);
}

static void facts(struct vram_driver *driver) {
    struct vram_device_facts found;
    expect("facts", vram_driver_device_facts(driver, 0, &found, NULL) == VRAM_OK);
    printf("%s, %" PRIu64 " bytes, %d.%d, %d multiprocessors, pages of %" PRIu64 ", pools %d, files %d, register %d\n", found.name,
           found.total_bytes, found.compute_major, found.compute_minor, found.multiprocessors, found.granularity_bytes, found.memory_pools,
           found.file_handles, found.host_register);
}

int main(int count, char **arguments) {
    struct vram_driver *driver = NULL;
    struct vram_allocator *allocator = NULL;
    struct vram_error error = {0};
    if (count != 3) return 2;
    const int hip = strcmp(arguments[1], "hip") == 0;
    if ((hip ? vram_driver_hip(&driver, &error) : vram_driver_cuda(&driver, &error)) != VRAM_OK) {
        fprintf(stderr, "%s\n", error.message);
        return error.driver_result != 0 ? error.driver_result : 1;
    }
    if (strcmp(driver->kind, arguments[1]) != 0) return 1;
    facts(driver);
    if (vram_create(&(struct vram_create_info){.driver = driver, .conf = arguments[2]}, &allocator, &error) != VRAM_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    uint64_t streams[STREAMS] = {0}, address = 0, context = 0;
    struct vram_stats stats;
    static char text[20000];
    expect("context",
           vr_cu(driver, primary_ctx_retain, &context, 0) == VR_CU_SUCCESS && vr_cu(driver, ctx_set_current, context) == VR_CU_SUCCESS);
    expect("the first", vram_malloc(allocator, 0, 1, 0, &address) == VRAM_OK && vram_free(allocator, address) == VRAM_OK);
    for (int i = 1; i < STREAMS; i++)
        expect("stream", vr_cu(driver, stream_create, &streams[i], VR_CU_STREAM_NON_BLOCKING) == VR_CU_SUCCESS);
    requests(allocator, streams);
    if (strstr(arguments[2], "cudaMallocAsync") == NULL) capture(driver, allocator, streams[1]);
    pinned(driver, streams[2]);
    expect("too much", vram_malloc(allocator, 0, UINT64_C(1) << 45, 0, &address) == VRAM_OUT_OF_MEMORY);
    expect("stats", vram_get_stats(allocator, 0, &stats) == VRAM_OK && vram_stats_json(&stats, text, sizeof text) < sizeof text);
    expect("check", vram_check(allocator, &error) == VRAM_OK);
    puts(text);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return failures != 0;
}
