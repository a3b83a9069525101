#include "fit_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ui.h"
#include "vram/roles.h"

#define MOST_TRIED 4

// An argument that may be a batch.
struct candidate {
    char name[64];
    int place;   // among the program's words, of its value
    bool joined; // to its name
    uint64_t value;
};

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

// "--batch-size 16", "--batch_size=16", "train.batch_size=16", "-b 16": those whose value can be halved.
static size_t find_candidates(char *const *program, struct candidate *found) {
    size_t count = 0;
    for (int i = 1; program[0] != NULL && program[i] != NULL && count < MOST_TRIED; i++) {
        struct candidate *one = &found[count];
        const size_t length = strcspn(program[i], "=");
        *one = (struct candidate){.joined = program[i][length] == '='};
        if (length >= sizeof one->name || !names_batch(program[i], length)) continue;
        if (!one->joined && program[i][0] != '-') continue; // a file called so
        if (!is_count(one->joined ? program[i] + length + 1 : program[i + 1], &one->value) || one->value < 2) continue;
        one->place = one->joined ? i : i + 1;
        (void)snprintf(one->name, sizeof one->name, "%.*s", (int)length, program[i]);
        count++;
    }
    return count;
}

void fit_find_batch(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_batch *batch) {
    static const enum vram_role varying[] = {VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_RECOMPUTED, VRAM_ROLE_INPUT};
    const struct vram_roles_options options = {.device = verdict->highest->device};
    struct vram_roles *roles;
    *batch = (struct fit_batch){.known = false};
    if (!setting->any || setting->found || verdict->highest->process->whole_program) return;
    if (vram_roles_create(verdict->recording, &options, &roles, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < sizeof varying / sizeof *varying; i++) batch->varying_bytes += roles->at_peak[varying[i]].bytes;
    // Where next to none of these are live, it is the optimizer whose temporaries these are.
    if (batch->varying_bytes > verdict->highest->allocated_bytes / 100) batch->varying_bytes += roles->at_peak[VRAM_ROLE_TEMPORARIES].bytes;
    vram_roles_destroy(roles);
    const uint64_t allocated = verdict->highest->allocated_bytes, room = setting->room_bytes;
    batch->varying_bytes = batch->varying_bytes < allocated ? batch->varying_bytes : allocated;
    batch->fixed_bytes = allocated - batch->varying_bytes;
    batch->known = batch->varying_bytes > 0;
    if (!batch->known || batch->fixed_bytes >= room) return;
    // What is held beyond what is live is taken to be in proportion.
    const double held = (double)verdict->highest->reserved_bytes / (double)allocated;
    batch->share = ((double)room / held - (double)batch->fixed_bytes) / (double)batch->varying_bytes;
    if (batch->share < 0) batch->share = 0;
    if (batch->share > 0.99) batch->share = 0.99;
}

// --- by trying ----------------------------------------------------------------------------------------------------------------------

// The peak with another value of the argument. 0: the program did not come as far.
static uint64_t peak_with(const struct fit_plan *plan, const struct candidate *one, uint64_t value) {
    struct fit_plan other = *plan;
    struct fit_run run;
    char text[100];
    uint64_t peak_bytes = 0;
    size_t count = 0;
    while (plan->program[count] != NULL) count++;
    char **words = calloc(count + 1, sizeof *words);
    if (words == NULL) return 0;
    memcpy(words, plan->program, count * sizeof *words);
    (void)snprintf(text, sizeof text, "%s%s%" PRIu64, one->joined ? one->name : "", one->joined ? "=" : "", value);
    words[one->place] = text;
    other.program = words;
    other.quiet = true;
    ui_say("vram fit: once more, with %s=%" PRIu64 ": whether the peak goes by it", one->name, value);
    if (fit_run(&other, &run) == CLI_OK) {
        for (size_t i = 0; !fit_run_failed(&run) && i < run.holding_count; i++)
            if (run.holdings[i].allocated_bytes > peak_bytes) peak_bytes = run.holdings[i].allocated_bytes;
        fit_run_release(&run);
    }
    free(words);
    return peak_bytes;
}

// Two points of a line: the peak, and the one with half of the value.
static void settle(const struct candidate *one, uint64_t half_bytes, const struct fit_holding *highest, uint64_t room_bytes,
                   struct fit_batch *batch) {
    const double steps = (double)(one->value - one->value / 2), each = (double)(highest->allocated_bytes - half_bytes) / steps;
    const double fixed = (double)highest->allocated_bytes - each * (double)one->value;
    const double held = (double)highest->reserved_bytes / (double)highest->allocated_bytes; // what is held beyond what is live
    const double most = ((double)room_bytes / held - fixed) / each;
    batch->known = batch->tried = true;
    batch->fixed_bytes = fixed > 0 ? (uint64_t)fixed : 0;
    batch->varying_bytes = highest->allocated_bytes - batch->fixed_bytes;
    (void)snprintf(batch->argument, sizeof batch->argument, "%s", one->name);
    batch->value = one->value;
    batch->about = most < 1 ? 0 : most < (double)one->value ? (uint64_t)most : one->value - 1;
    batch->share = (double)batch->about / (double)one->value;
}

void fit_try_batch(const struct fit_plan *plan, const struct fit_verdict *verdict, const struct fit_setting *setting,
                   struct fit_batch *batch) {
    struct candidate candidates[MOST_TRIED];
    const struct fit_holding *highest = verdict->highest;
    const struct candidate *best = NULL;
    uint64_t least_bytes = highest->allocated_bytes - highest->allocated_bytes / 100; // less is a change
    if (!setting->asked || setting->found) return;
    const size_t count = find_candidates(plan->program, candidates);
    for (size_t i = 0; i < count; i++) {
        const uint64_t bytes = peak_with(plan, &candidates[i], candidates[i].value / 2);
        if (bytes == 0 || bytes >= least_bytes) continue;
        least_bytes = bytes;
        best = &candidates[i];
    }
    if (best != NULL) settle(best, least_bytes, highest, setting->room_bytes, batch);
}
