// Reads one of vram's recording files into a model: block after block, then the tail of a file that was not closed.
#include "snapshot/formats.h"

#include "history/logdict.h"
#include "model/columns.h"
#include "snapshot/events_alone.h"

// Memory that the tables may use: this base, plus a factor for each byte of the file. One byte of a packed file can be a whole event of 77
// bytes, with room to grow; the format does not allow more.
#define BUDGET_BASE (16 * VR_MIB)
enum { BUDGET_FACTOR = 160, MAX_DEVICES = 4096 };
// No writer of vram makes a larger tail.
#define TAIL_MOST (64 * VR_MIB)

_Static_assert(VR_ACTION_UNKNOWN < 16, "an action has four bits in the file");

struct lane {
    struct vr_history history;
    size_t capacity, held; // rows
};

struct log_reader {
    struct vr_input *input;
    struct vram_error *error;
    struct vr_budget budget;
    struct vr_log_dictionary dictionary;
    struct vr_log_batch batch;
    unsigned char *unpacked;
    size_t unpacked_capacity;
    struct lane *lanes; // by device; pinned host memory has its own
    size_t lane_count;
    size_t lane_capacity;
    struct lane host;
    struct vr_annotation *annotations;
    size_t annotation_count;
    size_t annotation_capacity;
    struct vr_setting *settings;
    size_t setting_count;
    size_t setting_capacity;
    uint32_t *keys;
    size_t key_count;
    size_t key_capacity;
    struct vr_extra *extras;
    size_t extra_count;
    size_t extra_capacity;
    struct vr_tenant *tenants;
    size_t tenant_count;
    size_t tenant_capacity;
    struct vr_segments segments;
    size_t segment_capacity;
    uint64_t *block_counts;
    size_t block_count_capacity;
    struct vr_blocks blocks;
    size_t block_capacity;
    struct vr_log_shape shape;
    bool has_shape;
    bool has_state;
    bool stale;                    // events came after the state
    bool ended;                    // the index was read
    struct vr_picture_marks marks; // how many events the state includes
};

#define GROW(reader, items, capacity, needed, status)                                                                                      \
    do {                                                                                                                                   \
        void *items_ = (items);                                                                                                            \
        (status) = vr_budget_grow(&(reader)->budget, &items_, &(capacity), (needed), sizeof *(items));                                     \
        (items) = items_;                                                                                                                  \
    } while (0)

static enum vram_status refuse_damaged(const struct log_reader *reader, const char *what) {
    return vr_fail(reader->error, VRAM_BAD_INPUT, vr_input_offset(reader->input), "the recording is damaged: %s", what);
}

// ---- events

static enum vram_status lane_of(struct log_reader *reader, uint64_t device, struct lane **lane) {
    enum vram_status status;
    if (device == UINT32_MAX) {
        *lane = &reader->host;
        return VRAM_OK;
    }
    if (device >= MAX_DEVICES) return refuse_damaged(reader, "an event's device");
    GROW(reader, reader->lanes, reader->lane_capacity, (size_t)device + 1, status);
    VR_TRY(status);
    if (device >= reader->lane_count) {
        memset(reader->lanes + reader->lane_count, 0, ((size_t)device + 1 - reader->lane_count) * sizeof *reader->lanes);
        reader->lane_count = (size_t)device + 1;
    }
    *lane = &reader->lanes[device];
    return VRAM_OK;
}

static void add_times(struct lane *lane, const struct vr_log_batch *batch, size_t from, size_t count) {
    const uint64_t *times = batch->column[VR_LOG_COLUMN_TIME] + from;
    int64_t *to = lane->history.time_us + lane->history.count;
    for (size_t i = 0; i < count; i++) {
        int64_t time = (int64_t)times[i];
        to[i] = batch->time_unit_ns == 1000 ? time : time / 1000 - (time % 1000 < 0);
    }
}

static bool all_are(const uint64_t *values, size_t count, uint64_t value) {
    uint64_t differ = 0;
    for (size_t i = 0; i < count; i++) differ |= values[i] ^ value;
    return differ == 0;
}

// Appends the batch's rows of a column to the lane's column.
#define PUT_DENSE(lane, batch, type, member, which)                                                                                        \
    do {                                                                                                                                   \
        const uint64_t *from_ = (batch)->column[which] + from;                                                                             \
        for (size_t i = 0; i < count; i++) (lane)->history.member[(lane)->history.count + i] = (type)from_[i];                             \
    } while (0)
// Appends the rows like PUT_DENSE, for a column whose values nearly always are `usual`: stores only the difference.
#define PUT_APART(lane, target, type, usual, which)                                                                                        \
    do {                                                                                                                                   \
        const bool same_ = reader->batch.same[which];                                                                                      \
        const uint64_t *from_ = reader->batch.column[which] + (same_ ? 0 : from);                                                          \
        if (all_are(from_, same_ ? 1 : count, (usual))) break;                                                                             \
        for (size_t i = 0; i < count; i++)                                                                                                 \
            VR_COLUMN_PUT_SPARSE(target, (lane)->held, (lane)->history.count + i, (type)(from_[same_ ? 0 : i] ^ (usual)));                 \
    } while (0)
#define PUT_SPARSE(lane, batch, type, member, which)                                                                                       \
    do {                                                                                                                                   \
        if ((batch)->largest[which] != 0) PUT_APART(lane, (lane)->history.member, type, 0, which);                                         \
    } while (0)
#define PUT_ALIKE(lane, batch, type, member, which)                                                                                        \
    do {                                                                                                                                   \
        if ((lane)->history.count == 0) (lane)->history.member.common = (type)(batch)->column[which][(batch)->same[which] ? 0 : from];     \
        PUT_APART(lane, (lane)->history.member.apart, type, (lane)->history.member.common, which);                                         \
    } while (0)
// Appends events [from, from + count) of the batch, all of the lane's device.
static enum vram_status add_lane_run(struct log_reader *reader, struct lane *lane, size_t from, size_t count) {
    const struct vr_log_batch *batch = &reader->batch;
    size_t capacity = lane->capacity;
    VR_TRY(vr_columns_grow_ahead(&vr_history_columns, &lane->history, &lane->capacity, &lane->held, lane->history.count + count,
                                 &reader->budget));
    if (lane->capacity < capacity) return VRAM_NO_HOST_MEMORY;
#define VR_FIELD(column, type, density, number, LOG, since, KEY) PUT_##density(lane, batch, type, column, VR_LOG_COLUMN_##LOG);
#include "model/entry_fields.def"
    add_times(lane, batch, from, count); // times have a unit
    lane->history.count += count;
    return VRAM_OK;
}

static bool ids_fit(const struct log_reader *reader) {
    const uint64_t *largest = reader->batch.largest, strings = reader->dictionary.strings.count;
#define VR_FIELD(...)
#define VR_NUMBER(column, type, density, number, LOG, ...)                                                                                 \
    if (largest[VR_LOG_COLUMN_##LOG] > UINT32_MAX) return false;
#define VR_TEXT(column, type, density, number, LOG, ...)                                                                                   \
    if (largest[VR_LOG_COLUMN_##LOG] >= strings) return false;
#include "model/entry_fields.def"
    return largest[VR_LOG_COLUMN_ACTION] <= VR_ACTION_UNKNOWN && largest[VR_LOG_COLUMN_STACK] < reader->dictionary.stacks.count &&
           largest[VR_LOG_COLUMN_UNKNOWN] < strings && largest[VR_LOG_COLUMN_HAS] <= UINT32_MAX;
}

static enum vram_status add_batch(struct log_reader *reader) {
    const uint64_t *devices = reader->batch.column[VR_LOG_COLUMN_DEVICE];
    const bool one_device = reader->batch.same[VR_LOG_COLUMN_DEVICE];
    if (!ids_fit(reader)) return refuse_damaged(reader, "an event refers to a missing row");
    reader->stale = reader->stale || reader->batch.count != 0;
    for (size_t from = 0, to; from < reader->batch.count; from = to) {
        struct lane *lane;
        for (to = from + 1; to < reader->batch.count && !one_device && devices[to] == devices[from];) to++;
        if (one_device) to = reader->batch.count;
        VR_TRY(lane_of(reader, devices[from], &lane));
        VR_TRY(add_lane_run(reader, lane, from, to - from));
    }
    return VRAM_OK;
}

// ---- sections

// Reads rows into a table of structs that has `held` rows.
#define READ_ROWS(reader, reading, items, held, capacity, fill)                                                                            \
    do {                                                                                                                                   \
        enum vram_status status_;                                                                                                          \
        struct vr_log_table table_;                                                                                                        \
        GROW(reader, items, capacity, (held) + (size_t)(reading)->count, status_);                                                         \
        VR_TRY(status_);                                                                                                                   \
        if ((reading)->count == 0) break;                                                                                                  \
        memset((items) + (held), 0, (size_t)(reading)->count * sizeof *(items));                                                           \
        fill((items) + (held), &table_);                                                                                                   \
        if (!vr_log_read_table((reading), &table_, (reader)->dictionary.scratch)) return refuse_damaged((reader), "a table");              \
        (held) += (size_t)(reading)->count;                                                                                                \
    } while (0)

static enum vram_status read_segments(struct log_reader *reader, struct vr_log_reading *reading) {
    size_t count = (size_t)reading->count;
    struct vr_log_table table;
    enum vram_status status;
    reader->segments.count = reader->blocks.count = reader->tenant_count = 0;
    GROW(reader, reader->block_counts, reader->block_count_capacity, count + 1, status);
    VR_TRY(status);
    VR_TRY(vr_columns_grow(&vr_segment_columns, &reader->segments, &reader->segment_capacity, count, &reader->budget));
    reader->has_state = true;
    reader->stale = false;
    VR_TRY(vr_picture_marks_set(&reader->marks, reader->lane_count));
    for (size_t i = 0; i < reader->lane_count; i++) reader->marks.device[i] = reader->lanes[i].history.count;
    reader->marks.host = reader->host.history.count;
    if (count == 0) return VRAM_OK;
    vr_log_table_segments(&reader->segments, reader->block_counts, &table);
    if (!vr_log_read_table(reading, &table, reader->dictionary.scratch)) return refuse_damaged(reader, "the segments");
    reader->segments.count = count;
    return VRAM_OK;
}

static enum vram_status read_blocks(struct log_reader *reader, struct vr_log_reading *reading) {
    struct vr_log_table table;
    if (reader->blocks.count != 0) return refuse_damaged(reader, "blocks without a state");
    VR_TRY(vr_columns_grow(&vr_block_columns, &reader->blocks, &reader->block_capacity, (size_t)reading->count, &reader->budget));
    if (reading->count == 0) return VRAM_OK;
    vr_log_table_blocks(&reader->blocks, &table);
    if (!vr_log_read_table(reading, &table, reader->dictionary.scratch)) return refuse_damaged(reader, "the blocks");
    reader->blocks.count = (size_t)reading->count;
    return VRAM_OK;
}

static enum vram_status read_shape(struct log_reader *reader, struct vr_log_reading *reading) {
    struct vr_log_table table;
    vr_log_table_shape(&reader->shape, &table);
    if (reading->count != 1 || !vr_log_read_table(reading, &table, reader->dictionary.scratch)) return refuse_damaged(reader, "its shape");
    const struct vr_log_shape *shape = &reader->shape;
    if (shape->form > VR_FORM_SEGMENT_LIST || shape->history_count > MAX_DEVICES || shape->host_count > 1 ||
        shape->host_count > shape->history_count) {
        return refuse_damaged(reader, "its shape");
    }
    reader->has_shape = true;
    return VRAM_OK;
}

static enum vram_status read_section(struct log_reader *reader, struct vr_log_reading *reading) {
    if (vr_log_is_dictionary(reading->tag)) {
        enum vram_status status = vr_log_dictionary_section(&reader->dictionary, reading);
        return status == VRAM_BAD_INPUT ? refuse_damaged(reader, "a dictionary") : status;
    }
    VR_TRY(vr_log_dictionary_scratch(&reader->dictionary, (size_t)reading->count));
    switch (reading->tag) {
    case VR_LOG_ANNOTATIONS:
        READ_ROWS(reader, reading, reader->annotations, reader->annotation_count, reader->annotation_capacity, vr_log_table_annotations);
        return VRAM_OK;
    case VR_LOG_SETTINGS:
        READ_ROWS(reader, reading, reader->settings, reader->setting_count, reader->setting_capacity, vr_log_table_settings);
        return VRAM_OK;
    case VR_LOG_KEYS: READ_ROWS(reader, reading, reader->keys, reader->key_count, reader->key_capacity, vr_log_table_keys); return VRAM_OK;
    case VR_LOG_EXTRAS:
        READ_ROWS(reader, reading, reader->extras, reader->extra_count, reader->extra_capacity, vr_log_table_extras);
        return VRAM_OK;
    case VR_LOG_TENANTS:
        READ_ROWS(reader, reading, reader->tenants, reader->tenant_count, reader->tenant_capacity, vr_log_table_tenants);
        return VRAM_OK;
    case VR_LOG_SEGMENTS: return read_segments(reader, reading);
    case VR_LOG_BLOCKS: return read_blocks(reader, reading);
    case VR_LOG_SHAPE: return read_shape(reader, reading);
    case VR_LOG_INDEX: reader->ended = true; return VRAM_OK;
    default: return VRAM_OK;
    }
}

static enum vram_status read_tables(struct log_reader *reader, const unsigned char *data, size_t length) {
    struct vr_cursor cursor = {data, data + length, false};
    struct vr_log_reading reading;
    while (vr_log_next_section(&cursor, &reading)) VR_TRY(read_section(reader, &reading));
    return cursor.failed ? refuse_damaged(reader, "its tables") : VRAM_OK;
}

// ---- blocks

// Unpacks a part. *data is valid until the next part is unpacked.
static enum vram_status unpack_part(struct log_reader *reader, const struct vr_log_part *part, const unsigned char *stored,
                                    const unsigned char **data) {
    enum vram_status status;
    GROW(reader, reader->unpacked, reader->unpacked_capacity, part->length == part->stored ? 0 : part->length, status);
    VR_TRY(status);
    *data = vr_log_unpack_part(part, stored, reader->unpacked);
    return *data == NULL ? refuse_damaged(reader, "packed data") : VRAM_OK;
}

static bool is_sound(const struct vr_log_block_header *header, const unsigned char *payload) {
    return vr_log_checksum(payload, (size_t)vr_log_block_bytes(header) - VR_LOG_BLOCK_HEADER_BYTES) == header->checksum;
}

static enum vram_status read_block(struct log_reader *reader, const struct vr_log_block_header *header, const unsigned char *payload) {
    const unsigned char *data;
    VR_TRY(unpack_part(reader, &header->tables, payload, &data));
    VR_TRY(read_tables(reader, data, header->tables.length));
    if (header->events == 0) return VRAM_OK;
    VR_TRY(unpack_part(reader, &header->batch, payload + header->tables.stored, &data));
    enum vram_status status = vr_log_events_read(data, header->batch.length, header->events, &reader->batch);
    if (status == VRAM_BAD_INPUT) return refuse_damaged(reader, "a block's events");
    return status == VRAM_OK ? add_batch(reader) : status;
}

static void widen_budget(struct log_reader *reader, uint64_t more) {
    reader->budget.limit_bytes = BUDGET_BASE + (vr_input_offset(reader->input) + more) * BUDGET_FACTOR;
    reader->budget.ahead = vr_input_ahead(reader->input);
}

// ---- the tail

static enum vram_status tail_mark(struct log_reader *reader, unsigned kind, const unsigned char *record, size_t length) {
    enum vram_status status;
    const uint32_t strings = reader->dictionary.strings.count;
    if (length < 16 || vr_load32(record + 4) >= strings || vr_load32(record + 8) >= strings) return VRAM_BAD_INPUT;
    if (kind == VR_LOG_RECORD_SETTING) {
        GROW(reader, reader->settings, reader->setting_capacity, reader->setting_count + 1, status);
        if (status == VRAM_OK) {
            reader->settings[reader->setting_count++] = (struct vr_setting){vr_load32(record + 4), vr_load32(record + 8)};
        }
        return status;
    }
    if (length < 24) return VRAM_BAD_INPUT;
    GROW(reader, reader->annotations, reader->annotation_capacity, reader->annotation_count + 1, status);
    VR_TRY(status);
    int64_t device = vr_load32(record + 12) == UINT32_MAX ? -1 : (int64_t)vr_load32(record + 12);
    reader->annotations[reader->annotation_count++] =
        (struct vr_annotation){vr_load32(record + 8), vr_load32(record + 4), device, (int64_t)(vr_load64(record + 16) / 1000)};
    return VRAM_OK;
}

static bool event_fits(const struct log_reader *reader, const struct vr_log_record_event *event) {
    const uint32_t strings = reader->dictionary.strings.count;
#define VR_FIELD(...)
#define VR_NUMBER(...)
#define VR_TEXT(column, ...)                                                                                                               \
    if (event->column >= strings) return false;
#include "model/entry_fields.def"
    return event->action < VR_ACTION_UNKNOWN && (event->device < MAX_DEVICES || event->device == UINT32_MAX) &&
           event->stack < reader->dictionary.stacks.count;
}

static enum vram_status tail_event(struct log_reader *reader, const unsigned char *record, size_t length) {
    struct vr_log_record_event event = {.head = 0};
    if (length < VR_LOG_RECORD_EVENT_LEAST || length > sizeof event) return VRAM_BAD_INPUT;
    memcpy(&event, record, length);
    if (!event_fits(reader, &event)) return VRAM_BAD_INPUT;
    vr_log_batch_add(&reader->batch, &event);
    return VRAM_OK;
}

static enum vram_status add_tail_batch(struct log_reader *reader) {
    for (size_t column = 0; column < VR_LOG_COLUMN_COUNT; column++) {
        reader->batch.largest[column] = 0;
        for (size_t i = 0; i < reader->batch.count; i++) {
            uint64_t value = reader->batch.column[column][i];
            if (value > reader->batch.largest[column]) reader->batch.largest[column] = value;
        }
    }
    return add_batch(reader);
}

// Reads the records from `at` on, up to the first incomplete one. *whole: all were complete.
static enum vram_status read_records(struct log_reader *reader, const unsigned char *at, const unsigned char *end, uint64_t sequence,
                                     bool *whole) {
    size_t length, most = (size_t)(end - at) / VR_LOG_RECORD_EVENT_LEAST + 1;
    unsigned kind;
    VR_TRY(vr_log_batch_reserve(&reader->batch, most));
    reader->batch.count = 0;
    reader->batch.time_unit_ns = 1;
    memset(reader->batch.same, 0, sizeof reader->batch.same);
    enum vram_status status = VRAM_OK;
    for (; vr_log_next_record(at, end, sequence, &kind, &length) != NULL; at += length) {
        if (kind == VR_LOG_RECORD_EVENT)
            status = tail_event(reader, at, length);
        else if (kind == VR_LOG_RECORD_ANNOTATION || kind == VR_LOG_RECORD_SETTING)
            status = tail_mark(reader, kind, at, length);
        else
            status = vr_log_dictionary_record(&reader->dictionary, kind, at, length);
        if (status != VRAM_OK) break;
    }
    // The writer may still be running, so invalid data ends the tail.
    *whole = at == end;
    if (status != VRAM_OK && status != VRAM_BAD_INPUT) return status;
    return add_tail_batch(reader);
}

// Reads the tail: called when no block begins at the input's position.
static enum vram_status read_tail(struct log_reader *reader, const struct vr_log_file_header *file, uint64_t sequence,
                                  enum vr_ending *ending) {
    struct vr_input *input = reader->input;
    struct vr_log_tail_header tail;
    uint64_t head = file->tail_distance + sizeof tail;
    *ending = VR_ENDING_CUT;
    if (file->tail_distance == 0) return VRAM_OK;
    if (file->tail_distance > TAIL_MOST || file->tail_bytes > TAIL_MOST) return refuse_damaged(reader, "its header");
    VR_TRY(vr_input_fill(input, head + file->tail_bytes));
    if (vr_input_at_hand(input) < head) return VRAM_OK;
    memcpy(&tail, input->next + file->tail_distance, sizeof tail);
    bool good = tail.magic == VR_LOG_TAIL_MAGIC && tail.sequence == sequence &&
                tail.checksum == vr_log_checksum(&tail.sequence, sizeof tail.sequence) && tail.used <= file->tail_bytes;
    if (!good) return VRAM_OK;
    uint64_t there = vr_input_at_hand(input) - head, used = tail.used < there ? tail.used : there;
    const unsigned char *records = input->next + head;
    bool whole;
    widen_budget(reader, head + used);
    VR_TRY(read_records(reader, records, records + used, sequence, &whole));
    if (whole && used == tail.used) *ending = VR_ENDING_OPEN;
    return VRAM_OK;
}

// ---- the file

static enum vram_status read_header(struct log_reader *reader, struct vr_log_file_header *header) {
    if (!vr_log_get_file_header(reader->input->next, header)) return refuse_damaged(reader, "its header");
    if (header->version != VR_LOG_VERSION) {
        return vr_fail(reader->error, VRAM_BAD_INPUT, 8, "the recording has format version %u; this program supports version %u",
                       header->version, (unsigned)VR_LOG_VERSION);
    }
    reader->input->next += VR_LOG_HEADER_BYTES;
    return VRAM_OK;
}

// Ends reading at a damaged block, because later blocks need its rows: the file counts as cut here.
static enum vram_status stop_at_damage(const struct log_reader *reader, uint64_t *damaged_at) {
    *damaged_at = vr_input_offset(reader->input);
    return VRAM_OK;
}

static enum vram_status read_blocks_of_file(struct log_reader *reader, enum vr_ending *ending, uint64_t *damaged_at) {
    struct vr_input *input = reader->input;
    struct vr_log_file_header file;
    struct vr_log_block_header header;
    *ending = VR_ENDING_CUT;
    VR_TRY(vr_input_fill(input, VR_LOG_HEADER_BYTES));
    if (vr_input_at_hand(input) < VR_LOG_HEADER_BYTES) return VRAM_OK;
    VR_TRY(read_header(reader, &file));
    for (uint64_t sequence = 0; !reader->ended; sequence++) {
        VR_TRY(vr_input_fill(input, VR_LOG_BLOCK_HEADER_BYTES));
        if (vr_input_at_hand(input) < VR_LOG_BLOCK_HEADER_BYTES) return VRAM_OK;
        if (!vr_log_get_block_header(input->next, sequence, vr_input_offset(input), &header)) {
            if (vr_load32(input->next) == VR_LOG_BLOCK_MAGIC) return stop_at_damage(reader, damaged_at);
            return read_tail(reader, &file, sequence, ending);
        }
        uint64_t length = vr_round_up(vr_log_block_bytes(&header), 8);
        VR_TRY(vr_input_fill(input, length));
        if (vr_input_at_hand(input) < length) return VRAM_OK;
        const unsigned char *payload = input->next + VR_LOG_BLOCK_HEADER_BYTES;
        if (!is_sound(&header, payload)) return stop_at_damage(reader, damaged_at);
        widen_budget(reader, length);
        VR_TRY(read_block(reader, &header, payload));
        input->next += length;
    }
    *ending = VR_ENDING_WHOLE;
    return VRAM_OK;
}

// ---- the model

static enum vram_status move_histories(struct log_reader *reader, struct vr_model *model) {
    bool host = reader->has_shape ? reader->shape.host_count != 0 : reader->host.history.count != 0;
    for (size_t i = 0; i < reader->segments.count && !reader->has_shape; i++) {
        if (reader->segments.device[i] == UINT32_MAX)
            host = true;
        else if (reader->segments.device[i] >= MAX_DEVICES)
            return refuse_damaged(reader, "a segment's device");
        else
            VR_TRY(lane_of(reader, reader->segments.device[i], &(struct lane *){NULL}));
    }
    size_t devices = reader->has_shape ? (size_t)reader->shape.history_count - host : reader->lane_count;
    if (reader->lane_count > devices || (!host && reader->host.history.count != 0)) return refuse_damaged(reader, "an event's device");
    model->histories = calloc(devices + host + 1, sizeof *model->histories);
    if (model->histories == NULL) return VRAM_NO_HOST_MEMORY;
    model->history_count = devices + host;
    model->host_count = host;
    for (size_t i = 0; i < devices + host; i++) {
        struct lane none = {.capacity = 0}, *lane = host && i == devices     ? &reader->host
                                                    : i < reader->lane_count ? &reader->lanes[i]
                                                                             : &none;
        model->histories[i] = lane->history;
        memset(lane, 0, sizeof *lane);
        VR_TRY(vr_columns_finish(&vr_history_columns, &model->histories[i], model->histories[i].count));
    }
    for (size_t i = 0; i < reader->segments.count && host; i++) {
        if (reader->segments.device[i] == UINT32_MAX) reader->segments.device[i] = (uint32_t)devices;
    }
    return VRAM_OK;
}

static enum vram_status move_state(struct log_reader *reader, struct vr_model *model) {
    uint64_t total = 0;
    model->segments = reader->segments;
    model->blocks = reader->blocks;
    memset(&reader->segments, 0, sizeof reader->segments);
    memset(&reader->blocks, 0, sizeof reader->blocks);
    model->segments.first_block = malloc((model->segments.count + 1) * sizeof *model->segments.first_block);
    if (model->segments.first_block == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < model->segments.count; i++) {
        model->segments.first_block[i] = total;
        if (!vr_add_u64(total, reader->block_counts[i], &total)) return refuse_damaged(reader, "the segments");
    }
    model->segments.first_block[model->segments.count] = total;
    VR_TRY(vr_columns_finish(&vr_segment_columns, &model->segments, model->segments.count));
    return vr_columns_finish(&vr_block_columns, &model->blocks, model->blocks.count);
}

// Keeps the last value of each key, at the position of the first.
static enum vram_status last_settings(struct log_reader *reader) {
    uint32_t *place = calloc((size_t)reader->dictionary.strings.count + 1, sizeof *place);
    size_t kept = 0;
    if (place == NULL) return VRAM_NO_HOST_MEMORY;
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < reader->setting_count; i++) {
        struct vr_setting setting = reader->settings[i];
        if (setting.key >= reader->dictionary.strings.count) {
            status = refuse_damaged(reader, "a setting");
            break;
        }
        if (place[setting.key] == 0) {
            place[setting.key] = (uint32_t)kept + 1;
            reader->settings[kept++] = setting;
        } else {
            reader->settings[place[setting.key] - 1] = setting;
        }
    }
    reader->setting_count = kept;
    free(place);
    return status;
}

static void move_tables(struct log_reader *reader, struct vr_model *model) {
    struct vr_log_dictionary *dictionary = &reader->dictionary;
    model->form = (enum vr_form)reader->shape.form;
    model->strings = dictionary->strings;
    model->frames = dictionary->frames;
    model->stacks = dictionary->stacks;
    model->modules = dictionary->modules;
    model->module_count = dictionary->module_count;
    memset(&dictionary->strings, 0, sizeof dictionary->strings);
    memset(&dictionary->frames, 0, sizeof dictionary->frames);
    memset(&dictionary->stacks, 0, sizeof dictionary->stacks);
    dictionary->modules = NULL;
#define MOVE(member, count) (model->member = reader->member, model->count = reader->count, reader->member = NULL)
    MOVE(annotations, annotation_count);
    MOVE(settings, setting_count);
    MOVE(extras, extra_count);
    MOVE(tenants, tenant_count);
#undef MOVE
    model->top_level_keys = reader->keys;
    model->top_level_key_count = reader->key_count;
    reader->keys = NULL;
}

static enum vram_status finish_log(struct log_reader *reader, struct vr_model *model) {
    VR_TRY(last_settings(reader));
    VR_TRY(move_histories(reader, model));
    VR_TRY(move_state(reader, model));
    move_tables(reader, model);
    enum vram_status status = vr_model_check(model, reader->error);
    if (status != VRAM_OK) return refuse_damaged(reader, "a table refers to a missing row");
    if (reader->has_shape || (reader->has_state && !reader->stale)) return VRAM_OK;
    return vr_picture_advance(model, &reader->marks, &reader->budget);
}

static void release_log_reader(struct log_reader *reader) {
    vr_log_dictionary_release(&reader->dictionary);
    vr_log_batch_release(&reader->batch);
    free(reader->unpacked);
    for (size_t i = 0; i < reader->lane_count; i++) vr_columns_release(&vr_history_columns, &reader->lanes[i].history);
    free(reader->lanes);
    vr_columns_release(&vr_history_columns, &reader->host.history);
    free(reader->annotations);
    free(reader->settings);
    free(reader->keys);
    free(reader->extras);
    free(reader->tenants);
    vr_columns_release(&vr_segment_columns, &reader->segments);
    free(reader->block_counts);
    vr_columns_release(&vr_block_columns, &reader->blocks);
    free(reader->marks.device);
}

enum vram_status vr_vramfile_read(struct vr_input *input, struct vr_model *model, struct vram_error *error) {
    struct log_reader reader = {.input = input, .error = error, .budget.limit_bytes = BUDGET_BASE, .batch.lean = true};
    memset(model, 0, sizeof *model);
    VR_TRY(vr_log_dictionary_init(&reader.dictionary, &reader.budget));
    enum vram_status status = read_blocks_of_file(&reader, &model->ending, &model->damaged_at);
    if (status == VRAM_OK) status = finish_log(&reader, model);
    if (status == VRAM_LIMIT && error->status != status) {
        (void)vr_fail(error, status, vr_input_offset(input), "the recording unpacks to more than %d times its size", (int)BUDGET_FACTOR);
    }
    release_log_reader(&reader);
    if (status != VRAM_OK) vr_model_release(model);
    return status;
}
