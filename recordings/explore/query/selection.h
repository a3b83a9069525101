// selection.h: what the parameters of a query select: recording, device, lifetimes, and how they are grouped.
#ifndef VR_EXPLORE_QUERY_SELECTION_H
#define VR_EXPLORE_QUERY_SELECTION_H

#include "analyze/grouping.h"
#include "explore/query/query.h"

// All borrowed from the explorer.
struct vr_selection {
    struct vr_explored_recording *recording;
    struct vr_explored_device *device;
    const struct vr_lifetimes *lifetimes;
};

// The recording that the parameter `rec` names (0 when it is not there), and its device of parameter `device` (an ordinal; when it is not
// there, the one in trouble, analyze/trouble.h). INVALID_ARGUMENT.
enum vram_status vr_select_recording(const struct vr_query *query, struct vr_explored_recording **recording);
enum vram_status vr_select_device(const struct vr_query *query, struct vr_explored_recording **recording,
                                  struct vr_explored_device **device);
// The place of the view that a query without a device is about; the recording has one at least. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_worst(struct vr_explored_recording *recording, size_t *index);
// The parameter `notion`: allocated (the default) or active.
enum vram_status vr_select_lifetime_kind(const struct vr_query *query, enum vr_lifetime_kind *kind);
// Recording, device and, by `notion`, lifetimes. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_lifetimes(const struct vr_query *query, struct vr_selection *selection);
// What grouping by a role or a module (`by`, else *roles is NULL) has to know of lifetimes of the device; borrowed, found once. As above.
enum vram_status vr_select_roles(struct vr_explored_device *device, const struct vr_lifetimes *lifetimes, size_t by,
                                 struct vr_roles **roles);
// The grouping of the parameters `by` (default site) and `regex`. Released by vr_grouping_release(). As above.
enum vram_status vr_select_grouping(const struct vr_query *query, const struct vr_selection *selection, struct vr_grouping *grouping);

#endif
