// A trace for Perfetto (its trace.proto): per device a process with counters (allocated, active, reserved; also per private pool),
// annotations as slices, and out-of-memory events as instants.
#include <inttypes.h>
#include <stdio.h>

#include "export/export.h"

// Field numbers of trace.proto and the files that it imports.
enum { TRACE_PACKET = 1, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_FLAGS = 13, PACKET_TRACK = 60 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6, COUNTER_UNIT = 3, UNIT_BYTES = 3 };
enum { EVENT_DEBUG = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORY = 22, EVENT_NAME = 23, EVENT_COUNTER = 30 };
enum { DEBUG_UNSIGNED = 3, DEBUG_NAME = 10 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { SEQUENCE = 1, FLAG_CLEARED = 1 };

enum counter_track { ALLOCATED, ACTIVE, RESERVED, COUNTERS };
static const char *const counter_names[COUNTERS] = {"allocated", "active", "reserved"};

// A pool of one device; entry 0 is the sum of all its pools. Its counters' tracks are uuid, uuid + 1, uuid + 2.
struct pool {
    uint64_t first, second;
    uint64_t bytes[COUNTERS]; // negative (two's complement) if the recording contradicts itself
    uint64_t uuid;
};

enum { MOST_POOLS = 256 };
struct tracer {
    struct vr_output *out;
    const struct vr_view *view;
    struct pool *pools; // MOST_POOLS
    size_t pool_count;
    struct vr_text packet, part, inner; // scratch
    uint64_t next_uuid;
    uint64_t process; // uuids of this device's tracks
    uint64_t marks;
    uint64_t ooms;
    bool begun;
    int64_t first_us; // time of the device's first event
};

static void end_packet(struct tracer *tracer) {
    vr_proto_number(&tracer->packet, PACKET_SEQUENCE, SEQUENCE);
    if (!tracer->begun) vr_proto_number(&tracer->packet, PACKET_FLAGS, FLAG_CLEARED);
    tracer->begun = true;
    vr_proto_message(&tracer->out->text, TRACE_PACKET, &tracer->packet);
}

// Writes a track. tracer->part has the fields other than uuid, name and parent.
static uint64_t put_track(struct tracer *tracer, const char *name, uint64_t parent) {
    const uint64_t uuid = tracer->next_uuid++;
    vr_proto_number(&tracer->part, TRACK_UUID, uuid);
    vr_proto_string(&tracer->part, TRACK_NAME, name);
    if (parent != 0) vr_proto_number(&tracer->part, TRACK_PARENT, parent);
    vr_proto_message(&tracer->packet, PACKET_TRACK, &tracer->part);
    end_packet(tracer);
    return uuid;
}

static void put_device_tracks(struct tracer *tracer) {
    char name[48];
    const uint32_t device = tracer->view->device;
    (void)snprintf(name, sizeof name, vr_model_is_host(tracer->view->model, device) ? "pinned host memory" : "device %" PRIu32, device);
    vr_proto_number(&tracer->inner, PROCESS_PID, (uint64_t)device + 1);
    vr_proto_string(&tracer->inner, PROCESS_NAME, name);
    vr_proto_message(&tracer->part, TRACK_PROCESS, &tracer->inner);
    tracer->process = put_track(tracer, name, 0);
    tracer->marks = put_track(tracer, "annotations", tracer->process);
    tracer->ooms = put_track(tracer, "out of memory", tracer->process);
}

// --- events

// Writes an event. tracer->part has the fields specific to it.
static void put_track_event(struct tracer *tracer, int64_t time_us, unsigned type, uint64_t track) {
    vr_proto_number(&tracer->packet, PACKET_TIMESTAMP, time_us < 0 ? 0 : (uint64_t)time_us * 1000);
    vr_proto_number(&tracer->part, EVENT_TYPE, type);
    vr_proto_number(&tracer->part, EVENT_TRACK, track);
    vr_proto_message(&tracer->packet, PACKET_EVENT, &tracer->part);
    end_packet(tracer);
}

static void put_counter(struct tracer *tracer, struct pool *pool, unsigned counter, int64_t time_us) {
    vr_proto_number(&tracer->part, EVENT_COUNTER, pool->bytes[counter] > INT64_MAX ? 0 : pool->bytes[counter]);
    put_track_event(tracer, time_us, TYPE_COUNTER, pool->uuid + counter);
}

static void put_annotation_number(struct tracer *tracer, const char *name, uint64_t value) {
    vr_proto_string(&tracer->inner, DEBUG_NAME, name);
    vr_proto_number(&tracer->inner, DEBUG_UNSIGNED, value);
    vr_proto_message(&tracer->part, EVENT_DEBUG, &tracer->inner);
}

static void put_oom(struct tracer *tracer, size_t i) {
    const struct vr_history *history = tracer->view->history;
    vr_proto_string(&tracer->part, EVENT_NAME, "out of memory");
    vr_proto_string(&tracer->part, EVENT_CATEGORY, "oom");
    put_annotation_number(tracer, "size_bytes", history->size_bytes[i]);
    if ((vr_entry_has(history, i) & VR_HAS_DEVICE_FREE) != 0) put_annotation_number(tracer, "device_free_bytes", history->address[i]);
    put_track_event(tracer, vr_export_time_us(history, i), TYPE_INSTANT, tracer->ooms);
}

// --- pools and their counters

static struct pool *find_pool(struct tracer *tracer, uint64_t first, uint64_t second) {
    for (size_t i = 1; i < tracer->pool_count; i++) {
        if (tracer->pools[i].first == first && tracer->pools[i].second == second) return &tracer->pools[i];
    }
    if (tracer->pool_count == MOST_POOLS) return NULL;
    struct pool *pool = &tracer->pools[tracer->pool_count++];
    *pool = (struct pool){.first = first, .second = second};
    return pool;
}

// Computes the event's change of each counter; decreases are two's complement.
static void changes_of(const struct vr_history *history, size_t i, uint64_t changes[COUNTERS]) {
    const uint64_t size = history->size_bytes[i];
    memset(changes, 0, COUNTERS * sizeof *changes);
    switch (history->action[i]) {
    case VR_ACTION_ALLOC: changes[ALLOCATED] = changes[ACTIVE] = size; break;
    case VR_ACTION_FREE_REQUESTED: changes[ALLOCATED] = 0 - size; break;
    case VR_ACTION_FREE_COMPLETED: changes[ACTIVE] = 0 - size; break;
    case VR_ACTION_FREE: changes[ALLOCATED] = changes[ACTIVE] = 0 - size; break;
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_MAP: changes[RESERVED] = size; break;
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_UNMAP: changes[RESERVED] = 0 - size; break;
    default: break;
    }
}

static void add_changes(struct pool *pool, const uint64_t changes[COUNTERS], bool undo) {
    if (pool == NULL) return;
    for (int c = 0; c < COUNTERS; c++) pool->bytes[c] += undo ? 0 - changes[c] : changes[c];
}

static struct pool *pool_of_event(struct tracer *tracer, size_t i) {
    const struct vr_history *history = tracer->view->history;
    if ((vr_entry_has(history, i) & VR_HAS_POOL_ID) == 0) return NULL;
    return find_pool(tracer, history->pool_first[i], history->pool_second[i]);
}

// Computes the counters before the first event: their final values minus all changes by events.
static void begin_pools(struct tracer *tracer) {
    const struct vr_segments *segments = &tracer->view->model->segments;
    const struct vr_blocks *blocks = &tracer->view->model->blocks;
    uint64_t changes[COUNTERS];
    tracer->pools[0] = (struct pool){0};
    tracer->pool_count = 1;
    for (size_t s = 0; s < tracer->view->segment_count; s++) {
        const size_t row = tracer->view->segments[s];
        memset(changes, 0, sizeof changes);
        changes[RESERVED] = segments->total_bytes[row];
        for (uint64_t b = segments->first_block[row]; b < segments->first_block[row + 1]; b++) {
            if (vr_state_allocated(blocks->state[b])) changes[ALLOCATED] += blocks->requested_bytes[b];
            if (vr_state_active(blocks->state[b])) changes[ACTIVE] += blocks->requested_bytes[b];
        }
        add_changes(&tracer->pools[0], changes, false);
        if ((segments->has[row] & VR_HAS_POOL_ID) != 0) {
            add_changes(find_pool(tracer, segments->pool_first[row], segments->pool_second[row]), changes, false);
        }
    }
    for (size_t i = 0; i < tracer->view->history->count; i++) {
        changes_of(tracer->view->history, i, changes);
        add_changes(&tracer->pools[0], changes, true);
        add_changes(pool_of_event(tracer, i), changes, true);
    }
    // If everything is in the default pool, its counters equal the device's.
    if (tracer->pool_count == 2) tracer->pool_count = 1;
}

static void put_pools(struct tracer *tracer) {
    for (size_t p = 0; p < tracer->pool_count; p++) {
        struct pool *pool = &tracer->pools[p];
        pool->uuid = tracer->next_uuid;
        for (int c = 0; c < COUNTERS; c++) {
            char name[80];
            (void)snprintf(name, sizeof name, p == 0 ? "%s" : "%s, pool (%" PRIu64 ",%" PRIu64 ")", counter_names[c], pool->first,
                           pool->second);
            vr_proto_number(&tracer->inner, COUNTER_UNIT, UNIT_BYTES);
            vr_proto_message(&tracer->part, TRACK_COUNTER, &tracer->inner);
            (void)put_track(tracer, name, tracer->process);
            put_counter(tracer, pool, (unsigned)c, tracer->first_us);
        }
    }
}

static void put_changes(struct tracer *tracer, struct pool *pool, const uint64_t changes[COUNTERS], int64_t time_us) {
    if (pool == NULL) return;
    add_changes(pool, changes, false);
    for (unsigned c = 0; c < COUNTERS; c++) {
        if (changes[c] != 0) put_counter(tracer, pool, c, time_us);
    }
}

static void put_history(struct tracer *tracer) {
    const struct vr_history *history = tracer->view->history;
    uint64_t changes[COUNTERS];
    for (size_t i = 0; i < history->count && vr_output_flow(tracer->out); i++) {
        const int64_t time_us = vr_export_time_us(history, i);
        changes_of(history, i, changes);
        put_changes(tracer, &tracer->pools[0], changes, time_us);
        if (tracer->pool_count > 1) put_changes(tracer, pool_of_event(tracer, i), changes, time_us);
        if (history->action[i] == VR_ACTION_OOM) put_oom(tracer, i);
    }
}

// Writes the device's marks; the first device also gets marks without a device.
static void put_marks(struct tracer *tracer, bool first) {
    const struct vr_model *model = tracer->view->model;
    for (size_t i = 0; i < model->annotation_count && vr_output_flow(tracer->out); i++) {
        const struct vr_annotation *mark = &model->annotations[i];
        const char *stage = vr_model_string(model, mark->stage);
        if (mark->device != (int64_t)tracer->view->device && !(first && mark->device < 0)) continue;
        const unsigned type = strcmp(stage, "START") == 0 ? TYPE_BEGIN : strcmp(stage, "END") == 0 ? TYPE_END : TYPE_INSTANT;
        if (type != TYPE_END) vr_proto_string(&tracer->part, EVENT_NAME, vr_model_string(model, mark->name));
        put_track_event(tracer, mark->time_us, type, tracer->marks);
    }
}

enum vram_status vr_export_perfetto(const struct vr_exporting *from, struct vr_output *out) {
    struct tracer tracer = {.out = out, .next_uuid = 1, .pools = malloc(MOST_POOLS * sizeof(struct pool))};
    if (tracer.pools == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t v = 0; v < from->views->count; v++) {
        tracer.view = &from->views->view[v];
        tracer.first_us = tracer.view->history->count == 0 ? 0 : vr_export_time_us(tracer.view->history, 0);
        put_device_tracks(&tracer);
        begin_pools(&tracer);
        put_pools(&tracer);
        put_marks(&tracer, v == 0);
        put_history(&tracer);
    }
    free(tracer.pools);
    vr_text_release(&tracer.packet);
    vr_text_release(&tracer.part);
    vr_text_release(&tracer.inner);
    return VRAM_OK;
}
