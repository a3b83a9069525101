// Device and host memory, copies of bytes and rows, and fills.
#include <string.h>

#include "runtime.h"

// Allocates memory. Returns NULL for 0 bytes.
static int allocate_memory(const struct rt_driver *driver, void **pointer, size_t bytes) {
    uint64_t address = 0;
    int error = pointer == NULL ? RT_INVALID_VALUE : RT_SUCCESS;
    if (error == RT_SUCCESS && bytes != 0) error = driver->mem_alloc(&address, bytes);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return error;
}

int cudaMalloc(void **pointer, size_t bytes) {
    const struct rt_driver *driver = NULL;
    const int error = rt_begin(&driver); // cudaMalloc(&p, 0) also creates the context
    return rt_end(error != RT_SUCCESS ? error : allocate_memory(driver, pointer, bytes));
}

int cudaFree(void *pointer) {
    const struct rt_driver *driver = NULL;
    const int error = rt_begin(&driver); // programs call cudaFree(NULL) to create the context
    return rt_end(error != RT_SUCCESS || pointer == NULL ? error : driver->mem_free(rt_address(pointer)));
}

static int give_rows(const struct rt_driver *driver, void **pointer, size_t *pitch, size_t width, size_t rows) {
    uint64_t address = 0;
    size_t found = 0;
    int error = pointer == NULL || pitch == NULL ? RT_INVALID_VALUE : RT_SUCCESS;
    if (error == RT_SUCCESS && width != 0 && rows != 0) error = driver->mem_alloc_pitch(&address, &found, width, rows, 4);
    if (error != RT_SUCCESS) return error;
    *pointer = (void *)(uintptr_t)address;
    *pitch = found;
    return RT_SUCCESS;
}

int cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    RT_CALL(give_rows(driver, pointer, pitch, width, height));
}

static int give_planes(const struct rt_driver *driver, struct rt_pitched *answer, struct rt_extent extent) {
    struct rt_pitched found = {.width = extent.width, .height = extent.height};
    size_t rows = 0;
    int error = answer == NULL || __builtin_mul_overflow(extent.height, extent.depth, &rows) ? RT_INVALID_VALUE : RT_SUCCESS;
    if (error == RT_SUCCESS) error = give_rows(driver, &found.pointer, &found.pitch, extent.width, rows);
    if (error == RT_SUCCESS) *answer = found;
    return error;
}

int cudaMalloc3D(struct rt_pitched *pitched, struct rt_extent extent) { RT_CALL(give_planes(driver, pitched, extent)); }

int cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    RT_CALL(pointer == NULL || bytes == 0 ? RT_INVALID_VALUE : driver->mem_alloc_managed(pointer, bytes, flags));
}

static int give_host(const struct rt_driver *driver, void **pointer, size_t bytes, unsigned flags) {
    if (pointer == NULL) return RT_INVALID_VALUE;
    if (bytes != 0) return driver->mem_host_alloc(pointer, bytes, flags);
    *pointer = NULL;
    return RT_SUCCESS;
}

int cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) { RT_CALL(give_host(driver, pointer, bytes, flags)); }
int cudaMallocHost(void **pointer, size_t bytes) { RT_CALL(give_host(driver, pointer, bytes, 0)); }
int cudaFreeHost(void *pointer) { RT_CALL(pointer == NULL ? RT_SUCCESS : driver->mem_free_host(pointer)); }

int cudaHostGetDevicePointer(void **pointer, void *host, unsigned flags) {
    RT_CALL(pointer == NULL ? RT_INVALID_VALUE : driver->mem_host_get_device_pointer(pointer, host, flags));
}

// cudaPointerAttributes.
struct rt_pointer_attributes {
    int type; // 0 unregistered, 1 host, 2 device, 3 managed
    int device;
    void *device_pointer;
    void *host_pointer;
#if RT_MAJOR >= 13
    long reserved[8];
#endif
};

int cudaPointerGetAttributes(struct rt_pointer_attributes *attributes, const void *pointer) {
    enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, DEVICE_ORDINAL = 9, HOST = 1, MANAGED = 3 };
    struct rt_pointer_attributes found = {.device = -2, .host_pointer = (void *)(uintptr_t)pointer}; // -2: memory unknown to CUDA
    const struct rt_driver *driver = NULL;
    unsigned managed = 0;
    const int error = attributes == NULL ? RT_INVALID_VALUE : rt_begin(&driver);
    if (error != RT_SUCCESS) return rt_end(error);
    const uint64_t address = rt_address(pointer);
    if (driver->pointer_get_attribute(&found.type, MEMORY_TYPE, address) == RT_SUCCESS && found.type != 0) {
        (void)driver->pointer_get_attribute(&found.device, DEVICE_ORDINAL, address);
        (void)driver->pointer_get_attribute(&managed, IS_MANAGED, address);
        if (managed != 0) found.type = MANAGED;
        found.device_pointer = (void *)(uintptr_t)pointer;
        (void)driver->pointer_get_attribute(&found.device_pointer, DEVICE_POINTER, address);
        if (found.type == HOST || found.type == MANAGED)
            (void)driver->pointer_get_attribute(&found.host_pointer, HOST_POINTER, address);
        else
            found.host_pointer = NULL;
    } else
        found.type = 0;
    *attributes = found;
    return RT_SUCCESS;
}

// --- copies -------------------------------------------------------------------------------------------------------------------------
enum { MOST_KIND = 4 }; // cudaMemcpyDefault; the addresses determine the direction

static int copy_on(const struct rt_driver *driver, void *to, const void *from, size_t bytes, int kind, uint64_t stream) {
    if (kind < 0 || kind > MOST_KIND) return RT_INVALID_MEMCPY_DIRECTION;
    return bytes == 0 ? RT_SUCCESS : driver->memcpy_async(rt_address(to), rt_address(from), bytes, stream);
}

static int wait_for_stream(const struct rt_driver *driver, int error, uint64_t stream) {
    return error != RT_SUCCESS ? error : driver->stream_synchronize(stream);
}

static int copy_memory(const struct rt_driver *driver, void *to, const void *from, size_t bytes, int kind, uint64_t stream) {
    if (stream != 0) return wait_for_stream(driver, copy_on(driver, to, from, bytes, kind, stream), stream);
    if (kind < 0 || kind > MOST_KIND) return RT_INVALID_MEMCPY_DIRECTION;
    return bytes == 0 ? RT_SUCCESS : driver->memcpy(rt_address(to), rt_address(from), bytes);
}

RT_DEFAULT_CALL(cudaMemcpy, (void *to, const void *from, size_t bytes, int kind), copy_memory(driver, to, from, bytes, kind, on))
RT_STREAM_CALL(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, void *stream),
               copy_on(driver, to, from, bytes, kind, on))
RT_DEFAULT_CALL(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes),
                ((void)to_device, (void)from_device, copy_memory(driver, to, from, bytes, MOST_KIND, on)))
RT_STREAM_CALL(cudaMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream),
               ((void)to_device, (void)from_device, copy_on(driver, to, from, bytes, MOST_KIND, on)))

struct rows {
    void *to;
    size_t to_pitch;
    const void *from;
    size_t from_pitch, width, height;
    int kind;
};

static int copy_memory_rows(const struct rt_driver *driver, const struct rows *rows, bool wait, uint64_t stream) {
    if (rows->kind < 0 || rows->kind > MOST_KIND) return RT_INVALID_MEMCPY_DIRECTION;
    if (rows->width > rows->to_pitch || rows->width > rows->from_pitch) return rows->height > 1 ? RT_INVALID_PITCH : RT_INVALID_VALUE;
    if (rows->width == 0 || rows->height == 0) return RT_SUCCESS;
    struct rt_copy copy_of_rows = rt_copy_line(rt_address(rows->to), rt_address(rows->from), rows->width);
    copy_of_rows.to.pitch = rows->to_pitch;
    copy_of_rows.from.pitch = rows->from_pitch;
    copy_of_rows.to.rows = copy_of_rows.from.rows = copy_of_rows.rows = rows->height;
    if (wait && stream == 0) return driver->memcpy_3d(&copy_of_rows);
    const int error = driver->memcpy_3d_async(&copy_of_rows, stream);
    return wait ? wait_for_stream(driver, error, stream) : error;
}

#define ROWS                                                                                                                               \
    &(const struct rows) { to, to_pitch, from, from_pitch, width, height, kind }
RT_DEFAULT_CALL(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind),
                copy_memory_rows(driver, ROWS, true, on))
RT_STREAM_CALL(cudaMemcpy2DAsync,
               (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind, void *stream),
               copy_memory_rows(driver, ROWS, false, on))

// --- filling ------------------------------------------------------------------------------------------------------------------------
static int fill_on(const struct rt_driver *driver, void *to, int value, size_t bytes, uint64_t stream) {
    return bytes == 0 ? RT_SUCCESS : driver->memset_d8_async(rt_address(to), (unsigned char)value, bytes, stream);
}

static int fill_memory(const struct rt_driver *driver, void *to, int value, size_t bytes, uint64_t stream) {
    if (stream != 0) return fill_on(driver, to, value, bytes, stream);
    return bytes == 0 ? RT_SUCCESS : driver->memset_d8(rt_address(to), (unsigned char)value, bytes);
}

// Rows without gaps are filled as one.
static int fill_rows(const struct rt_driver *driver, struct rt_pitched to, int value, size_t rows, uint64_t stream) {
    if (to.width > to.pitch) return RT_INVALID_VALUE;
    if (to.width == to.pitch) return fill_on(driver, to.pointer, value, to.width * rows, stream);
    return to.width == 0 || rows == 0
               ? RT_SUCCESS
               : driver->memset_d2d8_async(rt_address(to.pointer), to.pitch, (unsigned char)value, to.width, rows, stream);
}

// Planes are to.height rows apart; planes without gaps are filled as one.
static int fill_planes(const struct rt_driver *driver, struct rt_pitched to, int value, struct rt_extent extent, uint64_t stream) {
    const struct rt_pitched plane = {.pointer = to.pointer, .pitch = to.pitch, .width = extent.width};
    if (extent.depth <= 1 || extent.height == to.height) return fill_rows(driver, plane, value, extent.height * extent.depth, stream);
    int error = RT_SUCCESS;
    for (size_t z = 0; z < extent.depth && error == RT_SUCCESS; z++) {
        struct rt_pitched next = plane;
        next.pointer = (char *)to.pointer + z * to.pitch * to.height;
        error = fill_rows(driver, next, value, extent.height, stream);
    }
    return error;
}

#define PLANE ((struct rt_pitched){.pointer = to, .pitch = pitch, .width = width})
RT_DEFAULT_CALL(cudaMemset, (void *to, int value, size_t bytes), fill_memory(driver, to, value, bytes, on))
RT_STREAM_CALL(cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream), fill_on(driver, to, value, bytes, on))
RT_DEFAULT_CALL(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height), fill_rows(driver, PLANE, value, height, on))
RT_STREAM_CALL(cudaMemset2DAsync, (void *to, size_t pitch, int value, size_t width, size_t height, void *stream),
               fill_rows(driver, PLANE, value, height, on))
RT_DEFAULT_CALL(cudaMemset3D, (struct rt_pitched to, int value, struct rt_extent extent), fill_planes(driver, to, value, extent, on))
RT_STREAM_CALL(cudaMemset3DAsync, (struct rt_pitched to, int value, struct rt_extent extent, void *stream),
               fill_planes(driver, to, value, extent, on))
