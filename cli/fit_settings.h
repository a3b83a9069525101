// fit_settings.h: which setting of the allocator makes a program fit where it does not: on a card or in a limit.
#ifndef CLI_FIT_SETTINGS_H
#define CLI_FIT_SETTINGS_H

#include "fit_cards.h"

struct fit_setting {
    bool any;                    // there is something to reach that it does not fit
    bool asked;                  // by the command line: a card or a limit
    const struct fit_card *card; // NULL: the limit
    uint64_t room_bytes;         // for the allocator
    bool tried;                  // no setting can help where more is live at once than there is room
    bool found;
    char conf[300];        // with which it fits; "": the defaults
    uint64_t needed_bytes; // by the allocator with it
};

// Replays the recording of the highest holding under many settings, a very long one under the most promising alone.
void fit_find_setting(const struct fit_verdict *verdict, uint64_t limit_bytes, struct fit_setting *setting);

#endif
