// exact_release.c: replays releases to the driver, and running out of memory (replay.md §releases, replay.md §out-of-memory).
#include "replay/exact_replay.h"
#include "vram/sim.h"

enum { DEVICE = 0, LOOK_AHEAD = 4096, WALK_BUDGET = 1 << 24 };

static bool is_release(const struct vr_exact *exact, size_t event) {
    const enum vr_action action = exact->recorded->history->action[event];
    return action == VR_ACTION_SEGMENT_FREE || action == VR_ACTION_SEGMENT_UNMAP;
}

static bool is_passed_over(const struct vr_exact *exact, size_t event) {
    return vr_action_is_ignored(exact->recorded->history->action[event]) || vr_recorded_device_leaves_out(exact->recorded, event);
}

// Returns the event after the last release of the run.
static size_t end_of_run(const struct vr_exact *exact, size_t event) {
    size_t end = event;
    for (size_t at = event; at < exact->recorded->history->count; at++) {
        if (is_passed_over(exact, at)) continue;
        if (!is_release(exact, at)) break;
        end = at + 1;
    }
    return end;
}

// --- comparing ---------------------------------------------------------------------------------------------------------------
static bool release_agrees(const struct vr_exact *exact, const struct vr_record *record, size_t event) {
    const struct vr_history *history = exact->recorded->history;
    const enum vr_record_action wanted =
        history->action[event] == VR_ACTION_SEGMENT_FREE ? VR_RECORD_SEGMENT_FREE : VR_RECORD_SEGMENT_UNMAP;
    return record->action == wanted && record->address == history->address[event] && record->size_bytes == history->size_bytes[event];
}

static enum vram_status differ_in_release(struct vr_exact *exact, size_t event, const struct vr_record *record) {
    exact->ties = true;
    struct vram_difference difference = vr_exact_difference(exact, VRAM_DIFFERENT_RELEASE, event);
    if (record != NULL) {
        difference.our_address = record->address;
        difference.our_size_bytes = record->size_bytes;
    }
    return vr_exact_differ(exact, &difference);
}

static const struct vr_record *next_release_record(const struct vr_exact *exact, size_t *at) {
    while (*at < exact->heard.count) {
        const struct vr_record *record = &exact->heard.records[(*at)++];
        if (record->action == VR_RECORD_SEGMENT_FREE || record->action == VR_RECORD_SEGMENT_UNMAP) return record;
    }
    return NULL;
}

// Compares each recorded release with the allocator's next one, in order, by address and size.
static enum vram_status compare_releases(struct vr_exact *exact, size_t event, size_t end) {
    size_t at = 0;
    exact->device->release_runs++;
    for (size_t i = event; i < end; i++) {
        if (is_passed_over(exact, i)) continue;
        const struct vr_record *record = next_release_record(exact, &at);
        exact->device->releases++;
        if (record != NULL && release_agrees(exact, record, i)) {
            exact->device->releases_agreeing++;
        } else {
            VR_TRY(differ_in_release(exact, i, record));
        }
    }
    for (const struct vr_record *extra = next_release_record(exact, &at); extra != NULL; extra = next_release_record(exact, &at)) {
        VR_TRY(differ_in_release(exact, end - 1, extra));
    }
    return VRAM_OK;
}

// --- releases -------------------------------------------------------------------------------------------------------------------
// With max_split_size, a failing request first releases a part of the cache (replay.md §releases). For the allocator to do the same, the
// simulated device gets exactly the memory with which the recorded releases are necessary and sufficient. Returns true if the run belongs
// to such a request: an allocation follows that no cached block serves, and new segments precede it. Sets *needed_bytes to their size. Sets
// *alloc to the allocation, even if no segments precede it; to SIZE_MAX if a cached block serves it or no allocation follows.
static bool find_retry(struct vr_exact *exact, size_t end, size_t *alloc, uint64_t *needed_bytes) {
    const struct vr_history *history = exact->recorded->history;
    if (exact->recorded->options->max_split_bytes == VR_UNLIMITED) return false;
    *needed_bytes = 0;
    *alloc = SIZE_MAX;
    for (size_t at = end; at < history->count; at++) {
        if (is_passed_over(exact, at)) continue;
        if (history->action[at] == VR_ACTION_SEGMENT_ALLOC || history->action[at] == VR_ACTION_SEGMENT_MAP) {
            *needed_bytes += history->size_bytes[at];
            continue;
        }
        uint64_t found = 0;
        const bool missed = history->action[at] == VR_ACTION_ALLOC && vr_exact_enter(exact, at) == VRAM_OK &&
                            vr_drive_peek(exact->stage.allocator, DEVICE, history->size_bytes[at],
                                          vr_stage_stream(&exact->stage, vr_entry_stream(history, at)), &found) == VRAM_OK &&
                            found == 0;
        if (missed) *alloc = at;
        return missed && *needed_bytes > 0;
    }
    return false;
}

// Returns the private pool of all segments in the run; 0 if they have no common one.
static uint32_t only_pool(const struct vr_exact *exact, size_t event, size_t end, size_t *count) {
    uint32_t only = 0;
    *count = 0;
    for (size_t i = event; i < end; i++) {
        if (is_passed_over(exact, i)) continue;
        const uint32_t pool = vr_recorded_device_pool(exact->recorded, i);
        if (pool == 0 || (only != 0 && pool != only) || exact->recorded->history->action[i] != VR_ACTION_SEGMENT_FREE) return 0;
        only = pool;
        ++*count;
    }
    return only;
}

// Counts wholly free segments, up to one more than in the run.
struct cached_count {
    size_t count;
    size_t most;
};

static bool count_cached(uint64_t address, uint64_t size_bytes, void *user) {
    struct cached_count *cached = user;
    (void)address, (void)size_bytes;
    return ++cached->count <= cached->most;
}

// Determines whether a run of one private pool includes all of its cached segments: then the pool ended or was trimmed. Otherwise one of
// its requests needed memory.
static enum vram_status is_whole_pool(struct vr_exact *exact, uint32_t pool, size_t count, bool *whole) {
    if (exact->stage.pools[pool] == NULL) return VRAM_OK;
    struct cached_count cached = {.most = count};
    VR_TRY(vr_drive_walk_cached(exact->stage.allocator, DEVICE, exact->stage.pools[pool], count_cached, &cached, &exact->walked));
    *whole = count == cached.count;
    return VRAM_OK;
}

// Returns the number of the pool's segments in the run; 0 if the pool occurs in the run before `at`.
static size_t count_of_pool(const struct vr_exact *exact, uint32_t pool, size_t event, size_t at, size_t end) {
    for (size_t i = at; i-- > event;) {
        if (!is_passed_over(exact, i) && vr_recorded_device_pool(exact->recorded, i) == pool) return 0;
    }
    size_t count = 0;
    for (size_t i = at; i < end; i++) count += !is_passed_over(exact, i) && vr_recorded_device_pool(exact->recorded, i) == pool;
    return count;
}

// Refines *whole: releasing the whole cache includes the free memory of pools without an owner, so a run without it released only a part.
// So did a run that left cached segments of a pool that it released from.
static enum vram_status freeable_agree(struct vr_exact *exact, size_t event, size_t end, bool *whole) {
    bool any = false;
    for (size_t i = event; i < end && *whole; i++) {
        const uint32_t pool = is_passed_over(exact, i) ? 0 : vr_recorded_device_pool(exact->recorded, i);
        const size_t count = pool == 0 ? 0 : count_of_pool(exact, pool, event, i, end);
        any = any || pool != 0;
        if (count > 0) VR_TRY(is_whole_pool(exact, pool, count, whole));
    }
    if (any) return VRAM_OK;
    for (uint32_t pool = 1; *whole && pool < exact->recorded->pools.count; pool++) {
        if (exact->freeable[pool]) VR_TRY(is_whole_pool(exact, pool, 0, whole));
    }
    return VRAM_OK;
}

// Compares a run of releases with the cache in the order in which the allocator would release it. A different order of equal segments is
// left for the comparison to find.
struct cached_run {
    const struct vr_exact *exact;
    size_t at;
    size_t end;
    bool same;
    struct vr_map cached; // addresses of the cache visited so far
    enum vram_status status;
};

// Skips to the next segment. Pages are unmapped only with the whole cache, so they prove nothing.
static void to_next_segment(struct cached_run *run) {
    const struct vr_exact *exact = run->exact;
    while (run->at < run->end && (is_passed_over(exact, run->at) || vr_recorded_device_pool(exact->recorded, run->at) != 0 ||
                                  exact->recorded->history->action[run->at] == VR_ACTION_SEGMENT_UNMAP))
        run->at++;
}

static bool follow_cached(uint64_t address, uint64_t size_bytes, void *user) {
    struct cached_run *run = user;
    to_next_segment(run);
    run->same = run->at < run->end && run->exact->recorded->history->size_bytes[run->at] == size_bytes;
    run->status = run->same ? vr_map_set(&run->cached, address, 1) : VRAM_OK;
    run->at++;
    return run->same && run->status == VRAM_OK;
}

static bool all_were_cached(struct cached_run *run, size_t event) {
    for (run->at = event, to_next_segment(run); run->at < run->end; run->at++, to_next_segment(run)) {
        if (vr_map_get(&run->cached, run->exact->recorded->history->address[run->at]) == 0) return false;
    }
    return true;
}

// Determines whether the run is the whole cache of the default pools in order: then the program emptied it, or the retry had the same
// effect.
static enum vram_status is_whole_cache(struct vr_exact *exact, size_t event, size_t end, bool *whole) {
    size_t count = 0;
    if (exact->walked > WALK_BUDGET + 16 * exact->recorded->history->count) return VRAM_OK;
    const uint32_t pool = only_pool(exact, event, end, &count);
    if (pool != 0) return is_whole_pool(exact, pool, count, whole);
    struct cached_run run = {.exact = exact, .at = event, .end = end, .same = true};
    VR_TRY(vr_drive_walk_cached(exact->stage.allocator, DEVICE, NULL, follow_cached, &run, &exact->walked));
    if (run.same) to_next_segment(&run);
    *whole = run.same && run.at == end && all_were_cached(&run, event);
    vr_map_release(&run.cached);
    VR_TRY(run.status);
    return *whole ? freeable_agree(exact, event, end, whole) : VRAM_OK;
}

static uint64_t released_bytes(const struct vr_exact *exact, size_t event, size_t end) {
    uint64_t sum = 0;
    for (size_t i = event; i < end; i++) {
        if (!is_passed_over(exact, i)) sum += exact->recorded->history->size_bytes[i];
    }
    return sum;
}

static enum vram_status retry_release(struct vr_exact *exact, size_t event, size_t end, size_t alloc, uint64_t needed_bytes, size_t *next) {
    const uint64_t used = vram_sim_memory_used(exact->stage.driver, DEVICE), released = released_bytes(exact, event, end);
    uint64_t memory = used + needed_bytes;
    memory = memory > released ? memory - released : 0;
    if (memory > VR_STAGE_ENDLESS) memory = VR_STAGE_ENDLESS;
    VR_TRY(vram_sim_set_memory(exact->stage.driver, DEVICE, memory));
    for (size_t at = end; at < alloc; at++) {
        if (!is_passed_over(exact, at)) VR_TRY(vr_exact_add_pending(exact, at));
    }
    exact->waits = (struct vr_waits){.last_request = SIZE_MAX, .searched = SIZE_MAX};
    VR_TRY(vr_exact_alloc(exact, alloc));
    VR_TRY(compare_releases(exact, event, end));
    *next = alloc + 1;
    return vram_sim_set_memory(exact->stage.driver, DEVICE, VR_STAGE_ENDLESS);
}

// Replays the release of a part of the cache by rules whose inputs are not recorded (replay.md §releases): ages with a garbage collection
// threshold, waits in between with max_split_size. Releases each segment as recorded; it agrees if the allocator can do so.
static enum vram_status release_as_recorded(struct vr_exact *exact, size_t event, size_t end) {
    const struct vr_history *history = exact->recorded->history;
    for (size_t i = event; i < end; i++) {
        if (is_passed_over(exact, i)) continue;
        const uint64_t address = history->address[i];
        const bool segment = history->action[i] == VR_ACTION_SEGMENT_FREE;
        const enum vram_status status =
            segment ? vr_drive_release(exact->stage.allocator, address) : vr_drive_unmap(exact->stage.allocator, address);
        if (vr_exact_is_fatal(status)) return status;
    }
    exact->device->releases_as_recorded += end - event;
    return compare_releases(exact, event, end);
}

// --- passes ---------------------------------------------------------------------------------------------------------------------

// Replay pools are never destroyed, so that nothing is released unless requested. The allocator releases the whole cache in this order: the
// default pools, then every private pool without an owner, in an order that only the recording shows. A destroyed private pool is released
// alone. Private pools without the default pools before them look the same in both cases.

static enum vram_status release_pool(struct vr_exact *exact, uint32_t pool) {
    const enum vram_status status =
        pool == 0 ? vr_drive_empty_default_pools(exact->stage.allocator, DEVICE) : vr_stage_trim(&exact->stage, pool);
    return vr_exact_is_fatal(status) ? status : VRAM_OK;
}

// Marks the pool as ownerless if its last use is past. (With max_split_size, parts of an owned pool can also be released.)
static void note_freeable(struct vr_exact *exact, uint32_t pool, size_t event) {
    if (pool != 0 && event >= exact->recorded->pools.used[pool]) exact->freeable[pool] = true;
}

// Ends a pass: releases the pools without an owner whose segments the recording has kept so far, as the allocator does.
static enum vram_status release_freeable(struct vr_exact *exact) {
    for (uint32_t pool = 1; pool < exact->recorded->pools.count; pool++) {
        if (exact->freeable[pool]) VR_TRY(release_pool(exact, pool));
    }
    return VRAM_OK;
}

static enum vram_status release_in_passes(struct vr_exact *exact, size_t event, size_t end) {
    uint32_t last = VR_POOL_UNKNOWN;
    bool whole = false; // the pass began with the default pools
    for (size_t at = event; at < end; at++) {
        if (is_passed_over(exact, at)) continue;
        const uint32_t pool = vr_recorded_device_pool(exact->recorded, at);
        if (pool == last) continue;
        if (pool == 0 && whole) VR_TRY(release_freeable(exact));
        VR_TRY(release_pool(exact, pool));
        note_freeable(exact, pool, at);
        whole = whole || pool == 0;
        last = pool;
    }
    return whole ? release_freeable(exact) : VRAM_OK;
}

// Returns whether every release is in this allocation's pool or in the default pools. The allocator then makes these releases by itself.
static bool only_of(const struct vr_exact *exact, size_t event, size_t end, size_t alloc) {
    for (size_t at = event; at < end; at++) {
        const uint32_t pool = vr_recorded_device_pool(exact->recorded, at);
        if (!is_passed_over(exact, at) && pool != 0 && pool != vr_recorded_device_pool(exact->recorded, alloc)) return false;
    }
    return true;
}

// With reclaim_streams, a request takes a free segment of another stream, which the history shows as a release and an allocation of the
// segment. Returns whether this release is the first half of that; sets *made to the other half and *alloc to the request.
static bool is_move(const struct vr_exact *exact, size_t event, size_t *made, size_t *alloc) {
    const struct vr_history *history = exact->recorded->history;
    size_t at[2], count = 0;
    if (!exact->recorded->options->reclaim_streams || history->action[event] != VR_ACTION_SEGMENT_FREE) return false;
    for (size_t i = event + 1; i < history->count && count < 2; i++) {
        if (!is_passed_over(exact, i)) at[count++] = i;
    }
    if (count < 2 || history->action[at[0]] != VR_ACTION_SEGMENT_ALLOC || history->action[at[1]] != VR_ACTION_ALLOC) return false;
    *made = at[0], *alloc = at[1];
    return history->address[*made] == history->address[event] && history->size_bytes[*made] == history->size_bytes[event] &&
           vr_entry_stream(history, *made) != vr_entry_stream(history, event);
}

static enum vram_status replay_move(struct vr_exact *exact, size_t event, size_t made, size_t alloc, size_t *next) {
    VR_TRY(vr_exact_add_pending(exact, made));
    exact->waits = (struct vr_waits){.last_request = SIZE_MAX, .searched = SIZE_MAX};
    VR_TRY(vr_exact_alloc(exact, alloc));
    *next = alloc + 1;
    return compare_releases(exact, event, event + 1);
}

static enum vram_status replay_release(struct vr_exact *exact, size_t event, size_t *next) {
    size_t end = end_of_run(exact, event), made = 0, alloc = 0;
    uint64_t needed_bytes = 0;
    if (is_move(exact, event, &made, &alloc)) return replay_move(exact, event, made, alloc, next);
    if (is_move(exact, end - 1, &made, &alloc)) end--;
    *next = end;
    if (exact->recorded->options->garbage_collection_threshold > 0) return release_as_recorded(exact, event, end);
    if (exact->recorded->options->max_split_bytes != VR_UNLIMITED) {
        bool whole = false;
        VR_TRY(is_whole_cache(exact, event, end, &whole));
        const bool retried = find_retry(exact, end, &alloc, &needed_bytes);
        if (!whole && retried && only_of(exact, event, end, alloc)) return retry_release(exact, event, end, alloc, needed_bytes, next);
        exact->waits.searched = alloc;
        if (!whole) return release_as_recorded(exact, event, end);
    }
    VR_TRY(vr_exact_learn_releases(exact, event, end));
    VR_TRY(release_in_passes(exact, event, end));
    return compare_releases(exact, event, end);
}

enum vram_status vr_exact_release(struct vr_exact *exact, size_t event, size_t *next) {
    VR_TRY(replay_release(exact, event, next));
    return vr_exact_note_gone(exact, event, *next);
}

// --- out of memory ----------------------------------------------------------------------------------------------------------------
// Fails requests as the recorded program did: nothing cached may fit, the device refuses, and there is nothing to release.

// A failing request may reserve address space, which is mapped later. Queues the address of the next map of its stream and pool after
// *from, and sets *from to it; if none exists, sets *from to SIZE_MAX and queues nothing.
static enum vram_status queue_next_map(struct vr_exact *exact, size_t event, size_t *from) {
    const struct vr_history *history = exact->recorded->history;
    const bool small = history->size_bytes[event] <= VR_MIB;
    size_t at = *from + 1;
    *from = SIZE_MAX;
    for (; at < history->count && at - event < LOOK_AHEAD; at++) {
        if (history->action[at] != VR_ACTION_SEGMENT_MAP || vr_entry_stream(history, at) != vr_entry_stream(history, event)) continue;
        if ((history->size_bytes[at] == 2 * VR_MIB) != small || is_passed_over(exact, at)) continue;
        if (vr_recorded_device_pool(exact->recorded, at) != vr_recorded_device_pool(exact->recorded, event)) continue;
        const enum vram_status status = vram_sim_queue_reservation(exact->stage.driver, history->address[at]);
        *from = at;
        return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status;
    }
    return VRAM_OK;
}

// Makes the request on a full device. The next map may be in address space that is already reserved; if this request has used that up, the
// driver refuses it twice, and the new reservation is mapped at a later map.
static enum vram_status request_in_vain(struct vr_exact *exact, size_t event, uint64_t stream, uint64_t *address) {
    enum { ATTEMPTS = 64 };
    const uint64_t size = vr_exact_request(exact, event);
    enum vram_status status = VRAM_DRIVER;
    size_t from = event;
    for (int i = 0; i < ATTEMPTS && from != SIZE_MAX && status == VRAM_DRIVER; i++) {
        VR_TRY(queue_next_map(exact, event, &from));
        exact->heard.count = 0;
        status = vram_malloc(exact->stage.allocator, DEVICE, size, stream, address);
        VR_TRY(vram_sim_clear_queues(exact->stage.driver));
    }
    return status;
}

static enum vram_status try_to_fail(struct vr_exact *exact, size_t event, bool *alike) {
    const struct vr_history *history = exact->recorded->history;
    const uint64_t stream = vr_stage_stream(&exact->stage, vr_entry_stream(history, event));
    uint64_t address = 0;
    VR_TRY(vr_drive_peek(exact->stage.allocator, DEVICE, vr_exact_request(exact, event), stream, &address));
    if (address != 0) return VRAM_OK;
    VR_TRY(vram_sim_set_memory(exact->stage.driver, DEVICE, vram_sim_memory_used(exact->stage.driver, DEVICE)));
    const enum vram_status status = request_in_vain(exact, event, stream, &address);
    VR_TRY(vram_sim_set_memory(exact->stage.driver, DEVICE, VR_STAGE_ENDLESS));
    if (status == VRAM_OK) return vram_free(exact->stage.allocator, address);
    if (vr_exact_is_fatal(status)) return status;
    *alike = status == VRAM_OUT_OF_MEMORY && exact->heard.count == 1 && exact->heard.records[0].action == VR_RECORD_OOM &&
             exact->heard.records[0].size_bytes == history->size_bytes[event];
    return VRAM_OK;
}

// The free blocks of the default pools and of the request's pool that could be released.
struct kept_cache {
    const struct vr_options *options;
    struct vram_pool_id asked;
    struct vram_block_view *views;
    size_t count;
    size_t capacity;
    bool failed;
};

static bool is_view_of_pool(const struct vram_block_view *view, struct vram_pool_id id) {
    return view->block.pool.first == id.first && view->block.pool.second == id.second;
}

// Returns whether the block is a wholly free segment or includes a whole page of an expandable one.
static bool could_go(const struct vr_options *options, const struct vram_block_view *view) {
    if (!view->block.expandable) return view->block.size_bytes == view->block.segment_bytes;
    const uint64_t page = vr_recorded_device_page(options, view->small_pool);
    const uint64_t start = view->block.address - view->block.segment_address;
    return vr_round_up(start, page) + page <= start + view->block.size_bytes;
}

static bool keep_free_block(const struct vram_block_view *view, void *user) {
    struct kept_cache *kept = user;
    if (view->state != VRAM_BLOCK_FREE || !(is_view_of_pool(view, (struct vram_pool_id){0, 0}) || is_view_of_pool(view, kept->asked)))
        return true;
    if (!could_go(kept->options, view)) return true;
    kept->failed = vr_grow((void **)&kept->views, &kept->capacity, kept->count + 1, sizeof *kept->views) != VRAM_OK;
    if (!kept->failed) kept->views[kept->count++] = *view;
    return !kept->failed;
}

// Allocates each of these blocks as a whole, so that nothing can be released. *held is their number, even after a failure.
static enum vram_status hold_cache(struct vr_exact *exact, const struct kept_cache *kept, uint32_t pool, size_t *held) {
    for (*held = 0; *held < kept->count; ++*held) {
        const struct vram_block_view *view = &kept->views[*held];
        VR_TRY(vr_stage_enter(&exact->stage, is_view_of_pool(view, (struct vram_pool_id){0, 0}) ? 0 : pool));
        VR_TRY(vr_drive_malloc_at(exact->stage.allocator, DEVICE, view->block.stream, view->small_pool, view->block.address,
                                  view->block.size_bytes, view->block.size_bytes));
    }
    return vr_stage_enter(&exact->stage, pool);
}

static enum vram_status let_go(struct vr_exact *exact, const struct kept_cache *kept, size_t held) {
    enum vram_status status = VRAM_OK;
    while (held > 0 && status == VRAM_OK) {
        const uint64_t address = kept->views[--held].block.address;
        status = vr_drive_free_request(exact->stage.allocator, address);
        if (status == VRAM_OK) status = vr_drive_free_complete(exact->stage.allocator, address);
    }
    return status;
}

// Lets a request fail without releasing the cache, as during a capture. Captures are not recorded, but releases by a failing request
// precede its event: a cache that is still there at the event was kept (replay.md §out-of-memory). Captures also leave private pools.
static enum vram_status try_to_fail_keeping(struct vr_exact *exact, size_t event, bool *alike) {
    const uint32_t pool = exact->stage.entered;
    struct kept_cache kept = {.options = exact->recorded->options,
                              .asked = pool == 0 ? (struct vram_pool_id){0, 0} : vram_get_pool_id(exact->stage.pools[pool])};
    const struct vr_history *history = exact->recorded->history;
    uint64_t address = 0;
    size_t held = 0;
    VR_TRY(vr_drive_peek(exact->stage.allocator, DEVICE, vr_exact_request(exact, event),
                         vr_stage_stream(&exact->stage, vr_entry_stream(history, event)), &address));
    if (address != 0) return VRAM_OK;
    enum vram_status status = vram_walk(exact->stage.allocator, DEVICE, keep_free_block, &kept);
    if (status == VRAM_OK && kept.failed) status = VRAM_NO_HOST_MEMORY;
    if (status == VRAM_OK) status = hold_cache(exact, &kept, pool, &held);
    if (status == VRAM_OK) status = try_to_fail(exact, event, alike);
    const enum vram_status freed = let_go(exact, &kept, held);
    free(kept.views);
    return status == VRAM_OK ? freed : status;
}

static enum vram_status fails_alike(struct vr_exact *exact, size_t event, bool *alike) {
    struct vr_exact_hiders hiders = {.count = 0};
    enum vram_status status = VRAM_OK;
    if (exact->waits.completed) status = vr_exact_hide(exact, event, &hiders);
    exact->waits = (struct vr_waits){.last_request = SIZE_MAX};
    const bool keeping = exact->recorded->pools.count > 1;
    if (status == VRAM_OK) status = keeping ? try_to_fail_keeping(exact, event, alike) : try_to_fail(exact, event, alike);
    const enum vram_status unhidden = vr_exact_unhide(exact, &hiders);
    return status == VRAM_OK ? unhidden : status;
}

enum vram_status vr_exact_oom(struct vr_exact *exact, size_t event) {
    bool alike = false;
    enum vram_status status = VRAM_OK;
    exact->device->oom_events++;
    VR_TRY(vr_exact_enter(exact, event));
    if (exact->pending_count > 0) {
        // Pages mapped before the failure stay (replay.md §out-of-memory); another attempt would release them first.
        VR_TRY(vr_exact_flush_pending(exact));
        VR_TRY(vr_exact_enter(exact, event));
        uint64_t found = 0;
        const struct vr_history *history = exact->recorded->history;
        status = vr_drive_peek(exact->stage.allocator, DEVICE, vr_exact_request(exact, event),
                               vr_stage_stream(&exact->stage, vr_entry_stream(history, event)), &found);
        alike = status == VRAM_OK && found == 0;
    } else {
        status = fails_alike(exact, event, &alike);
    }
    if (vr_exact_is_fatal(status)) return status;
    if (alike) {
        exact->device->oom_events_agreeing++;
        return VRAM_OK;
    }
    struct vram_difference difference = vr_exact_difference(exact, VRAM_DIFFERENT_OOM, event);
    difference.recorded_address = 0; // in an oom event this field holds the driver's free bytes
    return vr_exact_differ(exact, &difference);
}
