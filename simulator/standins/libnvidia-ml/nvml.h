// nvml.h: NVML for the simulated devices: how many there are and what they are (the variable VRAM_SIM), and what the processes of the
// session have on them (common/session.h). A simulated device rests: at its highest clocks, no power, the temperature of a room. What it
// does not have (fans, links, limits of power) is "not supported", as it is on cards without it.
//
// Numbers and layouts are NVML's binary interface, declared by ourselves. Calls are safe from any thread.
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
    NVML_VERSION_MISMATCH = 25, // of a struct
    NVML_DEPRECATED = 26,
};

// A handle: the address of one of these. Which device it is follows from its place.
struct nvml_device;

// The options of the simulated driver, completed. Good after nvmlInit.
extern struct vram_sim_options nvml_options;

// UNINITIALIZED unless some nvmlInit is without its nvmlShutdown.
enum nvml_result nvml_ready(void);
// The same, and the device of a handle.
enum nvml_result nvml_device_of(const struct nvml_device *handle, uint32_t *device);
struct nvml_device *nvml_handle_of(uint32_t device);
const struct vr_sim_card *nvml_card_of(uint32_t device);
// The first number of the driver's version.
unsigned nvml_driver_branch(void);
// Puts a text with its end into the caller's; INSUFFICIENT_SIZE.
enum nvml_result nvml_put(char *into, unsigned capacity, const char *text);
// The version word that a struct of `bytes` bytes starts with.
#define NVML_VERSION(bytes, version) ((unsigned)((bytes) | (unsigned)(version) << 24))

// Begins a function about a device: `device` is its number from here on.
#define NVML_DEVICE(handle)                                                                                                                \
    uint32_t device;                                                                                                                       \
    const enum nvml_result known = nvml_device_of((handle), &device);                                                                      \
    if (known != NVML_SUCCESS) return (int)known
#define NVML_NEEDS(condition)                                                                                                              \
    if (!(condition)) return NVML_INVALID_ARGUMENT
// One number about a device that is known.
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

// nvmlPciInfo_t. The first two functions know less of it.
struct nvml_pci_info {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
};
// That of a device of the list of PCI ids on a bus.
void nvml_put_pci(struct nvml_pci_info *info, unsigned bus, unsigned pci_device);

#endif
