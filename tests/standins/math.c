// Tests the stand-ins for cuBLAS, cuBLASLt, cuSOLVER, cuSPARSE, cuFFT and cuRAND: handles, sizes, results, workspaces and captured nodes.
#include "standin_test.h"

static const char *folder;

struct product {
    void *handle;
    float result;
};

static void multiply(void *argument) {
    const float one = 1;
    struct product *product = argument;
    EXPECT(CALL("cublasSgemm_v2", (void *, int, int, int, int, int, const float *, void *, int, void *, int, const float *, void *, int),
                product->handle, 0, 0, 8, 8, 8, &one, NULL, 8, NULL, 8, &one, NULL, 8) == 0);
}

static void test_cublas(void) {
    library = opened(folder, "libcublas.so.13");
    struct product product = {.result = 5};
    const size_t before = free_memory();
    int number = -1;
    EXPECT(CALL("cublasSgemm_v2", (void *), NULL) == 1);
    EXPECT(CALL("cublasCreate_v2", (void **), &product.handle) == 0 && product.handle != NULL);
    EXPECT(before - free_memory() >= 4 << 20); // its own workspace
    EXPECT(CALL("cublasGetVersion_v2", (void *, int *), product.handle, &number) == 0 && number >= 130000);
    EXPECT(CALL("cublasGetProperty", (int, int *), 0, &number) == 0 && number == 13);
    EXPECT(CALL("cublasSetMathMode", (void *, int), product.handle, 3) == 0);
    EXPECT(CALL("cublasGetMathMode", (void *, int *), product.handle, &number) == 0 && number == 3);
    EXPECT(CALL("cublasSdot_v2", (void *, int, void *, int, void *, int, float *), product.handle, 8, NULL, 1, NULL, 1, &product.result) ==
           0);
    EXPECT(product.result == 0);
    const uint64_t stream = new_stream();
    uint64_t told = 0;
    EXPECT(CALL("cublasSetStream_v2", (void *, uint64_t), product.handle, stream) == 0);
    EXPECT(CALL("cublasGetStream_v2", (void *, uint64_t *), product.handle, &told) == 0 && told == stream);
    EXPECT(captured_nodes(stream, multiply, &product) == 1);
    int host[4] = {1, 2, 3, 4}, back[4] = {0};
    const uint64_t device = device_memory(4096);
    EXPECT(CALL("cublasSetVector", (int, int, void *, int, uint64_t, int), 2, 4, host, 2, device, 1) == 0);
    EXPECT(CALL("cublasGetVector", (int, int, uint64_t, int, void *, int), 2, 4, device, 1, back, 1) == 0);
    EXPECT(back[0] == 1 && back[1] == 3);
    int *info = (int *)device, failed = 7;
    EXPECT(CALL("cublasSgetrfBatched", (void *, int, void *, int, void *, int *, int), product.handle, 4, NULL, 4, NULL, info, 2) == 0);
    EXPECT(CALL("cublasGetVector", (int, int, uint64_t, int, void *, int), 2, 4, device, 1, back, 1) == 0 && back[0] == 0 && back[1] == 0);
    EXPECT(CALL("cublasSgetrsBatched", (void *, int, int, int, void *, int, void *, void *, int, int *, int), product.handle, 0, 4, 1, NULL,
                4, NULL, NULL, 4, &failed, 2) == 0 &&
           failed == 0);
    EXPECT(CALL("cublasDestroy_v2", (void *), product.handle) == 0);
    EXPECT(((float (*)(int, void *, int))found_in(library, "cublasSasum"))(4, NULL, 1) == 0);
    EXPECT(CALL("cublasGetError", (void)) == 0);
}

static void test_cublaslt(void) {
    library = opened(folder, "libcublasLt.so.12");
    void *handle = NULL, *product = NULL, *layout = NULL, *preference = NULL;
    struct {
        uint64_t algorithm[8];
        size_t workspace;
        int state;
        float waves;
        int reserved[4];
    } results[3];
    uint64_t rows = 0, most = 1 << 20;
    int count = 0, wrong = 0;
    size_t written = 0;
    EXPECT(CALL("cublasLtCreate", (void **), &handle) == 0);
    EXPECT(CALL("cublasLtMatmulDescCreate", (void **, int, int), &product, 68, 0) == 0);
    EXPECT(CALL("cublasLtMatrixLayoutCreate", (void **, int, uint64_t, uint64_t, int64_t), &layout, 0, 30, 40, 30) == 0);
    EXPECT(CALL("cublasLtMatmulPreferenceCreate", (void **), &preference) == 0);
    EXPECT(CALL("cublasLtMatrixLayoutGetAttribute", (void *, int, void *, size_t, size_t *), layout, 2, &rows, 8, &written) == 0);
    EXPECT(rows == 30 && written == 8);
    EXPECT(CALL("cublasLtMatrixLayoutGetAttribute", (void *, int, void *, size_t, size_t *), layout, 2, &wrong, 4, &written) == 7);
    EXPECT(CALL("cublasLtMatmulPreferenceSetAttribute", (void *, int, void *, size_t), preference, 1, &most, 8) == 0);
    EXPECT(CALL("cublasLtMatmulPreferenceSetAttribute", (void *, int, void *, size_t), preference, 1, &most, 4) == 7);
    EXPECT(CALL("cublasLtMatmulAlgoGetHeuristic", (void *, void *, void *, void *, void *, void *, void *, int, void *, int *), handle,
                product, layout, layout, layout, layout, preference, 3, results, &count) == 0);
    EXPECT(count == 1 && results[0].state == 0 && results[0].workspace <= most);
    EXPECT(CALL("cublasLtMatmul",
                (void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, size_t,
                 uint64_t),
                handle, product, NULL, NULL, layout, NULL, layout, NULL, NULL, layout, NULL, layout, results[0].algorithm, NULL, 0,
                0) == 0);
    uint64_t own[14] = {0}; // a descriptor in the program's memory
    EXPECT(CALL("cublasLtMatrixLayoutInit_internal", (void *, size_t, int, uint64_t, uint64_t, int64_t), own, 64, 0, 7, 8, 9) == 0);
    EXPECT(CALL("cublasLtMatrixLayoutGetAttribute", (void *, int, void *, size_t, size_t *), own, 4, &rows, 8, NULL) == 0 && rows == 9);
    EXPECT(own[8] == 0 && own[13] == 0);
    EXPECT(CALL("cublasLtMatrixLayoutDestroy", (void *), layout) == 0 && CALL("cublasLtMatmulDescDestroy", (void *), product) == 0);
    EXPECT(CALL("cublasLtMatmulDescDestroy", (void *), own) == 7);
}

static void test_cusolver(void) {
    library = opened(folder, "libcusolver.so.12");
    void *handle = NULL, *params = NULL;
    int elements = -1, info = 9;
    size_t on_device = 99, on_host = 99;
    const uint64_t device = device_memory(4096);
    EXPECT(CALL("cusolverDnCreate", (void **), &handle) == 0 && CALL("cusolverDnCreateParams", (void **), &params) == 0);
    EXPECT(CALL("cusolverDnSpotrf_bufferSize", (void *, int, int, void *, int, int *), handle, 0, 100, NULL, 100, &elements) == 0);
    EXPECT(elements > 0 && elements <= 1 << 24);
    EXPECT(CALL("cusolverDnXsyevd_bufferSize",
                (void *, void *, int, int, int64_t, int, void *, int64_t, int, void *, int, size_t *, size_t *), handle, params, 1, 0, 100,
                1, NULL, 100, 1, NULL, 1, &on_device, &on_host) == 0);
    EXPECT(on_device >= 100 && on_device < 1 << 24 && on_host < 1 << 24);
    EXPECT(DRIVER("cuMemsetD8_v2", (uint64_t, unsigned char, size_t), device, 0xff, 16) == 0);
    EXPECT(CALL("cusolverDnSpotrf", (void *, int, int, void *, int, void *, int, uint64_t), handle, 0, 100, NULL, 100, NULL, elements,
                device) == 0);
    EXPECT(DRIVER("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), &info, device, 4) == 0 && info == 0);
    EXPECT(CALL("cusolverDnDestroy", (void *), handle) == 0 && CALL("cusolverDnDestroy", (void *), NULL) == 1);
}

static void test_cusparse(void) {
    library = opened(folder, "libcusparse.so.12");
    void *handle = NULL, *matrix = NULL, *product = NULL, *values = (void *)64;
    int64_t rows = 0, columns = 0, entries = -1;
    size_t bytes = 0;
    EXPECT(CALL("cusparseCreate", (void **), &handle) == 0);
    EXPECT(CALL("cusparseCreateCsr", (void **, int64_t, int64_t, int64_t, void *, void *, void *, int, int, int, int), &matrix, 3, 4, 5,
                NULL, NULL, values, 2, 2, 0, 0) == 0);
    EXPECT(CALL("cusparseSpMatGetSize", (void *, int64_t *, int64_t *, int64_t *), matrix, &rows, &columns, &entries) == 0);
    EXPECT(rows == 3 && columns == 4 && entries == 5);
    EXPECT(CALL("cusparseSpMM_bufferSize", (void *, int, int, void *, void *, void *, void *, void *, int, int, size_t *), handle, 0, 0,
                NULL, matrix, matrix, NULL, matrix, 0, 0, &bytes) == 0);
    EXPECT(bytes > 0 && bytes < 1 << 24);
    EXPECT(CALL("cusparseSpGEMM_createDescr", (void **), &product) == 0 && product != NULL);
    bytes = 0;
    EXPECT(CALL("cusparseSpGEMM_workEstimation",
                (void *, int, int, void *, void *, void *, void *, void *, int, int, void *, size_t *, void *), handle, 0, 0, NULL, matrix,
                matrix, NULL, matrix, 0, 0, product, &bytes, NULL) == 0);
    EXPECT(bytes > 0 && CALL("cusparseSpGEMM_destroyDescr", (void *), product) == 0);
    int64_t block = 0, ell_columns = 0;
    int type = 0, base = 0, index_type = 0, order = 0;
    void *ell = NULL, *dense = NULL, *told = (void *)1;
    EXPECT(CALL("cusparseCreateBlockedEll", (void **, int64_t, int64_t, int64_t, int64_t, void *, void *, int, int, int), &ell, 8, 6, 2, 4,
                (void *)64, (void *)128, 2, 1, 9) == 0);
    EXPECT(CALL("cusparseConstBlockedEllGet", (void *, int64_t *, int64_t *, int64_t *, int64_t *, void **, void **, int *, int *, int *),
                ell, &rows, &columns, &block, &ell_columns, &told, &values, &index_type, &base, &type) == 0);
    EXPECT(rows == 8 && columns == 6 && block == 2 && ell_columns == 4 && told == (void *)64 && values == (void *)128);
    EXPECT(index_type == 2 && base == 1 && type == 9);
    EXPECT(CALL("cusparseSpMatGetSize", (void *, int64_t *, int64_t *, int64_t *), ell, NULL, NULL, &entries) == 0 && entries == 32);
    EXPECT(CALL("cusparseCreateDnMat", (void **, int64_t, int64_t, int64_t, void *, int, int), &dense, 3, 4, 5, (void *)256, 7, 2) == 0);
    EXPECT(CALL("cusparseDnMatGet", (void *, int64_t *, int64_t *, int64_t *, void **, int *, int *), dense, &rows, NULL, &block, &values,
                &type, &order) == 0);
    EXPECT(rows == 3 && block == 5 && values == (void *)256 && type == 7 && order == 2);
    EXPECT(CALL("cusparseDestroySpMat", (void *), ell) == 0 && CALL("cusparseDestroyDnMat", (void *), dense) == 0);
    EXPECT(CALL("cusparseDestroySpMat", (void *), matrix) == 0 && CALL("cusparseDestroy", (void *), handle) == 0);
}

static void test_cufft(void) {
    library = opened(folder, "libcufft.so.12");
    int plan = -1, other = -1;
    size_t bytes = 0;
    const size_t before = free_memory();
    // One copy of the data: arrayfire's issue 1443.
    EXPECT(CALL("cufftPlan2d", (int *, int, int, int), &plan, 100, 700, 0x29) == 0);
    EXPECT(CALL("cufftGetSize", (int, size_t *), plan, &bytes) == 0 && bytes == 560000);
    EXPECT(before - free_memory() >= 560000);
    EXPECT(CALL("cufftExecC2C", (int, void *, void *, int), plan, NULL, NULL, 1) == 0);
    EXPECT(CALL("cufftCreate", (int *), &other) == 0 && other != plan);
    EXPECT(CALL("cufftExecC2C", (int, void *, void *, int), other, NULL, NULL, 1) == 1);
    EXPECT(CALL("cufftSetAutoAllocation", (int, int), other, 0) == 0);
    const size_t between = free_memory();
    EXPECT(CALL("cufftMakePlan1d", (int, int, int, int, size_t *), other, 1 << 20, 0x2a, 4, &bytes) == 0);
    EXPECT(bytes == ((size_t)(1 << 19) + 1) * 4 * 8 && free_memory() == between);
    EXPECT(CALL("cufftDestroy", (int), other) == 0 && CALL("cufftDestroy", (int), other) == 1 && CALL("cufftDestroy", (int), plan) == 0);
    EXPECT(free_memory() == before);
    EXPECT(CALL("cufftPlan1d", (int *, int, int, int), &plan, 0, 0x29, 1) == 8);
}

static void test_curand(void) {
    library = opened(folder, "libcurand.so.10");
    void *generator = NULL;
    float numbers[100], again[100];
    for (int turn = 0; turn < 2; turn++) {
        EXPECT(CALL("curandCreateGeneratorHost", (void **, int), &generator, 100) == 0);
        EXPECT(CALL("curandSetPseudoRandomGeneratorSeed", (void *, uint64_t), generator, 7) == 0);
        EXPECT(CALL("curandGenerateUniform", (void *, float *, size_t), generator, turn == 0 ? numbers : again, 100) == 0);
        EXPECT(CALL("curandDestroyGenerator", (void *), generator) == 0);
    }
    EXPECT(memcmp(numbers, again, sizeof numbers) == 0 && numbers[0] > 0 && numbers[0] <= 1 && numbers[0] != numbers[1]);
    EXPECT(CALL("curandCreateGenerator", (void **, int), &generator, 100) == 0);
    EXPECT(CALL("curandGenerateUniform", (void *, uint64_t, size_t), generator, device_memory(4096), 100) == 0);
    EXPECT(CALL("curandCreateGenerator", (void **, int), &generator, 1) == 103);
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    folder = arguments[1];
    begin_driver();
    test_cublas();
    test_cublaslt();
    test_cusolver();
    test_cusparse();
    test_cufft();
    test_curand();
    return 0;
}
