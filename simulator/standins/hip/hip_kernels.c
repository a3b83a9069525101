// Modules, launches, occupancy, and graph nodes for kernels, copies and sets. AMD's code is not read: a module has every function that is
// requested, and no variables.
#include <stdlib.h>
#include <string.h>

#include "driver/hip/hip_abi.h"
#include "sim/sim_abi.h"
#include "hip.h"

enum { NOT_INITIALIZED = 3, NOT_FOUND = 500, NOT_SUPPORTED = 801, MOST_THREADS = 1024 };

// --- modules ---------------------------------------------------------------------------------------------------------------------------

#define MODULE UINT64_C(0x6d6f64756c650000)

int hipModuleLoadData(void **module, const void *image) {
    if (hip_begin() == NULL) return hip_end(NOT_INITIALIZED);
    if (module == NULL || image == NULL) return hip_end(VR_CU_INVALID_VALUE);
    void *made = standin_new(MODULE, sizeof(struct standin_object));
    if (made != NULL) *module = made;
    return hip_end(made == NULL ? VR_CU_OUT_OF_MEMORY : 0);
}
int hipModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    return hipModuleLoadData(module, image);
}
int hipModuleLoad(void **module, const char *path) { return hipModuleLoadData(module, path); }
int hipModuleUnload(void *module) { return hip_end(standin_destroy(module, MODULE) ? 0 : VR_CU_INVALID_HANDLE); }

// A function is represented by its module, because nothing distinguishes two functions.
int hipModuleGetFunction(void **function, void *module, const char *name) {
    if (function == NULL || name == NULL) return hip_end(VR_CU_INVALID_VALUE);
    if (!standin_is(module, MODULE)) return hip_end(VR_CU_INVALID_HANDLE);
    *function = module;
    return 0;
}
int hipModuleGetGlobal(uint64_t *address, uint64_t *bytes, void *module, const char *name) {
    return hip_end(standin_is(module, MODULE) ? NOT_FOUND : VR_CU_INVALID_HANDLE);
}
int hipGetFuncBySymbol(const void **function, const void *symbol) {
    if (function == NULL || symbol == NULL) return hip_end(VR_CU_INVALID_VALUE);
    *function = symbol;
    return 0;
}

// Registers, shared and local memory of AMD's code are unknown.
int hipFuncGetAttribute(int *value, int attribute, const void *function) {
    if (value == NULL || function == NULL || attribute < 0) return hip_end(VR_CU_INVALID_VALUE);
    *value = attribute == 0 ? MOST_THREADS : 0;
    return 0;
}

// --- launches --------------------------------------------------------------------------------------------------------------------------

int hipModuleLaunchKernel(const void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, uint64_t stream, void **arguments, void **extra) {
    const uint64_t threads = (uint64_t)block_x * block_y * block_z;
    if (hip_begin() == NULL) return hip_end(NOT_INITIALIZED);
    const bool wrong = function == NULL || x == 0 || y == 0 || z == 0 || threads == 0 || threads > MOST_THREADS;
    return hip_end(wrong ? VR_CU_INVALID_VALUE : standin_work(stream));
}
int hipLaunchCooperativeKernel(const void *function, struct hip_extent grid, struct hip_extent block, void **arguments,
                               unsigned shared_bytes, uint64_t stream) {
    return hipModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, stream, arguments, NULL);
}

// Considers only threads.
int hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, uint64_t shared_bytes) {
    int most = 0, device = 0;
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    if (blocks == NULL || function == NULL || threads <= 0) return hip_end(VR_CU_INVALID_VALUE);
    int result = driver->ctx_get_device(&device);
    if (result == 0) result = driver->device_get_attribute(&most, VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
    if (result == 0) *blocks = threads > MOST_THREADS ? 0 : most / threads;
    return hip_end(result);
}
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, uint64_t shared_bytes) {
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}
int hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *function, uint64_t shared_bytes, int limit) {
    int count = 0, device = 0, each = 0;
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    if (grid == NULL || block == NULL) return hip_end(VR_CU_INVALID_VALUE);
    const int threads = limit > 0 && limit < MOST_THREADS ? limit : MOST_THREADS;
    int result = hipOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, threads, shared_bytes);
    if (result == 0) result = driver->ctx_get_device(&device);
    if (result == 0) result = driver->device_get_attribute(&count, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (result != 0) return hip_end(result);
    *block = threads;
    *grid = count * each;
    return 0;
}

// --- graphs ----------------------------------------------------------------------------------------------------------------------------

// A kernel node is an empty node, because kernels are not executed.
int hipGraphAddKernelNode(uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count, const void *parameters) {
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    return hip_end(parameters == NULL ? VR_CU_INVALID_VALUE : driver->graph_add_empty_node(node, graph, dependencies, count));
}
int hipGraphExecKernelNodeSetParams(uint64_t exec, uint64_t node, const void *parameters) {
    return hip_end(exec == 0 || node == 0 || parameters == NULL ? VR_CU_INVALID_VALUE : 0);
}

static struct vr_cu_memcpy3d line_of_bytes(uint64_t to, uint64_t from, uint64_t bytes) {
    const int32_t type = VR_CU_MEMORY_TYPE_UNIFIED;
    return (struct vr_cu_memcpy3d){.from = {.memory_type = type, .host = from, .device = from, .pitch_bytes = bytes},
                                   .to = {.memory_type = type, .host = to, .device = to, .pitch_bytes = bytes},
                                   .width_bytes = bytes,
                                   .rows = 1,
                                   .planes = 1};
}
int hipGraphAddMemcpyNode1D(uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count, uint64_t to, uint64_t from,
                            uint64_t bytes, int kind) {
    const struct hip_cuda *driver = hip_begin();
    uint64_t context = 0;
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    const struct vr_cu_memcpy3d copy = line_of_bytes(to, from, bytes);
    const int result = driver->ctx_get_current(&context);
    return hip_end(result == 0 ? driver->graph_add_memcpy_node(node, graph, dependencies, count, &copy, context) : result);
}
int hipGraphExecMemcpyNodeSetParams1D(uint64_t exec, uint64_t node, uint64_t to, uint64_t from, uint64_t bytes, int kind) {
    int (*function)(uint64_t exec, uint64_t node, const struct vr_cu_memcpy3d *copy, uint64_t context) = NULL;
    const struct hip_cuda *driver = hip_begin();
    uint64_t context = 0;
    if (driver == NULL || !hip_named("cuGraphExecMemcpyNodeSetParams", 12000, true, &function)) return hip_end(NOT_SUPPORTED);
    const struct vr_cu_memcpy3d copy = line_of_bytes(to, from, bytes);
    const int result = driver->ctx_get_current(&context);
    return hip_end(result == 0 ? function(exec, node, &copy, context) : result);
}

static struct vr_cu_memset_node set_of(const struct vr_hip_memset *set) {
    return (struct vr_cu_memset_node){.address = set->address,
                                      .pitch_bytes = set->pitch_bytes,
                                      .value = set->value,
                                      .element_bytes = set->element_bytes,
                                      .width_elements = set->width_elements,
                                      .rows = set->rows};
}
int hipGraphAddMemsetNode(uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count, const struct vr_hip_memset *set) {
    const struct hip_cuda *driver = hip_begin();
    uint64_t context = 0;
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    if (set == NULL) return hip_end(VR_CU_INVALID_VALUE);
    const struct vr_cu_memset_node made = set_of(set);
    const int result = driver->ctx_get_current(&context);
    return hip_end(result == 0 ? driver->graph_add_memset_node(node, graph, dependencies, count, &made, context) : result);
}
int hipGraphExecMemsetNodeSetParams(uint64_t exec, uint64_t node, const struct vr_hip_memset *set) {
    int (*function)(uint64_t exec, uint64_t node, const struct vr_cu_memset_node *set, uint64_t context) = NULL;
    const struct hip_cuda *driver = hip_begin();
    uint64_t context = 0;
    if (set == NULL) return hip_end(VR_CU_INVALID_VALUE);
    if (driver == NULL || !hip_named("cuGraphExecMemsetNodeSetParams", 12000, true, &function)) return hip_end(NOT_SUPPORTED);
    const struct vr_cu_memset_node made = set_of(set);
    const int result = driver->ctx_get_current(&context);
    return hip_end(result == 0 ? function(exec, node, &made, context) : result);
}

int hipGraphInstantiate(uint64_t *exec, uint64_t graph, uint64_t *node, char *text, uint64_t capacity) {
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    if (text != NULL && capacity > 0) text[0] = '\0';
    return hip_end(driver->graph_instantiate(exec, graph, 0));
}

// --- not supported --------------------------------------------------------------------------------------------------

int hipCreateSurfaceObject(uint64_t *surface, const void *resource) {
    STANDIN_MISSING("hipCreateSurfaceObject");
    return hip_end(NOT_SUPPORTED);
}
int hipDestroySurfaceObject(uint64_t surface) {
    STANDIN_MISSING("hipDestroySurfaceObject");
    return hip_end(NOT_SUPPORTED);
}

// There is no profiler.
int hipProfilerStart(void) { return 0; }
int hipProfilerStop(void) { return 0; }
