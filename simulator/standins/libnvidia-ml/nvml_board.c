// nvml_board.c: clocks, limits of power and the window on the bus: what boards.def knows of a card.
#include "nvml.h"

static const struct vr_sim_board *board_of(uint32_t device) { return vr_sim_board_of(nvml_card_of(device)); }

// --- clocks -----------------------------------------------------------------------------------------------------------------

enum clock_kind { GRAPHICS, MULTIPROCESSORS, MEMORY, VIDEO, CLOCK_KINDS };

// The highest clocks are the card's; a simulated device always runs at them.
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

// The highest that a user may ask for.
NVML_EXPORT int nvmlDeviceGetMaxCustomerBoostClock(const struct nvml_device *handle, int kind, unsigned *mhz);
int nvmlDeviceGetMaxCustomerBoostClock(const struct nvml_device *handle, int kind, unsigned *mhz) {
    return kind == GRAPHICS || kind == MULTIPROCESSORS ? put_clock(handle, kind, mhz) : NVML_NOT_SUPPORTED;
}

// Those that the card runs applications at, unless told otherwise. Drivers from 595 on do not tell.
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

// Why the clocks are not higher: one bit each. Nothing runs, and that is the reason; the others are those that a driver can give.
enum { EVENT_GPU_IDLE = 0x1, EVENTS = 0x1ff };
NVML_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, EVENT_GPU_IDLE)
NVML_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, EVENT_GPU_IDLE)
NVML_NUMBER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, EVENTS)
NVML_NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, EVENTS)

// P0, the highest.
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

// All limits are the usual one.
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

// Total, free and used. NVIDIA's driver maps 1 or 2 MiB of it for itself, or none: nothing is mapped here.
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
    *kilobytes = 0; // a second
    return NVML_SUCCESS;
}
