// Compares the allocator with the naive model.
#include "model/both.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "core/device.h"
#include "core/front.h"
#include "support/random.h"
#include "vram/sim.h"

void both_differ(struct both *both, const char *format, ...) {
    if (both->difference[0]) return;
    const int used = snprintf(both->difference, sizeof both->difference, "operation %" PRIu64 ": ", both->operation);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(both->difference + used, sizeof both->difference - (size_t)used, format, arguments);
    va_end(arguments);
}

// --- after each operation --------------------------------------------------------------------------------------------------

static const char *action_name(enum vr_record_action action) {
    static const char *const names[] = {
        [VR_RECORD_ALLOC] = "alloc",
        [VR_RECORD_FREE_REQUESTED] = "free_requested",
        [VR_RECORD_FREE_COMPLETED] = "free_completed",
        [VR_RECORD_SEGMENT_ALLOC] = "segment_alloc",
        [VR_RECORD_SEGMENT_FREE] = "segment_free",
        [VR_RECORD_SEGMENT_MAP] = "segment_map",
        [VR_RECORD_SEGMENT_UNMAP] = "segment_unmap",
        [VR_RECORD_OOM] = "oom",
    };
    return names[action];
}

static bool equal_record(const struct vr_record *a, const struct vr_record *b) {
    return a->action == b->action && a->address == b->address && a->size_bytes == b->size_bytes && a->stream == b->stream &&
           a->device == b->device;
}

// Orders records. Completions on several streams have no defined order, so they are compared as a set.
static int record_order(const void *left, const void *right) {
    const struct vr_record *a = left, *b = right;
    if (a->action != b->action) return a->action < b->action ? -1 : 1;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void sort_completions(struct vr_record *records, size_t count) {
    for (size_t begin = 0; begin < count;) {
        size_t end = begin;
        while (end < count && records[end].action == VR_RECORD_FREE_COMPLETED) end++;
        if (end > begin) qsort(records + begin, end - begin, sizeof *records, record_order);
        begin = end + 1;
    }
}

static void print_record(char *text, size_t room, const struct vr_record *record) {
    if (!record)
        (void)snprintf(text, room, "nothing");
    else
        (void)snprintf(text, room, "%s 0x%" PRIx64 " %" PRIu64 " bytes stream 0x%" PRIx64 " device %u", action_name(record->action),
                       record->address, record->size_bytes, record->stream, (unsigned)record->device);
}

static bool equal_records(struct both *both) {
    size_t count = 0;
    struct vr_record *core = both->world.records;
    const size_t core_count = both->world.record_count;
    struct vr_record *naive = naive_records(both->naive, &count);
    if (both->world.record_lost) {
        both_differ(both, "records were lost for lack of host memory");
        return false;
    }
    if (!both->one_event_stream) {
        sort_completions(core, core_count);
        sort_completions(naive, count);
    }
    for (size_t i = 0; i < core_count || i < count; i++) {
        if (i < core_count && i < count && equal_record(&core[i], &naive[i])) continue;
        char found[160], expected[160];
        print_record(found, sizeof found, i < core_count ? &core[i] : NULL);
        print_record(expected, sizeof expected, i < count ? &naive[i] : NULL);
        both_differ(both, "record %zu: found %s, expected %s", i, found, expected);
        return false;
    }
    return true;
}

// Checks that sequence numbers of each device increase.
static bool rising_sequences(struct both *both) {
    uint64_t last[NAIVE_DEVICES] = {0};
    bool seen[NAIVE_DEVICES] = {false};
    for (size_t i = 0; i < both->world.record_count; i++) {
        const struct vr_record *record = &both->world.records[i];
        if (seen[record->device] && record->sequence <= last[record->device]) {
            both_differ(both, "record %zu: sequence %" PRIu64 " after %" PRIu64, i, record->sequence, last[record->device]);
            return false;
        }
        seen[record->device] = true;
        last[record->device] = record->sequence;
    }
    return true;
}

bool both_compare_step(struct both *both, enum vram_status core, enum vram_status naive, uint64_t core_address, uint64_t naive_address) {
    bool equal = core == naive && core_address == naive_address;
    if (core != naive)
        both_differ(both, "found %s, expected %s", vram_status_name(core), vram_status_name(naive));
    else if (!equal)
        both_differ(both, "found address 0x%" PRIx64 ", expected 0x%" PRIx64, core_address, naive_address);
    equal = equal && (both->setup->bare || (rising_sequences(both) && equal_records(both)));
    vr_world_forget(&both->world);
    naive_forget_records(both->naive);
    return equal;
}

// --- statistics ----------------------------------------------------------------------------------------------------------------

static bool equal_field(struct both *both, const char *family, int pool, const char *field, int64_t found, int64_t expected) {
    static const char *const pools[] = {"all", "small_pool", "large_pool"};
    if (found == expected) return true;
    both_differ(both, "%s.%s.%s: found %" PRId64 ", expected %" PRId64, family, pools[pool], field, found, expected);
    return false;
}

static bool equal_stat(struct both *both, const char *family, int pool, const struct vram_stat *found, const struct vram_stat *expected) {
    // The peak of inactive_split is undefined if completions have no defined order, or pieces were cut off below an address.
    const bool order_matters = (!both->one_event_stream || both->exact_operations) && strstr(family, "inactive_split") != NULL;
    if (!equal_field(both, family, pool, "current", found->current, expected->current)) return false;
    if (order_matters) return true;
    return equal_field(both, family, pool, "peak", found->peak, expected->peak) &&
           equal_field(both, family, pool, "allocated", found->allocated, expected->allocated) &&
           equal_field(both, family, pool, "freed", found->freed, expected->freed);
}

static bool equal_stats(struct both *both, uint32_t device) {
    struct vram_stats found;
    const struct vram_stats *expected = naive_stats(both->naive, device);
    const enum vram_status status = vram_get_stats(both->world.allocator, device, &found);
    if (status != VRAM_OK) {
        both_differ(both, "vram_get_stats: %s", vram_status_name(status));
        return false;
    }
#define COMPARE(name, is_bytes, text)                                                                                                      \
    for (int pool = 0; pool < VRAM_STAT_POOLS; pool++)                                                                                     \
        if (!equal_stat(both, #name, pool, &found.name[pool], &expected->name[pool])) return false;
    VRAM_STAT_FAMILIES(COMPARE)
#undef COMPARE
#define COMPARE(name, text)                                                                                                                \
    if (!equal_field(both, #name, 0, "value", found.name, expected->name)) return false;
    VRAM_STAT_SCALARS(COMPARE)
#undef COMPARE
    return equal_stat(both, "oversize_allocations", 0, &found.oversize_allocations, &expected->oversize_allocations) &&
           equal_stat(both, "oversize_segments", 0, &found.oversize_segments, &expected->oversize_segments);
}

static bool equal_counters(struct both *both, uint32_t ordinal) {
    const struct vr_device *device = vr_device_if_used(both->world.allocator, ordinal);
    const struct vram_stats *expected = naive_stats(both->naive, ordinal);
    if (!device) return true;
    // Work on a copy, so that the front stays unchanged.
    struct vr_device copy = *device;
    struct vram_stats found = {0};
    atomic_store(&copy.lock, 1);
    vr_front_book(&copy);
    vr_totals_report(&copy.stats.totals, &found);
#define COMPARE(name)                                                                                                                      \
    for (int pool = 0; pool < VRAM_STAT_POOLS; pool++)                                                                                     \
        if (!equal_stat(both, "counted " #name, pool, &found.name[pool], &expected->name[pool])) return false;
    COMPARE(allocation)
    COMPARE(allocated_bytes)
    COMPARE(active)
    COMPARE(active_bytes)
    COMPARE(requested_bytes)
    COMPARE(inactive_split)
    COMPARE(inactive_split_bytes)
#undef COMPARE
    return true;
}

bool both_compare_counters(struct both *both) {
    for (uint32_t device = 0; device < both->device_count; device++)
        if (!equal_counters(both, device)) return false;
    return true;
}

// --- the blocks ------------------------------------------------------------------------------------------------------------------------

static bool equal_info(const struct vram_block_info *a, const struct vram_block_info *b) {
    return a->address == b->address && a->size_bytes == b->size_bytes && a->requested_bytes == b->requested_bytes &&
           a->segment_address == b->segment_address && a->segment_bytes == b->segment_bytes && a->stream == b->stream &&
           a->device == b->device && a->expandable == b->expandable && a->pool.first == b->pool.first && a->pool.second == b->pool.second;
}

struct picture_walk {
    struct both *both;
    const struct vram_block_view *expected;
    size_t count, seen;
    bool equal;
};

static bool visit(const struct vram_block_view *view, void *user) {
    struct picture_walk *walk = user;
    const struct vram_block_view *expected = walk->seen < walk->count ? &walk->expected[walk->seen] : NULL;
    walk->seen++;
    if (expected && equal_info(&view->block, &expected->block) && view->state == expected->state &&
        view->small_pool == expected->small_pool)
        return true;
    both_differ(walk->both,
                "picture: found block 0x%" PRIx64 " size %" PRIu64 " requested %" PRIu64 " state %d, expected 0x%" PRIx64 " %" PRIu64
                " %" PRIu64 " %d (or its segment differs)",
                view->block.address, view->block.size_bytes, view->block.requested_bytes, (int)view->state,
                expected ? expected->block.address : 0, expected ? expected->block.size_bytes : 0,
                expected ? expected->block.requested_bytes : 0, expected ? (int)expected->state : -1);
    return walk->equal = false;
}

static bool equal_picture(struct both *both, uint32_t device) {
    struct picture_walk walk = {.both = both, .equal = true};
    walk.expected = naive_picture(both->naive, device, &walk.count);
    const enum vram_status status = vram_walk(both->world.allocator, device, visit, &walk);
    if (status != VRAM_OK)
        both_differ(both, "vram_walk: %s", vram_status_name(status));
    else if (walk.equal && walk.seen != walk.count)
        both_differ(both, "picture: found %zu blocks, expected %zu", walk.seen, walk.count);
    return status == VRAM_OK && walk.equal && walk.seen == walk.count;
}

// Compares the answers for one block, at its start and at an address inside.
static bool equal_answers(struct both *both, uint32_t device) {
    size_t count = 0;
    const struct vram_block_view *views = naive_picture(both->naive, device, &count);
    if (count == 0) return true;
    const struct vram_block_view *view = &views[vr_random_below(&both->check_random, count)];
    const uint64_t inside = view->block.address + vr_random_below(&both->check_random, view->block.size_bytes);
    const enum vram_status wanted = view->state == VRAM_BLOCK_ALLOCATED ? VRAM_OK : VRAM_INVALID_POINTER;
    struct vram_block_info info = {0}, found = {0};
    const enum vram_status by_start = vram_get_block_info(both->world.allocator, view->block.address, &info);
    const enum vram_status by_byte = vram_find_block(both->world.allocator, inside, &found);
    if (by_start != wanted || by_byte != wanted) {
        both_differ(both, "block 0x%" PRIx64 ": vram_get_block_info %s, vram_find_block(0x%" PRIx64 ") %s, expected %s",
                    view->block.address, vram_status_name(by_start), inside, vram_status_name(by_byte), vram_status_name(wanted));
        return false;
    }
    const uint64_t size = vram_allocated_size(both->world.allocator, view->block.address);
    const bool equal = wanted == VRAM_OK
                           ? equal_info(&info, &view->block) && equal_info(&found, &view->block) && size == view->block.size_bytes
                           : size == 0;
    if (!equal) both_differ(both, "block 0x%" PRIx64 ": wrong facts about its address", view->block.address);
    return equal;
}

static bool equal_device(struct both *both, uint32_t device) {
    const char *wrong = naive_check(both->naive, device);
    if (wrong) {
        both_differ(both, "the model itself is wrong: %s", wrong);
        return false;
    }
    const uint64_t found = vram_sim_memory_used(both->world.sim, device), expected = naive_memory_used(both->naive, device);
    if (found != expected) {
        both_differ(both, "driver memory in use: found %" PRIu64 ", expected %" PRIu64, found, expected);
        return false;
    }
    return equal_stats(both, device) && equal_picture(both, device) && equal_answers(both, device);
}

static bool equal_pool(struct both *both, const struct both_pool *pool) {
    struct vram_pool_stats found, expected;
    const enum vram_status status = vram_get_pool_stats(pool->core, &found);
    if (status != VRAM_OK) both_differ(both, "vram_get_pool_stats: %s", vram_status_name(status));
    naive_pool_stats(both->naive, pool->naive, &expected);
    const struct vram_pool_id a = vram_get_pool_id(pool->core), b = naive_pool_id(pool->naive);
    for (int view = 0; view < VRAM_STAT_POOLS; view++)
        if (!equal_stat(both, "reserved_bytes of a pool", view, &found.reserved_bytes[view], &expected.reserved_bytes[view])) return false;
#define COMPARE(name, found, expected) equal_field(both, "pool." name, 0, "value", (int64_t)(found), (int64_t)(expected))
    return status == VRAM_OK && COMPARE("id", a.first, b.first) && COMPARE("id", a.second, b.second) &&
           COMPARE("references", vram_pool_references(pool->core), naive_pool_references(pool->naive)) &&
           COMPARE("allocated_bytes", found.allocated_bytes, expected.allocated_bytes) &&
           COMPARE("active_bytes", found.active_bytes, expected.active_bytes) &&
           COMPARE("free_bytes", found.free_bytes, expected.free_bytes) && COMPARE("blocks", found.blocks, expected.blocks) &&
           COMPARE("segments", found.segments, expected.segments);
#undef COMPARE
}

bool both_compare_all(struct both *both) {
    for (uint32_t device = 0; device < both->device_count; device++)
        if (!equal_device(both, device)) return false;
    for (size_t i = 0; i < BOTH_POOLS; i++)
        if (both->pools[i].core && !equal_pool(both, &both->pools[i])) return false;
    if (!both_compare_snapshot(both)) return false;
    struct vram_error error = {0};
    const enum vram_status status = vram_check(both->world.allocator, &error);
    if (status != VRAM_OK) both_differ(both, "vram_check: %s: %s", vram_status_name(status), error.message);
    return status == VRAM_OK;
}

// --- the report of a failure -----------------------------------------------------------------------------------------------------

bool both_compare_oom(struct both *both) {
    struct vram_oom found;
    const struct vram_oom *expected = naive_oom(both->naive);
    if (!vram_last_oom(&found)) {
        both_differ(both, "vram_last_oom: no report");
        return false;
    }
#define COMPARE(name)                                                                                                                      \
    if ((uint64_t)found.name != (uint64_t)expected->name) {                                                                                \
        both_differ(both, "OOM report: " #name ": found %" PRIu64 ", expected %" PRIu64, (uint64_t)found.name, (uint64_t)expected->name);  \
        return false;                                                                                                                      \
    }
    COMPARE(device)
    COMPARE(stream)
    COMPARE(requested_bytes)
    COMPARE(rounded_bytes)
    COMPARE(segment_bytes)
    COMPARE(device_total_bytes)
    COMPARE(device_free_bytes)
    COMPARE(limit_bytes)
    COMPARE(allocated_bytes)
    COMPARE(reserved_bytes)
    COMPARE(pending_bytes)
    COMPARE(cached_bytes)
    COMPARE(largest_free_bytes)
    COMPARE(other_stream_bytes)
    COMPARE(other_pool_bytes)
    COMPARE(private_pool_bytes)
    COMPARE(rejected)
    COMPARE(limit_hit)
#undef COMPARE
    return true;
}
