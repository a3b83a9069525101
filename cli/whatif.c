#include "whatif.h"
#include "vram/sim.h"

const char *const whatif_starts[] = {"cold", "recorded", NULL};
const char *const whatif_profiles[] = {"cheap", "dear", NULL};

enum vram_whatif_start whatif_start(const struct whatif_settings *settings) {
    static const enum vram_whatif_start values[] = {VRAM_WHATIF_COLD, VRAM_WHATIF_RECORDED};
    return values[settings->start];
}

enum vram_sim_profile whatif_profile(const struct whatif_settings *settings) {
    static const enum vram_sim_profile values[] = {VRAM_SIM_CHEAP, VRAM_SIM_DEAR};
    return values[settings->profile];
}
