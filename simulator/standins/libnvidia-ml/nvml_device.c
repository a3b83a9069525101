// Properties of a device, and its card's values from boards.def.
#include <stdio.h>
#include <string.h>

#include "nvml.h"

// ---- Properties of a device.

// --- names ------------------------------------------------------------------------------------------------------------------

NVML_EXPORT int nvmlDeviceGetName(const struct nvml_device *handle, char *name, unsigned length);
int nvmlDeviceGetName(const struct nvml_device *handle, char *name, unsigned length) {
    NVML_DEVICE(handle);
    char text[64];
    const struct vr_sim_card *card = nvml_card_of(device);
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
    if (!vr_sim_card_has_ecc(nvml_card_of(device))) return NVML_NOT_SUPPORTED;
    snprintf(text, sizeof text, "%013u", device);
    return (int)nvml_put(serial, length, text);
}

// --- numbers ----------------------------------------------------------------------------------------------------------------

enum { BRAND_GEFORCE = 5, BRAND_NVIDIA_RTX = 12, BRAND_NVIDIA = 14 };
enum { PASCAL = 4, VOLTA = 5, TURING = 6, AMPERE = 7, ADA = 8, HOPPER = 9, BLACKWELL = 10, UNKNOWN_ARCHITECTURE = -1 };

// Current drivers report no other brand for Tesla cards.
static int brand_of(const struct vr_sim_card *card) {
    return card->kind == VR_SIM_GEFORCE ? BRAND_GEFORCE : card->kind == VR_SIM_WORKSTATION ? BRAND_NVIDIA_RTX : BRAND_NVIDIA;
}

static int architecture_of(const struct vr_sim_card *card) {
    static const struct {
        int capability, architecture;
    } first[] = {{100, BLACKWELL}, {90, HOPPER}, {89, ADA}, {80, AMPERE}, {75, TURING}, {70, VOLTA}, {60, PASCAL}};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (card->major * 10 + card->minor >= first[i].capability) return first[i].architecture;
    return UNKNOWN_ARCHITECTURE;
}

// CUDA cores per multiprocessor, from the programming guide.
static int cores_of(const struct vr_sim_card *card) { return card->major <= 7 || (card->major == 8 && card->minor == 0) ? 64 : 128; }

// Returns whether the card supports MIG: data centre cards of x.0 since A100, and all of Blackwell.
static bool has_instances(const struct vr_sim_card *card) {
    return vr_sim_card_has_ecc(card) && card->major >= 8 && (card->minor == 0 || card->major >= 10);
}

NVML_NUMBER(nvmlDeviceGetIndex, unsigned, device)
NVML_NUMBER(nvmlDeviceGetMinorNumber, unsigned, device)
NVML_NUMBER(nvmlDeviceGetBoardId, unsigned, VR_SIM_PCI_BUS(device) << 8)
NVML_NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
NVML_NUMBER(nvmlDeviceGetBrand, int, brand_of(card))
NVML_NUMBER(nvmlDeviceGetArchitecture, unsigned, architecture_of(card))
NVML_NUMBER(nvmlDeviceGetNumGpuCores, unsigned, card->multiprocessors *cores_of(card))
NVML_NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, card->bus_bits)
NVML_NUMBER(nvmlDeviceGetPersistenceMode, int, 1)
NVML_NUMBER(nvmlDeviceGetComputeMode, int, 0)
NVML_NUMBER(nvmlDeviceGetDisplayMode, int, 0)
NVML_NUMBER(nvmlDeviceGetDisplayActive, int, 0)
NVML_NUMBER(nvmlDeviceGetVirtualizationMode, int, 0)
NVML_NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
NVML_NUMBER(nvmlDeviceGetPowerUsage, unsigned, 0) // milliwatts; the device is idle
NVML_NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)

NVML_EXPORT int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *handle, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(const struct nvml_device *handle, int *major, int *minor) {
    NVML_DEVICE(handle);
    NVML_NEEDS(major != NULL && minor != NULL);
    *major = nvml_card_of(device)->major;
    *minor = nvml_card_of(device)->minor;
    return NVML_SUCCESS;
}

// Gets the PCIe generation or lanes of a card's link, which is always at full speed. Generations are from data sheets: V100 and T4 have
// PCIe 3, 8.x has 4, later ones 5, GB200 and compute capability 10.3 have 6.
static int put_link(const struct nvml_device *handle, unsigned *number, bool lanes) {
    enum { LANES = 16 };
    NVML_DEVICE(handle);
    NVML_NEEDS(number != NULL);
    const struct vr_sim_card *card = nvml_card_of(device);
    if (card->kind == VR_SIM_NO_CARD || card->kind == VR_SIM_INTEGRATED) return NVML_NOT_SUPPORTED;
    const bool has_six = card->major == 10 && (card->kind == VR_SIM_GRACE || card->minor == 3);
    *number = lanes ? LANES : card->major <= 7 ? 3 : card->major == 8 ? 4 : has_six ? 6 : 5;
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

// Room temperature: the device is idle.
#define ROOM_CELSIUS 25

NVML_EXPORT int nvmlDeviceGetTemperature(const struct nvml_device *handle, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(const struct nvml_device *handle, int sensor, unsigned *celsius) {
    NVML_DEVICE(handle);
    NVML_NEEDS(celsius != NULL && sensor == 0);
    *celsius = ROOM_CELSIUS;
    return NVML_SUCCESS;
}

// Reports 0%, because kernels do not run.
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
        const struct vr_sim_card *card = nvml_card_of(device);                                                                             \
        if (!(supported)) return NVML_NOT_SUPPORTED;                                                                                       \
        *current = *pending = (now);                                                                                                       \
        return NVML_SUCCESS;                                                                                                               \
    }
MODES(nvmlDeviceGetEccMode, vr_sim_card_has_ecc(card), 1)
MODES(nvmlDeviceGetMigMode, has_instances(card), 0)

NVML_EXPORT int nvmlDeviceGetTotalEccErrors(const struct nvml_device *handle, int kind, int counter, unsigned long long *count);
int nvmlDeviceGetTotalEccErrors(const struct nvml_device *handle, int kind, int counter, unsigned long long *count) {
    NVML_DEVICE(handle);
    NVML_NEEDS(count != NULL && kind >= 0 && kind < 2 && counter >= 0 && counter < 2);
    if (!vr_sim_card_has_ecc(nvml_card_of(device))) return NVML_NOT_SUPPORTED;
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

// --- location -------------------------------------------------------------------------------------------------------

void nvml_put_pci(struct nvml_pci_info *info, unsigned bus, unsigned pci_device) {
    *info = (struct nvml_pci_info){.bus = bus, .device_id = pci_device << 16 | 0x10de};
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", bus);
    snprintf(info->id, sizeof info->id, "00000000:%02X:00.0", bus);
}

static int put_pci(const struct nvml_device *handle, struct nvml_pci_info *info) {
    NVML_DEVICE(handle);
    NVML_NEEDS(info != NULL);
    nvml_put_pci(info, (unsigned)VR_SIM_PCI_BUS(device), nvml_card_of(device)->pci_device);
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetPciInfo_v3(const struct nvml_device *handle, struct nvml_pci_info *info);
int nvmlDeviceGetPciInfo_v3(const struct nvml_device *handle, struct nvml_pci_info *info) { return put_pci(handle, info); }

// Fills in the older structures, which end before the subsystem or before the long text.
static int put_old_pci(const struct nvml_device *handle, void *info, size_t bytes) {
    struct nvml_pci_info whole;
    NVML_NEEDS(info != NULL);
    const int result = put_pci(handle, &whole);
    if (result == NVML_SUCCESS) memcpy(info, &whole, bytes);
    return result;
}

NVML_EXPORT int nvmlDeviceGetPciInfo(const struct nvml_device *handle, void *info);
int nvmlDeviceGetPciInfo(const struct nvml_device *handle, void *info) {
    return put_old_pci(handle, info, offsetof(struct nvml_pci_info, subsystem_id));
}
NVML_EXPORT int nvmlDeviceGetPciInfo_v2(const struct nvml_device *handle, void *info);
int nvmlDeviceGetPciInfo_v2(const struct nvml_device *handle, void *info) {
    return put_old_pci(handle, info, offsetof(struct nvml_pci_info, id));
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

// --- fabric -----------------------------------------------------------------------------------------------------------------

// nvmlGpuFabricInfo_t; versioned structures have it after one word. State 0: not part of a fabric.
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

// ---- Clocks, power limits and BAR1: the values of boards.def.

static const struct vr_sim_board *board_of(uint32_t device) { return vr_sim_board_of(nvml_card_of(device)); }

// --- clocks -----------------------------------------------------------------------------------------------------------------

enum clock_kind { GRAPHICS, MULTIPROCESSORS, MEMORY, VIDEO, CLOCK_KINDS };

// A simulated device always runs at the card's highest clocks.
static int put_clock(const struct nvml_device *handle, int kind, unsigned *mhz) {
    NVML_DEVICE(handle);
    NVML_NEEDS(mhz != NULL && kind >= 0 && kind < CLOCK_KINDS);
    const struct vr_sim_card *card = nvml_card_of(device);
    if (kind == VIDEO && board_of(device)->video_mhz == 0) return NVML_NOT_SUPPORTED;
    *mhz = kind == VIDEO ? board_of(device)->video_mhz : (unsigned)(kind == MEMORY ? card->memory_clock_khz : card->clock_khz) / 1000;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetMaxClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz) { return put_clock(handle, kind, mhz); }
NVML_EXPORT int nvmlDeviceGetClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetClockInfo(const struct nvml_device *handle, int kind, unsigned *mhz) { return put_clock(handle, kind, mhz); }

// The highest clock that a user may set.
NVML_EXPORT int nvmlDeviceGetMaxCustomerBoostClock(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetMaxCustomerBoostClock(const struct nvml_device *handle, int kind, unsigned *mhz) {
    return kind == GRAPHICS || kind == MULTIPROCESSORS ? put_clock(handle, kind, mhz) : NVML_NOT_SUPPORTED;
}

// The default application clocks. Drivers since 595 do not report them.
static int put_application_clock(const struct nvml_device *handle, int kind, unsigned *mhz) {
    enum { FIRST_WITHOUT = 595 };
    NVML_DEVICE(handle);
    NVML_NEEDS(mhz != NULL && kind >= 0 && kind < CLOCK_KINDS);
    if (nvml_driver_branch() >= FIRST_WITHOUT) return NVML_DEPRECATED;
    if (kind == VIDEO || board_of(device)->application_mhz == 0) return NVML_NOT_SUPPORTED;
    *mhz = kind == MEMORY ? (unsigned)nvml_card_of(device)->memory_clock_khz / 1000 : board_of(device)->application_mhz;
    return NVML_SUCCESS;
}

NVML_EXPORT int nvmlDeviceGetApplicationsClock(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetApplicationsClock(const struct nvml_device *handle, int kind, unsigned *mhz) {
    return put_application_clock(handle, kind, mhz);
}
NVML_EXPORT int nvmlDeviceGetDefaultApplicationsClock(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetDefaultApplicationsClock(const struct nvml_device *handle, int kind, unsigned *mhz) {
    return put_application_clock(handle, kind, mhz);
}

NVML_EXPORT int nvmlDeviceGetClock(const struct nvml_device *handle, int kind, int id, unsigned *mhz);
int nvmlDeviceGetClock(const struct nvml_device *handle, int kind, int id, unsigned *mhz) {
    enum { CURRENT, APPLICATION, APPLICATION_DEFAULT, CUSTOMER_BOOST };
    switch (id) {
    case CURRENT: return put_clock(handle, kind, mhz);
    case APPLICATION:
    case APPLICATION_DEFAULT: return put_application_clock(handle, kind, mhz);
    case CUSTOMER_BOOST: return nvmlDeviceGetMaxCustomerBoostClock(handle, kind, mhz);
    default: return NVML_INVALID_ARGUMENT;
    }
}

// Reasons for limited clocks, one bit each: the device is idle. The supported reasons are those that a driver can report.
enum { EVENT_GPU_IDLE = 0x1, EVENTS = 0x1ff };
NVML_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, EVENT_GPU_IDLE)
NVML_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, EVENT_GPU_IDLE)
NVML_NUMBER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, EVENTS)
NVML_NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, EVENTS)

// P0, the highest performance state.
NVML_NUMBER(nvmlDeviceGetPerformanceState, int, 0)
NVML_NUMBER(nvmlDeviceGetPowerState, int, 0)

// --- power ------------------------------------------------------------------------------------------------------------------

enum { MILLI = 1000 };

static int put_limit(const struct nvml_device *handle, unsigned *milliwatts) {
    NVML_DEVICE(handle);
    NVML_NEEDS(milliwatts != NULL);
    if (board_of(device)->watts == 0) return NVML_NOT_SUPPORTED;
    *milliwatts = board_of(device)->watts * MILLI;
    return NVML_SUCCESS;
}

// All limits equal the usual one.
#define LIMIT(function)                                                                                                                    \
    NVML_EXPORT int function(const struct nvml_device *handle, unsigned *milliwatts);                                                      \
    int function(const struct nvml_device *handle, unsigned *milliwatts) { return put_limit(handle, milliwatts); }
LIMIT(nvmlDeviceGetPowerManagementLimit)
LIMIT(nvmlDeviceGetPowerManagementDefaultLimit)
LIMIT(nvmlDeviceGetEnforcedPowerLimit)

NVML_EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(const struct nvml_device *handle, unsigned *least, unsigned *most);
int nvmlDeviceGetPowerManagementLimitConstraints(const struct nvml_device *handle, unsigned *least, unsigned *most) {
    NVML_DEVICE(handle);
    NVML_NEEDS(least != NULL && most != NULL);
    if (board_of(device)->most_watts == 0) return NVML_NOT_SUPPORTED;
    *least = board_of(device)->least_watts * MILLI;
    *most = board_of(device)->most_watts * MILLI;
    return NVML_SUCCESS;
}

NVML_NUMBER(nvmlDeviceGetPowerManagementMode, int, 1)
NVML_NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, 0) // millijoules since the driver was loaded

// --- the bus ----------------------------------------------------------------------------------------------------------------

// Total, free and used. NVIDIA's driver maps up to 2 MiB for itself; nothing is mapped here.
NVML_EXPORT int nvmlDeviceGetBAR1MemoryInfo(const struct nvml_device *handle, uint64_t info[3]);
int nvmlDeviceGetBAR1MemoryInfo(const struct nvml_device *handle, uint64_t info[3]) {
    NVML_DEVICE(handle);
    NVML_NEEDS(info != NULL);
    if (board_of(device)->bar_mib == 0) return NVML_NOT_SUPPORTED;
    info[0] = info[1] = board_of(device)->bar_mib * VR_MIB;
    info[2] = 0;
    return NVML_SUCCESS;
}

NVML_NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, 0)

NVML_EXPORT int nvmlDeviceGetPcieThroughput(const struct nvml_device *handle, int counter, unsigned *kilobytes);
int nvmlDeviceGetPcieThroughput(const struct nvml_device *handle, int counter, unsigned *kilobytes) {
    enum { SENT, RECEIVED, COUNTERS };
    NVML_DEVICE(handle);
    (void)device;
    NVML_NEEDS(kilobytes != NULL && counter >= 0 && counter < COUNTERS);
    *kilobytes = 0; // per second
    return NVML_SUCCESS;
}
