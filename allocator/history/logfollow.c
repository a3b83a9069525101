// Follows a growing recording file: delivers its blocks as they appear, and in between the records of the tail.
#include <limits.h>
#include <stdio.h>

#include "history/logdict.h"
#include "history/logfile.h"
#include "vram/log.h"

#define BUDGET_BASE (16 * VR_MIB)
enum { BUDGET_FACTOR = 160 };

struct vram_follow {
    FILE *file;
    struct vr_log_file_header header;
    int64_t from_us;
    uint64_t from_ns;
    uint64_t offset;   // offset of the next block
    uint64_t sequence; // its sequence number
    uint64_t taken;    // number of its events already read from the tail
    uint64_t tail_at;  // bytes of the tail's records already read
    bool ended;        // the writer has closed the file
    bool gone;         // the writer has ended without closing it
    bool over;         // nothing was found after `gone` was set
    struct vr_budget budget;
    struct vr_log_dictionary dictionary;
    struct vr_log_batch batch;
    size_t next; // event of the batch
    struct vr_bytes stored;
    struct vr_bytes unpacked;
};

// Reads at most `length` bytes at `offset`; *got may be fewer at the end of the file.
static enum vram_status read_at(struct vram_follow *follow, uint64_t offset, void *bytes, size_t length, size_t *got) {
    if (offset > LONG_MAX || fseek(follow->file, (long)offset, SEEK_SET) != 0) return VRAM_IO;
    *got = fread(bytes, 1, length, follow->file);
    enum vram_status status = ferror(follow->file) ? VRAM_IO : VRAM_OK;
    clearerr(follow->file);
    return status;
}

static enum vram_status file_size(struct vram_follow *follow, uint64_t *size) {
    if (fseek(follow->file, 0, SEEK_END) != 0) return VRAM_IO;
    long at = ftell(follow->file);
    if (at < 0) return VRAM_IO;
    *size = (uint64_t)at;
    return VRAM_OK;
}

static enum vram_status open_file(struct vram_follow *follow, const char *path, struct vram_error *error) {
    unsigned char header[VR_LOG_HEADER_BYTES];
    size_t got;
    follow->file = fopen(path, "rb");
    if (follow->file == NULL) return vr_fail(error, VRAM_IO, VRAM_NO_OFFSET, "%s: cannot open the file", path);
    (void)setvbuf(follow->file, NULL, _IONBF, 0);
    if (read_at(follow, 0, header, sizeof header, &got) != VRAM_OK)
        return vr_fail(error, VRAM_IO, VRAM_NO_OFFSET, "%s is not seekable", path);
    if (got != sizeof header || !vr_log_get_file_header(header, &follow->header) || follow->header.version != VR_LOG_VERSION) {
        return vr_fail(error, VRAM_BAD_INPUT, 0, "%s is not a recording file that can be followed", path);
    }
    follow->offset = VR_LOG_HEADER_BYTES;
    follow->budget.limit_bytes = BUDGET_BASE;
    return vr_log_dictionary_init(&follow->dictionary, &follow->budget);
}

enum vram_status vram_follow_open(const char *path, uint64_t from_ns, struct vram_follow **follow, struct vram_error *error) {
    if (path == NULL || follow == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the path and the pointer for the result must not be NULL");
    struct vram_follow *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    made->from_ns = from_ns;
    made->from_us = (int64_t)(from_ns / 1000);
    enum vram_status status = open_file(made, path, error);
    if (status != VRAM_OK) {
        vram_follow_close(made);
        return status;
    }
    *follow = made;
    return VRAM_OK;
}

void vram_follow_close(struct vram_follow *follow) {
    if (follow == NULL) return;
    if (follow->file != NULL) (void)fclose(follow->file);
    vr_log_dictionary_release(&follow->dictionary);
    vr_log_batch_release(&follow->batch);
    vr_bytes_release(&follow->stored);
    vr_bytes_release(&follow->unpacked);
    free(follow);
}

// ---- blocks

// Reads the header of the next block. *there: the whole block is in the file.
static enum vram_status find_block(struct vram_follow *follow, struct vr_log_block_header *header, bool *there) {
    unsigned char bytes[VR_LOG_BLOCK_HEADER_BYTES];
    size_t got;
    uint64_t size;
    *there = false;
    VR_TRY(read_at(follow, follow->offset, bytes, sizeof bytes, &got));
    if (got != sizeof bytes || !vr_log_get_block_header(bytes, follow->sequence, follow->offset, header)) return VRAM_OK;
    VR_TRY(file_size(follow, &size));
    *there = follow->offset + vr_log_block_bytes(header) <= size;
    return VRAM_OK;
}

static enum vram_status unpack_part(struct vram_follow *follow, const struct vr_log_part *part, const unsigned char *stored,
                                    const unsigned char **data) {
    follow->unpacked.count = 0;
    if (!vr_bytes_reserve(&follow->unpacked, (size_t)part->length + 1)) return VRAM_NO_HOST_MEMORY;
    *data = vr_log_unpack_part(part, stored, follow->unpacked.data);
    return *data == NULL ? VRAM_BAD_INPUT : VRAM_OK;
}

static enum vram_status read_tables(struct vram_follow *follow, const unsigned char *data, size_t length) {
    struct vr_cursor cursor = {data, data + length, false};
    struct vr_log_reading reading;
    while (vr_log_next_section(&cursor, &reading)) {
        if (reading.tag == VR_LOG_INDEX) follow->ended = true;
        if (vr_log_is_dictionary(reading.tag)) VR_TRY(vr_log_dictionary_section(&follow->dictionary, &reading));
    }
    return cursor.failed ? VRAM_BAD_INPUT : VRAM_OK;
}

static enum vram_status read_block(struct vram_follow *follow, const struct vr_log_block_header *header) {
    size_t length = (size_t)vr_log_block_bytes(header) - VR_LOG_BLOCK_HEADER_BYTES, got;
    const unsigned char *data;
    follow->stored.count = 0;
    follow->budget.limit_bytes = BUDGET_BASE + (follow->offset + length) * BUDGET_FACTOR;
    if (!vr_bytes_reserve(&follow->stored, length + 1)) return VRAM_NO_HOST_MEMORY;
    VR_TRY(read_at(follow, follow->offset + VR_LOG_BLOCK_HEADER_BYTES, follow->stored.data, length, &got));
    if (got != length || vr_log_checksum(follow->stored.data, length) != header->checksum) return VRAM_BAD_INPUT;
    VR_TRY(unpack_part(follow, &header->tables, follow->stored.data, &data));
    VR_TRY(read_tables(follow, data, header->tables.length));
    follow->batch.count = follow->next = 0;
    if (header->events != 0 && header->events > follow->taken && header->last_us >= follow->from_us) {
        VR_TRY(unpack_part(follow, &header->batch, follow->stored.data + header->tables.stored, &data));
        VR_TRY(vr_log_events_read(data, header->batch.length, header->events, &follow->batch));
        follow->next = (size_t)follow->taken;
    }
    follow->offset += vr_round_up(vr_log_block_bytes(header), 8);
    follow->sequence++;
    follow->taken = follow->tail_at = 0;
    return VRAM_OK;
}

// ---- the tail

static enum vram_status read_records(struct vram_follow *follow, size_t length) {
    const unsigned char *at = follow->stored.data, *end = at + length;
    unsigned kind;
    size_t record;
    VR_TRY(vr_log_batch_reserve(&follow->batch, length / sizeof(struct vr_log_record_event) + 1));
    follow->batch.count = follow->next = 0;
    follow->batch.time_unit_ns = 1;
    for (; vr_log_next_record(at, end, follow->sequence, &kind, &record) != NULL; at += record) {
        if (kind != VR_LOG_RECORD_EVENT) {
            VR_TRY(vr_log_dictionary_record(&follow->dictionary, kind, at, record));
            continue;
        }
        struct vr_log_record_event event;
        if (record != sizeof event) return VRAM_BAD_INPUT;
        memcpy(&event, at, sizeof event);
        vr_log_batch_add(&follow->batch, &event);
        follow->taken++;
    }
    return at == end ? VRAM_OK : VRAM_BAD_INPUT;
}

// Reads the new records of the tail. Uses only bytes that were read before the writer moved on, which is checked afterwards: a block is in
// the file before its tail is overwritten.
static enum vram_status read_tail(struct vram_follow *follow) {
    struct vr_log_tail_header tail;
    struct vr_log_block_header header;
    size_t got;
    bool there;
    uint64_t at = follow->offset + follow->header.tail_distance;
    follow->batch.count = follow->next = 0;
    if (follow->header.tail_distance == 0) return VRAM_OK;
    VR_TRY(read_at(follow, at, &tail, sizeof tail, &got));
    if (got != sizeof tail || tail.magic != VR_LOG_TAIL_MAGIC || tail.sequence != follow->sequence) return VRAM_OK;
    if (tail.used > follow->header.tail_bytes || tail.used <= follow->tail_at || tail.used > UINT32_MAX) return VRAM_OK;
    size_t length = (size_t)(tail.used - follow->tail_at);
    follow->stored.count = 0;
    if (!vr_bytes_reserve(&follow->stored, length)) return VRAM_NO_HOST_MEMORY;
    VR_TRY(read_at(follow, at + sizeof tail + follow->tail_at, follow->stored.data, length, &got));
    VR_TRY(find_block(follow, &header, &there));
    if (there || got != length) return VRAM_OK;
    VR_TRY(read_records(follow, length));
    follow->tail_at = tail.used;
    return VRAM_OK;
}

// ---- events

static uint64_t time_of(const struct vr_log_batch *batch, size_t i) { return batch->column[VR_LOG_COLUMN_TIME][i] * batch->time_unit_ns; }

// Delivers the rest of the batch. Returns false if an event has an unknown id.
static bool give_events(struct vram_follow *follow, struct vram_log_event *events, size_t capacity, size_t *count) {
    struct vr_log_batch *batch = &follow->batch;
    for (; follow->next < batch->count && *count < capacity; follow->next++) {
        size_t i = follow->next;
        if (time_of(batch, i) < follow->from_ns) continue;
        struct vram_log_event *event = &events[(*count)++];
        *event = (struct vram_log_event){
            .address = batch->column[VR_LOG_COLUMN_ADDRESS][i],
            .size_bytes = batch->column[VR_LOG_COLUMN_SIZE][i],
            .stream = batch->column[VR_LOG_COLUMN_STREAM][i],
            .time_ns = time_of(batch, i),
            .pool = {batch->column[VR_LOG_COLUMN_POOL_FIRST][i], batch->column[VR_LOG_COLUMN_POOL_SECOND][i]},
            .device = (uint32_t)batch->column[VR_LOG_COLUMN_DEVICE][i],
            .action = (uint32_t)batch->column[VR_LOG_COLUMN_ACTION][i],
            .stack = (uint32_t)batch->column[VR_LOG_COLUMN_STACK][i],
#define VR_FIELD(...)
#define VR_NUMBER(member, type, density, number, LOG, ...) .member = (type)batch->column[VR_LOG_COLUMN_##LOG][i],
#define VR_TEXT(member, type, density, number, LOG, ...)   .member = (type)batch->column[VR_LOG_COLUMN_##LOG][i],
#include "model/entry_fields.def"
        };
        const uint32_t strings = follow->dictionary.strings.count;
        if (event->stack >= follow->dictionary.stacks.count) return false;
#define VR_FIELD(...)
#define VR_NUMBER(...)
#define VR_TEXT(column, ...)                                                                                                               \
    if (event->column >= strings) return false;
#include "model/entry_fields.def"
    }
    return true;
}

// Returns whether the writing process is gone; false for one on another system.
static bool is_gone(const struct vr_log_file_header *header) {
    return header->process != 0 && header->process_host == vr_log_host() && !vr_os_process_runs(header->process, header->process_started);
}

// Reads blocks and the tail until the batch has events or nothing is left.
static enum vram_status advance_follow(struct vram_follow *follow, bool *more) {
    struct vr_log_block_header header;
    bool there;
    *more = false;
    if (follow->ended || follow->over) return VRAM_OK;
    VR_TRY(find_block(follow, &header, &there));
    if (there) {
        *more = true;
        return read_block(follow, &header);
    }
    VR_TRY(read_tail(follow));
    *more = follow->batch.count != 0;
    if (*more) return VRAM_OK;
    // The tail may have become a block just now.
    VR_TRY(find_block(follow, &header, more));
    if (*more) return VRAM_OK;
    follow->over = follow->gone;
    follow->gone = follow->gone || is_gone(&follow->header);
    *more = follow->gone && !follow->over; // read again: it may have written in between
    return VRAM_OK;
}

enum vram_status vram_follow_next(struct vram_follow *follow, struct vram_log_event *events, size_t capacity, size_t *count,
                                  struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, follow && count && (events || capacity == 0));
    size_t count_out = 0;
    bool more = true;
    enum vram_status status = VRAM_OK;
    while (status == VRAM_OK && more) {
        if (!give_events(follow, events, capacity, &count_out)) status = VRAM_BAD_INPUT;
        if (status != VRAM_OK || count_out == capacity) break;
        status = advance_follow(follow, &more);
    }
    if (status != VRAM_OK) return vr_fail(error, status, follow->offset, "cannot follow the recording: %s", vram_status_text(status));
    *count = count_out;
    return VRAM_OK;
}

bool vram_follow_ended(const struct vram_follow *follow) {
    if (follow == NULL) return false;
    return (follow->ended || follow->over) && follow->next == follow->batch.count;
}

const char *vram_follow_string(const struct vram_follow *follow, uint32_t id) {
    if (follow == NULL) return NULL;
    const struct vr_strings *strings = &follow->dictionary.strings;
    return strings->bytes + strings->offset[id < strings->count ? id : 0];
}

size_t vram_follow_stack(const struct vram_follow *follow, uint32_t stack, struct vram_frame *frames, size_t capacity) {
    if (follow == NULL) return 0;
    const struct vr_log_dictionary *dictionary = &follow->dictionary;
    if (stack >= dictionary->stacks.count) return 0;
    const uint32_t *row = dictionary->stacks.frame + dictionary->stacks.offset[stack];
    size_t count = (size_t)(dictionary->stacks.offset[stack + 1] - dictionary->stacks.offset[stack]);
    for (size_t i = 0; i < count && i < capacity; i++) {
        frames[i].name = vram_follow_string(follow, dictionary->frames.name[row[i]]);
        frames[i].filename = vram_follow_string(follow, dictionary->frames.filename[row[i]]);
        frames[i].line = dictionary->frames.line[row[i]];
    }
    return count;
}
