#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input.h"
#include "numbering.h"
#include "vram/profile.h"
#include "vram/recording.h"

// A live allocation: its size, and its group of each kind.
struct piece {
    uint64_t bytes;
    int64_t born_us;
    uint32_t group[WATCH_BY_COUNT];
    uint32_t next_free; // if free: the next free piece, or NUMBERING_NONE
};

// Groups of one kind. `keys` maps an id of the recording, a number or a pair of numbers to its group.
struct grouping {
    struct watch_group *groups;
    size_t count, capacity;
    struct numbering keys;
};

struct watch {
    struct vram_follow *follow;
    struct piece *pieces;
    size_t piece_count, piece_capacity;
    uint32_t free_piece;   // NUMBERING_NONE: no free piece below piece_count
    struct numbering live; // device, address -> piece
    struct grouping by[WATCH_BY_COUNT];
    struct watch_device *devices;
    size_t device_count, device_capacity;
    uint64_t events, first_ns, last_ns;
    struct vram_slow_growth *growth; // NULL: not watched
    struct vram_slow_growth_leak leaks[WATCH_MOST_LEAKS];
    size_t leak_count;
    uint64_t judged_ns; // time of the last event when the growth was judged
};

const char *watch_by_name(enum watch_by by) {
    static const char *const names[] = {"library", "kind", "call site", "stream", "pool"};
    return names[by];
}

// --- groups -----------------------------------------------------------------------------------------------------------------------
// Finds the frame that represents the stack. Returns false if it has no frames.
static bool site_frame(const struct watch *watch, uint32_t stack, struct vram_frame *frame) {
    enum { MOST = 64 };
    struct vram_frame frames[MOST];
    size_t count = vram_follow_stack(watch->follow, stack, frames, MOST);
    if (count > MOST) count = MOST;
    const size_t site = vram_site_of_frames(frames, count);
    if (site != SIZE_MAX) *frame = frames[site];
    return site != SIZE_MAX;
}

static void frame_label(const struct vram_frame *frame, char *label, size_t capacity) {
    if (frame->line > 0)
        snprintf(label, capacity, "%s:%" PRId64 " %s", input_base_name(frame->filename), frame->line, frame->name);
    else
        snprintf(label, capacity, strncmp(frame->name, "0x", 2) == 0 ? "%s+%s" : "%s %s", input_base_name(frame->filename), frame->name);
}

static void site_label(const struct watch *watch, uint32_t stack, char *label, size_t capacity) {
    struct vram_frame frame;
    if (site_frame(watch, stack, &frame))
        frame_label(&frame, label, capacity);
    else
        snprintf(label, capacity, "(no stack)");
}

static void make_label(const struct watch *watch, enum watch_by by, const struct vram_log_event *event, char *label, size_t capacity) {
    const char *text = "";
    switch (by) {
    case WATCH_LIBRARY: text = vram_follow_string(watch->follow, event->metadata); break;
    case WATCH_KIND: text = vram_follow_string(watch->follow, event->tag); break;
    case WATCH_SITE: site_label(watch, event->stack, label, capacity); return;
    case WATCH_STREAM: snprintf(label, capacity, event->stream == 0 ? "default stream" : "stream 0x%" PRIx64, event->stream); return;
    case WATCH_POOL:
        snprintf(label, capacity, event->pool.first == 0 && event->pool.second == 0 ? "default pool" : "pool (%" PRIu64 ", %" PRIu64 ")",
                 event->pool.first, event->pool.second);
        return;
    default: break;
    }
    snprintf(label, capacity, "%s", text[0] == '\0' ? "(unknown)" : text);
}

struct group_key {
    uint64_t first, second;
};

static struct group_key key_of(enum watch_by by, const struct vram_log_event *event) {
    switch (by) {
    case WATCH_LIBRARY: return (struct group_key){event->metadata, 0};
    case WATCH_KIND: return (struct group_key){event->tag, 0};
    case WATCH_SITE: return (struct group_key){event->stack, 0};
    case WATCH_STREAM: return (struct group_key){event->stream, 0};
    default: return (struct group_key){event->pool.first, event->pool.second};
    }
}

static char *copy_of(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    return copy == NULL ? NULL : memcpy(copy, text, strlen(text) + 1);
}

// Returns the group with this label, created if new; SIZE_MAX if memory runs out.
static size_t group_labelled(struct grouping *grouping, const char *label) {
    for (size_t i = 0; i < grouping->count; i++)
        if (strcmp(grouping->groups[i].place, label) == 0) return i;
    if (grouping->count == grouping->capacity) {
        const size_t capacity = grouping->capacity == 0 ? 64 : 2 * grouping->capacity;
        struct watch_group *groups = realloc(grouping->groups, capacity * sizeof *groups);
        if (groups == NULL) return SIZE_MAX;
        grouping->groups = groups;
        grouping->capacity = capacity;
    }
    struct watch_group made = {.label = copy_of(label), .place = copy_of(label)};
    if (made.label == NULL || made.place == NULL) {
        free(made.label);
        free(made.place);
        return SIZE_MAX;
    }
    grouping->groups[grouping->count] = made;
    return grouping->count++;
}

// Stores the module and offset of a call site in machine code, to name it later. Stores nothing if memory runs out.
static void note_place(const struct watch *watch, uint32_t stack, struct watch_group *group) {
    struct vram_frame frame;
    if (group->offset != NULL || !site_frame(watch, stack, &frame) || strncmp(frame.name, "0x", 2) != 0) return;
    group->module = copy_of(frame.filename);
    group->offset = copy_of(frame.name);
}

// Returns the group of an event; stacks of one site share a group. SIZE_MAX if memory runs out.
static size_t group_of(struct watch *watch, enum watch_by by, const struct vram_log_event *event) {
    struct grouping *grouping = &watch->by[by];
    const struct group_key key = key_of(by, event);
    const uint32_t known = numbering_get(&grouping->keys, key.first, key.second);
    if (known != NUMBERING_NONE) return known;
    if (!numbering_reserve(&grouping->keys)) return SIZE_MAX;
    char label[256];
    make_label(watch, by, event, label, sizeof label);
    const size_t group = group_labelled(grouping, label);
    if (group == SIZE_MAX) return group;
    if (by == WATCH_SITE) note_place(watch, event->stack, &grouping->groups[group]);
    numbering_set(&grouping->keys, key.first, key.second, (uint32_t)group);
    return group;
}

// --- names of machine code ------------------------------------------------------------------------------------------------------------
struct naming {
    struct watch_group *const *places; // sorted by module and offset
    uint64_t named;                    // 1 + the index of the last one named
};

// Takes the first name of each place: the innermost frame, which is the site.
static bool take_name(void *user, size_t index, const struct vram_frame *frame) {
    struct naming *naming = user;
    char label[256];
    if (naming->named == index + 1) return true;
    naming->named = index + 1;
    frame_label(frame, label, sizeof label);
    char *name = copy_of(label);
    if (name == NULL) return true;
    free(naming->places[index]->label);
    naming->places[index]->label = name;
    return true;
}

static uint64_t offset_of(const struct watch_group *group) { return strtoull(group->offset, NULL, 16); }

static int by_place(const void *left, const void *right) {
    const struct watch_group *a = *(struct watch_group *const *)left, *b = *(struct watch_group *const *)right;
    const int order = strcmp(a->module, b->module);
    const uint64_t x = offset_of(a), y = offset_of(b);
    return order != 0 ? order : (x > y) - (x < y);
}

// Names the places of one module. Their offsets must be ascending; they are distinct because each place is its own group.
static void name_module(struct watch_group *const *places, size_t count) {
    struct naming naming = {.places = places};
    uint64_t *offsets = malloc(count * sizeof *offsets);
    for (size_t i = 0; offsets != NULL && i < count; i++) offsets[i] = offset_of(places[i]);
    // Places without a symbol keep their labels.
    if (offsets != NULL) (void)!vram_symbolize(places[0]->module, NULL, offsets, count, NULL, take_name, &naming);
    free(offsets);
}

static void name_places(struct watch_group **places, size_t count) {
    qsort(places, count, sizeof *places, by_place);
    for (size_t first = 0, next; first < count; first = next) {
        next = first + 1;
        while (next < count && strcmp(places[next]->module, places[first]->module) == 0) next++;
        name_module(places + first, next - first);
    }
}

void watch_name_sites(struct watch *watch) {
    struct grouping *sites = &watch->by[WATCH_SITE];
    struct watch_group **places = calloc(sites->count + 1, sizeof *places);
    size_t count = 0;
    if (places == NULL) return;
    for (size_t i = 0; i < sites->count; i++) {
        struct watch_group *group = &sites->groups[i];
        if (group->module != NULL && group->offset != NULL) places[count++] = group;
    }
    name_places(places, count);
    // Look each up only once.
    for (size_t i = 0; i < count; i++) {
        free(places[i]->module);
        places[i]->module = NULL;
    }
    free(places);
}

// --- pieces -------------------------------------------------------------------------------------------------------------------------
// Returns an unused piece; NUMBERING_NONE if memory runs out.
static uint32_t make_piece(struct watch *watch) {
    const uint32_t reused = watch->free_piece;
    if (reused != NUMBERING_NONE) {
        watch->free_piece = watch->pieces[reused].next_free;
        return reused;
    }
    if (watch->piece_count == watch->piece_capacity) {
        const size_t capacity = watch->piece_capacity == 0 ? 1024 : 2 * watch->piece_capacity;
        struct piece *pieces = realloc(watch->pieces, capacity * sizeof *pieces);
        if (pieces == NULL || capacity >= NUMBERING_NONE) {
            watch->pieces = pieces == NULL ? watch->pieces : pieces;
            return NUMBERING_NONE;
        }
        watch->pieces = pieces;
        watch->piece_capacity = capacity;
    }
    return (uint32_t)watch->piece_count++;
}

static void forget_piece(struct watch *watch, uint32_t number) {
    watch->pieces[number].next_free = watch->free_piece;
    watch->free_piece = number;
}

static struct watch_device *device_of(struct watch *watch, uint32_t number) {
    for (size_t i = 0; i < watch->device_count; i++)
        if (watch->devices[i].device == number) return &watch->devices[i];
    if (watch->device_count == watch->device_capacity) {
        const size_t capacity = watch->device_capacity == 0 ? 8 : 2 * watch->device_capacity;
        struct watch_device *devices = realloc(watch->devices, capacity * sizeof *devices);
        if (devices == NULL) return NULL;
        watch->devices = devices;
        watch->device_capacity = capacity;
    }
    watch->devices[watch->device_count] = (struct watch_device){.device = number};
    return &watch->devices[watch->device_count++];
}

static uint64_t growth_key(uint32_t device, uint32_t site) { return (uint64_t)device << 32 | site; }

static bool end_piece(struct watch *watch, struct watch_device *device, uint64_t address) {
    const uint32_t number = numbering_take(&watch->live, device->device, address);
    if (number == NUMBERING_NONE) return true;
    const struct piece *piece = &watch->pieces[number];
    const uint64_t key = growth_key(device->device, piece->group[WATCH_SITE]);
    if (watch->growth != NULL && vram_slow_growth_free(watch->growth, key, piece->born_us, piece->bytes) != VRAM_OK) return false;
    for (int by = 0; by < WATCH_BY_COUNT; by++) {
        watch->by[by].groups[piece->group[by]].bytes -= piece->bytes;
        watch->by[by].groups[piece->group[by]].count--;
    }
    device->live_bytes -= piece->bytes;
    device->live_count--;
    forget_piece(watch, number);
    return true;
}

// Finds the groups of an event. Returns false if memory runs out.
static bool find_groups(struct watch *watch, const struct vram_log_event *event, uint32_t groups[WATCH_BY_COUNT]) {
    for (int by = 0; by < WATCH_BY_COUNT; by++) {
        const size_t group = group_of(watch, (enum watch_by)by, event);
        if (group == SIZE_MAX) return false;
        groups[by] = (uint32_t)group;
    }
    return true;
}

static bool begin_piece(struct watch *watch, struct watch_device *device, const struct vram_log_event *event) {
    if (!end_piece(watch, device, event->address)) return false; // its free was not recorded
    struct piece piece = {.bytes = event->size_bytes};
    if (!find_groups(watch, event, piece.group) || !numbering_reserve(&watch->live)) return false;
    const uint32_t number = make_piece(watch);
    if (number == NUMBERING_NONE) return false;
    for (int by = 0; by < WATCH_BY_COUNT; by++) {
        struct watch_group *group = &watch->by[by].groups[piece.group[by]];
        group->bytes += piece.bytes;
        group->count++;
        group->made++;
        if (group->bytes > group->peak_bytes) group->peak_bytes = group->bytes;
    }
    if (watch->growth != NULL) {
        piece.born_us = vram_slow_growth_pass(watch->growth, (int64_t)(event->time_ns / 1000));
        if (vram_slow_growth_alloc(watch->growth, growth_key(device->device, piece.group[WATCH_SITE]), piece.bytes) != VRAM_OK)
            return false;
    }
    watch->pieces[number] = piece;
    numbering_set(&watch->live, event->device, event->address, number);
    device->live_count++;
    device->live_bytes += piece.bytes;
    if (device->live_bytes > device->peak_bytes) device->peak_bytes = device->live_bytes;
    return true;
}

// --- the file -------------------------------------------------------------------------------------------------------------------------
static bool apply_event(struct watch *watch, const struct vram_log_event *event) {
    struct watch_device *device = device_of(watch, event->device);
    if (device == NULL) return false;
    watch->events++;
    if (watch->first_ns == 0) watch->first_ns = event->time_ns;
    if (event->time_ns > watch->last_ns) watch->last_ns = event->time_ns;
    if (watch->growth != NULL) (void)vram_slow_growth_pass(watch->growth, (int64_t)(event->time_ns / 1000));
    switch (event->action) {
    case VRAM_LOG_ALLOC: return begin_piece(watch, device, event);
    case VRAM_LOG_FREE_REQUESTED:
    case VRAM_LOG_FREE_COMPLETED:
    case VRAM_LOG_FREE: return end_piece(watch, device, event->address);
    case VRAM_LOG_SEGMENT_ALLOC:
    case VRAM_LOG_SEGMENT_MAP: device->reserved_bytes += event->size_bytes; return true;
    case VRAM_LOG_SEGMENT_FREE:
    case VRAM_LOG_SEGMENT_UNMAP:
        device->reserved_bytes -= event->size_bytes < device->reserved_bytes ? event->size_bytes : device->reserved_bytes;
        return true;
    case VRAM_LOG_OOM: device->ooms++; return true;
    default: return true;
    }
}

enum vram_status watch_open(const char *path, struct watch **watch, struct vram_error *error) {
    struct stat facts;
    // Opening a pipe would wait for a writer.
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        *error = (struct vram_error){.status = VRAM_IO, .offset = VRAM_NO_OFFSET};
        (void)snprintf(error->message, sizeof error->message, "%s: not a regular file", path);
        return VRAM_IO;
    }
    struct watch *made = calloc(1, sizeof *made);
    if (made == NULL) {
        *error = (struct vram_error){.status = VRAM_NO_HOST_MEMORY, .offset = VRAM_NO_OFFSET, .message = "not enough host memory"};
        return VRAM_NO_HOST_MEMORY;
    }
    const enum vram_status status = vram_follow_open(path, 0, &made->follow, error);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    made->free_piece = NUMBERING_NONE;
    *watch = made;
    return VRAM_OK;
}

static void release_group(struct watch_group *group) {
    free(group->label);
    free(group->place);
    free(group->module);
    free(group->offset);
}

void watch_close(struct watch *watch) {
    if (watch == NULL) return;
    vram_follow_close(watch->follow);
    for (int by = 0; by < WATCH_BY_COUNT; by++) {
        for (size_t i = 0; i < watch->by[by].count; i++) release_group(&watch->by[by].groups[i]);
        free(watch->by[by].groups);
        numbering_release(&watch->by[by].keys);
    }
    numbering_release(&watch->live);
    vram_slow_growth_destroy(watch->growth);
    free(watch->pieces);
    free(watch->devices);
    free(watch);
}

// --- slow growth ----------------------------------------------------------------------------------------------------------------------
enum vram_status watch_growth(struct watch *watch) { return vram_slow_growth_create(&watch->growth); }

// Judges the growth if enough has been recorded since the last time. Keeps the former leaks if memory runs out.
static void judge_growth(struct watch *watch) {
    const uint64_t every_ns = 10000000000;
    if (watch->judged_ns != 0 && watch->last_ns - watch->judged_ns < every_ns) return;
    if (vram_slow_growth_leaks(watch->growth, watch->leaks, WATCH_MOST_LEAKS, &watch->leak_count) == VRAM_OK)
        watch->judged_ns = watch->last_ns;
}

size_t watch_leaks(struct watch *watch, struct watch_leak leaks[WATCH_MOST_LEAKS]) {
    if (watch->growth == NULL) return 0;
    judge_growth(watch);
    for (size_t i = 0; i < watch->leak_count; i++) {
        const struct vram_slow_growth_leak *leak = &watch->leaks[i];
        leaks[i] = (struct watch_leak){.label = watch->by[WATCH_SITE].groups[(uint32_t)leak->key].label,
                                       .device = (uint32_t)(leak->key >> 32),
                                       .bytes_per_hour = leak->bytes_per_hour,
                                       .since_ns = (uint64_t)leak->since_us * 1000,
                                       .sure = leak->sure};
    }
    return watch->leak_count;
}

// --- reading ----------------------------------------------------------------------------------------------------------------------------
enum vram_status watch_step(struct watch *watch, uint64_t *events, struct vram_error *error) {
    enum { BATCH = 4096 };
    static struct vram_log_event batch[BATCH];
    size_t count = 0;
    *events = 0;
    const enum vram_status status = vram_follow_next(watch->follow, batch, BATCH, &count, error);
    if (status != VRAM_OK) return status;
    for (size_t i = 0; i < count; i++)
        if (!apply_event(watch, &batch[i])) return VRAM_NO_HOST_MEMORY;
    *events = count;
    return VRAM_OK;
}

enum vram_status watch_update(struct watch *watch, uint64_t *events, struct vram_error *error) {
    uint64_t step = 1;
    for (*events = 0; step != 0; *events += step) {
        const enum vram_status status = watch_step(watch, &step, error);
        if (status != VRAM_OK) return status;
    }
    return VRAM_OK;
}

bool watch_ended(const struct watch *watch) { return vram_follow_ended(watch->follow); }
uint64_t watch_events(const struct watch *watch) { return watch->events; }
uint64_t watch_first_ns(const struct watch *watch) { return watch->first_ns; }
uint64_t watch_last_ns(const struct watch *watch) { return watch->last_ns; }

const struct watch_device *watch_devices(const struct watch *watch, size_t *count) {
    *count = watch->device_count;
    return watch->devices;
}

const struct watch_group *watch_groups(const struct watch *watch, enum watch_by by, size_t *count) {
    *count = watch->by[by].count;
    return watch->by[by].groups;
}
