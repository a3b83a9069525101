#include "sim/device/sim_card.h"

#include <stdio.h>

// Card 0 is the generic device: compute capability 8.0, and one multiprocessor so that nothing scales with their number.
static const struct vr_sim_card cards[] = {
    {.key = "",
     .name = "vram simulated device",
     .major = 8,
     .multiprocessors = 1,
     .total_bytes = 80 * VR_GIB,
     .nvml_mib = 80 * 1024,
     .l2_bytes = 4 * (int)VR_MIB,
     .clock_khz = 1000000,
     .memory_clock_khz = 1000000,
     .bus_bits = 256,
     .copy_engines = 2,
     .kind = VR_SIM_NO_CARD,
     .estimated = ""},
#define X(key, name, major, minor, multiprocessors, total, nvml, context, l2, clock, memory_clock, bus, engines, class, pci, estimated)    \
    {#key, name,  major,        minor, multiprocessors, total,          nvml, context,                                                     \
     l2,   clock, memory_clock, bus,   engines,         VR_SIM_##class, pci,  estimated},
#include "sim/device/devices.def"
#undef X
};

static const struct vr_sim_board boards[] = {
    {.key = ""},
#define B(key, bar, least, usual, most, video, application, links) {#key, bar, least, usual, most, video, application, links},
#include "sim/device/boards.def"
#undef B
};

static const struct vr_sim_architecture architectures[] = {
#define X(major, minor, shared, optin, reserved, blocks, threads, ratio, persisting)                                                       \
    {major, minor, shared, optin, reserved, blocks, threads, ratio, persisting},
#include "sim/device/architectures.def"
#undef X
};

const struct vr_sim_card *vr_sim_card_at(uint32_t number) { return &cards[number < VR_COUNT_OF(cards) ? number : 0]; }

uint32_t vr_sim_card_count(void) { return VR_COUNT_OF(cards) - 1; }

uint32_t vr_sim_card_amd_count(void) {
    uint32_t count = 0;
    while (cards[VR_COUNT_OF(cards) - 1 - count].kind == VR_SIM_INSTINCT) count++;
    return count;
}

const struct vr_sim_board *vr_sim_board_of(const struct vr_sim_card *card) {
    for (size_t i = 1; i < VR_COUNT_OF(boards); i++)
        if (strcmp(boards[i].key, card->key) == 0) return &boards[i];
    return &boards[0];
}

uint32_t vr_sim_card_find(const char *key, size_t length) {
    for (uint32_t i = 1; i < VR_COUNT_OF(cards); i++)
        if (strlen(cards[i].key) == length && memcmp(cards[i].key, key, length) == 0) return i;
    return 0;
}

const struct vr_sim_architecture *vr_sim_architecture_of(const struct vr_sim_card *card) {
    size_t at = 0;
    while (at + 1 < VR_COUNT_OF(architectures) && (architectures[at].major != card->major || architectures[at].minor != card->minor)) at++;
    return &architectures[at];
}

void vr_sim_card_uuid(uint32_t device, unsigned char *uuid) {
    static const char name[] = "vram simulated "; // 15 characters
    memcpy(uuid, name, sizeof name - 1);
    uuid[sizeof name - 1] = (unsigned char)device;
}

void vr_sim_card_uuid_text(uint32_t device, char text[41]) {
    unsigned char uuid[16];
    vr_sim_card_uuid(device, uuid);
    char *at = text + snprintf(text, 41, "GPU-");
    for (size_t i = 0; i < sizeof uuid; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
        at += snprintf(at, 3, "%02x", uuid[i]);
    }
}
