// Passes invalid addresses to every driver function that takes a device address: each returns INVALID_VALUE, and the program continues.
// Cases that CUDA leaves undefined, such as an unmapped host address, return the same. usage: wrong_addresses [NAME]: only one function.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/abi.h"
#include "sim/sim_abi.h"
#include "libcuda.h"

enum { MIB = 1 << 20, ROW = 64, ROWS = 4, PITCH = 512 };

static uint64_t device, other, array, stream, context, graph; // valid values
static unsigned char host[ROW * ROWS];

struct wrong {
    const char *name;
    uint64_t address;
    uint64_t size_bytes;
    bool whole; // not even the first byte exists
};

// --- the functions ----------------------------------------------------------------------------------------------------------------------

// Makes a copy of rows with this source or target.
static struct vr_cu_memcpy2d rows(bool to, uint64_t address, int32_t type) {
    const struct vr_cu_memcpy2d_side right = {.memory_type = VR_CU_MEMORY_TYPE_DEVICE, .device = device, .pitch_bytes = PITCH};
    const struct vr_cu_memcpy2d_side wrong = {.memory_type = type, .device = address, .pitch_bytes = PITCH};
    return (struct vr_cu_memcpy2d){.from = to ? right : wrong, .to = to ? wrong : right, .width_bytes = ROW, .rows = ROWS};
}

static struct vr_cu_memcpy3d planes(bool to, uint64_t address, int32_t type) {
    struct vr_cu_memcpy_side right = {.memory_type = VR_CU_MEMORY_TYPE_DEVICE, .device = device, .pitch_bytes = PITCH, .rows = ROWS};
    struct vr_cu_memcpy_side wrong = {.memory_type = type, .device = address, .pitch_bytes = PITCH, .rows = ROWS};
    return (struct vr_cu_memcpy3d){.from = to ? right : wrong, .to = to ? wrong : right, .width_bytes = ROW, .rows = ROWS, .planes = 2};
}

static struct vr_cu_memcpy3d between(bool to, uint64_t address) {
    struct vr_cu_memcpy3d copy = planes(to, address, VR_CU_MEMORY_TYPE_DEVICE);
    copy.to.reserved = copy.from.reserved = context;
    return copy;
}

static struct vr_cu_memcpy3d_batched batched(bool to, uint64_t address) {
    const struct vr_cu_memcpy3d_operand right = {.type = 1, .memory = {.address = device}};
    const struct vr_cu_memcpy3d_operand wrong = {.type = 1, .memory = {.address = address}};
    return (struct vr_cu_memcpy3d_batched){
        .from = to ? right : wrong, .to = to ? wrong : right, .width = ROW, .height = 1, .depth = 1, .access_order = 1};
}

static int batch(bool to, uint64_t address, uint64_t size_bytes) {
    const struct vr_cu_memcpy_attributes attributes = {.access_order = 1};
    const uint64_t first = 0, good = device;
    return cuMemcpyBatchAsync_v2(to ? &address : &good, to ? &good : &address, &size_bytes, 1, &attributes, &first, 1, stream);
}

static struct vr_cu_memset_node set_of(uint64_t address, uint64_t size_bytes) {
    return (struct vr_cu_memset_node){.address = address, .element_bytes = 1, .width_elements = size_bytes, .rows = 1};
}

static int set_node(uint64_t address, uint64_t size_bytes) {
    const struct vr_cu_memset_node set = set_of(address, size_bytes);
    uint64_t node;
    return cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context);
}

static int copy_node(bool to, uint64_t address) {
    const struct vr_cu_memcpy3d copy = planes(to, address, VR_CU_MEMORY_TYPE_DEVICE);
    uint64_t node;
    return cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context);
}

// Changes a valid node, in the graph or in its executable.
static int changed_set(uint64_t address, uint64_t size_bytes, bool executable) {
    const struct vr_cu_memset_node right = set_of(device, ROW), wrong = set_of(address, size_bytes);
    uint64_t made, node, exec;
    int result = cuGraphCreate(&made, 0) != 0 || cuGraphAddMemsetNode(&node, made, NULL, 0, &right, context) != 0 ||
                 cuGraphInstantiateWithFlags(&exec, made, 0) != 0;
    if (result != 0) return -1;
    result = executable ? cuGraphExecMemsetNodeSetParams(exec, node, &wrong, context) : cuGraphMemsetNodeSetParams(node, &wrong);
    return cuGraphExecDestroy(exec) != 0 || cuGraphDestroy(made) != 0 ? -1 : result;
}

static int changed_copy(bool to, uint64_t address, bool executable) {
    const struct vr_cu_memcpy3d right = planes(false, other, VR_CU_MEMORY_TYPE_DEVICE);
    const struct vr_cu_memcpy3d wrong = planes(to, address, VR_CU_MEMORY_TYPE_DEVICE);
    uint64_t made, node, exec;
    int result = cuGraphCreate(&made, 0) != 0 || cuGraphAddMemcpyNode(&node, made, NULL, 0, &right, context) != 0 ||
                 cuGraphInstantiateWithFlags(&exec, made, 0) != 0;
    if (result != 0) return -1;
    result = executable ? cuGraphExecMemcpyNodeSetParams(exec, node, &wrong, context) : cuGraphMemcpyNodeSetParams(node, &wrong);
    return cuGraphExecDestroy(exec) != 0 || cuGraphDestroy(made) != 0 ? -1 : result;
}

static struct vr_cu_mem_op op_of(int operation, uint64_t address) {
    return (struct vr_cu_mem_op){.operation = operation, .address = address & ~(uint64_t)7, .value = 1};
}

static int ops(int operation, uint64_t address) {
    const struct vr_cu_mem_op list[] = {op_of(VR_CU_STREAM_MEM_OP_WRITE_VALUE_32, device), op_of(operation, address)};
    return cuStreamBatchMemOp_v2(stream, 2, list, 0);
}

static int ops_node(uint64_t address) {
    const struct vr_cu_mem_op op = op_of(VR_CU_STREAM_MEM_OP_WRITE_VALUE_64, address);
    const struct vr_cu_batch_node node = {.context = context, .count = 1, .ops = &op};
    uint64_t made;
    return cuGraphAddBatchMemOpNode(&made, graph, NULL, 0, &node);
}

// Functions with a pointer and a size, or those that access only the first bytes (whole).
#define SIZED(X)                                                                                                                           \
    X(cuMemcpy to, cuMemcpy(a, device, n))                                                                                                 \
    X(cuMemcpy from, cuMemcpy(device, a, n))                                                                                               \
    X(cuMemcpyAsync to, cuMemcpyAsync(a, device, n, stream))                                                                               \
    X(cuMemcpyAsync from, cuMemcpyAsync(device, a, n, stream))                                                                             \
    X(cuMemcpyHtoD, cuMemcpyHtoD_v2(a, host, n))                                                                                           \
    X(cuMemcpyDtoH, cuMemcpyDtoH_v2(host, a, n))                                                                                           \
    X(cuMemcpyDtoD to, cuMemcpyDtoD_v2(a, device, n))                                                                                      \
    X(cuMemcpyDtoD from, cuMemcpyDtoD_v2(device, a, n))                                                                                    \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2(a, host, n, stream))                                                                         \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2(host, a, n, stream))                                                                         \
    X(cuMemcpyDtoDAsync to, cuMemcpyDtoDAsync_v2(a, device, n, stream))                                                                    \
    X(cuMemcpyDtoDAsync from, cuMemcpyDtoDAsync_v2(device, a, n, stream))                                                                  \
    X(cuMemcpy_ptds, cuMemcpy_ptds(device, a, n))                                                                                          \
    X(cuMemcpyHtoD_ptds, cuMemcpyHtoD_v2_ptds(a, host, n))                                                                                 \
    X(cuMemcpyDtoH_ptds, cuMemcpyDtoH_v2_ptds(host, a, n))                                                                                 \
    X(cuMemcpyDtoD_ptds, cuMemcpyDtoD_v2_ptds(device, a, n))                                                                               \
    X(cuMemcpyHtoDAsync_ptsz, cuMemcpyHtoDAsync_v2_ptsz(a, host, n, stream))                                                               \
    X(cuMemcpyPeer to, cuMemcpyPeer(a, context, device, context, n))                                                                       \
    X(cuMemcpyPeer from, cuMemcpyPeer(device, context, a, context, n))                                                                     \
    X(cuMemcpyPeerAsync, cuMemcpyPeerAsync(a, context, device, context, n, stream))                                                        \
    X(cuMemcpyAtoD, cuMemcpyAtoD_v2(a, array, 0, n))                                                                                       \
    X(cuMemcpyDtoA, cuMemcpyDtoA_v2(array, 0, a, n))                                                                                       \
    X(cuMemcpyBatchAsync to, batch(true, a, n))                                                                                            \
    X(cuMemcpyBatchAsync from, batch(false, a, n))                                                                                         \
    X(cuMemsetD8, cuMemsetD8_v2(a, 7, n))                                                                                                  \
    X(cuMemsetD16, cuMemsetD16_v2(a & ~(uint64_t)1, 7, n / 2 + 1))                                                                         \
    X(cuMemsetD32, cuMemsetD32_v2(a & ~(uint64_t)3, 7, n / 4 + 1))                                                                         \
    X(cuMemsetD8Async, cuMemsetD8Async(a, 7, n, stream))                                                                                   \
    X(cuMemsetD16Async, cuMemsetD16Async(a & ~(uint64_t)1, 7, n / 2 + 1, stream))                                                          \
    X(cuMemsetD32Async, cuMemsetD32Async(a & ~(uint64_t)3, 7, n / 4 + 1, stream))                                                          \
    X(cuMemsetD2D8, cuMemsetD2D8_v2(a, n, 7, n, 2))                                                                                        \
    X(cuMemsetD2D16, cuMemsetD2D16_v2(a & ~(uint64_t)1, n + (n & 1), 7, n / 2, 3))                                                         \
    X(cuMemsetD2D32, cuMemsetD2D32_v2(a & ~(uint64_t)3, (n + 3) & ~(uint64_t)3, 7, n / 4, 3))                                              \
    X(cuMemsetD2D8Async, cuMemsetD2D8Async(a, n, 7, n, 2, stream))                                                                         \
    X(cuGraphAddMemsetNode, set_node(a, n))                                                                                                \
    X(cuGraphMemsetNodeSetParams, changed_set(a, n, false))                                                                                \
    X(cuGraphExecMemsetNodeSetParams, changed_set(a, n, true))                                                                             \
    X(cuMemPrefetchAsync, cuMemPrefetchAsync(a, n, 0, stream))                                                                             \
    X(cuMemAdvise, cuMemAdvise(a, n, 1, 0))
// Functions whose rows and planes are larger than what is left anywhere.
#define SHAPED(X)                                                                                                                          \
    X(cuMemcpy2D to, cuMemcpy2D_v2(ROWS_OF(true, DEVICE)))                                                                                 \
    X(cuMemcpy2D from, cuMemcpy2D_v2(ROWS_OF(false, DEVICE)))                                                                              \
    X(cuMemcpy2D unified to, cuMemcpy2D_v2(ROWS_OF(true, UNIFIED)))                                                                        \
    X(cuMemcpy2D unified from, cuMemcpy2D_v2(ROWS_OF(false, UNIFIED)))                                                                     \
    X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2(ROWS_OF(true, DEVICE)))                                                                  \
    X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2(ROWS_OF(false, DEVICE), stream))                                                                 \
    X(cuMemcpy3D to, cuMemcpy3D_v2(PLANES_OF(true, DEVICE)))                                                                               \
    X(cuMemcpy3D from, cuMemcpy3D_v2(PLANES_OF(false, DEVICE)))                                                                            \
    X(cuMemcpy3D unified, cuMemcpy3D_v2(PLANES_OF(true, UNIFIED)))                                                                         \
    X(cuMemcpy3DAsync, cuMemcpy3DAsync_v2(PLANES_OF(false, DEVICE), stream))                                                               \
    X(cuMemcpy3DPeer, cuMemcpy3DPeer(BETWEEN(true)))                                                                                       \
    X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync(BETWEEN(false), stream))                                                                    \
    X(cuMemcpy3DBatchAsync to, cuMemcpy3DBatchAsync_v2(1, BATCHED(true), 0, stream))                                                       \
    X(cuMemcpy3DBatchAsync from, cuMemcpy3DBatchAsync_v2(1, BATCHED(false), 0, stream))                                                    \
    X(cuGraphAddMemcpyNode to, copy_node(true, a))                                                                                         \
    X(cuGraphAddMemcpyNode from, copy_node(false, a))                                                                                      \
    X(cuGraphMemcpyNodeSetParams, changed_copy(true, a, false))                                                                            \
    X(cuGraphExecMemcpyNodeSetParams, changed_copy(false, a, true))
#define WHOLE(X)                                                                                                                           \
    X(cuStreamWriteValue32, cuStreamWriteValue32_v2(stream, a & ~(uint64_t)7, 1, 0))                                                       \
    X(cuStreamWriteValue64, cuStreamWriteValue64_v2(stream, a & ~(uint64_t)7, 1, 0))                                                       \
    X(cuStreamWaitValue32, cuStreamWaitValue32_v2(stream, a & ~(uint64_t)7, 0, 0))                                                         \
    X(cuStreamWaitValue64, cuStreamWaitValue64_v2(stream, a & ~(uint64_t)7, 0, 0))                                                         \
    X(cuStreamBatchMemOp write, ops(VR_CU_STREAM_MEM_OP_WRITE_VALUE_64, a))                                                                \
    X(cuStreamBatchMemOp wait, ops(VR_CU_STREAM_MEM_OP_WAIT_VALUE_32, a))                                                                  \
    X(cuGraphAddBatchMemOpNode, ops_node(a))                                                                                               \
    X(cuMemFree, cuMemFree_v2(a))                                                                                                          \
    X(cuMemFreeAsync, cuMemFreeAsync(a, stream))                                                                                           \
    X(cuIpcGetMemHandle, cuIpcGetMemHandle((void *)handle, a))
#define ROWS_OF(to, type)   (&(const struct vr_cu_memcpy2d[]){rows(to, a, VR_CU_MEMORY_TYPE_##type)}[0])
#define PLANES_OF(to, type) (&(const struct vr_cu_memcpy3d[]){planes(to, a, VR_CU_MEMORY_TYPE_##type)}[0])
#define BETWEEN(to)         (&(const struct vr_cu_memcpy3d[]){between(to, a)}[0])
#define BATCHED(to)         (&(const struct vr_cu_memcpy3d_batched[]){batched(to, a)}[0])

static const char *running = "";

static void say_which(int signal) {
    (void)signal;
    const char text[] = ": the program would have died\n";
    (void)!write(2, running, strlen(running));
    (void)!write(2, text, sizeof text - 1);
    _exit(3);
}

static int failed;
static int cases;

static void expect(const char *function, const struct wrong *wrong, int result) {
    cases++;
    if (result == VR_CU_INVALID_VALUE) return;
    (void)fprintf(stderr, "%s, %s: %d\n", function, wrong->name, result);
    failed++;
}

// Tries the calls of a list whose names begin with `only`.
#define TRY(label, call)                                                                                                                   \
    if (strncmp(#label, only, strlen(only)) == 0) {                                                                                        \
        running = #label;                                                                                                                  \
        expect(#label, wrong, call);                                                                                                       \
    }

static void try_all(const struct wrong *wrong, const char *only) {
    const uint64_t a = wrong->address, n = wrong->size_bytes;
    unsigned char handle[64];
    SIZED(TRY)
    SHAPED(TRY)
    if (!wrong->whole) return;
    WHOLE(TRY)
}

// Tries calls whose size wraps around.
static void try_sizes(const struct wrong *wrong) {
    running = "a size that wraps";
    expect("cuMemcpy", wrong, cuMemcpy(wrong->address, other, wrong->size_bytes));
    expect("cuMemcpyDtoD", wrong, cuMemcpyDtoD_v2(wrong->address, other, wrong->size_bytes));
    expect("cuMemcpyHtoD", wrong, cuMemcpyHtoD_v2(wrong->address, host, wrong->size_bytes));
    expect("cuMemsetD8", wrong, cuMemsetD8_v2(wrong->address, 1, wrong->size_bytes));
    expect("cuMemsetD32", wrong, cuMemsetD32_v2(wrong->address, 1, wrong->size_bytes));
    expect("cuMemsetD2D32", wrong, cuMemsetD2D32_v2(wrong->address, wrong->size_bytes & ~(uint64_t)3, 1, 1, 3));
}

// --- the addresses ----------------------------------------------------------------------------------------------------------------------

static bool make(uint64_t *reserved, uint64_t *gone) {
    const struct vr_cu_array_descriptor shape = {.width = 4096, .format = 1, .channels = 1};
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 || cuCtxSetCurrent(context) != 0) return false;
    if (cuMemAlloc_v2(gone, 2 * MIB) != 0 || cuMemAlloc_v2(&device, MIB) != 0 || cuMemAlloc_v2(&other, MIB) != 0) return false;
    if (cuStreamCreate(&stream, 1) != 0 || cuGraphCreate(&graph, 0) != 0 || cuArrayCreate_v2(&array, &shape) != 0) return false;
    return cuMemAddressReserve(reserved, 4 * MIB, 0, 0, 0) == 0 && cuMemFree_v2(*gone) == 0;
}

int main(int argc, char **argv) {
    uint64_t reserved = 0, gone = 0;
    if (!make(&reserved, &gone)) return 2;
    (void)signal(SIGSEGV, say_which);
    (void)signal(SIGBUS, say_which);
    const struct wrong list[] = {{"an address of nobody's", 0xdeadbeefcafe0000, ROW, true},
                                 {"an address that no program can have", 0x0000900000000000, ROW, true},
                                 {"a small number", 0x100, ROW, true},
                                 {"NULL", 0, ROW, true},
                                 {"memory that was freed", gone + MIB, ROW, true},
                                 {"addresses without memory", reserved + 4096, ROW, true},
                                 {"past the end", device + MIB - 8, ROW, false},
                                 {"a range that wraps", UINT64_MAX - 15, ROW, true}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) try_all(&list[i], argc > 1 ? argv[1] : "");
    try_sizes(&(const struct wrong){"a size that wraps", device, UINT64_MAX - 64, false});
    printf("%d cases\n", cases);
    // Valid calls still work.
    if (cuMemcpyDtoD_v2(device, other, MIB) != 0 || cuMemsetD8_v2(device, 5, MIB) != 0 || cuMemcpyDtoH_v2(host, device, ROW) != 0 ||
        host[ROW - 1] != 5 || cuMemcpyHtoD_v2(other, host, ROW) != 0)
        failed++;
    return failed != 0;
}
