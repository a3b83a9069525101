// shared_texts.h: the sentences and the members of JSON objects that the report, the page and agents share.
#ifndef VR_PRESENT_SHARED_TEXTS_H
#define VR_PRESENT_SHARED_TEXTS_H

#include "analyze/arena.h"
#include "analyze/leaks.h"
#include "analyze/profile.h"
#include "base/json.h"
#include "base/text.h"
#include "model/model.h"
#include "present/text_parts.h"
#include "vram/demand.h"
#include "vram/oom.h"
#include "vram/replay.h"
#include "vram/report.h"

// ---- A cure in the words that the report and the page share.

// One or two sentences, to be read after the setting where there is one. A failure is remembered in `out`.
void vr_cure_sentence(const struct vram_cure *cure, struct vr_text *out);
// The members of one of the report's `cures` (docs/reference/json.md), into the object that is open.
void vr_cure_json(const struct vram_cure *cure, struct vr_json *json);

// ---- What memory in use is made of, and what would lower it, in the words that the report, the page and agents share.

// Sets the texts of a demand, whose facts are found; the arena is that of the facts. NO_HOST_MEMORY.
enum vram_status vr_demand_sentences(struct vr_arena *arena, const struct vram_report_demand *demand);
// An object `demand` (docs/reference/json.md) of the object that is open; null for none.
void vr_demand_json(struct vr_json *json, const struct vram_report_demand *demand);
// Of a peak that no room was named for: its phase, its roles, and the first of what would lower it. Nothing where no role is known.
void vr_demand_at_peak(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand);
// The remedies as a list; nothing without remedies.
void vr_demand_list(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand);

// ---- What paged memory would have saved, in the words that the report, the page and agents share.

// The same of the device, where the report's reader has compared.
void vr_paged_of_report(const struct vram_report_source *source, uint32_t device, struct vr_text *out);
// The members of one of the report's `paged` (docs/reference/json.md), into the object that is open.
void vr_paged_json(const struct vram_paged_saving *saving, struct vr_json *json);

// ---- An out-of-memory event's cause in words.

// Sets text and advice of the device's out-of-memory events, whose facts are found; the arena is that of the facts. NO_HOST_MEMORY.
enum vram_status vr_oom_sentences(struct vr_arena *arena, const struct vram_report_device *device);

// ---- The out-of-memory events of a device, for people.

// All of them, the last one in full.
void vr_oom_report(struct vr_report_output *output, const struct vram_style *style, const struct vram_report_device *device);

// ---- The answer to "does it leak?" in words, the same ones for commands, pages and programs.

// "40 steps, marked by the program (train_step)". Where steps are none or not sure: what there is instead.
void vr_leak_steps_text(const struct vr_model *model, const struct vr_steps *steps, struct vr_text *text);
// Members of a JSON object: `answer` (a word), `sentence`.
void vr_leak_answer_json(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *finding,
                         struct vr_json *json);

// ---- Remarks about the recording itself: which generation wrote it, what it lacks, what does not fit together.

// Fills report->notes from the devices, which must be complete. NO_HOST_MEMORY.
enum vram_status vr_report_notes(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report);

// ---- Parts of the report's JSON that others show, too.

// Members `oom` and `oom_causes`, as in the report.
void vr_report_json_ooms(struct vr_json *json, const struct vram_report_device *device);

// ---- Moments, groups and stacks as people and programs read them.

// "peak", "the end", "event 7": as people say it.
void vr_profile_moment(const struct vr_profile *subject, const struct vram_profile_options *options, struct vr_text *text);
// "device 1"; where nothing named it, with the reason: "device 1 (out of memory)".
void vr_profile_device(const struct vr_profile *subject, struct vr_text *text);
// The name of a group of that kind for people: printable, and functions without their arguments where these would hide them.
void vr_title_print(enum vr_group_by by, const char *name, size_t length, struct vr_text *text);
// A group's name for people.
void vr_group_title(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text);
// A group's name as a member of a JSON object. NO_HOST_MEMORY.
enum vram_status vr_group_name_json(const struct vr_grouping *grouping, uint64_t key, struct vr_json *json);
// The frames of a stack, innermost first, a line each, the call site before them; what is folded counts as one.
void vr_stack_print(struct vr_sites *sites, uint32_t stack, const struct vram_style *style, struct vr_text *text);

#endif
