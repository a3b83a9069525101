// Kernels and variables of a program, and launches.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "runtime.h"

// ---- Kernels and device variables of a program: registered by what nvcc generates, before main() and with each library that is loaded.
// PyTorch registers more than a hundred thousand, so a registration is one entry of a table; a fat binary is given to the driver when the
// first of its kernels or variables is wanted, and a kernel is looked up when it is launched first.

// A fat binary, as nvcc wraps it.
struct wrapper {
    int magic, version;
    const void *data;
    const void *further;
};
enum { WRAPPER_MAGIC = 0x466243b1 };

// What is known by an address on the host: a kernel, or a variable. Lives in a chunk of its module, and never moves.
struct entry {
    struct module *module;
    const void *host;
    const char *name; // the program's
    size_t bytes;     // of a variable
    bool is_variable;
    _Atomic uint64_t kernel; // the driver's handle; 0: not looked up
    uint64_t *address;       // of a variable, per device, where this library allocated it; guarded by the module's mutex
};

enum { CHUNK = 128 };
struct chunk {
    struct chunk *next;
    size_t count;
    struct entry entries[CHUNK];
};

struct module {
    const void *image;
    struct chunk *chunks;  // guarded by `mutex` of this file
    pthread_mutex_t mutex; // guards what follows; taken before `mutex` of this file, and held while the driver loads the image
    uint64_t library;      // 0: not loaded
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards the tables
static struct vr_map by_host;                             // host address -> struct entry
static struct vr_map by_kernel;                           // the driver's handle -> struct entry

static struct entry *find_in(const struct vr_map *map, uint64_t key) {
    (void)pthread_mutex_lock(&mutex);
    struct entry *entry = (struct entry *)(uintptr_t)vr_map_get(map, key);
    (void)pthread_mutex_unlock(&mutex);
    return entry;
}

// --- what generated code calls ------------------------------------------------------------------------------------------------------
void **__cudaRegisterFatBinary(void *binary) {
    const struct wrapper *wrapper = binary;
    struct module *module = calloc(1, sizeof *module);
    if (module == NULL) return NULL;
    (void)pthread_mutex_init(&module->mutex, NULL);
    module->image = wrapper != NULL && wrapper->magic == WRAPPER_MAGIC ? wrapper->data : binary;
    return (void **)module;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

static void forget_chunk(struct chunk *chunk) {
    for (size_t i = 0; i < chunk->count; i++) {
        struct entry *entry = &chunk->entries[i];
        if (vr_map_get(&by_host, rt_address(entry->host)) == rt_address(entry)) (void)vr_map_take(&by_host, rt_address(entry->host));
        const uint64_t kernel = atomic_load(&entry->kernel);
        if (kernel != 0 && vr_map_get(&by_kernel, kernel) == rt_address(entry)) (void)vr_map_take(&by_kernel, kernel);
        free(entry->address);
    }
}

void __cudaUnregisterFatBinary(void **handle) {
    struct module *module = (struct module *)handle;
    const struct rt_driver *driver = NULL;
    if (module == NULL) return;
    (void)pthread_mutex_lock(&mutex);
    struct chunk *chunk = module->chunks;
    for (struct chunk *next = chunk; next != NULL; next = next->next) forget_chunk(next);
    (void)pthread_mutex_unlock(&mutex);
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    if (module->library != 0 && rt_load(&driver) == RT_SUCCESS) (void)driver->library_unload(module->library);
    (void)pthread_mutex_destroy(&module->mutex);
    free(module);
}

static void add_symbol(void **handle, const void *host, const char *name, size_t bytes, bool is_variable) {
    struct module *module = (struct module *)handle;
    if (module == NULL || host == NULL) return;
    (void)pthread_mutex_lock(&mutex);
    struct chunk *chunk = module->chunks;
    if (chunk == NULL || chunk->count == CHUNK) {
        chunk = calloc(1, sizeof *chunk);
        if (chunk != NULL) {
            chunk->next = module->chunks;
            module->chunks = chunk;
        }
    }
    // A program without memory for this has no kernel there: its launch says so.
    if (chunk != NULL && vr_map_set(&by_host, rt_address(host), rt_address(&chunk->entries[chunk->count])) == VRAM_OK)
        chunk->entries[chunk->count++] =
            (struct entry){.module = module, .host = host, .name = name, .bytes = bytes, .is_variable = is_variable};
    (void)pthread_mutex_unlock(&mutex);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit, void *tid, void *bid,
                            void *block, void *grid, int *warp) {
    (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add_symbol(handle, host, name, 0, false);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes, int constant, int global) {
    (void)device, (void)external, (void)constant, (void)global;
    add_symbol(handle, host, name, bytes, true);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t bytes, int constant,
                              int global) {
    (void)device, (void)external, (void)constant, (void)global;
    add_symbol(handle, host, name, bytes, true);
}

// Variables on the host that kernels name, textures and surfaces of CUDA 11: nothing of them is asked for later.
void __cudaRegisterHostVar(void **handle, const char *device, char *host, size_t bytes) {
    (void)handle, (void)device, (void)host, (void)bytes;
}

void __cudaRegisterTexture(void **handle, const void *host, const void **device, const char *name, int dimensions, int normalized,
                           int external) {
    (void)handle, (void)host, (void)device, (void)name, (void)dimensions, (void)normalized, (void)external;
}

void __cudaRegisterSurface(void **handle, const void *host, const void **device, const char *name, int dimensions, int external) {
    (void)handle, (void)host, (void)device, (void)name, (void)dimensions, (void)external;
}

// --- handles ----------------------------------------------------------------------------------------------------------------------------
static int library_of(const struct rt_driver *driver, struct module *module) {
    return module->library != 0 ? RT_SUCCESS : driver->library_load_data(&module->library, module->image, NULL, NULL, 0, NULL, NULL, 0);
}

static int look_up(struct entry *entry) {
    const struct rt_driver *driver = NULL;
    uint64_t kernel = 0;
    int error = rt_load(&driver);
    if (error != RT_SUCCESS) return error;
    (void)pthread_mutex_lock(&entry->module->mutex);
    error = library_of(driver, entry->module);
    if (error == RT_SUCCESS) error = driver->library_get_kernel(&kernel, entry->module->library, entry->name);
    if (error == RT_SUCCESS) {
        (void)pthread_mutex_lock(&mutex);
        (void)vr_map_set(&by_kernel, kernel, rt_address(entry)); // without memory for it, a graph's node tells the handle
        (void)pthread_mutex_unlock(&mutex);
        atomic_store_explicit(&entry->kernel, kernel, memory_order_release);
    }
    (void)pthread_mutex_unlock(&entry->module->mutex);
    return error == RT_SYMBOL_NOT_FOUND ? RT_INVALID_DEVICE_FUNCTION : error;
}

int rt_kernel(const void *function, uint64_t *kernel) {
    struct entry *entry = function == NULL ? NULL : find_in(&by_host, rt_address(function));
    if (function == NULL || (entry != NULL && entry->is_variable)) return RT_INVALID_DEVICE_FUNCTION;
    *kernel = rt_address(function);
    if (entry == NULL) return RT_SUCCESS;
    *kernel = atomic_load_explicit(&entry->kernel, memory_order_acquire);
    if (*kernel != 0) return RT_SUCCESS;
    const int error = look_up(entry);
    *kernel = atomic_load_explicit(&entry->kernel, memory_order_acquire);
    return error;
}

const void *rt_kernel_address(uint64_t kernel) {
    const struct entry *entry = find_in(&by_kernel, kernel);
    return entry != NULL ? entry->host : (const void *)(uintptr_t)kernel;
}

int rt_kernel_error(int error) { return error == RT_INVALID_HANDLE || error == RT_SYMBOL_NOT_FOUND ? RT_INVALID_DEVICE_FUNCTION : error; }

// An address that was not registered has no kernel.
static int registered_kernel(uint64_t *kernel, const void *host) {
    if (kernel == NULL) return RT_INVALID_VALUE;
    return find_in(&by_host, rt_address(host)) == NULL ? RT_INVALID_DEVICE_FUNCTION : rt_kernel(host, kernel);
}

int cudaGetKernel(uint64_t *kernel, const void *host) { return rt_end(registered_kernel(kernel, host)); }
int __cudaGetKernel(uint64_t *kernel, const void *host) { return rt_end(registered_kernel(kernel, host)); }

int cudaGetFuncBySymbol(uint64_t *function, const void *host) {
    uint64_t kernel = 0;
    RT_CALL((rt_error_ = registered_kernel(&kernel, host)) != RT_SUCCESS ? rt_error_ : driver->kernel_get_function(function, kernel));
}

// --- variables ------------------------------------------------------------------------------------------------------------------------
// Where the driver does not know the image's variables, they get memory of their own.
static int own_memory(const struct rt_driver *driver, struct entry *entry, int device, uint64_t *address) {
    int error = RT_SUCCESS;
    if (entry->address == NULL) entry->address = calloc(RT_MOST_DEVICES, sizeof *entry->address);
    if (entry->address == NULL) return RT_MEMORY_ALLOCATION;
    if (entry->address[device] == 0) error = driver->mem_alloc(&entry->address[device], entry->bytes);
    if (error == RT_SUCCESS) *address = entry->address[device];
    return error;
}

int rt_variable(const struct rt_driver *driver, const void *symbol, uint64_t *address, size_t *bytes) {
    struct entry *entry = find_in(&by_host, rt_address(symbol));
    if (entry == NULL || !entry->is_variable) return RT_INVALID_SYMBOL;
    uint64_t found = 0;
    size_t size = 0;
    (void)pthread_mutex_lock(&entry->module->mutex);
    int error = library_of(driver, entry->module);
    if (error == RT_SUCCESS) error = driver->library_get_global(&found, &size, entry->module->library, entry->name);
    if (error == RT_SYMBOL_NOT_FOUND || error == RT_NOT_SUPPORTED) error = own_memory(driver, entry, rt_device(), &found);
    (void)pthread_mutex_unlock(&entry->module->mutex);
    if (error == RT_SUCCESS) {
        *address = found;
        *bytes = size != 0 ? size : entry->bytes;
    }
    return error;
}

static int symbol_address(const struct rt_driver *driver, void **pointer, const void *symbol) {
    uint64_t address = 0;
    size_t bytes = 0;
    const int error = pointer == NULL ? RT_INVALID_VALUE : rt_variable(driver, symbol, &address, &bytes);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return error;
}

int cudaGetSymbolAddress(void **pointer, const void *symbol) { RT_CALL(symbol_address(driver, pointer, symbol)); }

int cudaGetSymbolSize(size_t *size, const void *symbol) {
    uint64_t address = 0;
    RT_CALL(size == NULL ? RT_INVALID_VALUE : rt_variable(driver, symbol, &address, size));
}

static int copy_variable(const struct rt_driver *driver, const void *symbol, const void *other, size_t bytes, size_t offset, bool to_symbol,
                         bool wait, uint64_t stream) {
    uint64_t address = 0;
    size_t size = 0;
    int error = rt_variable(driver, symbol, &address, &size);
    if (error == RT_SUCCESS && (offset > size || bytes > size - offset)) error = RT_INVALID_VALUE;
    if (error != RT_SUCCESS || bytes == 0) return error;
    const uint64_t here = rt_address(other);
    const uint64_t to = to_symbol ? address + offset : here, from = to_symbol ? here : address + offset;
    if (wait && stream == 0) return driver->memcpy(to, from, bytes);
    error = driver->memcpy_async(to, from, bytes, stream);
    return error == RT_SUCCESS && wait ? driver->stream_synchronize(stream) : error;
}

RT_DEFAULT_CALL(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t bytes, size_t offset, int kind),
                ((void)kind, copy_variable(driver, symbol, from, bytes, offset, true, true, on)))
RT_DEFAULT_CALL(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t bytes, size_t offset, int kind),
                ((void)kind, copy_variable(driver, symbol, to, bytes, offset, false, true, on)))
RT_STREAM_CALL(cudaMemcpyToSymbolAsync, (const void *symbol, const void *from, size_t bytes, size_t offset, int kind, void *stream),
               ((void)kind, copy_variable(driver, symbol, from, bytes, offset, true, false, on)))
RT_STREAM_CALL(cudaMemcpyFromSymbolAsync, (void *to, const void *symbol, size_t bytes, size_t offset, int kind, void *stream),
               ((void)kind, copy_variable(driver, symbol, to, bytes, offset, false, false, on)))

// ---- Launches, and what kernels are and can.

// The configuration between <<< and >>>, one after the other: arguments may launch kernels of their own.
struct configuration {
    struct rt_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};
enum { MOST_PUSHED = 32 };
static _Thread_local struct configuration pushed[MOST_PUSHED];
static _Thread_local size_t pushed_count;

unsigned __cudaPushCallConfiguration(struct rt_dim3 grid, struct rt_dim3 block, size_t shared_bytes, void *stream) {
    if (pushed_count == MOST_PUSHED) return RT_INVALID_VALUE;
    pushed[pushed_count++] = (struct configuration){grid, block, shared_bytes, stream};
    return RT_SUCCESS;
}

int __cudaPopCallConfiguration(struct rt_dim3 *grid, struct rt_dim3 *block, size_t *shared_bytes, void *stream) {
    if (pushed_count == 0) return rt_end(RT_MISSING_CONFIGURATION);
    const struct configuration *top = &pushed[--pushed_count];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    memcpy(stream, &top->stream, sizeof top->stream);
    return RT_SUCCESS;
}

// --- launches -------------------------------------------------------------------------------------------------------------------------
struct launch {
    struct rt_dim3 grid, block;
    void **arguments;
    size_t shared_bytes;
};

// Of all devices. The driver calls what breaks these an invalid value, as it does an argument.
static bool is_configured(struct rt_dim3 grid, struct rt_dim3 block) {
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const bool some = grid.x != 0 && grid.y != 0 && grid.z != 0 && threads != 0;
    return some && block.x <= 1024 && block.y <= 1024 && block.z <= 64 && threads <= 1024 && grid.x <= 0x7fffffff && grid.y <= 65535 &&
           grid.z <= 65535;
}

static int launch_error(int error, struct rt_dim3 grid, struct rt_dim3 block) {
    if (error == RT_INVALID_VALUE && !is_configured(grid, block)) return RT_INVALID_CONFIGURATION;
    return rt_kernel_error(error);
}

static int launch_kernel(const struct rt_driver *driver, uint64_t kernel, const struct launch *l, uint64_t stream) {
    const int error = driver->launch_kernel(kernel, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z,
                                            (unsigned)l->shared_bytes, stream, l->arguments, NULL);
    return error == RT_SUCCESS ? RT_SUCCESS : launch_error(error, l->grid, l->block);
}

static int launch_address(const struct rt_driver *driver, const void *function, const struct launch *l, uint64_t stream) {
    uint64_t kernel = 0;
    const int error = rt_kernel(function, &kernel);
    return error != RT_SUCCESS ? error : launch_kernel(driver, kernel, l, stream);
}

static int launch_cooperative(const struct rt_driver *driver, const void *function, const struct launch *l, uint64_t stream) {
    uint64_t kernel = 0;
    const int error = rt_kernel(function, &kernel);
    if (error != RT_SUCCESS) return error;
    return launch_error(driver->launch_cooperative(kernel, l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z,
                                                   (unsigned)l->shared_bytes, stream, l->arguments),
                        l->grid, l->block);
}

RT_STREAM_CALL(cudaLaunchKernel,
               (const void *function, struct rt_dim3 grid, struct rt_dim3 block, void **arguments, size_t shared_bytes, void *stream),
               launch_address(driver, function, &(const struct launch){grid, block, arguments, shared_bytes}, on))
RT_STREAM_CALL(__cudaLaunchKernel,
               (uint64_t kernel, struct rt_dim3 grid, struct rt_dim3 block, void **arguments, size_t shared_bytes, void *stream),
               launch_kernel(driver, kernel, &(const struct launch){grid, block, arguments, shared_bytes}, on))
RT_STREAM_CALL(cudaLaunchCooperativeKernel,
               (const void *function, struct rt_dim3 grid, struct rt_dim3 block, void **arguments, size_t shared_bytes, void *stream),
               launch_cooperative(driver, function, &(const struct launch){grid, block, arguments, shared_bytes}, on))

// cudaLaunchConfig_t; the driver's CUlaunchConfig differs in the size of one number, at the same place.
struct rt_launch_config {
    struct rt_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    void *attributes;
    unsigned attribute_count;
};

static int launch_config(const struct rt_driver *driver, const struct rt_launch_config *config, const void *function, void **arguments,
                         bool per_thread) {
    uint64_t kernel = 0;
    const int error = config == NULL ? RT_INVALID_VALUE : rt_kernel(function, &kernel);
    if (error != RT_SUCCESS) return error;
    struct rt_launch_config wanted = *config;
    wanted.stream = (void *)(uintptr_t)rt_stream(config->stream, per_thread);
    return launch_error(driver->launch_kernel_ex(&wanted, kernel, arguments, NULL), config->grid, config->block);
}

int cudaLaunchKernelExC(const struct rt_launch_config *config, const void *function, void **arguments) {
    RT_CALL(launch_config(driver, config, function, arguments, false));
}

int cudaLaunchKernelExC_ptsz(const struct rt_launch_config *config, const void *function, void **arguments) {
    RT_CALL(launch_config(driver, config, function, arguments, true));
}

// --- attributes -------------------------------------------------------------------------------------------------------------------------
// cudaFuncAttributes: the numbers of CUDA 11 have the same places since; those after them came with CUDA 12.
struct rt_function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int numbers[7];
#if RT_MAJOR >= 12
    int further[6];
    int reserved[16];
#endif
};
// What the driver calls them, in the struct's order.
static const int sizes[] = {1, 2, 3};               // shared, constant, local
static const int numbers[] = {0, 4, 5, 6, 7, 8, 9}; // threads, registers, PTX, binary, cache mode, most dynamic shared, carveout
#if RT_MAJOR >= 12
static const int further[] = {10, 11, 12, 13, 15, 14}; // clusters: must be set, width, height, depth, scheduling, not portable
#endif

static int attribute_number(const struct rt_driver *driver, int *value, int attribute, uint64_t kernel, int device) {
    const int error = driver->kernel_get_attribute(value, attribute, kernel, device);
    return error == RT_NO_IMAGE ? RT_INVALID_DEVICE_FUNCTION : rt_kernel_error(error);
}

static int function_attributes(const struct rt_driver *driver, struct rt_function_attributes *answer, const void *function) {
    struct rt_function_attributes found;
    uint64_t kernel = 0;
    const int device = rt_device();
    memset(&found, 0, sizeof found);
    int error = answer == NULL ? RT_INVALID_VALUE : rt_kernel(function, &kernel);
    size_t *const bytes[] = {&found.shared_bytes, &found.constant_bytes, &found.local_bytes};
    for (size_t i = 0; i < 3 && error == RT_SUCCESS; i++) {
        int value = 0;
        error = attribute_number(driver, &value, sizes[i], kernel, device);
        *bytes[i] = (size_t)value;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && error == RT_SUCCESS; i++)
        error = attribute_number(driver, &found.numbers[i], numbers[i], kernel, device);
#if RT_MAJOR >= 12
    for (size_t i = 0; i < sizeof further / sizeof further[0] && error == RT_SUCCESS; i++)
        (void)attribute_number(driver, &found.further[i], further[i], kernel, device); // a driver before CUDA 12 has none
#endif
    if (error == RT_SUCCESS) *answer = found;
    return error == RT_NO_IMAGE ? RT_INVALID_DEVICE_FUNCTION : error;
}

int cudaFuncGetAttributes(struct rt_function_attributes *attributes, const void *function) {
    RT_CALL(function_attributes(driver, attributes, function));
}

static int set_attribute(const struct rt_driver *driver, const void *function, int attribute, int value) {
    uint64_t kernel = 0;
    const int error = rt_kernel(function, &kernel);
    return error != RT_SUCCESS ? error : rt_kernel_error(driver->kernel_set_attribute(attribute, value, kernel, rt_device()));
}

int cudaFuncSetAttribute(const void *function, int attribute, int value) { RT_CALL(set_attribute(driver, function, attribute, value)); }

static int set_cache(const struct rt_driver *driver, const void *function, int config) {
    uint64_t kernel = 0;
    const int error = rt_kernel(function, &kernel);
    return error != RT_SUCCESS ? error : rt_kernel_error(driver->kernel_set_cache_config(kernel, config, rt_device()));
}

int cudaFuncSetCacheConfig(const void *function, int config) { RT_CALL(set_cache(driver, function, config)); }

// Banks of shared memory: a hint that no device since Maxwell takes.
int cudaFuncSetSharedMemConfig(const void *function, int config) {
    enum { MOST_CONFIG = 2 };
    uint64_t kernel = 0;
    RT_CALL(((void)driver, config < 0 || config > MOST_CONFIG ? RT_INVALID_VALUE : rt_kernel(function, &kernel)));
}

int cudaKernelSetAttributeForDevice(uint64_t kernel, int attribute, int value, int device) {
    RT_CALL(rt_kernel_error(driver->kernel_set_attribute(attribute, value, kernel, device)));
}

// No profiler is there to be started.
int cudaProfilerStart(void) { RT_CALL(((void)driver, RT_SUCCESS)); }
int cudaProfilerStop(void) { RT_CALL(((void)driver, RT_SUCCESS)); }
