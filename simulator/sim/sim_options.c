// sim_options.c: what the options of a simulator mean where they say nothing.
#include "sim/sim_options.h"

#include "sim/device/sim_device.h"
#include "sim/memory/sim_memory.h"
#include "vram/sim.h"

#define KERNEL_NS_MAX ((uint64_t)3600 * 1000000000) // an hour

static uint64_t or_default(uint64_t value, uint64_t standard) { return value == 0 ? standard : value; }

static void fill_in(struct vram_sim_options *filled) {
    struct vram_sim_options options = *filled;
    if (options.bytes != VRAM_SIM_BYTES_BACKED) options.backed = options.bytes == VRAM_SIM_BYTES_ALL;
    if (options.device_count == 0) options.device_count = options.model_count == 0 ? 1 : options.model_count;
    const bool driver = options.addresses == VRAM_SIM_DRIVER, windows = options.addresses == VRAM_SIM_WINDOWS;
    // A TiB or two below the top of what Linux gives programs on x86-64, where their own mappings lie.
    options.alloc_base = or_default(options.alloc_base, driver ? 0x7d0000000000u : windows ? 0x502000000u : 0x300000000000u);
    options.alloc_alignment = or_default(options.alloc_alignment, 2 * VR_MIB);
    options.alloc_small_alignment = or_default(options.alloc_small_alignment, 512);
    options.reserve_base = or_default(options.reserve_base, driver || windows ? 0x302000000u : 0x400000000000u);
    options.reserve_alignment = or_default(options.reserve_alignment, driver || windows ? 32 * VR_MIB : VR_GIB);
    if (options.driver_version == 0) options.driver_version = VR_SIM_DRIVER_VERSION;
    *filled = options;
}

static bool are_valid(const struct vram_sim_options *options) {
    bool enums = (unsigned)options->profile <= VRAM_SIM_FREE && (unsigned)options->addresses <= VRAM_SIM_WINDOWS &&
                 (unsigned)options->bytes <= VRAM_SIM_BYTES_NONE;
    bool sizes =
        options->kernel_ns <= KERNEL_NS_MAX && options->device_count <= VR_SIM_MAX_DEVICES && options->memory_bytes <= VR_SIM_MEMORY_MAX;
    if (options->model_count > VRAM_SIM_MOST_DEVICES) return false;
    for (uint32_t i = 0; i < options->model_count; i++)
        if (options->models[i] > vr_sim_card_count()) return false;
    uint64_t listed = 0;
    for (uint32_t i = 0; i < options->visible_count; i++) {
        if (options->visible_count > options->device_count || options->visible[i] >= options->device_count) return false;
        if ((listed >> options->visible[i] & 1) != 0) return false;
        listed |= (uint64_t)1 << options->visible[i];
    }
    bool bases = options->alloc_base < VR_SIM_LIMIT && options->reserve_base < VR_SIM_LIMIT;
    bool units = vr_is_power_of_2(options->alloc_alignment) && vr_is_power_of_2(options->alloc_small_alignment) &&
                 vr_is_power_of_2(options->reserve_alignment) && options->alloc_alignment < VR_SIM_LIMIT &&
                 options->alloc_small_alignment < VR_SIM_LIMIT && options->reserve_alignment < VR_SIM_LIMIT &&
                 options->reserve_alignment >= VR_SIM_GRANULARITY;
    return enums && sizes && bases && units;
}

bool vr_sim_options_complete(struct vram_sim_options *options) {
    fill_in(options);
    return are_valid(options);
}

const struct vr_sim_card *vr_sim_options_card(const struct vram_sim_options *options, uint32_t device) {
    return vr_sim_card_at(options->model_count == 0 ? 0 : options->models[device % options->model_count]);
}

uint64_t vr_sim_options_memory(const struct vram_sim_options *options, uint32_t device) {
    return or_default(options->memory_bytes, vr_sim_options_card(options, device)->total_bytes);
}

bool vr_sim_options_peers(const struct vram_sim_options *options, uint32_t device, uint32_t peer) {
    const struct vr_sim_card *card = vr_sim_options_card(options, device);
    return device != peer && !options->no_peers && vr_sim_card_has_peers(card) && card == vr_sim_options_card(options, peer);
}
