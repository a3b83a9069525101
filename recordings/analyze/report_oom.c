// Explains failed requests: rebuilds the state of memory at each out-of-memory event, and finds the cause.
#include "analyze/demand.h"
#include "analyze/report_parts.h"
#include "analyze/oom_cause.h"

#include <stdio.h>

#define SMALL_REQUEST_BYTES VR_MIB
#define BLOCK_UNIT_BYTES    512u

static int oom_ranges_by_address(const void *a, const void *b) {
    const struct vr_live_block *x = a, *y = b;
    return VR_ORDER(x->address, y->address);
}

static bool is_expandable(const struct vr_view *view, const struct vram_report_device *device) {
    for (size_t i = 0; i < device->action_count; i++) {
        if (strcmp(device->actions[i].name, vr_action_name(VR_ACTION_SEGMENT_MAP)) == 0) return true;
    }
    const char *setting = vr_model_setting(view->model, "expandable_segments");
    return device->expandable_segments != 0 || (setting != NULL && strcmp(setting, "true") == 0);
}

// Returns the segment size that the allocator would request from the driver.
static uint64_t segment_for(uint64_t size_bytes, bool expandable) {
    if (size_bytes > UINT64_MAX / 2) return size_bytes;
    if (size_bytes <= SMALL_REQUEST_BYTES) return 2 * VR_MIB;
    if (expandable) return vr_round_up(size_bytes, 20 * VR_MIB);
    return size_bytes < 10 * VR_MIB ? 20 * VR_MIB : vr_round_up(size_bytes, 2 * VR_MIB);
}

// Lists the blocks that are not reusable after the event, ascending.
static enum vram_status live_blocks(const struct vr_view *view, const struct vr_lifetimes *active, int64_t event,
                                    struct vr_live_block **blocks, size_t *count) {
    struct vr_live_block *found = NULL;
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
        struct vr_live_block *live = &found[used++];
        *live =
            (struct vr_live_block){.address = active->address[i], .end = UINT64_MAX, .stack = active->stack[i], .estimated = block == 0};
        (void)vr_add_u64(live->address, size, &live->end);
    }
    if (used != 0) qsort(found, used, sizeof *found, oom_ranges_by_address);
    *blocks = found;
    *count = used;
    return VRAM_OK;
}

static void add_free_block(struct vram_report_oom *oom, const struct vr_failed_request *request, const struct vr_layout_range *range,
                           uint64_t bytes) {
    oom->free_bytes += bytes;
    if (bytes > oom->largest_free_bytes) oom->largest_free_bytes = bytes;
    if (range->pool_first != request->pool_first || range->pool_second != request->pool_second) {
        oom->private_pool_bytes += bytes;
    } else if (range->stream != request->stream) {
        oom->other_stream_bytes += bytes;
    } else if (range->kind != request->kind) {
        oom->other_pool_bytes += bytes;
    } else {
        oom->usable_bytes += bytes;
        oom->usable_pieces++;
        if (bytes > oom->usable_largest_bytes) oom->usable_largest_bytes = bytes;
    }
}

// Adds up the free memory between the live blocks of each range.
static void measure_free_blocks(const struct vr_layout_range *ranges, size_t range_count, const struct vr_live_block *blocks,
                                size_t block_count, const struct vr_failed_request *request, struct vram_report_oom *oom) {
    size_t next = 0;
    for (size_t r = 0; r < range_count; r++) {
        uint64_t cursor = ranges[r].address;
        bool estimated = false;
        oom->reserved_bytes += ranges[r].end - ranges[r].address;
        for (;;) {
            const bool more = next < block_count && blocks[next].address < ranges[r].end;
            const uint64_t until = more ? blocks[next].address : ranges[r].end;
            // Large blocks are not split for a remainder of up to 1 MiB, so such a gap belongs to the block before it.
            const bool rest =
                estimated && ranges[r].kind != VRAM_REPORT_KIND_SMALL && until > cursor && until - cursor <= SMALL_REQUEST_BYTES;
            if (until > cursor && !rest) add_free_block(oom, request, &ranges[r], until - cursor);
            if (!more) break;
            if (blocks[next].end > cursor) {
                cursor = blocks[next].end;
                estimated = blocks[next].estimated;
            }
            next++;
        }
    }
}

#define HOLDERS 5

// The inputs shared by all events of a device.
struct drawing {
    const struct vr_view *view;
    struct vr_sites *sites;
    const struct vr_lifetimes *allocated, *active;
    struct vr_arena *arena;
    uint64_t memory_bytes; // of the device, given by the caller; 0: unknown
    bool expandable;
    int64_t last; // last out-of-memory event
};

// Returns an integer setting of the recording; 0 if none exists.
static uint64_t setting_number(const struct vr_model *model, const char *key) {
    const char *value = vr_model_setting(model, key);
    return value == NULL || *value < '0' || *value > '9' ? 0 : strtoull(value, NULL, 10);
}

// Returns the process's limit: set in the allocator, by `vram run --limit`, or as a fraction of the device.
static uint64_t find_limit(const struct vr_model *model, uint32_t device, uint64_t total_bytes) {
    char key[64];
    (void)snprintf(key, sizeof key, "vram_device_%u_limit_bytes", (unsigned)device);
    const uint64_t own = setting_number(model, key), limit = own != 0 ? own : setting_number(model, "vram_run_limit_bytes");
    if (limit != 0) return limit;
    const char *fraction = vr_model_setting(model, "per_process_memory_fraction");
    const double part = fraction == NULL ? 1.0 : strtod(fraction, NULL);
    return part > 0.0 && part < 1.0 ? (uint64_t)((double)total_bytes * part) : 0;
}

// Finds the limits of the device and the process, as far as they are known.
static void find_bounds(const struct vr_view *view, uint64_t memory_bytes, bool driver_level, struct vram_report_oom *oom) {
    char key[64] = "vram_host_total_bytes";
    if (!oom->is_host) (void)snprintf(key, sizeof key, "vram_device_%u_total_bytes", (unsigned)view->device);
    const uint64_t held = vr_oom_held(oom, driver_level);
    const uint64_t driver = oom->has_device_free ? oom->device_free_bytes : 0;
    oom->device_total_bytes = setting_number(view->model, key);
    if (oom->device_total_bytes == 0 && !oom->is_host) oom->device_total_bytes = memory_bytes;
    oom->limit_bytes = oom->is_host ? 0 : find_limit(view->model, view->device, oom->device_total_bytes);
    // Under a limit, the driver's free bytes are relative to it.
    uint64_t known = driver < UINT64_MAX - held ? driver + held : UINT64_MAX;
    if (oom->has_device_free && oom->device_total_bytes > known && oom->limit_bytes == 0)
        oom->outside_bytes = oom->device_total_bytes - known;
    // If the driver's free bytes are unknown, the device's size is the bound; without it there is no bound.
    if (!oom->has_device_free && !oom->is_host) known = oom->device_total_bytes == 0 && oom->limit_bytes == 0 ? 0 : oom->device_total_bytes;
    if (!oom->has_device_free && known == 0) known = oom->limit_bytes;
    oom->room_bytes = known;
    if (oom->limit_bytes != 0 && oom->limit_bytes < oom->room_bytes) oom->room_bytes = oom->limit_bytes;
    // With an unknown limit, only the bytes held are certain.
    if (oom->limit_bytes == 0 && oom->has_device_free && driver >= oom->segment_bytes) oom->room_bytes = held;
}

static void sum_live(const struct vr_lifetimes *allocated, const struct vr_lifetimes *active, struct vram_report_oom *oom) {
    const int64_t event = (int64_t)oom->event;
    uint64_t active_bytes = 0;
    for (size_t i = 0; i < active->count; i++) active_bytes += vr_lifetimes_live_at(active, i, event) ? active->size_bytes[i] : 0;
    for (size_t i = 0; i < allocated->count; i++)
        oom->allocated_bytes += vr_lifetimes_live_at(allocated, i, event) ? allocated->size_bytes[i] : 0;
    oom->pending_bytes = active_bytes > oom->allocated_bytes ? active_bytes - oom->allocated_bytes : 0;
}

static enum vram_status find_pins(struct drawing *drawing, const struct vr_layout_range *ranges, size_t range_count,
                                  const struct vr_live_block *blocks, size_t block_count, const struct vr_failed_request *request,
                                  struct vram_report_oom *oom) {
    struct vr_pins pins;
    VR_TRY(vr_pins_find(ranges, range_count, blocks, block_count, request, &pins));
    oom->pin_bytes = pins.bytes;
    oom->pin_blocks = pins.blocks;
    if (pins.blocks == 0) return VRAM_OK;
    return vr_sites_name(drawing->sites, vr_sites_frame(drawing->sites, pins.stack), drawing->arena, &oom->pin_site);
}

// Returns whether growth is the cause: a leak fills any memory, whatever the state of the rest.
static bool is_growth(const struct vram_report_oom *oom) {
    const bool grows = oom->demand->demand == VRAM_DEMAND_GROWTH || oom->demand->demand == VRAM_DEMAND_RETAINED;
    if (oom->is_host) return grows && oom->demand->bytes > oom->allocated_bytes / 2; // any limit would have refused the next request
    const bool by_far = oom->demand->bytes > 2 * oom->free_bytes && oom->demand->bytes > oom->outside_bytes;
    return grows && by_far && oom->cause != VRAM_OOM_LIMIT && oom->cause != VRAM_OOM_CONTRADICTORY;
}

// Finds the largest block that was freed but is not yet reusable, and its stack. The rows of the two kinds of lifetime do not correspond.
static enum vram_status find_waiting(const struct drawing *drawing, int64_t event, uint32_t *stack) {
    const struct vr_lifetimes *allocated = drawing->allocated, *active = drawing->active;
    struct vr_map in_use = {0};
    enum vram_status status = VRAM_OK;
    uint64_t most = 0;
    for (size_t i = 0; i < allocated->count && status == VRAM_OK; i++) {
        if (vr_lifetimes_live_at(allocated, i, event)) status = vr_map_set(&in_use, allocated->address[i], 1);
    }
    for (size_t i = 0; i < active->count && status == VRAM_OK; i++) {
        if (!vr_lifetimes_live_at(active, i, event) || active->size_bytes[i] <= most) continue;
        if (vr_map_get(&in_use, active->address[i]) != 0) continue;
        most = active->size_bytes[i];
        *stack = active->stack[i];
    }
    vr_map_release(&in_use);
    return status;
}

static bool is_out_of_reach(const struct vr_layout_range *range, const struct vr_failed_request *request,
                            enum vram_report_oom_cause cause) {
    if (range->pool_first != request->pool_first || range->pool_second != request->pool_second) return cause == VRAM_OOM_PRIVATE_POOLS;
    if (range->stream != request->stream) return cause == VRAM_OOM_OTHER_STREAMS;
    return range->kind != request->kind && cause == VRAM_OOM_OTHER_POOLS;
}

// Returns whether some allocation is live in the ranges of a stream; ranges are ascending.
static bool is_in_use(const struct drawing *drawing, int64_t event, const struct vr_layout_range *ranges, size_t count, uint64_t stream) {
    const struct vr_lifetimes *active = drawing->active;
    for (size_t i = 0; i < active->count; i++) {
        size_t after;
        VR_LOWER_BOUND(after, r, 0, count, ranges[r].address <= active->address[i]);
        if (after == 0 || ranges[after - 1].stream != stream || active->address[i] >= ranges[after - 1].end) continue;
        if (vr_lifetimes_live_at(active, i, event)) return true;
    }
    return false;
}

// Finds the largest range to which the cause applies, and the stack that made its segment, or its first page. *stack stays 0 if the history
// does not have it.
static enum vram_status find_segment(const struct drawing *drawing, const struct vr_failed_request *request, struct vram_report_oom *oom,
                                     uint32_t *stack) {
    const struct vr_view *view = drawing->view;
    const struct vr_history *history = view->history;
    struct vr_layout_range *ranges;
    size_t count, largest = SIZE_MAX;
    VR_TRY(vr_layout_at(view, (int64_t)oom->event, &ranges, &count));
    for (size_t r = 0; r < count; r++) {
        if (!is_out_of_reach(&ranges[r], request, oom->cause)) continue;
        if (largest == SIZE_MAX || ranges[r].end - ranges[r].address > ranges[largest].end - ranges[largest].address) largest = r;
    }
    for (size_t i = 0; largest != SIZE_MAX && i < (size_t)oom->event; i++) {
        if (history->action[i] != VR_ACTION_SEGMENT_ALLOC && history->action[i] != VR_ACTION_SEGMENT_MAP) continue;
        if (history->address[i] >= ranges[largest].address && history->address[i] < ranges[largest].end) *stack = history->stack[i];
    }
    if (largest != SIZE_MAX && oom->cause == VRAM_OOM_OTHER_STREAMS) {
        oom->has_held_stream = true;
        oom->held_stream = (int64_t)ranges[largest].stream;
        oom->held_stream_is_idle = !is_in_use(drawing, (int64_t)oom->event, ranges, count, ranges[largest].stream);
    }
    free(ranges);
    return VRAM_OK;
}

// Finds the demand for any cause, because using less memory leaves more room.
static enum vram_status find_demand(struct drawing *drawing, bool driver_level, struct vram_report_oom *oom) {
    if (oom->cause == VRAM_OOM_ROOM_UNKNOWN) return VRAM_OK; // no room to compare with
    const uint64_t blocks = oom->reserved_bytes > oom->free_bytes ? oom->reserved_bytes - oom->free_bytes : 0;
    const struct vr_demand_question question = {.view = drawing->view,
                                                .sites = drawing->sites,
                                                .event = (int64_t)oom->event,
                                                .oom = oom,
                                                .room_bytes = oom->room_bytes,
                                                .room_is_named = true,
                                                .block_bytes = driver_level ? oom->allocated_bytes + oom->pending_bytes : blocks};
    VR_TRY(vr_demand_find(&question, drawing->arena, &oom->demand));
    if (oom->demand != NULL && is_growth(oom)) oom->cause = VRAM_OOM_GROWTH;
    // The parts of a training step say nothing about copy buffers.
    if (oom->is_host && oom->cause != VRAM_OOM_GROWTH) oom->demand = NULL;
    return VRAM_OK;
}

// Finds the call site of the largest piece to which the cause applies: for pending memory its allocation, for free memory out of reach its
// segment.
static enum vram_status find_held_site(struct drawing *drawing, const struct vr_failed_request *request, struct vram_report_oom *oom) {
    uint32_t stack = 0;
    if (oom->cause == VRAM_OOM_PENDING)
        VR_TRY(find_waiting(drawing, (int64_t)oom->event, &stack));
    else if (oom->cause == VRAM_OOM_OTHER_STREAMS || oom->cause == VRAM_OOM_OTHER_POOLS || oom->cause == VRAM_OOM_PRIVATE_POOLS)
        VR_TRY(find_segment(drawing, request, oom, &stack));
    const uint32_t frame = vr_sites_frame(drawing->sites, stack);
    return frame == VR_NO_SITE ? VRAM_OK : vr_sites_name(drawing->sites, frame, drawing->arena, &oom->held_site);
}

static enum vram_status draw_layout(struct drawing *drawing, struct vram_report_oom *oom) {
    const int64_t event = (int64_t)oom->event;
    const struct vr_history *history = drawing->view->history;
    struct vr_failed_request request = {.stream = vr_entry_stream(history, event),
                                        .pool_first = history->pool_first[event],
                                        .pool_second = history->pool_second[event],
                                        .kind = oom->size_bytes <= SMALL_REQUEST_BYTES ? VRAM_REPORT_KIND_SMALL : VRAM_REPORT_KIND_LARGE,
                                        .size_bytes = oom->size_bytes};
    struct vr_layout_range *ranges;
    size_t range_count, block_count;
    struct vr_live_block *blocks;
    VR_TRY(vr_layout_at(drawing->view, event, &ranges, &range_count));
    // In a recording of a whole program, segments duplicate the blocks that remain at the end, or are addresses for pages.
    if (vr_is_whole_program(drawing->view)) range_count = 0;
    const bool driver_level = range_count == 0;
    enum vram_status status = live_blocks(drawing->view, drawing->active, event, &blocks, &block_count);
    if (status != VRAM_OK) {
        free(ranges);
        return status;
    }
    measure_free_blocks(ranges, range_count, blocks, block_count, &request, oom);
    sum_live(drawing->allocated, drawing->active, oom);
    oom->is_host = vr_model_is_host(drawing->view->model, drawing->view->device);
    oom->of_own_pool = driver_level && request.pool_first != 0;
    oom->driver_pool_bytes = vr_driver_pools_free(drawing->view, drawing->allocated, event);
    oom->segment_bytes = driver_level || oom->is_host ? oom->size_bytes : segment_for(oom->size_bytes, drawing->expandable);
    const uint64_t driver = oom->has_device_free ? oom->device_free_bytes : 0;
    request.driver_bytes = oom->segment_bytes > driver ? oom->segment_bytes - driver : 0;
    status = find_pins(drawing, ranges, range_count, blocks, block_count, &request, oom);
    free(ranges);
    free(blocks);
    VR_TRY(status);
    find_bounds(drawing->view, drawing->memory_bytes, driver_level, oom);
    oom->has_picture = true;
    const bool is_last = event == drawing->last;
    VR_TRY(vr_accounts_find(drawing->view, oom, is_last, driver_level, drawing->arena, &oom->accounts));
    VR_TRY(vr_libraries_at(drawing->view, drawing->allocated, event, drawing->arena, &oom->libraries, &oom->library_count));
    VR_TRY(vr_sites_at(drawing->sites, drawing->allocated, event, HOLDERS, drawing->arena, &oom->holders, &oom->holder_count));
    oom->cause = vr_oom_cause(oom);
    VR_TRY(find_held_site(drawing, &request, oom));
    return is_last ? find_demand(drawing, driver_level, oom) : VRAM_OK;
}

static void describe_request(const struct vr_history *history, size_t event, struct vram_report_oom *oom) {
    *oom = (struct vram_report_oom){.event = event,
                                    .size_bytes = history->size_bytes[event],
                                    .device_free_bytes = history->address[event],
                                    .has_device_free = (vr_entry_has(history, event) & (VR_HAS_DEVICE_FREE | VR_HAS_ADDRESS)) != 0,
                                    .stream = (int64_t)vr_entry_stream(history, event),
                                    .has_time = (vr_entry_has(history, event) & VR_HAS_TIME) != 0,
                                    .time_us = history->time_us[event],
                                    .cause = VRAM_OOM_UNKNOWN,
                                    .advice = ""};
}

// Returns the first out-of-memory event from `first` on; the number of events if none exists.
static size_t next_oom(const struct vr_history *history, size_t first) {
    const uint8_t *found = first == history->count ? NULL : memchr(history->action + first, VR_ACTION_OOM, history->count - first);
    return found == NULL ? history->count : (size_t)(found - history->action);
}

enum vram_status vr_report_ooms(const struct vr_view *view, struct vr_sites *sites, const struct vr_lifetimes *allocated,
                                const struct vr_lifetimes *active, uint64_t memory_bytes, struct vr_arena *arena,
                                struct vram_report_device *out) {
    const struct vr_history *history = view->history;
    size_t count = 0, found = 0;
    int64_t last = -1;
    for (size_t i = next_oom(history, 0); i < history->count; i = next_oom(history, i + 1)) {
        last = (int64_t)i;
        count++;
    }
    void *room;
    VR_TRY(vr_arena_array(arena, count, sizeof(struct vram_report_oom), &room));
    struct vram_report_oom *ooms = room;
    out->expandable = is_expandable(view, out);
    struct drawing drawing = {.view = view,
                              .sites = sites,
                              .allocated = allocated,
                              .active = active,
                              .arena = arena,
                              .memory_bytes = memory_bytes,
                              .expandable = out->expandable,
                              .last = last};
    for (size_t i = next_oom(history, 0); i < history->count; i = next_oom(history, i + 1)) {
        struct vram_report_oom *oom = &ooms[found++];
        describe_request(history, i, oom);
        VR_TRY(vr_sites_name(sites, vr_sites_frame(sites, history->stack[i]), arena, &oom->site));
        if (count - found < VRAM_REPORT_OOM_PICTURES) VR_TRY(draw_layout(&drawing, oom));
    }
    out->ooms = ooms;
    out->oom_count = count;
    return VRAM_OK;
}
