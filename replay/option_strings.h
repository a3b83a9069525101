// option_strings.h: changes one option in an option string, determines the PyTorch version of its rules, and chooses among tried settings.
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

// Writes conf with the option replaced ("paged:True" in "paged:False,...") or appended to `changed`. Returns false if the string is the
// same, or is longer than `capacity` with its NUL; do not use `changed` then.
bool vr_option_string_with(const char *conf, const char *option, char *changed, size_t capacity);

// ---- The PyTorch version whose rules a recorded program followed, where versions differ (replay.md §whose-rules).

// Versions as VR_PYTORCH(): the one that the recording's keys suggest, and those to try if its events contradict that (0: no more).
struct vr_recorded_rules {
    uint32_t likely;
    uint32_t others[2];
};

struct vr_recorded_rules vr_recorded_rules(const struct vr_model *model);
// Returns the version that an option string names; 0 if it names none or is malformed. NULL means "".
uint32_t vr_conf_rules(const char *conf);
// Appends the option string of a replay: the recorded one if `asked` is NULL, the recorded one with the version if `asked` names only a
// version, otherwise `asked`. Returns true if it is the recorded one, with or without a version.
bool vr_choose_conf(const char *recorded, const char *asked, struct vr_text *conf);

// ---- The settings to try on a recording, and the choice among those that fit, shared by cures (cure.c) and tuning (tune.c), so that both
// agree.

#define VR_EXPANDABLE "expandable_segments:True"

// Only the first few settings that fit are compared, most common first, because each takes about forty replays.
enum { VR_CONF_CAPACITY = 512, VR_MOST_COMPARED = 4 };

// Receives an option string. A failure ends the walk and is its result.
typedef enum vram_status vr_take_conf(void *context, const char *conf);

// Walks the settings that differ from today's in one option, most common first. Then, if today's are not the defaults, walks the defaults
// and each of the two best-known options alone. windows: omits expandable segments, which PyTorch ignores there.
enum vram_status vr_each_single_change(const char *today, bool windows, vr_take_conf *take, void *context);
// Walks the settings that differ in two options.
enum vram_status vr_each_double_change(const char *today, bool windows, vr_take_conf *take, void *context);

// Returns the index in `rows` of the best of these `count` (1 or more) rows of `settings`, whose needs are known, most common first. The
// best one needs the least, to 1 %; of those, it reserves the least, to 1 %; of those, it is the most common. Ignores settings that reserve
// more than `most_held_bytes` if another does not.
size_t vr_choose_setting(const struct vram_tune_setting *settings, const size_t *rows, size_t count, uint64_t most_held_bytes);

#endif
