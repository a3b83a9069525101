// How recordings and snapshots show paged memory: every byte is mapped at one address, where it was last handed out, so that the mapped
// bytes add up to the reserved bytes.
#include "core/source/paged.h"

enum vram_status vr_paged_shown_room(struct vr_paged_page *page, size_t views) {
    return VR_GROW(page, shown, page->shown_count + 2 * views + 3);
}

static void notify_piece(const struct vr_paged_page *page, enum vr_record_action action, uint64_t base, uint64_t low, uint64_t high) {
    for (size_t i = 0; i < page->window_count; i++) {
        struct vr_paged_shard *own = page->windows[i].own;
        if (page->windows[i].address != base || !vr_has_listener(own->shard->device)) continue;
        struct vr_segment *segment = vr_segment_at(own->shard->device->allocator, vr_paged_region_of(own, base)->segment);
        if (action == VR_RECORD_SEGMENT_MAP && segment->stack == 0) segment->stack = vr_current_stack_kept();
        vr_notify_range(own->shard, action, segment, base + low, high - low);
        return;
    }
}

static void erase_shown(struct vr_paged_page *page, size_t at, size_t count) {
    page->shown_count -= count;
    memmove(&page->shown[at], &page->shown[at + count], (page->shown_count - at) * sizeof *page->shown);
}

static void insert_shown(struct vr_paged_page *page, size_t at, uint64_t low, uint64_t high, uint64_t base) {
    if (low == high) return;
    assert(page->shown_count < page->shown_capacity);
    memmove(&page->shown[at + 1], &page->shown[at], (page->shown_count - at) * sizeof *page->shown);
    page->shown[at] = (struct vr_paged_shown){low, high, base};
    page->shown_count++;
}

static void join_shown(struct vr_paged_page *page, size_t at) {
    if (at + 1 >= page->shown_count || page->shown[at].base != page->shown[at + 1].base) return;
    page->shown[at].high = page->shown[at + 1].high;
    erase_shown(page, at + 1, 1);
}

void vr_paged_show(struct vr_paged_page *page, uint64_t low, uint64_t high, uint64_t base) {
    size_t first, end;
    VR_LOWER_BOUND(first, i, 0, page->shown_count, page->shown[i].high <= low);
    bool changes = first == page->shown_count;
    for (end = first; end < page->shown_count && page->shown[end].low < high; end++) {
        const struct vr_paged_shown *piece = &page->shown[end];
        if (piece->base == base) continue;
        changes = true;
        notify_piece(page, VR_RECORD_SEGMENT_UNMAP, piece->base, piece->low > low ? piece->low : low,
                     piece->high < high ? piece->high : high);
    }
    if (!changes) return;
    for (size_t i = first; i < end; i++) {
        const struct vr_paged_shown *piece = &page->shown[i];
        if (piece->base == base) continue;
        notify_piece(page, VR_RECORD_SEGMENT_MAP, base, piece->low > low ? piece->low : low, piece->high < high ? piece->high : high);
    }
    if (first == end) notify_piece(page, VR_RECORD_SEGMENT_MAP, base, low, high);
    const struct vr_paged_shown below = first < end ? page->shown[first] : (struct vr_paged_shown){low, low, 0};
    const struct vr_paged_shown above = first < end ? page->shown[end - 1] : (struct vr_paged_shown){high, high, 0};
    erase_shown(page, first, end - first);
    size_t at = first;
    if (below.low < low) insert_shown(page, at++, below.low, low, below.base);
    insert_shown(page, at, low, high, base);
    if (above.high > high) insert_shown(page, at + 1, high, above.high, above.base);
    join_shown(page, at);
    if (at > 0) join_shown(page, at - 1);
}

void vr_paged_show_elsewhere(struct vr_paged_page *page, size_t window) {
    const uint64_t base = page->windows[window].address;
    for (size_t i = 0; i < page->shown_count;) {
        const struct vr_paged_shown piece = page->shown[i];
        if (piece.base != base) {
            i++;
        } else if (page->window_count == 1) {
            notify_piece(page, VR_RECORD_SEGMENT_UNMAP, base, piece.low, piece.high);
            erase_shown(page, i, 1);
        } else {
            vr_paged_show(page, piece.low, piece.high, page->windows[window == 0 ? 1 : 0].address);
            i = 0;
        }
    }
}
