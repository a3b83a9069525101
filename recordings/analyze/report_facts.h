// report_facts.h: what a report says, without its sentences: those are made in present.
#ifndef VR_ANALYZE_REPORT_FACTS_H
#define VR_ANALYZE_REPORT_FACTS_H

#include "analyze/arena.h"
#include "model/model.h"
#include "vram/report.h"

struct vr_report_facts {
    struct vram_report report; // must be first: the public pointer is this one
    struct vr_arena arena;     // of all that the report points to
};

// Fills *facts, which is all-zero: everything but notes, and text and advice of out-of-memory events. The arena is the caller's to release,
// also after a failure. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_report_facts_find(const struct vram_recording *recording, const struct vram_report_options *options,
                                      struct vr_report_facts *facts, struct vram_error *error);

// ---- Which generation of files a recording is of.

// The generation of what is no snapshot: events alone, read from a log or a profiler's trace.
#define VR_EVENTS_ALONE "events"
// The generation and the PyTorch versions that write it, by the keys alone. Static texts.
void vr_report_generation(const struct vr_model *model, const char **generation, const char **era);
// "dict" or "segment_list". Static.
const char *vr_report_form(const struct vr_model *model);
// Does the recording tell the settings of an allocator? Files that were written event by event have no keys at the top.
bool vr_report_has_settings(const struct vr_model *model);

#endif
