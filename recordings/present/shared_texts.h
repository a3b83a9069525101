// shared_texts.h: sentences and JSON members that the report, the page and agents share.
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

// ---- cures ----

// Prints one or two sentences that follow the setting, if there is one. Sets out->failed if memory runs out.
void vr_cure_sentence(const struct vram_cure *cure, struct vr_text *out);
// Prints the members of one element of the report's `cures` (docs/reference/json.md) into the open object.
void vr_cure_json(const struct vram_cure *cure, struct vr_json *json);

// ---- demands: the memory in use, and what would reduce it ----

// Sets the texts of a demand whose facts are set. `arena` is that of the facts. NO_HOST_MEMORY.
enum vram_status vr_demand_sentences(struct vr_arena *arena, const struct vram_report_demand *demand);
// Prints the member `demand` (docs/reference/json.md) of the open object: an object, or null if demand is NULL.
void vr_demand_json(struct vr_json *json, const struct vram_report_demand *demand);
// Describes a peak for which no limit was named: its phase, its roles, and the first remedies. Prints nothing if no role is known.
void vr_demand_at_peak(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand);
// Prints the remedies as a list, or nothing if there are none.
void vr_demand_list(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand);

// ---- savings by paged memory ----

// Prints the saving by paged memory on a device, if the source has compared it.
void vr_paged_of_report(const struct vram_report_source *source, uint32_t device, struct vr_text *out);
// Prints the members of one element of the report's `paged` (docs/reference/json.md) into the open object.
void vr_paged_json(const struct vram_paged_saving *saving, struct vr_json *json);

// ---- causes of out-of-memory events ----

// Sets the text and advice of a device's out-of-memory events whose facts are set. `arena` is that of the facts. NO_HOST_MEMORY.
enum vram_status vr_oom_sentences(struct vr_arena *arena, const struct vram_report_device *device);

// ---- a device's out-of-memory events as text ----

// Prints all events, the last one in full.
void vr_oom_report(struct vr_report_output *output, const struct vram_style *style, const struct vram_report_device *device);

// ---- the answer to "does it leak?", shared by commands, pages and JSON ----

// Prints "40 steps, marked by the program (train_step)". If there are no steps or they are uncertain, prints what was found instead.
void vr_leak_steps_text(const struct vr_model *model, const struct vr_steps *steps, struct vr_text *text);
// Prints the members `answer` (a word) and `sentence` into the open object.
void vr_leak_answer_json(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *finding,
                         struct vr_json *json);

// ---- notes on the recording: its generation, what it lacks, and contradictions ----

// Fills report->notes from the devices, which must be complete. NO_HOST_MEMORY.
enum vram_status vr_report_notes(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report);

// ---- parts of the report's JSON that others use too ----

// Prints the members `oom` and `oom_causes`, as in the report.
void vr_report_json_ooms(struct vr_json *json, const struct vram_report_device *device);

// ---- moments, groups and stacks ----

// Prints the moment: "peak", "the end" or "event 7".
void vr_profile_moment(const struct vr_profile *subject, const struct vram_profile_options *options, struct vr_text *text);
// Prints "device 1", with the reason for its choice if the caller named no device: "device 1 (out of memory)".
void vr_profile_device(const struct vr_profile *subject, struct vr_text *text);
// Prints a group's name of the given kind in printable characters. Omits the arguments of a function if they would hide its name.
void vr_title_print(enum vr_group_by by, const char *name, size_t length, struct vr_text *text);
// Prints a group's name as text.
void vr_group_title(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text);
// Prints a group's name as a JSON member. NO_HOST_MEMORY.
enum vram_status vr_group_name_json(const struct vr_grouping *grouping, uint64_t key, struct vr_json *json);
// Prints the call site, then the frames of a stack, innermost first, one per line. Folded frames share a line.
void vr_stack_print(struct vr_sites *sites, uint32_t stack, const struct vram_style *style, struct vr_text *text);

#endif
