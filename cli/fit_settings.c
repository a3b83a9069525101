#include "fit_settings.h"

#include <stdio.h>
#include <string.h>

#include "vram/recording.h"
#include "vram/replay.h"

#define MOST_EVENTS 400000 // a search replays them a hundred times

// By memory, the one below the smallest that it fits.
static const struct fit_card *next_smaller(const struct fit_verdict *verdict) {
    const struct fit_card *card = NULL;
    for (size_t i = 0; i < verdict->card_count && &verdict->cards[i] != verdict->smallest_card; i++) card = &verdict->cards[i];
    return card;
}

static void search(const struct fit_verdict *verdict, struct fit_setting *setting) {
    const struct vram_recording *recording = verdict->recording;
    const struct vram_tune_options options = {.memory_bytes = setting->card->room_bytes};
    struct vram_tune_result *result;
    if (vram_tune(&recording, 1, &options, &result, NULL) != VRAM_OK) return;
    const struct vram_tune_setting *best = &result->settings[result->best];
    setting->tried = true;
    setting->found = best->fits && best->needed_bytes != 0;
    setting->needed_bytes = best->needed_bytes;
    (void)snprintf(setting->conf, sizeof setting->conf, "%s", best->conf);
    vram_tune_result_destroy(result);
}

void fit_find_setting(const struct fit_verdict *verdict, struct fit_setting *setting) {
    *setting = (struct fit_setting){.card = next_smaller(verdict)};
    const struct fit_holding *highest = verdict->highest;
    if (setting->card == NULL || highest->process->whole_program || highest->allocated_bytes > setting->card->room_bytes) return;
    if (vram_recording_event_count(verdict->recording, VRAM_ALL_DEVICES) <= MOST_EVENTS) search(verdict, setting);
}
