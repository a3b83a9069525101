// Attributes of devices, and costs of calls on the virtual clock.
#include <stdio.h>

#include "sim/sim.h"
#include "vram/sim.h"

// ---- Version of the driver, and attributes of its devices.

bool vr_sim_is_device(const struct vr_sim *sim, int device) { return device >= 0 && (uint32_t)device < sim->options.device_count; }

static uint64_t left_by(const struct vr_sim_device *device, uint64_t others_bytes) {
    const uint64_t left = device->used_bytes < device->memory_bytes ? device->memory_bytes - device->used_bytes : 0;
    return others_bytes < left ? left - others_bytes : 0;
}

bool vr_sim_fits_with_others(const struct vr_sim_device *device, uint64_t size_bytes) {
    return size_bytes <= left_by(device, device->others(device->ordinal, false)) ||
           size_bytes <= left_by(device, device->others(device->ordinal, true));
}

uint64_t vr_sim_free_bytes(const struct vr_sim_device *device) {
    return left_by(device, device->others == NULL ? 0 : device->others(device->ordinal, true));
}

vr_cu_result vr_sim_device_get_count(struct vr_sim *sim, int *count) {
    if (count == NULL) return VR_CU_INVALID_VALUE;
    *count = (int)sim->options.device_count;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_device_get_name(struct vr_sim *sim, char *name, int length, int device) {
    if (name == NULL || length <= 0) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    const struct vr_sim_card *card = sim->devices[device].card;
    if (card->key[0] == '\0')
        (void)snprintf(name, (size_t)length, "%s %d", card->name, device);
    else
        (void)snprintf(name, (size_t)length, "%s", card->name);
    return VR_CU_SUCCESS;
}

// Names that attributes.def uses. Orin shares its host's memory, but not its page tables.
#define IS_ORIN            (card->kind == VR_SIM_INTEGRATED && card->major == 8)
#define SHARES_PAGE_TABLES (card->kind == VR_SIM_GRACE || (card->kind == VR_SIM_INTEGRATED && !IS_ORIN))

// Returns false if the number is not an attribute.
static bool attribute_of(const struct vr_sim *sim, int attribute, int device, int *value) {
    const struct vr_sim_card *card = sim->devices[device].card;
    const struct vr_sim_architecture *arch = vr_sim_architecture_of(card);
    switch (attribute) {
#define X(number, name, answer)                                                                                                            \
    case number:                                                                                                                           \
        *value = answer;                                                                                                                   \
        return true;
#include "sim/device/attributes.def"
#undef X
    default: return false;
    }
}

vr_cu_result vr_sim_device_get_attribute(struct vr_sim *sim, int *value, int attribute, int device) {
    if (value == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    return attribute_of(sim, attribute, device, value) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

vr_cu_result vr_sim_device_get_uuid(struct vr_sim *sim, unsigned char *uuid, int device) {
    if (uuid == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    vr_sim_card_uuid(sim->devices[device].ordinal, uuid);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_device_total_mem(struct vr_sim *sim, uint64_t *size_bytes, int device) {
    if (size_bytes == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    *size_bytes = sim->devices[device].memory_bytes;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_driver_get_version(struct vr_sim *sim, int *version) {
    if (version == NULL) return VR_CU_INVALID_VALUE;
    *version = (int)sim->options.driver_version;
    return VR_CU_SUCCESS;
}

static void describe_card(const struct vr_sim_card *card, struct vram_sim_model *model) {
    *model = (struct vram_sim_model){.key = card->key,
                                     .name = card->name,
                                     .memory_bytes = card->total_bytes,
                                     .context_bytes = card->context_mib * VR_MIB,
                                     .compute_major = card->major,
                                     .compute_minor = card->minor,
                                     .multiprocessors = card->multiprocessors};
}

static uint32_t cuda_count(void) { return vr_sim_card_count() - vr_sim_card_amd_count(); }

bool vram_sim_model_at(uint32_t index, struct vram_sim_model *model) {
    if (model == NULL || index >= cuda_count()) return false;
    describe_card(vr_sim_card_at(index + 1), model);
    return true;
}

bool vram_sim_amd_model_at(uint32_t index, struct vram_sim_model *model) {
    if (model == NULL || index >= vr_sim_card_amd_count()) return false;
    describe_card(vr_sim_card_at(cuda_count() + index + 1), model);
    return true;
}

const char *vram_sim_model_estimated(const char *key) {
    return key == NULL ? "" : vr_sim_card_at(vr_sim_card_find(key, strlen(key)))->estimated;
}

// ---- What calls cost on the virtual clock. The figures are measurements others published, as far as there are any;
// docs/internals/simulated-device.md names the source of each. A call without a figure costs nothing.

#define SMALL_PAGE  (2 * VR_MIB)
#define SMALL_LIMIT VR_MIB // smaller sizes share 2 MiB pages

enum {
    ALLOC_NS = 4000,            // from a 2 MiB page that the driver already holds
    ALLOC_NEW_NS = 60000,       // with new physical memory
    ALLOC_NS_PER_MIB = 400,     // of new memory, including that of cuMemCreate above 2 MiB
    FREE_NS_PER_MIB = 200,      // of memory freed
    RECORD_TIMING_NS = 2250,    // on top of a record without timing
    SET_ACCESS_CHEAP_NS = 500,  // per 2 MiB after the first
    SET_ACCESS_DEAR_NS = 36000, // the same in the profile DEAR
    SET_ACCESS_NS = 36000,      // for the first 2 MiB
    UNMAP_NS = 26000,           // per mapping
    POOL_HIT_NS = 800,          // cuMemAllocAsync from the pool's free memory
    POOL_MISS_NS = 60000,       // with new memory
    POOL_NS_PER_MIB = 15000,    // of new memory
};

static const uint32_t base_costs_ns[VR_SIM_CALL_COUNT] = {
    [VR_SIM_CALL_mem_get_info] = 6000,
    [VR_SIM_CALL_mem_alloc] = ALLOC_NS,
    [VR_SIM_CALL_mem_free] = 8000,
    [VR_SIM_CALL_mem_alloc_async] = POOL_HIT_NS,
    [VR_SIM_CALL_mem_alloc_from_pool_async] = POOL_HIT_NS,
    [VR_SIM_CALL_mem_free_async] = 550,
    [VR_SIM_CALL_mem_address_reserve] = 10000,
    [VR_SIM_CALL_mem_address_free] = 1000,
    [VR_SIM_CALL_mem_create] = 30000,
    [VR_SIM_CALL_mem_release] = 23000,
    [VR_SIM_CALL_mem_map] = 1500,
    [VR_SIM_CALL_mem_set_access] = SET_ACCESS_NS,
    [VR_SIM_CALL_mem_host_alloc] = 6000,
    [VR_SIM_CALL_mem_free_host] = 8000,
    [VR_SIM_CALL_mem_host_register] = 10000,
    [VR_SIM_CALL_memcpy_htod] = 2800, // copies and sets are submitted like kernels
    [VR_SIM_CALL_memcpy_dtoh] = 2800,
    [VR_SIM_CALL_memcpy_async] = 2800,
    [VR_SIM_CALL_memset_d8] = 2800,
    [VR_SIM_CALL_memset_d8_async] = 2800,
    [VR_SIM_CALL_stream_query] = 220,
    [VR_SIM_CALL_stream_wait_event] = 500,
    [VR_SIM_CALL_event_create] = 1000,
    [VR_SIM_CALL_event_destroy] = 700,
    [VR_SIM_CALL_event_record] = 250,
    [VR_SIM_CALL_event_query] = 220,
    [VR_SIM_CALL_event_record_with_flags] = 250,
    [VR_SIM_CALL_graph_launch] = 2800,
    [VR_SIM_CALL_launch_kernel] = 2800,
    [VR_SIM_CALL_launch_kernel_ex] = 2800,
    [VR_SIM_CALL_launch_cooperative_kernel] = 2800,
};

uint64_t vr_sim_base_cost_ns(const struct vr_sim *sim, enum vr_sim_call call) {
    return sim->options.profile == VRAM_SIM_FREE ? 0 : base_costs_ns[call];
}

// Adds to the cost of the running call. Does nothing in the profile FREE.
static void sim_charge(struct vr_sim *sim, uint64_t cost_ns) {
    if (sim->options.profile != VRAM_SIM_FREE) sim->charge_ns += cost_ns;
}

void vr_sim_charge_bytes(struct vr_sim *sim, uint64_t bytes, uint64_t ns_per_mib) {
    uint64_t whole = bytes / VR_MIB * ns_per_mib;
    sim_charge(sim, whole + bytes % VR_MIB * ns_per_mib / VR_MIB);
}

void vr_sim_charge_alloc(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes) {
    uint64_t fresh = size_bytes;
    if (size_bytes < SMALL_LIMIT) {
        device->small_bytes += size_bytes;
        if (device->small_bytes <= device->small_held_bytes) return;
        device->small_held_bytes += SMALL_PAGE;
        fresh = SMALL_PAGE;
    }
    sim_charge(sim, ALLOC_NEW_NS - ALLOC_NS);
    vr_sim_charge_bytes(sim, fresh, ALLOC_NS_PER_MIB);
}

void vr_sim_charge_free(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes) {
    if (size_bytes < SMALL_LIMIT)
        device->small_bytes -= size_bytes;
    else
        vr_sim_charge_bytes(sim, size_bytes, FREE_NS_PER_MIB);
}

void vr_sim_charge_create(struct vr_sim *sim, uint64_t size_bytes) {
    vr_sim_charge_bytes(sim, size_bytes - VR_SIM_GRANULARITY, ALLOC_NS_PER_MIB);
}

void vr_sim_charge_set_access(struct vr_sim *sim, uint64_t size_bytes, uint64_t count) {
    uint64_t further_ns = sim->options.profile == VRAM_SIM_DEAR ? SET_ACCESS_DEAR_NS : SET_ACCESS_CHEAP_NS;
    uint64_t of_one = SET_ACCESS_NS + (size_bytes / VR_SIM_GRANULARITY - 1) * further_ns;
    sim_charge(sim, of_one * count - SET_ACCESS_NS);
}

void vr_sim_charge_chunk(struct vr_sim *sim, uint64_t size_bytes) {
    sim_charge(sim, POOL_MISS_NS - POOL_HIT_NS);
    vr_sim_charge_bytes(sim, size_bytes, POOL_NS_PER_MIB);
}

void vr_sim_charge_unmap(struct vr_sim *sim, uint64_t mappings) { sim_charge(sim, mappings * UNMAP_NS); }

void vr_sim_charge_record(struct vr_sim *sim, unsigned event_flags) {
    if ((event_flags & VR_CU_EVENT_DISABLE_TIMING) == 0) sim_charge(sim, RECORD_TIMING_NS);
}
