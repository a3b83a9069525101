// Launches, and what kernels are and can.
#include <string.h>

#include "runtime.h"

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
