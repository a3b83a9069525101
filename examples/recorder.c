// recorder.c: implements recorder.h. A picture is the result of vram_walk(). The difference of two pictures shows which segments were
// allocated and freed, and which frees that waited for another stream are complete.
#include "recorder.h"

#include <vram/sim.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8, FILE_EPOCH_S = 1750000000 };

struct frame {
    const char *function;
    int line;
};

struct stack {
    struct frame frames[DEPTH_MAX]; // innermost first
    int depth;
};

struct event {
    const char *action;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    uint64_t time_us;
    struct stack stack;
};

struct picture {
    struct vram_block_view *blocks;
    size_t count;
    size_t capacity;
};

struct segment {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    bool small_pool;
};

// A block of the program: live, or freed and pending.
struct holding {
    uint64_t address;
    uint64_t size_bytes; // requested
    uint64_t stream;
    struct stack stack;
};

struct recorder {
    struct vram_allocator *allocator;
    struct vram_driver *driver;
    struct frame calls[DEPTH_MAX]; // outermost first
    int depth;
    struct event *events;
    size_t event_count, event_capacity;
    struct picture before;
    struct picture after;
    struct holding *live;
    size_t live_count, live_capacity;
    struct holding *pending;
    size_t pending_count, pending_capacity;
};

static void need(enum vram_status status, const char *what) {
    if (status == VRAM_OK) return;
    fprintf(stderr, "%s: %s\n", what, vram_status_text(status));
    exit(1);
}

static void *grown(void *items, size_t *capacity, size_t needed, size_t item_bytes) {
    if (needed <= *capacity) return items;
    *capacity = needed * 2;
    items = realloc(items, *capacity * item_bytes);
    if (items == NULL) need(VRAM_NO_HOST_MEMORY, "recorder");
    return items;
}

static struct stack stack_of(const struct recorder *recorder, const char *function, int line) {
    struct stack stack = {.depth = 0};
    if (function != NULL) stack.frames[stack.depth++] = (struct frame){function, line};
    for (int i = recorder->depth; i-- > 0 && stack.depth < DEPTH_MAX;) stack.frames[stack.depth++] = recorder->calls[i];
    return stack;
}

static void add_event(struct recorder *recorder, const char *action, uint64_t address, uint64_t size_bytes, uint64_t stream,
                      struct stack stack) {
    recorder->events = grown(recorder->events, &recorder->event_capacity, recorder->event_count + 1, sizeof *recorder->events);
    const uint64_t time_us = (uint64_t)FILE_EPOCH_S * 1000000 + vram_sim_clock_ns(recorder->driver) / 1000;
    recorder->events[recorder->event_count++] = (struct event){action, address, size_bytes, stream, time_us, stack};
}

// --- pictures ---------------------------------------------------------------------------------------------------------------
static bool add_block(const struct vram_block_view *view, void *user) {
    struct picture *picture = user;
    picture->blocks = grown(picture->blocks, &picture->capacity, picture->count + 1, sizeof *picture->blocks);
    picture->blocks[picture->count++] = *view;
    return true;
}

static void look(struct recorder *recorder) {
    const struct picture old = recorder->before;
    recorder->before = recorder->after;
    recorder->after = old;
    recorder->after.count = 0;
    need(vram_walk(recorder->allocator, 0, add_block, &recorder->after), "vram_walk");
}

static bool starts_segment(const struct picture *picture, size_t i) {
    return i == 0 || picture->blocks[i].block.segment_address != picture->blocks[i - 1].block.segment_address;
}

static struct segment segment_at(const struct picture *picture, size_t i) {
    const struct vram_block_view *view = &picture->blocks[i];
    return (struct segment){view->block.segment_address, view->block.segment_bytes, view->block.stream, view->small_pool};
}

static bool has_segment(const struct picture *picture, uint64_t address) {
    for (size_t i = 0; i < picture->count; i++) {
        if (picture->blocks[i].block.segment_address == address) return true;
    }
    return false;
}

// Orders segments as the allocator releases them.
static int release_order(const void *left, const void *right) {
    const struct segment *a = left, *b = right;
    if (a->small_pool != b->small_pool) return a->small_pool ? 1 : -1;
    if (a->stream != b->stream) return a->stream > b->stream ? 1 : -1;
    if (a->size_bytes != b->size_bytes) return a->size_bytes > b->size_bytes ? 1 : -1;
    return a->address > b->address ? 1 : -1;
}

static void note_releases(struct recorder *recorder, struct stack stack) {
    struct segment *gone = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < recorder->before.count; i++) {
        const struct segment segment = segment_at(&recorder->before, i);
        if (!starts_segment(&recorder->before, i) || has_segment(&recorder->after, segment.address)) continue;
        gone = grown(gone, &capacity, count + 1, sizeof *gone);
        gone[count++] = segment;
    }
    if (count > 1) qsort(gone, count, sizeof *gone, release_order);
    for (size_t i = 0; i < count; i++) add_event(recorder, "segment_free", gone[i].address, gone[i].size_bytes, gone[i].stream, stack);
    free(gone);
}

static void note_new_segments(struct recorder *recorder, struct stack stack) {
    for (size_t i = 0; i < recorder->after.count; i++) {
        const struct segment segment = segment_at(&recorder->after, i);
        if (!starts_segment(&recorder->after, i) || has_segment(&recorder->before, segment.address)) continue;
        add_event(recorder, "segment_alloc", segment.address, segment.size_bytes, segment.stream, stack);
    }
}

static bool is_pending(const struct picture *picture, uint64_t address) {
    for (size_t i = 0; i < picture->count; i++) {
        if (picture->blocks[i].block.address == address) return picture->blocks[i].state == VRAM_BLOCK_PENDING;
    }
    return false;
}

static void note_completions(struct recorder *recorder) {
    size_t kept = 0;
    for (size_t i = 0; i < recorder->pending_count; i++) {
        const struct holding holding = recorder->pending[i];
        if (is_pending(&recorder->after, holding.address)) {
            recorder->pending[kept++] = holding;
        } else {
            add_event(recorder, "free_completed", holding.address, holding.size_bytes, holding.stream, holding.stack);
        }
    }
    recorder->pending_count = kept;
}

// --- the calls --------------------------------------------------------------------------------------------------------------
struct recorder *recorder_create(struct vram_allocator *allocator, struct vram_driver *driver) {
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL) need(VRAM_NO_HOST_MEMORY, "recorder");
    recorder->allocator = allocator;
    recorder->driver = driver;
    return recorder;
}

void recorder_destroy(struct recorder *recorder) {
    free(recorder->events);
    free(recorder->before.blocks);
    free(recorder->after.blocks);
    free(recorder->live);
    free(recorder->pending);
    free(recorder);
}

void recorder_enter(struct recorder *recorder, const char *function, int line) {
    if (recorder->depth < DEPTH_MAX) recorder->calls[recorder->depth] = (struct frame){function, line};
    recorder->depth++;
}

void recorder_leave(struct recorder *recorder) { recorder->depth--; }

uint64_t recorder_malloc(struct recorder *recorder, uint64_t size_bytes, uint64_t stream, const char *function, int line) {
    uint64_t address = 0;
    const struct stack stack = stack_of(recorder, function, line);
    need(vram_malloc(recorder->allocator, 0, size_bytes, stream, &address), "vram_malloc");
    look(recorder);
    note_completions(recorder);
    note_releases(recorder, stack);
    note_new_segments(recorder, stack);
    add_event(recorder, "alloc", address, size_bytes, stream, stack);
    recorder->live = grown(recorder->live, &recorder->live_capacity, recorder->live_count + 1, sizeof *recorder->live);
    recorder->live[recorder->live_count++] = (struct holding){address, size_bytes, stream, stack};
    return address;
}

void recorder_free(struct recorder *recorder, uint64_t address) {
    size_t at = 0;
    while (at < recorder->live_count && recorder->live[at].address != address) at++;
    if (at == recorder->live_count) need(VRAM_INVALID_POINTER, "recorder_free");
    struct holding holding = recorder->live[at];
    recorder->live[at] = recorder->live[--recorder->live_count];
    need(vram_free(recorder->allocator, address), "vram_free");
    look(recorder);
    holding.stack = stack_of(recorder, NULL, 0);
    add_event(recorder, "free_requested", address, holding.size_bytes, holding.stream, holding.stack);
    recorder->pending = grown(recorder->pending, &recorder->pending_capacity, recorder->pending_count + 1, sizeof *recorder->pending);
    recorder->pending[recorder->pending_count++] = holding;
    note_completions(recorder);
}

void recorder_record_stream(struct recorder *recorder, uint64_t address, uint64_t stream) {
    need(vram_record_stream(recorder->allocator, address, stream), "vram_record_stream");
}

void recorder_empty_cache(struct recorder *recorder) {
    need(vram_empty_cache(recorder->allocator), "vram_empty_cache");
    look(recorder);
    note_completions(recorder);
    note_releases(recorder, stack_of(recorder, NULL, 0));
}

// --- writing ----------------------------------------------------------------------------------------------------------------
static void write_frames(FILE *file, const struct stack *stack) {
    fprintf(file, "\"frames\":[");
    for (int i = 0; i < stack->depth; i++) {
        fprintf(file, "%s{\"filename\":\"examples/train_sim.c\",\"line\":%d,\"name\":\"%s\"}", i == 0 ? "" : ",", stack->frames[i].line,
                stack->frames[i].function);
    }
    fprintf(file, "]");
}

static const struct holding *holding_of(const struct recorder *recorder, uint64_t address) {
    for (size_t i = 0; i < recorder->live_count; i++) {
        if (recorder->live[i].address == address) return &recorder->live[i];
    }
    for (size_t i = 0; i < recorder->pending_count; i++) {
        if (recorder->pending[i].address == address) return &recorder->pending[i];
    }
    return NULL;
}

static void write_block(const struct recorder *recorder, FILE *file, const struct vram_block_view *view) {
    static const char *const states[] = {
        [VRAM_BLOCK_FREE] = "inactive", [VRAM_BLOCK_ALLOCATED] = "active_allocated", [VRAM_BLOCK_PENDING] = "active_pending_free"};
    static const struct stack no_stack;
    const struct holding *holding = view->state == VRAM_BLOCK_FREE ? NULL : holding_of(recorder, view->block.address);
    fprintf(file, "{\"address\":%" PRIu64 ",\"size\":%" PRIu64 ",\"requested_size\":%" PRIu64 ",\"state\":\"%s\",", view->block.address,
            view->block.size_bytes, view->block.requested_bytes, states[view->state]);
    write_frames(file, holding == NULL ? &no_stack : &holding->stack);
    fprintf(file, "}");
}

static void write_segment(const struct recorder *recorder, FILE *file, size_t first, size_t last) {
    const struct vram_block_view *blocks = recorder->after.blocks;
    uint64_t allocated = 0, active = 0, requested = 0;
    for (size_t i = first; i < last; i++) {
        if (blocks[i].state == VRAM_BLOCK_ALLOCATED) allocated += blocks[i].block.size_bytes;
        if (blocks[i].state == VRAM_BLOCK_FREE) continue;
        active += blocks[i].block.size_bytes;
        requested += blocks[i].block.requested_bytes;
    }
    fprintf(file,
            "{\"device\":0,\"address\":%" PRIu64 ",\"total_size\":%" PRIu64 ",\"allocated_size\":%" PRIu64 ",\"active_size\":%" PRIu64,
            blocks[first].block.segment_address, blocks[first].block.segment_bytes, allocated, active);
    fprintf(file, ",\"requested_size\":%" PRIu64 ",\"stream\":%" PRIu64 ",\"segment_type\":\"%s\"", requested, blocks[first].block.stream,
            blocks[first].small_pool ? "small" : "large");
    fprintf(file, ",\"segment_pool_id\":[0,0],\"is_expandable\":false,\"frames\":[],\"blocks\":[\n");
    for (size_t i = first; i < last; i++) {
        if (i > first) fprintf(file, ",\n");
        write_block(recorder, file, &blocks[i]);
    }
    fprintf(file, "]}");
}

static void write_event(FILE *file, const struct event *event) {
    fprintf(file, "{\"action\":\"%s\",\"addr\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stream\":%" PRIu64 ",\"time_us\":%" PRIu64 ",",
            event->action, event->address, event->size_bytes, event->stream, event->time_us);
    write_frames(file, &event->stack);
    fprintf(file, "}");
}

void recorder_write(struct recorder *recorder, FILE *file) {
    const struct picture *picture = &recorder->after;
    look(recorder);
    note_completions(recorder);
    fprintf(file, "{\"segments\":[\n");
    for (size_t first = 0; first < picture->count;) {
        size_t last = first + 1;
        while (last < picture->count && !starts_segment(picture, last)) last++;
        if (first > 0) fprintf(file, ",\n");
        write_segment(recorder, file, first, last);
        first = last;
    }
    fprintf(file, "],\n\"device_traces\":[[\n");
    for (size_t i = 0; i < recorder->event_count; i++) {
        if (i > 0) fprintf(file, ",\n");
        write_event(file, &recorder->events[i]);
    }
    fprintf(file, "]],\n\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"\",\"max_split_size\":-1,\"expandable_segments\":false},\n"
                  "\"external_annotations\":[]}\n");
}
