// logencode.h: encodes the events of a log's tail one by one, as they come, into the columns of their future block.
//
// The result equals that of vr_log_events_write() for a batch (logevents.h), without a second pass over the events: making the block only
// concatenates the columns.
#ifndef VR_HISTORY_LOGENCODE_H
#define VR_HISTORY_LOGENCODE_H

#include "history/logevents.h"

enum { VR_LOG_ROWS_KNOWN = 256 }; // rows that can be found again

// The end of a column is where its next number goes.
struct vr_log_varints {
    unsigned char *begin, *end;
};

// A zeroed struct is empty.
struct vr_log_encoder {
    size_t count; // events
    size_t capacity;
    unsigned char *flags;
    struct vr_log_varints distances, sizes, times; // as they will be in the block
    uint64_t *addresses, *stacks;
    size_t address_count, stack_count;
    // The columns from STREAM on seldom differ between consecutive events: their distinct rows, and the row of each event.
    uint64_t (*rows)[VR_LOG_COLUMN_COUNT];
    size_t row_count;
    uint16_t *row_of;
    size_t row;                        // of the last event
    uint32_t known[VR_LOG_ROWS_KNOWN]; // by hash: a row + 1
    uint64_t *size_of;
    uint64_t *values; // scratch
    // The latest event of each address. Events are numbered across blocks; those up to `before` are in earlier blocks.
    struct vr_map latest;
    struct vr_map_slot *slot; // of the last event's address
    uint64_t before;
    uint64_t last_size, last_time, last_stack;
    uint64_t last_of_action[16]; // stacks
    bool falls;                  // some event's time is earlier than that of the event before it
};

// Makes room for `capacity` events, at most VR_LOG_BATCH_MAX. Called once. NO_HOST_MEMORY.
enum vram_status vr_log_encoder_reserve(struct vr_log_encoder *encoder, size_t capacity);
void vr_log_encoder_release(struct vr_log_encoder *encoder);
// Makes the next events equal to this one in the columns from STREAM on.
void vr_log_encoder_turn(struct vr_log_encoder *encoder, const struct vr_log_record_event *event);
// Appends the events to *out as the events part of a block. Sets out->failed if the host is out of memory.
void vr_log_encoder_write(const struct vr_log_encoder *encoder, struct vr_bytes *out);
// Gets the earliest and the latest time, in microseconds. There must be events.
void vr_log_encoder_times(const struct vr_log_encoder *encoder, int64_t *first_us, int64_t *last_us);
// Removes all events.
void vr_log_encoder_clear(struct vr_log_encoder *encoder);

// Adds an event; there must be room. Predicts the same values as vr_log_events_write(). first: it is the first of the block.
VR_INLINE void vr_log_encoder_add(struct vr_log_encoder *encoder, unsigned action, uint64_t address, uint64_t size, uint64_t time,
                                  uint64_t stack, bool first) {
    const size_t at = encoder->count++;
    const uint64_t number = encoder->before + at + 1;
    unsigned flag = action;
    uint64_t usual_size = encoder->last_size, usual_stack = encoder->last_of_action[action];
    if (encoder->slot->key != address) encoder->slot = vr_map_slot_of(&encoder->latest, address);
    struct vr_map_slot *slot = encoder->slot;
    const uint64_t latest = slot->value;
    if (VR_LIKELY(latest > encoder->before)) {
        flag |= VR_LOG_FLAG_KNOWN;
        encoder->distances.end = vr_varint_put(encoder->distances.end, number - latest);
        if (latest == number - 1)
            usual_stack = encoder->last_stack;
        else
            usual_size = encoder->size_of[latest - encoder->before - 1];
    } else {
        encoder->latest.count += latest == 0; // the map has room for every event
        encoder->addresses[encoder->address_count++] = address;
        slot->key = address;
    }
    slot->value = number;
    if (size != usual_size || first) {
        const bool whole = size % VR_LOG_SIZE_UNIT == 0;
        flag |= whole ? VR_LOG_FLAG_SIZE_UNITS : VR_LOG_FLAG_SIZE_BYTES;
        encoder->sizes.end = vr_varint_put(encoder->sizes.end, whole ? size / VR_LOG_SIZE_UNIT : size);
    }
    if (stack != usual_stack) {
        flag |= VR_LOG_FLAG_STACK;
        encoder->stacks[encoder->stack_count++] = stack;
    }
    const uint64_t passed = time - encoder->last_time; // for the first event: since 0
    encoder->falls |= (int64_t)passed < 0;
    encoder->times.end = vr_varint_put(encoder->times.end, vr_zigzag(passed));
    encoder->last_time = time;
    encoder->size_of[at] = encoder->last_size = size;
    encoder->last_of_action[action] = encoder->last_stack = stack;
    encoder->flags[at] = (unsigned char)flag;
    encoder->row_of[at] = (uint16_t)encoder->row;
}

// Adds the completion, at the same time, of the free added last; there must be room.
VR_INLINE void vr_log_encoder_add_completion(struct vr_log_encoder *encoder, unsigned action) {
    const size_t at = encoder->count++;
    *encoder->distances.end++ = 1;
    *encoder->times.end++ = 0;
    encoder->slot->value = encoder->before + at + 1;
    encoder->size_of[at] = encoder->last_size;
    encoder->last_of_action[action] = encoder->last_stack;
    encoder->flags[at] = (unsigned char)(action | VR_LOG_FLAG_KNOWN);
    encoder->row_of[at] = (uint16_t)encoder->row;
}

#endif
