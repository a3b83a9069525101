// sim_card.h: what is known of real devices, by name: the rows of devices.def, boards.def and architectures.def. No state; nothing here
// needs a lock.
#ifndef VR_SIM_DEVICE_SIM_CARD_H
#define VR_SIM_DEVICE_SIM_CARD_H

#include "base/base.h"
#include "vram/driver.h"
#include "vram/sim.h"

enum vr_sim_card_class {
    VR_SIM_NO_CARD,
    VR_SIM_DATA_CENTRE,
    VR_SIM_GRACE,
    VR_SIM_WORKSTATION,
    VR_SIM_GEFORCE,
    VR_SIM_INTEGRATED,
    VR_SIM_INSTINCT
};

// What NVML tells of a card. 0: not known, or the card has none of it.
struct vr_sim_board {
    const char *key;
    uint32_t bar_mib;                           // the window to its memory on the bus (BAR1)
    uint32_t least_watts, watts, most_watts;    // limits of power: the range, and the usual one
    uint32_t video_mhz, application_mhz, links; // NVLinks that lead to a switch or another card
};

struct vr_sim_card {
    const char *key;  // "h100"; "" of the device that is no card
    const char *name; // as the driver tells it
    int major, minor; // compute capability
    int multiprocessors;
    uint64_t total_bytes; // of cuMemGetInfo
    uint64_t nvml_mib;    // the total of NVML, which is more; 0: NVML does not tell it
    uint64_t context_mib; // that a context takes
    int l2_bytes, clock_khz, memory_clock_khz, bus_bits, copy_engines;
    enum vr_sim_card_class kind;
    uint32_t pci_device;   // the vendor is NVIDIA, 0x10de; 0: not on that bus
    const char *estimated; // letters of figures without a log: devices.def
};

struct vr_sim_architecture {
    int major, minor;
    int shared_bytes, shared_optin_bytes, reserved_bytes, blocks, threads, precision_ratio;
    int persisting; // sixteenths of L2
};

#define VR_SIM_PCI_BUS(device) ((int)(device) + 1) // of domain 0; device and function 0

// The card of a number from 1 up; the device that is no card for 0 and what is beyond the last. Never NULL.
const struct vr_sim_card *vr_sim_card_at(uint32_t number);
uint32_t vr_sim_card_count(void);
// Of these, how many are AMD's: the last ones.
uint32_t vr_sim_card_amd_count(void);
// Never NULL; all of it 0 for a card without a row.
const struct vr_sim_board *vr_sim_board_of(const struct vr_sim_card *card);
// Has its class error correction, and is it on? Can two of a kind reach each other's memory?
VR_INLINE bool vr_sim_card_has_ecc(const struct vr_sim_card *card) {
    return card->kind == VR_SIM_DATA_CENTRE || card->kind == VR_SIM_GRACE || card->kind == VR_SIM_INSTINCT;
}
VR_INLINE bool vr_sim_card_has_peers(const struct vr_sim_card *card) {
    return vr_sim_card_has_ecc(card) || card->kind == VR_SIM_WORKSTATION || card->kind == VR_SIM_NO_CARD;
}
// The number of the card whose key is the `length` bytes at `key`, or 0.
uint32_t vr_sim_card_find(const char *key, size_t length);
// That of the card's compute capability; never NULL.
const struct vr_sim_architecture *vr_sim_architecture_of(const struct vr_sim_card *card);
// The UUID of device number `device`, 16 bytes: the same in every process.
void vr_sim_card_uuid(uint32_t device, unsigned char *uuid);
// The same as NVIDIA's tools write it: "GPU-", 36 characters and the end.
void vr_sim_card_uuid_text(uint32_t device, char text[41]);

// ---- What the options of a simulator mean, for the simulator and for the stand-ins that tell of its devices. Needs no lock.

#define VR_SIM_MEMORY_MAX ((uint64_t)1 << 50) // of one device

// Puts the defaults where options say nothing. False for values out of range.
bool vr_sim_options_complete(struct vram_sim_options *options);
// Of completed options: what a device is, its memory, and whether two are peers.
const struct vr_sim_card *vr_sim_options_card(const struct vram_sim_options *options, uint32_t device);
uint64_t vr_sim_options_memory(const struct vram_sim_options *options, uint32_t device);
bool vr_sim_options_peers(const struct vram_sim_options *options, uint32_t device, uint32_t peer);
// vram_sim_parse() that keeps what the text does not name.
enum vram_status vr_sim_parse_into(const char *text, struct vram_sim_options *options, struct vram_error *error);

#endif
