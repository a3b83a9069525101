// logevents.h: a batch of events as columns, and as the events part of a block of a recording file.
#ifndef VR_HISTORY_LOGEVENTS_H
#define VR_HISTORY_LOGEVENTS_H

#include "base/map.h"
#include "history/logbytes.h"

// The columns of a batch. The second half is written as plain columns, in this order.
enum vr_log_column {
    VR_LOG_COLUMN_ACTION,
    VR_LOG_COLUMN_ADDRESS,
    VR_LOG_COLUMN_SIZE,
    VR_LOG_COLUMN_TIME, // in time units since the epoch, two's complement
    VR_LOG_COLUMN_STACK,
    VR_LOG_COLUMN_STREAM,
    VR_LOG_COLUMN_DEVICE,
    VR_LOG_COLUMN_POOL_FIRST,
    VR_LOG_COLUMN_POOL_SECOND,
    VR_LOG_COLUMN_THREAD,
    VR_LOG_COLUMN_CONTEXT,
    VR_LOG_COLUMN_METADATA,
    VR_LOG_COLUMN_TAG,
    VR_LOG_COLUMN_HAS,
    VR_LOG_COLUMN_UNKNOWN,
    VR_LOG_COLUMN_COUNT
};
enum { VR_LOG_BATCH_MAX = 1 << 16 };

// Events by columns. Whoever reads has also the largest value of each column.
struct vr_log_batch {
    uint64_t *column[VR_LOG_COLUMN_COUNT];
    uint64_t largest[VR_LOG_COLUMN_COUNT];
    uint64_t *scratch[4];
    struct vr_map latest; // of whoever writes: by address, the latest event that has it, plus one
    size_t count;
    size_t capacity;
    uint64_t time_unit_ns; // 1 or 1000
};

// Room for `capacity` events, at most VR_LOG_BATCH_MAX; what was in it is lost. NO_HOST_MEMORY; it is then as before.
enum vram_status vr_log_batch_reserve(struct vr_log_batch *batch, size_t capacity);
void vr_log_batch_release(struct vr_log_batch *batch);

// Times in nanoseconds become microseconds where nothing is lost.
void vr_log_batch_coarsen(struct vr_log_batch *batch);
// Adds the batch's events to *out. out->failed when there is no memory.
void vr_log_events_write(struct vr_bytes *out, struct vr_log_batch *batch);
// Reads `count` events (at most VR_LOG_BATCH_MAX). BAD_INPUT for what vr_log_events_write() does not make, NO_HOST_MEMORY.
enum vram_status vr_log_events_read(const unsigned char *data, size_t length, size_t count, struct vr_log_batch *batch);

#endif
