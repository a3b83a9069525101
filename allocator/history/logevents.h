// logevents.h: a batch of events as columns, and as the events part of a block of a recording file.
#ifndef VR_HISTORY_LOGEVENTS_H
#define VR_HISTORY_LOGEVENTS_H

#include "base/hash.h"
#include "history/logbytes.h"

// The columns of a batch, by their numbers in the file. From STREAM on they are written as plain columns, in this order.
enum vr_log_column {
#define VR_FIELD(column, type, density, number, LOG, ...) VR_LOG_COLUMN_##LOG = (number),
#include "model/entry_fields.def"
    VR_LOG_COLUMN_DEVICE = 6,
    // The number of columns, now and in the file's first version.
    VR_LOG_COLUMN_COUNT = 1
#define VR_FIELD(...) +1
#include "model/entry_fields.def"
    ,
    VR_LOG_COLUMN_FIRST_COUNT = 15,
};
enum { VR_LOG_BATCH_MAX = 1 << 16 };

// An event's byte in the first column: its action in the lower four bits, and flags for what is written.
enum {
    VR_LOG_FLAG_ACTION = 15,
    VR_LOG_FLAG_KNOWN = 16,      // an earlier event of the batch has this address: its distance is written instead of the address
    VR_LOG_FLAG_SIZE_UNITS = 32, // the size is written, in units
    VR_LOG_FLAG_SIZE_BYTES = 64, // the size is written, in bytes
    VR_LOG_FLAG_STACK = 128,     // the stack is written
    VR_LOG_SIZE_UNIT = 512,
};

// An event in the tail of a file.
struct vr_log_record_event {
    uint32_t head;
    uint32_t device;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    uint64_t time_ns;
    uint64_t pool_first;
    uint64_t pool_second;
    uint32_t action;
    uint32_t thread;
    uint32_t stack;
    uint32_t context;
    uint32_t metadata;
    uint32_t tag;
#define LATER_FIRST(type, column)
#define LATER_LATER(type, column)                                type column;
#define VR_FIELD(column, type, density, number, LOG, since, KEY) LATER_##since(type, column)
#include "model/entry_fields.def"
#undef LATER_FIRST
#undef LATER_LATER
};
// Size in the file's first version: shorter records have 0 in the later fields.
enum { VR_LOG_RECORD_EVENT_LEAST = 80 };
_Static_assert(offsetof(struct vr_log_record_event, tag) + sizeof(uint32_t) == VR_LOG_RECORD_EVENT_LEAST,
               "the file's layout has no padding");
_Static_assert(sizeof(struct vr_log_record_event) % 8 == 0, "a record is whole words");

// Events by columns. A reader also fills in the largest value of each column.
struct vr_log_batch {
    uint64_t *column[VR_LOG_COLUMN_COUNT];
    uint64_t largest[VR_LOG_COLUMN_COUNT];
    uint64_t *scratch[4];
    struct vr_map latest; // for a writer: by address, the latest event with it, plus one
    size_t count;
    size_t capacity;
    uint64_t time_unit_ns; // 1 or 1000
    // For a reader that set `lean`: the columns from STREAM on that store only row 0, valid for all rows.
    bool same[VR_LOG_COLUMN_COUNT];
    bool lean;
};

// Makes room for `capacity` events, at most VR_LOG_BATCH_MAX; the contents are lost. NO_HOST_MEMORY, with nothing changed.
enum vram_status vr_log_batch_reserve(struct vr_log_batch *batch, size_t capacity);
void vr_log_batch_release(struct vr_log_batch *batch);

// Checks that all columns share one array with room for as many events, and that a writer's map has each address at its last event.
bool vr_log_batch_check(const struct vr_log_batch *batch);

// Appends the batch's events to *out. Sets out->failed if the host is out of memory.
void vr_log_events_write(struct vr_bytes *out, struct vr_log_batch *batch);
// Reads `count` events (at most VR_LOG_BATCH_MAX). BAD_INPUT for data that vr_log_events_write() cannot have written, NO_HOST_MEMORY.
enum vram_status vr_log_events_read(const unsigned char *data, size_t length, size_t count, struct vr_log_batch *batch);

// Writes the columns of a recorded event, from STREAM on, to `row`.
void vr_log_rare_columns(const struct vr_log_record_event *event, uint64_t row[VR_LOG_COLUMN_COUNT]);

#endif
