// Runs a golden trace. The traces' driver had increasing addresses and events that are pending until an operation completes them. The
// simulator does the same, so addresses can be compared directly.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "golden/golden.h"
#include "driver/driver.h"
#include "support/world.h"
#include "vram/pool.h"
#include "vram/sim.h"

// A private pool. Every capture into it holds a reference until `d` releases one.
struct pool {
    struct vram_pool *handle;
    struct vram_pool_id id;
    uint32_t references;
};

struct run {
    const struct golden_trace *trace;
    struct golden_report *report;
    struct vr_world world;
    uint64_t *address; // by id; 0 = not live
    struct pool *pool; // by the trace's number
    size_t next_map;
};

// Returns the simulator's handle for a stream of the trace; both increase together.
static uint64_t stream_of(const struct run *run, uint64_t number) { return run->world.stream[0][number]; }

static void differ(struct run *run, uint32_t line, const char *format, ...) VRAM_PRINTF(3, 4);
static void differ(struct run *run, uint32_t line, const char *format, ...) {
    char *text = run->report->first;
    if (*text) return;
    const size_t room = sizeof run->report->first;
    const int used = snprintf(text, room, "line %u: ", (unsigned)line);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + used, room - (size_t)used, format, arguments);
    va_end(arguments);
}

static bool equal_number(struct run *run, uint32_t line, const char *name, int64_t expected, int64_t found) {
    if (expected != found) differ(run, line, "%s: expected %" PRId64 ", found %" PRId64, name, expected, found);
    return expected == found;
}

static bool equal_answer(struct run *run, const struct golden_operation *operation, uint64_t address, enum vram_status status) {
    struct vram_stats stats;
    if (vram_get_stats(run->world.allocator, 0, &stats) != VRAM_OK) return false;
    bool equal = true;
    if (operation->result == GOLDEN_OOM && status != VRAM_OUT_OF_MEMORY) {
        differ(run, operation->line, "expected OOM, found %s at 0x%" PRIx64, vram_status_name(status), address);
        equal = false;
    } else if (operation->result != GOLDEN_OOM && status != VRAM_OK) {
        differ(run, operation->line, "expected success, found %s", vram_status_name(status));
        equal = false;
    } else if (operation->result == GOLDEN_ADDRESS && address != operation->address) {
        differ(run, operation->line, "expected address 0x%" PRIx64 ", found 0x%" PRIx64, operation->address, address);
        equal = false;
    }
    const int64_t *expected = operation->number;
#define FAMILY(name)         stats.name[VRAM_STAT_ALL].current
#define COMPARE(name, value) equal &= equal_number(run, operation->line, #name, *expected++, value);
    COMPARE(allocated_bytes, FAMILY(allocated_bytes))
    COMPARE(active_bytes, FAMILY(active_bytes))
    COMPARE(inactive_split_bytes, FAMILY(inactive_split_bytes))
    COMPARE(reserved_bytes, FAMILY(reserved_bytes))
    COMPARE(requested_bytes, FAMILY(requested_bytes))
    COMPARE(allocation, FAMILY(allocation))
    COMPARE(active, FAMILY(active))
    COMPARE(inactive_split, FAMILY(inactive_split))
    COMPARE(segment, FAMILY(segment))
    COMPARE(num_alloc_retries, stats.num_alloc_retries)
    COMPARE(num_ooms, stats.num_ooms)
    COMPARE(num_device_alloc, stats.num_device_alloc)
    COMPARE(num_device_free, stats.num_device_free)
#undef COMPARE
#undef FAMILY
    return equal;
}

static enum vram_status free_id(struct run *run, uint32_t id) {
    const uint64_t address = run->address[id];
    run->address[id] = 0;
    return vram_free(run->world.allocator, address);
}

static enum vram_status begin_capture(struct run *run, const struct golden_operation *operation) {
    static const struct vram_pool_options for_graph = {.for_graph = true};
    struct pool *pool = &run->pool[operation->pool];
    if (pool->references == 0) {
        VR_TRY(vram_pool_create(run->world.allocator, 0, &for_graph, &pool->handle));
        pool->id = vram_get_pool_id(pool->handle);
    } else {
        vram_pool_retain(pool->handle);
    }
    pool->references++;
    return vram_capture_begin(pool->handle, stream_of(run, operation->stream), VRAM_CAPTURE_GLOBAL, NULL);
}

static enum vram_status end_capture(struct run *run, const struct golden_operation *operation) {
    uint64_t graph = 0;
    VR_TRY(vram_capture_end(run->pool[operation->pool].handle, stream_of(run, operation->stream), &graph, NULL));
    return vr_cu(run->world.sim, graph_destroy, graph) == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER;
}

static enum vram_status destroy_graph(struct run *run, const struct golden_operation *operation) {
    struct pool *pool = &run->pool[operation->pool];
    if (pool->references == 0) return VRAM_BAD_INPUT;
    pool->references--;
    vram_pool_release(pool->handle);
    return VRAM_OK;
}

static enum vram_status execute(struct run *run, const struct golden_operation *operation, uint64_t *address) {
    struct vram_allocator *allocator = run->world.allocator;
    switch (operation->kind) {
    case 'k': return vram_sim_set_memory(run->world.sim, 0, operation->bytes);
    case 'x': return vram_set_memory_fraction(allocator, 0, operation->fraction);
    case 'm': {
        const enum vram_status status = vram_malloc(allocator, 0, operation->bytes, stream_of(run, operation->stream), address);
        if (status == VRAM_OK) run->address[operation->id] = *address;
        return status;
    }
    case 'f': return free_id(run, operation->id);
    case 'r': return vram_record_stream(allocator, run->address[operation->id], stream_of(run, operation->stream));
    case 'e': return vram_empty_cache_device(allocator, 0);
    case 's': return vram_sim_complete_all(run->world.sim);
    case 'w': return vr_world_complete(&run->world, 0, stream_of(run, operation->stream));
    case 'g': return begin_capture(run, operation);
    case 'h': return end_capture(run, operation);
    case 'd': return destroy_graph(run, operation);
    default: return VRAM_OK; // M requests the map, which follows in the file
    }
}

// The walk that compares the live state with the trace's.
struct map_walk {
    struct run *run;
    uint32_t line;
    const struct golden_segment *segment, *segment_end;
    struct golden_segment sum; // sums over the blocks of *segment so far
    size_t seen;               // number of those
    bool equal;
};

static bool close_segment(struct map_walk *walk) {
    const struct golden_segment *expected = walk->segment;
    if (walk->seen != expected->block_count || walk->sum.size_bytes != expected->size_bytes ||
        walk->sum.allocated_bytes != expected->allocated_bytes || walk->sum.active_bytes != expected->active_bytes ||
        walk->sum.requested_bytes != expected->requested_bytes) {
        differ(walk->run, walk->line, "map: segment 0x%" PRIx64 " differs in its sums", expected->address);
        return false;
    }
    walk->segment++;
    walk->seen = 0;
    memset(&walk->sum, 0, sizeof walk->sum);
    return true;
}

static bool equal_pool(const struct run *run, uint64_t number, struct vram_pool_id id) {
    static const struct vram_pool_id none = {0, 0};
    if (number >= run->trace->pool_count && number != 0) return false;
    const struct vram_pool_id expected = number == 0 ? none : run->pool[number].id;
    return expected.first == id.first && expected.second == id.second;
}

static bool equal_block(const struct map_walk *walk, const struct vram_block_view *view) {
    static const enum golden_state states[] = {
        [VRAM_BLOCK_FREE] = GOLDEN_INACTIVE, [VRAM_BLOCK_ALLOCATED] = GOLDEN_ALLOCATED, [VRAM_BLOCK_PENDING] = GOLDEN_PENDING};
    const struct golden_segment *segment = walk->segment;
    const struct golden_block *block = &walk->run->trace->blocks[segment->first_block + walk->seen];
    return walk->seen < segment->block_count && block->address == view->block.address && block->size_bytes == view->block.size_bytes &&
           block->state == states[view->state] &&
           (view->state == VRAM_BLOCK_FREE || block->requested_bytes == view->block.requested_bytes) &&
           (walk->seen > 0 || segment->address == view->block.address) && stream_of(walk->run, segment->stream) == view->block.stream &&
           equal_pool(walk->run, segment->pool, view->block.pool) && segment->small_pool == view->small_pool &&
           segment->expandable == view->block.expandable;
}

static bool visit(const struct vram_block_view *view, void *user) {
    struct map_walk *walk = user;
    if (walk->segment < walk->segment_end && walk->seen == walk->segment->block_count && !close_segment(walk)) return walk->equal = false;
    if (walk->segment == walk->segment_end || !equal_block(walk, view)) {
        differ(walk->run, walk->line, "map: block 0x%" PRIx64 " of %" PRIu64 " bytes differs", view->block.address, view->block.size_bytes);
        return walk->equal = false;
    }
    walk->seen++;
    walk->sum.size_bytes += view->block.size_bytes;
    if (view->state == VRAM_BLOCK_ALLOCATED) walk->sum.allocated_bytes += view->block.size_bytes;
    if (view->state == VRAM_BLOCK_FREE) return true;
    walk->sum.active_bytes += view->block.size_bytes;
    walk->sum.requested_bytes += view->block.requested_bytes;
    return true;
}

static enum vram_status compare_map(struct run *run, const struct golden_map *map) {
    struct map_walk walk = {.run = run, .line = map->line, .equal = true};
    if (map->segment_count != 0) {
        walk.segment = run->trace->segments + map->first_segment;
        walk.segment_end = walk.segment + map->segment_count;
    }
    VR_TRY(vram_walk(run->world.allocator, 0, visit, &walk));
    if (walk.equal && walk.segment < walk.segment_end) walk.equal = close_segment(&walk);
    if (walk.equal && walk.segment < walk.segment_end) {
        differ(run, map->line, "map: segment 0x%" PRIx64 " is missing", walk.segment->address);
        walk.equal = false;
    }
    run->report->maps++;
    run->report->maps_equal += walk.equal;
    return VRAM_OK;
}

static enum vram_status compare_due_maps(struct run *run, size_t done) {
    const struct golden_trace *trace = run->trace;
    while (run->next_map < trace->map_count && trace->maps[run->next_map].after == done)
        VR_TRY(compare_map(run, &trace->maps[run->next_map++]));
    return VRAM_OK;
}

static enum vram_status compare_peaks(struct run *run) {
    if (!run->trace->has_peaks) return VRAM_OK;
    struct vram_stats stats;
    VR_TRY(vram_get_stats(run->world.allocator, 0, &stats));
    const int64_t *expected = run->trace->peak;
#define COMPARE(name)                                                                                                                      \
    run->report->peaks++;                                                                                                                  \
    run->report->peaks_equal += equal_number(run, run->trace->peaks_line, "peak of " #name, *expected++, stats.name[VRAM_STAT_ALL].peak);
    GOLDEN_PEAKS(COMPARE)
#undef COMPARE
    return VRAM_OK;
}

// Driver calls whose number follows from the allocator's rules. Others in a trace (eventCreate, eventQuery, eventSync, streamSync,
// memGetInfo, getDevice, ...) depend on the host code: an event may be known complete without a query, and a device's properties may be
// cached.
static const struct {
    const char *name; // in the trace
    const char *call; // in the simulator
} compared_calls[] = {
    {"malloc", "cuMemAlloc"},
    {"free", "cuMemFree"},
    {"memAddressReserve", "cuMemAddressReserve"},
    {"memAddressFree", "cuMemAddressFree"},
    {"memCreate", "cuMemCreate"},
    {"memRelease", "cuMemRelease"},
    {"memMap", "cuMemMap"},
    {"memUnmap", "cuMemUnmap"},
    {"memSetAccess", "cuMemSetAccess"},
    {"eventRecord", "cuEventRecord"},
};

static void compare_calls(struct run *run) {
    const struct golden_trace *trace = run->trace;
    if (trace->driver_line == 0) return;
    for (size_t i = 0; i < VR_COUNT_OF(compared_calls); i++) {
        uint64_t expected = 0; // a call missing in the trace was never made
        for (size_t k = 0; k < trace->driver_count; k++)
            if (strcmp(trace->driver[k].name, compared_calls[i].name) == 0) expected = trace->driver[k].count;
        run->report->counts++;
        run->report->counts_equal += equal_number(run, trace->driver_line, compared_calls[i].call, (int64_t)expected,
                                                  (int64_t)vram_sim_calls(run->world.sim, compared_calls[i].call));
    }
}

static enum vram_status run_all(struct run *run, struct vram_error *error) {
    const struct golden_trace *trace = run->trace;
    VR_TRY(compare_due_maps(run, 0));
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct golden_operation *operation = &trace->operations[i];
        uint64_t address = 0;
        const enum vram_status status = execute(run, operation, &address);
        if (status != VRAM_OK && status != VRAM_OUT_OF_MEMORY)
            return vr_fail(error, status, operation->line, "line %u: operation `%c` failed: %s", (unsigned)operation->line, operation->kind,
                           vram_status_text(status));
        if (operation->has_answer) {
            run->report->operations++;
            run->report->operations_equal += equal_answer(run, operation, address, status);
        }
        VR_TRY(compare_due_maps(run, i + 1));
    }
    VR_TRY(compare_peaks(run));
    compare_calls(run);
    return vram_check(run->world.allocator, error);
}

enum vram_status golden_run(const struct golden_trace *trace, struct golden_report *report, struct vram_error *error) {
    memset(report, 0, sizeof *report);
    struct run run = {.trace = trace, .report = report};
    // The later of two versions wins: the one in the option string.
    char conf[sizeof trace->conf + 64];
    (void)snprintf(conf, sizeof conf, "search_after_wait:False,pytorch:%s%s%s", trace->rules[0] == '\0' ? "2.6" : trace->rules,
                   trace->conf[0] == '\0' ? "" : ",", trace->conf);
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 80 * VR_GIB,
                .addresses = VRAM_SIM_RISING,
                .alloc_base = 0x300000000000,
                .reserve_base = 0x400000000000,
                .reserve_alignment = VR_GIB,
                .manual_completion = true},
        .conf = conf,
        .without_record = true,
    };
    run.address = calloc(trace->id_count + 1, sizeof *run.address);
    run.pool = calloc(trace->pool_count + 1, sizeof *run.pool);
    if (!run.address || !run.pool) {
        free(run.address);
        free(run.pool);
        return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no memory for %u ids", (unsigned)trace->id_count);
    }
    enum vram_status status = vr_world_open(&run.world, &options);
    if (status != VRAM_OK) {
        free(run.address);
        free(run.pool);
        return vr_fail(error, status, VRAM_NO_OFFSET, "no allocator with options \"%s\": %s", trace->conf, vram_status_text(status));
    }
    status = run_all(&run, error);
    const uint64_t left = vr_world_close(&run.world);
    free(run.address);
    free(run.pool);
    if (status == VRAM_OK && left)
        status = vr_fail(error, VRAM_MISMATCH, VRAM_NO_OFFSET, "%" PRIu64 " driver objects were left behind", left);
    return status;
}
