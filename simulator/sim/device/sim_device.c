// sim_device.c: what a driver says of itself and of its devices.
#include <stdio.h>

#include "sim/sim.h"
#include "vram/sim.h"

bool vr_sim_is_device(const struct vr_sim *sim, int device) { return device >= 0 && (uint32_t)device < sim->options.device_count; }

static uint64_t left_by(const struct vr_sim_device *device, uint64_t others_bytes) {
    const uint64_t left = device->used_bytes < device->memory_bytes ? device->memory_bytes - device->used_bytes : 0;
    return others_bytes < left ? left - others_bytes : 0;
}

bool vr_sim_fits_beside(const struct vr_sim_device *device, uint64_t size_bytes) {
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

// What attributes.def asks of a card. Orin shares its host's memory, and not its page tables.
#define IS_ORIN            (card->kind == VR_SIM_INTEGRATED && card->major == 8)
#define SHARES_PAGE_TABLES (card->kind == VR_SIM_GRACE || (card->kind == VR_SIM_INTEGRATED && !IS_ORIN))

// False for a number that is no attribute.
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
