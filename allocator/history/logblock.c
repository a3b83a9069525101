#include "history/logblock.h"

static void put32(unsigned char *out, uint32_t value) { memcpy(out, &value, sizeof value); }
static void put64(unsigned char *out, uint64_t value) { memcpy(out, &value, sizeof value); }

void vr_log_put_file_header(const struct vr_log_file_header *header, unsigned char out[VR_LOG_HEADER_BYTES]) {
    memset(out, 0, VR_LOG_HEADER_BYTES);
    memcpy(out, VR_LOG_MAGIC, VR_LOG_MAGIC_BYTES);
    put32(out + 8, header->version);
    put32(out + 12, VR_LOG_HEADER_BYTES);
    put64(out + 16, header->tail_distance);
    put64(out + 24, header->tail_bytes);
    put64(out + 32, header->created_ns);
    memcpy(out + 40, header->producer, VR_LOG_PRODUCER_BYTES);
    put32(out + 104, header->process);
    put64(out + 108, header->process_started);
    put64(out + 116, header->process_host);
    put32(out + VR_LOG_HEADER_BYTES - 4, vr_log_checksum(out, VR_LOG_HEADER_BYTES - 4));
}

bool vr_log_get_file_header(const unsigned char in[VR_LOG_HEADER_BYTES], struct vr_log_file_header *header) {
    if (memcmp(in, VR_LOG_MAGIC, VR_LOG_MAGIC_BYTES) != 0) return false;
    if (vr_load32(in + VR_LOG_HEADER_BYTES - 4) != vr_log_checksum(in, VR_LOG_HEADER_BYTES - 4)) return false;
    header->version = vr_load32(in + 8);
    header->tail_distance = vr_load64(in + 16);
    header->tail_bytes = vr_load64(in + 24);
    header->created_ns = vr_load64(in + 32);
    memcpy(header->producer, in + 40, VR_LOG_PRODUCER_BYTES);
    header->producer[VR_LOG_PRODUCER_BYTES - 1] = '\0';
    header->process = vr_load32(in + 104);
    header->process_started = vr_load64(in + 108);
    header->process_host = vr_load64(in + 116);
    return true;
}

void vr_log_put_block_header(const struct vr_log_block_header *header, unsigned char out[VR_LOG_BLOCK_HEADER_BYTES]) {
    put32(out, VR_LOG_BLOCK_MAGIC);
    put64(out + 8, header->sequence);
    put64(out + 16, header->offset);
    put64(out + 24, (uint64_t)header->first_us);
    put64(out + 32, (uint64_t)header->last_us);
    put32(out + 40, header->events);
    put32(out + 44, header->tables.stored);
    put32(out + 48, header->tables.length);
    put32(out + 52, header->batch.stored);
    put32(out + 56, header->batch.length);
    put32(out + 60, header->checksum);
    put32(out + 4, vr_log_checksum(out + 8, VR_LOG_BLOCK_HEADER_BYTES - 8));
}

// Returns whether the part's sizes are plausible: packing shrinks a part at most by VR_LOG_PACK_MOST, and leaves a byte for each row.
static bool plausible(const struct vr_log_part *part, uint64_t rows) {
    return part->stored <= part->length && part->length <= (uint64_t)part->stored * VR_LOG_PACK_MOST && rows <= part->stored;
}

bool vr_log_get_block_header(const unsigned char in[VR_LOG_BLOCK_HEADER_BYTES], uint64_t sequence, uint64_t offset,
                             struct vr_log_block_header *header) {
    if (vr_load32(in) != VR_LOG_BLOCK_MAGIC) return false;
    if (vr_load32(in + 4) != vr_log_checksum(in + 8, VR_LOG_BLOCK_HEADER_BYTES - 8)) return false;
    struct vr_log_block_header got = {
        .sequence = vr_load64(in + 8),
        .offset = vr_load64(in + 16),
        .first_us = (int64_t)vr_load64(in + 24),
        .last_us = (int64_t)vr_load64(in + 32),
        .events = vr_load32(in + 40),
        .tables = {vr_load32(in + 44), vr_load32(in + 48)},
        .batch = {vr_load32(in + 52), vr_load32(in + 56)},
        .checksum = vr_load32(in + 60),
    };
    if (offset != UINT64_MAX && (got.sequence != sequence || got.offset != offset)) return false;
    if (got.events > VR_LOG_BATCH_MAX || !plausible(&got.tables, 0) || !plausible(&got.batch, got.events)) return false;
    *header = got;
    return true;
}

void vr_log_maker_release(struct vr_log_maker *maker) {
    vr_log_sections_release(&maker->tables);
    vr_log_batch_release(&maker->batch);
    vr_log_encoder_release(&maker->encoder);
    vr_bytes_release(&maker->events);
    vr_bytes_release(&maker->block);
}

// Appends a part to the block, packed if that pays.
static enum vram_status add_part(struct vr_log_maker *maker, const struct vr_bytes *raw, uint64_t rows, struct vr_log_part *part) {
    if (raw->failed || !vr_bytes_reserve(&maker->block, vr_pack_bound(raw->count))) return VRAM_NO_HOST_MEMORY;
    if (raw->count > UINT32_MAX) return VRAM_LIMIT;
    part->length = part->stored = (uint32_t)raw->count;
    if (raw->count == 0) return VRAM_OK;
    unsigned char *out = maker->block.data + maker->block.count;
    size_t packed = vr_pack(&maker->packer, raw->data, raw->count, out);
    if (packed < raw->count && packed >= rows && raw->count <= (uint64_t)packed * VR_LOG_PACK_MOST)
        part->stored = (uint32_t)packed;
    else
        memcpy(out, raw->data, raw->count);
    maker->block.count += part->stored;
    return VRAM_OK;
}

static int64_t to_us(const struct vr_log_batch *batch, int64_t value) {
    if (batch->time_unit_ns == 1000) return value;
    return value / 1000 - (value % 1000 < 0);
}

static void find_times(const struct vr_log_batch *batch, struct vr_log_block_header *header) {
    const uint64_t *times = batch->column[VR_LOG_COLUMN_TIME];
    if (batch->count == 0) return;
    int64_t first = (int64_t)times[0], last = first;
    for (size_t i = 1; i < batch->count; i++) {
        first = (int64_t)times[i] < first ? (int64_t)times[i] : first;
        last = (int64_t)times[i] > last ? (int64_t)times[i] : last;
    }
    header->first_us = to_us(batch, first);
    header->last_us = to_us(batch, last);
}

enum vram_status vr_log_make_block(struct vr_log_maker *maker, uint64_t sequence, uint64_t offset, struct vr_log_block_header *header) {
    const size_t events = maker->batch.count + maker->encoder.count;
    struct vr_log_block_header made = {.sequence = sequence, .offset = offset, .events = (uint32_t)events};
    assert(maker->batch.count == 0 || maker->encoder.count == 0);
    maker->block.count = 0;
    if (!vr_bytes_reserve(&maker->block, VR_LOG_BLOCK_HEADER_BYTES)) return VRAM_NO_HOST_MEMORY;
    maker->block.count = VR_LOG_BLOCK_HEADER_BYTES;
    maker->events.count = 0;
    if (maker->batch.count != 0) vr_log_events_write(&maker->events, &maker->batch);
    if (maker->encoder.count != 0) vr_log_encoder_write(&maker->encoder, &maker->events);
    VR_TRY(add_part(maker, &maker->tables.out, maker->tables.rows, &made.tables));
    VR_TRY(add_part(maker, &maker->events, events, &made.batch));
    find_times(&maker->batch, &made);
    if (maker->encoder.count != 0) vr_log_encoder_times(&maker->encoder, &made.first_us, &made.last_us);
    made.checksum = vr_log_checksum(maker->block.data + VR_LOG_BLOCK_HEADER_BYTES, maker->block.count - VR_LOG_BLOCK_HEADER_BYTES);
    vr_log_put_block_header(&made, maker->block.data);
    maker->tables.out.count = 0;
    maker->tables.rows = 0;
    maker->batch.count = 0;
    *header = made;
    return VRAM_OK;
}

const unsigned char *vr_log_unpack_part(const struct vr_log_part *part, const unsigned char *stored, unsigned char *out) {
    if (part->stored == part->length) return stored;
    return vr_unpack(stored, part->stored, out, part->length) ? out : NULL;
}

// ---- the tail

const unsigned char *vr_log_next_record(const unsigned char *at, const unsigned char *end, uint64_t sequence, unsigned *kind,
                                        size_t *length) {
    if (end - at < 8) return NULL;
    uint32_t head = vr_load32(at);
    *kind = head >> 16 & 15;
    *length = head & 0xffff;
    if (head >> 20 != (sequence & 0xfff) || *length < 8 || *length % 8 != 0 || *length > (size_t)(end - at)) return NULL;
    return at;
}

void vr_log_batch_add(struct vr_log_batch *batch, const struct vr_log_record_event *event) {
    const size_t at = batch->count++;
    uint64_t row[VR_LOG_COLUMN_COUNT] = {0};
    assert(at < batch->capacity);
    vr_log_rare_columns(event, row);
    row[VR_LOG_COLUMN_ACTION] = event->action;
    row[VR_LOG_COLUMN_ADDRESS] = event->address;
    row[VR_LOG_COLUMN_SIZE] = event->size_bytes;
    row[VR_LOG_COLUMN_TIME] = event->time_ns;
    row[VR_LOG_COLUMN_STACK] = event->stack;
    for (size_t column = 0; column < VR_LOG_COLUMN_COUNT; column++) batch->column[column][at] = row[column];
}
