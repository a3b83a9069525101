// recorded_rules.h: whose rules a recorded program followed, where PyTorch's versions differ (replay.md §whose-rules).
#ifndef VR_REPLAY_RECORDED_RULES_H
#define VR_REPLAY_RECORDED_RULES_H

#include "base/text.h"
#include "config/options.h"
#include "model/model.h"

// Versions, as VR_PYTORCH(): the one that the keys of a recording tell, and those to try where its events contradict that (0: no more).
struct vr_recorded_rules {
    uint32_t likely;
    uint32_t others[2];
};

struct vr_recorded_rules vr_recorded_rules(const struct vr_model *model);
// The version that an option string names, 0 where it names none or is malformed. NULL is "".
uint32_t vr_conf_rules(const char *conf);
// Appends the option string of a replay: the recorded one where `asked` is NULL; with the version where `asked` names nothing else; else
// `asked`. True when it is the recorded one, with or without a version.
bool vr_choose_conf(const char *recorded, const char *asked, struct vr_text *conf);

#endif
