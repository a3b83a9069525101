// A state that a program hands over, as the columns of a model and as sections.
#include "history/log_inside.h"

#include "model/columns.h"

// The columns of a state while it is written.
struct state_tables {
    struct vr_budget budget; // none
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

// One block; free ones have no stack.
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

// The segment's blocks and the free ones between them, with their sums into row `row`.
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
