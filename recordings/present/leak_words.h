// leak_words.h: the answer to "does it leak?" in words, the same ones for commands, pages and programs.
#ifndef VR_PRESENT_LEAK_WORDS_H
#define VR_PRESENT_LEAK_WORDS_H

#include "analyze/leaks.h"
#include "base/json.h"

// "40 steps, marked by the program (train_step)". Where steps are none or not sure: what there is instead.
void vr_leak_steps_text(const struct vr_model *model, const struct vr_steps *steps, struct vr_text *text);
// A sentence without a full stop.
void vr_leak_answer_text(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *finding,
                         struct vr_text *text);
// "3 of 12": at how many of the points since the growth began there was more than at the one before.
void vr_leak_points_grown(const struct vr_grower *grower, struct vr_text *text);
// Members of a JSON object: `answer` (a word), `sentence`.
void vr_leak_answer_json(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *finding,
                         struct vr_json *json);

#endif
