// nvml.h: NVML for the simulated devices: their number and properties (from the variable VRAM_SIM), and their memory use by processes of
// the session (common/session.h). A simulated device is idle: highest clocks, no power draw, room temperature. Missing features (fans,
// links, power limits) are "not supported", as on cards without them.
//
// Numbers and layouts follow NVML's ABI and are declared here. Any thread may call any function.
#ifndef VR_STANDINS_LIBNVIDIA_ML_NVML_H
#define VR_STANDINS_LIBNVIDIA_ML_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/device/sim_card.h"
#include "vram/sim.h"

#define NVML_EXPORT __attribute__((visibility("default")))

enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_VERSION_MISMATCH = 25, // of a structure
    NVML_DEPRECATED = 26,
};

// A handle is the address of one of these; its position in the array is the device.
struct nvml_device;

// Completed options of the simulated driver. Valid after nvmlInit.
extern struct vram_sim_options nvml_options;

// Returns UNINITIALIZED unless nvmlInit was called more often than nvmlShutdown.
enum nvml_result nvml_ready(void);
// Like nvml_ready(), and also gets the device of a handle.
enum nvml_result nvml_device_of(const struct nvml_device *handle, uint32_t *device);
struct nvml_device *nvml_handle_of(uint32_t device);
const struct vr_sim_card *nvml_card_of(uint32_t device);
// The first number of the driver's version.
unsigned nvml_driver_branch(void);
// Copies a text with its NUL to the caller. INSUFFICIENT_SIZE.
enum nvml_result nvml_put(char *into, unsigned capacity, const char *text);
// The version word at the start of a structure of `bytes` bytes.
#define NVML_VERSION(bytes, version) ((unsigned)((bytes) | (unsigned)(version) << 24))

// Starts a function about a device: checks the handle and defines `device`.
#define NVML_DEVICE(handle)                                                                                                                \
    uint32_t device;                                                                                                                       \
    const enum nvml_result known = nvml_device_of((handle), &device);                                                                      \
    if (known != NVML_SUCCESS) return (int)known
#define NVML_NEEDS(condition)                                                                                                              \
    if (!(condition)) return NVML_INVALID_ARGUMENT
// Defines a function that returns one number about a device.
#define NVML_NUMBER(function, type, value)                                                                                                 \
    NVML_EXPORT int function(const struct nvml_device *handle, type *number);                                                              \
    int function(const struct nvml_device *handle, type *number) {                                                                         \
        NVML_DEVICE(handle);                                                                                                               \
        NVML_NEEDS(number != NULL);                                                                                                        \
        const struct vr_sim_card *card = nvml_card_of(device);                                                                             \
        (void)card;                                                                                                                        \
        *number = (type)(value);                                                                                                           \
        return NVML_SUCCESS;                                                                                                               \
    }

// nvmlPciInfo_t. The first two functions fill in less of it.
struct nvml_pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
};
// Fills in the PCI info of an NVIDIA device on a bus.
void nvml_put_pci(struct nvml_pci_info *info, unsigned bus, unsigned pci_device);

#endif
