#include "fit_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "vram/recording.h"
#include "vram/replay.h"
#include "vram/roles.h"

#define MOST_EVENTS 200000 // a search replays them hundreds of times

// By memory, the one below the smallest that it fits.
static const struct fit_card *next_smaller(const struct fit_verdict *verdict) {
    const struct fit_card *card = NULL;
    for (size_t i = 0; i < verdict->card_count && &verdict->cards[i] != verdict->smallest_card; i++)
        if (fit_is_old(&verdict->cards[i].model) == fit_is_old(&verdict->ran_on)) card = &verdict->cards[i];
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

// One replay each, in the card's room; the first with which it completes.
static void try_usual(const struct fit_verdict *verdict, struct fit_setting *setting) {
    static const char *const usual[] = {"expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:256",
                                        "max_split_size_mb:64",     "max_split_size_mb:512", "garbage_collection_threshold:0.8"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !setting->found; i++) {
        const struct vram_whatif_options options = {
            .conf = usual[i], .memory_bytes = setting->card->room_bytes, .one_device = true, .device = verdict->highest->device};
        struct vram_whatif_result *result;
        if (vram_replay_whatif(verdict->recording, &options, &result, NULL) != VRAM_OK) continue;
        setting->tried = true;
        setting->found = result->finished;
        setting->needed_bytes = setting->card->room_bytes;
        (void)snprintf(setting->conf, sizeof setting->conf, "%s", usual[i]);
        vram_whatif_result_destroy(result);
    }
}

void fit_find_setting(const struct fit_verdict *verdict, struct fit_setting *setting) {
    *setting = (struct fit_setting){.card = next_smaller(verdict)};
    const struct fit_holding *highest = verdict->highest;
    if (setting->card == NULL || highest->process->whole_program || highest->allocated_bytes > setting->card->room_bytes) return;
    if (vram_recording_event_count(verdict->recording, VRAM_ALL_DEVICES) <= MOST_EVENTS)
        search(verdict, setting);
    else
        try_usual(verdict, setting);
}

// --- a smaller batch ----------------------------------------------------------------------------------------------------------------

static bool names_batch(const char *name, size_t length) {
    if (length == 2 && strncmp(name, "-b", 2) == 0) return true;
    for (size_t i = 0; i + 5 <= length; i++)
        if (strncasecmp(name + i, "batch", 5) == 0) return true;
    return false;
}

static bool is_count(const char *text, uint64_t *value) {
    char *end;
    if (text == NULL || text[0] < '1' || text[0] > '9') return false;
    *value = strtoull(text, &end, 10);
    return *end == '\0' && *value < 1000000000;
}

// The last one: "--batch-size 16", "--batch_size=16", "train.batch_size=16", "-b 16".
static void find_argument(char *const *program, struct fit_batch *batch) {
    for (int i = 1; program[0] != NULL && program[i] != NULL; i++) {
        const size_t length = strcspn(program[i], "=");
        const bool joined = program[i][length] == '=';
        uint64_t value;
        if (length >= sizeof batch->argument || !names_batch(program[i], length)) continue;
        if (!joined && program[i][0] != '-') continue; // a file called so
        if (!is_count(joined ? program[i] + length + 1 : program[i + 1], &value)) continue;
        (void)snprintf(batch->argument, sizeof batch->argument, "%.*s", (int)length, program[i]);
        batch->value = value;
    }
}

void fit_find_batch(const struct fit_verdict *verdict, const struct fit_setting *setting, char *const *program, struct fit_batch *batch) {
    static const enum vram_role varying[] = {VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_RECOMPUTED, VRAM_ROLE_INPUT};
    const struct vram_roles_options options = {.device = verdict->highest->device};
    struct vram_roles *roles;
    *batch = (struct fit_batch){.known = false};
    if (setting->card == NULL || setting->found || verdict->highest->process->whole_program) return;
    if (vram_roles_create(verdict->recording, &options, &roles, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < sizeof varying / sizeof *varying; i++) batch->varying_bytes += roles->at_peak[varying[i]].bytes;
    // Where next to none of these are live, it is the optimizer whose temporaries these are.
    if (batch->varying_bytes > verdict->highest->allocated_bytes / 100) batch->varying_bytes += roles->at_peak[VRAM_ROLE_TEMPORARIES].bytes;
    vram_roles_destroy(roles);
    const uint64_t allocated = verdict->highest->allocated_bytes, room = setting->card->room_bytes;
    batch->varying_bytes = batch->varying_bytes < allocated ? batch->varying_bytes : allocated;
    batch->fixed_bytes = allocated - batch->varying_bytes;
    batch->known = batch->varying_bytes > 0;
    if (!batch->known || batch->fixed_bytes >= room) return;
    // What is held beyond what is live is taken to be in proportion.
    const double held = (double)verdict->highest->reserved_bytes / (double)allocated;
    batch->share = ((double)room / held - (double)batch->fixed_bytes) / (double)batch->varying_bytes;
    if (batch->share < 0) batch->share = 0;
    if (batch->share > 0.99) batch->share = 0.99;
    find_argument(program, batch);
    batch->about = (uint64_t)((double)batch->value * batch->share);
}
