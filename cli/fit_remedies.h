// fit_remedies.h: changes that make a program fit: a setting of the allocator, a smaller batch, a change to the program.
#ifndef CLI_FIT_REMEDIES_H
#define CLI_FIT_REMEDIES_H

#include <stdio.h>

#include "fit_cards.h"

// Finds a setting of the allocator with which a program fits on a card, or within a limit, where it did not.

struct fit_setting {
    bool any;                    // there is a card or limit within which the program does not fit
    bool asked;                  // the command line named the card or limit
    const struct fit_card *card; // NULL: the limit
    uint64_t room_bytes;         // for the allocator
    bool tried;                  // settings were replayed; none can help if more is live at once than there is room for
    bool found;
    char conf[300];        // the setting; "": the defaults
    uint64_t needed_bytes; // by the allocator with that setting
};

// Replays the recording of the highest holding under many settings; if it is very long, only under the most promising.
void fit_find_setting(const struct fit_verdict *verdict, uint64_t limit_bytes, struct fit_setting *setting);

// Changes to the program that make it fit if no setting of the allocator suffices, from the report on the same peak.

struct vr_json;

struct vram_report;
struct vram_report_demand;

struct fit_remedies {
    struct vram_report *report;              // NULL if none was made
    const struct vram_report_demand *demand; // part of the report: the memory at the peak of the highest holding; NULL: none
};

// Finds remedies for the room that *setting was searched for; none if a setting was found. Release them with fit_remedies_release().
void fit_find_remedies(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_remedies *remedies);
void fit_remedies_release(struct fit_remedies *remedies);
// Returns whether the peak is in a model's pass or its optimizer. Only then can the effect of a smaller batch be estimated.
bool fit_remedies_know_passes(const struct fit_remedies *remedies);
// Prints the largest three, a sentence each, below the setting. Includes the batch's only if `batch_printed` is false.
void fit_remedies_print(FILE *page, const struct fit_remedies *remedies, bool batch_printed);
// Writes an array of objects. remedies->demand must not be NULL.
void fit_remedies_json(struct vr_json *json, const char *key, const struct fit_remedies *remedies);

// Finds which smaller batch makes a program fit, and which of its arguments sets the batch.

// The effect of a smaller batch, estimated if no setting was found. The estimate by roles assumes that activations, temporaries and input
// scale with the batch. The estimate by trial halves an argument that has "batch" in its name and measures the peak.
struct fit_batch {
    bool known;             // the recording has roles, or an argument was found
    bool tried;             // the bytes come from a run with half of an argument's value
    uint64_t fixed_bytes;   // independent of the batch: parameters, gradients, states, caches
    uint64_t varying_bytes; // activations, temporaries, input
    double share;           // share of varying_bytes for which there is room; 0: no room even for fixed_bytes
    char argument[64];      // the program's argument, "--batch-size"; "" if none changed the peak
    uint64_t value, about;  // the argument's value, and roughly the value that fits
};

// Estimates the effect by the roles of the recording, without another run.
void fit_find_batch(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_batch *batch);
// To be called after fit_find_batch(). For each argument that may be a batch, at most four, runs the program with half its value, and keeps
// the argument that lowers the peak most. `plan` has enough memory for all of these runs.
void fit_try_batch(const struct fit_plan *plan, const struct fit_verdict *verdict, const struct fit_setting *setting,
                   struct fit_batch *batch);

#endif
