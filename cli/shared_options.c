#include "shared_options.h"

#include <stdlib.h>
#include <string.h>

#include "ui.h"
#include "vram/sim.h"

enum { MOST_GROUPINGS = 63 };

// Parses a whole number of at least `least`, with nothing after it.
static bool whole_number(const char *text, long long least, int64_t *number) {
    char *end;
    const long long read = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || read < least) return false;
    *number = read;
    return true;
}

static bool known_grouping(const char *word) {
    const char *words[MOST_GROUPINGS + 1] = {NULL};
    size_t count = 0;
    for (; count < MOST_GROUPINGS && vram_profile_grouping(count) != NULL; count++) words[count] = vram_profile_grouping(count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) return true;
    }
    ui_none_of("by", word, words);
    return false;
}

bool moment_options(const struct moment_settings *settings, struct vram_profile_options *options) {
    *options = (struct vram_profile_options){.device = -1, .active = settings->active, .expression = settings->regex};
    options->by = settings->by == NULL && settings->regex != NULL ? "regex" : settings->by;
    options->top = settings->top > 100000 ? 100000 : (unsigned)settings->top;
    if (settings->device != NULL && !whole_number(settings->device, 0, &options->device)) {
        ui_say("vram: --device: '%s' is not a device number", settings->device);
        return false;
    }
    if (options->by != NULL && !known_grouping(options->by)) return false;
    if (settings->at == NULL || strcmp(settings->at, "peak") == 0) return true;
    options->moment = strcmp(settings->at, "end") == 0 ? VRAM_PROFILE_END : VRAM_PROFILE_EVENT;
    if (options->moment == VRAM_PROFILE_END || whole_number(settings->at, -1, &options->event)) return true;
    ui_say("vram: --at: '%s' is not peak, end or an event number", settings->at);
    return false;
}

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
