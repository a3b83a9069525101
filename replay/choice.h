// choice.h: which settings are tried on a recording, and which of those that were is worth setting: the same for a cure (cure.c) and for
// tuning (tune.c), so that both answer alike.
#ifndef VR_REPLAY_CHOICE_H
#define VR_REPLAY_CHOICE_H

#include "base/base.h"
#include "vram/replay.h"

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
