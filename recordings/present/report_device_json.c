// Prints one device as JSON: its events, its final state, its live memory over the history, and the use of reserved memory.
#include "base/json_rows.h"
#include "present/report_members.h"
#include "present/shared_texts.h"
#include "vram/report.h"

// --- live memory --------------------------------------------------------------------------------------------------------------

#define SUM_FACTS(X)                                                                                                                       \
    X(U64, "count", it->count, ALWAYS, "number of allocations")                                                                            \
    X(U64, "bytes", it->bytes, ALWAYS, "their bytes")

static void put_sum(struct vr_json *json, const char *name, const struct vram_report_sum *it) {
    vr_json_object(json, name);
    SUM_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define LIFETIME_FACTS(X)                                                                                                                  \
    X(U64, "birth", it->birth_event, ALWAYS, "the event that allocated it")                                                                \
    X(U64, "death", it->death_event, ALWAYS, "the event that freed it")                                                                    \
    X(U64, "events", it->death_event - it->birth_event, ALWAYS, "events between the two")                                                  \
    X(U64, "addr", it->address, ALWAYS, "its address")                                                                                     \
    X(U64, "size", it->size_bytes, ALWAYS, "its bytes")                                                                                    \
    X(I64, "us", it->elapsed_us, NULL_UNLESS(it->has_time), "microseconds between the two events")                                         \
    X(TEXT, "site", it->site, ALWAYS, "its call site")

static void put_longest(struct vr_json *json, const char *key, const struct vram_report_live *live) {
    vr_json_array(json, key);
    for (size_t i = 0; i < live->longest_count; i++) {
        const struct vram_report_lifetime *it = &live->longest[i];
        vr_json_object(json, NULL);
        LIFETIME_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_anomalies(struct vr_json *json, const char *key, const uint64_t *anomalies) {
    static const char *const names[] = {
#define ANOMALY_NAME(constant, name, text) #name,
        VRAM_REPORT_ANOMALIES(ANOMALY_NAME)
#undef ANOMALY_NAME
    };
    vr_json_object(json, key);
    for (size_t a = 0; a < VRAM_ANOMALY_COUNT; a++) {
        if (anomalies[a] != 0) vr_json_u64(json, names[a], anomalies[a]);
    }
    vr_json_object_end(json);
}

#define LIVE_FACTS(X)                                                                                                                      \
    X(U64, "start_bytes", it->start.bytes, ALWAYS, "live bytes before event 0, from walking back from the final state")                    \
    X(U64, "start_count", it->start.count, ALWAYS, "number of live allocations at that moment")                                            \
    X(U64, "peak_bytes", it->peak.bytes, ALWAYS, "the largest total")                                                                      \
    X(I64, "peak_event_index", it->peak_event, ALWAYS, "first event after which it is reached; -1: before event 0")                        \
    X(U64, "live_count_at_peak", it->peak.count, ALWAYS, "number of live allocations at that moment")                                      \
    X(U64, "end_bytes", it->end.bytes, ALWAYS, "live bytes after the last event")                                                          \
    X(U64, "end_count", it->end.count, ALWAYS, "number of live allocations at that moment")                                                \
    X(U64, "end_bytes_from_final_state", it->final_state.bytes, ALWAYS, "live bytes in the final blocks")                                  \
    X(U64, "end_count_from_final_state", it->final_state.count, ALWAYS, "number of live allocations in the final blocks")                  \
    X(BOOL, "consistent", it->consistent, ALWAYS, "history and final state agree")                                                         \
    X(MAP, "anomalies", put_anomalies(json, key, it->anomalies), ALWAYS, "number of disagreements of each kind, if they disagree")         \
    X(ARRAY, "top_sites_at_peak", vr_report_json_groups(json, key, it->sites, it->site_count), ALWAYS,                                     \
      "the call sites with the most memory at the peak. A site is `file:line:function` of one frame of the stack; with `--plain-sites` "   \
      "that of the innermost Python frame outside torch, else of the innermost frame, as in other tools")                                  \
    X(U64, "distinct_sites_at_peak", it->distinct_sites, ALWAYS, "number of call sites with memory at the peak")                           \
    X(ARRAY, "top_stacks_at_peak", vr_report_json_groups(json, key, it->stacks, it->stack_count), ALWAYS,                                  \
      "the same by whole call stack; `site` is the first 16 hex digits of SHA-1 over `file:line:function\\n` of all frames, innermost "    \
      "first; "                                                                                                                            \
      "empty: no frames")                                                                                                                  \
    X(U64, "distinct_stacks_at_peak", it->distinct_stacks, ALWAYS, "number of call stacks with memory at the peak")                        \
    X(OBJECT, "born_and_freed_in_trace", put_sum(json, key, &it->born_and_freed), ALWAYS,                                                  \
      "`count` and `bytes`: allocated and freed in the history")                                                                           \
    X(OBJECT, "born_in_trace_live_at_end", put_sum(json, key, &it->born_and_kept), ALWAYS, "allocated in the history, live at its end")    \
    X(OBJECT, "live_before_trace_freed_in_trace", put_sum(json, key, &it->inherited_and_freed), ALWAYS,                                    \
      "live before the history, freed in it")                                                                                              \
    X(OBJECT, "live_before_trace_live_at_end", put_sum(json, key, &it->inherited_and_kept), ALWAYS,                                        \
      "live before the history and at its end")                                                                                            \
    X(ARRAY, "longest_lived", put_longest(json, key, it), ALWAYS, "allocations made and freed in the history, longest first (see below)")  \
    X(U64, "largest_allocation_in_trace", it->largest_bytes, ALWAYS, "bytes of the largest allocation in the history")

static void put_live(struct vr_json *json, const char *name, const struct vram_report_live *it) {
    vr_json_object(json, name);
    LIVE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

// --- the history and the final state ------------------------------------------------------------------------------------------

static void put_streams(struct vr_json *json, const char *key, const int64_t *streams, size_t count) {
    vr_json_array(json, key);
    for (size_t i = 0; i < count; i++) vr_json_i64(json, NULL, streams[i]);
    vr_json_array_end(json);
}

static void put_time_range(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_array(json, key);
    vr_json_i64(json, NULL, device->first_time_us);
    vr_json_i64(json, NULL, device->last_time_us);
    vr_json_array_end(json);
}

static void put_action_counts(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_object(json, key);
    for (size_t i = 0; i < device->action_count; i++) vr_json_u64(json, device->actions[i].name, device->actions[i].count);
    vr_json_object_end(json);
}

static void put_action_bytes(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_object(json, key);
    for (size_t i = 0; i < device->action_count; i++) vr_json_u64(json, device->actions[i].name, device->actions[i].bytes);
    vr_json_object_end(json);
}

static const char *kind_name(size_t kind) {
    static const char *const names[] = {"null", "small", "large"};
    return names[kind];
}

static void put_pool_id(struct vr_json *json, const char *key, const uint64_t id[2]) {
    vr_json_array(json, key);
    vr_json_u64(json, NULL, id[0]);
    vr_json_u64(json, NULL, id[1]);
    vr_json_array_end(json);
}

static void put_pool_ids(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_array(json, key);
    for (size_t i = 0; i < device->pool_id_count; i++) put_pool_id(json, NULL, device->pool_ids[i]);
    vr_json_array_end(json);
}

static void put_segment_kinds(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_object(json, key);
    for (size_t k = 0; k < 3; k++) {
        if (device->segments_of_kind[k] != 0) vr_json_u64(json, kind_name(k), device->segments_of_kind[k]);
    }
    vr_json_object_end(json);
}

static void put_states(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_object(json, key);
    for (size_t s = 0; s < VRAM_REPORT_STATES; s++) {
        const struct vram_report_state *it = &device->states[s];
        if (it->count == 0) continue;
        vr_json_object(json, vram_report_state_name(s));
        VRAM_REPORT_STATE_FACTS(VR_MEMBER_JSON)
        vr_json_object_end(json);
    }
    vr_json_object_end(json);
}

static void put_mismatches(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_object(json, key);
    for (size_t m = 0; m < VRAM_REPORT_MISMATCHES; m++) {
        if (device->mismatches[m] != 0) vr_json_u64(json, vram_report_mismatch_name(m), device->mismatches[m]);
    }
    vr_json_object_end(json);
}

// Returns whether the reserved peak is printed. A recording of a whole program sees only part of what comes from the driver, so its
// reserved peak is printed only if it covers the allocated peak. For other recordings a note reports the contradiction.
static bool covers_allocated(const struct vram_report_device *device) {
    const int64_t reserved = device->reserved.peak_bytes;
    return !device->whole_program || (reserved >= 0 && (uint64_t)reserved >= device->allocated.peak.bytes);
}

#define RESERVED_FACTS(X)                                                                                                                  \
    X(I64, "start_bytes", it->reserved.start_bytes, ALWAYS, "before event 0")                                                              \
    X(I64, "peak_bytes", it->reserved.peak_bytes, ALWAYS, "the largest total")                                                             \
    X(I64, "peak_event_index", it->reserved.peak_event, ALWAYS, "first event after which it is reached; -1: before event 0")               \
    X(I64, "end_bytes", it->reserved.end_bytes, ALWAYS, "the sum of the final segments")                                                   \
    X(BOOL, "consistent", it->reserved.consistent &&covers_allocated(it), ALWAYS,                                                          \
      "the total is never below 0, and the peak is not below that of live bytes. Under `vram run`, which sees only part of the driver's "  \
      "memory, the peak also covers "                                                                                                      \
      "that of "                                                                                                                           \
      "`allocated`")

static void put_reserved(struct vr_json *json, const char *name, const struct vram_report_device *it) {
    vr_json_object(json, name);
    RESERVED_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

static void put_usage(struct vr_json *json, const char *name, const struct vram_report_usage *it) {
    vr_json_object(json, name);
    VRAM_REPORT_USAGE_FACTS(VR_MEMBER_JSON)
    vr_json_object_end(json);
}

#define POOL_NAME_FACTS(X)                                                                                                                 \
    X(I64, "stream", it->stream, ALWAYS, "stream of the segments")                                                                         \
    X(ARRAY, "pool_id", put_pool_id(json, key, it->pool_id), ALWAYS, "the two numbers of the pool id; `[0, 0]` is the default pool")       \
    X(TEXT, "segment_type", kind_name(it->kind), NULL_UNLESS(it->kind != VRAM_REPORT_KIND_UNKNOWN), "`small` or `large`")

static void put_pools(struct vr_json *json, const char *name, const struct vram_report_device *device) {
    vr_json_array(json, name);
    for (size_t i = 0; i < device->pool_count; i++) {
        const struct vram_report_pool *it = &device->pools[i];
        vr_json_object(json, NULL);
        POOL_NAME_FACTS(VR_FACT_JSON)
        VRAM_REPORT_POOL_FACTS(VR_MEMBER_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_timeline(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_object(json, key);
    vr_json_array(json, "first_event");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_u64(json, NULL, device->timeline[i].first_event);
    vr_json_array_end(json);
    vr_json_array(json, "allocated_bytes");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_u64(json, NULL, device->timeline[i].allocated_bytes);
    vr_json_array_end(json);
    vr_json_array(json, "active_bytes");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_u64(json, NULL, device->timeline[i].active_bytes);
    vr_json_array_end(json);
    vr_json_array(json, "reserved_bytes");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_i64(json, NULL, device->timeline[i].reserved_bytes);
    vr_json_array_end(json);
    vr_json_object_end(json);
}

#define DEVICE_FACTS(X)                                                                                                                    \
    X(U64, "events", it->events, ALWAYS, "number of events")                                                                               \
    X(MAP, "events_by_action", put_action_counts(json, key, it), ALWAYS, "number of events per action")                                    \
    X(MAP, "event_bytes_by_action", put_action_bytes(json, key, it), ALWAYS, "sum of their sizes per action")                              \
    X(U64, "events_with_frames", it->events_with_frames, ALWAYS, "number of events with a call stack")                                     \
    X(U64, "max_frames", it->max_frames, ALWAYS, "number of frames of the deepest call stack")                                             \
    X(ARRAY, "streams_in_trace", put_streams(json, key, it->trace_streams, it->trace_stream_count), ALWAYS,                                \
      "distinct streams of the events, ascending")                                                                                         \
    X(ARRAY, "streams_in_segments", put_streams(json, key, it->segment_streams, it->segment_stream_count), ALWAYS,                         \
      "distinct streams of the final segments, ascending")                                                                                 \
    X(ARRAY, "time_us_first_last", put_time_range(json, key, it), NULL_UNLESS(it->has_times),                                              \
      "microseconds since the epoch of the first and last event that has a time")                                                          \
    X(BOOL, "time_us_monotonic", it->times_monotonic, NULL_UNLESS(it->has_times), "times never decrease")                                  \
    X(ARRAY, "oom", vr_report_json_oom_events(json, key, it), ALWAYS, "requests that ran out of memory (see below)")                       \
    X(U64, "segments", it->segments, ALWAYS, "number of final segments")                                                                   \
    X(MAP, "segments_by_type", put_segment_kinds(json, key, it), ALWAYS,                                                                   \
      "number of `small` and `large` ones (`null`: the file has no type)")                                                                 \
    X(U64, "expandable_segments", it->expandable_segments, ALWAYS, "number of expandable ones")                                            \
    X(ARRAY, "segment_pool_ids", put_pool_ids(json, key, it), ALWAYS,                                                                      \
      "distinct pool ids of the final segments (`[0, 0]` is the default pool)")                                                            \
    X(U64, "blocks", it->blocks, ALWAYS, "number of final blocks")                                                                         \
    X(MAP, "blocks_by_state", put_states(json, key, it), ALWAYS, "number per state (see below)")                                           \
    X(U64, "inactive_bytes", it->inactive.bytes, ALWAYS, "free blocks")                                                                    \
    X(U64, "inactive_blocks", it->inactive.count, ALWAYS, "number of free blocks")                                                         \
    X(U64, "largest_inactive_block", it->largest_inactive_bytes, ALWAYS, "bytes of the largest free block")                                \
    X(U64, "wholly_inactive_segments", it->wholly_inactive.count, ALWAYS, "number of segments with only free blocks")                      \
    X(U64, "wholly_inactive_segment_bytes", it->wholly_inactive.bytes, ALWAYS, "their bytes")                                              \
    X(MAP, "segment_sum_mismatches", put_mismatches(json, key, it), ALWAYS,                                                                \
      "per figure of a segment (`total_size`, `allocated_size`, `active_size`, `requested_size`, `block_not_contiguous`): number of "      \
      "segments "                                                                                                                          \
      "whose blocks disagree with it")                                                                                                     \
    X(OBJECT, "reserved", put_reserved(json, key, it), ALWAYS, "reserved memory (see below)")                                              \
    X(OBJECT, "allocated", put_live(json, key, &it->allocated), ALWAYS,                                                                    \
      "memory that is live from `alloc` to `free_requested` (see below)")                                                                  \
    X(OBJECT, "active", put_live(json, key, &it->active), ALWAYS, "memory that is live from `alloc` to `free_completed` (see below)")      \
    X(OBJECT, "usage_at_end", put_usage(json, key, &it->usage), ALWAYS, "the reserved bytes at the end by use (see below)")                \
    X(ARRAY, "pools", put_pools(json, key, it), ALWAYS, "the final segments per stream, pool and type, by reserved bytes (see below)")     \
    X(ARRAY, "oom_causes", vr_report_json_oom_causes(json, key, it), ALWAYS, "one object per element of `oom` (see below)")                \
    X(OBJECT, "demand", vr_demand_json(json, it->demand), OMIT_UNLESS(it->demand != NULL),                                                 \
      "if nothing failed: the composition of the memory at the peak, and remedies that lower it (see below)")                              \
    X(ARRAY, "libraries", vr_report_json_groups(json, key, it->libraries, it->library_count), OMIT_UNLESS(it->library_count != 0),         \
      "in recordings of `vram run`: memory at the peak by requesting library (`site`), by bytes")                                          \
    X(ARRAY, "kinds", vr_report_json_groups(json, key, it->kinds, it->kind_count), OMIT_UNLESS(it->library_count != 0),                    \
      "the same by kind of memory")                                                                                                        \
    X(OBJECT, "timeline", put_timeline(json, key, it), ALWAYS,                                                                             \
      "at most 240 equal runs of events, as arrays: `first_event` of each run, and the largest `allocated_bytes`, `active_bytes`, "        \
      "`reserved_bytes` within it")

void vr_report_json_device(struct vr_json *json, const char *name, const struct vram_report_device *it) {
    vr_json_object(json, name);
    DEVICE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}
