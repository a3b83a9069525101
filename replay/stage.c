// Creates the allocator and the simulated driver for a replay, and builds the initial state on them.
#include "replay/stage.h"

#include <inttypes.h>

#include "core/allocator.h"
#include "driver/driver.h"
#include "replay/initial_state.h"
#include "replay/mapped_ranges.h"
#include "replay/option_strings.h"
#include "replay/segment_ages.h"
#include "vram/sim.h"

// ---- The address space reserved by a history's expandable segments (replay.md §the-room-at-the-end). No recording says where a
// reservation begins or ends; mapped ranges, and other memory in use at the same time, show part of it.

struct reservations {
    // By segment of the initial state: the base of the reservation whose first mapped range it is; lower than its address if a range below
    // it was mapped later. The segment's own address otherwise.
    uint64_t *bases;
    // The latest possible end: the beginning of other memory that exists at the same time; UINT64_MAX: unbounded.
    uint64_t *ends;
    // The shortest distance, for a reservation made in the history, from its base to the next memory in use at the same time; UINT64_MAX:
    // unbounded. Excludes reservations of the initial state, which may begin further below.
    uint64_t shortest;
};

#define NONE UINT32_MAX

// Occupies addresses for a time: a cudaMalloc segment, or the part of a reservation that was ever mapped.
struct tenant {
    uint64_t base;
    uint64_t end; // one past the highest byte mapped so far
    uint64_t mapped_bytes;
    uint64_t stream;
    uint32_t pool;
    uint32_t segment; // its first segment of the initial state; NONE: made in the history
    bool small;
    bool expandable;
};

struct following {
    const struct vr_recorded_device *recorded;
    struct reservations *reservations;
    uint64_t longest;
    struct tenant *tenants;
    size_t count;
    size_t capacity;
    struct vr_mapped in_use; // ranges [base, end); the owner is the tenant's number
};

static void reservations_release(struct reservations *reservations) {
    free(reservations->bases);
    free(reservations->ends);
    *reservations = (struct reservations){0};
}

// Ignores contradictions, which are reported where the history is undone.
static enum vram_status tolerate_conflict(enum vram_status status) { return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status; }

static struct tenant *at_or_below(const struct following *following, uint64_t address) {
    const struct vr_mapped_range *range = vr_mapped_before(&following->in_use, address);
    return range == NULL ? NULL : &following->tenants[range->owner];
}

static struct tenant *tenant_above(const struct following *following, uint64_t address) {
    const struct vr_mapped_range *range = vr_mapped_after(&following->in_use, address);
    return range == NULL ? NULL : &following->tenants[range->owner];
}

// --- tenants begin, grow and end --------------------------------------------------------------------------------------------------
static void note_distance(struct following *following, const struct tenant *lower, const struct tenant *higher) {
    struct reservations *known = following->reservations;
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

// Adds the range to the tenant. A tenant of the initial state may begin below its first mapped range.
static enum vram_status extend_tenant(struct following *following, struct tenant *tenant, uint64_t start, uint64_t end) {
    VR_TRY(leave_range(following, tenant));
    if (start < tenant->base) tenant->base = start;
    if (end > tenant->end) tenant->end = end;
    tenant->mapped_bytes += end - start;
    if (tenant->segment != NONE) following->reservations->bases[tenant->segment] = tenant->base;
    return occupy_range(following, (uint32_t)(tenant - following->tenants));
}

// Returns whether the range may be in the tenant's reservation.
static bool tenant_holds(const struct following *following, const struct tenant *tenant, const struct tenant *range) {
    if (tenant == NULL || !tenant->expandable || tenant->stream != range->stream || tenant->pool != range->pool) return false;
    if (tenant->small != range->small) return false;
    const uint64_t base = tenant->base < range->base ? tenant->base : range->base,
                   end = tenant->end > range->end ? tenant->end : range->end;
    const uint64_t distance = tenant->base < range->base ? range->base - tenant->base : tenant->base - range->base;
    return end - base <= following->longest && distance % vr_recorded_device_page(following->recorded->options, range->small) == 0;
}

// Maps a range. A reservation made in the history begins with its first mapped range.
static enum vram_status map_tenant(struct following *following, const struct tenant *range) {
    struct tenant *below = at_or_below(following, range->base), *higher = tenant_above(following, range->base);
    if (tenant_holds(following, below, range)) return extend_tenant(following, below, range->base, range->end);
    if (higher != NULL && higher->segment != NONE && tenant_holds(following, higher, range))
        return extend_tenant(following, higher, range->base, range->end);
    return move_in(following, range);
}

// Unmaps a range. A tenant without mapped memory releases its addresses.
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

// Finds the reservations. longest: maximum length of a reservation, UINT64_MAX if unknown. Call reservations_release() even after a
// failure. NO_HOST_MEMORY, LIMIT.
static enum vram_status reservations_find(const struct vr_recorded_device *recorded, const struct vr_start *start, uint64_t longest,
                                          struct reservations *reservations) {
    struct following following = {.recorded = recorded, .reservations = reservations, .longest = longest};
    *reservations = (struct reservations){.shortest = UINT64_MAX};
    reservations->bases = malloc((start->segment_count + 1) * sizeof *reservations->bases);
    reservations->ends = malloc((start->segment_count + 1) * sizeof *reservations->ends);
    const bool made = reservations->bases != NULL && reservations->ends != NULL;
    enum vram_status status = made ? begin_following(&following, start) : VRAM_NO_HOST_MEMORY;
    for (size_t event = 0; event < recorded->history->count && status == VRAM_OK; event++) status = follow_event(&following, event);
    free(following.tenants);
    vr_mapped_release(&following.in_use);
    return status;
}

enum { DEVICE = 0 };

#define HIGH_ALLOC_BASE   VR_STAGE_HIGH
#define HIGH_RESERVE_BASE (2 * VR_STAGE_HIGH)

// Creates the streams, sorted like the recorded ones. Stream 0 is the default stream and exists already. The simulated driver fails only
// without host memory.
static enum vram_status make_streams(struct vr_replay_stage *stage) {
    const size_t count = stage->recorded->stream_count;
    uint64_t context = 0;
    stage->streams = calloc(count, sizeof *stage->streams);
    if (stage->streams == NULL) return VRAM_NO_HOST_MEMORY;
    if (vr_cu(stage->driver, primary_ctx_retain, &context, DEVICE) != VR_CU_SUCCESS) return VRAM_NO_HOST_MEMORY;
    if (vr_cu(stage->driver, ctx_set_current, context) != VR_CU_SUCCESS) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 1; i < count; i++) {
        if (vr_cu(stage->driver, stream_create, &stage->streams[i], VR_CU_STREAM_NON_BLOCKING) != VR_CU_SUCCESS) return VRAM_NO_HOST_MEMORY;
    }
    qsort(stage->streams, count, sizeof *stage->streams, vr_order_u64);
    return VRAM_OK;
}

uint64_t vr_stage_stream(struct vr_replay_stage *stage, uint64_t recorded) {
    const uint64_t *streams = stage->recorded->streams;
    if (streams[stage->last] == recorded) return stage->streams[stage->last];
    size_t above;
    VR_LOWER_BOUND(above, i, 1, stage->recorded->stream_count, streams[i] <= recorded);
    stage->last = above - 1;
    assert(streams[stage->last] == recorded);
    return stage->streams[stage->last];
}

// --- private pools --------------------------------------------------------------------------------------------------------------
static const struct vram_route everything = {.kind = VRAM_ROUTE_ALL};

static uint64_t serve_allocation(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    uint64_t address = 0;
    (void)device, (void)stream;
    return vr_cu((struct vram_driver *)user, mem_alloc, &address, size_bytes) == VR_CU_SUCCESS ? address : 0;
}

static void deallocate(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)device, (void)stream;
    (void)vr_cu((struct vram_driver *)user, mem_free, address);
}

static enum vram_status make_pool(struct vr_replay_stage *stage, uint32_t pool) {
    struct vram_pool_options options = {.for_graph = stage->recorded->pools.ids[pool].first != 0,
                                        .no_split = stage->recorded->no_split != NULL && stage->recorded->no_split[pool]};
    if (vr_recorded_device_has_functions(stage->recorded, pool)) {
        options.allocate = serve_allocation;
        options.deallocate = deallocate;
        options.user = stage->driver;
    }
    return vram_pool_create(stage->allocator, DEVICE, &options, &stage->pools[pool]);
}

static enum vram_status make_pools(struct vr_replay_stage *stage) {
    const size_t count = stage->recorded->pools.count;
    stage->pools = calloc(count, sizeof(struct vram_pool *));
    if (stage->pools == NULL) return VRAM_NO_HOST_MEMORY;
    for (uint32_t pool = 1; pool < count; pool++) VR_TRY(make_pool(stage, pool));
    return VRAM_OK;
}

enum vram_status vr_stage_enter_other(struct vr_replay_stage *stage, uint32_t pool) {
    assert(pool < stage->recorded->pools.count);
    if (stage->entered != 0) VR_TRY(vram_pool_end(stage->pools[stage->entered], &everything));
    stage->entered = 0;
    if (pool == 0) return VRAM_OK;
    if (stage->pools[pool] == NULL) VR_TRY(make_pool(stage, pool));
    VR_TRY(vram_pool_begin(stage->pools[pool], &everything));
    stage->entered = pool;
    return VRAM_OK;
}

enum vram_status vr_stage_trim(struct vr_replay_stage *stage, uint32_t pool) {
    return stage->pools[pool] == NULL ? VRAM_OK : vram_pool_empty_cache(stage->pools[pool]);
}

void vr_stage_give_up(struct vr_replay_stage *stage, uint32_t pool) {
    if (stage->entered == pool) (void)!vr_stage_enter_other(stage, 0); // closing an open route cannot fail
    vram_pool_release(stage->pools[pool]);
    stage->pools[pool] = NULL;
}

// --- the rules ----------------------------------------------------------------------------------------------------------------
// Returns whether the option string sets search_after_wait.
static bool names_search(const char *conf) {
    struct vr_options on, off;
    vr_options_init(&on);
    vr_options_init(&off);
    on.search_after_wait = true;
    off.search_after_wait = false;
    return vr_options_parse(&on, conf, NULL) == VRAM_OK && vr_options_parse(&off, conf, NULL) == VRAM_OK &&
           on.search_after_wait == off.search_after_wait;
}

// Appends the option string with a version. No version of PyTorch searches again in the retry (differences.md §memory), so a replay does so
// only on request.
static enum vram_status add_rules(const char *conf, uint32_t pytorch, struct vr_text *text) {
    vr_text_puts(text, conf == NULL ? "" : conf);
    if (vr_conf_rules(conf) == 0) vr_text_printf(text, "%spytorch:%u.%u", text->length == 0 ? "" : ",", pytorch / 100, pytorch % 100);
    if (!names_search(conf)) vr_text_printf(text, "%ssearch_after_wait:False", text->length == 0 ? "" : ",");
    return vr_text_status(text);
}

static enum vram_status make_allocator(struct vr_replay_stage *stage, const struct vr_stage_options *options, struct vram_error *error) {
    struct vr_text conf = {0};
    enum vram_status status = add_rules(options->conf, options->pytorch, &conf);
    const struct vram_create_info info = {.driver = stage->driver, .conf = vr_text_string(&conf), .ignore_environment = true};
    if (status == VRAM_OK) status = vr_allocator_create(&info, &stage->allocator, error);
    vr_text_release(&conf);
    if (status == VRAM_OK) vr_allocator_without_threads(stage->allocator);
    return status;
}

// --- the stage --------------------------------------------------------------------------------------------------------------------
enum vram_status vr_stage_open(struct vr_replay_stage *stage, const struct vr_recorded_device *recorded,
                               const struct vr_stage_options *options, struct vram_error *error) {
    *stage = (struct vr_replay_stage){.recorded = recorded};
    struct vram_sim_options sim = {.memory_bytes = options->memory_bytes, .profile = options->profile};
    if (options->high_addresses) {
        sim.alloc_base = HIGH_ALLOC_BASE;
        sim.reserve_base = HIGH_RESERVE_BASE;
    }
    VR_TRY(vram_sim_create(&sim, &stage->driver));
    VR_TRY(make_streams(stage));
    VR_TRY(make_allocator(stage, options, error));
    // Initializes the device now, so that its reservations follow options->memory_bytes: callers change the simulated memory later
    // (exact_replay.c).
    VR_TRY(vram_set_memory_limit(stage->allocator, DEVICE, UINT64_MAX));
    return make_pools(stage);
}

void vr_stage_close(struct vr_replay_stage *stage) {
    if (stage->pools != NULL) {
        for (uint32_t pool = 1; pool < stage->recorded->pools.count; pool++) vr_stage_give_up(stage, pool);
    }
    if (stage->allocator != NULL) vr_allocator_destroy(stage->allocator);
    vram_driver_destroy(stage->driver);
    free(stage->pools);
    free(stage->streams);
    vr_map_release(&stage->began_with);
    *stage = (struct vr_replay_stage){0};
}

// --- address space ----------------------------------------------------------------------------------------------------------
// Returns the memory with which an expandable segment reserves this much.
static uint64_t memory_of(const struct vr_options *options, uint64_t reserve_bytes) {
    const double fraction = options->expandable_reserve.bytes == 0 ? options->expandable_reserve.fraction : 0;
    if (fraction <= 0 || fraction >= 1.125) return reserve_bytes / 9 * 8;
    const double memory_bytes = (double)reserve_bytes / fraction;
    return memory_bytes < (double)VR_STAGE_SPACING ? (uint64_t)memory_bytes : VR_STAGE_SPACING;
}

enum vram_status vr_stage_spacing(const struct vr_recorded_device *recorded, const struct vr_start *start, uint64_t *memory_bytes) {
    struct reservations reservations;
    const enum vram_status status = reservations_find(recorded, start, UINT64_MAX, &reservations);
    const uint64_t most = VR_STAGE_SPACING / 8 * 9, reserve = reservations.shortest < most ? reservations.shortest : most;
    reservations_release(&reservations);
    VR_TRY(status);
    const uint64_t pages = 4 * vr_recorded_device_page(recorded->options, false); // the allocator rounds reservations up to pages
    *memory_bytes = reserve > 2 * pages ? memory_of(recorded->options, reserve - pages) : pages;
    // Options may request larger pages than a device can have; an initial state with such pages is refused when it is built.
    if (*memory_bytes > VR_STAGE_SPACING) *memory_bytes = VR_STAGE_SPACING;
    if (recorded->capacity_bytes != 0 && recorded->capacity_bytes < *memory_bytes) *memory_bytes = recorded->capacity_bytes;
    return VRAM_OK;
}

// --- the initial state ------------------------------------------------------------------------------------------------------
static enum vram_status refuse_stage(struct vram_error *error, enum vram_status status, const char *what, uint64_t address, uint64_t size) {
    if (status == VRAM_NO_HOST_MEMORY) return status;
    return vr_fail(error, VRAM_MISMATCH, VRAM_NO_OFFSET, "cannot build the start state: %s 0x%" PRIx64 " of %" PRIu64 " bytes (%s)", what,
                   address, size, vram_status_text(status));
}

static enum vram_status build_segment(struct vr_replay_stage *stage, const struct vr_start_segment *segment, struct vram_error *error) {
    uint64_t address = 0;
    enum vram_status status = vr_stage_enter(stage, segment->pool);
    if (status == VRAM_OK) status = vram_sim_queue_address(stage->driver, segment->address);
    if (status == VRAM_OK)
        status = vr_drive_add_segment(stage->allocator, DEVICE, vr_stage_stream(stage, segment->stream), segment->small, segment->size,
                                      &address);
    if (status == VRAM_OK && address != segment->address) status = VRAM_MISMATCH;
    return status == VRAM_OK ? VRAM_OK : refuse_stage(error, status, "segment", segment->address, segment->size);
}

static bool same_range_owner(const struct vr_start_segment *a, const struct vr_start_segment *b) {
    return b->expandable && a->stream == b->stream && a->pool == b->pool && a->small == b->small;
}

// Returns the length of the recording's reservations for a device with this memory, by the allocator's rule. *exact: the length is known,
// not only bounded by the next memory in use.
static uint64_t reserve_of(const struct vr_recorded_device *recorded, uint64_t memory_bytes, uint64_t page, bool *exact) {
    const struct vr_reserve wanted = recorded->options->expandable_reserve;
    const uint64_t full = memory_bytes / 8 * 9;
    const uint64_t part = wanted.bytes != 0 ? wanted.bytes : (uint64_t)((double)memory_bytes * wanted.fraction);
    *exact = recorded->capacity_bytes != 0 || (wanted.bytes != 0 && wanted.bytes < full);
    const uint64_t reserve = part != 0 && part < full ? part : full;
    return *exact ? vr_round_up(reserve, page) : vr_round_down(reserve, page);
}

// A place in the initial state's mapped ranges: `offset` bytes after the segment's start.
struct range_place {
    size_t segment;
    uint64_t offset;
};

// A reservation to make, with the ranges from a place on that are in it.
struct reservation {
    struct range_place from;
    uint64_t base;
    uint64_t end;
    uint64_t counter; // of its first range; older ones come first
};

static uint64_t address_of(const struct vr_start *start, struct range_place at) { return start->segments[at.segment].address + at.offset; }

// Returns the end of the reservation at `base`. Ranges of one stream and pool belong to one reservation, which extends to the next memory
// in use; except if the length is known, or if a range is not at a page boundary of the reservation: then later ranges belong to another
// one.
static uint64_t end_of_reservation(const struct vr_start *start, struct range_place from, uint64_t base, uint64_t page, uint64_t reserve,
                                   bool exact) {
    const struct vr_start_segment *first = &start->segments[from.segment];
    uint64_t end = base + reserve;
    for (size_t i = from.segment + 1; i < start->segment_count && same_range_owner(first, &start->segments[i]); i++) {
        const uint64_t distance = start->segments[i].address - base;
        if (distance % page != 0) return distance < end - base ? base + vr_round_down(distance, page) : end;
        if (!exact && distance + start->segments[i].size > end - base) end = base + vr_round_up(distance + start->segments[i].size, page);
    }
    return end;
}

// Returns the first mapped byte at or after `end` in the same ranges; if none exists, the place after them.
static struct range_place place_behind(const struct vr_start *start, struct range_place from, uint64_t end) {
    const struct vr_start_segment *first = &start->segments[from.segment];
    struct range_place at = from;
    while (at.segment < start->segment_count && same_range_owner(first, &start->segments[at.segment]) && address_of(start, at) < end) {
        const uint64_t left = start->segments[at.segment].size - at.offset, room = end - address_of(start, at);
        at = left <= room ? (struct range_place){at.segment + 1, 0} : (struct range_place){at.segment, at.offset + room};
    }
    return at;
}

static struct reservation reservation_at(const struct vr_recorded_device *recorded, const struct vr_start *start,
                                         const struct reservations *known, uint64_t memory_bytes, struct range_place from) {
    const struct vr_start_segment *first = &start->segments[from.segment];
    const uint64_t page = vr_recorded_device_page(recorded->options, first->small);
    const uint64_t base = from.offset == 0 ? known->bases[from.segment] : address_of(start, from);
    bool exact = false;
    const uint64_t reserve = reserve_of(recorded, memory_bytes, page, &exact);
    const uint64_t least = exact ? page : vr_round_up(first->address + first->size - base, page);
    uint64_t end = end_of_reservation(start, from, base, page, reserve < least ? least : reserve, exact);
    const uint64_t learned = recorded->hindsight == NULL ? 0 : vr_map_get(&recorded->hindsight->ends, base);
    const uint64_t in_use = from.offset == 0 ? known->ends[from.segment] : UINT64_MAX,
                   most = learned != 0 && learned < in_use ? learned : in_use;
    if (end > most && most - base >= page) end = base + vr_round_down(most - base, page);
    return (struct reservation){from, base, end, first->counter};
}

static enum vram_status build_reservation(struct vr_replay_stage *stage, const struct vr_start *start,
                                          const struct reservation *reservation, struct vram_error *error) {
    const struct vr_start_segment *first = &start->segments[reservation->from.segment];
    const uint64_t base = reservation->base, bytes = reservation->end - base;
    uint64_t address = 0;
    enum vram_status status = vr_stage_enter(stage, first->pool);
    if (status == VRAM_OK) status = vram_sim_queue_reservation(stage->driver, base);
    if (status == VRAM_OK)
        status = vr_drive_add_expandable(stage->allocator, DEVICE, vr_stage_stream(stage, first->stream), first->small, bytes, &address);
    if (status == VRAM_OK && address != base) status = VRAM_MISMATCH;
    if (status == VRAM_OK) status = vr_map_set(&stage->began_with, base, 1);
    if (status != VRAM_OK) return refuse_stage(error, status, "address range", base, bytes);
    for (struct range_place at = reservation->from; at.segment < start->segment_count;) {
        const struct vr_start_segment *range = &start->segments[at.segment];
        if (!same_range_owner(first, range) || address_of(start, at) >= reservation->end) break;
        const uint64_t left = range->size - at.offset, room = reservation->end - address_of(start, at), size = left < room ? left : room;
        status = vr_drive_map(stage->allocator, address_of(start, at), size);
        if (status != VRAM_OK) return refuse_stage(error, status, "mapped range", address_of(start, at), size);
        at = size == left ? (struct range_place){at.segment + 1, 0} : (struct range_place){at.segment, at.offset + size};
    }
    return VRAM_OK;
}

static int reservation_order(const void *left, const void *right) {
    const struct reservation *a = left, *b = right;
    if (a->counter != b->counter) return VR_ORDER(a->counter, b->counter);
    return VR_ORDER(a->base, b->base);
}

static enum vram_status plan_reservations(const struct vr_recorded_device *recorded, const struct vr_start *start,
                                          const struct reservations *known, uint64_t memory_bytes, struct reservation **list, size_t *count,
                                          struct vram_error *error) {
    size_t capacity = 0;
    for (struct range_place at = {0, 0}; at.segment < start->segment_count;) {
        if (!start->segments[at.segment].expandable) {
            at.segment++;
            continue;
        }
        VR_TRY(vr_grow((void **)list, &capacity, *count + 1, sizeof **list));
        (*list)[*count] = reservation_at(recorded, start, known, memory_bytes, at);
        const struct reservation *made = &(*list)[(*count)++];
        // No reservation can contain two ranges that are less than a page apart and not aligned to each other's pages.
        if (made->end <= address_of(start, at))
            return refuse_stage(error, VRAM_MISMATCH, "address range", made->base, made->end - made->base);
        at = place_behind(start, at, made->end);
    }
    if (*count > 1) qsort(*list, *count, sizeof **list, reservation_order);
    return VRAM_OK;
}

// Builds the oldest first, as for segments.
static enum vram_status build_reservations(struct vr_replay_stage *stage, const struct vr_recorded_device *recorded,
                                           const struct vr_start *start, uint64_t memory_bytes, struct vram_error *error) {
    struct reservations known;
    struct reservation *list = NULL;
    size_t count = 0;
    bool exact = false;
    const uint64_t reserve = reserve_of(recorded, memory_bytes, vr_recorded_device_page(recorded->options, false), &exact);
    enum vram_status status = reservations_find(recorded, start, exact ? reserve : UINT64_MAX, &known);
    if (status == VRAM_OK) status = plan_reservations(recorded, start, &known, memory_bytes, &list, &count, error);
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = build_reservation(stage, start, &list[i], error);
    reservations_release(&known);
    free(list);
    return status;
}

struct ordered {
    uint64_t counter;
    uint64_t address;
    size_t index;
};

static int by_age(const void *left, const void *right) {
    const struct ordered *a = left, *b = right;
    if (a->counter != b->counter) return VR_ORDER(a->counter, b->counter);
    return VR_ORDER(a->address, b->address);
}

// Builds the oldest segments first if ages are recorded, so that ties between equal blocks break as recorded.
static enum vram_status build_segments(struct vr_replay_stage *stage, const struct vr_start *start, struct vram_error *error) {
    struct ordered *order = malloc((start->segment_count + 1) * sizeof *order);
    if (order == NULL) return VRAM_NO_HOST_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < start->segment_count; i++) {
        const struct vr_start_segment *segment = &start->segments[i];
        if (!segment->expandable) order[count++] = (struct ordered){segment->counter, segment->address, i};
    }
    if (count > 1) qsort(order, count, sizeof *order, by_age);
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = build_segment(stage, &start->segments[order[i].index], error);
    free(order);
    return status;
}

static enum vram_status build_blocks(struct vr_replay_stage *stage, const struct vr_start *start, struct vram_error *error) {
    // From high to low addresses: each block is then split from the first free block of its segment, which is found at once.
    for (size_t i = start->block_count; i-- > 0;) {
        const struct vr_start_block *block = &start->blocks[i];
        const struct vr_start_segment *segment = &start->segments[block->segment];
        enum vram_status status = vr_stage_enter(stage, segment->pool);
        if (status == VRAM_OK)
            status = vr_drive_malloc_at(stage->allocator, DEVICE, vr_stage_stream(stage, segment->stream), segment->small, block->address,
                                        block->size, block->requested);
        if (status == VRAM_OK && block->pending) status = vr_drive_free_request(stage->allocator, block->address);
        if (status != VRAM_OK) return refuse_stage(error, status, "block", block->address, block->size);
    }
    return VRAM_OK;
}

// Refuses more memory than any device has, because the tables grow with it.
static enum vram_status check_size(const struct vr_start *start, struct vram_error *error) {
    uint64_t sum = 0;
    for (size_t i = 0; i < start->segment_count; i++) {
        if (!vr_add_u64(sum, start->segments[i].size, &sum) || sum > VR_STAGE_SPACING)
            return vr_fail(error, VRAM_MISMATCH, VRAM_NO_OFFSET, "more than %s is reserved at the start, more than any device has",
                           vr_bytes(VR_STAGE_SPACING).text);
    }
    return VRAM_OK;
}

enum vram_status vr_stage_build(struct vr_replay_stage *stage, const struct vr_recorded_device *recorded, const struct vr_start *start,
                                struct vram_error *error) {
    uint64_t spacing = 0;
    VR_TRY(check_size(start, error));
    VR_TRY(vr_stage_spacing(recorded, start, &spacing));
    VR_TRY(build_segments(stage, start, error));
    VR_TRY(build_reservations(stage, recorded, start, spacing, error));
    return build_blocks(stage, start, error);
}
