// Tests the runtime without NVIDIA's headers: functions by name, in each of the three libraries. Devices are per thread, errors are
// remembered, memory runs out; a function has the form that its library's version gives to its name.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *runtime;
static int major;

static void *find(const char *name) {
    void *function = dlsym(runtime, name);
    if (function == NULL) {
        printf("no %s\n", name);
        exit(1);
    }
    return function;
}

#define CALL(name, parameters, ...) ((int(*) parameters)find(name))(__VA_ARGS__)
#define EXPECT(condition)                                                                                                                  \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            printf("%s:%d: not so with CUDA %d: %s\n", __FILE__, __LINE__, major, #condition);                                             \
            return 1;                                                                                                                      \
        }                                                                                                                                  \
    } while (0)

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_FUNCTION = 98, INVALID_DEVICE = 101, NOT_SUPPORTED = 801, MIB = 1 << 20 };

static int check_memory(void) {
    int count = 0;
    EXPECT(CALL("cudaGetDeviceCount", (int *), &count) == 0 && count == 2);
    void *first = NULL, *second = NULL, *much = NULL;
    EXPECT(CALL("cudaMalloc", (void **, size_t), &first, 512 * (size_t)MIB) == 0);
    EXPECT(CALL("cudaMalloc", (void **, size_t), &much, 600 * (size_t)MIB) == OUT_OF_MEMORY && much == NULL);
    EXPECT(CALL("cudaPeekAtLastError", (void)) == OUT_OF_MEMORY);
    EXPECT(CALL("cudaGetLastError", (void)) == OUT_OF_MEMORY && CALL("cudaGetLastError", (void)) == 0);
    EXPECT(CALL("cudaSetDevice", (int), 1) == 0);
    EXPECT(CALL("cudaMalloc", (void **, size_t), &second, 600 * (size_t)MIB) == 0);
    EXPECT(CALL("cudaSetDevice", (int), 2) == INVALID_DEVICE);
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT(CALL("cudaMemGetInfo", (size_t *, size_t *), &free_bytes, &total_bytes) == 0);
    EXPECT(total_bytes == 1024 * (size_t)MIB && free_bytes <= 424 * (size_t)MIB);
    EXPECT(CALL("cudaMemcpy", (void *, const void *, size_t, int), second, first, MIB, 9) == 21);
    EXPECT(CALL("cudaMemcpy", (void *, const void *, size_t, int), second, first, MIB, 3) == 0);
    EXPECT(CALL("cudaFree", (void *), second) == 0 && CALL("cudaFree", (void *), first) == 0);
    EXPECT(CALL("cudaFree", (void *), first) == 1);
    EXPECT(CALL("cudaSetDevice", (int), 0) == 0);
    return 0;
}

static int check_errors(void) {
    const char *(*name_of)(int) = (const char *(*)(int))find("cudaGetErrorName");
    const char *(*text_of)(int) = (const char *(*)(int))find("cudaGetErrorString");
    EXPECT(strcmp(name_of(INVALID_DEVICE), "cudaErrorInvalidDevice") == 0 && strcmp(text_of(OUT_OF_MEMORY), "out of memory") == 0);
    EXPECT(strcmp(name_of(123456), "unrecognized error code") == 0 && strcmp(text_of(-1), "unrecognized error code") == 0);
    EXPECT((strcmp(name_of(225), "cudaErrorUnsupportedDevSideSync") == 0) == (major >= 12));
    void *missing = (void *)1;
    int found = 0;
    if (major > 11) {
        EXPECT(CALL("cudaGetDriverEntryPoint", (const char *, void **, unsigned long long, int *), "cuNoSuchThing", &missing, 0, &found) ==
               0);
        EXPECT(missing == NULL && found == 1);
        EXPECT(CALL("cudaGetDriverEntryPoint", (const char *, void **, unsigned long long, int *), "cuInit", &missing, 0, &found) == 0);
        EXPECT(missing != NULL && found == 0);
    } else
        EXPECT(CALL("cudaGetDriverEntryPoint", (const char *, void **, unsigned long long), "cuNoSuchThing", &missing, 0) == 500);
    EXPECT(CALL("cudaImportExternalMemory", (void **, void *), &missing, NULL) == NOT_SUPPORTED);
    EXPECT(CALL("cudaGetLastError", (void)) == NOT_SUPPORTED || major == 11);
    (void)CALL("cudaGetLastError", (void));
    return 0;
}

// Before CUDA 13 an unsuffixed name kept its first signature; later signatures got a suffix.
static int check_forms(void) {
    static const struct {
        int major;
        const char *name;
    } known[] = {
        {11, "cudaBindTexture2D"},           {11, "cudaCreateTextureObject_v2"},   {11, "cudaStreamGetCaptureInfo_v2"},
        {12, "cudaStreamGetCaptureInfo_v2"}, {12, "cudaStreamGetCaptureInfo_v3"},  {12, "cudaGetDeviceProperties_v2"},
        {12, "cudaGraphAddNode_v2"},         {12, "cudaMemPrefetchAsync_v2_ptsz"}, {12, "cudaLibraryLoadData"},
        {13, "cudaLibraryLoadData"},         {13, "cudaLaunchHostFunc_v2"},        {13, "cudaGreenCtxCreate"},
        {13, "cudaMemcpyBatchAsync_ptsz"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].major == major) (void)find(known[i].name);
    EXPECT(major == 13 || dlsym(runtime, "cudaGreenCtxCreate") == NULL);
    EXPECT(major == 12 || dlsym(runtime, "cudaGetDeviceProperties_v2") == NULL);
    EXPECT(major == 11 || dlsym(runtime, "cudaBindTexture2D") == NULL);
    const char version[3][20] = {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"};
    EXPECT(dlvsym(runtime, "cudaMalloc", version[major - 11]) != NULL);
    int told = 0;
    EXPECT(CALL("cudaRuntimeGetVersion", (int *), &told) == 0 && told / 1000 == major);
    return 0;
}

// The struct has each version's size: memory after it belongs to the program.
static int check_properties(const char *name, size_t size) {
    unsigned char properties[1200];
    size_t total = 0;
    int warp = 0;
    memset(properties, 0xab, sizeof properties);
    EXPECT(CALL(name, (void *, int), properties, 1) == 0);
    EXPECT(properties[size] == 0xab && properties[size - 1] != 0xab);
    memcpy(&total, properties + 288, sizeof total);
    memcpy(&warp, properties + 308, sizeof warp);
    EXPECT(total == 1024 * (size_t)MIB && warp == 32 && properties[0] != '\0');
    EXPECT(CALL(name, (void *, int), properties, 7) == INVALID_DEVICE && CALL(name, (void *, int), NULL, 0) == INVALID_VALUE);
    (void)CALL("cudaGetLastError", (void));
    return 0;
}

static int check_capture(void) {
    uint64_t stream = 0, id = 0, graph = 0, captured = 0, node = 0;
    const uint64_t *after = NULL;
    size_t count = 7;
    int status = 7;
    EXPECT(CALL("cudaStreamCreateWithFlags", (uint64_t *, unsigned), &stream, 1) == 0 && stream != 0);
    EXPECT(CALL("cudaStreamBeginCapture", (uint64_t, int), stream, 0) == 0);
    if (major == 13)
        EXPECT(CALL("cudaStreamGetCaptureInfo", (uint64_t, int *, uint64_t *, uint64_t *, const uint64_t **, void **, size_t *), stream,
                    &status, &id, &graph, &after, NULL, &count) == 0);
    else {
        EXPECT(CALL("cudaStreamGetCaptureInfo", (uint64_t, int *, uint64_t *), stream, &status, &id) == 0 && status == 1 && id != 0);
        EXPECT(CALL("cudaStreamGetCaptureInfo_v2", (uint64_t, int *, uint64_t *, uint64_t *, const uint64_t **, size_t *), stream, &status,
                    &id, &graph, &after, &count) == 0);
    }
    EXPECT(status == 1 && graph != 0 && count == 0);
    EXPECT(CALL("cudaGraphAddEmptyNode", (uint64_t *, uint64_t, const uint64_t *, size_t), &node, graph, NULL, 0) == 0 && node != 0);
    EXPECT(CALL("cudaStreamEndCapture", (uint64_t, uint64_t *), stream, &captured) == 0 && captured == graph);
    EXPECT(CALL("cudaGraphGetNodes", (uint64_t, uint64_t *, size_t *), captured, NULL, &count) == 0 && count == 1);
    uint64_t exec = 0;
    if (major == 11)
        EXPECT(CALL("cudaGraphInstantiate", (uint64_t *, uint64_t, uint64_t *, char *, size_t), &exec, captured, NULL, NULL, 0) == 0 ||
               CALL("cudaGraphInstantiateWithFlags", (uint64_t *, uint64_t, uint64_t), &exec, captured, 0) == 0);
    else
        EXPECT(CALL("cudaGraphInstantiate", (uint64_t *, uint64_t, uint64_t), &exec, captured, 0) == 0);
    EXPECT(CALL("cudaGraphLaunch", (uint64_t, uint64_t), exec, stream) == 0 && CALL("cudaGraphExecDestroy", (uint64_t), exec) == 0);
    EXPECT(CALL("cudaGraphDestroy", (uint64_t), captured) == 0 && CALL("cudaStreamDestroy", (uint64_t), stream) == 0);
    return 0;
}

// Rows, arrays, textures and managed memory.
static int check_shapes(void) {
    unsigned char host[64], back[64] = {0};
    char *device = NULL, *managed = NULL;
    size_t pitch = 0;
    for (int i = 0; i < 64; i++) host[i] = (unsigned char)i;
    EXPECT(CALL("cudaMallocPitch", (void *, size_t *, size_t, size_t), &device, &pitch, 5, 4) == 0 && pitch >= 5);
    EXPECT(CALL("cudaMemcpy2D", (void *, size_t, const void *, size_t, size_t, size_t, int), device, pitch, host, 8, 5, 4, 1) == 0);
    EXPECT(CALL("cudaMemset2D", (void *, size_t, int, size_t, size_t), device + 1, pitch, 99, 1, 2) == 0);
    EXPECT(CALL("cudaMemcpy2DAsync_ptsz", (void *, size_t, const void *, size_t, size_t, size_t, int, void *), back, 5, device, pitch, 5, 4,
                2, NULL) == 0);
    EXPECT(CALL("cudaDeviceSynchronize", (void)) == 0 && back[0] == 0 && back[1] == 99 && back[6] == 99 && back[11] == 17 &&
           back[15] == 24);
    EXPECT(CALL("cudaMemcpy2D", (void *, size_t, const void *, size_t, size_t, size_t, int), device, 4, host, 8, 5, 4, 1) == 12);
    EXPECT(CALL("cudaFree", (void *), device) == 0);
    uint64_t array = 0, texture = 0;
    const struct { int x, y, z, w, kind; } bytes = {8, 0, 0, 0, 1}, three = {8, 8, 8, 0, 1};
    EXPECT(CALL("cudaMallocArray", (uint64_t *, const void *, size_t, size_t, unsigned), &array, &three, 8, 8, 0) == 20 && array == 0);
    EXPECT(CALL("cudaMallocArray", (uint64_t *, const void *, size_t, size_t, unsigned), &array, &bytes, 8, 8, 0) == 0 && array != 0);
    EXPECT(CALL("cudaMemcpy2DToArray", (uint64_t, size_t, size_t, const void *, size_t, size_t, size_t, int), array, 0, 0, host, 8, 8, 8,
                1) == 0);
    EXPECT(CALL("cudaMemcpy2DFromArray", (void *, size_t, uint64_t, size_t, size_t, size_t, size_t, int), back, 2, array, 3, 4, 2, 2, 2) ==
           0);
    EXPECT(back[0] == 35 && back[1] == 36 && back[2] == 43);
    // Twelve bytes from near the end of a row: its remainder, a whole row, and the beginning of a third.
    memset(back, 0, 16);
    EXPECT(CALL("cudaMemcpyToArray", (uint64_t, size_t, size_t, const void *, size_t, int), array, 6, 1, host, 12, 1) == 0);
    EXPECT(CALL("cudaMemcpyFromArray", (void *, uint64_t, size_t, size_t, size_t, int), back, array, 6, 1, 12, 2) == 0);
    EXPECT(memcmp(back, host, 12) == 0);
    EXPECT(CALL("cudaMemcpyToArray", (uint64_t, size_t, size_t, const void *, size_t, int), array, 6, 7, host, 12, 1) == 1);
    struct {
        int kind;
        uint64_t array, more[16];
    } resource = {.array = array}, found;
    struct {
        int words[32];
    } settings = {{1, 2, 0, 1}}, kept;
    memset(&found, 0xab, sizeof found);
    memset(&kept, 0xab, sizeof kept);
    EXPECT(CALL("cudaCreateTextureObject", (uint64_t *, const void *, const void *, const void *), &texture, &resource, &settings, NULL) ==
           0);
    EXPECT(CALL("cudaGetTextureObjectResourceDesc", (void *, uint64_t), &found, texture) == 0 && found.array == array);
    EXPECT(CALL("cudaGetTextureObjectTextureDesc", (void *, uint64_t), &kept, texture) == 0 && kept.words[1] == 2 && kept.words[3] == 1);
    EXPECT(kept.words[major == 11 ? 17 : 18] == (int)0xababababu);
    EXPECT(CALL("cudaDestroyTextureObject", (uint64_t), texture) == 0 && CALL("cudaFreeArray", (uint64_t), array) == 0);
    EXPECT(CALL("cudaMallocManaged", (void *, size_t, unsigned), &managed, 4 * (size_t)MIB, 1) == 0);
    managed[5] = 7;
    if (major == 13) {
        const struct { int type, id; } there = {1, 1};
        typedef __typeof__(there) place;
        EXPECT(CALL("cudaMemPrefetchAsync", (const void *, size_t, place, unsigned, void *), managed, MIB, there, 0, NULL) == 0);
    } else
        EXPECT(CALL("cudaMemPrefetchAsync", (const void *, size_t, int, void *), managed, MIB, 1, NULL) == 0);
    struct {
        int type, device;
        void *on_device, *on_host;
        long reserved[8];
    } what;
    memset(&what, 0xab, sizeof what);
    EXPECT(CALL("cudaPointerGetAttributes", (void *, const void *), &what, managed) == 0 && what.type == 3 && what.on_host == managed);
    EXPECT((what.reserved[0] == 0) == (major == 13));
    EXPECT(CALL("cudaFree", (void *), managed) == 0);
    (void)CALL("cudaGetLastError", (void));
    return 0;
}

static void count_up(void *number) { ++*(int *)number; }

static int check_streams(void) {
    uint64_t first = 0, second = 0;
    int calls = 0;
    float ms = -1;
    EXPECT(CALL("cudaEventCreate", (uint64_t *), &first) == 0 && CALL("cudaEventCreateWithFlags", (uint64_t *, unsigned), &second, 0) == 0);
    EXPECT(CALL("cudaEventRecord", (uint64_t, void *), first, NULL) == 0);
    EXPECT(CALL("cudaLaunchHostFunc", (void *, void (*)(void *), void *), NULL, count_up, &calls) == 0);
    EXPECT(CALL("cudaEventRecord_ptsz", (uint64_t, void *), second, NULL) == 0);
    EXPECT(CALL("cudaDeviceSynchronize", (void)) == 0 && calls == 1);
    EXPECT(CALL("cudaEventElapsedTime", (float *, uint64_t, uint64_t), &ms, first, second) == 0 && ms >= 0);
    EXPECT(CALL("cudaEventDestroy", (uint64_t), first) == 0 && CALL("cudaEventDestroy", (uint64_t), second) == 0);
    return 0;
}

// A texture of linear memory returns the same resource.
static int check_lines(void) {
    enum { LINEAR = 2, FLOATS = 2 };
    struct {
        int kind;
        uint64_t address;
        int channel[5];
        size_t bytes;
        uint64_t more[13];
    } line = {.kind = LINEAR, .channel = {32, 0, 0, 0, FLOATS}, .bytes = 1024}, found;
    const int settings[32] = {1, 1, 1, 0};
    uint64_t texture = 0;
    memset(&found, 0xab, sizeof found);
    EXPECT(CALL("cudaMalloc", (uint64_t *, size_t), &line.address, 4096) == 0);
    EXPECT(CALL("cudaCreateTextureObject", (uint64_t *, const void *, const void *, const void *), &texture, &line, settings, NULL) == 0);
    EXPECT(CALL("cudaGetTextureObjectResourceDesc", (void *, uint64_t), &found, texture) == 0);
    EXPECT(found.kind == LINEAR && found.address == line.address && found.bytes == 1024);
    EXPECT(found.channel[0] == 32 && found.channel[1] == 0 && found.channel[4] == FLOATS);
    EXPECT(CALL("cudaDestroyTextureObject", (uint64_t), texture) == 0 && CALL("cudaFree", (uint64_t), line.address) == 0);
    return 0;
}

// The runtime returns the launch configurations of <<< and >>>, last first.
static int check_configurations(void) {
    typedef struct {
        unsigned x, y, z;
    } dim3;
    static int of_stream;
    for (unsigned i = 0; i < 2; i++)
        EXPECT(CALL("__cudaPushCallConfiguration", (dim3, dim3, size_t, void *), (dim3){i, 2, 3}, (dim3){4, i, 6}, 7 + i, &of_stream) == 0);
    for (unsigned i = 2; i-- > 0;) {
        dim3 grid = {0}, block = {0};
        size_t shared_bytes = 0;
        void *stream = NULL;
        EXPECT(CALL("__cudaPopCallConfiguration", (dim3 *, dim3 *, size_t *, void *), &grid, &block, &shared_bytes, &stream) == 0);
        EXPECT(grid.x == i && grid.y == 2 && grid.z == 3 && block.x == 4 && block.y == i && block.z == 6);
        EXPECT(shared_bytes == 7 + i && stream == &of_stream);
    }
    return 0;
}

static int check_choices(void) {
    static const char any_properties[1032] = {0};
    int device = -1, second[] = {1, 0}, wrong[] = {0, 2};
    EXPECT(CALL("cudaChooseDevice", (int *, const void *), &device, any_properties) == 0 && device == 0);
    EXPECT(CALL("cudaChooseDevice", (int *, const void *), &device, NULL) == INVALID_VALUE);
    EXPECT(CALL("cudaChooseDevice", (int *, const void *), NULL, any_properties) == INVALID_VALUE);
    EXPECT(CALL("cudaSetValidDevices", (int *, int), second, 2) == 0 && CALL("cudaGetDevice", (int *), &device) == 0 && device == 1);
    EXPECT(CALL("cudaSetValidDevices", (int *, int), wrong, 2) == INVALID_DEVICE);
    EXPECT(CALL("cudaSetValidDevices", (int *, int), NULL, 1) == INVALID_VALUE);
    EXPECT(CALL("cudaSetValidDevices", (int *, int), NULL, 0) == 0);
    EXPECT(CALL("cudaSetDevice", (int), 0) == 0);
    (void)CALL("cudaGetLastError", (void));
    return 0;
}

// Tests a kernel that was not registered and an invalid fat binary: no crash, and nothing is executed.
static int check_kernels(void) {
    static const int not_a_kernel = 0, not_an_image[16] = {1, 2, 3};
    static const struct {
        int magic, version;
        const void *data, *further;
    } wrapper = {0x466243b1, 1, not_an_image, NULL};
    static const char kernel = 0, variable = 0;
    typedef struct {
        unsigned x, y, z;
    } dim3;
    const dim3 one = {1, 1, 1};
    EXPECT(CALL("cudaLaunchKernel", (const void *, dim3, dim3, void **, size_t, void *), &not_a_kernel, one, one, NULL, 0, NULL) ==
           INVALID_FUNCTION);
    EXPECT(CALL("cudaLaunchKernel", (const void *, dim3, dim3, void **, size_t, void *), NULL, one, one, NULL, 0, NULL) ==
           INVALID_FUNCTION);
    void **(*begin)(const void *) = (void **(*)(const void *))find("__cudaRegisterFatBinary");
    void **module = begin(&wrapper);
    EXPECT(module != NULL);
    ((void (*)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *))find("__cudaRegisterFunction"))(
        module, &kernel, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
    ((void (*)(void **, const char *, char *, const char *, int, size_t, int, int))find("__cudaRegisterVar"))(module, &variable, NULL,
                                                                                                              "variable", 0, 64, 0, 0);
    EXPECT(CALL("cudaLaunchKernel", (const void *, dim3, dim3, void **, size_t, void *), &kernel, one, one, NULL, 0, NULL) != 0);
    EXPECT(CALL("cudaLaunchKernel", (const void *, dim3, dim3, void **, size_t, void *), &variable, one, one, NULL, 0, NULL) ==
           INVALID_FUNCTION);
    ((void (*)(void **))find("__cudaUnregisterFatBinary"))(module);
    EXPECT(CALL("cudaLaunchKernel", (const void *, dim3, dim3, void **, size_t, void *), &kernel, one, one, NULL, 0, NULL) ==
           INVALID_FUNCTION);
    (void)CALL("cudaGetLastError", (void));
    return 0;
}

// A PTX kernel, registered as by nvcc's code: launched, queried, and refused if the launch is wrong.
static int check_launches(void) {
    static const char ptx[] =
        ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry work(.param .u64 p0)\n.maxntid 256, 1, 1\n{\nret;\n}\n";
    static const struct {
        int magic, version;
        const void *data, *further;
    } wrapper = {0x466243b1, 1, ptx, NULL};
    static const char host = 0, lost = 0;
    typedef struct {
        unsigned x, y, z;
    } dim3;
    const dim3 one = {1, 1, 1}, many = {2048, 1, 1}, none = {0, 1, 1}, most = {512, 1, 1};
    struct {
        size_t sizes[3];
        int numbers[64];
    } attributes;
    uint64_t argument = 0;
    void *arguments[] = {&argument};
    int blocks = 0;
    void **module = ((void **(*)(const void *))find("__cudaRegisterFatBinary"))(&wrapper);
    void (*add)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *) =
        (void (*)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *))find("__cudaRegisterFunction");
    add(module, &host, NULL, "work", -1, NULL, NULL, NULL, NULL, NULL);
    add(module, &lost, NULL, "not_there", -1, NULL, NULL, NULL, NULL, NULL);
    int (*launch)(const void *, dim3, dim3, void **, size_t, void *) =
        (int (*)(const void *, dim3, dim3, void **, size_t, void *))find("cudaLaunchKernel");
    EXPECT(launch(&host, many, one, arguments, 0, NULL) == 0 && CALL("cudaDeviceSynchronize", (void)) == 0);
    EXPECT(launch(&host, one, many, arguments, 0, NULL) == 9 && launch(&host, none, one, arguments, 0, NULL) == 9);
    EXPECT(launch(&host, one, most, arguments, 0, NULL) == 701); // more than .maxntid
    EXPECT(launch(&host, one, (dim3){8, 8, 32}, arguments, 0, NULL) == 9 && launch(&host, one, (dim3){2, 2, 65}, arguments, 0, NULL) == 9);
    EXPECT(launch(&lost, one, one, arguments, 0, NULL) == INVALID_FUNCTION);
    memset(&attributes, 0xab, sizeof attributes);
    EXPECT(CALL("cudaFuncGetAttributes", (void *, const void *), &attributes, &host) == 0);
    EXPECT(attributes.numbers[0] == 256 && attributes.numbers[2] == 70 && attributes.numbers[major == 11 ? 8 : 30] == (int)0xababababu);
    EXPECT(CALL("cudaFuncGetAttributes", (void *, const void *), &attributes, &wrapper) == INVALID_FUNCTION);
    EXPECT(CALL("cudaFuncSetAttribute", (const void *, int, int), &host, 8, 1024) == 0);
    EXPECT(CALL("cudaOccupancyMaxActiveBlocksPerMultiprocessor", (int *, const void *, int, size_t), &blocks, &host, 128, 0) == 0);
    EXPECT(blocks > 1);
    if (major > 11) {
        void *kernel = NULL;
        EXPECT(CALL("__cudaGetKernel", (void **, const void *), &kernel, &host) == 0 && kernel != NULL);
        EXPECT(CALL("__cudaLaunchKernel", (void *, dim3, dim3, void **, size_t, void *), kernel, one, one, arguments, 0, NULL) == 0);
        EXPECT(launch(kernel, one, one, arguments, 0, NULL) == 0); // a handle works like an address
    }
    ((void (*)(void **))find("__cudaUnregisterFatBinary"))(module);
    EXPECT(launch(&host, one, one, arguments, 0, NULL) == INVALID_FUNCTION);
    (void)CALL("cudaGetLastError", (void));
    return 0;
}

// Nodes whose parameters differ between the runtime and the driver, both ways.
static int check_nodes(void) {
    char *memory = NULL, back[4] = {0};
    uint64_t graph = 0, copy = 0, set = 0, exec = 0;
    struct {
        void *to;
        size_t pitch;
        unsigned value, element;
        size_t width, rows;
    } fill = {.value = 7, .element = 1, .width = 64, .rows = 1}, kept = {0};
    struct {
        uint64_t from_array, from_at[3];
        void *from;
        size_t from_rest[3];
        uint64_t to_array, to_at[3];
        void *to;
        size_t to_rest[3], extent[3];
        int kind;
    } found;
    EXPECT(CALL("cudaMalloc", (void *, size_t), &memory, 4096) == 0 && CALL("cudaGraphCreate", (uint64_t *, unsigned), &graph, 0) == 0);
    fill.to = memory;
    EXPECT(CALL("cudaGraphAddMemsetNode", (uint64_t *, uint64_t, const uint64_t *, size_t, const void *), &set, graph, NULL, 0, &fill) ==
           0);
    EXPECT(CALL("cudaGraphAddMemcpyNode1D", (uint64_t *, uint64_t, const uint64_t *, size_t, void *, const void *, size_t, int), &copy,
                graph, &set, 1, memory + 1024, memory, 64, 3) == 0);
    EXPECT(CALL("cudaGraphMemcpyNodeGetParams", (uint64_t, void *), copy, &found) == 0);
    EXPECT(found.from == memory && found.to == memory + 1024 && found.extent[0] == 64 && found.extent[1] == 1);
    EXPECT(CALL("cudaGraphMemsetNodeGetParams", (uint64_t, void *), set, &kept) == 0 && kept.value == 7 && kept.to == memory);
    EXPECT(CALL("cudaGraphInstantiateWithFlags", (uint64_t *, uint64_t, uint64_t), &exec, graph, 0) == 0);
    fill.value = 9;
    EXPECT(CALL("cudaGraphExecMemsetNodeSetParams", (uint64_t, uint64_t, const void *), exec, set, &fill) == 0);
    EXPECT(CALL("cudaGraphLaunch", (uint64_t, void *), exec, NULL) == 0 && CALL("cudaDeviceSynchronize", (void)) == 0);
    EXPECT(CALL("cudaMemcpy", (void *, const void *, size_t, int), back, memory + 1024, 4, 2) == 0 && back[3] == 9);
    EXPECT(CALL("cudaGraphExecMemcpyNodeSetParams1D", (uint64_t, uint64_t, void *, const void *, size_t, int), exec, copy, memory + 2048,
                memory, 64, 3) == 0);
    EXPECT(CALL("cudaGraphLaunch", (uint64_t, void *), exec, NULL) == 0 && CALL("cudaDeviceSynchronize", (void)) == 0);
    EXPECT(CALL("cudaMemcpy", (void *, const void *, size_t, int), back, memory + 2048, 4, 2) == 0 && back[3] == 9);
    EXPECT(CALL("cudaGraphExecDestroy", (uint64_t), exec) == 0 && CALL("cudaGraphDestroy", (uint64_t), graph) == 0);
    EXPECT(CALL("cudaFree", (void *), memory) == 0);
    return 0;
}

// CUDA 13 only: the second device's own context, and a green one with all its multiprocessors.
static int check_execution(void) {
    enum { MULTIPROCESSORS = 1 };
    char resource[144], asked[144];
    uint64_t whole = 0, green = 0, description = 0, stream = 0, event = 0;
    unsigned long long id = 0, green_id = 0;
    int device = 7;
    if (major < 13) return 0;
    EXPECT(CALL("cudaDeviceGetExecutionCtx", (uint64_t *, int), &whole, 9) == INVALID_DEVICE && whole == 0);
    EXPECT(CALL("cudaDeviceGetExecutionCtx", (uint64_t *, int), &whole, 1) == 0 && whole != 0);
    EXPECT(CALL("cudaDeviceGetDevResource", (int, void *, int), 1, resource, MULTIPROCESSORS) == 0);
    EXPECT(CALL("cudaDevResourceGenerateDesc", (uint64_t *, void *, unsigned), &description, resource, 1) == 0);
    EXPECT(CALL("cudaGreenCtxCreate", (uint64_t *, uint64_t, int, unsigned), &green, description, 1, 1) == INVALID_VALUE);
    EXPECT(CALL("cudaGreenCtxCreate", (uint64_t *, uint64_t, int, unsigned), &green, description, 1, 0) == 0);
    EXPECT(CALL("cudaSetDevice", (int), 1) == 0 && CALL("cudaEventCreate", (uint64_t *), &event) == 0 &&
           CALL("cudaSetDevice", (int), 0) == 0);
    for (int i = 0; i < 2; i++) {
        const uint64_t execution = i == 0 ? whole : green;
        EXPECT(CALL("cudaExecutionCtxGetDevice", (int *, uint64_t), &device, execution) == 0 && device == 1);
        EXPECT(CALL("cudaExecutionCtxGetDevResource", (uint64_t, void *, int), execution, asked, MULTIPROCESSORS) == 0);
        EXPECT(memcmp(asked, resource, sizeof resource) == 0);
        EXPECT(CALL("cudaExecutionCtxStreamCreate", (uint64_t *, uint64_t, unsigned, int), &stream, execution, 0, 0) == 0);
        EXPECT(CALL("cudaStreamGetDevResource", (uint64_t, void *, int), stream, asked, MULTIPROCESSORS) == 0);
        EXPECT(memcmp(asked, resource, sizeof resource) == 0);
        EXPECT(CALL("cudaExecutionCtxRecordEvent", (uint64_t, uint64_t), execution, event) == 0);
        EXPECT(CALL("cudaExecutionCtxWaitEvent", (uint64_t, uint64_t), execution, event) == 0);
        EXPECT(CALL("cudaExecutionCtxSynchronize", (uint64_t), execution) == 0);
        EXPECT(CALL("cudaStreamDestroy", (uint64_t), stream) == 0);
    }
    EXPECT(CALL("cudaExecutionCtxGetId", (uint64_t, unsigned long long *), whole, &id) == 0);
    EXPECT(CALL("cudaExecutionCtxGetId", (uint64_t, unsigned long long *), green, &green_id) == 0 && green_id != id);
    EXPECT(CALL("cudaExecutionCtxDestroy", (uint64_t), green) == 0 && CALL("cudaExecutionCtxDestroy", (uint64_t), whole) == INVALID_VALUE);
    EXPECT(CALL("cudaExecutionCtxSynchronize", (uint64_t), green) != 0 && CALL("cudaGetDevice", (int *), &device) == 0 && device == 0);
    EXPECT(CALL("cudaEventDestroy", (uint64_t), event) == 0 && CALL("cudaGetLastError", (void)) != 0);
    return 0;
}

// A thread has no context until a call needs one, and has its own device and error.
static void *check_thread(void *unused) {
    (void)unused;
    static int wrong = 1;
    int device = 7;
    void *memory = NULL;
    (void)CALL("cudaSetDevice", (int), 99);
    if (CALL("cudaPeekAtLastError", (void)) != INVALID_DEVICE) return &wrong;
    if (CALL("cudaGetDevice", (int *), &device) != 0 || device != 0) return &wrong;
    if (CALL("cudaMallocAsync", (void **, size_t, void *), &memory, MIB, NULL) != 0 || memory == NULL) return &wrong;
    return CALL("cudaFreeAsync", (void *, void *), memory, NULL) == 0 ? NULL : &wrong;
}

// Addresses that are not a device's, no longer are, or are past the end of an allocation.
static int check_wrong_addresses(void) {
    unsigned char *device = NULL, *gone = NULL, host[64];
    EXPECT(CALL("cudaMalloc", (void **, size_t), (void **)&gone, 2 * (size_t)MIB) == 0);
    EXPECT(CALL("cudaMalloc", (void **, size_t), (void **)&device, MIB) == 0 && CALL("cudaFree", (void *), gone) == 0);
    unsigned char *const wrong[] = {(unsigned char *)(uintptr_t)0xdeadbeefcafe0000, (unsigned char *)(uintptr_t)0x100, gone + MIB,
                                    device + MIB - 8, (unsigned char *)UINTPTR_MAX - 15};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *at = wrong[i];
        for (int kind = 1; kind <= 4; kind++) { // to the device, from it, between two, by the address
            EXPECT(kind == 2 || CALL("cudaMemcpy", (void *, const void *, size_t, int), at, device, 64, kind) == INVALID_VALUE);
            EXPECT(kind == 1 || CALL("cudaMemcpy", (void *, const void *, size_t, int), device, at, 64, kind) == INVALID_VALUE);
            EXPECT(CALL("cudaMemcpyAsync", (void *, const void *, size_t, int, void *), at, device, 64, kind, NULL) == INVALID_VALUE);
            EXPECT(CALL("cudaMemcpy2D", (void *, size_t, const void *, size_t, size_t, size_t, int), host, 16, at, 16, 16, 4, kind) ==
                   INVALID_VALUE);
        }
        EXPECT(CALL("cudaMemset", (void *, int, size_t), at, 1, 64) == INVALID_VALUE);
        EXPECT(CALL("cudaMemset2D", (void *, size_t, int, size_t, size_t), at, 64, 1, 64, 2) == INVALID_VALUE);
        EXPECT(CALL("cudaMemcpyPeer", (void *, int, const void *, int, size_t), at, 0, device, 0, 64) == INVALID_VALUE);
    }
    EXPECT(CALL("cudaGetLastError", (void)) == INVALID_VALUE);
    EXPECT(CALL("cudaMemcpy", (void *, const void *, size_t, int), host, device, 64, 2) == 0);
    EXPECT(CALL("cudaFree", (void *), device) == 0);
    return 0;
}

int main(int argc, char **argv) {
    runtime = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (runtime == NULL) {
        printf("%s\n", argc == 2 ? dlerror() : "usage: cudart_plain LIBRARY");
        return 1;
    }
    major = atoi(strstr(argv[1], ".so.") + 4);
    pthread_t thread;
    void *wrong = NULL;
    if (check_forms() || check_memory() || check_errors() || check_capture() || check_streams() || check_shapes() || check_kernels() ||
        check_launches() || check_nodes() || check_lines() || check_configurations() || check_choices() || check_execution() ||
        check_wrong_addresses())
        return 1;
    if (check_properties("cudaGetDeviceProperties", major == 13 ? 1008 : 728)) return 1;
    if (major == 12 && check_properties("cudaGetDeviceProperties_v2", 1032)) return 1;
    EXPECT(pthread_create(&thread, NULL, check_thread, NULL) == 0 && pthread_join(thread, &wrong) == 0 && wrong == NULL);
    EXPECT(CALL("cudaPeekAtLastError", (void)) == 0);
    EXPECT(CALL("cudaDeviceReset", (void)) == 0);
    return 0;
}
