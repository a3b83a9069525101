// fit_settings.h: which setting of the allocator, or which smaller batch, makes a program fit on a smaller card.
#ifndef CLI_FIT_SETTINGS_H
#define CLI_FIT_SETTINGS_H

#include "fit_cards.h"

struct fit_setting {
    const struct fit_card *card; // the largest on which the program does not fit; NULL: it fits on all
    bool tried;                  // no setting can help where more is live at once than there is room
    bool found;
    char conf[300];        // with which it fits; "": the defaults
    uint64_t needed_bytes; // by the allocator with it
};

// What a smaller batch may come to, where no setting was found: part of the peak goes by the batch, as far as roles tell.
struct fit_batch {
    bool known;             // there are roles
    uint64_t fixed_bytes;   // that no batch makes less: parameters, gradients, states, caches
    uint64_t varying_bytes; // activations, temporaries, input
    double share;           // of that, for which there is room; 0: not even for the rest
    char argument[64];      // of the program's: "--batch-size"; "": none that looks like it
    uint64_t value, about;  // of that argument, and what may fit
};

// Replays the recording of the highest holding under many settings, a very long one under the most promising alone.
void fit_find_setting(const struct fit_verdict *verdict, struct fit_setting *setting);
// After that, of the same card.
void fit_find_batch(const struct fit_verdict *verdict, const struct fit_setting *setting, char *const *program, struct fit_batch *batch);

#endif
