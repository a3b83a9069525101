// report_output.h: where a report for people goes, and when its replays are asked for.
#ifndef VR_PRESENT_REPORT_OUTPUT_H
#define VR_PRESENT_REPORT_OUTPUT_H

#include "base/text.h"
#include "vram/report.h"

struct vr_report_output {
    struct vr_text *text;                    // what is not yet written
    const struct vram_report_source *source; // may be NULL
    bool replayed;                           // the source's replay() was called
    bool refused;                            // `write` returned false
    vram_write write;
    void *user;
};

// The source with its cures and savings. The first call writes what there is and runs the replays.
const struct vram_report_source *vr_report_replayed(struct vr_report_output *output);

#endif
