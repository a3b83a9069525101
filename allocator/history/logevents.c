#include "history/logevents.h"

#include "history/logcolumn.h"
#include "model/model.h"

enum { ACTIONS = 16 };
enum { DISTANCES, ADDRESSES, SIZES, STACKS };

enum vram_status vr_log_batch_reserve(struct vr_log_batch *batch, size_t capacity) {
    if (capacity <= batch->capacity) return VRAM_OK;
    size_t arrays = VR_LOG_COLUMN_COUNT + VR_COUNT_OF(batch->scratch);
    uint64_t *numbers = malloc(arrays * capacity * sizeof *numbers);
    if (numbers == NULL) return VRAM_NO_HOST_MEMORY;
    const bool lean = batch->lean;
    vr_log_batch_release(batch);
    batch->lean = lean;
    for (size_t i = 0; i < VR_LOG_COLUMN_COUNT; i++) batch->column[i] = numbers + i * capacity;
    for (size_t i = 0; i < VR_COUNT_OF(batch->scratch); i++) batch->scratch[i] = numbers + (VR_LOG_COLUMN_COUNT + i) * capacity;
    batch->capacity = capacity;
    batch->time_unit_ns = 1;
    return VRAM_OK;
}

void vr_log_batch_release(struct vr_log_batch *batch) {
    free(batch->column[0]);
    vr_map_release(&batch->latest);
    memset(batch, 0, sizeof *batch);
}

bool vr_log_batch_check(const struct vr_log_batch *batch) {
    struct vr_map_slot entry;
    if (batch->count > batch->capacity || !vr_map_check(&batch->latest)) return false;
    if (batch->capacity == 0) return batch->column[0] == NULL && batch->latest.slots == NULL;
    if (batch->time_unit_ns != 1 && batch->time_unit_ns != 1000) return false;
    for (size_t i = 0; i < VR_LOG_COLUMN_COUNT; i++) {
        if (batch->column[i] != batch->column[0] + i * batch->capacity) return false;
    }
    for (size_t at = 0; vr_map_next(&batch->latest, &at, &entry);) {
        if (entry.value > batch->count || batch->column[VR_LOG_COLUMN_ADDRESS][entry.value - 1] != entry.key) return false;
    }
    return true;
}

// Returns the latest event before `index` with this address, or `index` if no event has it, and makes `index` the latest. *slot is the slot
// of the previous event's address, initially NULL.
VR_INLINE size_t meet_address(struct vr_log_batch *batch, uint64_t address, size_t index, struct vr_map_slot **slot) {
    if (*slot == NULL || (*slot)->key != address) *slot = vr_map_slot_of(&batch->latest, address);
    const size_t before = (*slot)->value == 0 ? index : (size_t)(*slot)->value - 1;
    batch->latest.count += (*slot)->value == 0; // the map has room for every event
    **slot = (struct vr_map_slot){.key = address, .value = index + 1};
    return before;
}

// Forgets the addresses met: one by one if they are few, because the table is large.
static void forget_met(struct vr_log_batch *batch, const uint64_t *addresses, size_t count) {
    enum { FEW = 16 };
    if (batch->latest.count != count || count * FEW > batch->latest.mask) {
        vr_map_clear(&batch->latest);
        return;
    }
    for (size_t i = 0; i < count; i++) (void)vr_map_take(&batch->latest, addresses[i]);
}

// Returns the predicted stack of an event: the previous event's if both have one address (a free and its completion), else that of the last
// event with the same action.
VR_INLINE uint64_t expected_stack(const uint64_t *stacks, const uint64_t *last_of_action, size_t index, size_t before, unsigned action) {
    return index != 0 && before == index - 1 ? stacks[before] : last_of_action[action];
}

// The fields that are predicted.
struct predicted {
    uint64_t address, size_bytes, stack;
    unsigned action;
};
VR_INLINE struct predicted event_at(const struct vr_log_batch *batch, size_t i) {
    return (struct predicted){batch->column[VR_LOG_COLUMN_ADDRESS][i], batch->column[VR_LOG_COLUMN_SIZE][i],
                              batch->column[VR_LOG_COLUMN_STACK][i], (unsigned)batch->column[VR_LOG_COLUMN_ACTION][i] & VR_LOG_FLAG_ACTION};
}

// Fills the first columns: each event's flags into `flags`, the values that must be written into the scratch arrays. counts: values per
// array.
static void predict_flags(struct vr_log_batch *batch, unsigned char *flags, size_t counts[4]) {
    uint64_t last_of_action[ACTIONS] = {0}, *distances = batch->scratch[DISTANCES], *addresses = batch->scratch[ADDRESSES];
    uint64_t *sizes = batch->scratch[SIZES], *stacks = batch->scratch[STACKS];
    struct vr_map_slot *slot = NULL;
    struct predicted last = {0};
    for (size_t i = 0, count = batch->count; i < count; i++) {
        const struct predicted event = event_at(batch, i);
        unsigned flag = event.action;
        struct predicted from = last; // the event that predicts size and stack
        uint64_t expected = last_of_action[event.action];
        const size_t before = meet_address(batch, event.address, i, &slot);
        if (before != i) {
            flag |= VR_LOG_FLAG_KNOWN;
            *distances++ = i - before;
            if (before != i - 1) from = event_at(batch, before);
            if (before == i - 1) expected = last.stack;
        } else {
            *addresses++ = event.address;
        }
        if (i == 0 || event.size_bytes != from.size_bytes) {
            const bool whole = event.size_bytes % VR_LOG_SIZE_UNIT == 0;
            flag |= whole ? VR_LOG_FLAG_SIZE_UNITS : VR_LOG_FLAG_SIZE_BYTES;
            *sizes++ = whole ? event.size_bytes / VR_LOG_SIZE_UNIT : event.size_bytes;
        }
        if (event.stack != expected) {
            flag |= VR_LOG_FLAG_STACK;
            *stacks++ = event.stack;
        }
        last_of_action[event.action] = event.stack;
        flags[i] = (unsigned char)flag;
        last = event;
    }
    counts[DISTANCES] = (size_t)(distances - batch->scratch[DISTANCES]);
    counts[ADDRESSES] = (size_t)(addresses - batch->scratch[ADDRESSES]);
    counts[SIZES] = (size_t)(sizes - batch->scratch[SIZES]);
    counts[STACKS] = (size_t)(stacks - batch->scratch[STACKS]);
}

// Returns the number of trailing zero bits that all new addresses share, which are not written.
static unsigned common_shift(const uint64_t *addresses, size_t count) {
    uint64_t any = 0;
    for (size_t i = 0; i < count; i++) any |= addresses[i];
    return any == 0 ? 0 : (unsigned)__builtin_ctzll(any);
}

void vr_log_events_write(struct vr_bytes *out, struct vr_log_batch *batch) {
    assert(batch->count <= batch->capacity);
    size_t counts[4] = {0};
    vr_bytes_varint(out, batch->time_unit_ns);
    if (vr_map_reserve(&batch->latest, batch->count) != VRAM_OK) out->failed = true;
    if (!vr_bytes_reserve(out, batch->count)) return;
    predict_flags(batch, out->data + out->count, counts);
    forget_met(batch, batch->scratch[ADDRESSES], counts[ADDRESSES]);
    out->count += batch->count;
    unsigned shift = common_shift(batch->scratch[ADDRESSES], counts[ADDRESSES]);
    for (size_t i = 0; i < counts[ADDRESSES]; i++) batch->scratch[ADDRESSES][i] >>= shift;
    vr_bytes_varint(out, shift);
    vr_column_write_plain(out, batch->scratch[DISTANCES], counts[DISTANCES]);
    vr_column_write_change(out, batch->scratch[ADDRESSES], counts[ADDRESSES]);
    vr_column_write_plain(out, batch->scratch[SIZES], counts[SIZES]);
    vr_column_write(out, batch->scratch[STACKS], counts[STACKS], false);
    vr_column_write_rising(out, batch->column[VR_LOG_COLUMN_TIME], batch->count);
    for (size_t i = VR_LOG_COLUMN_STREAM; i < VR_LOG_COLUMN_COUNT; i++) vr_column_write(out, batch->column[i], batch->count, false);
}

// Counts the values of each of the first columns, from the flags.
static void count_values(const unsigned char *flags, size_t count, size_t counts[4]) {
    size_t known = 0, sizes = 0, stacks = 0;
    for (size_t i = 0; i < count; i++) {
        known += (flags[i] & VR_LOG_FLAG_KNOWN) != 0;
        sizes += (flags[i] & (VR_LOG_FLAG_SIZE_UNITS | VR_LOG_FLAG_SIZE_BYTES)) != 0;
        stacks += (flags[i] & VR_LOG_FLAG_STACK) != 0;
    }
    counts[DISTANCES] = known;
    counts[ADDRESSES] = count - known;
    counts[SIZES] = sizes;
    counts[STACKS] = stacks;
}

// Reverses predict_flags(). Returns false for a distance that leaves the batch, or a repetition without an earlier value.
static bool restore_flags(struct vr_log_batch *batch, const unsigned char *flags, unsigned shift) {
    uint64_t *addresses = batch->column[VR_LOG_COLUMN_ADDRESS], *sizes = batch->column[VR_LOG_COLUMN_SIZE];
    uint64_t *stacks = batch->column[VR_LOG_COLUMN_STACK], *actions = batch->column[VR_LOG_COLUMN_ACTION];
    const uint64_t *distance = batch->scratch[DISTANCES], *address = batch->scratch[ADDRESSES];
    const uint64_t *size = batch->scratch[SIZES], *stack = batch->scratch[STACKS];
    uint64_t last_of_action[ACTIONS] = {0};
    for (size_t i = 0; i < batch->count; i++) {
        unsigned flag = flags[i], action = flag & VR_LOG_FLAG_ACTION;
        size_t before = SIZE_MAX, size_from = i - 1;
        if (flag & VR_LOG_FLAG_KNOWN) {
            if (*distance == 0 || *distance > i) return false;
            size_from = before = i - (size_t)*distance++;
            addresses[i] = addresses[before];
        } else {
            addresses[i] = *address++ << shift;
        }
        if (flag & (VR_LOG_FLAG_SIZE_UNITS | VR_LOG_FLAG_SIZE_BYTES))
            sizes[i] = *size++ * (flag & VR_LOG_FLAG_SIZE_UNITS ? VR_LOG_SIZE_UNIT : 1);
        else if (i == 0)
            return false;
        else
            sizes[i] = sizes[size_from];
        stacks[i] = flag & VR_LOG_FLAG_STACK ? *stack++ : expected_stack(stacks, last_of_action, i, before, action);
        last_of_action[action] = stacks[i];
        actions[i] = action;
    }
    return true;
}

static uint64_t largest_of(const uint64_t *values, size_t count) {
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++) largest = values[i] > largest ? values[i] : largest;
    return largest;
}

enum vram_status vr_log_events_read(const unsigned char *data, size_t length, size_t count, struct vr_log_batch *batch) {
    struct vr_cursor cursor = {data, data + length, false};
    size_t counts[4] = {0};
    uint64_t largest;
    if (count == 0 || count > VR_LOG_BATCH_MAX) return VRAM_BAD_INPUT;
    VR_TRY(vr_log_batch_reserve(batch, count));
    batch->count = count;
    batch->time_unit_ns = vr_cursor_varint(&cursor);
    const unsigned char *flags = vr_cursor_take(&cursor, count);
    uint64_t shift = vr_cursor_varint(&cursor);
    if (flags == NULL || shift > 63 || (batch->time_unit_ns != 1 && batch->time_unit_ns != 1000)) return VRAM_BAD_INPUT;
    count_values(flags, count, counts);
    for (size_t i = DISTANCES; i <= STACKS; i++) vr_column_read(&cursor, batch->scratch[i], counts[i], &largest);
    if (cursor.failed || !restore_flags(batch, flags, (unsigned)shift)) return VRAM_BAD_INPUT;
    vr_column_read(&cursor, batch->column[VR_LOG_COLUMN_TIME], count, &batch->largest[VR_LOG_COLUMN_TIME]);
    for (size_t i = VR_LOG_COLUMN_STREAM; i < VR_LOG_COLUMN_COUNT; i++) {
        // A file of an earlier version lacks the columns that came later.
        const bool absent = i >= VR_LOG_COLUMN_FIRST_COUNT && vr_cursor_left(&cursor) == 0;
        batch->largest[i] = 0;
        batch->same[i] = batch->lean && (absent || vr_column_read_same(&cursor, &batch->largest[i]));
        if (batch->same[i])
            batch->column[i][0] = batch->largest[i];
        else if (absent)
            memset(batch->column[i], 0, count * sizeof *batch->column[i]);
        else
            vr_column_read(&cursor, batch->column[i], count, &batch->largest[i]);
    }
    batch->largest[VR_LOG_COLUMN_ACTION] = largest_of(batch->column[VR_LOG_COLUMN_ACTION], count);
    batch->largest[VR_LOG_COLUMN_STACK] = largest_of(batch->column[VR_LOG_COLUMN_STACK], count);
    return cursor.failed ? VRAM_BAD_INPUT : VRAM_OK;
}

// Returns the VR_HAS_ bits of a recorded event.
static uint32_t has_of(const struct vr_log_record_event *event) {
    uint32_t has = VR_HAS_ACTION | VR_HAS_SIZE | VR_HAS_STREAM | VR_HAS_TIME | VR_HAS_FRAMES;
    has |= event->action == VR_ACTION_OOM ? VR_HAS_DEVICE_FREE : VR_HAS_ADDRESS;
    if (event->pool_first != 0 || event->pool_second != 0) has |= VR_HAS_POOL_ID;
#define VR_FIELD(...)
#define VR_NUMBER(column, type, density, number, LOG, since, KEY) has |= event->column != 0 ? VR_HAS_##KEY : 0;
#define VR_TEXT(column, type, density, number, LOG, since, KEY)   has |= event->column != 0 ? VR_HAS_##KEY : 0;
#include "model/entry_fields.def"
    return has;
}

void vr_log_rare_columns(const struct vr_log_record_event *event, uint64_t row[VR_LOG_COLUMN_COUNT]) {
    row[VR_LOG_COLUMN_STREAM] = event->stream;
    row[VR_LOG_COLUMN_DEVICE] = event->device;
    row[VR_LOG_COLUMN_POOL_FIRST] = event->pool_first;
    row[VR_LOG_COLUMN_POOL_SECOND] = event->pool_second;
#define VR_FIELD(...)
#define VR_NUMBER(member, type, density, number, LOG, since, KEY) row[VR_LOG_COLUMN_##LOG] = event->member;
#define VR_TEXT(member, type, density, number, LOG, since, KEY)   row[VR_LOG_COLUMN_##LOG] = event->member;
#include "model/entry_fields.def"
    row[VR_LOG_COLUMN_HAS] = has_of(event);
    row[VR_LOG_COLUMN_UNKNOWN] = 0;
}
