// Why requests failed: the picture of memory at the moment of each out-of-memory event, and what it says.
#include "analyze/device.h"
#include "analyze/layout.h"
#include "base/text.h"

#define SMALL_REQUEST_BYTES VR_MIB
#define BLOCK_UNIT_BYTES    512u

struct live_block {
    uint64_t address;
    uint64_t end;
    bool estimated; // the block is gone by the end: its size is the rounded request
};

static int by_address(const void *a, const void *b) {
    const struct live_block *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static bool is_expandable(const struct vr_view *view, const struct vram_report_device *device) {
    for (size_t i = 0; i < device->action_count; i++) {
        if (strcmp(device->actions[i].name, vr_action_name(VR_ACTION_SEGMENT_MAP)) == 0) return true;
    }
    const char *setting = vr_model_setting(view->model, "expandable_segments");
    return device->expandable_segments != 0 || (setting != NULL && strcmp(setting, "true") == 0);
}

// What the driver would be asked for: the allocator's segment sizes.
static uint64_t segment_for(uint64_t size_bytes, bool expandable) {
    if (size_bytes > UINT64_MAX / 2) return size_bytes;
    if (size_bytes <= SMALL_REQUEST_BYTES) return 2 * VR_MIB;
    if (expandable) return vr_round_up(size_bytes, 20 * VR_MIB);
    return size_bytes < 10 * VR_MIB ? 20 * VR_MIB : vr_round_up(size_bytes, 2 * VR_MIB);
}

// The blocks not reusable after the event, ascending.
static enum vram_status live_blocks(const struct vr_view *view, const struct vr_lifetimes *active, int64_t event,
                                    struct live_block **blocks, size_t *count) {
    struct live_block *found = NULL;
    size_t used = 0, capacity = 0;
    for (size_t i = 0; i < active->count; i++) {
        if (!vr_lifetimes_live_at(active, i, event)) continue;
        if (vr_grow((void **)&found, &capacity, used + 1, sizeof *found) != VRAM_OK) {
            free(found);
            return VRAM_NO_HOST_MEMORY;
        }
        const uint32_t block = active->death[i] == VR_NEVER ? vr_map_get(&active->final_blocks, active->address[i]) : 0;
        uint64_t size =
            active->size_bytes[i] > UINT64_MAX / 2 ? active->size_bytes[i] : vr_round_up(active->size_bytes[i], BLOCK_UNIT_BYTES);
        if (block != 0) size = view->model->blocks.size_bytes[view->blocks[block - 1]];
        struct live_block *live = &found[used++];
        *live = (struct live_block){.address = active->address[i], .end = UINT64_MAX, .estimated = block == 0};
        (void)vr_add_u64(live->address, size, &live->end);
    }
    if (used != 0) qsort(found, used, sizeof *found, by_address);
    *blocks = found;
    *count = used;
    return VRAM_OK;
}

// What the failing request could have used.
struct request {
    uint64_t stream;
    uint64_t pool_first, pool_second;
    enum vram_report_kind kind;
};

static void add_hole(struct vram_report_oom *oom, const struct request *request, const struct vr_range *range, uint64_t bytes) {
    oom->free_bytes += bytes;
    if (bytes > oom->largest_free_bytes) oom->largest_free_bytes = bytes;
    if (range->stream != request->stream) {
        oom->other_stream_bytes += bytes;
    } else if (range->kind != request->kind || range->pool_first != request->pool_first || range->pool_second != request->pool_second) {
        oom->other_pool_bytes += bytes;
    } else {
        oom->usable_bytes += bytes;
        if (bytes > oom->usable_largest_bytes) oom->usable_largest_bytes = bytes;
    }
}

// Adds up what lies between the live blocks of each range.
static void measure_holes(const struct vr_range *ranges, size_t range_count, const struct live_block *blocks, size_t block_count,
                          const struct request *request, struct vram_report_oom *oom) {
    size_t next = 0;
    for (size_t r = 0; r < range_count; r++) {
        uint64_t cursor = ranges[r].address;
        bool estimated = false;
        oom->reserved_bytes += ranges[r].end - ranges[r].address;
        for (;;) {
            const bool more = next < block_count && blocks[next].address < ranges[r].end;
            const uint64_t until = more ? blocks[next].address : ranges[r].end;
            // Large blocks are not split for a rest of up to 1 MiB: such a gap belongs to the block before it.
            const bool rest =
                estimated && ranges[r].kind != VRAM_REPORT_KIND_SMALL && until > cursor && until - cursor <= SMALL_REQUEST_BYTES;
            if (until > cursor && !rest) add_hole(oom, request, &ranges[r], until - cursor);
            if (!more) break;
            if (blocks[next].end > cursor) {
                cursor = blocks[next].end;
                estimated = blocks[next].estimated;
            }
            next++;
        }
    }
}

static enum vram_report_oom_cause find_cause(const struct vram_report_oom *oom) {
    const uint64_t size = oom->size_bytes, driver = oom->has_device_free ? oom->device_free_bytes : 0;
    const uint64_t in_reach = driver + oom->usable_bytes;
    if (oom->usable_largest_bytes >= size) return VRAM_OOM_CONTRADICTORY;
    if (oom->has_device_free && driver >= oom->segment_bytes) return VRAM_OOM_LIMIT;
    if (in_reach >= size && oom->usable_bytes != 0) return VRAM_OOM_FRAGMENTED;
    if (in_reach + oom->other_stream_bytes >= size) return VRAM_OOM_OTHER_STREAMS;
    if (in_reach + oom->other_stream_bytes + oom->other_pool_bytes >= size) return VRAM_OOM_OTHER_POOLS;
    if (in_reach + oom->other_stream_bytes + oom->other_pool_bytes + oom->pending_bytes >= size) return VRAM_OOM_PENDING;
    return VRAM_OOM_FULL;
}

static enum vram_status explain(const struct vram_report_oom *oom, struct vr_arena *arena, const char **text) {
    switch (oom->cause) {
    case VRAM_OOM_LIMIT:
        return vr_arena_printf(arena, text,
                               "the driver still had %s free, enough for a segment of %s: a memory limit of the process refused it",
                               vr_bytes(oom->device_free_bytes).text, vr_bytes(oom->segment_bytes).text);
    case VRAM_OOM_FRAGMENTED:
        return vr_arena_printf(arena, text, "fragmentation: %s lay free where the request could look, but the largest piece held %s",
                               vr_bytes(oom->usable_bytes).text, vr_bytes(oom->usable_largest_bytes).text);
    case VRAM_OOM_OTHER_STREAMS:
        return vr_arena_printf(arena, text, "%s lay free in the caches of other streams, where this stream cannot take it",
                               vr_bytes(oom->other_stream_bytes).text);
    case VRAM_OOM_OTHER_POOLS:
        return vr_arena_printf(arena, text,
                               "%s lay free in other pools (private pools or the other size class), where this request cannot take it",
                               vr_bytes(oom->other_pool_bytes).text);
    case VRAM_OOM_PENDING:
        return vr_arena_printf(arena, text, "%s was freed but still waited for other streams (record_stream)",
                               vr_bytes(oom->pending_bytes).text);
    case VRAM_OOM_CONTRADICTORY:
        return vr_arena_printf(arena, text, "by the recording a free block of %s would have served: it does not explain this failure",
                               vr_bytes(oom->usable_largest_bytes).text);
    case VRAM_OOM_FULL:
        return vr_arena_printf(
            arena, text,
            "the memory was in use: %s live, and all that was free together (%s cached, %s at the driver) is less than the request",
            vr_bytes(oom->allocated_bytes).text, vr_bytes(oom->free_bytes).text,
            vr_bytes(oom->has_device_free ? oom->device_free_bytes : 0).text);
    case VRAM_OOM_UNKNOWN:
    case VRAM_OOM_CAUSE_COUNT: break;
    }
    return vr_arena_printf(arena, text, "not examined: only the last %d out-of-memory events are", VRAM_REPORT_OOM_PICTURES);
}

static const char *advise(const struct vram_report_oom *oom, bool expandable) {
    switch (oom->cause) {
    case VRAM_OOM_LIMIT: return "look for set_per_process_memory_fraction or per_process_memory_fraction";
    case VRAM_OOM_FRAGMENTED:
        return expandable ? "expandable segments are on already; release memory between phases, or allocate long-lived tensors first"
                          : "expandable_segments:True lets free pieces join; `vram replay` shows whether it would have fitted";
    case VRAM_OOM_OTHER_STREAMS: return "allocate on one stream, or empty the cache before the other stream's phase";
    case VRAM_OOM_OTHER_POOLS: return "drop graphs or pools that are not replayed any more, or let them share one pool";
    case VRAM_OOM_PENDING: return "free earlier, or synchronize with the other stream before the large request";
    default: return "";
    }
}

#define HOLDERS 5

static enum vram_status draw(const struct vr_view *view, struct vr_sites *sites, const struct vr_lifetimes *allocated,
                             const struct vr_lifetimes *active, struct vr_arena *arena, bool expandable, struct vram_report_oom *oom) {
    const int64_t event = (int64_t)oom->event;
    const struct vr_history *history = view->history;
    const struct request request = {.stream = history->stream[event],
                                    .pool_first = history->pool_first[event],
                                    .pool_second = history->pool_second[event],
                                    .kind = oom->size_bytes <= SMALL_REQUEST_BYTES ? VRAM_REPORT_KIND_SMALL : VRAM_REPORT_KIND_LARGE};
    struct vr_range *ranges;
    size_t range_count, block_count;
    struct live_block *blocks;
    VR_TRY(vr_layout_at(view, event, &ranges, &range_count));
    const enum vram_status status = live_blocks(view, active, event, &blocks, &block_count);
    if (status != VRAM_OK) {
        free(ranges);
        return status;
    }
    measure_holes(ranges, range_count, blocks, block_count, &request, oom);
    free(ranges);
    free(blocks);

    uint64_t active_bytes = 0;
    for (size_t i = 0; i < active->count; i++) active_bytes += vr_lifetimes_live_at(active, i, event) ? active->size_bytes[i] : 0;
    for (size_t i = 0; i < allocated->count; i++)
        oom->allocated_bytes += vr_lifetimes_live_at(allocated, i, event) ? allocated->size_bytes[i] : 0;
    oom->pending_bytes = active_bytes > oom->allocated_bytes ? active_bytes - oom->allocated_bytes : 0;
    oom->segment_bytes = segment_for(oom->size_bytes, expandable);
    oom->has_picture = true;
    VR_TRY(vr_sites_at(sites, allocated, event, HOLDERS, arena, &oom->holders, &oom->holder_count));
    oom->cause = find_cause(oom);
    oom->advice = advise(oom, expandable);
    return explain(oom, arena, &oom->text);
}

static void describe(const struct vr_history *history, size_t event, struct vram_report_oom *oom) {
    *oom = (struct vram_report_oom){.event = event,
                                    .size_bytes = history->size_bytes[event],
                                    .device_free_bytes = history->address[event],
                                    .has_device_free = (history->has[event] & (VR_HAS_DEVICE_FREE | VR_HAS_ADDRESS)) != 0,
                                    .stream = (int64_t)history->stream[event],
                                    .has_time = (history->has[event] & VR_HAS_TIME) != 0,
                                    .time_us = history->time_us[event],
                                    .cause = VRAM_OOM_UNKNOWN,
                                    .advice = ""};
}

enum vram_status vr_report_ooms(const struct vr_view *view, struct vr_sites *sites, const struct vr_lifetimes *allocated,
                                const struct vr_lifetimes *active, struct vr_arena *arena, struct vram_report_device *out) {
    const struct vr_history *history = view->history;
    size_t count = 0, found = 0;
    for (size_t i = 0; i < history->count; i++) count += history->action[i] == VR_ACTION_OOM;
    void *room;
    VR_TRY(vr_arena_array(arena, count, sizeof(struct vram_report_oom), &room));
    struct vram_report_oom *ooms = room;
    const bool expandable = is_expandable(view, out);
    const char *unexamined = NULL;
    for (size_t i = 0; i < history->count; i++) {
        if (history->action[i] != VR_ACTION_OOM) continue;
        struct vram_report_oom *oom = &ooms[found++];
        describe(history, i, oom);
        VR_TRY(vr_sites_name(sites, vr_sites_frame(sites, history->stack[i]), arena, &oom->site));
        if (count - found < VRAM_REPORT_OOM_PICTURES) {
            VR_TRY(draw(view, sites, allocated, active, arena, expandable, oom));
            continue;
        }
        if (unexamined == NULL) VR_TRY(explain(oom, arena, &unexamined));
        oom->text = unexamined;
    }
    out->ooms = ooms;
    out->oom_count = count;
    return VRAM_OK;
}
