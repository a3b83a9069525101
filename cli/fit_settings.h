// fit_settings.h: which setting of the allocator makes a program fit on a smaller card.
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

// Replays the recording of the highest holding under many settings; as long as that takes, so not for very long ones.
void fit_find_setting(const struct fit_verdict *verdict, struct fit_setting *setting);

#endif
