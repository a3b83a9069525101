// answer_members.h: members of an answer's open object that several queries give.
#ifndef VR_EXPLORE_QUERY_ANSWER_MEMBERS_H
#define VR_EXPLORE_QUERY_ANSWER_MEMBERS_H

#include "analyze/sites.h"
#include "base/json.h"

// A member of `frames`, as below.
void vr_put_frame(struct vr_json *json, const struct vr_model *model, uint32_t frame, const char *fold);
// `stack`, `frames` (array of [name, file, line, what it is folded as or ""], innermost first) and `site` (the place of the call site in
// it, absent without frames).
void vr_put_stack(struct vr_json *json, struct vr_sites *sites, uint32_t stack);
// An event by its number (VR_NEVER: null) and, where the history has it, its time.
void vr_put_moment(struct vr_json *json, const struct vr_history *history, const char *event_key, const char *time_key, uint32_t event);
// `pool`, as a pair.
void vr_put_pool(struct vr_json *json, uint64_t first, uint64_t second);
// `pool`, `category`, `metadata` and `context`, as far as the event has them.
void vr_put_words(struct vr_json *json, const struct vr_model *model, const struct vr_history *history, size_t event);

#endif
