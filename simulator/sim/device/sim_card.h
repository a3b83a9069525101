// sim_card.h: facts about real devices by name, from the rows of devices.def, boards.def and architectures.def. Stateless; no function
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

// A card's values that only NVML reports. 0: unknown or not applicable.
struct vr_sim_board {
    const char *key;
    uint32_t bar_mib;                           // size of BAR1, the window to the card's memory on the bus
    uint32_t least_watts, watts, most_watts;    // range of the power limit, and the usual limit
    uint32_t video_mhz, application_mhz, links; // links: NVLinks to a switch or another card
};

struct vr_sim_card {
    const char *key;  // "h100"; "" for the generic device
    const char *name; // as the driver reports it
    int major, minor; // compute capability
    int multiprocessors;
    uint64_t total_bytes; // total from cuMemGetInfo
    uint64_t nvml_mib;    // total from NVML, which is larger; 0: NVML does not report it
    uint64_t context_mib; // memory that a context takes
    int l2_bytes, clock_khz, memory_clock_khz, bus_bits, copy_engines;
    enum vr_sim_card_class kind;
    uint32_t pci_device;   // of vendor NVIDIA, 0x10de; 0: not on the PCI bus
    const char *estimated; // letters of the figures without a log; see devices.def
};

struct vr_sim_architecture {
    int major, minor;
    int shared_bytes, shared_optin_bytes, reserved_bytes, blocks, threads, precision_ratio;
    int persisting; // sixteenths of L2 that can persist
};

#define VR_SIM_PCI_BUS(device) ((int)(device) + 1) // the PCI domain, device and function are 0

// Returns card `number`, counted from 1; the generic device for 0 and past the last. Never NULL.
const struct vr_sim_card *vr_sim_card_at(uint32_t number);
uint32_t vr_sim_card_count(void);
// Returns the number of AMD cards, which come last.
uint32_t vr_sim_card_amd_count(void);
// Returns the card's board, all zero for a card without a row. Never NULL.
const struct vr_sim_board *vr_sim_board_of(const struct vr_sim_card *card);
// Return whether ECC is on for cards of this class, and whether two of the same card can access each other's memory.
VR_INLINE bool vr_sim_card_has_ecc(const struct vr_sim_card *card) {
    return card->kind == VR_SIM_DATA_CENTRE || card->kind == VR_SIM_GRACE || card->kind == VR_SIM_INSTINCT;
}
VR_INLINE bool vr_sim_card_has_peers(const struct vr_sim_card *card) {
    return vr_sim_card_has_ecc(card) || card->kind == VR_SIM_WORKSTATION || card->kind == VR_SIM_NO_CARD;
}
// Returns the number of the card with this key (`length` bytes, not NUL-terminated), or 0.
uint32_t vr_sim_card_find(const char *key, size_t length);
// Returns the architecture of the card's compute capability. Never NULL.
const struct vr_sim_architecture *vr_sim_architecture_of(const struct vr_sim_card *card);
// Writes the 16-byte UUID of a device, which is the same in every process.
void vr_sim_card_uuid(uint32_t device, unsigned char *uuid);
// Writes the UUID as NVIDIA's tools do: "GPU-", 36 characters and a NUL.
void vr_sim_card_uuid_text(uint32_t device, char text[41]);

// ---- Meaning of a simulator's options, shared by the simulator and the stand-ins that report its devices. Needs no lock.

#define VR_SIM_MEMORY_MAX ((uint64_t)1 << 50) // per device

// Fills in defaults for unset options. Returns false for a value out of range.
bool vr_sim_options_complete(struct vram_sim_options *options);
// These three take completed options: a device's card, its memory in bytes, and whether two devices are peers.
const struct vr_sim_card *vr_sim_options_card(const struct vram_sim_options *options, uint32_t device);
uint64_t vr_sim_options_memory(const struct vram_sim_options *options, uint32_t device);
bool vr_sim_options_peers(const struct vram_sim_options *options, uint32_t device, uint32_t peer);
// Like vram_sim_parse(), but keeps options that the text does not name.
enum vram_status vr_sim_parse_into(const char *text, struct vram_sim_options *options, struct vram_error *error);

#endif
