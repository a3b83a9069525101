// Writes a program's state into a log, as the columns of a model and as sections; seals the tail into a block.

#include "history/log_inside.h"
#include "model/columns.h"

// The columns of a state being written.
struct state_tables {
    struct vr_budget budget; // unlimited
    struct vr_segments segments;
    struct vr_blocks blocks;
    uint64_t *block_counts;
    size_t segment_capacity;
    size_t block_capacity;
};

static void release_picture(struct state_tables *picture) {
    vr_columns_release(&vr_segment_columns, &picture->segments);
    vr_columns_release(&vr_block_columns, &picture->blocks);
    free(picture->block_counts);
}

// Adds one block; free blocks have no stack.
static enum vram_status add_block(struct state_tables *picture, uint64_t address, uint64_t size_bytes, uint64_t requested_bytes,
                                  uint32_t stack, enum vr_block_state state) {
    struct vr_blocks *blocks = &picture->blocks;
    VR_TRY(vr_columns_grow(&vr_block_columns, blocks, &picture->block_capacity, blocks->count + 1, &picture->budget));
    size_t row = blocks->count++;
    blocks->address[row] = address;
    blocks->size_bytes[row] = size_bytes;
    blocks->requested_bytes[row] = requested_bytes;
    blocks->stack[row] = stack;
    blocks->state[row] = (uint8_t)state;
    blocks->has[row] = VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_REQUESTED_SIZE | VR_HAS_STATE | VR_HAS_FRAMES;
    return VRAM_OK;
}

static const enum vr_block_state states[] = {
    [VRAM_BLOCK_FREE] = VR_STATE_INACTIVE,
    [VRAM_BLOCK_ALLOCATED] = VR_STATE_ALLOCATED,
    [VRAM_BLOCK_PENDING] = VR_STATE_PENDING_FREE,
};

// Adds the segment's blocks and the free ranges between them, and their sums to row `row`.
static enum vram_status add_blocks(struct state_tables *picture, const struct vram_log_segment *segment, size_t row, uint32_t stack_count) {
    uint64_t next = segment->address, end = segment->address + segment->size_bytes;
    struct vr_segments *sums = &picture->segments;
    sums->allocated_bytes[row] = sums->active_bytes[row] = sums->requested_bytes[row] = 0;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct vram_log_block *block = &segment->blocks[i];
        if (block->address < next || block->address > end || block->size_bytes > end - block->address) return VRAM_INVALID_ARGUMENT;
        if (block->state >= VR_COUNT_OF(states) || block->stack >= stack_count) return VRAM_INVALID_ARGUMENT;
        if (block->address > next) VR_TRY(add_block(picture, next, block->address - next, 0, 0, VR_STATE_INACTIVE));
        VR_TRY(add_block(picture, block->address, block->size_bytes, block->requested_bytes, block->stack, states[block->state]));
        next = block->address + block->size_bytes;
        if (block->state == VRAM_BLOCK_FREE) continue;
        sums->active_bytes[row] += block->size_bytes;
        sums->requested_bytes[row] += block->requested_bytes;
        if (block->state == VRAM_BLOCK_ALLOCATED) sums->allocated_bytes[row] += block->size_bytes;
    }
    return next < end ? add_block(picture, next, end - next, 0, 0, VR_STATE_INACTIVE) : VRAM_OK;
}

static enum vram_status add_segment(struct state_tables *picture, const struct vram_log_segment *segment, size_t row,
                                    uint32_t stack_count) {
    struct vr_segments *to = &picture->segments;
    size_t blocks_before = picture->blocks.count;
    if (segment->stack >= stack_count || segment->size_bytes > UINT64_MAX - segment->address) return VRAM_INVALID_ARGUMENT;
    to->device[row] = segment->device;
    to->address[row] = segment->address;
    to->total_bytes[row] = segment->size_bytes;
    to->stream[row] = segment->stream;
    to->pool_first[row] = segment->pool.first;
    to->pool_second[row] = segment->pool.second;
    to->counter[row] = segment->counter;
    to->stack[row] = segment->stack;
    to->kind[row] = segment->small ? VR_KIND_SMALL : VR_KIND_LARGE;
    to->expandable[row] = segment->expandable;
    to->has[row] = VR_HAS_DEVICE | VR_HAS_ADDRESS | VR_HAS_TOTAL_SIZE | VR_HAS_ALLOCATED_SIZE | VR_HAS_ACTIVE_SIZE | VR_HAS_REQUESTED_SIZE |
                   VR_HAS_STREAM | VR_HAS_SEGMENT_TYPE | VR_HAS_POOL_ID | VR_HAS_EXPANDABLE | VR_HAS_FRAMES | VR_HAS_BLOCKS |
                   (segment->counter != 0 ? VR_HAS_COUNTER : 0);
    VR_TRY(add_blocks(picture, segment, row, stack_count));
    picture->block_counts[row] = picture->blocks.count - blocks_before;
    return VRAM_OK;
}

static enum vram_status fill_picture(struct state_tables *picture, const struct vram_log_segment *segments, size_t count,
                                     uint32_t stack_count) {
    picture->block_counts = calloc(count + 1, sizeof *picture->block_counts);
    if (picture->block_counts == NULL) return VRAM_NO_HOST_MEMORY;
    VR_TRY(vr_columns_grow(&vr_segment_columns, &picture->segments, &picture->segment_capacity, count, &picture->budget));
    for (size_t row = 0; row < count; row++) VR_TRY(add_segment(picture, &segments[row], row, stack_count));
    return VRAM_OK;
}

enum vram_status vr_log_state_sections(struct vram_log *log, const struct vram_log_segment *segments, size_t count) {
    struct state_tables picture = {.budget.limit_bytes = UINT64_MAX};
    struct vr_log_sections *out = &log->maker.tables;
    struct vr_log_table table;
    enum vram_status status = fill_picture(&picture, segments, count, log->builder.stacks.count);
    if (status == VRAM_OK) {
        if (count == 0) vr_log_write_empty(out, VR_LOG_SEGMENTS);
        vr_log_table_segments(&picture.segments, picture.block_counts, &table);
        vr_log_write_table(out, VR_LOG_SEGMENTS, &table, 0, count);
        vr_log_table_blocks(&picture.blocks, &table);
        vr_log_write_table(out, VR_LOG_BLOCKS, &table, 0, picture.blocks.count);
    }
    release_picture(&picture);
    return status;
}

// Sealing the tail into a block, and the index of blocks.

// Merges every other span into the one before it. The number of spans is even, so the last one is also merged.
_Static_assert(VR_LOG_SPANS_MAX % 2 == 0, "spans are joined in pairs");
static void halve_spans(struct vram_log *log) {
    size_t kept = 0;
    for (size_t i = 0; i < log->span_count; i += 2) {
        struct vr_log_span span = log->spans[i];
        const struct vr_log_span *next = &log->spans[i + 1];
        if (next->first_us < span.first_us) span.first_us = next->first_us;
        if (next->last_us > span.last_us) span.last_us = next->last_us;
        log->spans[kept++] = span;
    }
    log->last_span_blocks += log->span_blocks;
    log->span_count = kept;
    log->span_blocks *= 2;
}

// Adds the block to the index. Without memory the span gets no entry: its blocks are found from the entry before.
static void note_span(struct vram_log *log, const struct vr_log_block_header *header, uint64_t events_before) {
    if (header->events == 0) return;
    if (log->span_count == VR_LOG_SPANS_MAX && log->last_span_blocks == log->span_blocks) halve_spans(log);
    if (log->span_count != 0 && log->last_span_blocks < log->span_blocks) {
        struct vr_log_span *last = &log->spans[log->span_count - 1];
        if (header->first_us < last->first_us) last->first_us = header->first_us;
        if (header->last_us > last->last_us) last->last_us = header->last_us;
        log->last_span_blocks++;
        return;
    }
    void *spans = log->spans;
    enum vram_status status = vr_grow(&spans, &log->span_capacity, log->span_count + 1, sizeof *log->spans);
    log->spans = spans;
    if (status != VRAM_OK) return;
    log->spans[log->span_count++] =
        (struct vr_log_span){header->offset, header->sequence, events_before, header->first_us, header->last_us};
    log->last_span_blocks = 1;
}

enum vram_status vr_log_put_locked(struct vram_log *log) {
    struct vr_log_block_header header;
    uint64_t before = log->file.end;
    log->room = 0;
    enum vram_status status = vr_log_make_block(&log->maker, log->file.sequence, log->file.end, &header);
    if (status == VRAM_OK) status = vr_logfile_put(&log->file, &log->maker.block);
    if (status != VRAM_OK) {
        log->stopped = status;
        return status;
    }
    vr_log_encoder_clear(&log->maker.encoder); // only now: a failed write would need the tail's events again
    note_span(log, &header, log->events - header.events);
    // Reserve space for a next block as large as this one, and for the index after it.
    uint64_t needed = log->file.end + (log->file.end - before) + VR_LOG_TRAILER_BYTES + log->span_count * sizeof *log->spans;
    if (needed > log->max_bytes && log->stopped == VRAM_OK) log->stopped = VRAM_LIMIT;
    return VRAM_OK;
}

static void write_new_rows(struct vram_log *log) {
    const struct vr_builder *builder = &log->builder;
    struct vr_log_sections *out = &log->maker.tables;
    struct vr_log_table table;
    vr_log_write_strings(out, &builder->strings, log->packed_strings, builder->strings.count - log->packed_strings);
    vr_log_table_frames(&builder->frames, &table);
    vr_log_write_table(out, VR_LOG_FRAMES, &table, log->packed_frames, builder->frames.count - log->packed_frames);
    vr_log_write_stacks(out, &builder->stacks, log->packed_stacks, builder->stacks.count - log->packed_stacks);
    vr_log_table_modules(log->modules, &table);
    vr_log_write_table(out, VR_LOG_MODULES, &table, log->packed_modules, log->module_count - log->packed_modules);
    vr_log_table_annotations(log->annotations, &table);
    vr_log_write_rows(out, VR_LOG_ANNOTATIONS, &table, log->packed_annotations, log->annotation_count);
    vr_log_table_settings(log->settings, &table);
    vr_log_write_rows(out, VR_LOG_SETTINGS, &table, log->packed_settings, log->setting_count);
}

static void note_packed(struct vram_log *log) {
    log->packed_strings = log->builder.strings.count;
    log->packed_frames = log->builder.frames.count;
    log->packed_stacks = log->builder.stacks.count;
    log->packed_modules = log->module_count;
    log->packed_annotations += log->annotation_count;
    log->packed_settings += log->setting_count;
    log->annotation_count = log->setting_count = 0;
}

static bool has_new_rows(const struct vram_log *log) {
    return log->builder.strings.count != log->packed_strings || log->builder.frames.count != log->packed_frames ||
           log->builder.stacks.count != log->packed_stacks || log->module_count != log->packed_modules;
}

struct sealing {
    struct vram_log *log;
    enum vram_status status;
};

static enum vram_status seal_log(struct vram_log *log) {
    write_new_rows(log);
    VR_TRY(vr_log_put_locked(log));
    note_packed(log);
    return VRAM_OK;
}

static void seal_elsewhere(void *argument) {
    struct sealing *sealing = argument;
    sealing->status = seal_log(sealing->log);
}

// Rare, with tables of columns on the stack: runs on the spare stack, because the appending thread may have little.
enum vram_status vr_log_seal_locked(struct vram_log *log) {
    log->room = 0;
    if (log->file.used == 0 && !has_new_rows(log)) return VRAM_OK;
    struct sealing sealing = {.log = log};
    vr_os_on_spare_stack(seal_elsewhere, &sealing);
    return sealing.status;
}

enum vram_status vr_log_finish_locked(struct vram_log *log) {
    uint64_t index_offset = log->file.end;
    struct vr_log_block_header header;
    struct vr_log_table table;
    enum vram_status status = vr_log_seal_locked(log);
    if (status == VRAM_OK) {
        index_offset = log->file.end;
        vr_log_table_index(log->spans, &table);
        if (log->span_count == 0) vr_log_write_empty(&log->maker.tables, VR_LOG_INDEX);
        vr_log_write_table(&log->maker.tables, VR_LOG_INDEX, &table, 0, log->span_count);
        status = vr_log_make_block(&log->maker, log->file.sequence, log->file.end, &header);
    }
    if (status == VRAM_OK) status = vr_logfile_put(&log->file, &log->maker.block);
    if (status != VRAM_OK) {
        // The file stays with its tail, and is read like that of a killed program.
        vr_logfile_abandon(&log->file);
        return status;
    }
    return vr_logfile_finish(&log->file, index_offset);
}
