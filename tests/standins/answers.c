// Tests small functions of many stand-ins: values set are returned, values out of bounds are refused.
#include <unistd.h>

#include "standin_test.h"

static const char *folder;

static void test_cudnn(void) {
    library = opened(folder, "libcudnn.so.9");
    void *handle = NULL;
    uint64_t told = 0;
    const uint64_t stream = new_stream();
    EXPECT(CALL("cudnnCreate", (void **), &handle) == 0);
    EXPECT(CALL("cudnnSetStream", (void *, uint64_t), handle, stream) == 0);
    EXPECT(CALL("cudnnGetStream", (void *, uint64_t *), handle, &told) == 0 && told == stream);
    EXPECT(CALL("cudnnGetStream", (void *, uint64_t *), handle, NULL) != 0);
    EXPECT(CALL("cudnnGetStream", (void *, uint64_t *), NULL, &told) != 0);
    EXPECT(CALL("cudnnDestroy", (void *), handle) == 0);
}

static void test_cublaslt(void) {
    enum { NOT_INITIALIZED = 1, INVALID_VALUE = 7, SCALE_TYPE = 0 };
    library = opened(folder, "libcublasLt.so.13");
    uint64_t algorithm[8] = {0};
    uint32_t tile = 5, kept = 0;
    size_t written = 0;
    int type = -1;
    void *transform = NULL, *handle = NULL;
    EXPECT(CALL("cublasLtMatmulAlgoConfigSetAttribute", (void *, int, void *, size_t), algorithm, 1, &tile, sizeof tile) == 0);
#define GET(value, bytes, count)                                                                                                           \
    CALL("cublasLtMatmulAlgoConfigGetAttribute", (void *, int, void *, size_t, size_t *), algorithm, 1, value, bytes, count)
    EXPECT(GET(&kept, sizeof kept, &written) == 0 && kept == tile && written == sizeof kept);
    EXPECT(GET(&kept, sizeof kept, NULL) == 0);
    EXPECT(GET(NULL, 0, &written) == 0 && written == sizeof kept);
    EXPECT(GET(NULL, 0, NULL) == INVALID_VALUE && GET(NULL, 4, &written) == INVALID_VALUE && GET(&kept, 3, &written) == INVALID_VALUE);
    EXPECT(CALL("cublasLtMatrixTransformDescCreate", (void **, int), &transform, 2) == 0);
    EXPECT(CALL("cublasLtMatrixTransformDescGetAttribute", (void *, int, void *, size_t, size_t *), transform, SCALE_TYPE, &type,
                sizeof type, &written) == 0 &&
           type == 2);
    EXPECT(CALL("cublasLtMatrixTransformDescCreate", (void **, int), NULL, 2) != 0);
#define TRANSFORM(how, on)                                                                                                                 \
    CALL("cublasLtMatrixTransform",                                                                                                        \
         (void *, void *, const void *, const void *, void *, const void *, const void *, void *, void *, void *, uint64_t), how, on,      \
         NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0)
    EXPECT(CALL("cublasLtCreate", (void **), &handle) == 0);
    EXPECT(TRANSFORM(NULL, transform) == NOT_INITIALIZED && TRANSFORM(handle, NULL) == INVALID_VALUE && TRANSFORM(handle, transform) == 0);
    EXPECT(CALL("cublasLtDestroy", (void *), handle) == 0);
}

static void test_cusparse(void) {
    enum { INVALID_VALUE = 3 };
    library = opened(folder, "libcusparse.so.12");
    void *handle = NULL;
    EXPECT(CALL("cusparseCreate", (void **), &handle) == 0);
    for (int mode = -1; mode <= 2; mode++) {
        const bool good = mode == 0 || mode == 1;
        int told = -1;
        EXPECT(CALL("cusparseSetPointerMode", (void *, int), handle, mode) == (good ? 0 : INVALID_VALUE));
        EXPECT(CALL("cusparseGetPointerMode", (void *, int *), handle, &told) == 0 && (!good || told == mode));
    }
    EXPECT(CALL("cusparseDestroy", (void *), handle) == 0);
    library = opened(folder, "libcusparseLt.so.0");
    size_t bytes = 7;
    char none[4096] = {0};
    EXPECT(CALL("cusparseLtMatmulGetWorkspace", (void *, void *, size_t *), NULL, none, &bytes) == INVALID_VALUE && bytes == 7);
}

static void test_cupti(void) {
    library = opened(folder, "libcupti.so.13");
    void *record = &record;
    uint8_t buffer[64] = {0};
    EXPECT(CALL("cuptiActivityGetNextRecord", (uint8_t *, size_t, void **), buffer, 64, NULL) == 1);
    EXPECT(CALL("cuptiActivityGetNextRecord", (uint8_t *, size_t, void **), buffer, 64, &record) == 12 && record == NULL);
}

static void test_nvshmem(void) {
    library = opened(folder, "libnvshmem_host.so.3");
    int team = -1;
#define SPLIT(begin, size, made)                                                                                                           \
    CALL("nvshmem_team_split_strided", (int, int, int, int, void *, long, int *), 0, begin, 1, size, NULL, 0L, made)
    EXPECT(SPLIT(0, 1, &team) == 0 && team == 0);
    EXPECT(SPLIT(1, 1, &team) != 0 && SPLIT(0, 0, &team) != 0 && SPLIT(0, 2, &team) != 0 && SPLIT(0, 1, NULL) != 0);
}

static void test_nccl(void) {
    enum { INVALID_ARGUMENT = 4, FLOAT32 = 7 };
    struct id {
        char bytes[128];
    } id;
    library = opened(folder, "libnccl.so.2");
    void *comm = NULL, *taken = NULL;
    const uint64_t memory = device_memory(4096), stream = new_stream();
    EXPECT(CALL("ncclMemAlloc", (void **, size_t), &taken, 4096) == 0 && CALL("ncclMemFree", (void *), &id) == INVALID_ARGUMENT);
    EXPECT(CALL("ncclMemFree", (void *), taken) == 0 && CALL("ncclMemFree", (void *), taken) == INVALID_ARGUMENT);
    EXPECT(CALL("ncclMemFree", (void *), NULL) == 0);
    EXPECT(CALL("ncclGetUniqueId", (struct id *), &id) == 0);
    EXPECT(close(0) == 0); // a program may have closed its input, so the next file gets number 0
    EXPECT(CALL("ncclCommInitRank", (void **, int, struct id, int), &comm, 1, id, 0) == 0);
    for (int root = -1; root <= 1; root++)
        EXPECT(CALL("ncclBroadcast", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), memory, memory, 4, FLOAT32, root, comm,
                    stream) == (root == 0 ? 0 : INVALID_ARGUMENT));
    EXPECT(CALL("ncclCommDestroy", (void *), comm) == 0);
}

static void test_hip(void) {
    library = opened(folder, "hip/libamdhip64.so.6");
    int device = -1;
    uint64_t host = 0;
    EXPECT(CALL("hipGetDevice", (int *), &device) == 0 && device == 0);
    EXPECT(CALL("hipGetDevice", (int *), NULL) != 0);
    EXPECT(CALL("hipMallocHost", (uint64_t *, uint64_t), &host, 4096) == 0 && host != 0);
    EXPECT(CALL("hipFreeHost", (uint64_t), host) == 0 && CALL("hipFreeHost", (uint64_t), host) != 0 &&
           CALL("hipFreeHost", (uint64_t), 0) == 0);
}

// Edge data cannot be queried without the edge's nodes.
static void test_edges(void) {
    uint64_t graph = 0, first = 0, second = 0, found = 0;
    size_t count = 1;
    char data[8];
    EXPECT(DRIVER("cuGraphCreate", (uint64_t *, unsigned), &graph, 0) == 0);
    EXPECT(DRIVER("cuGraphAddEmptyNode", (uint64_t *, uint64_t, void *, size_t), &first, graph, NULL, 0) == 0);
    EXPECT(DRIVER("cuGraphAddEmptyNode", (uint64_t *, uint64_t, void *, size_t), &second, graph, &first, 1) == 0);
#define NEIGHBOURS(name, node, nodes, edges) DRIVER(name, (uint64_t, uint64_t *, void *, size_t *), node, nodes, edges, &count)
    EXPECT(NEIGHBOURS("cuGraphNodeGetDependentNodes_v2", first, &found, data) == 0 && found == second && count == 1);
    EXPECT(NEIGHBOURS("cuGraphNodeGetDependencies_v2", second, &found, data) == 0 && found == first && count == 1);
    EXPECT(NEIGHBOURS("cuGraphNodeGetDependentNodes_v2", first, NULL, NULL) == 0 && count == 1);
    EXPECT(NEIGHBOURS("cuGraphNodeGetDependentNodes_v2", first, NULL, data) == 1);
    EXPECT(NEIGHBOURS("cuGraphNodeGetDependencies_v2", second, NULL, data) == 1);
    EXPECT(DRIVER("cuGraphGetEdges_v2", (uint64_t, void *, void *, void *, size_t *), graph, NULL, NULL, data, &count) == 1);
    EXPECT(DRIVER("cuGraphDestroy", (uint64_t), graph) == 0);
}

static void test_nvml(void) {
    enum { UNINITIALIZED = 1, INVALID_ARGUMENT = 2 };
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL);
    unsigned units = 9;
    EXPECT(CALL("nvmlUnitGetCount", (unsigned *), &units) == UNINITIALIZED);
    EXPECT(CALL("nvmlInit_v2", (void)) == 0);
    EXPECT(CALL("nvmlUnitGetCount", (unsigned *), &units) == 0 && units == 0);
    EXPECT(CALL("nvmlUnitGetCount", (unsigned *), NULL) == INVALID_ARGUMENT);
    EXPECT(CALL("nvmlShutdown", (void)) == 0);
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    folder = arguments[1];
    begin_driver();
    test_edges();
    test_nvml();
    test_cudnn();
    test_cublaslt();
    test_cusparse();
    test_cupti();
    test_nvshmem();
    test_nccl();
    test_hip();
    return 0;
}
