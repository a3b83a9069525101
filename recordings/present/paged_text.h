// paged_text.h: what paged memory would have saved, in the words that the report, the page and agents share.
#ifndef VR_PRESENT_PAGED_TEXT_H
#define VR_PRESENT_PAGED_TEXT_H

#include "base/json.h"
#include "base/text.h"
#include "vram/replay.h"
#include "vram/report.h"

// Nothing where there is nothing to gain. A failure is remembered in `out`.
void vr_paged_sentences(const struct vram_paged_saving *saving, struct vr_text *out);
// The same of the device, where the report's reader has compared.
void vr_paged_of_report(const struct vram_report_source *source, uint32_t device, struct vr_text *out);
// The members of one of the report's `paged` (docs/reference/json.md), into the object that is open.
void vr_paged_json(const struct vram_paged_saving *saving, struct vr_json *json);

#endif
