// reservations.c: see reservations.h. The history is followed forwards with what is in use at each moment.
#include "replay/reservations.h"

#include "replay/mapped.h"

#define NONE UINT32_MAX

// Something that occupies addresses for a time: a segment of cudaMalloc, or a reservation as far as it was mapped.
struct tenant {
    uint64_t base;
    uint64_t end; // one past what was mapped of it so far
    uint64_t mapped_bytes;
    uint64_t stream;
    uint32_t pool;
    uint32_t segment; // of the start state: its first; NONE: made inside the history
    bool small;
    bool expandable;
};

struct following {
    const struct vr_recorded_device *recorded;
    struct vr_reservations *reservations;
    uint64_t longest;
    struct tenant *tenants;
    size_t count;
    size_t capacity;
    struct vr_mapped in_use; // from base to end; the owner is the tenant's number
};

void vr_reservations_release(struct vr_reservations *reservations) {
    free(reservations->bases);
    free(reservations->ends);
    *reservations = (struct vr_reservations){0};
}

// What a stranger's recording contradicts is told by whoever undoes the history; here it is passed over.
static enum vram_status tolerate_conflict(enum vram_status status) { return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status; }

static struct tenant *at_or_below(const struct following *following, uint64_t address) {
    const struct vr_mapped_range *range = vr_mapped_before(&following->in_use, address);
    return range == NULL ? NULL : &following->tenants[range->owner];
}

static struct tenant *tenant_above(const struct following *following, uint64_t address) {
    const struct vr_mapped_range *range = vr_mapped_after(&following->in_use, address);
    return range == NULL ? NULL : &following->tenants[range->owner];
}

// --- tenants come, grow and go ----------------------------------------------------------------------------------------------------
static void note_distance(struct following *following, const struct tenant *lower, const struct tenant *higher) {
    struct vr_reservations *known = following->reservations;
    if (lower == NULL || higher == NULL || !lower->expandable) return;
    if (lower->segment == NONE) {
        if (higher->base - lower->base < known->shortest) known->shortest = higher->base - lower->base;
    } else if (higher->base < known->ends[lower->segment]) {
        known->ends[lower->segment] = higher->base;
    }
}

static void note_neighbours(struct following *following, uint64_t base) {
    const struct tenant *tenant = at_or_below(following, base);
    note_distance(following, base == 0 ? NULL : at_or_below(following, base - 1), tenant);
    note_distance(following, tenant, tenant_above(following, base));
}

static enum vram_status occupy_range(struct following *following, uint32_t number) {
    const struct tenant *tenant = &following->tenants[number];
    const struct vr_mapped_range range = {.start = tenant->base, .end = tenant->end, .owner = number};
    VR_TRY(tolerate_conflict(vr_mapped_add(&following->in_use, &range)));
    note_neighbours(following, tenant->base);
    return VRAM_OK;
}

static enum vram_status leave_range(struct following *following, const struct tenant *tenant) {
    return tolerate_conflict(vr_mapped_cut(&following->in_use, tenant->base, tenant->end));
}

static enum vram_status move_in(struct following *following, const struct tenant *tenant) {
    if (following->count >= NONE) return VRAM_LIMIT;
    VR_TRY(vr_grow((void **)&following->tenants, &following->capacity, following->count + 1, sizeof *following->tenants));
    following->tenants[following->count++] = *tenant;
    return occupy_range(following, (uint32_t)(following->count - 1));
}

// The tenant has this range, too. One of the start state may begin below what was mapped of it then.
static enum vram_status extend_tenant(struct following *following, struct tenant *tenant, uint64_t start, uint64_t end) {
    VR_TRY(leave_range(following, tenant));
    if (start < tenant->base) tenant->base = start;
    if (end > tenant->end) tenant->end = end;
    tenant->mapped_bytes += end - start;
    if (tenant->segment != NONE) following->reservations->bases[tenant->segment] = tenant->base;
    return occupy_range(following, (uint32_t)(tenant - following->tenants));
}

// Whether the range lies in the tenant's reservation, as far as that can be told.
static bool tenant_holds(const struct following *following, const struct tenant *tenant, const struct tenant *range) {
    if (tenant == NULL || !tenant->expandable || tenant->stream != range->stream || tenant->pool != range->pool) return false;
    if (tenant->small != range->small) return false;
    const uint64_t base = tenant->base < range->base ? tenant->base : range->base,
                   end = tenant->end > range->end ? tenant->end : range->end;
    const uint64_t distance = tenant->base < range->base ? range->base - tenant->base : tenant->base - range->base;
    return end - base <= following->longest && distance % vr_recorded_device_page(following->recorded->options, range->small) == 0;
}

// A reservation that was made inside the history begins with what was mapped first.
static enum vram_status map_tenant(struct following *following, const struct tenant *range) {
    struct tenant *below = at_or_below(following, range->base), *higher = tenant_above(following, range->base);
    if (tenant_holds(following, below, range)) return extend_tenant(following, below, range->base, range->end);
    if (higher != NULL && higher->segment != NONE && tenant_holds(following, higher, range))
        return extend_tenant(following, higher, range->base, range->end);
    return move_in(following, range);
}

// One that has nothing mapped any more gives its addresses back.
static enum vram_status unmap_span(struct following *following, uint64_t start, uint64_t size) {
    struct tenant *tenant = at_or_below(following, start);
    if (tenant == NULL || !tenant->expandable || start >= tenant->end || size > tenant->mapped_bytes) return VRAM_OK;
    tenant->mapped_bytes -= size;
    return tenant->mapped_bytes == 0 ? leave_range(following, tenant) : VRAM_OK;
}

// --- the history --------------------------------------------------------------------------------------------------------------------
static enum vram_status follow_event(struct following *following, size_t event) {
    const struct vr_history *history = following->recorded->history;
    const enum vr_action action = history->action[event];
    const uint64_t address = history->address[event], size = history->size_bytes[event];
    const struct tenant tenant = {.base = address,
                                  .end = address + size,
                                  .mapped_bytes = size,
                                  .stream = vr_entry_stream(history, event),
                                  .pool = vr_recorded_device_pool(following->recorded, event),
                                  .segment = NONE,
                                  .small = size == 2 * VR_MIB,
                                  .expandable = action == VR_ACTION_SEGMENT_MAP};
    uint64_t end = 0;
    if (vr_recorded_device_leaves_out(following->recorded, event) || size == 0 || !vr_add_u64(address, size, &end)) return VRAM_OK;
    switch (action) {
    case VR_ACTION_SEGMENT_MAP: return map_tenant(following, &tenant);
    case VR_ACTION_SEGMENT_ALLOC: return move_in(following, &tenant);
    case VR_ACTION_SEGMENT_UNMAP: return unmap_span(following, address, size);
    case VR_ACTION_SEGMENT_FREE: return tolerate_conflict(vr_mapped_cut(&following->in_use, address, end));
    default: return VRAM_OK;
    }
}

static enum vram_status begin_following(struct following *following, const struct vr_start *start) {
    for (size_t i = 0; i < start->segment_count; i++) {
        const struct vr_start_segment *segment = &start->segments[i];
        const struct tenant tenant = {.base = segment->address,
                                      .end = segment->address + segment->size,
                                      .mapped_bytes = segment->size,
                                      .stream = segment->stream,
                                      .pool = segment->pool,
                                      .segment = (uint32_t)i,
                                      .small = segment->small,
                                      .expandable = segment->expandable};
        struct tenant *below = at_or_below(following, segment->address);
        following->reservations->bases[i] = segment->address;
        following->reservations->ends[i] = UINT64_MAX;
        const bool joins = segment->expandable && tenant_holds(following, below, &tenant);
        VR_TRY(joins ? extend_tenant(following, below, tenant.base, tenant.end) : move_in(following, &tenant));
    }
    return VRAM_OK;
}

enum vram_status vr_reservations_find(const struct vr_recorded_device *recorded, const struct vr_start *start, uint64_t longest,
                                      struct vr_reservations *reservations) {
    struct following following = {.recorded = recorded, .reservations = reservations, .longest = longest};
    *reservations = (struct vr_reservations){.shortest = UINT64_MAX};
    reservations->bases = malloc((start->segment_count + 1) * sizeof *reservations->bases);
    reservations->ends = malloc((start->segment_count + 1) * sizeof *reservations->ends);
    const bool made = reservations->bases != NULL && reservations->ends != NULL;
    enum vram_status status = made ? begin_following(&following, start) : VRAM_NO_HOST_MEMORY;
    for (size_t event = 0; event < recorded->history->count && status == VRAM_OK; event++) status = follow_event(&following, event);
    free(following.tenants);
    vr_mapped_release(&following.in_use);
    return status;
}
