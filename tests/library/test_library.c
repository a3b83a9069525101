// Tests cuBLAS and cuFFT found at run time, with a stand-in. Usage: test_library STAND-IN BROKEN
#define _POSIX_C_SOURCE 200809L // setenv
#include "fake_math.h"
#include "support/expect.h"
#include "vram/workspace.h"

static const char *stand_in, *broken;

static void what_is_missing_is_named(void **state) {
    (void)state;
    struct vram_cublas *cublas = NULL;
    struct vram_cufft *cufft = NULL;
    struct vram_error error;
    EXPECT_STATUS(UNSUPPORTED, vram_cublas_open("./no-such-library.so", &cublas, &error));
    assert_non_null(strstr(error.message, "no-such-library"));
    EXPECT_STATUS(UNSUPPORTED, vram_cublas_open(broken, &cublas, &error));
    assert_non_null(strstr(error.message, "cublasSetWorkspace_v2"));
    EXPECT_STATUS(UNSUPPORTED, vram_cufft_open(broken, &cufft, &error));
    assert_non_null(strstr(error.message, "cufftDestroy"));
    EXPECT_STATUS(UNSUPPORTED, vram_cufft_open("./no-such-library.so", &cufft, NULL));
    assert_null(cublas);
    assert_null(cufft);
    vram_cublas_close(NULL);
    vram_cufft_close(NULL);
}

static void the_environment_names_the_library(void **state) {
    (void)state;
    struct vram_cublas *cublas = NULL;
    struct vram_cufft *cufft = NULL;
    setenv("VRAM_CUBLAS_LIBRARY", stand_in, 1);
    setenv("VRAM_CUFFT_LIBRARY", broken, 1);
    EXPECT_OK(vram_cublas_open(NULL, &cublas, NULL));
    EXPECT_STATUS(UNSUPPORTED, vram_cufft_open(NULL, &cufft, NULL));
    setenv("VRAM_CUFFT_LIBRARY", stand_in, 1);
    EXPECT_OK(vram_cufft_open(NULL, &cufft, NULL));
    vram_cublas_close(cublas);
    vram_cufft_close(cufft);
}

static void a_handle_is_told_of_its_workspace(void **state) {
    (void)state;
    struct vr_world world;
    struct fake_handle handle = {.workspace_bytes = 1};
    struct vram_cublas *cublas = NULL;
    struct vram_workspaces *workspaces = NULL;
    struct vram_error error;
    expect_world(&world, "", 0);
    EXPECT_OK(vram_cublas_open(stand_in, &cublas, NULL));
    EXPECT_OK(vram_workspaces_create(world.allocator, &workspaces));
    EXPECT_OK(vram_cublas_set(cublas, workspaces, 0, &handle, world.stream[0][1], NULL));
    const void *first = handle.workspace;
    assert_int_equal((uintptr_t)handle.stream, world.stream[0][1]);
    assert_int_equal(handle.workspace_bytes, 8519680);
    assert_int_equal(expect_size(&world, (uintptr_t)first), 8519680);
    EXPECT_OK(vram_cublas_set(cublas, workspaces, 0, &handle, world.stream[0][2], NULL));
    assert_ptr_not_equal(handle.workspace, first);
    EXPECT_OK(vram_cublas_set(cublas, workspaces, 0, &handle, world.stream[0][1], NULL));
    assert_ptr_equal(handle.workspace, first);
    fake_fails = "cublasSetWorkspace_v2";
    EXPECT_STATUS(DRIVER, vram_cublas_set(cublas, workspaces, 0, &handle, 0, &error));
    assert_string_equal(error.message, "cublasSetWorkspace failed with cuBLAS status 7");
    fake_fails = "cublasSetStream_v2";
    EXPECT_STATUS(DRIVER, vram_cublas_set(cublas, workspaces, 0, &handle, 0, &error));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_cublas_set(cublas, workspaces, 99, &handle, 0, &error));
    vram_workspaces_destroy(workspaces);
    vram_cublas_close(cublas);
    EXPECT_CURRENT(&world, allocation, 0);
    expect_end(&world);
}

static int live_plans(void) {
    int live = 0;
    for (int i = 0; i < FAKE_PLANS; i++) live += fake_plans[i].live;
    return live;
}

static void plans_have_no_memory_of_their_own(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_cufft *cufft = NULL;
    struct vram_plan_cache *cache = NULL;
    struct vram_plan_functions functions;
    struct vram_plan plan;
    expect_world(&world, "", 0);
    EXPECT_OK(vram_cufft_open(stand_in, &cufft, NULL));
    vram_cufft_functions(cufft, &functions);
    EXPECT_OK(vram_plan_cache_create(world.allocator, &functions, &cache));
    const struct vram_cufft_key key = {.rank = 2, .type = 0x29, .n = {64, 32}, .in_distance = 2048, .batch = 4};
    EXPECT_OK(vram_plan_acquire(cache, 0, world.stream[0][1], &key, sizeof key, &plan));
    const struct fake_plan *made = &fake_plans[plan.handle];
    assert_int_equal(made->auto_allocation, 0);
    assert_int_equal(made->rank, 2);
    assert_int_equal(made->type, 0x29);
    assert_int_equal(made->n[1], 32);
    assert_int_equal(made->in_distance, 2048);
    assert_int_equal(made->batch, 4);
    assert_true(made->packed);
    assert_int_equal(plan.work_bytes, 64 * 32 * 4 * FAKE_WORK_BYTES_PER_POINT);
    EXPECT_OK(vram_cufft_set(cufft, &plan, NULL));
    assert_int_equal((uintptr_t)made->work_area, plan.work_address);
    assert_int_equal((uintptr_t)made->stream, world.stream[0][1]);
    fake_fails = "cufftSetWorkArea";
    struct vram_error error;
    EXPECT_STATUS(DRIVER, vram_cufft_set(cufft, &plan, &error));
    assert_string_equal(error.message, "cufftSetWorkArea failed with cuFFT result 1");
    EXPECT_OK(vram_plan_release(cache, &plan));
    EXPECT_CURRENT(&world, allocation, 0);
    assert_int_equal(live_plans(), 1);
    vram_plan_cache_destroy(cache);
    assert_int_equal(live_plans(), 0);
    vram_cufft_close(cufft);
    expect_end(&world);
}

static void a_plan_that_fails_leaves_nothing(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_cufft *cufft = NULL;
    struct vram_plan_cache *cache = NULL;
    struct vram_plan_functions functions;
    struct vram_plan plan;
    expect_world(&world, "", 0);
    EXPECT_OK(vram_cufft_open(stand_in, &cufft, NULL));
    vram_cufft_functions(cufft, &functions);
    EXPECT_OK(vram_plan_cache_create(world.allocator, &functions, &cache));
    struct vram_cufft_key key = {.rank = 1, .n = {16}, .in_embed = {16}, .batch = 1};
    static const char *const calls[] = {"cufftCreate", "cufftSetAutoAllocation", "cufftMakePlanMany64"};
    for (size_t i = 0; i < VR_COUNT_OF(calls); i++) {
        fake_fails = calls[i];
        EXPECT_STATUS(DRIVER, vram_plan_acquire(cache, 0, 0, &key, sizeof key, &plan));
        assert_int_equal(live_plans(), 0);
    }
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_acquire(cache, 0, 0, &key, sizeof key - 1, &plan));
    key.rank = 4;
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_acquire(cache, 0, 0, &key, sizeof key, &plan));
    key.rank = 1;
    EXPECT_OK(vram_plan_acquire(cache, 0, 0, &key, sizeof key, &plan));
    assert_false(fake_plans[plan.handle].packed);
    EXPECT_OK(vram_plan_release(cache, &plan));
    vram_plan_cache_destroy(cache);
    vram_cufft_close(cufft);
    expect_end(&world);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    stand_in = arguments[1];
    broken = arguments[2];
    unsetenv("CUBLAS_WORKSPACE_CONFIG");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named),          cmocka_unit_test(the_environment_names_the_library),
        cmocka_unit_test(a_handle_is_told_of_its_workspace), cmocka_unit_test(plans_have_no_memory_of_their_own),
        cmocka_unit_test(a_plan_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
