#include "history/logencode.h"

#include "history/logcolumn.h"

void vr_log_encoder_release(struct vr_log_encoder *encoder) {
    free(encoder->flags);
    free(encoder->row_of);
    free(encoder->distances.begin);
    free(encoder->sizes.begin);
    free(encoder->times.begin);
    free(encoder->addresses);
    free(encoder->rows);
    vr_map_release(&encoder->latest);
    memset(encoder, 0, sizeof *encoder);
}

static bool make_varints(struct vr_log_varints *varints, size_t capacity) {
    varints->begin = varints->end = malloc(VR_VARINT_MAX * capacity);
    return varints->begin != NULL;
}

enum vram_status vr_log_encoder_reserve(struct vr_log_encoder *encoder, size_t capacity) {
    struct vr_log_encoder made = {.capacity = capacity};
    assert(encoder->capacity == 0 && capacity != 0 && capacity <= VR_LOG_BATCH_MAX);
    made.flags = malloc(capacity);
    made.row_of = malloc(capacity * sizeof *made.row_of);
    made.rows = malloc(capacity * sizeof *made.rows); // mostly never touched
    made.addresses = malloc(4 * capacity * sizeof *made.addresses);
    bool good = made.flags != NULL && made.row_of != NULL && made.rows != NULL && made.addresses != NULL;
    good = make_varints(&made.distances, capacity) && make_varints(&made.sizes, capacity) && make_varints(&made.times, capacity) && good;
    // The map may keep up to capacity / 2 addresses of earlier blocks (vr_log_encoder_clear()).
    if (!good || vr_map_reserve(&made.latest, capacity + capacity / 2) != VRAM_OK) {
        vr_log_encoder_release(&made);
        return VRAM_NO_HOST_MEMORY;
    }
    made.stacks = made.addresses + capacity;
    made.size_of = made.stacks + capacity;
    made.values = made.size_of + capacity;
    made.slot = vr_map_slot_of(&made.latest, 0);
    *encoder = made;
    return VRAM_OK;
}

static size_t hash_of(const uint64_t row[VR_LOG_COLUMN_COUNT]) {
    uint64_t hash = 0;
    for (size_t i = VR_LOG_COLUMN_STREAM; i < VR_LOG_COLUMN_COUNT; i++) hash = (hash ^ row[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) % VR_LOG_ROWS_KNOWN;
}

void vr_log_encoder_turn(struct vr_log_encoder *encoder, const struct vr_log_record_event *event) {
    uint64_t row[VR_LOG_COLUMN_COUNT] = {0};
    vr_log_rare_columns(event, row);
    if (encoder->count == 0) {
        encoder->row_count = 0; // drop the row carried over from the previous block, if no event used it
        memset(encoder->known, 0, sizeof encoder->known);
    }
    uint32_t *known = &encoder->known[hash_of(row)];
    if (*known == 0 || memcmp(encoder->rows[*known - 1], row, sizeof row) != 0) {
        assert(encoder->row_count < encoder->capacity); // each event has one row
        memcpy(encoder->rows[encoder->row_count++], row, sizeof row);
        *known = (uint32_t)encoder->row_count;
    }
    encoder->row = *known - 1;
}

// --- into a block --------------------------------------------------------------------------------------------------------------

static void write_varints(struct vr_bytes *out, unsigned char coding, const struct vr_log_varints *varints) {
    if (varints->begin == varints->end) return;
    vr_bytes_add(out, &coding, 1);
    vr_bytes_add(out, varints->begin, (size_t)(varints->end - varints->begin));
}

static void decode_times(const struct vr_log_encoder *encoder, uint64_t *times) {
    struct vr_cursor cursor = {encoder->times.begin, encoder->times.end, false};
    uint64_t time = 0;
    for (size_t i = 0; i < encoder->count; i++) times[i] = time += vr_unzigzag(vr_cursor_varint(&cursor));
}

static uint64_t first_time(const struct vr_log_encoder *encoder) {
    struct vr_cursor cursor = {encoder->times.begin, encoder->times.end, false};
    return vr_unzigzag(vr_cursor_varint(&cursor));
}

// Returns the unit of time: microseconds if that loses nothing.
static uint64_t find_unit(const struct vr_log_encoder *encoder) {
    if ((int64_t)first_time(encoder) % 1000 != 0) return 1;
    decode_times(encoder, encoder->values);
    for (size_t i = 0; i < encoder->count; i++) {
        if ((int64_t)encoder->values[i] % 1000 != 0) return 1;
    }
    return 1000;
}

static void write_microseconds(const struct vr_log_encoder *encoder, struct vr_bytes *out) {
    uint64_t *times = encoder->values;
    decode_times(encoder, times);
    for (size_t i = 0; i < encoder->count; i++) times[i] = (uint64_t)((int64_t)times[i] / 1000);
    vr_column_write_rising(out, times, encoder->count);
}

static void write_times(const struct vr_log_encoder *encoder, uint64_t unit, struct vr_bytes *out) {
    const size_t first = vr_varint_length(vr_zigzag(first_time(encoder)));
    const bool one_byte_each = (size_t)(encoder->times.end - encoder->times.begin) == first + encoder->count - 1;
    if (unit != 1)
        write_microseconds(encoder, out);
    else if (!encoder->falls && one_byte_each && encoder->last_time == first_time(encoder)) // all times are equal
        vr_column_write_same(out, encoder->last_time);
    else
        write_varints(out, VR_CODING_CHANGE, &encoder->times);
}

// Returns the number of trailing zero bits that all new addresses share, which are not written.
static unsigned common_zeros(const struct vr_log_encoder *encoder) {
    uint64_t any = 0;
    for (size_t i = 0; i < encoder->address_count; i++) any |= encoder->addresses[i];
    return any == 0 ? 0 : (unsigned)__builtin_ctzll(any);
}

static void write_addresses(const struct vr_log_encoder *encoder, unsigned shift, struct vr_bytes *out) {
    for (size_t i = 0; i < encoder->address_count; i++) encoder->values[i] = encoder->addresses[i] >> shift;
    vr_column_write_change(out, encoder->values, encoder->address_count);
}

static void write_rare(const struct vr_log_encoder *encoder, size_t column, struct vr_bytes *out) {
    uint64_t differ = 0;
    for (size_t i = 1; i < encoder->row_count; i++) differ |= encoder->rows[i][column] ^ encoder->rows[0][column];
    if (differ == 0) {
        vr_column_write_same(out, encoder->rows[0][column]);
        return;
    }
    for (size_t i = 0; i < encoder->count; i++) encoder->values[i] = encoder->rows[encoder->row_of[i]][column];
    vr_column_write(out, encoder->values, encoder->count, false);
}

void vr_log_encoder_write(const struct vr_log_encoder *encoder, struct vr_bytes *out) {
    assert(encoder->count != 0);
    const uint64_t unit = find_unit(encoder);
    const unsigned shift = common_zeros(encoder);
    vr_bytes_varint(out, unit);
    vr_bytes_add(out, encoder->flags, encoder->count);
    vr_bytes_varint(out, shift);
    write_varints(out, VR_CODING_PLAIN, &encoder->distances);
    write_addresses(encoder, shift, out);
    write_varints(out, VR_CODING_PLAIN, &encoder->sizes);
    vr_column_write(out, encoder->stacks, encoder->stack_count, false);
    write_times(encoder, unit, out);
    for (size_t column = VR_LOG_COLUMN_STREAM; column < VR_LOG_COLUMN_COUNT; column++) write_rare(encoder, column, out);
}

static int64_t to_us(uint64_t time) { return (int64_t)time / 1000 - ((int64_t)time % 1000 < 0); }

void vr_log_encoder_times(const struct vr_log_encoder *encoder, int64_t *first_us, int64_t *last_us) {
    int64_t first = (int64_t)first_time(encoder), last = (int64_t)encoder->last_time;
    if (encoder->falls) {
        decode_times(encoder, encoder->values);
        last = first;
        for (size_t i = 0; i < encoder->count; i++) {
            const int64_t time = (int64_t)encoder->values[i];
            first = time < first ? time : first;
            last = time > last ? time : last;
        }
    }
    *first_us = to_us((uint64_t)first);
    *last_us = to_us((uint64_t)last);
}

void vr_log_encoder_clear(struct vr_log_encoder *encoder) {
    if (encoder->count == 0) return;
    encoder->before += encoder->count;
    if (encoder->latest.count > encoder->capacity / 2) vr_map_clear(&encoder->latest);
    encoder->slot = vr_map_slot_of(&encoder->latest, 0);
    encoder->count = encoder->address_count = encoder->stack_count = 0;
    encoder->distances.end = encoder->distances.begin;
    encoder->sizes.end = encoder->sizes.begin;
    encoder->times.end = encoder->times.begin;
    encoder->last_size = encoder->last_time = encoder->last_stack = 0;
    memset(encoder->last_of_action, 0, sizeof encoder->last_of_action);
    encoder->falls = false;
    // The row of the last event is the first row of the next block.
    memmove(encoder->rows[0], encoder->rows[encoder->row], sizeof encoder->rows[0]);
    memset(encoder->known, 0, sizeof encoder->known);
    encoder->known[hash_of(encoder->rows[0])] = 1;
    encoder->row_count = 1;
    encoder->row = 0;
}
