#include "explore/tables/event_rows.h"

static int rows_by_event(const void *a, const void *b) {
    const struct vr_replaced *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

static enum vram_status find_replaced(const struct vr_lifetimes *lifetimes, struct vr_event_rows *rows) {
    for (size_t i = 0; i < lifetimes->count; i++) {
        const uint32_t death = lifetimes->death[i];
        if (death == VR_NEVER || rows->row[death] == i + 1) continue;
        VR_TRY(VR_GROW(rows, replaced, rows->replaced_count + 1));
        rows->replaced[rows->replaced_count++] = (struct vr_replaced){death, (uint32_t)i};
    }
    if (rows->replaced_count != 0) qsort(rows->replaced, rows->replaced_count, sizeof *rows->replaced, rows_by_event);
    return VRAM_OK;
}

enum vram_status vr_event_rows_build(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_event_rows *rows) {
    struct vr_event_rows made = {.row = calloc(view->history->count + 1, sizeof *made.row)};
    if (made.row == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < lifetimes->count; i++) {
        if (lifetimes->death[i] != VR_NEVER) made.row[lifetimes->death[i]] = (uint32_t)i + 1;
    }
    for (size_t i = lifetimes->start_count; i < lifetimes->count; i++) made.row[lifetimes->birth[i]] = (uint32_t)i + 1;
    const enum vram_status status = find_replaced(lifetimes, &made);
    if (status == VRAM_OK) *rows = made;
    if (status != VRAM_OK) vr_event_rows_release(&made);
    return status;
}

void vr_event_rows_release(struct vr_event_rows *rows) {
    free(rows->row);
    free(rows->replaced);
    memset(rows, 0, sizeof *rows);
}

uint32_t vr_event_replaced(const struct vr_event_rows *rows, size_t event) {
    for (size_t low = 0, high = rows->replaced_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (rows->replaced[middle].event == event) return rows->replaced[middle].row + 1;
        if (rows->replaced[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

size_t vr_other_row(const struct vr_lifetimes *from, const struct vr_lifetimes *to, size_t row) {
    assert(row < from->count);
    // One row per alloc event in both, after those that were there before.
    if (row >= from->start_count) return row - from->start_count + to->start_count;
    size_t found;
    VR_LOWER_BOUND(found, i, 0, to->start_count, to->address[i] < from->address[row]);
    return found < to->start_count && to->address[found] == from->address[row] ? found : SIZE_MAX;
}

// The event of a row's birth or death has it, or has what replaced it.
static bool row_names_event(const struct vr_event_rows *rows, size_t row, uint32_t event) {
    return rows->row[event] == row + 1 || vr_event_replaced(rows, event) == row + 1;
}

bool vr_event_rows_check(const struct vr_event_rows *rows, const struct vr_lifetimes *lifetimes) {
    for (size_t row = 0; row < lifetimes->count; row++) {
        if (row >= lifetimes->start_count && rows->row[lifetimes->birth[row]] != row + 1) return false;
        if (lifetimes->death[row] != VR_NEVER && !row_names_event(rows, row, lifetimes->death[row])) return false;
    }
    for (size_t i = 1; i < rows->replaced_count; i++) {
        if (rows->replaced[i].event <= rows->replaced[i - 1].event) return false;
    }
    return true;
}
