// demand_text.h: what memory in use is made of, and what would lower it, in the words that the report, the page and agents share.
#ifndef VR_PRESENT_DEMAND_TEXT_H
#define VR_PRESENT_DEMAND_TEXT_H

#include "analyze/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "vram/demand.h"

// Sets the texts of a demand, whose facts are found; the arena is that of the facts. NO_HOST_MEMORY.
enum vram_status vr_demand_sentences(struct vr_arena *arena, const struct vram_report_demand *demand);
// An object `demand` (docs/reference/json.md) of the object that is open; null for none.
void vr_demand_json(struct vr_json *json, const struct vram_report_demand *demand);
// Of a peak that no room was named for: its phase, its roles, and the first of what would lower it. Nothing where no role is known.
void vr_demand_at_peak(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand);
// The remedies as a list; nothing where there is none.
void vr_demand_list(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand);

#endif
