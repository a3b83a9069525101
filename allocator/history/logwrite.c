// The log: appends ids and events to the file's tail, and packs a full tail into a block.
#include "base/text.h"
#include "history/log_inside.h"

#include <stdio.h>

enum { BLOCK_EVENTS = 4096, BLOCK_EVENTS_LEAST = 16, TAIL_EXTRA = 64 << 10, MAX_DEVICES = 4096, MODULES_MAX = 1 << 16 };
#define TABLE_BYTES VR_GIB

static uint64_t or_default(uint64_t value, uint64_t otherwise) { return value == 0 ? otherwise : value; }

static enum vram_status open_file(struct vram_log *log, const char *path, const struct vram_log_options *options,
                                  struct vram_error *error) {
    struct vr_log_file_header header = {.version = VR_LOG_VERSION, .created_ns = vr_os_epoch_ns()};
    uint64_t events = or_default(options->block_events, BLOCK_EVENTS);
    (void)snprintf(header.producer, sizeof header.producer, "%s", options->producer == NULL ? "vram" : options->producer);
    if (events > VR_LOG_BATCH_MAX) events = VR_LOG_BATCH_MAX;
    header.process_host = vr_log_host();
    if (header.process_host != 0 && vr_os_process_started(vr_os_process_id(), &header.process_started) == VRAM_OK)
        header.process = (uint32_t)vr_os_process_id();
    // If there is no room for the usual file, one with smaller blocks may still fit.
    for (;; events /= 4) {
        log->block_events = events < BLOCK_EVENTS_LEAST ? BLOCK_EVENTS_LEAST : events;
        header.tail_bytes = log->block_events * sizeof(struct vr_log_record_event) + TAIL_EXTRA;
        // The block of a full tail never reaches the tail: numbers take ten bytes where records have eight, and most take two.
        header.tail_distance = 2 * header.tail_bytes;
        const enum vram_status status = vr_logfile_create(path, options->replace, &header, &log->file, error);
        if (status != VRAM_IO || log->block_events == BLOCK_EVENTS_LEAST) return status;
    }
}

static void free_log(struct vram_log *log) {
    vr_builder_release(&log->builder);
    vr_log_maker_release(&log->maker);
    free(log->modules);
    free(log->annotations);
    free(log->settings);
    free(log->spans);
    free(log);
}

static enum vram_status create_log(const char *path, const struct vram_log_options *options, struct vram_log **log,
                                   struct vram_error *error) {
    struct vram_log *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    enum vram_status status = vr_builder_init(&made->builder, or_default(options->table_bytes, TABLE_BYTES));
    if (status == VRAM_OK) status = open_file(made, path, options, error);
    if (status != VRAM_OK) {
        free_log(made);
        return status;
    }
    made->max_bytes = or_default(options->max_bytes, UINT64_MAX);
    made->packed_strings = made->packed_stacks = 1; // the empty string and stack are implicit
    made->span_blocks = 1;
    made->serialized = options->serialized;
    vr_mutex_init(&made->lock);
    *log = made;
    return VRAM_OK;
}

struct creation {
    const char *path;
    const struct vram_log_options *options;
    struct vram_log **log;
    struct vram_error *error;
    enum vram_status status;
};

static void create_elsewhere(void *argument) {
    struct creation *creation = argument;
    creation->status = create_log(creation->path, creation->options, creation->log, creation->error);
}

// Runs on the spare stack: a program may first call the driver where it has little stack, and the file's path alone takes more.
enum vram_status vram_log_create(const char *path, const struct vram_log_options *options, struct vram_log **log,
                                 struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, path && log);
    static const struct vram_log_options defaults;
    struct creation creation = {.path = path, .options = options == NULL ? &defaults : options, .log = log, .error = error};
    vr_os_on_spare_stack(create_elsewhere, &creation);
    return creation.status;
}

enum vram_status vram_log_close(struct vram_log *log) {
    if (log == NULL) return VRAM_OK;
    enum vram_status status = vr_log_finish_locked(log);
    vr_mutex_destroy(&log->lock);
    free_log(log);
    return status;
}

void vram_log_abandon(struct vram_log *log) {
    if (log == NULL) return;
    vr_logfile_abandon(&log->file);
    free_log(log);
}

static void enter_log(struct vram_log *log) {
    if (!log->serialized) vr_mutex_lock(&log->lock);
}
static void leave_log(struct vram_log *log) {
    if (!log->serialized) vr_mutex_unlock(&log->lock);
}

// ---- records

// Begins a record of the tail: writes its head, rounds its length to whole words. Returns NULL if there is no room.
static unsigned char *begin_record(struct vram_log *log, enum vr_log_record_kind kind, size_t *length) {
    *length = (size_t)vr_round_up(*length, 8);
    unsigned char *record = *length > VR_LOG_RECORD_MAX ? NULL : vr_logfile_record(&log->file, *length);
    if (record == NULL) return NULL;
    memset(record + *length - 8, 0, 8);
    log->room = 0;
    uint32_t head = vr_log_record_head(log->file.sequence, kind, *length);
    memcpy(record, &head, sizeof head);
    return record;
}

// Records the newest rows of the log's tables, from `words` and then `bytes`. If the tail has no room, a block takes all new rows.
static enum vram_status record_rows(struct vram_log *log, enum vr_log_record_kind kind, const uint32_t *words, size_t word_count,
                                    const void *bytes, size_t byte_count) {
    size_t length = 4 + 4 * word_count + byte_count;
    unsigned char *record = begin_record(log, kind, &length);
    if (record == NULL) return vr_log_seal_locked(log);
    memcpy(record + 4, words, 4 * word_count);
    if (byte_count != 0) memcpy(record + 4 + 4 * word_count, bytes, byte_count);
    vr_logfile_publish(&log->file, length);
    return VRAM_OK;
}

// ---- ids

// Returns a copy of the string with malformed UTF-8 replaced by question marks; NULL if the host is out of memory.
static char *replace_malformed(const char *bytes, size_t length) {
    char *clean = malloc(length);
    for (size_t at = 0; clean != NULL && at < length;) {
        uint32_t code;
        size_t taken = vr_utf8_decode(bytes + at, length - at, &code);
        memcpy(clean + at, bytes + at, taken);
        if (code == VR_UTF8_MALFORMED) clean[at] = '?';
        at += taken;
    }
    return clean;
}

static enum vram_status add_string(struct vram_log *log, const char *bytes, size_t length, uint32_t *id) {
    uint32_t count = log->builder.strings.count, got, words[1] = {(uint32_t)length};
    if (length > UINT32_MAX) return VRAM_LIMIT;
    VR_TRY(vr_builder_string(&log->builder, bytes, length, &got));
    if (got == count) VR_TRY(record_rows(log, VR_LOG_RECORD_STRING, words, 1, bytes, length));
    *id = got;
    return VRAM_OK;
}

static enum vram_status string_locked(struct vram_log *log, const char *bytes, size_t length, uint32_t *id) {
    if (log->stopped != VRAM_OK) return log->stopped;
    if (length == 0 || vr_utf8_valid(bytes, length)) return add_string(log, length == 0 ? "" : bytes, length, id);
    char *clean = replace_malformed(bytes, length);
    enum vram_status status = clean == NULL ? VRAM_NO_HOST_MEMORY : add_string(log, clean, length, id);
    free(clean);
    return status;
}

static enum vram_status text_locked(struct vram_log *log, const char *text, uint32_t *id) {
    return string_locked(log, text == NULL ? "" : text, text == NULL ? 0 : strlen(text), id);
}

enum vram_status vram_log_string(struct vram_log *log, const char *bytes, size_t length, uint32_t *id) {
    VR_REQUIRE(log && id && (bytes || length == 0));
    enter_log(log);
    enum vram_status status = string_locked(log, bytes, length, id);
    leave_log(log);
    return status;
}

// Frame ids are rows plus one, so that 0 means none.
static enum vram_status frame_locked(struct vram_log *log, uint32_t name, uint32_t filename, int64_t line, uint32_t *id) {
    uint32_t count = log->builder.frames.count, got;
    if (log->stopped != VRAM_OK) return log->stopped;
    if (name >= log->builder.strings.count || filename >= log->builder.strings.count) return VRAM_INVALID_ARGUMENT;
    VR_TRY(vr_builder_frame(&log->builder, name, filename, line, &got));
    uint32_t words[5] = {name, filename, 0, (uint32_t)(uint64_t)line, (uint32_t)((uint64_t)line >> 32)};
    if (got == count) VR_TRY(record_rows(log, VR_LOG_RECORD_FRAME, words, 5, NULL, 0));
    *id = got + 1;
    return VRAM_OK;
}

enum vram_status vram_log_frame(struct vram_log *log, uint32_t name, uint32_t filename, int64_t line, uint32_t *id) {
    VR_REQUIRE(log && id);
    enter_log(log);
    enum vram_status status = frame_locked(log, name, filename, line, id);
    leave_log(log);
    return status;
}

static enum vram_status module_locked(struct vram_log *log, const char *path, const char *build_id, uint32_t *id) {
    uint32_t words[2];
    VR_TRY(text_locked(log, path, &words[0]));
    VR_TRY(text_locked(log, build_id, &words[1]));
    for (size_t i = 0; i < log->module_count; i++) {
        if (log->modules[i].path != words[0] || log->modules[i].build_id != words[1]) continue;
        *id = (uint32_t)i + 1;
        return VRAM_OK;
    }
    if (log->module_count == MODULES_MAX) return VRAM_LIMIT;
    void *modules = log->modules;
    enum vram_status status = vr_grow(&modules, &log->module_capacity, log->module_count + 1, sizeof *log->modules);
    log->modules = modules;
    VR_TRY(status);
    log->modules[log->module_count++] = (struct vr_module){words[0], words[1]};
    VR_TRY(record_rows(log, VR_LOG_RECORD_MODULE, words, 2, NULL, 0));
    *id = (uint32_t)log->module_count;
    return VRAM_OK;
}

enum vram_status vram_log_module(struct vram_log *log, const char *path, const char *build_id, uint32_t *id) {
    VR_REQUIRE(log && path && id);
    enter_log(log);
    enum vram_status status = module_locked(log, path, build_id, id);
    leave_log(log);
    return status;
}

static enum vram_status code_locked(struct vram_log *log, uint32_t module, uint64_t offset, uint32_t *frame) {
    char name[2 + 16 + 1];
    uint32_t id;
    if (module == 0 || module > log->module_count) return VRAM_INVALID_ARGUMENT;
    int length = snprintf(name, sizeof name, "0x%llx", (unsigned long long)offset);
    VR_TRY(string_locked(log, name, (size_t)length, &id));
    return frame_locked(log, id, log->modules[module - 1].path, 0, frame);
}

enum vram_status vram_log_code(struct vram_log *log, uint32_t module, uint64_t offset, uint32_t *frame) {
    VR_REQUIRE(log && frame);
    enter_log(log);
    enum vram_status status = code_locked(log, module, offset, frame);
    leave_log(log);
    return status;
}

enum { STACK_FRAMES_MAX = 1 << 16, STACK_FRAMES_USUAL = 128 };

static enum vram_status stack_locked(struct vram_log *log, const uint32_t *frames, size_t count, uint32_t *rows, uint32_t *id) {
    uint32_t stacks = log->builder.stacks.count, got, words[1] = {(uint32_t)count};
    if (log->stopped != VRAM_OK) return log->stopped;
    for (size_t i = 0; i < count; i++) {
        if (frames[i] == 0 || frames[i] > log->builder.frames.count) return VRAM_INVALID_ARGUMENT;
        rows[i] = frames[i] - 1;
    }
    VR_TRY(vr_builder_stack(&log->builder, rows, count, &got));
    if (got == stacks) VR_TRY(record_rows(log, VR_LOG_RECORD_STACK, words, 1, rows, count * sizeof *rows));
    *id = got;
    return VRAM_OK;
}

enum vram_status vram_log_stack(struct vram_log *log, const uint32_t *frames, size_t count, uint32_t *id) {
    VR_REQUIRE(log && id && (frames || count == 0));
    uint32_t usual[STACK_FRAMES_USUAL], *rows = usual;
    if (count > STACK_FRAMES_MAX) return VRAM_INVALID_ARGUMENT;
    if (count > STACK_FRAMES_USUAL) rows = malloc(count * sizeof *rows);
    if (rows == NULL) return VRAM_NO_HOST_MEMORY;
    enter_log(log);
    enum vram_status status = stack_locked(log, frames, count, rows, id);
    leave_log(log);
    if (rows != usual) free(rows);
    return status;
}

// ---- events and marks

static bool knows_event(const struct vram_log *log, const struct vram_log_event *event) {
    const uint32_t strings = log->builder.strings.count;
#define VR_FIELD(...)
#define VR_NUMBER(...)
#define VR_TEXT(column, ...)                                                                                                               \
    if (event->column >= strings) return false;
#include "model/entry_fields.def"
    return event->action < VRAM_LOG_ACTION_COUNT && (event->device < MAX_DEVICES || event->device == VRAM_LOG_HOST) &&
           event->stack < log->builder.stacks.count;
}

// Mask of the fields that seldom change from event to event.
static const struct vram_log_event usual_bits = {
    .stream = UINT64_MAX,
    .pool = {UINT64_MAX, UINT64_MAX},
    .device = UINT32_MAX,
#define VR_FIELD(...)
#define VR_NUMBER(column, ...) .column = UINT32_MAX,
#define VR_TEXT(column, ...)   .column = UINT32_MAX,
#include "model/entry_fields.def"
};
// Compares two words at a time.
typedef uint64_t pair_of_words __attribute__((vector_size(16)));
VR_INLINE pair_of_words differing(const struct vram_log_event *a, const struct vram_log_event *b, size_t at) {
    pair_of_words left, right, looked_at;
    memcpy(&left, (const unsigned char *)a + at, sizeof left);
    memcpy(&right, (const unsigned char *)b + at, sizeof right);
    memcpy(&looked_at, (const unsigned char *)&usual_bits + at, sizeof looked_at);
    return (left ^ right) & looked_at;
}
_Static_assert(offsetof(struct vram_log_event, stream) == 16 && sizeof(struct vram_log_event) == 80,
               "the comparison covers all usual members");

// Returns whether the event equals the last one in these fields. Its ids except the stack are then known to be valid.
VR_INLINE bool is_usual(const struct vram_log *log, const struct vram_log_event *event) {
    const struct vram_log_event *usual = &log->usual;
    const pair_of_words differ =
        differing(event, usual, 16) | differing(event, usual, 32) | differing(event, usual, 48) | differing(event, usual, 64);
    return (differ[0] | differ[1]) == 0;
}

// A record has an event's members in the same order, except that the device comes first.
#define EVENT_AT(member)  offsetof(struct vram_log_event, member)
#define RECORD_AT(member) offsetof(struct vr_log_record_event, member)
enum {
    HEAD_BYTES = EVENT_AT(device),
    REST_BYTES = sizeof(struct vr_log_record_event) - RECORD_AT(action),
};
_Static_assert(RECORD_AT(size_bytes) - RECORD_AT(address) == EVENT_AT(size_bytes) &&
                   RECORD_AT(stream) - RECORD_AT(address) == EVENT_AT(stream) &&
                   RECORD_AT(time_ns) - RECORD_AT(address) == EVENT_AT(time_ns) &&
                   RECORD_AT(pool_first) - RECORD_AT(address) == EVENT_AT(pool.first) &&
                   RECORD_AT(pool_second) - RECORD_AT(address) == EVENT_AT(pool.second) &&
                   RECORD_AT(action) - RECORD_AT(address) == HEAD_BYTES &&
                   RECORD_AT(stack) - RECORD_AT(action) == EVENT_AT(stack) - EVENT_AT(action),
               "both structs have the copied members in the same places");
#define VR_FIELD(...)
#define VR_ALIKE(column)                                                                                                                   \
    _Static_assert(RECORD_AT(column) - RECORD_AT(action) == EVENT_AT(column) - EVENT_AT(action), "same place in both structs");
#define VR_NUMBER(column, ...) VR_ALIKE(column)
#define VR_TEXT(column, ...)   VR_ALIKE(column)
#include "model/entry_fields.def"
#undef VR_ALIKE

// Writes the record of a checked event, for readers of the file before the block is made.
VR_INLINE struct vr_log_record_event *put_record(struct vram_log *log, unsigned char *record, const struct vram_log_event *event) {
    struct vr_log_record_event *to = (void *)record;
    const uint64_t time_ns = VR_UNLIKELY(event->time_ns == 0) ? vr_os_epoch_ns() : event->time_ns;
    to->head = vr_log_record_head(log->file.sequence, VR_LOG_RECORD_EVENT, sizeof *to);
    to->device = event->device;
    memcpy(record + RECORD_AT(address), event, HEAD_BYTES);
    memcpy(record + RECORD_AT(action), (const unsigned char *)event + EVENT_AT(action), REST_BYTES);
    to->time_ns = time_ns;
    return to;
}

VR_INLINE void encode_event(struct vram_log *log, const struct vr_log_record_event *record, bool first) {
    vr_log_encoder_add(&log->maker.encoder, record->action, record->address, record->size_bytes, record->time_ns, record->stack, first);
}

static void find_room(struct vram_log *log) {
    const struct vr_log_encoder *encoder = &log->maker.encoder;
    const size_t events = encoder->capacity - encoder->count;
    const size_t records = (size_t)(log->file.tail_bytes - log->file.used) / sizeof(struct vr_log_record_event);
    log->room = log->stopped != VRAM_OK || !log->has_usual ? 0 : events < records ? events : records;
}

// Appends an event that differs from the one before, or for which the tail may have no room.
VR_NOINLINE static enum vram_status append_changed(struct vram_log *log, const struct vram_log_event *event) {
    const size_t length = sizeof(struct vr_log_record_event);
    struct vr_log_encoder *encoder = &log->maker.encoder;
    if (log->stopped != VRAM_OK) return log->stopped;
    if (!knows_event(log, event)) return VRAM_INVALID_ARGUMENT;
    if (encoder->capacity == 0) VR_TRY(vr_log_encoder_reserve(encoder, (size_t)log->block_events));
    unsigned char *record = encoder->count == encoder->capacity ? NULL : vr_logfile_record(&log->file, length);
    if (record == NULL) {
        VR_TRY(vr_log_seal_locked(log));
        if (log->stopped != VRAM_OK) return log->stopped;
        record = log->file.records;
    }
    // An OOM event has other keys than the events around it.
    const bool turns = event->action == VRAM_LOG_OOM || !log->has_usual || !is_usual(log, event);
    const struct vr_log_record_event *put = put_record(log, record, event);
    if (turns) vr_log_encoder_turn(encoder, put);
    encode_event(log, put, encoder->count == 0);
    vr_logfile_publish(&log->file, length);
    log->events++;
    log->usual = *event;
    log->has_usual = event->action != VRAM_LOG_OOM;
    find_room(log);
    return VRAM_OK;
}

VR_INLINE enum vram_status append_locked(struct vram_log *log, const struct vram_log_event *event) {
    const bool usual = is_usual(log, event) && event->action < VRAM_LOG_OOM && event->stack < log->builder.stacks.count;
    if (VR_UNLIKELY(!usual || log->room == 0)) return append_changed(log, event);
    log->room--;
    log->events++;
    encode_event(log, put_record(log, log->file.records + log->file.used, event), false);
    vr_logfile_publish(&log->file, sizeof(struct vr_log_record_event));
    return VRAM_OK;
}

static enum vram_status append_all(struct vram_log *log, const struct vram_log_event *events, size_t count) {
    enum vram_status status = VRAM_OK;
    enter_log(log);
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = append_locked(log, &events[i]);
    leave_log(log);
    return status;
}

enum vram_status vram_log_append(struct vram_log *log, const struct vram_log_event *events, size_t count) {
    VR_REQUIRE(log && (events || count == 0));
    if (VR_LIKELY(count == 1 && log->serialized)) return append_locked(log, events);
    return append_all(log, events, count);
}

// Appends the two events separately.
VR_NOINLINE static enum vram_status append_free_changed(struct vram_log *log, const struct vram_log_event *event) {
    struct vram_log_event completed = *event;
    if (completed.time_ns == 0) completed.time_ns = vr_os_epoch_ns();
    VR_TRY(append_locked(log, &completed));
    completed.action = VRAM_LOG_FREE_COMPLETED;
    return append_locked(log, &completed);
}

VR_INLINE enum vram_status append_free_locked(struct vram_log *log, const struct vram_log_event *event) {
    const bool usual = is_usual(log, event) && event->stack < log->builder.stacks.count;
    if (VR_UNLIKELY(!usual || log->room < 2)) return append_free_changed(log, event);
    log->room -= 2;
    log->events += 2;
    struct vr_log_record_event *put = put_record(log, log->file.records + log->file.used, event);
    put[1] = put[0];
    put[1].action = VRAM_LOG_FREE_COMPLETED;
    encode_event(log, put, false);
    vr_log_encoder_add_completion(&log->maker.encoder, VRAM_LOG_FREE_COMPLETED);
    vr_logfile_publish(&log->file, 2 * sizeof *put);
    return VRAM_OK;
}

enum vram_status vram_log_append_free(struct vram_log *log, const struct vram_log_event *event) {
    VR_REQUIRE(log && event && event->action == VRAM_LOG_FREE_REQUESTED);
    enter_log(log);
    const enum vram_status status = append_free_locked(log, event);
    leave_log(log);
    return status;
}

static enum vram_status annotation_locked(struct vram_log *log, uint32_t device, const char *stage, const char *name, uint64_t time_ns) {
    uint32_t words[5] = {0};
    VR_TRY(text_locked(log, stage, &words[0]));
    VR_TRY(text_locked(log, name, &words[1]));
    words[2] = device;
    words[3] = (uint32_t)time_ns;
    words[4] = (uint32_t)(time_ns >> 32);
    void *annotations = log->annotations;
    enum vram_status status = vr_grow(&annotations, &log->annotation_capacity, log->annotation_count + 1, sizeof *log->annotations);
    log->annotations = annotations;
    VR_TRY(status);
    int64_t where = device == VRAM_LOG_HOST ? -1 : (int64_t)device;
    log->annotations[log->annotation_count++] = (struct vr_annotation){words[1], words[0], where, (int64_t)(time_ns / 1000)};
    return record_rows(log, VR_LOG_RECORD_ANNOTATION, words, 5, NULL, 0);
}

enum vram_status vram_log_annotation(struct vram_log *log, uint32_t device, const char *stage, const char *name, uint64_t time_ns) {
    VR_REQUIRE(log && stage && name);
    enter_log(log);
    enum vram_status status = annotation_locked(log, device, stage, name, time_ns == 0 ? vr_os_epoch_ns() : time_ns);
    leave_log(log);
    return status;
}

static enum vram_status setting_locked(struct vram_log *log, const char *key, const char *json) {
    uint32_t words[2];
    VR_TRY(text_locked(log, key, &words[0]));
    VR_TRY(text_locked(log, json, &words[1]));
    void *settings = log->settings;
    enum vram_status status = vr_grow(&settings, &log->setting_capacity, log->setting_count + 1, sizeof *log->settings);
    log->settings = settings;
    VR_TRY(status);
    log->settings[log->setting_count++] = (struct vr_setting){words[0], words[1]};
    return record_rows(log, VR_LOG_RECORD_SETTING, words, 2, NULL, 0);
}

enum vram_status vram_log_setting(struct vram_log *log, const char *key, const char *json) {
    VR_REQUIRE(log && key && json);
    enter_log(log);
    enum vram_status status = setting_locked(log, key, json);
    leave_log(log);
    return status;
}

// ---- state, settings and closing

enum vram_status vram_log_state(struct vram_log *log, const struct vram_log_segment *segments, size_t count) {
    VR_REQUIRE(log && (segments || count == 0));
    enter_log(log);
    enum vram_status status = log->stopped == VRAM_OK ? vr_log_seal_locked(log) : log->stopped;
    if (status == VRAM_OK) status = vr_log_state_sections(log, segments, count);
    if (status == VRAM_OK) status = vr_log_put_locked(log);
    log->maker.tables.out.count = 0;
    log->maker.tables.rows = 0;
    leave_log(log);
    return status;
}

enum vram_status vram_log_flush(struct vram_log *log) {
    VR_REQUIRE(log);
    enter_log(log);
    enum vram_status status = log->stopped == VRAM_OK ? vr_log_seal_locked(log) : log->stopped;
    leave_log(log);
    return status;
}

void vram_get_log_counts(struct vram_log *log, struct vram_log_counts *counts) {
    if (log == NULL || counts == NULL) return;
    enter_log(log);
    counts->events = log->events;
    counts->bytes = log->file.end + log->file.used;
    counts->stacks = log->builder.stacks.count - 1;
    leave_log(log);
}
