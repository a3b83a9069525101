// Moves pages between streams, and between the pools of one stream. Only wholly free pages move, after their stream has finished with them,
// or with the new stream waiting for it.
#include "core/capture/captures.h"
#include "core/device.h"
#include "core/source/paged.h"

enum { MOST_LOOKED_AT = 256 }; // slots of a size whose pages are checked

// Returns whether the shard may lend its free pages: no graph contains its addresses, and its memory is not away.
static bool shard_lends(const struct vr_paged_shard *own) { return !own->is_small && !own->shard->vacant && !vr_paged_is_kept(own); }

static enum vram_status take_free(struct vr_paged_shard *from, struct vr_paged_shard *to, uint64_t until, uint64_t enough) {
    for (uint32_t page = from->first[VR_PAGED_FREE]; page != 0 && to->free_bytes < enough;) {
        const struct vr_paged_page *item = vr_paged_page_at(from->device, page);
        const uint32_t next = item->next;
        if (item->freed > until) break;
        VR_TRY(vr_paged_page_move(from->device, page, to));
        from->device->device->stats.moved_bytes += (int64_t)item->size;
        page = next;
    }
    return VRAM_OK;
}

// Updates which of its free pages the stream has finished with. Does not query a stream that is capturing.
static enum vram_status look_at(struct vr_paged_shard *other) {
    struct vr_device *device = other->device->device;
    if (vr_stream_is_capturing(device, other->shard->stream)) return VRAM_OK;
    if (other->fence == 0) {
        VR_TRY(vr_event_at(device, other->shard->stream, &other->fence));
        other->fence_at = other->device->uses;
    }
    if (other->fence == 0) return VRAM_OK;
    bool passed = false;
    VR_TRY(vr_event_passed(device, other->fence, &passed));
    if (!passed) return VRAM_OK;
    other->passed = other->fence_at;
    vr_event_return(device, other->fence);
    other->fence = 0;
    return VRAM_OK;
}

// Returns whether a shard may have free pages. Cheap, because every growth checks all streams, most of which have none.
static bool may_have_free(const struct vr_paged_shard *other, bool wait) {
    if (other->free_bytes != 0 || (wait && other->first[VR_PAGED_AHEAD] != 0)) return true;
    return other->small != NULL && vr_index_may_have(&other->shard->pool[VR_SMALL].index, other->device->unit);
}

enum vram_status vr_paged_take_from_others(struct vr_paged_shard *own, uint64_t enough, bool wait) {
    struct vr_device *device = own->device->device;
    for (size_t i = own->device->numbered_count; i-- > 0 && own->free_bytes < enough;) {
        struct vr_paged_shard *other = own->device->numbered[i];
        if (other->is_small || other == own || !may_have_free(other, wait) || !shard_lends(other)) continue;
        VR_TRY(vr_paged_small_return(other));
        if (wait) VR_TRY(vr_paged_claim_all(other));
        if (other->free_bytes == 0) continue;
        if (other->shard->stream == own->shard->stream && !vr_is_capturing(device, own->shard->stream)) {
            VR_TRY(take_free(other, own, UINT64_MAX, enough));
        } else if (!wait) {
            VR_TRY(look_at(other));
            VR_TRY(take_free(other, own, other->passed, enough));
        } else if (!vr_stream_is_capturing(device, other->shard->stream)) {
            VR_TRY(vr_streams_order(device, other->shard->stream, own->shard->stream));
            VR_TRY(take_free(other, own, UINT64_MAX, enough));
        }
    }
    return VRAM_OK;
}

// --- the pages of a slot ------------------------------------------------------------------------------------------------------------

// Gets whether the page is the shard's own, or can become so at once. Queries each other shard's stream once per round.
static enum vram_status can_have(struct vr_paged_shard *own, const struct vr_paged_page *page, bool *can) {
    struct vr_paged_shard *other = page->own;
    *can = other == own;
    if (*can || !shard_lends(other) || page->list != VR_PAGED_FREE) return VRAM_OK;
    *can = other->shard->stream == own->shard->stream && !vr_is_capturing(own->device->device, own->shard->stream);
    if (*can) return VRAM_OK;
    if (page->freed > other->passed && other->asked != own->device->rounds) {
        other->asked = own->device->rounds;
        VR_TRY(look_at(other));
    }
    *can = page->freed <= other->passed;
    return VRAM_OK;
}

// Takes all pages of the slot, or none.
static enum vram_status take_pages(struct vr_paged_shard *own, const struct vr_block *item, bool *taken) {
    const struct vr_paged_walk start = vr_paged_walk_block(own, item);
    struct vr_paged_walk walk = start;
    *taken = true;
    while (*taken && vr_paged_walk_next(&walk)) VR_TRY(can_have(own, walk.page, taken));
    walk = start;
    while (*taken && vr_paged_walk_next(&walk)) {
        if (walk.page->own == own) continue;
        VR_TRY(vr_paged_page_move(own->device, walk.number, own));
        own->device->device->stats.moved_bytes += (int64_t)walk.page->size;
    }
    return VRAM_OK;
}

// Returns whether the slot could be handed out if all its pages belonged to its shard.
static bool lacks_pages_alone(const struct vr_paged_shard *own, const struct vr_paged_slot *slot) {
    uint32_t foreign = 0;
    if (slot->linked)
        return slot->foreign != 0 && own->device->covered[slot - own->device->slots] == 0 && vr_paged_blocker(own->device, slot) == 0;
    return vr_paged_is_mapped(own, slot) && vr_paged_user(own, slot, &foreign) == 0 && foreign != 0;
}

enum vram_status vr_paged_take_for_slot(struct vr_paged_shard *own, uint64_t bytes) {
    struct vr_paged_device *device = own->device;
    const uint64_t number = vr_map_get(&own->numbers, bytes);
    if (number == 0) return VRAM_OK;
    struct vr_paged_size *size = &own->sizes[number];
    bool taken = false;
    device->rounds++;
    for (size_t place = 0; place < size->word_count * 64 && place < MOST_LOOKED_AT && !taken; place++) {
        if ((vr_paged_word_at(size, place / 64)->used >> place % 64 & 1) == 0) continue;
        const struct vr_paged_slot *slot = &device->slots[size->looks[place].slot];
        if (vr_paged_is_live(device, size->looks[place].slot) || !lacks_pages_alone(own, slot)) continue;
        VR_TRY(take_pages(own, vr_paged_block_of(slot), &taken));
    }
    return VRAM_OK;
}

enum vram_status vr_paged_take_for_small(struct vr_paged_shard *own) {
    struct vr_paged_device *device = own->device;
    if (own->free_bytes != 0) return VRAM_OK;
    device->rounds++;
    for (uint32_t number = 1; number < device->page_count; number++) {
        const struct vr_paged_page *page = vr_paged_page_at(device, number);
        bool can = page->size != 0 && page->list == VR_PAGED_FREE && vr_paged_small_window(own->small, number) != 0;
        if (can) VR_TRY(can_have(own, page, &can));
        if (!can) continue;
        VR_TRY(vr_paged_page_move(device, number, own));
        device->device->stats.moved_bytes += (int64_t)page->size;
        return VRAM_OK;
    }
    return vr_paged_take_from_others(own, device->unit, false);
}
