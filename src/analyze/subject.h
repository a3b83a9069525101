// subject.h: one device of a recording, opened for a profile: its lifetimes, and what is live at the moment that was asked for.
#ifndef VR_ANALYZE_SUBJECT_H
#define VR_ANALYZE_SUBJECT_H

#include "analyze/grouping.h"
#include "vram/profile.h"

struct vr_subject {
    const struct vr_model *model; // borrowed
    struct vr_views views;
    struct vr_sites sites;
    const struct vr_view *view;
    struct vr_lifetimes lifetimes;
    bool has_lifetimes;
    struct vr_segment_lives segments;
    bool has_segments;
    int64_t event;
    uint32_t *rows; // live after `event`
    size_t count;
    uint64_t bytes;
};

// INVALID_ARGUMENT with a sentence, BAD_INPUT (a recording of nothing), LIMIT, NO_HOST_MEMORY. The recording must outlive it.
enum vram_status vr_subject_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                 struct vr_subject *subject, struct vram_error *error);
void vr_subject_close(struct vr_subject *subject);
// The grouping that the options name.
enum vram_status vr_subject_grouping(struct vr_subject *subject, const struct vram_profile_options *options, struct vr_grouping *grouping,
                                     struct vram_error *error);
// "peak", "the end", "event 7": as people say it.
void vr_subject_moment(const struct vr_subject *subject, const struct vram_profile_options *options, struct vr_text *text);
// The name of a group of that kind for people: printable, and functions without their arguments where these would hide them.
void vr_title_print(enum vr_group_by by, const char *name, size_t length, struct vr_text *text);
// A group's name for people.
void vr_group_title(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text);
// A group's name as a member of a JSON object. NO_HOST_MEMORY.
struct vr_json;
enum vram_status vr_group_name_json(const struct vr_grouping *grouping, uint64_t key, struct vr_json *json);
// The frames of a stack, innermost first, a line each.
void vr_stack_print(const struct vr_model *model, uint64_t stack, const struct vram_style *style, struct vr_text *text);
// Hands the text to `write`.
enum vram_status vr_text_hand_over(const struct vr_text *text, vram_write write, void *user);

#endif
