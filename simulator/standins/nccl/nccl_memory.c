// Device memory of NCCL, and the buffers that programs allocate or register with it.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nccl.h"

// CUmemAllocationProp and CUmemAccessDesc.
struct allocation_properties {
    int type, handle_types;
    int location_type, location;
    void *metadata;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
};
struct access {
    int location_type, location;
    int flags;
};
enum { PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3, RECOMMENDED = 1, POSIX_DESCRIPTOR = 1 };

static struct allocation_properties properties_on(int device) {
    return (struct allocation_properties){.type = PINNED, .handle_types = POSIX_DESCRIPTOR, .location_type = ON_DEVICE, .location = device};
}

static uint64_t granularity(const struct standin_driver *driver, const struct allocation_properties *properties) {
    size_t bytes = 0;
    return driver->mem_get_allocation_granularity(&bytes, properties, RECOMMENDED) == 0 && bytes != 0 ? bytes : (size_t)2 << 20;
}

// Makes memory and maps it at taken->address, which is reserved.
static bool back_taken(const struct standin_driver *driver, int device, struct nccl_taken *taken) {
    const struct allocation_properties properties = properties_on(device);
    const struct access access = {ON_DEVICE, device, READ_WRITE};
    if (driver->mem_create(&taken->handle, taken->bytes, &properties, 0) != 0) return false;
    if (driver->mem_map(taken->address, taken->bytes, 0, taken->handle, 0) == 0) {
        if (driver->mem_set_access(taken->address, taken->bytes, &access, 1) == 0) return true;
        (void)driver->mem_unmap(taken->address, taken->bytes);
    }
    (void)driver->mem_release(taken->handle);
    return false;
}

// Gives the memory back to the driver and keeps its address.
static void unback_taken(const struct standin_driver *driver, const struct nccl_taken *taken) {
    (void)driver->mem_unmap(taken->address, taken->bytes);
    (void)driver->mem_release(taken->handle);
}

static bool map_taken(const struct standin_driver *driver, int device, struct nccl_taken *taken) {
    const struct allocation_properties properties = properties_on(device);
    const uint64_t grain = granularity(driver, &properties);
    taken->bytes = (taken->bytes + grain - 1) / grain * grain;
    if (driver->mem_address_reserve(&taken->address, taken->bytes, 0, 0, 0) != 0) return false;
    if (back_taken(driver, device, taken)) return true;
    (void)driver->mem_address_free(taken->address, taken->bytes);
    return false;
}

static void unmap_taken(const struct standin_driver *driver, const struct nccl_taken *taken) {
    unback_taken(driver, taken);
    (void)driver->mem_address_free(taken->address, taken->bytes);
}

static struct nccl_taken *take_memory(int device, uint64_t bytes) {
    const struct standin_driver *driver = standin_begin();
    struct nccl_taken *taken = driver == NULL ? NULL : calloc(1, sizeof *taken);
    if (taken == NULL) return NULL;
    taken->bytes = bytes;
    if (map_taken(driver, device, taken)) return taken;
    free(taken);
    return NULL;
}

bool nccl_take(struct nccl_comm *comm, uint64_t bytes) {
    struct nccl_taken *taken = take_memory(comm->device, bytes);
    if (taken == NULL) return false;
    taken->next = comm->taken;
    comm->taken = taken;
    comm->taken_bytes += taken->bytes;
    return true;
}

void nccl_give_all(struct nccl_comm *comm) {
    const struct standin_driver *driver = standin_begin();
    while (comm->taken != NULL) {
        struct nccl_taken *next = comm->taken->next;
        if (driver != NULL && !comm->is_suspended) unback_taken(driver, comm->taken);
        if (driver != NULL) (void)driver->mem_address_free(comm->taken->address, comm->taken->bytes);
        free(comm->taken);
        comm->taken = next;
    }
    comm->taken_bytes = 0;
}

// --- memory for programs --------------------------------------------------------------------------------------------
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct nccl_taken *of_programs; // guarded by mutex

int ncclMemAlloc(void **address, size_t bytes) {
    const struct standin_driver *driver = standin_begin();
    int device = 0;
    if (address == NULL || bytes == 0) return NCCL_INVALID_ARGUMENT;
    if (driver == NULL || driver->ctx_get_device(&device) != 0) return NCCL_CUDA_ERROR;
    struct nccl_taken *taken = take_memory(device, bytes);
    if (taken == NULL) return NCCL_CUDA_ERROR;
    (void)pthread_mutex_lock(&mutex);
    taken->next = of_programs;
    of_programs = taken;
    (void)pthread_mutex_unlock(&mutex);
    *address = (void *)(uintptr_t)taken->address;
    return NCCL_SUCCESS;
}

int ncclMemFree(void *address) {
    const struct standin_driver *driver = standin_begin();
    struct nccl_taken *found = NULL;
    if (address == NULL) return NCCL_SUCCESS;
    (void)pthread_mutex_lock(&mutex);
    for (struct nccl_taken **place = &of_programs; *place != NULL && found == NULL; place = &(*place)->next)
        if ((*place)->address == (uint64_t)(uintptr_t)address) {
            found = *place;
            *place = found->next;
            break;
        }
    (void)pthread_mutex_unlock(&mutex);
    if (found == NULL || driver == NULL) return NCCL_INVALID_ARGUMENT;
    unmap_taken(driver, found);
    free(found);
    return NCCL_SUCCESS;
}

// --- registrations: handles of buffers ------------------------------------------------------------------------------
#define REGISTRATION UINT64_C(0x6e63636c00000002)

struct registration {
    struct standin_object object;
    void *buffer;
};

static int register_buffer(const struct nccl_comm *comm, void *buffer, size_t bytes, struct registration **handle) {
    if (!nccl_is_comm(comm) || handle == NULL || buffer == NULL || bytes == 0) return NCCL_INVALID_ARGUMENT;
    struct registration *made = standin_new(REGISTRATION, sizeof *made);
    if (made == NULL) return NCCL_SYSTEM_ERROR;
    made->buffer = buffer;
    *handle = made;
    return NCCL_SUCCESS;
}

static int remove_it(struct registration *handle) {
    return handle == NULL || standin_destroy(handle, REGISTRATION) ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

int ncclCommRegister(const struct nccl_comm *comm, void *buffer, size_t bytes, struct registration **handle) {
    return register_buffer(comm, buffer, bytes, handle);
}

int ncclCommDeregister(const struct nccl_comm *comm, struct registration *handle) { return remove_it(handle); }

int ncclCommWindowRegister(const struct nccl_comm *comm, void *buffer, size_t bytes, struct registration **window, int flags) {
    return register_buffer(comm, buffer, bytes, window);
}

int ncclCommWindowDeregister(const struct nccl_comm *comm, struct registration *window) { return remove_it(window); }

int ncclWinGetUserPtr(const struct nccl_comm *comm, const struct registration *window, void **buffer) {
    if (!standin_is(window, REGISTRATION) || buffer == NULL) return NCCL_INVALID_ARGUMENT;
    *buffer = window->buffer;
    return NCCL_SUCCESS;
}

// --- suspending memory ----------------------------------------------------------------------------------------------
enum { SUSPEND_MEMORY = 1 };

// The addresses stay reserved, because captured graphs contain them.
int ncclCommSuspend(struct nccl_comm *comm, int flags) {
    const struct standin_driver *driver = standin_begin();
    if (!nccl_is_comm(comm) || driver == NULL || (flags & ~SUSPEND_MEMORY) != 0) return NCCL_INVALID_ARGUMENT;
    if (comm->is_suspended || (flags & SUSPEND_MEMORY) == 0) return NCCL_SUCCESS;
    for (const struct nccl_taken *taken = comm->taken; taken != NULL; taken = taken->next) unback_taken(driver, taken);
    comm->is_suspended = true;
    return NCCL_SUCCESS;
}

// Brings all memory back, or none.
int ncclCommResume(struct nccl_comm *comm) {
    const struct standin_driver *driver = standin_begin();
    if (!nccl_is_comm(comm) || driver == NULL) return NCCL_INVALID_ARGUMENT;
    if (!comm->is_suspended) return NCCL_SUCCESS;
    struct nccl_taken *missing = comm->taken;
    while (missing != NULL && back_taken(driver, comm->device, missing)) missing = missing->next;
    if (missing != NULL) {
        for (const struct nccl_taken *taken = comm->taken; taken != missing; taken = taken->next) unback_taken(driver, taken);
        return nccl_fail(comm, NCCL_CUDA_ERROR, "NCCL: cannot allocate the memory to resume");
    }
    comm->is_suspended = false;
    return NCCL_SUCCESS;
}

int ncclCommMemStats(const struct nccl_comm *comm, int which, uint64_t *value) {
    enum { CAN_SUSPEND, IS_SUSPENDED, STAYS, TOTAL };
    if (!nccl_is_comm(comm) || value == NULL || which < CAN_SUSPEND || which > TOTAL) return NCCL_INVALID_ARGUMENT;
    *value = which == IS_SUSPENDED ? comm->is_suspended : which == STAYS ? 0 : comm->taken_bytes;
    return NCCL_SUCCESS;
}

// --- communication started by kernels: not simulated ----------------------------------------------------------------
#define ABSENT(name)                                                                                                                       \
    int name(void) {                                                                                                                       \
        STANDIN_MISSING(#name);                                                                                                            \
        return NCCL_INVALID_USAGE;                                                                                                         \
    }
ABSENT(ncclCommQueryProperties)
ABSENT(ncclDevCommCreate)
ABSENT(ncclDevCommDestroy)
ABSENT(ncclGetLsaDevicePointer)
ABSENT(ncclGetLsaMultimemDevicePointer)
ABSENT(ncclGetMultimemDevicePointer)
ABSENT(ncclGetPeerDevicePointer)
