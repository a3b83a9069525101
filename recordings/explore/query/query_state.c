// Answers `state`: segments and blocks as they were after an event.
#include <stdio.h>

#include "explore/explored/state_at_event.h"
#include "explore/query/selection.h"
#include "explore/tables/event_rows.h"
#include "model/recording.h"

// The default number of blocks in an answer, more than fit on a screen, and the maximum.
enum { USUAL_BLOCKS = 1 << 15, MOST_BLOCKS = 1 << 20 };

static const char *const kinds[] = {"unknown", "small", "large"};

// The stream, pool and size class that a segment serves. Segments refer to them by number.
struct owners {
    struct vr_moment_segment *owner; // only the compared members are set
    size_t count, owner_capacity;
};

static bool same_owner(const struct vr_moment_segment *a, const struct vr_moment_segment *b) {
    return a->stream == b->stream && a->pool_known == b->pool_known && a->pool_first == b->pool_first && a->pool_second == b->pool_second &&
           a->kind == b->kind && a->expandable == b->expandable && (a->row == VR_NO_ROW) == (b->row == VR_NO_ROW);
}

static enum vram_status owner_of(struct owners *owners, const struct vr_moment_segment *segment, uint32_t *number) {
    // Search backwards, because adjacent segments mostly have the same owner.
    for (size_t i = owners->count; i-- > 0;) {
        if (!same_owner(&owners->owner[i], segment)) continue;
        *number = (uint32_t)i;
        return VRAM_OK;
    }
    VR_TRY(VR_GROW(owners, owner, owners->count + 1));
    *number = (uint32_t)owners->count;
    owners->owner[owners->count++] = *segment;
    return VRAM_OK;
}

static void put_owners(struct vr_json *json, const struct owners *owners) {
    vr_json_array(json, "owners");
    for (size_t i = 0; i < owners->count; i++) {
        const struct vr_moment_segment *owner = &owners->owner[i];
        vr_json_object(json, NULL);
        if (owner->row == VR_NO_ROW) {
            vr_json_bool(json, "reserved", false);
        } else {
            char stream[24];
            snprintf(stream, sizeof stream, "%lld", (long long)owner->stream);
            vr_json_string(json, "stream", stream);
            vr_json_string(json, "kind", kinds[owner->kind]);
            vr_json_bool(json, "expandable", owner->expandable);
            if (owner->pool_known) {
                vr_json_array(json, "pool");
                vr_json_u64(json, NULL, owner->pool_first);
                vr_json_u64(json, NULL, owner->pool_second);
                vr_json_array_end(json);
            }
        }
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static enum vram_status put_state_segments(struct vr_answer *answer, const struct vr_segment_lives *lives, const struct vr_moment *moment,
                                           const struct vr_bundles *bundles) {
    struct owners owners = {.owner = NULL};
    enum vram_status status = VRAM_OK;
    size_t next = 0;
    const size_t low = vr_answer_column(answer, "segment_low", VR_U32), high = vr_answer_column(answer, "segment_high", VR_U32);
    const size_t bytes = vr_answer_column(answer, "segment_bytes", VR_F64), owner = vr_answer_column(answer, "segment_owner", VR_U32);
    const size_t first = vr_answer_column(answer, "segment_first", VR_U32), stack = vr_answer_column(answer, "segment_stack", VR_U32);
    for (size_t s = bundles->first_segment; s < bundles->end_segment && status == VRAM_OK; s++) {
        const struct vr_moment_segment *segment = &moment->segments[s];
        uint32_t number = 0;
        status = owner_of(&owners, segment, &number);
        while (next < bundles->count && bundles->bundle[next].first < segment->first_block) next++;
        vr_answer_u32(answer, low, (uint32_t)segment->address);
        vr_answer_u32(answer, high, (uint32_t)(segment->address >> 32));
        vr_answer_f64(answer, bytes, (double)(segment->end - segment->address));
        vr_answer_u32(answer, owner, number);
        vr_answer_u32(answer, first, (uint32_t)next);
        vr_answer_u32(answer, stack, segment->row == VR_NO_ROW ? 0 : lives->lifetimes.stack[segment->row]);
    }
    vr_answer_u32(answer, first, (uint32_t)bundles->count);
    if (status == VRAM_OK) put_owners(&answer->json, &owners);
    free(owners.owner);
    return status;
}

static void put_blocks(struct vr_answer *answer, struct vr_sites *sites, const uint32_t *versions, const struct vr_moment *moment,
                       const struct vr_bundles *bundles) {
    const size_t row = vr_answer_column(answer, "block_row", VR_U32), offset = vr_answer_column(answer, "block_offset", VR_F64);
    const size_t bytes = vr_answer_column(answer, "block_bytes", VR_F64), requested = vr_answer_column(answer, "block_asked", VR_F64);
    const size_t flags = vr_answer_column(answer, "block_flags", VR_U8), stack = vr_answer_column(answer, "block_stack", VR_U32);
    const size_t site = vr_answer_column(answer, "block_site", VR_U32), version = vr_answer_column(answer, "block_version", VR_U32);
    const size_t span = vr_answer_column(answer, "block_span", VR_F64), at = vr_answer_column(answer, "block_at", VR_F64);
    const size_t blocks = vr_answer_column(answer, "block_count", VR_U32);
    size_t segment = bundles->first_segment;
    for (size_t i = 0; i < bundles->count; i++) {
        const struct vr_bundle *bundle = &bundles->bundle[i];
        const struct vr_bundle_sums sums = vr_bundle_sum(moment, bundle);
        const struct vr_moment_block *largest = &moment->blocks[sums.largest];
        while (segment + 1 < moment->segment_count && moment->segments[segment + 1].first_block <= bundle->first) segment++;
        const uint64_t begin = moment->segments[segment].address;
        vr_answer_u32(answer, row, largest->allocated);
        vr_answer_f64(answer, offset, (double)(moment->blocks[bundle->first].address - begin));
        vr_answer_f64(answer, span, (double)sums.span_bytes);
        vr_answer_f64(answer, at, (double)(largest->address - begin));
        vr_answer_u32(answer, blocks, (uint32_t)(bundle->end - bundle->first));
        vr_answer_f64(answer, bytes, (double)sums.bytes);
        vr_answer_f64(answer, requested, (double)sums.requested_bytes);
        vr_answer_u8(answer, flags, sums.flags);
        vr_answer_u32(answer, stack, largest->stack);
        vr_answer_u32(answer, site, vr_sites_frame(sites, largest->stack));
        vr_answer_u32(answer, version, largest->allocated == VR_NO_ROW ? 0 : versions[largest->allocated]);
    }
}

// A call site, with the bytes of its blocks.
struct site {
    uint32_t frame;
    uint32_t count;
    uint64_t bytes;
};

enum { MOST_SITES = 24 };

static int sites_by_bytes(const void *a, const void *b) {
    const struct site *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    return VR_ORDER(x->frame, y->frame);
}

static enum vram_status put_site_names(struct vr_json *json, const struct vr_sites *sites, const struct site *found, size_t count) {
    struct vr_arena arena = {0};
    enum vram_status status = VRAM_OK;
    vr_json_array(json, "sites");
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        const char *name = "";
        status = vr_sites_name(sites, found[i].frame, &arena, &name);
        vr_json_object(json, NULL);
        vr_json_u64(json, "site", found[i].frame);
        vr_json_string(json, "name", name);
        vr_json_u64(json, "bytes", found[i].bytes);
        vr_json_u64(json, "count", found[i].count);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    vr_arena_release(&arena);
    return status;
}

struct site_sums {
    struct vr_map known; // frame -> index + 1
    struct site *site;
    size_t count, site_capacity;
};

static enum vram_status sum_sites(struct vr_sites *sites, const struct vr_moment *moment, struct site_sums *sums) {
    for (size_t b = 0; b < moment->block_count; b++) {
        const uint32_t frame = vr_sites_frame(sites, moment->blocks[b].stack);
        size_t place = (size_t)vr_map_get(&sums->known, frame);
        if (place == 0) {
            VR_TRY(VR_GROW(sums, site, sums->count + 1));
            sums->site[sums->count] = (struct site){.frame = frame};
            place = ++sums->count;
            VR_TRY(vr_map_set(&sums->known, frame, place));
        }
        sums->site[place - 1].count++;
        sums->site[place - 1].bytes += moment->blocks[b].size_bytes;
    }
    return VRAM_OK;
}

static enum vram_status put_sites(struct vr_answer *answer, struct vr_sites *sites, const struct vr_moment *moment) {
    struct site_sums sums = {.site = NULL};
    enum vram_status status = sum_sites(sites, moment, &sums);
    if (sums.count != 0) qsort(sums.site, sums.count, sizeof *sums.site, sites_by_bytes);
    if (status == VRAM_OK) status = put_site_names(&answer->json, sites, sums.site, sums.count < MOST_SITES ? sums.count : MOST_SITES);
    vr_map_release(&sums.known);
    free(sums.site);
    return status;
}

static void put_sums(struct vr_json *json, const struct vr_moment_sums *sums) {
    vr_json_u64(json, "reserved_bytes", sums->reserved_bytes);
    vr_json_u64(json, "allocated_bytes", sums->allocated_bytes);
    vr_json_u64(json, "requested_bytes", sums->requested_bytes);
    vr_json_u64(json, "pending_bytes", sums->pending_bytes);
    vr_json_u64(json, "free_bytes", sums->free_bytes);
    vr_json_u64(json, "free_pieces", sums->free_pieces);
    vr_json_u64(json, "largest_free_bytes", sums->largest_free_bytes);
    vr_json_u64(json, "cached_bytes", sums->cached_bytes);
    vr_json_u64(json, "largest_hole_bytes", sums->largest_hole_bytes);
    vr_json_u64(json, "outside_bytes", sums->outside_bytes);
}

// Selects all blocks, in at most `limit` bundles, or, with `first`, a page of them.
static enum vram_status choose_blocks(const struct vr_query *query, const struct vr_moment *moment, struct vr_bundles *bundles) {
    int64_t first = 0, limit = 0;
    VR_TRY(vr_parameter_whole(query->parameters, "limit", 1, MOST_BLOCKS, USUAL_BLOCKS, &limit));
    VR_TRY(vr_parameter_whole(query->parameters, "first", 0, UINT32_MAX, -1, &first));
    if (first < 0) return vr_bundles_all(moment, (size_t)limit, bundles);
    return vr_bundles_page(moment, (size_t)first, (size_t)limit, bundles);
}

static enum vram_status put_moment(const struct vr_query *query, struct vr_explored_recording *recording, struct vr_explored_device *device,
                                   const struct vr_moment *moment) {
    const struct vr_segment_lives *lives = NULL;
    const uint32_t *versions = NULL;
    struct vr_bundles bundles;
    VR_TRY(vr_explored_segments(device, &lives));
    VR_TRY(vr_explored_versions(device, &versions));
    VR_TRY(choose_blocks(query, moment, &bundles));
    enum vram_status status = put_state_segments(query->answer, lives, moment, &bundles);
    if (status == VRAM_OK) put_blocks(query->answer, &recording->sites, versions, moment, &bundles);
    if (status == VRAM_OK) status = put_sites(query->answer, &recording->sites, moment);
    vr_json_u64(&query->answer->json, "grain_bytes", bundles.grain_bytes);
    vr_bundles_release(&bundles);
    return status;
}

enum vram_status vr_query_state(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    struct vr_moment moment;
    VR_TRY(vr_select_device(query, &recording, &device));
    int64_t event = 0;
    const int64_t last = (int64_t)device->view->history->count - 1;
    VR_TRY(vr_parameter_whole(query->parameters, "event", -1, last, last, &event));
    VR_TRY(vr_moment_at(device, event, &moment));
    vr_json_i64(&query->answer->json, "event", event);
    vr_json_u64(&query->answer->json, "segments", moment.segment_count);
    vr_json_u64(&query->answer->json, "blocks", moment.block_count);
    put_sums(&query->answer->json, &moment.sums);
    const enum vram_status status = put_moment(query, recording, device, &moment);
    vr_moment_release(&moment);
    return status;
}
