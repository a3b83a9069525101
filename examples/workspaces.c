// workspaces.c: library scratch memory from the allocator: a workspace per handle and stream for cuBLAS, and a cache of cuFFT plans.
// Without cuBLAS or cuFFT, a handle is any number and plans are made here. Needs no GPU.
#include <stdio.h>
#include <vram/sim.h>
#include <vram/vram.h>

enum { SIZES = 6, HELD = 4 };

// Builds a plan without cuFFT; its number gives the length of the transform.
static enum vram_status build_plan(uint32_t device, const void *key, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes, void *built) {
    (void)device;
    if (key_bytes != sizeof(uint64_t)) return VRAM_INVALID_ARGUMENT;
    *plan = *(const uint64_t *)key;
    *work_bytes = *plan * 16;
    ++*(int *)built;
    return VRAM_OK;
}

static void destroy_plan(uint32_t device, uint64_t plan, void *built) {
    (void)device, (void)plan;
    --*(int *)built;
}

static int use_workspaces(struct vram_allocator *allocator, const uint64_t stream[2]) {
    struct vram_workspaces *workspaces;
    struct vram_workspace first, same, other;
    struct vram_workspace_sizes sizes;
    struct vram_cublas *cublas = NULL;
    uint64_t count, bytes;
    vram_get_workspace_sizes(NULL, 9, 0, &sizes); // PyTorch's sizes for compute capability 9.0
    if (vram_workspaces_create(allocator, &workspaces) != VRAM_OK) return 1;
    // With cuBLAS: vram_cublas_set(cublas, workspaces, device, handle, stream, &error) before each use of a cublasHandle_t.
    const enum vram_status has_cublas = vram_cublas_open(NULL, &cublas, NULL);
    if (has_cublas == VRAM_OK) vram_cublas_close(cublas);
    if (vram_workspace_get(workspaces, 0, 77, stream[0], VRAM_WORKSPACE_CUBLAS, &first) != VRAM_OK ||
        vram_workspace_get(workspaces, 0, 77, stream[0], VRAM_WORKSPACE_CUBLAS, &same) != VRAM_OK ||
        vram_workspace_get(workspaces, 0, 77, stream[1], VRAM_WORKSPACE_CUBLAS, &other) != VRAM_OK)
        return 1;
    vram_workspaces_count(workspaces, &count, &bytes);
    printf("%llu workspaces, %llu KiB; on 9.0 each would have %llu KiB\n", (unsigned long long)count, (unsigned long long)bytes >> 10,
           (unsigned long long)sizes.cublas_bytes >> 10);
    const int wrong = first.address != same.address || first.address == other.address || count != 2;
    if (vram_workspaces_forget(workspaces, 77) != VRAM_OK || vram_workspaces_clear(workspaces) != VRAM_OK) return 1;
    vram_workspaces_destroy(workspaces);
    return wrong;
}

// Returns cuFFT's functions and keys if it is installed; otherwise *cufft is NULL.
static struct vram_plan_functions plan_functions(struct vram_cufft **cufft, int *built) {
    struct vram_plan_functions functions = {.build = build_plan, .destroy = destroy_plan, .user = built};
    if (vram_cufft_open(NULL, cufft, NULL) == VRAM_OK) {
        vram_cufft_functions(*cufft, &functions);
        return functions;
    }
    *cufft = NULL;
    return functions;
}

static enum vram_status run_plan(struct vram_plan_cache *cache, struct vram_cufft *cufft, uint64_t length, uint64_t stream) {
    const struct vram_cufft_key key = {.rank = 1, .type = 0x29 /* C2C */, .n = {(int64_t)length}, .batch = 1};
    struct vram_plan plan;
    enum vram_status status = cufft != NULL ? vram_plan_acquire(cache, 0, stream, &key, sizeof key, &plan)
                                            : vram_plan_acquire(cache, 0, stream, &length, sizeof length, &plan);
    if (status != VRAM_OK) return status;
    if (cufft != NULL) status = vram_cufft_set(cufft, &plan, NULL);
    // Queue the transform on the stream here, with plan.work_address as its work area.
    const enum vram_status released = vram_plan_release(cache, &plan);
    return status != VRAM_OK ? status : released;
}

static int use_plans(struct vram_allocator *allocator, uint64_t stream) {
    int built = 0;
    struct vram_cufft *cufft;
    struct vram_plan_cache *cache;
    struct vram_plan_cache_stats stats;
    const struct vram_plan_functions functions = plan_functions(&cufft, &built);
    if (vram_plan_cache_create(allocator, &functions, &cache) != VRAM_OK || vram_plan_cache_set_max(cache, 0, HELD) != VRAM_OK) return 1;
    for (uint64_t i = 0; i < 2 * SIZES; i++) {
        if (run_plan(cache, cufft, 1024 << i % SIZES, stream) != VRAM_OK) return 1;
        if (run_plan(cache, cufft, 1024 << i % SIZES, stream) != VRAM_OK) return 1; // a hit
    }
    if (vram_get_plan_cache_stats(cache, 0, &stats) != VRAM_OK) return 1;
    printf("%llu plans made, %llu given up, %llu found again, %lld held\n", (unsigned long long)stats.misses,
           (unsigned long long)stats.evictions, (unsigned long long)stats.hits, (long long)stats.size);
    const int wrong = stats.size != HELD || stats.hits != 2 * SIZES || stats.misses != 2 * SIZES;
    if (vram_plan_cache_clear(cache, 0) != VRAM_OK) return 1;
    vram_plan_cache_destroy(cache);
    if (cufft != NULL) vram_cufft_close(cufft);
    return wrong || built != 0;
}

int main(void) {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    uint64_t stream[2], block;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &allocator, NULL) != VRAM_OK) return 1;
    if (vram_malloc(allocator, 0, 1, 0, &block) != VRAM_OK) return 1; // first use of the device
    for (int i = 0; i < 2; i++) {
        if (vram_sim_stream_create(driver, 0, &stream[i]) != VRAM_OK) return 1;
    }
    const int wrong = use_workspaces(allocator, stream) + use_plans(allocator, stream[0]);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return wrong;
}
