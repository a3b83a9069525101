// role_notes.h: what a program said itself of its allocations (an annotation): roles by address, and whose module asked.
//
// "vram.role ROLE NAME" is said of a live block, by an event `annotate`; "vram.role ROLE 0xADDRESS NAME" is the same as an annotation of
// the recording, at its time. "vram.module NAME" is the metadata of events, or an annotation that begins and ends.
#ifndef VR_ANALYZE_ROLE_NOTES_H
#define VR_ANALYZE_ROLE_NOTES_H

#include "analyze/lifetimes.h"
#include "base/hash_index.h"
#include "vram/roles.h"

// Columns by row of the lifetimes.
struct vr_role_notes {
    uint8_t *role;   // enum vram_role; VRAM_ROLE_COUNT: nothing was said
    uint32_t *named; // 1 + number of a module's name; 0: none
    struct vr_module_name {
        const char *text; // borrowed from the model
        size_t length;
    } * name;
    size_t name_count, name_capacity;
    struct vr_hash_index index; // of the names
};

// NO_HOST_MEMORY, LIMIT; *notes is untouched then.
enum vram_status vr_role_notes_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_role_notes *notes);
// A zeroed one is fine.
void vr_role_notes_release(struct vr_role_notes *notes);

#endif
