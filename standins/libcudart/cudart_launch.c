// Kernels and device variables of a program: registered by what nvcc generates. A launch checks what can be checked and does nothing; in
// a capture it is an empty node, so that the graph has its shape. Variables get device memory when they are first asked for.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct dim3 {
    unsigned x, y, z;
};

// What a program registered: kernels (size 0) and variables, by their host side.
struct entry {
    const void *host;
    size_t bytes;
    bool is_variable;
    uint64_t address[RT_MOST_DEVICES]; // of a variable, per device; 0: not made
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards all below
static struct entry **entries;
static size_t entry_count, entry_capacity;

static struct entry *find(const void *host) {
    for (size_t i = 0; i < entry_count; i++)
        if (entries[i]->host == host) return entries[i];
    return NULL;
}

static void add(const void *host, size_t bytes, bool is_variable) {
    (void)pthread_mutex_lock(&mutex);
    if (entry_count == entry_capacity) {
        const size_t capacity = entry_capacity == 0 ? 64 : 2 * entry_capacity;
        struct entry **grown = realloc(entries, capacity * sizeof *grown);
        if (grown != NULL) {
            entries = grown;
            entry_capacity = capacity;
        }
    }
    struct entry *entry = entry_count < entry_capacity && find(host) == NULL ? calloc(1, sizeof *entry) : NULL;
    if (entry != NULL) {
        entry->host = host;
        entry->bytes = bytes;
        entry->is_variable = is_variable;
        entries[entry_count++] = entry;
    }
    (void)pthread_mutex_unlock(&mutex);
}

// --- what generated code calls ------------------------------------------------------------------------------------------------------
void **__cudaRegisterFatBinary(void *binary) {
    void **handle = malloc(sizeof *handle);
    if (handle != NULL) *handle = binary;
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { free(handle); }

char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit, void *tid, void *bid,
                            void *block, void *grid, int *warp) {
    (void)handle, (void)device, (void)name, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add(host, 0, false);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes, int constant, int global) {
    (void)handle, (void)device, (void)name, (void)external, (void)constant, (void)global;
    add(host, bytes, true);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t bytes, int constant,
                              int global) {
    (void)handle, (void)device, (void)name, (void)external, (void)constant, (void)global;
    add(host, bytes, true);
}

// The configuration between <<< and >>>, one after the other: arguments may launch kernels of their own.
struct configuration {
    struct dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};
enum { MOST_PUSHED = 32 };
static _Thread_local struct configuration pushed[MOST_PUSHED];
static _Thread_local size_t pushed_count;

unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes, void *stream) {
    if (pushed_count == MOST_PUSHED) return RT_INVALID_VALUE;
    pushed[pushed_count++] = (struct configuration){grid, block, shared_bytes, stream};
    return RT_SUCCESS;
}

int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared_bytes, void *stream) {
    if (pushed_count == 0) return rt_end(RT_MISSING_CONFIGURATION);
    const struct configuration *top = &pushed[--pushed_count];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    memcpy(stream, &top->stream, sizeof top->stream);
    return RT_SUCCESS;
}

// A kernel's handle is its entry.
int __cudaGetKernel(const void **kernel, const void *host) {
    (void)pthread_mutex_lock(&mutex);
    const struct entry *entry = find(host);
    (void)pthread_mutex_unlock(&mutex);
    if (entry == NULL) return rt_end(RT_INVALID_DEVICE_FUNCTION);
    *kernel = entry;
    return RT_SUCCESS;
}

// --- launches -------------------------------------------------------------------------------------------------------------------------
static bool is_configured(struct dim3 grid, struct dim3 block) {
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    return grid.x != 0 && grid.y != 0 && grid.z != 0 && threads != 0 && threads <= 1024;
}

// A node after what the stream has captured so far.
static int add_node(const struct rt_driver *driver, uint64_t stream, uint64_t graph, const uint64_t *dependencies, size_t count) {
    enum { SET_DEPENDENCIES = 1 };
    uint64_t node = 0;
    const int error = driver->graph_add_empty_node(&node, graph, dependencies, count);
    return error != RT_SUCCESS ? error : driver->stream_update_capture_dependencies(stream, &node, 1, SET_DEPENDENCIES);
}

static int launch(const struct rt_driver *driver, struct dim3 grid, struct dim3 block, uint64_t stream) {
    enum { CAPTURING = 1 };
    if (!is_configured(grid, block)) return 9; // cudaErrorInvalidConfiguration
    int status = 0;
    uint64_t id = 0, graph = 0;
    const uint64_t *dependencies = NULL;
    size_t count = 0;
    const int error = driver->stream_get_capture_info(stream, &status, &id, &graph, &dependencies, &count);
    if (error != RT_SUCCESS || status != CAPTURING) return error;
    return add_node(driver, stream, graph, dependencies, count);
}

static int launch_host(const struct rt_driver *driver, const void *host, struct dim3 grid, struct dim3 block, uint64_t stream) {
    (void)pthread_mutex_lock(&mutex);
    const struct entry *entry = find(host);
    (void)pthread_mutex_unlock(&mutex);
    return entry == NULL || entry->is_variable ? RT_INVALID_DEVICE_FUNCTION : launch(driver, grid, block, stream);
}

RT_STREAM_CALL(cudaLaunchKernel,
               (const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared_bytes, void *stream),
               ((void)arguments, (void)shared_bytes, launch_host(driver, function, grid, block, on)))
RT_STREAM_CALL(__cudaLaunchKernel,
               (const void *kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t shared_bytes, void *stream),
               ((void)arguments, (void)shared_bytes, kernel == NULL ? RT_INVALID_DEVICE_FUNCTION : launch(driver, grid, block, on)))

// The head of cudaLaunchConfig_t.
struct rt_launch_config {
    struct dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};

int cudaLaunchKernelExC(const struct rt_launch_config *config, const void *function, void **arguments) {
    (void)arguments;
    RT_CALL(launch_host(driver, function, config->grid, config->block, rt_stream(config->stream, false)));
}

int cudaLaunchKernelExC_ptsz(const struct rt_launch_config *config, const void *function, void **arguments) {
    (void)arguments;
    RT_CALL(launch_host(driver, function, config->grid, config->block, rt_stream(config->stream, true)));
}

int cudaFuncSetAttribute(const void *function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return RT_SUCCESS;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size, size_t shared_bytes,
                                                           unsigned flags) {
    (void)function, (void)shared_bytes, (void)flags;
    if (blocks == NULL || block_size <= 0 || block_size > 1024) return rt_end(RT_INVALID_VALUE);
    *blocks = 2048 / block_size > 32 ? 32 : 2048 / block_size;
    return RT_SUCCESS;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size, size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
}

// --- variables ------------------------------------------------------------------------------------------------------------------------
static int address_of_variable(const struct rt_driver *driver, const void *symbol, uint64_t *address, size_t *bytes) {
    const int device = rt_device();
    (void)pthread_mutex_lock(&mutex);
    struct entry *entry = find(symbol);
    int error = entry == NULL || !entry->is_variable ? RT_INVALID_SYMBOL : RT_SUCCESS;
    if (error == RT_SUCCESS && entry->address[device] == 0) error = driver->mem_alloc(&entry->address[device], entry->bytes);
    if (error == RT_SUCCESS) {
        *address = entry->address[device];
        *bytes = entry->bytes;
    }
    (void)pthread_mutex_unlock(&mutex);
    return error;
}

int cudaGetSymbolAddress(void **pointer, const void *symbol) {
    uint64_t address = 0;
    size_t bytes = 0;
    const struct rt_driver *driver = NULL;
    int error = pointer == NULL ? RT_INVALID_VALUE : rt_begin(&driver);
    if (error == RT_SUCCESS) error = address_of_variable(driver, symbol, &address, &bytes);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return rt_end(error);
}

int cudaGetSymbolSize(size_t *size, const void *symbol) {
    uint64_t address = 0;
    RT_CALL(size == NULL ? RT_INVALID_VALUE : address_of_variable(driver, symbol, &address, size));
}

static int copy_variable(const struct rt_driver *driver, const void *symbol, const void *other, size_t bytes, size_t offset,
                         bool to_symbol) {
    uint64_t address = 0;
    size_t size = 0;
    const int error = address_of_variable(driver, symbol, &address, &size);
    if (error != RT_SUCCESS) return error;
    if (offset > size || bytes > size - offset) return RT_INVALID_VALUE;
    const uint64_t here = (uint64_t)(uintptr_t)other;
    return to_symbol ? driver->memcpy(address + offset, here, bytes) : driver->memcpy(here, address + offset, bytes);
}

int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind) {
    (void)kind;
    RT_CALL(copy_variable(driver, symbol, from, bytes, offset, true));
}

int cudaMemcpyToSymbol_ptds(const void *symbol, const void *from, size_t bytes, size_t offset, int kind) {
    return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}

int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind) {
    (void)kind;
    RT_CALL(copy_variable(driver, symbol, to, bytes, offset, false));
}

int cudaMemcpyFromSymbol_ptds(void *to, const void *symbol, size_t bytes, size_t offset, int kind) {
    return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
