// Rebuilds segments and blocks as they were after an event, and clusters blocks that are too small to be seen.
#include "explore/explored/state_at_event.h"

#include "config/size_rules.h"
#include "explore/query/drawn_shapes.h"
#include "explore/tables/lanes.h"

struct vr_moments {
    const struct vr_lifetimes *allocated, *blocks; // `blocks`: the lifetimes that are drawn as blocks
    enum vr_lifetime_kind lifetime_kind;           // of the blocks
    const struct vr_segment_lives *segments;
    struct vr_block_sizing *sizing; // until the sizes are complete
    struct vr_block_sizes sizes;    // after that
    uint8_t *kind;                  // by row of the segment lives: enum vram_report_kind
};

// --- sources of moments -------------------------------------------------------------------------------------------------
enum vr_lifetime_kind vr_moment_lifetime_kind(const struct vr_history *history) {
    bool requests = false;
    for (size_t i = 0; i < history->count; i++) {
        const uint8_t action = history->action[i];
        if (action == VR_ACTION_FREE_COMPLETED || action == VR_ACTION_FREE) return VR_LIFETIME_ACTIVE;
        requests = requests || action == VR_ACTION_FREE_REQUESTED;
    }
    return requests ? VR_LIFETIME_ALLOCATED : VR_LIFETIME_ACTIVE;
}

static enum vram_status make_moments(struct vr_explored_device *device, struct vr_moments *moments) {
    const struct vr_event_rows *rows = NULL;
    moments->lifetime_kind = vr_moment_lifetime_kind(device->view->history);
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &moments->allocated));
    VR_TRY(vr_explored_lifetimes(device, moments->lifetime_kind, &moments->blocks));
    VR_TRY(vr_explored_segments(device, &moments->segments));
    VR_TRY(vr_explored_rows(device, moments->lifetime_kind, &rows));
    VR_TRY(vr_segment_kinds(device->view, moments->segments, &moments->kind));
    return vr_block_sizing_create(device->view, moments->blocks, rows, moments->segments, &moments->sizing);
}

static enum vram_status advance_moments(struct vr_moments *moments, size_t most, double *share) {
    *share = 1;
    if (moments->sizing == NULL) return VRAM_OK;
    VR_TRY(vr_block_sizing_go_on(moments->sizing, most, share));
    if (*share < 1) return VRAM_OK;
    vr_block_sizing_take(moments->sizing, &moments->sizes);
    vr_block_sizing_destroy(moments->sizing);
    moments->sizing = NULL;
    return VRAM_OK;
}

void vr_moments_destroy(struct vr_moments *moments) {
    if (moments == NULL) return;
    vr_block_sizing_destroy(moments->sizing);
    vr_block_sizes_release(&moments->sizes);
    free(moments->kind);
    free(moments);
}

enum vram_status vr_explored_moments_go_on(struct vr_explored_device *device, size_t most, double *share) {
    if (device->moments == NULL) {
        struct vr_moments *made = calloc(1, sizeof *made);
        if (made == NULL) return VRAM_NO_HOST_MEMORY;
        const enum vram_status status = make_moments(device, made);
        if (status != VRAM_OK) {
            vr_moments_destroy(made);
            return status;
        }
        device->moments = made;
    }
    const enum vram_status status = advance_moments(device->moments, most, share);
    if (status == VRAM_OK) return VRAM_OK;
    vr_moments_destroy(device->moments);
    device->moments = NULL;
    return status;
}

// Sets *moments to the tables from which the device's moments are built, computed at first use; borrowed. LIMIT, NO_HOST_MEMORY.
static enum vram_status explored_moments(struct vr_explored_device *device, const struct vr_moments **moments) {
    double share = 0;
    VR_TRY(vr_explored_moments_go_on(device, SIZE_MAX, &share));
    *moments = device->moments;
    return VRAM_OK;
}

// --- one moment ------------------------------------------------------------------------------------------------------------
static struct vr_moment_segment segment_of(const struct vr_moments *moments, uint32_t row) {
    const struct vr_segment_lives *lives = moments->segments;
    const uint64_t address = lives->lifetimes.address[row];
    return (struct vr_moment_segment){.address = address,
                                      .end = address + lives->lifetimes.size_bytes[row],
                                      .row = row,
                                      .stream = lives->stream[row],
                                      .pool_first = lives->pool_first[row],
                                      .pool_second = lives->pool_second[row],
                                      .pool_known = (lives->flags[row] & VR_SEGMENT_POOL_KNOWN) != 0,
                                      .expandable = (lives->flags[row] & VR_SEGMENT_MAPPED) != 0,
                                      .kind = (enum vram_report_kind)moments->kind[row]};
}

// Returns whether b continues a, as pages of one expandable segment do.
static bool goes_on(const struct vr_moment_segment *a, const struct vr_moment_segment *b) {
    const bool same_pool = !a->pool_known || !b->pool_known || (a->pool_first == b->pool_first && a->pool_second == b->pool_second);
    return a->expandable && b->expandable && a->end == b->address && a->stream == b->stream && same_pool;
}

// The segments of a moment before they are merged with the blocks.
struct reserved_list {
    struct vr_moment_segment *segment; // by address
    size_t count, segment_capacity;
};

static enum vram_status find_segments(const struct vr_moments *moments, int64_t event, struct reserved_list *found) {
    const struct vr_segment_lives *lives = moments->segments;
    for (size_t i = 0; i < lives->lifetimes.count; i++) {
        const uint32_t row = lives->by_address[i];
        if (!vr_lifetimes_live_at(&lives->lifetimes, row, event)) continue;
        const struct vr_moment_segment segment = segment_of(moments, row);
        if (found->count != 0 && goes_on(&found->segment[found->count - 1], &segment)) {
            found->segment[found->count - 1].end = segment.end;
            continue;
        }
        VR_TRY(VR_GROW(found, segment, found->count + 1));
        found->segment[found->count++] = segment;
    }
    return VRAM_OK;
}

static struct vr_moment_block block_of(const struct vr_moments *moments, uint32_t row, int64_t event) {
    const struct vr_lifetimes *lives = moments->blocks;
    struct vr_moment_block block = {
        .address = lives->address[row], .requested_bytes = lives->size_bytes[row], .row = row, .stack = lives->stack[row]};
    const size_t allocated = vr_other_row(lives, moments->allocated, row);
    bool estimated = false;
    block.allocated = allocated == SIZE_MAX ? VR_NO_ROW : (uint32_t)allocated;
    block.size_bytes = vr_block_size_at(&moments->sizes, row, &estimated);
    const bool held = block.allocated != VR_NO_ROW && vr_lifetimes_live_at(moments->allocated, block.allocated, event);
    block.flags = (uint8_t)((held ? 0 : VR_BLOCK_PENDING) | (estimated ? VR_BLOCK_ESTIMATED : 0) |
                            (lives->birth[row] == VR_BEFORE_TRACE ? VR_BLOCK_BEFORE : 0));
    return block;
}

// Radix-sorts by address, byte by byte, skipping bytes that are equal in all addresses.
static enum vram_status sort_blocks(struct vr_moment_block **blocks, size_t count) {
    struct vr_moment_block *from = *blocks, *to = malloc((count + 1) * sizeof *to);
    if (to == NULL) return VRAM_NO_HOST_MEMORY;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t first[257] = {0};
        for (size_t i = 0; i < count; i++) first[((from[i].address >> shift) & 0xff) + 1]++;
        if (count != 0 && first[((from[0].address >> shift) & 0xff) + 1] == count) continue;
        for (unsigned b = 0; b < 256; b++) first[b + 1] += first[b];
        for (size_t i = 0; i < count; i++) to[first[(from[i].address >> shift) & 0xff]++] = from[i];
        struct vr_moment_block *swapped = from;
        from = to;
        to = swapped;
    }
    free(to);
    *blocks = from;
    return VRAM_OK;
}

static enum vram_status find_blocks(struct vr_explored_device *device, const struct vr_moments *moments, int64_t event,
                                    struct vr_moment *moment) {
    uint32_t *rows = NULL;
    size_t count = 0;
    VR_TRY(vr_explored_live(device, moments->lifetime_kind, event, &rows, &count));
    moment->blocks = malloc((count + 1) * sizeof *moment->blocks);
    for (size_t i = 0; i < count && moment->blocks != NULL; i++) moment->blocks[i] = block_of(moments, rows[i], event);
    free(rows);
    if (moment->blocks == NULL) return VRAM_NO_HOST_MEMORY;
    moment->block_count = count;
    VR_TRY(sort_blocks(&moment->blocks, count));
    for (size_t i = 0; i + 1 < count; i++) {
        const uint64_t room = moment->blocks[i + 1].address - moment->blocks[i].address;
        if (moment->blocks[i].size_bytes > room) moment->blocks[i].size_bytes = room;
    }
    return VRAM_OK;
}

// Puts a block outside every segment into its own segment, or into the preceding such segment if it touches that.
static enum vram_status put_outside(struct vr_moment *moment, size_t block) {
    const struct vr_moment_block *at = &moment->blocks[block];
    struct vr_moment_segment *last = moment->segment_count == 0 ? NULL : &moment->segments[moment->segment_count - 1];
    uint64_t end = UINT64_MAX;
    (void)vr_add_u64(at->address, at->size_bytes, &end);
    if (last != NULL && last->row == VR_NO_ROW && last->end == at->address) {
        last->end = end;
        return VRAM_OK;
    }
    VR_TRY(VR_GROW(moment, segments, moment->segment_count + 1));
    moment->segments[moment->segment_count++] =
        (struct vr_moment_segment){.address = at->address, .end = end, .row = VR_NO_ROW, .first_block = (uint32_t)block};
    return VRAM_OK;
}

// Merges segments and blocks, both sorted by address, into one list.
static enum vram_status put_together(const struct reserved_list *found, struct vr_moment *moment) {
    size_t block = 0;
    for (size_t s = 0; s <= found->count; s++) {
        const uint64_t begin = s == found->count ? UINT64_MAX : found->segment[s].address;
        for (; block < moment->block_count && (moment->blocks[block].address < begin || s == found->count); block++)
            VR_TRY(put_outside(moment, block));
        if (s == found->count) break;
        VR_TRY(VR_GROW(moment, segments, moment->segment_count + 1));
        struct vr_moment_segment *segment = &moment->segments[moment->segment_count++];
        *segment = found->segment[s];
        segment->first_block = (uint32_t)block;
        while (block < moment->block_count && moment->blocks[block].address < segment->end) {
            struct vr_moment_block *inside = &moment->blocks[block++];
            if (inside->size_bytes > segment->end - inside->address) inside->size_bytes = segment->end - inside->address;
        }
    }
    return VRAM_OK;
}

static void add_free(struct vr_moment_sums *sums, uint64_t bytes, bool whole_segment) {
    if (bytes == 0) return;
    sums->free_bytes += bytes;
    sums->free_pieces++;
    if (bytes > sums->largest_free_bytes) sums->largest_free_bytes = bytes;
    if (whole_segment)
        sums->cached_bytes += bytes;
    else if (bytes > sums->largest_hole_bytes)
        sums->largest_hole_bytes = bytes;
}

static void add_up(struct vr_moment *moment) {
    struct vr_moment_sums *sums = &moment->sums;
    for (size_t s = 0; s < moment->segment_count; s++) {
        const struct vr_moment_segment *segment = &moment->segments[s];
        const size_t end = s + 1 < moment->segment_count ? moment->segments[s + 1].first_block : moment->block_count;
        if (segment->row == VR_NO_ROW) {
            sums->outside_bytes += segment->end - segment->address;
            continue;
        }
        uint64_t cursor = segment->address;
        sums->reserved_bytes += segment->end - segment->address;
        for (size_t b = segment->first_block; b < end; b++) {
            const struct vr_moment_block *block = &moment->blocks[b];
            const bool pending = (block->flags & VR_BLOCK_PENDING) != 0;
            add_free(sums, block->address - cursor, false);
            *(pending ? &sums->pending_bytes : &sums->allocated_bytes) += block->size_bytes;
            sums->requested_bytes += pending ? 0 : block->requested_bytes;
            cursor = block->address + block->size_bytes;
        }
        add_free(sums, segment->end - cursor, segment->first_block == end);
    }
}

enum vram_status vr_moment_at(struct vr_explored_device *device, int64_t event, struct vr_moment *moment) {
    assert(event >= -1 && event < (int64_t)device->view->history->count);
    const struct vr_moments *moments = NULL;
    VR_TRY(explored_moments(device, &moments));
    struct vr_moment made = {.segments = NULL};
    struct reserved_list found = {.segment = NULL};
    enum vram_status status = find_segments(moments, event, &found);
    if (status == VRAM_OK) status = find_blocks(device, moments, event, &made);
    if (status == VRAM_OK) status = put_together(&found, &made);
    free(found.segment);
    if (status != VRAM_OK) {
        vr_moment_release(&made);
        return status;
    }
    add_up(&made);
    *moment = made;
    return VRAM_OK;
}

void vr_moment_release(struct vr_moment *moment) {
    free(moment->segments);
    free(moment->blocks);
    *moment = (struct vr_moment){.segments = NULL};
}

static bool segment_holds(const struct vr_moment *moment, size_t s, struct vr_moment_sums *sums) {
    const struct vr_moment_segment *segment = &moment->segments[s];
    const size_t end = s + 1 < moment->segment_count ? moment->segments[s + 1].first_block : moment->block_count;
    if (segment->end < segment->address || segment->first_block > end || end > moment->block_count) return false;
    if (s != 0 && moment->segments[s - 1].end > segment->address) return false;
    uint64_t cursor = segment->address;
    for (size_t b = segment->first_block; b < end; b++) {
        const struct vr_moment_block *block = &moment->blocks[b];
        if (block->address < cursor || block->size_bytes > segment->end - block->address) return false;
        cursor = block->address + block->size_bytes;
        *((block->flags & VR_BLOCK_PENDING) != 0 ? &sums->pending_bytes : &sums->allocated_bytes) += block->size_bytes;
    }
    *(segment->row == VR_NO_ROW ? &sums->outside_bytes : &sums->reserved_bytes) += segment->end - segment->address;
    return true;
}

bool vr_moment_check(const struct vr_moment *moment) {
    const struct vr_moment_sums *sums = &moment->sums;
    struct vr_moment_sums found = {.reserved_bytes = 0};
    if (moment->segment_count == 0 ? moment->block_count != 0 : moment->segments[0].first_block != 0) return false;
    for (size_t s = 0; s < moment->segment_count; s++) {
        if (!segment_holds(moment, s, &found)) return false;
    }
    return sums->reserved_bytes == sums->allocated_bytes + sums->pending_bytes + sums->free_bytes &&
           sums->cached_bytes <= sums->free_bytes && sums->largest_free_bytes <= sums->free_bytes &&
           sums->largest_hole_bytes <= sums->free_bytes - sums->cached_bytes && sums->reserved_bytes == found.reserved_bytes &&
           sums->outside_bytes == found.outside_bytes &&
           sums->allocated_bytes + sums->pending_bytes + sums->outside_bytes >= found.allocated_bytes + found.pending_bytes;
}

static size_t segment_end(const struct vr_moment *moment, size_t segment) {
    return segment + 1 < moment->segment_count ? moment->segments[segment + 1].first_block : moment->block_count;
}

// Returns the end of the bundle that begins with block `first`.
static size_t bundle_end(const struct vr_moment *moment, size_t first, size_t end, uint64_t grain) {
    const struct vr_moment_block *block = moment->blocks;
    size_t next = first + 1;
    if (block[first].size_bytes >= grain) return next;
    while (next < end && block[next].size_bytes < grain && block[next].address + block[next].size_bytes - block[first].address <= grain)
        next++;
    return next;
}

// Returns the number of bundles of a grain; stores them if `bundle` is not NULL.
static size_t gather_bundle(const struct vr_moment *moment, uint64_t grain, struct vr_bundle *bundle) {
    size_t count = 0;
    for (size_t s = 0; s < moment->segment_count; s++) {
        const size_t end = segment_end(moment, s);
        for (size_t first = moment->segments[s].first_block; first < end; count++) {
            const size_t next = bundle_end(moment, first, end, grain);
            if (bundle != NULL) bundle[count] = (struct vr_bundle){first, next};
            first = next;
        }
    }
    return count;
}

// Finds the finest grain with few enough bundles, by doubling; every segment with blocks has at least one bundle.
static uint64_t grain_for(const struct vr_moment *moment, size_t most) {
    const struct vr_moment_sums *sums = &moment->sums;
    const uint64_t all = sums->reserved_bytes + sums->outside_bytes;
    if (moment->block_count <= most) return 0;
    uint64_t grain = all / most / 4 + VR_MIN_BLOCK;
    while (grain < all && gather_bundle(moment, grain, NULL) > most) grain *= 2;
    return grain;
}

enum vram_status vr_bundles_all(const struct vr_moment *moment, size_t most, struct vr_bundles *bundles) {
    const uint64_t grain = grain_for(moment, most);
    const size_t count = gather_bundle(moment, grain, NULL);
    struct vr_bundle *made = malloc((count + 1) * sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    (void)gather_bundle(moment, grain, made);
    *bundles = (struct vr_bundles){.bundle = made, .count = count, .grain_bytes = grain, .end_segment = moment->segment_count};
    return VRAM_OK;
}

enum vram_status vr_bundles_page(const struct vr_moment *moment, size_t first, size_t most, struct vr_bundles *bundles) {
    const size_t left = first < moment->block_count ? moment->block_count - first : 0, count = left < most ? left : most;
    struct vr_bundle *made = malloc((count + 1) * sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) made[i] = (struct vr_bundle){first + i, first + i + 1};
    *bundles = (struct vr_bundles){.bundle = made, .count = count};
    VR_LOWER_BOUND(bundles->first_segment, s, 0, moment->segment_count, segment_end(moment, s) <= first);
    VR_LOWER_BOUND(bundles->end_segment, s, 0, moment->segment_count, moment->segments[s].first_block < first + count);
    if (bundles->end_segment < bundles->first_segment) bundles->end_segment = bundles->first_segment;
    return VRAM_OK;
}

void vr_bundles_release(struct vr_bundles *bundles) {
    free(bundles->bundle);
    *bundles = (struct vr_bundles){.bundle = NULL};
}

struct vr_bundle_sums vr_bundle_sum(const struct vr_moment *moment, const struct vr_bundle *bundle) {
    assert(bundle->first < bundle->end && bundle->end <= moment->block_count);
    const struct vr_moment_block *block = moment->blocks;
    const struct vr_moment_block *last = &block[bundle->end - 1];
    struct vr_bundle_sums sums = {.largest = bundle->first, .span_bytes = last->address + last->size_bytes - block[bundle->first].address};
    uint64_t pending = 0;
    uint8_t estimated = 0;
    for (size_t b = bundle->first; b < bundle->end; b++) {
        sums.bytes += block[b].size_bytes;
        sums.requested_bytes += block[b].requested_bytes;
        pending += (block[b].flags & VR_BLOCK_PENDING) != 0 ? block[b].size_bytes : 0;
        estimated |= block[b].flags & VR_BLOCK_ESTIMATED;
        if (block[b].size_bytes > block[sums.largest].size_bytes) sums.largest = b;
    }
    sums.flags = (uint8_t)((block[sums.largest].flags & VR_BLOCK_BEFORE) | estimated | (pending > sums.bytes / 2 ? VR_BLOCK_PENDING : 0));
    return sums;
}
