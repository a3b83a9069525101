// fit_remedies.h: what the program could do to fit where no setting of the allocator is enough: what a report says of the same peak.
#ifndef CLI_FIT_REMEDIES_H
#define CLI_FIT_REMEDIES_H

#include "fit_settings.h"

struct vr_json;

struct vram_report;
struct vram_report_demand;

struct fit_remedies {
    struct vram_report *report;              // NULL: none was made
    const struct vram_report_demand *demand; // of the report, at the peak of the highest holding; NULL: there is none
};

// For the memory that the setting was looked for in; nothing where one was found. fit_remedies_release().
void fit_find_remedies(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_remedies *remedies);
void fit_remedies_release(struct fit_remedies *remedies);
// Whether the peak is of a pass of a model or of its optimizer: only of such a program can be said what a smaller batch would change.
bool fit_remedies_know_passes(const struct fit_remedies *remedies);
// The largest three, a sentence each, under the setting; that of the batch only where `batch_printed` is false.
void fit_remedies_print(const struct fit_remedies *remedies, bool batch_printed);
// The member "remedies": an array of objects, or null.
void fit_remedies_json(struct vr_json *json, const struct fit_remedies *remedies);

#endif
