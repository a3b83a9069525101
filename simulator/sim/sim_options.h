// sim_options.h: what the options of a simulator mean, for the simulator and for the stand-ins that tell of its devices. Needs no lock.
#ifndef VR_SIM_SIM_OPTIONS_H
#define VR_SIM_SIM_OPTIONS_H

#include "sim/device/sim_card.h"
#include "vram/driver.h"
#include "vram/sim.h"

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
