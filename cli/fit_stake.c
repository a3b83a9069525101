#include "fit_stake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulator/standins/common/read_values.h"
#include "ui.h"

static const char variable[] = "VRAM_SIM_VALUES";
static const char most[] = "aten::nonzero=100%\naten::unique=100%\n"; // after the user's rules, because the first rule that matches decides

static bool reads_counts(const struct fit_run *run) {
    for (size_t i = 0; i < run->read_count; i++)
        if (vr_read_operations_count(run->reads[i].operation)) return true;
    return false;
}

static void take_peaks(const struct fit_run *run, struct fit_stake *stake) {
    for (size_t i = 0; i < run->holding_count; i++) {
        if (run->holdings[i].reserved_bytes < stake->reserved_bytes) continue;
        stake->reserved_bytes = run->holdings[i].reserved_bytes;
        stake->allocated_bytes = run->holdings[i].allocated_bytes;
    }
}

static bool put_rules(const char *own, char *text, size_t capacity) {
    const int length = snprintf(text, capacity, "%s%s%s", own == NULL ? "" : own, own == NULL ? "" : "\n", most);
    return length >= 0 && (size_t)length < capacity && setenv(variable, text, 1) == 0;
}

void fit_find_stake(const struct fit_plan *plan, const struct fit_run *run, bool decided, struct fit_stake *stake) {
    *stake = (struct fit_stake){.counts = reads_counts(run)};
    if (!stake->counts || decided || fit_run_failed(run)) return;
    const char *now = getenv(variable);
    char *own = now == NULL ? NULL : strdup(now), *text = malloc(VR_READ_VALUES_BYTES);
    struct fit_run other;
    if ((now == NULL || own != NULL) && text != NULL && put_rules(own, text, VR_READ_VALUES_BYTES)) {
        ui_say("vram fit: running again, with nonzero(), masks and unique() finding all elements");
        stake->tried = fit_run(plan, &other) == CLI_OK;
        if (stake->tried) {
            stake->finished = !fit_run_failed(&other) && other.ending != FIT_OUT_OF_MEMORY;
            take_peaks(&other, stake);
            fit_run_release(&other);
        }
        (void)(own == NULL ? unsetenv(variable) : setenv(variable, own, 1));
    }
    free(own);
    free(text);
}

uint64_t fit_stake_bytes(const struct fit_run *run, const struct fit_stake *stake, const struct fit_holding *highest) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->size_count; i++)
        if (run->sizes[i].bytes > bytes) bytes = run->sizes[i].bytes;
    if (stake->tried && stake->reserved_bytes > highest->reserved_bytes) bytes += stake->reserved_bytes - highest->reserved_bytes;
    return bytes;
}
