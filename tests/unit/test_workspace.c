// Tests workspaces of cuBLAS and cuBLASLt: sizes, one per handle and stream, captures, clearing.
#define _POSIX_C_SOURCE 200809L // setenv
#include "support/expect.h"
#include "vram/pool.h"
#include "vram/sim.h"
#include "vram/workspace.h"

enum { DEFAULT = 8519680, MIB = 1 << 20, KIB = 1 << 10 };

static const char *const variables[] = {"CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_CUBLASLT_UNIFIED_WORKSPACE"};

static int without_environment(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(variables); i++) unsetenv(variables[i]);
    return 0;
}

static uint64_t cublas_of(const char *config) {
    struct vram_workspace_sizes sizes;
    vram_get_workspace_sizes(&(struct vram_workspace_env){.cublas = config}, 8, 0, &sizes);
    return sizes.cublas_unreadable ? UINT64_MAX : sizes.cublas_bytes;
}

static void the_config_is_a_sum_of_pieces(void **state) {
    (void)state;
    static const struct {
        const char *config;
        uint64_t size_bytes; // UINT64_MAX: not set
    } cases[] = {
        {NULL, DEFAULT},
        {":4096:2:16:8", DEFAULT},
        {":4096:8", 32 * MIB},
        {":16:8", 128 * KIB},
        {"x:1:1,:2:1y", 3 * KIB},
        {":1:2:3", 2 * KIB},
        {"::1:2", 2 * KIB},
        {":1::2:3", 6 * KIB},
        {":0:0", 0},
        {"", UINT64_MAX},
        {"4096:2", UINT64_MAX},
        {":4096", UINT64_MAX},
        {":-1:2", UINT64_MAX},
        {":4096 :2", UINT64_MAX},
        {":99999999999:1", UINT64_MAX},
        {":2147483647:2147483647:2147483647:2147483647:2147483647:2147483647:2147483647:2147483647:2147483647:2147483647", UINT64_MAX},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) assert_int_equal(cublas_of(cases[i].config), cases[i].size_bytes);
}

static void only_9_0_gets_more(void **state) {
    (void)state;
    static const struct vram_workspace_env env;
    struct vram_workspace_sizes sizes;
    vram_get_workspace_sizes(&env, 9, 0, &sizes);
    assert_int_equal(sizes.cublas_bytes, 32 * MIB);
    assert_int_equal(sizes.cublaslt_bytes, MIB);
    vram_get_workspace_sizes(&env, 10, 0, &sizes);
    assert_int_equal(sizes.cublas_bytes, DEFAULT);
    vram_get_workspace_sizes(&env, 9, 1, &sizes);
    assert_int_equal(sizes.cublas_bytes, DEFAULT);
    vram_get_workspace_sizes(&(struct vram_workspace_env){.cublas = "nonsense"}, 9, 0, &sizes);
    assert_int_equal(sizes.cublas_bytes, 32 * MIB);
    assert_true(sizes.cublas_unreadable);
}

static struct vram_workspace_sizes lt_of(const char *cublaslt, const char *unified) {
    struct vram_workspace_sizes sizes;
    vram_get_workspace_sizes(&(struct vram_workspace_env){.cublaslt = cublaslt, .unified = unified}, 8, 0, &sizes);
    return sizes;
}

static void cublaslt_is_cut_unless_it_is_kept_apart(void **state) {
    (void)state;
    assert_int_equal(lt_of("2048", NULL).cublaslt_bytes, 2 * MIB);
    assert_int_equal(lt_of(" +64 KiB", NULL).cublaslt_bytes, 64 * KIB);
    assert_int_equal(lt_of("32768", NULL).cublaslt_bytes, DEFAULT);
    assert_true(lt_of("32768", NULL).cublaslt_cut);
    assert_int_equal(lt_of("32768", "1").cublaslt_bytes, DEFAULT);
    assert_int_equal(lt_of("32768", "0").cublaslt_bytes, 32 * MIB);
    assert_false(lt_of("32768", "0").cublaslt_cut);
    assert_false(lt_of(NULL, NULL).shared);
    assert_false(lt_of(NULL, "true").shared);
    assert_true(lt_of(NULL, "1").shared);
    static const char *const wrong[] = {"", "many", "-1", "2147483648"};
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) {
        assert_true(lt_of(wrong[i], NULL).cublaslt_unreadable);
        assert_int_equal(lt_of(wrong[i], NULL).cublaslt_bytes, MIB);
    }
}

// --- one workspace per handle and stream ----------------------------------------------------------------------------------------------

static struct vram_workspaces *expect_workspaces(struct vr_world *world) {
    struct vram_workspaces *workspaces = NULL;
    EXPECT_OK(vram_workspaces_create(world->allocator, &workspaces));
    return workspaces;
}

static struct vram_workspace expect_workspace(struct vram_workspaces *workspaces, uint64_t handle, uint64_t stream) {
    struct vram_workspace workspace;
    EXPECT_OK(vram_workspace_get(workspaces, 0, handle, stream, VRAM_WORKSPACE_CUBLAS, &workspace));
    return workspace;
}

static uint64_t count_of(struct vram_workspaces *workspaces) {
    uint64_t count = 0;
    vram_workspaces_count(workspaces, &count, NULL);
    return count;
}

static void pairs_have_their_own_until_they_are_cleared(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_workspaces *workspaces = expect_workspaces(&world);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    const struct vram_workspace first = expect_workspace(workspaces, 1, a);
    assert_int_equal(first.size_bytes, DEFAULT);
    assert_false(first.captured);
    assert_int_equal(expect_workspace(workspaces, 1, a).address, first.address);
    assert_int_not_equal(expect_workspace(workspaces, 1, b).address, first.address);
    assert_int_not_equal(expect_workspace(workspaces, 2, a).address, first.address);
    struct vram_workspace lt;
    EXPECT_OK(vram_workspace_get(workspaces, 0, 1, a, VRAM_WORKSPACE_CUBLASLT, &lt));
    assert_int_not_equal(lt.address, first.address);
    assert_int_equal(lt.size_bytes, MIB);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, first.address, &info));
    assert_int_equal(info.stream, a);
    uint64_t count = 0, bytes = 0;
    vram_workspaces_count(workspaces, &count, &bytes);
    assert_int_equal(count, 4);
    assert_int_equal(bytes, 3 * DEFAULT + MIB);
    EXPECT_CURRENT(&world, allocation, 4);
    EXPECT_OK(vram_workspaces_forget(workspaces, 1));
    EXPECT_CURRENT(&world, allocation, 1);
    EXPECT_OK(vram_workspaces_clear(workspaces));
    EXPECT_CURRENT(&world, allocation, 0);
    EXPECT_OK(vram_workspaces_clear(workspaces));
    (void)expect_workspace(workspaces, 1, a);
    vram_workspaces_destroy(workspaces);
    vram_workspaces_destroy(NULL);
    EXPECT_CURRENT(&world, allocation, 0);
    expect_end(&world);
}

static void the_environment_is_read_every_time(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_workspaces *workspaces = expect_workspaces(&world);
    const struct vram_workspace first = expect_workspace(workspaces, 1, 0);
    setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
    struct vram_workspace next = expect_workspace(workspaces, 1, 0);
    assert_int_equal(next.address, first.address);
    assert_int_equal(next.size_bytes, 128 * KIB);
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
    next = expect_workspace(workspaces, 1, 0);
    assert_int_equal(next.size_bytes, 32 * MIB);
    assert_true(expect_size(&world, next.address) >= 32 * MIB); // PyTorch gives the library a larger size than it allocates
    assert_int_equal(count_of(workspaces), 1);
    setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0", 1);
    assert_int_equal(expect_workspace(workspaces, 1, 0).address, 0);
    unsetenv("CUBLAS_WORKSPACE_CONFIG");
    setenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE", "1", 1);
    struct vram_workspace shared;
    EXPECT_OK(vram_workspace_get(workspaces, 0, 1, 0, VRAM_WORKSPACE_CUBLASLT, &shared));
    assert_int_equal(shared.address, next.address);
    assert_int_equal(shared.size_bytes, MIB);
    unsetenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE");
    vram_workspaces_destroy(workspaces);
    expect_end(&world);
}

static void what_cannot_be_had_changes_nothing(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 4 * MIB);
    struct vram_workspaces *workspaces = expect_workspaces(&world);
    struct vram_workspace workspace = {.address = 7};
    EXPECT_STATUS(OUT_OF_MEMORY, vram_workspace_get(workspaces, 0, 1, 0, VRAM_WORKSPACE_CUBLAS, &workspace));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_workspace_get(workspaces, 9, 1, 0, VRAM_WORKSPACE_CUBLAS, &workspace));
    assert_int_equal(workspace.address, 7);
    assert_int_equal(count_of(workspaces), 0);
    EXPECT_OK(vram_workspace_get(workspaces, 0, 1, 0, VRAM_WORKSPACE_CUBLASLT, &workspace));
    vram_workspaces_destroy(workspaces);
    expect_end(&world);
}

// --- captures -------------------------------------------------------------------------------------------------------------------------

static struct vram_graph *expect_graph(struct vr_world *world, uint64_t stream, struct vram_pool *pool) {
    struct vram_graph *graph = NULL;
    const struct vram_graph_options options = {.pool = pool};
    EXPECT_OK(vram_graph_begin(world->allocator, 0, stream, &options, &graph, NULL));
    return graph;
}

static uint64_t pool_of(struct vr_world *world, uint64_t address) {
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world->allocator, address, &info));
    return info.pool.first;
}

static void a_graph_works_in_a_workspace_of_its_own(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_workspaces *workspaces = expect_workspaces(&world);
    const uint64_t stream = world.stream[0][1];
    const struct vram_workspace before = expect_workspace(workspaces, 1, stream);
    struct vram_graph *graph = expect_graph(&world, stream, NULL);
    const struct vram_workspace inside = expect_workspace(workspaces, 1, stream);
    assert_true(inside.captured);
    assert_int_not_equal(inside.address, before.address);
    assert_int_equal(expect_workspace(workspaces, 1, stream).address, inside.address);
    assert_int_equal(pool_of(&world, inside.address), vram_get_pool_id(vram_graph_pool(graph)).first);
    EXPECT_OK(vram_sim_busy(world.sim, 0, stream, 1000));
    // Another stream's requests are not part of the capture.
    assert_false(expect_workspace(workspaces, 1, world.stream[0][2]).captured);
    EXPECT_OK(vram_graph_end(graph, NULL));
    assert_int_equal(expect_workspace(workspaces, 1, stream).address, before.address);
    // The captured workspace was returned to the graph's pool, which keeps the address for the graph.
    assert_int_equal(expect_size(&world, inside.address), 0);
    EXPECT_OK(vram_workspaces_clear(workspaces));
    EXPECT_OK(vram_empty_cache(world.allocator));
    assert_true(expect_stats(&world).reserved_bytes[VRAM_STAT_ALL].current >= DEFAULT);
    EXPECT_OK(vram_graph_launch(graph, stream, NULL));
    vram_graph_destroy(graph);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    vram_workspaces_destroy(workspaces);
    expect_end(&world);
}

static void graphs_that_share_a_pool_share_its_place(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_workspaces *workspaces = expect_workspaces(&world);
    const uint64_t stream = world.stream[0][1];
    struct vram_graph *first = expect_graph(&world, stream, NULL);
    const uint64_t place = expect_workspace(workspaces, 1, stream).address;
    EXPECT_OK(vram_sim_busy(world.sim, 0, stream, 1000));
    EXPECT_OK(vram_graph_end(first, NULL));
    struct vram_graph *second = expect_graph(&world, stream, vram_graph_pool(first));
    // The pool is used again: the first capture's workspace serves the second.
    assert_int_equal(expect_workspace(workspaces, 1, stream).address, place);
    EXPECT_OK(vram_sim_busy(world.sim, 0, stream, 1000));
    EXPECT_OK(vram_graph_end(second, NULL));
    vram_graph_destroy(first);
    vram_graph_destroy(second);
    assert_int_equal(count_of(workspaces), 1);
    (void)expect_workspace(workspaces, 1, stream);
    assert_int_equal(count_of(workspaces), 1); // the eager workspace replaced the captured one
    vram_workspaces_destroy(workspaces);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_config_is_a_sum_of_pieces),           cmocka_unit_test(only_9_0_gets_more),
        cmocka_unit_test(cublaslt_is_cut_unless_it_is_kept_apart), cmocka_unit_test(pairs_have_their_own_until_they_are_cleared),
        cmocka_unit_test(the_environment_is_read_every_time),      cmocka_unit_test(what_cannot_be_had_changes_nothing),
        cmocka_unit_test(a_graph_works_in_a_workspace_of_its_own), cmocka_unit_test(graphs_that_share_a_pool_share_its_place),
    };
    return cmocka_run_group_tests(tests, without_environment, NULL);
}
