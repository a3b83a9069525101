// changed_settings.h: what proves that a program changed its settings while it was recorded (replay.md §settings-that-changed).
#ifndef VR_REPLAY_CHANGED_SETTINGS_H
#define VR_REPLAY_CHANGED_SETTINGS_H

#include "replay/recorded_device.h"

// A recording has the settings of its end only. What cannot have come about by them, as words for a sentence; NULL where nothing proves it.
const char *vr_changed_settings(const struct vr_recorded_device *recorded);

#endif
