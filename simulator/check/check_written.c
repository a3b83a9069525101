// Reads of uninitialized bytes: nothing wrote them since their block was handed out. Each life has the extents that were written. What the
// checker does not see counts as written: kernels whose outputs are unknown, other processes, the host.
#include "check/check_state.h"

// Extents kept per life. With more, all of it counts as written, which can only lose a finding.
#define EXTENTS_MOST 64

void vr_check_find_unwritten(struct vr_check *check) { check->finds_unwritten = true; }

void vr_check_written(struct vr_check *check, uint64_t address) {
    if (!check->finds_unwritten || vr_check_is_off(check)) return;
    if (address == 0) check->written_until = check->last_life;
    const size_t place = vr_check_cell_after(check, address);
    if (place < check->cell_count && check->cells[place]->from <= address) check->cells[place]->life->all_written = true;
}

// ---- Extents, sorted, with gaps between them.

// Adds an extent to a life, and joins those that it touches.
static void add_extent(struct vr_check *check, struct vr_check_life *life, uint64_t from, uint64_t end) {
    size_t first = 0, over;
    if (VR_GROW(life, written, life->written_count + 1) != VRAM_OK) {
        check->failed = true;
        return;
    }
    while (first < life->written_count && life->written[first].end < from) first++;
    for (over = first; over < life->written_count && life->written[over].from <= end; over++) {
        if (life->written[over].from < from) from = life->written[over].from;
        if (life->written[over].end > end) end = life->written[over].end;
    }
    memmove(life->written + first + 1, life->written + over, (life->written_count - over) * sizeof *life->written);
    life->written_count += 1 + first - over;
    life->written[first] = (struct vr_check_extent){.from = from, .end = end};
    if (life->written_count >= EXTENTS_MOST) life->all_written = true;
}

// Gets the first uninitialized bytes of a range. Returns false if all were written.
static bool find_gap(const struct vr_check_life *life, struct vr_check_extent range, struct vr_check_extent *gap) {
    *gap = range;
    for (size_t i = 0; i < life->written_count && gap->from < range.end; i++) {
        if (life->written[i].from > gap->from) {
            if (life->written[i].from < gap->end) gap->end = life->written[i].from;
            return true;
        }
        if (life->written[i].end > gap->from) gap->from = life->written[i].end;
    }
    return gap->from < range.end;
}

// ---- Accesses.

static bool is_written(const struct vr_check *check, const struct vr_check_life *life) {
    return life->all_written || life->freed || life->mapped || life->serial <= check->written_until;
}

static void note_gap(struct vr_check *check, struct vr_check_life *life, const struct vr_check_use *use, struct vr_check_extent gap) {
    struct vr_check_finding finding = {
        .kind = VR_CHECK_NEVER_WRITTEN, .earlier = life->allocated, .later = *use, .address = gap.from, .size_bytes = gap.end - gap.from};
    finding.later.effect = VR_CHECK_READ;
    vr_check_finding_block(&finding, life);
    vr_check_note(check, &finding);
    life->all_written = true; // one finding for each block
}

// The part of an access that lies in a cell.
static struct vr_check_extent part_of(const struct vr_check_cell *cell, const struct vr_check_access *access) {
    const uint64_t end = access->address + (access->size_bytes == 0 ? 1 : access->size_bytes);
    return (struct vr_check_extent){.from = access->address > cell->from ? access->address : cell->from,
                                    .end = end < cell->end ? end : cell->end};
}

static void check_access(struct vr_check *check, const struct vr_check_use *use, const struct vr_check_access *access) {
    const uint64_t end = access->address + (access->size_bytes == 0 ? 1 : access->size_bytes);
    for (size_t i = vr_check_cell_after(check, access->address); i < check->cell_count && check->cells[i]->from < end; i++) {
        struct vr_check_life *life = check->cells[i]->life;
        const struct vr_check_extent part = part_of(check->cells[i], access);
        struct vr_check_extent gap;
        if (is_written(check, life)) continue;
        if (access->effect == VR_CHECK_READ && !access->may && !access->anywhere && find_gap(life, part, &gap))
            note_gap(check, life, use, gap);
        if (access->effect == VR_CHECK_READ) continue;
        if (access->effect == VR_CHECK_WRITE && !access->may && !access->open && !access->anywhere && access->size_bytes != 0)
            add_extent(check, life, part.from, part.end);
        else
            life->all_written = true; // how much it writes is unknown
    }
}

void vr_check_unwritten(struct vr_check *check, const struct vr_check_use *use, const struct vr_check_access *accesses, size_t count) {
    for (size_t i = 0; i < count; i++) // work reads before it writes
        if (accesses[i].effect == VR_CHECK_READ) check_access(check, use, &accesses[i]);
    for (size_t i = 0; i < count && !check->failed; i++)
        if (accesses[i].effect != VR_CHECK_READ) check_access(check, use, &accesses[i]);
}
