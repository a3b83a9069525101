// Work and the bytes it uses: compares each use with the earlier ones that nothing orders before it.
#include "check/check_state.h"

// ---- Conflicts.

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t lesser_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Returns the end of what belongs to the life for certain. The size of a block may be unknown; then it has at least what the record uses.
static uint64_t least_end(const struct vr_check_life *life, const struct vr_check_record *record) {
    if (life->size_bytes != 0) return life->address + life->size_bytes;
    return later_of(record->end, life->address + 1);
}

// Returns whether the two blocks share bytes for certain.
static bool share_bytes(const struct vr_check_record *old, const struct vr_check_record *record) {
    const uint64_t from = later_of(old->life->address, record->life->address);
    return from < lesser_of(least_end(old->life, old), least_end(record->life, record));
}

// Gets the bytes that both use. If the record is of another life, it counts with its whole block, because that block was freed too early.
static bool find_overlap(const struct vr_check_record *old, const struct vr_check_record *record, struct vr_check_finding *finding) {
    const bool lives = old->life != record->life;
    const uint64_t from = later_of(old->from, record->from);
    const uint64_t sure = lesser_of(old->end, record->end), end = lesser_of(old->far, record->far);
    if (from >= end) return false;
    const bool certain = from < sure || (lives && old->life->block && share_bytes(old, record));
    if (!certain) finding->may = true;
    finding->address = from;
    finding->size_bytes = (from < sure ? sure : end) - from;
    return true;
}

static enum vr_check_kind kind_of(const struct vr_check_record *old, const struct vr_check_record *record,
                                  const struct vr_check_lane *lane) {
    if (lane->kind == VR_CHECK_LANE_HOST) return VR_CHECK_HOST_RACE;
    return old->life == record->life ? VR_CHECK_RACE : VR_CHECK_FREED_IN_USE;
}

static void compare(struct vr_check *check, const struct vr_check_record *old, const struct vr_check_record *record,
                    const struct vr_check_lane *lane) {
    if (old->use.effect == VR_CHECK_READ && record->use.effect == VR_CHECK_READ) return;
    if (vr_check_comes_before(old, &lane->clock)) return;
    const bool writes = old->use.effect == VR_CHECK_WRITE || record->use.effect == VR_CHECK_WRITE;
    struct vr_check_finding finding = {
        .kind = kind_of(old, record, lane),
        .may = !writes || old->may || record->may || lane->held || check->lanes[old->lane].held,
        .earlier = old->use,
        .later = record->use,
    };
    if (!find_overlap(old, record, &finding)) return;
    vr_check_finding_block(&finding, old->life);
    vr_check_note(check, &finding);
}

// Returns whether freed memory is a graph's: its launches use it, and so do kernels between them. What a graph lent is the graph's again at
// the next launch. Which graphs share a pool is not known, so a launch of any graph counts.
static bool is_graphs(const struct vr_check *check, const struct vr_check_life *life) {
    return life->captured || (life->lent && life->launches < check->last_launch);
}

// Reports a use of freed memory, except in two cases. A use that goes beyond the block may be a copy of a whole segment. Memory of captured
// graphs is used after its free.
static void check_freed(struct vr_check *check, const struct vr_check_record *record, const struct vr_check_access *access,
                        const struct vr_check_cell *cell) {
    const struct vr_check_life *life = record->life;
    if (!life->freed || is_graphs(check, life) || check->launching || access->address < cell->from ||
        access->address + access->size_bytes > cell->end)
        return;
    struct vr_check_finding finding = {.kind = VR_CHECK_USE_AFTER_FREE,
                                       .may = record->may,
                                       .earlier = life->end,
                                       .later = record->use,
                                       .address = record->from,
                                       .size_bytes = record->end - record->from};
    vr_check_finding_block(&finding, life);
    vr_check_note(check, &finding);
}

// ---- Bounds.

static bool is_live_block(const struct vr_check_life *life) { return life->block && !life->freed; }

// Reports an access that begins in a block of a caching allocator and goes on in the next one. Not if it uses whole segments: then it may
// be a copy of all memory.
static void check_bounds(struct vr_check *check, const struct vr_check_use *use, const struct vr_check_access *access) {
    const uint64_t end = access->address + access->size_bytes;
    size_t first = vr_check_cell_after(check, access->address), next = first + 1;
    if (check->launching || access->may || access->moves || next >= check->cell_count || check->cells[first]->from > access->address ||
        check->cells[first]->end >= end)
        return;
    const struct vr_check_cell *cell = check->cells[first];
    const bool at_beginning = cell->from == access->address && (first == 0 || check->cells[first - 1]->end < cell->from);
    while (next < check->cell_count && check->cells[next]->from == check->cells[next - 1]->end && check->cells[next]->end <= end) next++;
    const bool at_end = next == check->cell_count || check->cells[next]->from > check->cells[next - 1]->end;
    if ((at_beginning && at_end) || !is_live_block(cell->life) || !is_live_block(check->cells[first + 1]->life)) return;
    if (check->cells[first + 1]->from != cell->end) return;
    struct vr_check_finding finding = {.kind = VR_CHECK_OUT_OF_BOUNDS,
                                       .earlier = cell->life->allocated,
                                       .later = *use,
                                       .address = access->address,
                                       .size_bytes = access->size_bytes};
    finding.later.effect = access->effect;
    vr_check_finding_block(&finding, cell->life);
    if (finding.block_bytes == 0) finding.block_bytes = cell->end - finding.block; // it ends at the next block at the latest
    vr_check_note(check, &finding);
}

// ---- Graphs of one pool. A graph that was captured earlier may write where a later one has its results.

// Returns whether a step of the running launch was captured before the cell's life began: it means an earlier block at the same address.
static bool means_earlier_block(const struct vr_check *check, const struct vr_check_cell *cell) {
    return check->launching && check->step_captured != 0 && cell->life->serial > check->step_captured;
}

static void check_overwritten(struct vr_check *check, struct vr_check_cell *cell, const struct vr_check_record *record) {
    if (!cell->life->captured || cell->life->freed) return;
    if (means_earlier_block(check, cell)) {
        // In the capture of the same graph, the block gets its bytes from a later step.
        const bool other_graph = check->launch_captured != 0 && cell->life->serial > check->launch_captured;
        if (other_graph && record->use.effect == VR_CHECK_WRITE && !record->may) cell->overwritten = record->use;
        return;
    }
    if (record->use.effect == VR_CHECK_READ && cell->overwritten.work != NULL && !record->may) {
        struct vr_check_finding finding = {.kind = VR_CHECK_STALE_GRAPH,
                                           .earlier = cell->overwritten,
                                           .later = record->use,
                                           .address = record->from,
                                           .size_bytes = record->end - record->from};
        vr_check_finding_block(&finding, cell->life);
        vr_check_note(check, &finding);
    }
    cell->overwritten.work = NULL;
}

// ---- Uses.

// Uses the part of an access that lies in one cell.
static void use_cell(struct vr_check *check, struct vr_check_cell *cell, const struct vr_check_lane *lane,
                     const struct vr_check_access *access, struct vr_check_record record) {
    record.life = cell->life;
    check_freed(check, &record, access, cell);
    check_overwritten(check, cell, &record);
    for (size_t i = 0; i < cell->record_count; i++) compare(check, &cell->records[i], &record, lane);
    vr_check_record_add(check, cell, &record, &lane->clock);
}

void vr_check_use_bytes(struct vr_check *check, const struct vr_check_lane *lane, uint64_t tick, const struct vr_check_use *use,
                        const struct vr_check_access *access) {
    const uint64_t bytes = access->size_bytes == 0 ? 1 : access->size_bytes;
    if (access->address == 0 || access->address > UINT64_MAX - bytes) return;
    const uint64_t end = access->address + bytes;
    struct vr_check_record record = {.tick = tick, .lane = (uint32_t)(lane - check->lanes), .may = access->may, .use = *use};
    record.use.effect = access->effect;
    for (size_t i = vr_check_cell_after(check, access->address); i < check->cell_count && check->cells[i]->from < end; i++) {
        struct vr_check_cell *cell = check->cells[i];
        record.from = later_of(access->address, cell->from);
        record.end = lesser_of(end, cell->end);
        record.far = access->size_bytes == 0 || access->open || access->anywhere ? cell->end : record.end;
        if (access->anywhere) record.end = record.from;
        use_cell(check, cell, lane, access, record);
    }
}

// The host's uses need no records: all later work is ordered after them.
void vr_check_host_use(struct vr_check *check, struct vr_check_place place, const struct vr_check_access *access) {
    const struct vr_check_lane *host = &check->lanes[VR_CHECK_HOST];
    const uint64_t end = access->address + access->size_bytes;
    if (vr_check_is_off(check)) return;
    struct vr_check_record record = {
        .from = access->address, .end = end, .far = end, .use = vr_check_use_of(check, 0, access->effect, place)};
    for (size_t i = vr_check_cell_after(check, access->address); i < check->cell_count && check->cells[i]->from < end; i++) {
        record.life = check->cells[i]->life;
        for (size_t j = 0; j < check->cells[i]->record_count; j++) compare(check, &check->cells[i]->records[j], &record, host);
    }
}

static void use_all(struct vr_check *check, const struct vr_check_lane *lane, uint64_t tick, const struct vr_check_use *use,
                    const struct vr_check_access *accesses, size_t count) {
    if (VR_UNLIKELY(check->finds_unwritten)) vr_check_unwritten(check, use, accesses, count);
    for (size_t i = 0; i < count && !check->failed; i++) {
        check_bounds(check, use, &accesses[i]);
        vr_check_use_bytes(check, lane, tick, use, &accesses[i]);
        if (VR_UNLIKELY(check->sharing != NULL)) vr_check_use_shared(check, lane, tick, use, &accesses[i]);
    }
}

void vr_check_work(struct vr_check *check, uint64_t stream, struct vr_check_place place, const struct vr_check_access *accesses,
                   size_t count) {
    struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    if (lane == NULL) return;
    const uint64_t tick = vr_check_advance(check, lane);
    const struct vr_check_use use = vr_check_use_of(check, stream, VR_CHECK_USE, place);
    use_all(check, lane, tick, &use, accesses, count);
}

// ---- Launches of graphs. Each step continues the lane of a step that it comes after, or begins a branch.

void vr_check_launch_begin(struct vr_check *check, uint64_t stream, size_t step_count, uint64_t last_captured,
                           struct vr_check_place place) {
    const struct vr_check_lane *lane = vr_check_lane_of(check, stream);
    check->launching = lane != NULL;
    if (lane == NULL) return;
    check->last_launch++;
    vr_check_mark(check, stream, &check->launch_start);
    check->launch_lane = (uint32_t)(lane - check->lanes);
    check->step_count = 0;
    check->launch_use = vr_check_use_of(check, stream, VR_CHECK_USE, place);
    check->launch_captured = last_captured;
    if (VR_GROW(check, steps, step_count + 1) != VRAM_OK) check->failed = true;
}

// Returns the lane on which the step goes on. SIZE_MAX if the host is out of memory.
static size_t lane_of_step(struct vr_check *check, const size_t *after, size_t after_count) {
    for (size_t i = 0; i < after_count; i++) {
        struct vr_check_step *step = &check->steps[after[i]];
        if (!step->last_of_lane) continue;
        step->last_of_lane = false;
        return step->lane;
    }
    return vr_check_branch(check, &check->launch_start->clock);
}

// Adds a step at the lane's position.
static void keep_step(struct vr_check *check, size_t lane) {
    struct vr_check_step *step = &check->steps[check->step_count++];
    if (check->step_count > check->step_clocks) {
        step->clock = (struct vr_check_clock){0};
        check->step_clocks = check->step_count;
    }
    step->lane = (uint32_t)lane;
    step->last_of_lane = true;
    step->clock.count = 0;
    if (!vr_check_clock_join(&step->clock, &check->lanes[lane].clock)) check->failed = true;
}

// Reports an access of a step to memory that has another life than at the capture. Not for memory of captured graphs, which their launches
// use after its end, and after the end of blocks that were lent there. Nor for pages that were mapped again, which are intended to replace
// the old ones.
static void check_stale(struct vr_check *check, const struct vr_check_use *use, uint64_t captured, const struct vr_check_access *access) {
    const size_t place = vr_check_cell_after(check, access->address);
    if (captured == 0 || access->may || place == check->cell_count || check->cells[place]->from > access->address) return;
    const struct vr_check_life *life = check->cells[place]->life;
    if (life->captured || life->mapped || (life->freed ? life->lent : life->serial <= captured)) return;
    struct vr_check_finding finding = {.kind = VR_CHECK_STALE_GRAPH,
                                       .earlier = *use,
                                       .later = check->launch_use,
                                       .address = access->address,
                                       .size_bytes = access->size_bytes == 0 ? 1 : access->size_bytes};
    finding.earlier.effect = finding.later.effect = access->effect;
    vr_check_finding_block(&finding, life);
    vr_check_note(check, &finding);
}

void vr_check_launch_step(struct vr_check *check, const size_t *after, size_t after_count, struct vr_check_place place, uint64_t captured,
                          const struct vr_check_access *accesses, size_t count) {
    if (vr_check_is_off(check) || !check->launching || check->step_count == check->steps_capacity) return;
    const size_t index = lane_of_step(check, after, after_count);
    if (index == SIZE_MAX) return;
    struct vr_check_lane *lane = &check->lanes[index];
    for (size_t i = 0; i < after_count; i++)
        if (!vr_check_clock_join(&lane->clock, &check->steps[after[i]].clock)) check->failed = true;
    const uint64_t tick = vr_check_advance(check, lane);
    keep_step(check, index);
    struct vr_check_use use = vr_check_use_of(check, check->lanes[check->launch_lane].stream, VR_CHECK_USE, place);
    for (size_t i = 0; i < count; i++) check_stale(check, &use, captured, &accesses[i]);
    use.launch = check->launch_use.stack;
    check->step_captured = captured;
    use_all(check, lane, tick, &use, accesses, count);
}

void vr_check_launch_end(struct vr_check *check) {
    if (!check->launching) return;
    check->launching = false;
    struct vr_check_lane *lane = &check->lanes[check->launch_lane];
    for (size_t i = 0; i < check->step_count && !check->failed; i++) {
        if (!check->steps[i].last_of_lane) continue;
        struct vr_check_lane *branch = &check->lanes[check->steps[i].lane];
        branch->open = false;
        if (!vr_check_clock_join(&lane->clock, &branch->clock)) check->failed = true;
    }
    if (!check->failed) (void)vr_check_advance(check, lane);
}
