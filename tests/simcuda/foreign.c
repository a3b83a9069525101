// A program written without knowledge of vram: it loads libcuda by name, and declares all it needs itself.
// usage: foreign LIBCUDA. VRAM_SIM must give two devices of 64 MiB.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

struct location {
    int type, id;
};
struct prop {
    int type, handle_types;
    struct location location;
    void *meta;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
};
struct access {
    struct location location;
    int flags;
};

static CUresult (*GetProcAddress)(const char *, void **, int, uint64_t, int *);
static int failures;

#define CHECK(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                          \
            failures++;                                                                                                                    \
        }                                                                                                                                  \
    } while (0)

static void *proc(const char *name, int version, uint64_t flags) {
    void *found = NULL;
    int status = -1;
    CUresult result = GetProcAddress(name, &found, version, flags, &status);
    CHECK(result == 0 && status == 0 && found != NULL);
    return found;
}

// LOAD(name, version, (parameters)) declares a function pointer of that name.
#define LOAD_FLAGS(name, version, flags, parameters)                                                                                       \
    CUresult(*name) parameters;                                                                                                            \
    do {                                                                                                                                   \
        void *address_ = proc("cu" #name, version, flags);                                                                                 \
        memcpy(&name, &address_, sizeof address_);                                                                                         \
    } while (0)
#define LOAD(name, version, parameters) LOAD_FLAGS(name, version, 0, parameters)

// Returns whether the host may use device addresses.
static int has_bytes_at_addresses(void) { return strstr(getenv("VRAM_SIM"), "bytes=") == NULL; }

static void use_memory(void) {
    LOAD(MemAlloc, 3020, (CUdeviceptr *, size_t));
    LOAD(MemFree, 3020, (CUdeviceptr));
    LOAD(MemAllocPitch, 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned));
    LOAD(MemcpyHtoD, 3020, (CUdeviceptr, const void *, size_t));
    LOAD(MemcpyDtoD, 3020, (CUdeviceptr, CUdeviceptr, size_t));
    LOAD(MemcpyDtoH, 3020, (void *, CUdeviceptr, size_t));
    LOAD(MemGetInfo, 3020, (size_t *, size_t *));
    LOAD(PointerGetAttribute, 4000, (void *, int, CUdeviceptr));
    CUdeviceptr a = 0, b = 0, c = 0;
    size_t free_bytes = 0, total = 0, pitch = 0;
    char in[100], out[100];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (char)i;
    memset(out, 0, sizeof out);
    CHECK(MemAlloc(&a, 100) == 0 && MemAlloc(&b, 100) == 0);
    CHECK(MemcpyHtoD(a, in, 100) == 0 && MemcpyDtoD(b, a, 100) == 0 && MemcpyDtoH(out, b, 100) == 0);
    CHECK(memcmp(in, out, 100) == 0);
    CHECK(!has_bytes_at_addresses() || ((const char *)(uintptr_t)b)[99] == 99);
    CHECK(MemcpyHtoD(a + 1, in, 100) == 1);
    CHECK(MemGetInfo(&free_bytes, &total) == 0 && total == 64u << 20 && free_bytes == total - 200);
    CHECK(MemAlloc(&c, total - 199) == 2); // to the byte
    CHECK(MemAlloc(&c, total - 200) == 0 && MemFree(c) == 0);
    unsigned type = 0;
    int device = -1;
    CUdeviceptr start = 0;
    size_t size = 0;
    CHECK(PointerGetAttribute(&type, 2, a + 5) == 0 && type == 2);
    CHECK(PointerGetAttribute(&device, 9, a + 5) == 0 && device == 0);
    CHECK(PointerGetAttribute(&start, 11, a + 5) == 0 && start == a);
    CHECK(PointerGetAttribute(&size, 12, a + 5) == 0 && size == 100);
    CHECK(PointerGetAttribute(&type, 2, 4096) == 1);
    LOAD(PointerGetAttributes, 7000, (unsigned, int *, void **, CUdeviceptr));
    LOAD(PointerSetAttribute, 6000, (const void *, int, CUdeviceptr));
    int wanted[] = {2, 9, 11, 4};
    CUdeviceptr on_host = 1;
    void *values[] = {&type, &device, &start, &on_host};
    CHECK(PointerGetAttributes(3, wanted, values, a + 5) == 0 && type == 2 && device == 0 && start == a);
    CHECK(PointerGetAttributes(4, wanted, values, 4096) == 0 && type == 0 && device == 0 && start == 0 && on_host == 0);
    wanted[0] = 999;
    CHECK(PointerGetAttributes(1, wanted, values, a) == 1 && PointerGetAttributes(0, wanted, values, a) == 1);
    CHECK(PointerSetAttribute(&type, 6, a) == 0 && PointerSetAttribute(&type, 2, a) == 1 && PointerSetAttribute(&type, 6, 4096) == 1);
    unsigned access = 7, legacy = 7, handles = 7;
    unsigned long long buffer = 0, other = 0, pool = 7;
    CHECK(PointerGetAttribute(&access, 16, a) == 0 && access == 3 && PointerGetAttribute(&handles, 14, a) == 0 && handles == 0);
    CHECK(PointerGetAttribute(&legacy, 10, a) == 0 && legacy == 1 && PointerGetAttribute(&pool, 17, a) == 0 && pool == 0);
    CHECK(PointerGetAttribute(&buffer, 7, a + 5) == 0 && PointerGetAttribute(&other, 7, b) == 0 && buffer != other);
    CHECK(MemFree(a) == 0 && MemAlloc(&a, 100) == 0 && PointerGetAttribute(&other, 7, a) == 0 && buffer != other);
    CHECK(MemFree(a) == 0 && MemFree(b) == 0 && MemFree(b) == 1);
    CHECK(MemAllocPitch(&a, &pitch, 1000, 10, 4) == 0 && pitch == 1024 && MemFree(a) == 0);
}

static void map_twice(void) {
    LOAD(MemAddressReserve, 10020, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long));
    LOAD(MemAddressFree, 10020, (CUdeviceptr, size_t));
    LOAD(MemCreate, 10020, (unsigned long long *, size_t, const struct prop *, unsigned long long));
    LOAD(MemRelease, 10020, (unsigned long long));
    LOAD(MemMap, 10020, (CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long));
    LOAD(MemUnmap, 10020, (CUdeviceptr, size_t));
    LOAD(MemSetAccess, 10020, (CUdeviceptr, size_t, const struct access *, size_t));
    LOAD(MemcpyHtoD, 3020, (CUdeviceptr, const void *, size_t));
    LOAD(MemcpyDtoH, 3020, (void *, CUdeviceptr, size_t));
    LOAD(MemGetAllocationGranularity, 10020, (size_t *, const struct prop *, int));
    const struct prop prop = {.type = 1, .location = {1, 0}};
    const struct access access = {{1, 0}, 3};
    size_t page = 0;
    CUdeviceptr base = 0;
    unsigned long long handle = 0, too_much = 0;
    CHECK(MemGetAllocationGranularity(&page, &prop, 0) == 0 && page == 2u << 20);
    CHECK(MemAddressReserve(&base, 4 * page, 0, 0, 0) == 0);
    CHECK(MemCreate(&handle, page, &prop, 0) == 0);
    CHECK(MemCreate(&too_much, 32 * page, &prop, 0) == 2);
    CHECK(MemMap(base, page, 0, handle, 0) == 0 && MemMap(base + 2 * page, page, 0, handle, 0) == 0);
    CHECK(MemSetAccess(base, page, &access, 1) == 0 && MemSetAccess(base + 2 * page, page, &access, 1) == 0);
    CHECK(MemRelease(handle) == 0);
    const CUdeviceptr one = base + 4000, two = one + 2 * page;
    int number = 42;
    CHECK(MemcpyHtoD(one, &number, sizeof number) == 0 && MemcpyDtoH(&number, two, sizeof number) == 0 && number == 42);
    if (has_bytes_at_addresses()) CHECK(*(volatile int *)(uintptr_t)two == 42);
    number = 43;
    CHECK(MemcpyHtoD(two, &number, sizeof number) == 0 && MemUnmap(base, page) == 0);
    number = 0;
    CHECK(MemcpyDtoH(&number, two, sizeof number) == 0 && number == 43 && MemUnmap(base + 2 * page, page) == 0);
    CHECK(MemAddressFree(base, 4 * page) == 0);
}

static void use_streams(void) {
    LOAD(StreamCreateWithPriority, 5050, (CUstream *, unsigned, int));
    LOAD(StreamDestroy, 4000, (CUstream));
    LOAD(EventCreate, 2000, (CUevent *, unsigned));
    LOAD(EventDestroy, 4000, (CUevent));
    LOAD(EventRecord, 2000, (CUevent, CUstream));
    LOAD(EventSynchronize, 2000, (CUevent));
    LOAD(EventElapsedTime, 2000, (float *, CUevent, CUevent));
    LOAD(CtxSynchronize, 2000, (void));
    LOAD_FLAGS(StreamSynchronize, 7000, 2, (CUstream)); // its default stream is per thread
    CUstream stream = NULL;
    CUevent start = NULL, end = NULL;
    float elapsed = -1;
    CHECK(StreamCreateWithPriority(&stream, 1, 0) == 0 && EventCreate(&start, 0) == 0 && EventCreate(&end, 0) == 0);
    CHECK(EventRecord(start, stream) == 0 && EventRecord(end, stream) == 0 && EventSynchronize(end) == 0);
    CHECK(EventElapsedTime(&elapsed, start, end) == 0 && elapsed >= 0);
    CHECK(StreamSynchronize(NULL) == 0 && CtxSynchronize() == 0);
    CHECK(EventDestroy(start) == 0 && EventDestroy(end) == 0 && StreamDestroy(stream) == 0 && StreamDestroy(stream) == 400);
}

static void add_one(void *number) { ++*(int *)number; }

// Edge data is 8 bytes, all zero where nothing but order matters.
static void capture_graph(void) {
    LOAD(StreamCreate, 2000, (CUstream *, unsigned));
    LOAD(StreamDestroy, 4000, (CUstream));
    LOAD_FLAGS(StreamBeginCapture, 10010, 2, (CUstream, int));
    LOAD_FLAGS(StreamEndCapture, 10000, 2, (CUstream, CUgraph *));
    LOAD_FLAGS(StreamIsCapturing, 10000, 2, (CUstream, int *));
    LOAD(StreamGetCaptureInfo, 12030, (CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, const uint64_t **, size_t *));
    LOAD(StreamUpdateCaptureDependencies, 12030, (CUstream, CUgraphNode *, const uint64_t *, size_t, unsigned));
    LOAD(GraphNodeGetDependencies, 12030, (CUgraphNode, CUgraphNode *, uint64_t *, size_t *));
    LOAD(GraphGetEdges, 12030, (CUgraph, CUgraphNode *, CUgraphNode *, uint64_t *, size_t *));
    LOAD(LaunchHostFunc, 10000, (CUstream, void (*)(void *), void *));
    LOAD(GraphInstantiateWithFlags, 11040, (CUgraphExec *, CUgraph, unsigned long long));
    LOAD_FLAGS(GraphLaunch, 10000, 2, (CUgraphExec, CUstream));
    LOAD_FLAGS(StreamSynchronize, 7000, 2, (CUstream));
    LOAD(GraphExecDestroy, 10000, (CUgraphExec));
    LOAD(GraphDestroy, 10000, (CUgraph));
    CUstream stream = NULL;
    CUgraph graph = NULL, same = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode before = NULL, from = NULL, to = NULL;
    const CUgraphNode *frontier = NULL;
    const uint64_t *edges = NULL;
    uint64_t id = 0, edge = 7, bad_edge = 1;
    int status = 0, number = 0;
    size_t count = 0;
    CHECK(StreamCreate(&stream, 1) == 0 && StreamBeginCapture(stream, 0) == 0);
    CHECK(LaunchHostFunc(stream, add_one, &number) == 0 && LaunchHostFunc(stream, add_one, &number) == 0 && number == 0);
    CHECK(StreamGetCaptureInfo(stream, &status, &id, &same, &frontier, &edges, &count) == 0 && status == 1 && id != 0);
    CHECK(count == 1 && frontier != NULL && edges != NULL && edges[0] == 0);
    CHECK(GraphNodeGetDependencies(frontier[0], &before, &edge, &count) == 0 && count == 1 && edge == 0);
    CHECK(StreamUpdateCaptureDependencies(stream, &before, &bad_edge, 1, 0) == 1);
    CHECK(StreamUpdateCaptureDependencies(stream, &before, NULL, 1, 0) == 0);
    CHECK(StreamEndCapture(stream, &graph) == 0 && graph == same && StreamIsCapturing(stream, &status) == 0 && status == 0);
    edge = 7;
    CHECK(GraphGetEdges(graph, &from, &to, &edge, &count) == 0 && count == 1 && from == before && to != before && edge == 0);
    CHECK(GraphInstantiateWithFlags(&exec, graph, 0) == 0 && GraphDestroy(graph) == 0 && number == 0);
    CHECK(GraphLaunch(exec, stream) == 0 && GraphLaunch(exec, NULL) == 0);
    CHECK(StreamSynchronize(stream) == 0 && StreamSynchronize(NULL) == 0 && number == 4); // both launches' functions were called
    CHECK(GraphExecDestroy(exec) == 0 && StreamDestroy(stream) == 0);
    // The thread's default stream can capture; the legacy one cannot.
    CHECK(StreamBeginCapture(NULL, 0) == 0 && StreamIsCapturing(NULL, &status) == 0 && status == 1);
    CHECK(StreamEndCapture(NULL, &graph) == 0 && GraphDestroy(graph) == 0);
}

static void launch_kernel(void) {
    LOAD(ModuleLoadData, 2000, (void **, const void *));
    LOAD(ModuleGetFunction, 2000, (void **, void *, const char *));
    LOAD(ModuleUnload, 2000, (void *));
    LOAD_FLAGS(LaunchKernel, 7000, 2,
               (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **));
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry work(.param .u64 p) { ret; }\n";
    void *module = NULL, *function = NULL;
    uint64_t argument = 0;
    void *arguments[] = {&argument};
    CHECK(ModuleLoadData(&module, ptx) == 0 && ModuleGetFunction(&function, module, "works") == 500);
    CHECK(ModuleGetFunction(&function, module, "work") == 0);
    CHECK(LaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL) == 0);
    CHECK(LaunchKernel(function, 0, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL) == 1);
    CHECK(ModuleUnload(module) == 0 && LaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL) == 400);
}

static void use_contexts(void) {
    LOAD(CtxCreate, 3020, (CUcontext *, unsigned, CUdevice));
    LOAD(CtxDestroy, 4000, (CUcontext));
    LOAD(CtxPushCurrent, 4000, (CUcontext));
    LOAD(CtxPopCurrent, 4000, (CUcontext *));
    LOAD(CtxGetDevice, 2000, (CUdevice *));
    LOAD(DevicePrimaryCtxGetState, 7000, (CUdevice, unsigned *, int *));
    LOAD(DevicePrimaryCtxReset, 11000, (CUdevice));
    CUcontext own = NULL, popped = NULL;
    CUdevice device = -1;
    unsigned flags = 1;
    int active = -1;
    CHECK(CtxCreate(&own, 0, 1) == 0 && CtxGetDevice(&device) == 0 && device == 1);
    CHECK(CtxPopCurrent(&popped) == 0 && popped == own && CtxGetDevice(&device) == 0 && device == 0);
    CHECK(CtxPushCurrent(own) == 0 && CtxDestroy(own) == 0 && CtxGetDevice(&device) == 0 && device == 0);
    CHECK(CtxPushCurrent(own) == 201);
    LOAD_FLAGS(CtxGetFlags, 7000, 0, (unsigned *));
    CUresult (*First)(CUcontext *, unsigned, CUdevice) = NULL;
    CUresult (*Third)(CUcontext *, void *, int, unsigned, CUdevice) = NULL;
    CUresult (*Fourth)(CUcontext *, void *, unsigned, CUdevice) = NULL;
    void *creators[] = {proc("cuCtxCreate", 2000, 0), proc("cuCtxCreate", 11040, 0), proc("cuCtxCreate", 13000, 0)};
    memcpy(&First, &creators[0], sizeof First);
    memcpy(&Third, &creators[1], sizeof Third);
    memcpy(&Fourth, &creators[2], sizeof Fourth);
    CHECK(First(&own, 1, 0) == 0 && CtxGetFlags(&flags) == 0 && flags == 1 && CtxDestroy(own) == 0);
    CHECK(Third(&own, NULL, 0, 2, 0) == 0 && CtxGetFlags(&flags) == 0 && flags == 2 && CtxDestroy(own) == 0);
    CHECK(Third(&own, &own, 1, 2, 0) == 224 && Third(&own, NULL, 1, 2, 0) == 1);
    CHECK(Fourth(&own, NULL, 4, 0) == 0 && CtxGetFlags(&flags) == 0 && flags == 4 && CtxDestroy(own) == 0);
    CHECK(Fourth(&own, NULL, 3, 0) == 1);
    CHECK(DevicePrimaryCtxGetState(0, &flags, &active) == 0 && flags == 0 && active == 1);
    CHECK(DevicePrimaryCtxReset(0) == 0 && DevicePrimaryCtxGetState(0, &flags, &active) == 0 && active == 0);
}

static void ask_for_names(void) {
    LOAD(GetErrorName, 6000, (CUresult, const char **));
    LOAD(GetErrorString, 6000, (CUresult, const char **));
    void *found = &found, *v1, *v2;
    int status = -1;
    const char *text = NULL;
    CHECK(GetProcAddress("cuNoSuchFunction", &found, 13000, 0, &status) == 0 && found == NULL && status == 1);
    found = &found;
    CHECK(GetProcAddress("cuMemCreate", &found, 10010, 0, &status) == 0 && found == NULL && status == 2);
    CHECK(GetProcAddress("", &found, 0, 0, NULL) == 0 && found == NULL);
    CHECK(GetProcAddress("cuMemAlloc_v2", &found, 13000, 0, &status) == 0 && found == NULL && status == 1);
    CUresult (*V1)(const char *, void **, int, uint64_t) = NULL;
    void *first_version = proc("cuGetProcAddress", 11080, 0);
    memcpy(&V1, &first_version, sizeof V1);
    CHECK(V1("cuNoSuchFunction", &found, 11080, 0) == 500 && found == NULL);
    CHECK(V1("cuMemCreate", &found, 11080, 0) == 0 && found != NULL);
    v1 = proc("cuGetProcAddress", 11080, 0);
    v2 = proc("cuGetProcAddress", 13000, 0);
    CHECK(v1 != v2);
    CHECK(proc("cuEventRecord", 13000, 2) != proc("cuEventRecord", 13000, 0));
    CHECK(proc("cuMemAlloc", 13000, 2) == proc("cuMemAlloc", 3020, 0));
    CHECK(GetErrorName(2, &text) == 0 && strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    CHECK(GetErrorString(2, &text) == 0 && strcmp(text, "out of memory") == 0);
    CHECK(GetErrorName(12345, &text) == 1 && text == NULL);
    CHECK(GetErrorString(12345, &text) == 1 && text == NULL);
    CHECK(GetErrorName(209, &text) == 0 && strcmp(text, "CUDA_ERROR_NO_BINARY_FOR_GPU") == 0);
    CHECK(GetErrorString(209, &text) == 0 && strcmp(text, "no kernel image is available for execution on the device") == 0);
    CHECK(GetErrorString(202, &text) == 0 && strcmp(text, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT") == 0);
}

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    void *address = dlsym(library, "cuGetProcAddress_v2");
    if (address == NULL) return 2;
    memcpy(&GetProcAddress, &address, sizeof address);
    LOAD(Init, 2000, (unsigned));
    LOAD(DriverGetVersion, 2020, (int *));
    int version = 0;
    CHECK(DriverGetVersion(&version) == 0 && version >= 13000); // before cuInit
    LOAD(DeviceGet, 2000, (CUdevice *, int));
    LOAD(DevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice));
    LOAD(DevicePrimaryCtxRelease, 11000, (CUdevice));
    LOAD(CtxSetCurrent, 4000, (CUcontext));
    CUdevice device = -1;
    CUcontext context = NULL;
    CHECK(DeviceGet(&device, 0) == 3 && DevicePrimaryCtxRetain(&context, 0) == 3); // not initialized
    CHECK(Init(0) == 0 && Init(0) == 0);
    if (failures > 0) return failures;
    CHECK(DeviceGet(&device, 2) == 101 && DeviceGet(&device, 0) == 0 && device == 0);
    CHECK(DevicePrimaryCtxRetain(&context, device) == 0 && CtxSetCurrent(context) == 0);
    use_memory();
    map_twice();
    use_streams();
    capture_graph();
    launch_kernel();
    ask_for_names();
    use_contexts();
    CHECK(DevicePrimaryCtxRelease(device) == 0 && DevicePrimaryCtxRelease(device) == 201);
    return failures;
}
