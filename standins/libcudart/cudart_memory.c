// Memory of devices and hosts, and copies between them.
#include <string.h>

#include "runtime.h"

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

// The runtime gives nothing for nothing.
int cudaMalloc(void **pointer, size_t bytes) {
    uint64_t address = 0;
    if (pointer == NULL) return rt_end(RT_INVALID_VALUE);
    const struct rt_driver *driver = NULL;
    int error = rt_begin(&driver);
    if (error == RT_SUCCESS && bytes != 0) error = driver->mem_alloc(&address, bytes);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return rt_end(error);
}

int cudaFree(void *pointer) { RT_CALL(pointer == NULL ? RT_SUCCESS : driver->mem_free(address_of(pointer))); }

int cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    uint64_t address = 0;
    const struct rt_driver *driver = NULL;
    int error = pointer == NULL || pitch == NULL ? RT_INVALID_VALUE : rt_begin(&driver);
    if (error == RT_SUCCESS && (width == 0 || height == 0)) {
        *pointer = NULL;
        *pitch = 0;
        return RT_SUCCESS;
    }
    if (error == RT_SUCCESS) error = driver->mem_alloc_pitch(&address, pitch, width, height, 4);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return rt_end(error);
}

int cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    uint64_t address = 0;
    const struct rt_driver *driver = NULL;
    int error = pointer == NULL || bytes == 0 ? RT_INVALID_VALUE : rt_begin(&driver);
    if (error == RT_SUCCESS) error = driver->mem_alloc_managed(&address, bytes, flags);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return rt_end(error);
}

int cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    const struct rt_driver *driver = NULL;
    int error = pointer == NULL ? RT_INVALID_VALUE : rt_begin(&driver);
    if (error == RT_SUCCESS && bytes == 0)
        *pointer = NULL;
    else if (error == RT_SUCCESS)
        error = driver->mem_host_alloc(pointer, bytes, flags);
    return rt_end(error);
}

int cudaMallocHost(void **pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }
int cudaFreeHost(void *pointer) { RT_CALL(pointer == NULL ? RT_SUCCESS : driver->mem_free_host(pointer)); }
int cudaHostRegister(void *pointer, size_t bytes, unsigned flags) { RT_CALL(driver->mem_host_register(pointer, bytes, flags)); }
int cudaHostUnregister(void *pointer) { RT_CALL(driver->mem_host_unregister(pointer)); }

int cudaHostGetDevicePointer(void **pointer, void *host, unsigned flags) {
    uint64_t address = 0;
    const struct rt_driver *driver = NULL;
    int error = pointer == NULL ? RT_INVALID_VALUE : rt_begin(&driver);
    if (error == RT_SUCCESS) error = driver->mem_host_get_device_pointer(&address, host, flags);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return rt_end(error);
}

// cudaPointerAttributes: what a pointer is to the runtime.
struct rt_pointer_attributes {
    int type; // 0 unregistered, 1 host, 2 device, 3 managed
    int device;
    void *device_pointer;
    void *host_pointer;
    long reserved[8];
};

int cudaPointerGetAttributes(struct rt_pointer_attributes *attributes, const void *pointer) {
    enum { MEMORY_TYPE = 2, DEVICE_ORDINAL = 9 };
    const struct rt_driver *driver = NULL;
    int error = attributes == NULL ? RT_INVALID_VALUE : rt_begin(&driver), type = 0, device = 0;
    if (error != RT_SUCCESS) return rt_end(error);
    memset(attributes, 0, sizeof *attributes);
    attributes->device = -2; // no device, as for memory that CUDA does not know
    attributes->host_pointer = (void *)(uintptr_t)pointer;
    if (driver->pointer_get_attribute(&type, MEMORY_TYPE, address_of(pointer)) != RT_SUCCESS || type == 0) return RT_SUCCESS;
    (void)driver->pointer_get_attribute(&device, DEVICE_ORDINAL, address_of(pointer));
    attributes->type = type;
    attributes->device = device;
    attributes->device_pointer = (void *)(uintptr_t)pointer;
    if (type != 1) attributes->host_pointer = NULL;
    return RT_SUCCESS;
}

// --- copies -------------------------------------------------------------------------------------------------------------------------
enum { MOST_KIND = 4 }; // cudaMemcpyDefault; addresses tell the direction

static int copy(const struct rt_driver *driver, void *to, const void *from, size_t bytes, int kind) {
    if (kind < 0 || kind > MOST_KIND) return RT_INVALID_MEMCPY_DIRECTION;
    return bytes == 0 ? RT_SUCCESS : driver->memcpy(address_of(to), address_of(from), bytes);
}

static int copy_on(const struct rt_driver *driver, void *to, const void *from, size_t bytes, int kind, uint64_t stream) {
    if (kind < 0 || kind > MOST_KIND) return RT_INVALID_MEMCPY_DIRECTION;
    return bytes == 0 ? RT_SUCCESS : driver->memcpy_async(address_of(to), address_of(from), bytes, stream);
}

static int copy_and_wait(const struct rt_driver *driver, void *to, const void *from, size_t bytes, int kind) {
    const int error = copy_on(driver, to, from, bytes, kind, RT_PER_THREAD);
    return error != RT_SUCCESS ? error : driver->stream_synchronize(RT_PER_THREAD);
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) { RT_CALL(copy(driver, to, from, bytes, kind)); }
int cudaMemcpy_ptds(void *to, const void *from, size_t bytes, int kind) { RT_CALL(copy_and_wait(driver, to, from, bytes, kind)); }
RT_STREAM_CALL(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, void *stream),
               copy_on(driver, to, from, bytes, kind, on))

int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    (void)to_device;
    (void)from_device;
    RT_CALL(copy(driver, to, from, bytes, MOST_KIND));
}

int cudaMemcpyPeer_ptds(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    (void)to_device;
    (void)from_device;
    RT_CALL(copy_and_wait(driver, to, from, bytes, MOST_KIND));
}

RT_STREAM_CALL(cudaMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream),
               ((void)to_device, (void)from_device, copy_on(driver, to, from, bytes, MOST_KIND, on)))

struct rows {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, width, height;
    int kind;
};

static int copy_rows(const struct rt_driver *driver, const struct rows *rows, bool wait, uint64_t stream) {
    if (rows->width > rows->to_pitch || rows->width > rows->from_pitch) return RT_INVALID_VALUE;
    for (size_t row = 0; row < rows->height; row++) {
        void *to = (char *)rows->to + row * rows->to_pitch;
        const void *from = (const char *)rows->from + row * rows->from_pitch;
        const int error =
            wait ? copy(driver, to, from, rows->width, rows->kind) : copy_on(driver, to, from, rows->width, rows->kind, stream);
        if (error != RT_SUCCESS) return error;
    }
    return RT_SUCCESS;
}

int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind) {
    const struct rows rows = {to, from, to_pitch, from_pitch, width, height, kind};
    RT_CALL(copy_rows(driver, &rows, true, 0));
}

int cudaMemcpy2D_ptds(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind) {
    const struct rows rows = {to, from, to_pitch, from_pitch, width, height, kind};
    RT_CALL((rt_error_ = copy_rows(driver, &rows, false, RT_PER_THREAD)) != RT_SUCCESS ? rt_error_
                                                                                       : driver->stream_synchronize(RT_PER_THREAD));
}

RT_STREAM_CALL(cudaMemcpy2DAsync,
               (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind, void *stream),
               copy_rows(driver, &(const struct rows){to, from, to_pitch, from_pitch, width, height, kind}, false, on))

// --- filling ------------------------------------------------------------------------------------------------------------------------
static int fill(const struct rt_driver *driver, void *to, int value, size_t bytes) {
    return bytes == 0 ? RT_SUCCESS : driver->memset_d8(address_of(to), (unsigned char)value, bytes);
}

static int fill_on(const struct rt_driver *driver, void *to, int value, size_t bytes, uint64_t stream) {
    return bytes == 0 ? RT_SUCCESS : driver->memset_d8_async(address_of(to), (unsigned char)value, bytes, stream);
}

static int fill_rows(const struct rt_driver *driver, void *to, size_t pitch, int value, size_t width, size_t height, uint64_t stream) {
    if (width > pitch) return RT_INVALID_VALUE;
    int error = RT_SUCCESS;
    for (size_t row = 0; row < height && error == RT_SUCCESS; row++)
        error = fill_on(driver, (char *)to + row * pitch, value, width, stream);
    return error;
}

int cudaMemset(void *to, int value, size_t bytes) { RT_CALL(fill(driver, to, value, bytes)); }
int cudaMemset_ptds(void *to, int value, size_t bytes) { RT_CALL(fill_on(driver, to, value, bytes, RT_PER_THREAD)); }
int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    RT_CALL(fill_rows(driver, to, pitch, value, width, height, 0));
}
int cudaMemset2D_ptds(void *to, size_t pitch, int value, size_t width, size_t height) {
    RT_CALL(fill_rows(driver, to, pitch, value, width, height, RT_PER_THREAD));
}
RT_STREAM_CALL(cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream), fill_on(driver, to, value, bytes, on))
RT_STREAM_CALL(cudaMemset2DAsync, (void *to, size_t pitch, int value, size_t width, size_t height, void *stream),
               fill_rows(driver, to, pitch, value, width, height, on))

// --- other processes ------------------------------------------------------------------------------------------------------------------
int cudaIpcGetMemHandle(struct rt_ipc_handle *handle, void *pointer) { RT_CALL(driver->ipc_get_mem_handle(handle, address_of(pointer))); }
int cudaIpcCloseMemHandle(void *pointer) { RT_CALL(driver->ipc_close_mem_handle(address_of(pointer))); }
int cudaIpcGetEventHandle(struct rt_ipc_handle *handle, uint64_t event) { RT_CALL(driver->ipc_get_event_handle(handle, event)); }
int cudaIpcOpenEventHandle(uint64_t *event, struct rt_ipc_handle handle) { RT_CALL(driver->ipc_open_event_handle(event, handle)); }

int cudaIpcOpenMemHandle(void **pointer, struct rt_ipc_handle handle, unsigned flags) {
    uint64_t address = 0;
    const struct rt_driver *driver = NULL;
    int error = pointer == NULL ? RT_INVALID_VALUE : rt_begin(&driver);
    if (error == RT_SUCCESS) error = driver->ipc_open_mem_handle(&address, handle, flags);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return rt_end(error);
}
