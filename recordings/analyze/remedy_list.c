// The list of what would lower a demand: what is worth an entry.
#include "analyze/demand.h"

enum { LEAST_PART = 50 }; // of the peak: less is not worth a change of the program

const char *vram_remedy_name(size_t remedy) {
    static const char *const names[] = {
#define REMEDY_NAME(constant, name) #name,
        VRAM_REMEDIES(REMEDY_NAME)
#undef REMEDY_NAME
    };
    return remedy < VR_COUNT_OF(names) ? names[remedy] : NULL;
}

void vr_remedy_add(struct vr_demand_work *work, struct vram_report_remedy remedy, uint64_t left) {
    struct vram_report_demand *made = work->made;
    const uint64_t saved = work->peak_bytes > left ? work->peak_bytes - left : 0;
    const bool to_measure = remedy.factor < 1; // as much as it takes, be it little
    if ((saved < work->peak_bytes / LEAST_PART && !to_measure) || saved == 0 || made->remedy_count == VR_MOST_REMEDIES) return;
    struct vram_report_remedy *remedies = (struct vram_report_remedy *)(uintptr_t)made->remedies; // of the arena, and nobody else's yet
    remedy.saved_bytes = saved;
    remedy.left_bytes = made->wanted_bytes > saved ? made->wanted_bytes - saved : 0;
    remedy.fits = remedy.left_bytes <= made->room_bytes;
    remedy.text = remedy.basis = "";
    if (remedy.site == NULL) remedy.site = "";
    remedies[made->remedy_count++] = remedy;
}

int64_t vr_remedy_next_event(const struct vr_demand_work *work, uint64_t *left) {
    size_t position;
    *left = vr_live_curve_peak_at(&work->changed, &position);
    const int64_t event = (int64_t)position - 1;
    return event == work->question->event ? VR_SAME_MOMENT : event;
}

void vr_remedy_add_curve(struct vr_demand_work *work, struct vram_report_remedy remedy) {
    uint64_t left;
    remedy.next_event = vr_remedy_next_event(work, &left);
    vr_remedy_add(work, remedy, left);
}
