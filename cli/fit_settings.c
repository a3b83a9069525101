#include "fit_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vram/recording.h"
#include "vram/replay.h"

#define MOST_EVENTS 200000 // a search replays them hundreds of times

// By memory, the one below the smallest that it fits.
static const struct fit_card *next_smaller(const struct fit_verdict *verdict) {
    const struct fit_card *card = NULL;
    for (size_t i = 0; i < verdict->card_count && &verdict->cards[i] != verdict->smallest_card; i++)
        if (fit_is_old(&verdict->cards[i].model) == fit_is_old(&verdict->ran_on) && fit_is_offered(&verdict->cards[i]))
            card = &verdict->cards[i];
    return card;
}

static void search(const struct fit_verdict *verdict, struct fit_setting *setting) {
    const struct vram_recording *recording = verdict->recording;
    const struct vram_tune_options options = {.memory_bytes = setting->room_bytes};
    struct vram_tune_result *result;
    if (vram_tune(&recording, 1, &options, &result, NULL) != VRAM_OK) return;
    const struct vram_tune_setting *best = &result->settings[result->best];
    setting->tried = true;
    setting->found = best->fits && best->needed_bytes != 0;
    setting->needed_bytes = best->needed_bytes;
    (void)snprintf(setting->conf, sizeof setting->conf, "%s", best->conf);
    vram_tune_result_destroy(result);
}

// One replay each, in the card's room; the first with which it completes.
static void try_usual(const struct fit_verdict *verdict, struct fit_setting *setting) {
    static const char *const usual[] = {"expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:256",
                                        "max_split_size_mb:64",     "max_split_size_mb:512", "garbage_collection_threshold:0.8"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !setting->found; i++) {
        const struct vram_whatif_options options = {
            .conf = usual[i], .memory_bytes = setting->room_bytes, .one_device = true, .device = verdict->highest->device};
        struct vram_whatif_result *result;
        if (vram_replay_whatif(verdict->recording, &options, &result, NULL) != VRAM_OK) continue;
        setting->tried = true;
        setting->found = result->finished;
        setting->needed_bytes = setting->room_bytes;
        (void)snprintf(setting->conf, sizeof setting->conf, "%s", usual[i]);
        vram_whatif_result_destroy(result);
    }
}

// The largest of those asked for that it does not fit; where it fits on all, the next smaller one.
static const struct fit_card *card_to_reach(const struct fit_verdict *verdict, bool *asked) {
    const struct fit_card *card = NULL;
    for (size_t i = 0; i < verdict->card_count; i++)
        if (verdict->cards[i].asked && !verdict->cards[i].fits && fit_is_old(&verdict->cards[i].model) == fit_is_old(&verdict->ran_on))
            card = &verdict->cards[i];
    *asked = card != NULL;
    return card != NULL ? card : next_smaller(verdict);
}

// What is to be reached: the limit, or a card. False: it is, or there is none.
static bool aim(const struct fit_verdict *verdict, uint64_t limit_bytes, struct fit_setting *setting) {
    const uint64_t outside_bytes = verdict->highest->outside_bytes;
    *setting = (struct fit_setting){.card = NULL};
    if (limit_bytes != UINT64_MAX) {
        if (verdict->smallest_bytes <= limit_bytes) return false;
        setting->any = setting->asked = true;
        setting->room_bytes = limit_bytes > outside_bytes ? limit_bytes - outside_bytes : 0;
        return true;
    }
    setting->card = card_to_reach(verdict, &setting->asked);
    setting->any = setting->card != NULL;
    setting->room_bytes = setting->any ? setting->card->room_bytes : 0;
    return setting->any;
}

void fit_find_setting(const struct fit_verdict *verdict, uint64_t limit_bytes, struct fit_setting *setting) {
    const struct fit_holding *highest = verdict->highest;
    if (!aim(verdict, limit_bytes, setting) || highest->process->whole_program || highest->allocated_bytes > setting->room_bytes) return;
    if (vram_recording_event_count(verdict->recording, VRAM_ALL_DEVICES) <= MOST_EVENTS)
        search(verdict, setting);
    else
        try_usual(verdict, setting);
}
