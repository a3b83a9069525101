// cure_text.h: a cure in the words that the report and the page share.
#ifndef VR_PRESENT_CURE_TEXT_H
#define VR_PRESENT_CURE_TEXT_H

#include "base/json.h"
#include "base/text.h"
#include "vram/oom.h"

// One or two sentences, to be read after the setting where there is one. A failure is remembered in `out`.
void vr_cure_sentence(const struct vram_cure *cure, struct vr_text *out);
// The members of one of the report's `cures` (docs/reference/json.md), into the object that is open.
void vr_cure_json(const struct vram_cure *cure, struct vr_json *json);

#endif
