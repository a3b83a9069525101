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

static void end_life(const struct vr_check *check, struct vr_check_life *life, const struct vr_check_use *use) {
    if (life->freed) return;
    life->freed = true;
    life->launches = check->last_launch;
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
    if (cell == NULL) return;
    cell->life->mapped = mapped;
    cell->heads = !mapped;
}

// Ends the lifetimes in the range. `clock` is the position of the free; NULL: the driver waits for all work that uses the memory.
static void end_segment(struct vr_check *check, uint64_t address, uint64_t end, const struct vr_check_use *use,
                        const struct vr_check_clock *clock) {
    check->last_gone++;
    vr_check_share_end(check, address, end, use);
    for (size_t i = vr_check_cell_after(check, address); i < check->cell_count && check->cells[i]->from < end; i++) {
        struct vr_check_cell *cell = check->cells[i];
        if (clock != NULL) note_uses(check, cell, use, clock);
        end_life(check, cell->life, use);
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
    cell->heads = true;
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

// Returns whether a block of unknown size may go on in the cell: in its segment, or in the next mapped pages, up to a live block.
static bool may_go_on(const struct vr_check_cell *cell) { return !cell->heads && cell->life->gone == 0 && !is_live_block(cell->life); }

// Returns the index after the last cell that a block of unknown size may reach, if it begins in the cell at `first`.
static size_t limit_of(const struct vr_check *check, size_t first) {
    size_t next = first + 1;
    while (next < check->cell_count && check->cells[next]->from == check->cells[next - 1]->end && may_go_on(check->cells[next])) next++;
    return next;
}

// Returns whether memory in the range was handed out for a captured graph, or was lent by one. It may still be in use: a block of unknown
// size seems to go on in the next one.
static bool is_of_graph(const struct vr_check *check, size_t first, uint64_t end) {
    bool found = false;
    for (size_t i = first; i < check->cell_count && check->cells[i]->from < end && !found; i++) {
        const struct vr_check_life *life = check->cells[i]->life;
        found = life->captured || life->lent;
    }
    return found;
}

// Returns the first cell of a block that begins at the address. SIZE_MAX if the memory is not known.
static size_t place_of(const struct vr_check *check, uint64_t address) {
    const size_t first = vr_check_cell_after(check, address);
    return vr_check_is_off(check) || first == check->cell_count || check->cells[first]->from > address ? SIZE_MAX : first;
}

// The size decides if an earlier block began after this one's beginning, and neither the host nor the stream has waited for work that used
// it. Another stream that uses the new block has to wait for this one, and then also comes after that work.
bool vr_check_block_needs_size(const struct vr_check *check, uint64_t address, uint64_t stream) {
    const size_t first = place_of(check, address), end = first == SIZE_MAX ? first : limit_of(check, first);
    const struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    const struct vr_check_clock *clocks[] = {&check->lanes[VR_CHECK_HOST].clock, lane == NULL ? NULL : &lane->clock};
    for (size_t i = first; i < end; i++)
        for (size_t j = 0; j < check->cells[i]->record_count; j++) {
            const struct vr_check_record *record = &check->cells[i]->records[j];
            if (record->life->address <= address || vr_check_comes_before(record, clocks[0])) continue;
            if (clocks[1] == NULL || !vr_check_comes_before(record, clocks[1])) return true;
        }
    return false;
}

void vr_check_block(struct vr_check *check, uint64_t address, uint64_t size_bytes, bool captured, struct vr_check_place place) {
    const size_t first = place_of(check, address);
    if (first == SIZE_MAX) return;
    const uint64_t end = size_bytes != 0 ? address + size_bytes : check->cells[limit_of(check, first) - 1]->end;
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
    if (is_live_block(check->cells[first]->life)) end_life(check, check->cells[first]->life, &use);
}
