// Reads any bytes as another process's description of memory in its file: gives a result, never a crash; accepted memory can be read,
// written and released. The memory is a physical allocation, and a piece of a pool.
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "sim/sim.h"
#include "vram/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DESCRIPTOR = VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, MOST_BYTES = 4096 };

static struct vram_driver *open_side(void) {
    struct vram_sim_options options;
    struct vram_driver *driver;
    uint64_t context;
    if (vram_sim_parse("devices=2,memory=1GiB,bytes=sparse", &options, NULL) != VRAM_OK) __builtin_trap();
    if (vram_sim_create(&options, &driver) != VRAM_OK) return NULL;
    const bool begun = vr_cu(driver, primary_ctx_retain, &context, 0) == VR_CU_SUCCESS;
    if (!begun || vr_cu(driver, ctx_set_current, context) != VR_CU_SUCCESS) __builtin_trap();
    return driver;
}

static void use(struct vram_driver *driver, uint64_t address) {
    uint64_t word = 5;
    (void)vr_cu(driver, memset_d8, address, 1, 64);
    (void)vr_cu(driver, memcpy_htod, address, &word, sizeof word);
    (void)vr_cu(driver, memcpy_dtoh, &word, address, sizeof word);
}

static void write_over(int file, uint64_t place, const uint8_t *data, size_t size) {
    if (size != 0 && vr_os_shared_write(file, place, data, size < MOST_BYTES ? size : MOST_BYTES) != VRAM_OK) __builtin_trap();
}

static void map(struct vram_driver *driver, uint64_t handle) {
    const struct vr_cu_access_desc access = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t address;
    if (vr_cu(driver, mem_address_reserve, &address, VR_SIM_GRANULARITY, 0, 0, 0) != VR_CU_SUCCESS) return;
    if (vr_cu(driver, mem_map, address, VR_SIM_GRANULARITY, 0, handle, 0) == VR_CU_SUCCESS) {
        (void)vr_cu(driver, mem_set_access, address, VR_SIM_GRANULARITY, &access, 1);
        use(driver, address);
        (void)vr_cu(driver, mem_unmap, address, VR_SIM_GRANULARITY);
    }
    (void)vr_cu(driver, mem_address_free, address, VR_SIM_GRANULARITY);
}

static void try_physical(struct vram_driver *here, struct vram_driver *there, const uint8_t *data, size_t size) {
    const struct vr_cu_allocation_prop prop = {
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED, .requested_handle_types = DESCRIPTOR, .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct vr_shared_facts facts;
    uint64_t handle, theirs;
    int descriptor;
    if (vr_cu(here, mem_create, &handle, VR_SIM_GRANULARITY, &prop, 0) != VR_CU_SUCCESS) return;
    if (vr_cu(here, mem_export_to_shareable_handle, &descriptor, handle, DESCRIPTOR, 0) != VR_CU_SUCCESS) return;
    if (vr_os_shared_facts(descriptor, &facts) == VRAM_OK) write_over(descriptor, facts.position, data, size);
    if (vr_cu(there, mem_import_from_shareable_handle, &theirs, (void *)(uintptr_t)descriptor, DESCRIPTOR) == VR_CU_SUCCESS) {
        map(there, theirs);
        (void)vr_cu(there, mem_release, theirs);
    }
    (void)close(descriptor);
}

static void try_piece(struct vram_driver *here, struct vram_driver *there, const uint8_t *data, size_t size) {
    const struct vr_cu_pool_props props = {
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED, .handle_types = DESCRIPTOR, .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct vr_sim *owner = vr_sim_of(here), *importer = vr_sim_of(there);
    uint64_t pool, theirs, address, words[8] = {0};
    int descriptor;
    if (vr_cu(here, mem_pool_create, &pool, &props) != VR_CU_SUCCESS) return;
    if (vr_cu(here, mem_alloc_from_pool_async, &address, 5000, pool, 0) != VR_CU_SUCCESS) return;
    if (vr_sim_call_mem_pool_export_pointer(owner, words, address) != VR_CU_SUCCESS) return;
    if (vr_sim_call_mem_pool_export_to_shareable_handle(owner, &descriptor, pool, DESCRIPTOR, 0) != VR_CU_SUCCESS) return;
    if (vr_sim_call_mem_pool_import_from_shareable_handle(importer, &theirs, (void *)(uintptr_t)descriptor, DESCRIPTOR, 0) ==
        VR_CU_SUCCESS) {
        write_over(descriptor, words[1], data, size); // the data names the place, and the ticket's expected number
        if (size >= 16) memcpy(&words[2], data + 8, sizeof words[2]);
        if (vr_sim_call_mem_pool_import_pointer(importer, &address, theirs, words) == VR_CU_SUCCESS) {
            use(there, address);
            (void)vr_cu(there, mem_free, address);
        }
        (void)vr_cu(there, mem_pool_destroy, theirs);
    }
    (void)close(descriptor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vram_driver *here = open_side(), *there = open_side();
    if (here != NULL && there != NULL) {
        try_physical(here, there, data, size);
        try_piece(here, there, data, size);
        if (!vr_sim_check(vr_sim_of(there))) __builtin_trap();
    }
    if (there != NULL) vram_driver_destroy(there);
    if (here != NULL) vram_driver_destroy(here);
    return 0;
}
