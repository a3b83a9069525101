// Memory that other processes use, too. Each process leaves its uses of it on the board (check_board.h), and compares them with those of
// the others. A lane of another process that this one knows something about is a lane here, so that clocks have entries for it.
//
// Every doubt counts as order. A wait for an event of another process is exact for that process's work; it counts as a wait for all work of
// this one and of third ones. A process whose kernels may wait for those of other processes is not compared at all.
#include "check/check_sharing.h"

// ---- Lanes of other processes.

static size_t lane_here(const struct vr_check_sharing *sharing, uint32_t row, uint32_t lane) {
    return (size_t)vr_map_get(&sharing->lanes, 1 + (uint64_t)row * VR_CHECK_BOARD_LANES + lane);
}

// Returns 1 + the lane here, which is added if there is none. 0 if the host is out of memory.
static size_t add_lane(struct vr_check *check, uint32_t row, uint32_t lane) {
    const size_t known = lane_here(check->sharing, row, lane);
    if (known != 0) return known;
    if (VR_GROW(check, lanes, check->lane_count + 1) != VRAM_OK ||
        vr_map_set(&check->sharing->lanes, 1 + (uint64_t)row * VR_CHECK_BOARD_LANES + lane, check->lane_count + 1) != VRAM_OK) {
        check->failed = true;
        return 0;
    }
    check->lanes[check->lane_count] = (struct vr_check_lane){.kind = VR_CHECK_LANE_AWAY, .open = true, .away_row = row, .away_lane = lane};
    return ++check->lane_count;
}

// Makes the lane's position come after a tick of another process's lane.
static void follow_away(struct vr_check *check, size_t lane, uint32_t row, uint32_t away, uint64_t tick) {
    const size_t here = tick == 0 ? 0 : add_lane(check, row, away);
    if (here != 0 && !vr_check_clock_raise(&check->lanes[lane].clock, here - 1, tick)) check->failed = true;
}

// Makes the lane's position come after everything that the row's process has left.
static void follow_row(struct vr_check *check, size_t lane, uint32_t row) {
    struct vr_check_board_use use;
    for (uint32_t at = 0; vr_check_board_next(check->sharing->board, row, &at, &use);) follow_away(check, lane, row, use.lane, use.tick);
}

// ---- Comparisons.

static struct vr_check_use use_away(uint64_t process, const struct vr_check_board_use *use) {
    return (struct vr_check_use){
        .process = process, .stack = use->number, .effect = use->kind == VR_CHECK_SHARED_READS ? VR_CHECK_READ : VR_CHECK_WRITE};
}

static void note_sharing(struct vr_check *check, const struct vr_check_board_use *away, uint64_t process, const struct vr_check_use *use,
                         uint64_t address, uint64_t size_bytes) {
    struct vr_check_finding finding = {
        .kind = VR_CHECK_SHARING, .earlier = use_away(process, away), .later = *use, .address = address, .size_bytes = size_bytes};
    const size_t place = vr_check_cell_after(check, address);
    if (place < check->cell_count && check->cells[place]->from <= address) vr_check_finding_block(&finding, check->cells[place]->life);
    if (away->kind == VR_CHECK_SHARED_FREES) {
        finding.has_block = finding.was_freed = true;
        finding.freed = finding.earlier;
    }
    vr_check_note(check, &finding);
}

static bool is_ordered(const struct vr_check_sharing *sharing, const struct vr_check_clock *clock, uint32_t row,
                       const struct vr_check_board_use *use) {
    const size_t lane = lane_here(sharing, row, use->lane);
    if (lane != 0 && vr_check_clock_at(clock, lane - 1) >= use->tick) return true;
    return vr_check_board_is_past(sharing->board, row, use->lane, use->tick);
}

// Returns whether the use conflicts with one of another process. The range's own process does not use it after its free.
static bool is_conflict(const struct vr_check_shared_range *range, const struct vr_check_board_use *away,
                        const struct vr_check_board_use *use) {
    if (away->key != use->key || away->from >= use->end || use->from >= away->end) return false;
    if (away->kind == VR_CHECK_SHARED_FREES) return !range->own;
    return away->kind != VR_CHECK_SHARED_READS || use->kind != VR_CHECK_SHARED_READS;
}

// Compares a use with those that the row has. A free of the memory ends it, whatever was waited for.
static void compare_with_row(struct vr_check *check, uint32_t row, const struct vr_check_shared_range *range,
                             const struct vr_check_clock *clock, const struct vr_check_board_use *use, const struct vr_check_use *as) {
    const struct vr_check_sharing *sharing = check->sharing;
    struct vr_check_board_use away;
    for (uint32_t at = 0; vr_check_board_next(sharing->board, row, &at, &away);) {
        const uint64_t process = vr_check_board_process(sharing->board, row);
        const bool freed = away.kind == VR_CHECK_SHARED_FREES;
        if (process == 0 || !is_conflict(range, &away, use) || (!freed && is_ordered(sharing, clock, row, &away))) continue;
        if (!freed && !sharing->ops.is_live(process)) continue; // its work has ended with it
        const uint64_t from = use->from > away.from ? use->from : away.from, end = use->end < away.end ? use->end : away.end;
        note_sharing(check, &away, process, as, range->from + from, end - from);
    }
}

static void leave_use(struct vr_check *check, const struct vr_check_shared_range *range, const struct vr_check_clock *clock,
                      struct vr_check_board_use use, const struct vr_check_use *as) {
    const struct vr_check_sharing *sharing = check->sharing;
    const uint32_t rows = vr_check_board_rows(sharing->board);
    use.key = range->key;
    use.number = sharing->ops.number(as);
    if (use.lane < VR_CHECK_BOARD_LANES) vr_check_board_add(sharing->board, sharing->row, &use);
    for (uint32_t i = 0; i < rows && !check->failed; i++)
        if (i != sharing->row) compare_with_row(check, i, range, clock, &use, as);
}

void vr_check_use_shared(struct vr_check *check, const struct vr_check_lane *lane, uint64_t tick, const struct vr_check_use *use,
                         const struct vr_check_access *access) {
    const struct vr_check_sharing *sharing = vr_check_sharing_of(check);
    const uint64_t end = access->address + (access->size_bytes == 0 ? 1 : access->size_bytes);
    for (size_t i = 0; sharing != NULL && i < sharing->range_count; i++) {
        const struct vr_check_shared_range *range = &sharing->ranges[i];
        if (end <= range->from || range->end <= access->address) continue;
        if (access->may || access->anywhere) continue;
        struct vr_check_use as = *use;
        as.effect = access->effect;
        const uint64_t from = access->address > range->from ? access->address : range->from;
        const struct vr_check_board_use shared = {.from = from - range->from,
                                                  .end = (end < range->end ? end : range->end) - range->from,
                                                  .tick = tick,
                                                  .lane = (uint32_t)(lane - check->lanes),
                                                  .kind = access->effect == VR_CHECK_READ ? VR_CHECK_SHARED_READS : VR_CHECK_SHARED_WRITES};
        leave_use(check, range, &lane->clock, shared, &as);
    }
}

// ---- Memory.

// Leaves the uses from before the memory was shared that the host has not waited for.
static void leave_earlier_uses(struct vr_check *check, const struct vr_check_shared_range *range) {
    const struct vr_check_clock *host = &check->lanes[VR_CHECK_HOST].clock;
    for (size_t i = vr_check_cell_after(check, range->from); i < check->cell_count && check->cells[i]->from < range->end; i++)
        for (size_t j = 0; j < check->cells[i]->record_count; j++) {
            const struct vr_check_record *record = &check->cells[i]->records[j];
            if (record->may || record->use.effect == VR_CHECK_USE || record->from >= record->end || record->from < range->from ||
                record->end > range->end || vr_check_comes_before(record, host))
                continue;
            const struct vr_check_board_use use = {.from = record->from - range->from,
                                                   .end = record->end - range->from,
                                                   .tick = record->tick,
                                                   .lane = record->lane,
                                                   .kind = record->use.effect == VR_CHECK_READ ? VR_CHECK_SHARED_READS
                                                                                               : VR_CHECK_SHARED_WRITES};
            leave_use(check, range, &check->lanes[record->lane].clock, use, &record->use);
        }
}

void vr_check_share(struct vr_check *check, uint64_t address, uint64_t size_bytes, uint64_t key, bool own) {
    struct vr_check_sharing *sharing = vr_check_sharing_begin(check);
    if (sharing == NULL || key == 0) return;
    for (size_t i = 0; i < sharing->range_count; i++)
        if (sharing->ranges[i].from == address && sharing->ranges[i].key == key) return;
    if (VR_GROW(sharing, ranges, sharing->range_count + 1) != VRAM_OK) {
        check->failed = true;
        return;
    }
    sharing->ranges[sharing->range_count] =
        (struct vr_check_shared_range){.from = address, .end = address + size_bytes, .key = key, .own = own};
    if (own) leave_earlier_uses(check, &sharing->ranges[sharing->range_count]);
    sharing->range_count++;
}

void vr_check_share_end(struct vr_check *check, uint64_t address, uint64_t end, const struct vr_check_use *use) {
    struct vr_check_sharing *sharing = check->sharing;
    const struct vr_check_clock *host = &check->lanes[VR_CHECK_HOST].clock;
    for (size_t i = sharing == NULL ? 0 : sharing->range_count; i-- > 0;) {
        const struct vr_check_shared_range range = sharing->ranges[i];
        if (range.from < address || range.from >= end) continue;
        sharing->ranges[i] = sharing->ranges[--sharing->range_count];
        if (!range.own || vr_check_sharing_of(check) == NULL) continue;
        leave_use(check, &range, host, (struct vr_check_board_use){.end = range.end - range.from, .tick = 1, .kind = VR_CHECK_SHARED_FREES},
                  use);
    }
}

// ---- Events.

void vr_check_share_event(struct vr_check *check, uint64_t key, const struct vr_check_point *point) {
    const struct vr_check_sharing *sharing = vr_check_sharing_begin(check);
    if (sharing == NULL || key == 0) return;
    uint64_t ticks[VR_CHECK_BOARD_LANES] = {0};
    const size_t count = point == NULL ? 0 : point->clock.count;
    for (size_t i = 0; i < count && i < VR_CHECK_BOARD_LANES; i++)
        if (check->lanes[i].kind != VR_CHECK_LANE_AWAY) ticks[i] = point->clock.ticks[i];
    vr_check_board_record(sharing->board, sharing->row, key, ticks, VR_CHECK_BOARD_LANES);
}

// Makes the lane's position come after the record of an event, as far as that is of other processes. Returns the row that recorded it.
static uint32_t follow_event(struct vr_check *check, size_t lane, uint64_t key) {
    const struct vr_check_sharing *sharing = vr_check_sharing_begin(check);
    uint64_t ticks[VR_CHECK_BOARD_LANES];
    if (sharing == NULL) return VR_CHECK_BOARD_PROCESSES;
    const uint32_t rows = vr_check_board_rows(sharing->board), row = vr_check_board_find(sharing->board, key, ticks);
    if (row == sharing->row) return row;
    for (uint32_t i = 0; i < rows; i++)
        if (i != row && i != sharing->row) follow_row(check, lane, i);
    for (uint32_t i = 0; row < VR_CHECK_BOARD_PROCESSES && i < VR_CHECK_BOARD_LANES; i++) follow_away(check, lane, row, i, ticks[i]);
    return row;
}

static bool is_own_row(const struct vr_check *check, uint32_t row) {
    const struct vr_check_sharing *sharing = vr_check_sharing_of(check);
    return sharing != NULL && row == sharing->row;
}

void vr_check_wait_shared(struct vr_check *check, uint64_t stream, uint64_t key) {
    const struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (lane == NULL) return;
    const uint32_t row = follow_event(check, (size_t)(lane - check->lanes), key);
    if (!is_own_row(check, row)) vr_check_wait_unknown(check, stream); // of this process, everything
}

void vr_check_host_wait_shared(struct vr_check *check, uint64_t key) {
    if (vr_check_is_off(check)) return;
    const uint32_t row = follow_event(check, VR_CHECK_HOST, key);
    if (!is_own_row(check, row)) vr_check_host_wait_unknown(check); // of this process, everything
}
