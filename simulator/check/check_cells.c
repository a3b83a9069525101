// Memory as cells: ranges of bytes with one life each, and the uses with which later uses are compared.
#include <stdlib.h>

#include "check/check_state.h"

// Cells of segments that were given back, kept to explain later uses. Beyond it the older half is forgotten, which can only lose a finding.
#define GHOSTS_MOST 16384

// The number of uses kept per cell. If there are more, the oldest use is dropped, which can only lose a finding.
#define RECORDS_MOST 256

// ---- Lives.

struct vr_check_life *vr_check_life_new(struct vr_check *check, uint64_t address, uint64_t size_bytes) {
    struct vr_check_life *life = calloc(1, sizeof *life);
    if (life == NULL) {
        check->failed = true;
        return NULL;
    }
    *life = (struct vr_check_life){.references = 1, .address = address, .size_bytes = size_bytes, .serial = ++check->last_life};
    return life;
}

void vr_check_life_drop(struct vr_check_life *life) {
    if (--life->references > 0) return;
    free(life->written);
    free(life);
}

// ---- Records.

static void drop_record(struct vr_check_cell *cell, size_t at) {
    vr_check_life_drop(cell->records[at].life);
    cell->records[at] = cell->records[--cell->record_count];
}

// The host has waited for the work, so all work that it starts from now on comes later.
static bool is_past(const struct vr_check *check, const struct vr_check_record *record) {
    return vr_check_comes_before(record, &check->lanes[VR_CHECK_HOST].clock);
}

// Returns whether every conflict with `old` that is still possible also shows as a conflict with the new record.
static bool is_covered(const struct vr_check_record *old, const struct vr_check_record *record, const struct vr_check_clock *clock) {
    if (!vr_check_comes_before(old, clock) || old->from < record->from || old->end > record->end || old->far > record->far) return false;
    if (record->may && !old->may) return false;
    return record->use.effect == VR_CHECK_WRITE || record->use.effect == old->use.effect;
}

static void append_record(struct vr_check *check, struct vr_check_cell *cell, const struct vr_check_record *record) {
    if (VR_GROW(cell, records, cell->record_count + 1) != VRAM_OK) {
        check->failed = true;
        return;
    }
    record->life->references++;
    cell->records[cell->record_count++] = *record;
}

void vr_check_record_add(struct vr_check *check, struct vr_check_cell *cell, const struct vr_check_record *record,
                         const struct vr_check_clock *clock) {
    size_t oldest = 0;
    for (size_t i = 0; i < cell->record_count;) {
        if (is_past(check, &cell->records[i]) || is_covered(&cell->records[i], record, clock))
            drop_record(cell, i);
        else
            i++;
    }
    for (size_t i = 1; i < cell->record_count && cell->record_count >= RECORDS_MOST; i++)
        if (cell->records[i].tick < cell->records[oldest].tick) oldest = i;
    if (cell->record_count >= RECORDS_MOST) drop_record(cell, oldest);
    append_record(check, cell, record);
}

// ---- Cells.

size_t vr_check_cell_after(const struct vr_check *check, uint64_t address) {
    size_t place;
    VR_LOWER_BOUND(place, index, 0, check->cell_count, check->cells[index]->end <= address);
    return place;
}

void vr_check_cell_forget(struct vr_check_cell *cell) {
    while (cell->record_count > 0) drop_record(cell, 0);
}

static void free_cell(struct vr_check_cell *cell) {
    vr_check_cell_forget(cell);
    if (cell->life != NULL) vr_check_life_drop(cell->life);
    free(cell->records);
    free(cell);
}

void vr_check_cells_release(struct vr_check *check) {
    for (size_t i = 0; i < check->cell_count; i++) free_cell(check->cells[i]);
    free(check->cells);
}

static struct vr_check_cell *insert_cell(struct vr_check *check, size_t place, uint64_t from, uint64_t end, struct vr_check_life *life) {
    struct vr_check_cell *cell = calloc(1, sizeof *cell);
    if (cell == NULL || VR_GROW(check, cells, check->cell_count + 1) != VRAM_OK) {
        free(cell);
        check->failed = true;
        return NULL;
    }
    memmove(check->cells + place + 1, check->cells + place, (check->cell_count - place) * sizeof *check->cells);
    check->cells[place] = cell;
    check->cell_count++;
    *cell = (struct vr_check_cell){.from = from, .end = end, .life = life};
    life->references++;
    return cell;
}

// Adds the part of a record that lies in the cell.
static void append_part(struct vr_check *check, struct vr_check_cell *cell, const struct vr_check_record *record) {
    struct vr_check_record part = *record;
    if (part.from < cell->from) part.from = cell->from;
    if (part.far > cell->end) part.far = cell->end;
    if (part.end > part.far) part.end = part.far;
    if (part.end < part.from) part.end = part.from; // only its uncertain part lies here
    if (part.from < part.far && !is_past(check, record)) append_record(check, cell, &part);
}

// Splits the cell at `place` in two at the address, which lies inside of it.
static void split_cell(struct vr_check *check, size_t place, uint64_t address) {
    struct vr_check_cell *left = check->cells[place];
    struct vr_check_cell *right = insert_cell(check, place + 1, address, left->end, left->life);
    if (right == NULL) return;
    right->overwritten = left->overwritten;
    left->end = address;
    for (size_t i = 0; i < left->record_count; i++) append_part(check, right, &left->records[i]);
    for (size_t i = 0; i < left->record_count;) {
        struct vr_check_record *record = &left->records[i];
        if (record->far > address) record->far = address;
        if (record->end > address) record->end = address;
        if (record->from >= address)
            drop_record(left, i);
        else
            i++;
    }
}

struct vr_check_cell *vr_check_cell_carve(struct vr_check *check, uint64_t from, uint64_t end, struct vr_check_life *life) {
    size_t first = vr_check_cell_after(check, from);
    if (first < check->cell_count && check->cells[first]->from < from) split_cell(check, first++, from);
    size_t last = vr_check_cell_after(check, end - 1);
    if (last < check->cell_count && check->cells[last]->from < end && check->cells[last]->end > end) split_cell(check, last, end);
    if (check->failed) return NULL;
    struct vr_check_cell *made = insert_cell(check, first, from, end, life);
    if (made == NULL) return NULL;
    size_t over = first + 1;
    made->heads = over < check->cell_count && check->cells[over]->from == from && check->cells[over]->heads;
    for (; over < check->cell_count && check->cells[over]->from < end; over++) {
        for (size_t i = 0; i < check->cells[over]->record_count; i++) append_part(check, made, &check->cells[over]->records[i]);
        free_cell(check->cells[over]);
    }
    check->cell_count -= over - first - 1;
    memmove(check->cells + first + 1, check->cells + over, (check->cell_count - first - 1) * sizeof *check->cells);
    return made;
}

// ---- Ghosts: cells of segments that were given back.

static bool is_ghost(const struct vr_check_cell *cell) { return cell->life->gone != 0; }

// Returns the number of the segment that was given back first, of those that still have cells.
static uint64_t oldest_ghost(const struct vr_check *check) {
    uint64_t oldest = UINT64_MAX;
    for (size_t i = 0; i < check->cell_count; i++)
        if (is_ghost(check->cells[i]) && check->cells[i]->life->gone < oldest) oldest = check->cells[i]->life->gone;
    return oldest;
}

// Removes the ghosts up to a number, and counts the others.
static void remove_ghosts(struct vr_check *check, uint64_t last) {
    size_t kept = 0;
    check->ghosts = 0;
    for (size_t i = 0; i < check->cell_count; i++) {
        struct vr_check_cell *cell = check->cells[i];
        const bool ghost = is_ghost(cell);
        if (ghost && cell->life->gone <= last) {
            free_cell(cell);
            continue;
        }
        check->ghosts += ghost;
        check->cells[kept++] = cell;
    }
    check->cell_count = kept;
}

void vr_check_ghosts_trim(struct vr_check *check) {
    while (check->ghosts > GHOSTS_MOST) {
        const uint64_t oldest = oldest_ghost(check);
        remove_ghosts(check, oldest + (check->last_gone - oldest) / 2);
    }
}
