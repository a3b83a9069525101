// nvml_device.c: what a device is.
#include <stdio.h>
#include <string.h>

#include "nvml.h"

static const struct vr_sim_card *card_of(uint32_t device) { return vr_sim_options_card(&nvml_options, device); }

// --- names ------------------------------------------------------------------------------------------------------------------

NVML_EXPORT int nvmlDeviceGetName(const struct nvml_device *handle, char *name, unsigned length);
int nvmlDeviceGetName(const struct nvml_device *handle, char *name, unsigned length) {
    NVML_DEVICE(handle);
    char text[64];
    const struct vr_sim_card *card = card_of(device);
    if (card->key[0] != '\0') return (int)nvml_put(name, length, card->name);
    snprintf(text, sizeof text, "%s %u", card->name, device);
    return (int)nvml_put(name, length, text);
}

NVML_EXPORT int nvmlDeviceGetUUID(const struct nvml_device *handle, char *uuid, unsigned length);
int nvmlDeviceGetUUID(const struct nvml_device *handle, char *uuid, unsigned length) {
    NVML_DEVICE(handle);
    char text[41];
    vr_sim_card_uuid_text(device, text);
    return (int)nvml_put(uuid, length, text);
}

NVML_EXPORT int nvmlDeviceGetSerial(const struct nvml_device *handle, char *serial, unsigned length);
int nvmlDeviceGetSerial(const struct nvml_device *handle, char *serial, unsigned length) {
    NVML_DEVICE(handle);
    char text[16];
    if (card_of(device)->kind != VR_SIM_DATA_CENTRE) return NVML_NOT_SUPPORTED;
    snprintf(text, sizeof text, "%013u", device);
    return (int)nvml_put(serial, length, text);
}

// --- numbers ----------------------------------------------------------------------------------------------------------------

// One number about a device that is known.
#define NUMBER(function, type, value)                                                                                                      \
    NVML_EXPORT int function(const struct nvml_device *handle, type *number);                                                              \
    int function(const struct nvml_device *handle, type *number) {                                                                         \
        NVML_DEVICE(handle);                                                                                                               \
        NVML_NEEDS(number != NULL);                                                                                                        \
        const struct vr_sim_card *card = card_of(device);                                                                                  \
        (void)card;                                                                                                                        \
        *number = (type)(value);                                                                                                           \
        return NVML_SUCCESS;                                                                                                               \
    }

enum { BRAND_GEFORCE = 5, BRAND_NVIDIA = 14, BRAND_TESLA = 2 };
enum { VOLTA = 5, TURING = 6, AMPERE = 7, ADA = 8, HOPPER = 9, BLACKWELL = 10, UNKNOWN_ARCHITECTURE = -1 };

static int brand_of(const struct vr_sim_card *card) {
    if (strncmp(card->name, "Tesla", 5) == 0) return BRAND_TESLA;
    return card->kind == VR_SIM_GEFORCE ? BRAND_GEFORCE : BRAND_NVIDIA;
}

static int architecture_of(const struct vr_sim_card *card) {
    static const struct {
        int capability, architecture;
    } first[] = {{100, BLACKWELL}, {90, HOPPER}, {89, ADA}, {80, AMPERE}, {75, TURING}, {70, VOLTA}};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (card->major * 10 + card->minor >= first[i].capability) return first[i].architecture;
    return UNKNOWN_ARCHITECTURE;
}

// CUDA cores of a multiprocessor, of the programming guide.
static int cores_of(const struct vr_sim_card *card) { return card->major == 7 || (card->major == 8 && card->minor == 0) ? 64 : 128; }

NUMBER(nvmlDeviceGetIndex, unsigned, device)
NUMBER(nvmlDeviceGetMinorNumber, unsigned, device)
NUMBER(nvmlDeviceGetBoardId, unsigned, VR_SIM_PCI_BUS(device) << 8)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
NUMBER(nvmlDeviceGetBrand, int, brand_of(card))
NUMBER(nvmlDeviceGetArchitecture, unsigned, architecture_of(card))
NUMBER(nvmlDeviceGetNumGpuCores, unsigned, card->multiprocessors *cores_of(card))
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, card->bus_bits)
NUMBER(nvmlDeviceGetPersistenceMode, int, 1)
NUMBER(nvmlDeviceGetComputeMode, int, 0)
NUMBER(nvmlDeviceGetDisplayMode, int, 0)
NUMBER(nvmlDeviceGetDisplayActive, int, 0)
NUMBER(nvmlDeviceGetVirtualizationMode, int, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
NUMBER(nvmlDeviceGetPowerUsage, unsigned, 0) // milliwatts: nothing is at work
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)

NVML_EXPORT int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *handle, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *handle, int *major, int *minor) {
    NVML_DEVICE(handle);
    NVML_NEEDS(major != NULL && minor != NULL);
    *major = card_of(device)->major;
    *minor = card_of(device)->minor;
    return NVML_SUCCESS;
}

// A card's link to the host is as fast as its generation of cards allows (data sheets: V100 and T4 have PCIe 3, 8.x 4, later ones 5) and
// always up.
static int put_link(const struct nvml_device *handle, unsigned *number, bool lanes) {
    enum { LANES = 16 };
    NVML_DEVICE(handle);
    NVML_NEEDS(number != NULL);
    const struct vr_sim_card *card = card_of(device);
    if (card->kind == VR_SIM_NO_CARD || card->kind == VR_SIM_INTEGRATED) return NVML_NOT_SUPPORTED;
    *number = lanes ? LANES : card->major == 7 ? 3 : card->major == 8 ? 4 : 5;
    return NVML_SUCCESS;
}

#define LINK(function, lanes)                                                                                                              \
    NVML_EXPORT int function(const struct nvml_device *handle, unsigned *number);                                                          \
    int function(const struct nvml_device *handle, unsigned *number) { return put_link(handle, number, lanes); }
LINK(nvmlDeviceGetCurrPcieLinkGeneration, false)
LINK(nvmlDeviceGetMaxPcieLinkGeneration, false)
LINK(nvmlDeviceGetGpuMaxPcieLinkGeneration, false)
LINK(nvmlDeviceGetCurrPcieLinkWidth, true)
LINK(nvmlDeviceGetMaxPcieLinkWidth, true)

// The highest clocks are the card's; a simulated device always runs at them.
static int put_clock(const struct nvml_device *handle, int kind, unsigned *mhz) {
    enum { GRAPHICS, MULTIPROCESSORS, MEMORY };
    NVML_DEVICE(handle);
    NVML_NEEDS(mhz != NULL && kind >= 0);
    const struct vr_sim_card *card = card_of(device);
    if (kind > MEMORY) return NVML_NOT_SUPPORTED;
    *mhz = (unsigned)(kind == MEMORY ? card->memory_clock_khz : card->clock_khz) / 1000;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetMaxClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz) { return put_clock(handle, kind, mhz); }
NVML_EXPORT int nvmlDeviceGetClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz) { return put_clock(handle, kind, mhz); }

// Of the room it stands in: nothing warms it.
#define ROOM_CELSIUS 25

NVML_EXPORT int nvmlDeviceGetTemperature(const struct nvml_device *handle, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(const struct nvml_device *handle, int sensor, unsigned *celsius) {
    NVML_DEVICE(handle);
    NVML_NEEDS(celsius != NULL && sensor == 0);
    *celsius = ROOM_CELSIUS;
    return NVML_SUCCESS;
}

// Nothing is computed, so nothing is busy.
NVML_EXPORT int nvmlDeviceGetUtilizationRates(const struct nvml_device *handle, unsigned percent[2]);
int nvmlDeviceGetUtilizationRates(const struct nvml_device *handle, unsigned percent[2]) {
    NVML_DEVICE(handle);
    NVML_NEEDS(percent != NULL);
    percent[0] = percent[1] = 0;
    return NVML_SUCCESS;
}

#define CODER(function)                                                                                                                    \
    NVML_EXPORT int function(const struct nvml_device *handle, unsigned *percent, unsigned *period_us);                                    \
    int function(const struct nvml_device *handle, unsigned *percent, unsigned *period_us) {                                               \
        NVML_DEVICE(handle);                                                                                                               \
        NVML_NEEDS(percent != NULL && period_us != NULL);                                                                                  \
        *percent = 0;                                                                                                                      \
        *period_us = 167000; /* as NVIDIA's says */                                                                                        \
        return NVML_SUCCESS;                                                                                                               \
    }
CODER(nvmlDeviceGetEncoderUtilization)
CODER(nvmlDeviceGetDecoderUtilization)

#define MODES(function, supported, now)                                                                                                    \
    NVML_EXPORT int function(const struct nvml_device *handle, int *current, int *pending);                                                \
    int function(const struct nvml_device *handle, int *current, int *pending) {                                                           \
        NVML_DEVICE(handle);                                                                                                               \
        NVML_NEEDS(current != NULL && pending != NULL);                                                                                    \
        const struct vr_sim_card *card = card_of(device);                                                                                  \
        if (!(supported)) return NVML_NOT_SUPPORTED;                                                                                       \
        *current = *pending = (now);                                                                                                       \
        return NVML_SUCCESS;                                                                                                               \
    }
MODES(nvmlDeviceGetEccMode, card->kind == VR_SIM_DATA_CENTRE, 1)
MODES(nvmlDeviceGetMigMode, card->kind == VR_SIM_DATA_CENTRE && (card->minor == 0 && card->major >= 8), 0)

// Counters and links by number. Each tells on its own whether it is there, and none is.
struct field_value {
    unsigned field, scope;
    long long at_us, took_us;
    int type, result;
    unsigned long long value;
};
NVML_EXPORT int nvmlDeviceGetFieldValues(const struct nvml_device *handle, int count, struct field_value *values);
int nvmlDeviceGetFieldValues(const struct nvml_device *handle, int count, struct field_value *values) {
    NVML_DEVICE(handle);
    (void)device;
    NVML_NEEDS(count > 0 && values != NULL);
    for (int i = 0; i < count; i++) values[i].result = NVML_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetTotalEccErrors(const struct nvml_device *handle, int kind, int counter, unsigned long long *count);
int nvmlDeviceGetTotalEccErrors(const struct nvml_device *handle, int kind, int counter, unsigned long long *count) {
    NVML_DEVICE(handle);
    NVML_NEEDS(count != NULL && kind >= 0 && kind < 2 && counter >= 0 && counter < 2);
    if (card_of(device)->kind != VR_SIM_DATA_CENTRE) return NVML_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(const struct nvml_device *handle, unsigned index, struct nvml_device **part);
int nvmlDeviceGetMigDeviceHandleByIndex(const struct nvml_device *handle, unsigned index, struct nvml_device **part) {
    NVML_DEVICE(handle);
    (void)index;
    NVML_NEEDS(part != NULL);
    return NVML_NOT_FOUND;
}

// --- where it is ------------------------------------------------------------------------------------------------------------

// nvmlPciInfo_t. The first two functions know less of it.
struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
};

static int put_pci(const struct nvml_device *handle, struct pci_info *info) {
    NVML_DEVICE(handle);
    NVML_NEEDS(info != NULL);
    *info = (struct pci_info){.bus = (unsigned)VR_SIM_PCI_BUS(device), .device_id = card_of(device)->pci_device << 16 | 0x10de};
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", info->bus);
    snprintf(info->id, sizeof info->id, "00000000:%02X:00.0", info->bus);
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetPciInfo_v3(const struct nvml_device *handle, struct pci_info *info);
int nvmlDeviceGetPciInfo_v3(const struct nvml_device *handle, struct pci_info *info) { return put_pci(handle, info); }

// Their structs end earlier: before the subsystem, and before the long text.
static int put_old_pci(const struct nvml_device *handle, void *info, size_t bytes) {
    struct pci_info whole;
    NVML_NEEDS(info != NULL);
    const int result = put_pci(handle, &whole);
    if (result == NVML_SUCCESS) memcpy(info, &whole, bytes);
    return result;
}

NVML_EXPORT int nvmlDeviceGetPciInfo(const struct nvml_device *handle, void *info);
int nvmlDeviceGetPciInfo(const struct nvml_device *handle, void *info) {
    return put_old_pci(handle, info, offsetof(struct pci_info, subsystem_id));
}
NVML_EXPORT int nvmlDeviceGetPciInfo_v2(const struct nvml_device *handle, void *info);
int nvmlDeviceGetPciInfo_v2(const struct nvml_device *handle, void *info) {
    return put_old_pci(handle, info, offsetof(struct pci_info, id));
}

NVML_EXPORT int nvmlDeviceOnSameBoard(const struct nvml_device *handle, const struct nvml_device *other, int *same);
int nvmlDeviceOnSameBoard(const struct nvml_device *handle, const struct nvml_device *other, int *same) {
    NVML_DEVICE(handle);
    uint32_t peer;
    NVML_NEEDS(same != NULL && nvml_device_of(other, &peer) == NVML_SUCCESS);
    *same = peer == device;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetTopologyCommonAncestor(const struct nvml_device *handle, const struct nvml_device *other, int *level);
int nvmlDeviceGetTopologyCommonAncestor(const struct nvml_device *handle, const struct nvml_device *other, int *level) {
    enum { INTERNAL = 0, HOST_BRIDGE = 30 };
    NVML_DEVICE(handle);
    uint32_t peer;
    NVML_NEEDS(level != NULL && nvml_device_of(other, &peer) == NVML_SUCCESS);
    *level = peer == device ? INTERNAL : HOST_BRIDGE;
    return NVML_SUCCESS;
}

// Reads and writes as the driver's peers; no links, and no atomics over them.
NVML_EXPORT int nvmlDeviceGetP2PStatus(const struct nvml_device *handle, const struct nvml_device *other, int what, int *status);
int nvmlDeviceGetP2PStatus(const struct nvml_device *handle, const struct nvml_device *other, int what, int *status) {
    enum { READ, WRITE, LINK, ATOMICS, BUS, COUNT };
    enum { CAN = 0, CANNOT = 5 };
    NVML_DEVICE(handle);
    uint32_t peer;
    NVML_NEEDS(status != NULL && what >= 0 && what < COUNT && nvml_device_of(other, &peer) == NVML_SUCCESS);
    const bool can = (what == READ || what == WRITE || what == BUS) && vr_sim_options_peers(&nvml_options, device, peer);
    *status = can ? CAN : CANNOT;
    return NVML_SUCCESS;
}

// --- fabric -----------------------------------------------------------------------------------------------------------------

// nvmlGpuFabricInfo_t, which the versioned ones have behind a word. State 0: the device is in none.
NVML_EXPORT int nvmlDeviceGetGpuFabricInfo(const struct nvml_device *handle, void *info);
int nvmlDeviceGetGpuFabricInfo(const struct nvml_device *handle, void *info) {
    enum { BYTES = 28 };
    NVML_DEVICE(handle);
    NVML_NEEDS(info != NULL);
    memset(info, 0, BYTES);
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetGpuFabricInfoV(const struct nvml_device *handle, unsigned *info);
int nvmlDeviceGetGpuFabricInfoV(const struct nvml_device *handle, unsigned *info) {
    enum { SECOND_BYTES = 36, THIRD_BYTES = 40 };
    NVML_DEVICE(handle);
    NVML_NEEDS(info != NULL);
    const unsigned version = info[0], bytes = version & 0xffffff;
    if (version != NVML_VERSION(SECOND_BYTES, 2) && version != NVML_VERSION(THIRD_BYTES, 3)) return NVML_VERSION_MISMATCH;
    memset(info + 1, 0, bytes - sizeof *info);
    return NVML_SUCCESS;
}
