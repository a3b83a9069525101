// option_strings.h: option strings: with one option changed, whose rules they follow, and which of those that were tried is worth setting.
#ifndef VR_REPLAY_OPTION_STRINGS_H
#define VR_REPLAY_OPTION_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "base/text.h"
#include "config/options.h"
#include "model/model.h"
#include "vram/replay.h"

// ---- Option strings with one option changed.

// conf with its own value of the option's key replaced ("paged:True" in "paged:False,...") or added at the end. False when it is the same
// string, or longer than `capacity` with its NUL; `changed` is not to be used then.
bool vr_option_string_with(const char *conf, const char *option, char *changed, size_t capacity);

// ---- Whose rules a recorded program followed, where PyTorch's versions differ (replay.md §whose-rules).

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

// ---- Which settings are tried on a recording, and which of those that were is worth setting: the same for a cure (cure.c) and for tuning
// (tune.c), so that both answer alike.

#define VR_EXPANDABLE "expandable_segments:True"

// Of the settings that fit only the first few are compared, most usual first: each takes some forty replays.
enum { VR_CONF_CAPACITY = 512, VR_MOST_COMPARED = 4 };

// Takes one option string. A failure ends the walk and is its result.
typedef enum vram_status vr_take_conf(void *context, const char *conf);

// The settings that differ from today's in one option, most usual first, then the defaults and the two that most people know, by
// themselves. windows: without expandable segments, which PyTorch ignores there.
enum vram_status vr_each_single_change(const char *today, bool windows, vr_take_conf *take, void *context);
// Those that differ in two.
enum vram_status vr_each_double_change(const char *today, bool windows, vr_take_conf *take, void *context);

// The place in `rows` of the setting to choose of these `count` (1 or more) rows of `settings`, whose needs are known; most usual first. It
// needs the least, to 1 %; of those it holds the least, to 1 %; of those it is the most usual one. Settings that hold more than
// `most_held_bytes` are left aside while one does not.
size_t vr_choose_setting(const struct vram_tune_setting *settings, const size_t *rows, size_t count, uint64_t most_held_bytes);

#endif
