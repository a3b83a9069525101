// Tests the stand-ins for CUPTI, cuSPARSELt, cuFile, NVSHMEM and the annotations.
#define _GNU_SOURCE
#include "standin_test.h"

#include <fcntl.h>
#include <unistd.h>

static const char *folder;

static void test_cupti(void) {
    library = opened(folder, "libcupti.so.13");
    uint32_t version = 0;
    void *subscriber = NULL, *record = &version;
    uint64_t last = 7;
    size_t dropped = 7;
    EXPECT(CALL("cuptiGetVersion", (uint32_t *), &version) == 0 && version >= 130000);
    EXPECT(CALL("cuptiSubscribe", (void **, void *, void *), &subscriber, NULL, NULL) == 0 && subscriber != NULL);
    EXPECT(CALL("cuptiActivityRegisterCallbacks", (void *, void *), NULL, NULL) == 0 && CALL("cuptiActivityEnable", (int), 10) == 0);
    EXPECT(CALL("cuptiActivityFlushAll", (uint32_t), 0) == 0);
    EXPECT(CALL("cuptiActivityGetNextRecord", (void *, size_t, void **), &version, 4, &record) == 12 && record == NULL);
    EXPECT(CALL("cuptiActivityPopExternalCorrelationId", (int, uint64_t *), 1, &last) == 0 && last == 0);
    EXPECT(CALL("cuptiActivityGetNumDroppedRecords", (void *, uint32_t, size_t *), NULL, 0, &dropped) == 0 && dropped == 0);
    EXPECT(CALL("cuptiProfilerInitialize", (void *), NULL) == 27); // not supported
    EXPECT(CALL("cuptiUnsubscribe", (void *), subscriber) == 0);
}

static void test_cusparselt(void) {
    library = opened(folder, "libcusparseLt.so.0");
    static _Alignas(16) char handle[512], matrix[512], product[512], selection[512], plan[512];
    size_t bytes = 0, buffer = 9;
    int batches = 5, told = 0;
    EXPECT(CALL("cusparseLtInit", (void *), handle) == 0);
    EXPECT(CALL("cusparseLtStructuredDescriptorInit", (void *, void *, int64_t, int64_t, int64_t, uint32_t, int, int, int), handle, matrix,
                64, 64, 64, 16, 2, 1, 0) == 0);
    EXPECT(CALL("cusparseLtSpMMACompressedSize2", (void *, void *, size_t *, size_t *), handle, matrix, &bytes, &buffer) == 0);
    EXPECT(bytes == 64 * 64 * 2 / 16 * 9 && buffer == 0);
    EXPECT(CALL("cusparseLtMatDescSetAttribute", (void *, void *, int, void *, size_t), handle, matrix, 0, &batches, 4) == 0);
    EXPECT(CALL("cusparseLtMatDescGetAttribute", (void *, void *, int, void *, size_t), handle, matrix, 0, &told, 4) == 0 && told == 5);
    EXPECT(CALL("cusparseLtMatmulDescriptorInit", (void *, void *, int, int, void *, void *, void *, void *, int), handle, product, 0, 0,
                matrix, matrix, matrix, matrix, 0) == 0);
    EXPECT(CALL("cusparseLtMatmulAlgSelectionInit", (void *, void *, void *, int), handle, selection, product, 0) == 0);
    EXPECT(CALL("cusparseLtMatmulPlanInit", (void *, void *, void *, void *), handle, plan, product, selection) == 0);
    EXPECT(CALL("cusparseLtMatmulGetWorkspace", (void *, void *, size_t *), handle, plan, &bytes) == 0 && bytes < 1 << 24);
    EXPECT(CALL("cusparseLtMatmulPlanDestroy", (void *), plan) == 0);
    EXPECT(CALL("cusparseLtMatmul", (void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, int), handle, plan,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0) == 3);
}

// A file is really copied to the device and back.
static void test_cufile(void) {
    library = opened(folder, "libcufile.so.0");
    char path[] = "/tmp/vram_cufile_XXXXXX";
    const int descriptor = mkstemp(path);
    struct {
        int type;
        union {
            int descriptor;
            void *handle;
        } of;
        void *operations;
    } description = {.type = 1, .of.descriptor = descriptor};
    const size_t bytes = (1 << 20) + 100;
    unsigned char *data = malloc(bytes);
    void *handle = NULL;
    EXPECT(descriptor >= 0 && unlink(path) == 0 && data != NULL);
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 7 + i / 256);
    EXPECT(write(descriptor, data, bytes) == (ssize_t)bytes);
    const uint64_t memory = device_memory(bytes);
    const int64_t registered = ((int64_t(*)(void **, void *))found_in(library, "cuFileHandleRegister"))(&handle, &description);
    EXPECT(registered == 0 && handle != NULL);
    ssize_t (*transfer)(void *, uint64_t, size_t, off_t, off_t) =
        (ssize_t(*)(void *, uint64_t, size_t, off_t, off_t))found_in(library, "cuFileRead");
    EXPECT(transfer(handle, memory, 2 * bytes, 0, 0) == (ssize_t)bytes); // to the end of the file
    unsigned char *back = calloc(1, bytes);
    EXPECT(back != NULL && DRIVER("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), back, memory, bytes) == 0 &&
           memcmp(data, back, bytes) == 0);
    transfer = (ssize_t(*)(void *, uint64_t, size_t, off_t, off_t))found_in(library, "cuFileWrite");
    EXPECT(transfer(handle, memory, 100, 50, 10) == 100 && pread(descriptor, back, 100, 50) == 100 && memcmp(data + 10, back, 100) == 0);
    ((void (*)(void *))found_in(library, "cuFileHandleDeregister"))(handle);
    EXPECT(transfer(NULL, memory, 1, 0, 0) < 0);
    free(data);
    free(back);
    (void)close(descriptor);
}

static void test_others(void) {
    library = opened(folder, "libnvshmem_host.so.3");
    const size_t before = free_memory();
    EXPECT(CALL("nvshmem_n_pes", (void)) == 1 && CALL("nvshmem_my_pe", (void)) == 0);
    void *heap = ((void *(*)(size_t))found_in(library, "nvshmem_malloc"))(1 << 20);
    EXPECT(heap != NULL && free_memory() < before);
    ((void (*)(void *))found_in(library, "nvshmem_free"))(heap);
    EXPECT(free_memory() == before);
    library = opened(folder, "libnvToolsExt.so.1");
    EXPECT(CALL("nvtxRangePushA", (const char *), "one") == 0 && CALL("nvtxRangePushA", (const char *), "two") == 1);
    EXPECT(CALL("nvtxRangePop", (void)) == 1 && CALL("nvtxRangePop", (void)) == 0);
}

// Programs find the encoder's library, and learn only when they open a session that there is no encoder.
static void test_encoder(void) {
    library = opened(folder, "libnvidia-encode.so.1");
    uint32_t version = 0;
    EXPECT(CALL("NvEncodeAPIGetMaxSupportedVersion", (uint32_t *), &version) == 0 && version >= (11u << 4 | 1));
    struct {
        uint32_t version, reserved;
        void *functions[319]; // as many entries as any version of the interface has
    } list = {.version = 11 | 1u << 24 | 2u << 16 | 7u << 28};
    EXPECT(CALL("NvEncodeAPICreateInstance", (void *), &list) == 0);
    void *encoder = &list;
    enum { OPEN_SESSION_EX = 29, RESERVED = 33, LAST_ERROR_STRING = 37, LAST = 40 };
    for (int i = 0; i <= LAST; i++) EXPECT((list.functions[i] == NULL) == (i == RESERVED));
    EXPECT(list.functions[LAST + 1] == NULL);
    EXPECT(((int (*)(void *, void **))list.functions[OPEN_SESSION_EX])(NULL, &encoder) == 2 && encoder == &list);
    EXPECT(((const char *(*)(void *))list.functions[LAST_ERROR_STRING])(NULL)[0] != '\0');
    list.version = 200;
    EXPECT(CALL("NvEncodeAPICreateInstance", (void *), &list) == 15);
    EXPECT(CALL("NvEncodeAPICreateInstance", (void *), NULL) == 6);
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    folder = arguments[1];
    begin_driver();
    test_cupti();
    test_cusparselt();
    test_cufile();
    test_others();
    test_encoder();
    return 0;
}
