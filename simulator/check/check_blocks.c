// Lives of memory: segments of the driver, and the blocks that a caching allocator cuts from them.
#include "check/check_state.h"

static struct vr_check_life *begin_life(struct vr_check *check, uint64_t address, uint64_t size_bytes, uint64_t stream,
                                        struct vr_check_place place) {
    struct vr_check_life *life = vr_check_life_new(check, address, size_bytes);
    if (life != NULL) life->allocated = vr_check_use_of(check, stream, VR_CHECK_USE, place);
    return life;
}

// Makes a cell with a new life. NULL if the host is out of memory.
static struct vr_check_cell *begin_cell(struct vr_check *check, uint64_t address, uint64_t end, uint64_t stream,
                                        struct vr_check_place place) {
    struct vr_check_life *life = begin_life(check, address, end - address, stream, place);
    if (life == NULL) return NULL;
    struct vr_check_cell *cell = vr_check_cell_carve(check, address, end, life);
    vr_check_life_drop(life); // the cell has it
    return cell;
}

static void end_life(struct vr_check_life *life, const struct vr_check_use *use) {
    if (life->freed) return;
    life->freed = true;
    life->end = *use;
}

// Reports the uses of a cell that do not come before the clock, which is that of the free.
static void note_uses(struct vr_check *check, const struct vr_check_cell *cell, const struct vr_check_use *use,
                      const struct vr_check_clock *clock) {
    for (size_t i = 0; i < cell->record_count; i++) {
        const struct vr_check_record *record = &cell->records[i];
        if (vr_check_comes_before(record, clock)) continue;
        struct vr_check_finding finding = {.kind = VR_CHECK_FREED_IN_USE,
                                           .may = record->may || check->lanes[record->lane].held,
                                           .earlier = record->use,
                                           .later = *use,
                                           .address = record->from,
                                           .size_bytes = record->far - record->from};
        vr_check_finding_block(&finding, record->life);
        vr_check_note(check, &finding);
    }
}

// ---- Segments.

uint64_t vr_check_lives(const struct vr_check *check) { return check->last_life; }

size_t vr_check_cells(const struct vr_check *check) { return check->cell_count; }

void vr_check_segment(struct vr_check *check, uint64_t address, uint64_t size_bytes, bool mapped, struct vr_check_place place) {
    if (vr_check_is_off(check) || size_bytes == 0) return;
    struct vr_check_cell *cell = begin_cell(check, address, address + size_bytes, 0, place);
    if (cell != NULL) cell->life->mapped = mapped;
}

// Ends the lifetimes in the range. `clock` is the position of the free; NULL: the driver waits for all work that uses the memory.
static void end_segment(struct vr_check *check, uint64_t address, uint64_t end, const struct vr_check_use *use,
                        const struct vr_check_clock *clock) {
    check->last_gone++;
    for (size_t i = vr_check_cell_after(check, address); i < check->cell_count && check->cells[i]->from < end; i++) {
        struct vr_check_cell *cell = check->cells[i];
        if (clock != NULL) note_uses(check, cell, use, clock);
        end_life(cell->life, use);
        cell->life->gone = check->last_gone;
        vr_check_cell_forget(cell);
        check->ghosts++;
    }
    vr_check_ghosts_trim(check);
}

void vr_check_segment_end(struct vr_check *check, uint64_t address, uint64_t size_bytes, bool waits, struct vr_check_place place) {
    if (vr_check_is_off(check)) return;
    const struct vr_check_use use = vr_check_use_of(check, 0, VR_CHECK_WRITE, place);
    end_segment(check, address, address + size_bytes, &use, waits ? NULL : &check->lanes[VR_CHECK_HOST].clock);
}

void vr_check_segment_on(struct vr_check *check, uint64_t address, uint64_t size_bytes, uint64_t stream, struct vr_check_place place) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (lane == NULL || size_bytes == 0) return;
    struct vr_check_cell *cell = begin_cell(check, address, address + size_bytes, stream, place);
    if (cell == NULL) return;
    vr_check_cell_forget(cell); // the driver orders the new life after the old one
    const struct vr_check_access access = {.address = address, .size_bytes = size_bytes, .effect = VR_CHECK_WRITE};
    vr_check_use_bytes(check, lane, vr_check_advance(check, lane), &cell->life->allocated, &access);
}

void vr_check_segment_end_on(struct vr_check *check, uint64_t address, uint64_t stream, struct vr_check_place place) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    const size_t first = vr_check_cell_after(check, address);
    if (lane == NULL || first == check->cell_count || check->cells[first]->from > address) return;
    (void)vr_check_advance(check, lane);
    const struct vr_check_use use = vr_check_use_of(check, stream, VR_CHECK_WRITE, place);
    const uint64_t size_bytes = check->cells[first]->life->size_bytes;
    end_segment(check, address, address + (size_bytes == 0 ? 1 : size_bytes), &use, &lane->clock);
}

// ---- Blocks of a caching allocator.

static bool is_live_block(const struct vr_check_life *life) { return life->block && !life->freed; }

// Returns the end of a block of unknown size: it reaches at most to the next live block, and to the end of its segments.
static uint64_t limit_of(const struct vr_check *check, size_t place) {
    uint64_t end = check->cells[place]->end;
    for (size_t i = place + 1; i < check->cell_count && check->cells[i]->from == end && !is_live_block(check->cells[i]->life); i++)
        end = check->cells[i]->end;
    return end;
}

// Returns whether memory in the range was handed out for a captured graph, or was lent by one, and is free.
static bool is_of_graph(const struct vr_check *check, size_t first, uint64_t end) {
    bool found = false;
    for (size_t i = first; i < check->cell_count && check->cells[i]->from < end && !found; i++) {
        const struct vr_check_life *life = check->cells[i]->life;
        found = life->freed && (life->captured || life->lent);
    }
    return found;
}

void vr_check_block(struct vr_check *check, uint64_t address, uint64_t size_bytes, bool captured, struct vr_check_place place) {
    const size_t first = vr_check_cell_after(check, address);
    if (vr_check_is_off(check) || first == check->cell_count || check->cells[first]->from > address) return;
    const uint64_t end = size_bytes != 0 ? address + size_bytes : limit_of(check, first);
    const bool lent = !captured && is_of_graph(check, first, end);
    struct vr_check_cell *cell = begin_cell(check, address, end, 0, place);
    if (cell == NULL) return;
    cell->life->block = true;
    cell->life->captured = captured;
    cell->life->lent = lent;
    cell->life->size_bytes = size_bytes;
}

void vr_check_block_end(struct vr_check *check, uint64_t address, struct vr_check_place place) {
    const size_t first = vr_check_cell_after(check, address);
    if (vr_check_is_off(check) || first == check->cell_count || check->cells[first]->from != address) return;
    const struct vr_check_use use = vr_check_use_of(check, 0, VR_CHECK_WRITE, place);
    if (is_live_block(check->cells[first]->life)) end_life(check->cells[first]->life, &use);
}
