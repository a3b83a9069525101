// NVSHMEM for one process: programs that link it start, and its heap is device memory. Several processes are not simulated: initialization
// fails and is counted.
#include <stdlib.h>

#include "../common/calls.h"

enum { NOT_SUPPORTED = 5, INVALID = 1 };
static bool is_alone = true;

int nvshmemx_get_uniqueid(void *id) { return id == NULL ? INVALID : 0; }

int nvshmemx_set_attr_uniqueid_args(int rank, int count, const void *id, void *attributes) {
    is_alone = count <= 1;
    return 0;
}

int nvshmemid_hostlib_init_attr(int wanted, int *provided, unsigned flags, void *attributes) {
    PUT(provided, wanted);
    if (is_alone) return 0;
    STANDIN_MISSING("nvshmem_init of several processes");
    return NOT_SUPPORTED;
}

int nvshmemx_hostlib_init_attr(unsigned flags, void *attributes) { return nvshmemid_hostlib_init_attr(0, NULL, flags, attributes); }
void nvshmem_init(void) {}
void nvshmem_finalize(void) {}
void nvshmemid_hostlib_finalize(void *device_context, void *transport_context) {}
int nvshmemid_init_status(void) { return 0; }
int nvshmemx_init_status(void) { return 0; }
int nvshmem_my_pe(void) { return 0; }
int nvshmem_n_pes(void) { return 1; }
int nvshmem_team_my_pe(int team) { return 0; }
int nvshmem_team_n_pes(int team) { return 1; }
int nvshmem_selected_device_transport(void) { return 0; }
int nvshmemx_cumodule_init(void *module) { return 0; }
int nvshmemx_cumodule_finalize(void *module) { return 0; }

void nvshmem_info_get_version(int *major, int *minor) {
    PUT(major, 1); // version of the OpenSHMEM standard
    PUT(minor, 3);
}

void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch) {
    PUT(major, standin_version_part(0));
    PUT(minor, standin_version_part(1));
    PUT(patch, standin_version_part(2));
}

int nvshmem_team_split_strided(int team, int begin, int stride, int size, const void *configuration, long mask, int *result) {
    if (result == NULL || begin != 0 || size != 1) return INVALID;
    *result = team;
    return 0;
}

// --- the heap -------------------------------------------------------------------------------------------------------
void *nvshmem_malloc(size_t bytes) { return standin_take(bytes); }
void *nvshmem_align(size_t alignment, size_t bytes) { return alignment <= 512 ? standin_take(bytes) : NULL; }
void nvshmem_free(void *address) { standin_give(address); }
void *nvshmem_ptr(const void *address, int process) { return process == 0 ? (void *)(uintptr_t)address : NULL; }
void *nvshmemx_mc_ptr(int team, const void *address) { return NULL; } // multicast is not simulated

void *nvshmem_calloc(size_t count, size_t size) {
    size_t bytes;
    void *address = __builtin_mul_overflow(count, size, &bytes) ? NULL : standin_take(bytes);
    (void)standin_zero(address, bytes, 0);
    return address;
}

// --- transfers ------------------------------------------------------------------------------------------------------
static void copy_elements(void *to, const void *from, size_t bytes, uint64_t stream) {
    const struct standin_driver *driver = standin_begin();
    if (driver != NULL && bytes != 0 && to != from)
        (void)driver->memcpy_async((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, stream);
}

void nvshmemx_putmem_on_stream(void *to, const void *from, size_t bytes, int process, uint64_t stream) {
    copy_elements(to, from, bytes, stream);
}
void nvshmemx_getmem_on_stream(void *to, const void *from, size_t bytes, int process, uint64_t stream) {
    copy_elements(to, from, bytes, stream);
}
void nvshmemx_putmem_signal_on_stream(void *to, const void *from, size_t bytes, void *signal_address, uint64_t value, int operator,
                                      int process, uint64_t stream) {
    copy_elements(to, from, bytes, stream);
}
void nvshmemx_signal_wait_until_on_stream(void *address, int comparison, uint64_t value, uint64_t stream) { (void)standin_work(stream); }

int nvshmemx_alltoallmem_on_stream(int team, void *to, const void *from, size_t bytes, uint64_t stream) {
    copy_elements(to, from, bytes, stream);
    return 0;
}

int nvshmemx_broadcastmem_on_stream(int team, void *to, const void *from, size_t bytes, int root, uint64_t stream) {
    copy_elements(to, from, bytes, stream);
    return 0;
}

#define ALONE(name)                                                                                                                        \
    void name(void) {}
ALONE(nvshmem_barrier_all)
ALONE(nvshmem_sync_all)
ALONE(nvshmem_quiet)
ALONE(nvshmem_fence)
void nvshmemx_barrier_all_on_stream(uint64_t stream) { (void)standin_work(stream); }
void nvshmemx_sync_all_on_stream(uint64_t stream) { (void)standin_work(stream); }
void nvshmemx_quiet_on_stream(uint64_t stream) { (void)standin_work(stream); }
int nvshmemx_barrier_on_stream(int team, uint64_t stream) { return standin_work(stream) == 0 ? 0 : INVALID; }
int nvshmem_team_destroy(int team) { return 0; }
