// Calls that the driver refuses, and why, where the lifetimes of memory and handles show the reason.
#include "check/check_state.h"

// Returns the cell that holds the address, or NULL.
static const struct vr_check_cell *cell_of(const struct vr_check *check, uint64_t address) {
    const size_t place = vr_check_cell_after(check, address);
    return place == check->cell_count || check->cells[place]->from > address ? NULL : check->cells[place];
}

static void note_refusal(struct vr_check *check, enum vr_check_kind kind, const struct vr_check_use *use, const struct vr_check_life *life,
                         const struct vr_check_access *access) {
    struct vr_check_finding finding = {.kind = kind,
                                       .earlier = life->freed ? life->end : life->allocated,
                                       .later = *use,
                                       .address = access->address,
                                       .size_bytes = access->size_bytes};
    vr_check_finding_block(&finding, life);
    vr_check_note(check, &finding);
}

// Returns the end of the adjacent cells that are not freed.
static uint64_t end_of_live(const struct vr_check *check, uint64_t address) {
    uint64_t end = address;
    for (size_t i = vr_check_cell_after(check, address); i < check->cell_count; i++) {
        if (check->cells[i]->from > end || check->cells[i]->life->freed) break;
        end = check->cells[i]->end;
    }
    return end;
}

void vr_check_refused(struct vr_check *check, uint64_t stream, struct vr_check_place place, const struct vr_check_access *access) {
    const struct vr_check_cell *cell = cell_of(check, access->address);
    if (vr_check_is_off(check) || cell == NULL) return;
    const struct vr_check_use use = vr_check_use_of(check, stream, access->effect, place);
    if (cell->life->freed)
        note_refusal(check, VR_CHECK_USE_AFTER_FREE, &use, cell->life, access);
    else if (access->address + access->size_bytes > end_of_live(check, access->address))
        note_refusal(check, VR_CHECK_OUT_OF_BOUNDS, &use, cell->life, access);
}

void vr_check_refused_free(struct vr_check *check, uint64_t address, struct vr_check_place place) {
    const struct vr_check_cell *cell = cell_of(check, address);
    if (vr_check_is_off(check) || cell == NULL) return;
    const struct vr_check_use use = vr_check_use_of(check, 0, VR_CHECK_WRITE, place);
    const struct vr_check_access access = {.address = address, .size_bytes = 1};
    note_refusal(check, VR_CHECK_MISUSE, &use, cell->life, &access);
}

// ---- Handles.

#define ENDS_MOST 65536 // destroyed handles that are remembered

void vr_check_destroyed(struct vr_check *check, uint64_t handle, struct vr_check_place place) {
    if (vr_check_is_off(check) || check->end_count >= ENDS_MOST) return;
    if (VR_GROW(check, ends, check->end_count + 1) != VRAM_OK || vr_map_set(&check->destroyed, handle, check->end_count + 1) != VRAM_OK) {
        check->failed = true;
        return;
    }
    check->ends[check->end_count++] = vr_check_use_of(check, 0, VR_CHECK_WRITE, place);
}

void vr_check_used_handle(struct vr_check *check, uint64_t handle, struct vr_check_place place) {
    const uint64_t row = vr_map_get(&check->destroyed, handle);
    if (vr_check_is_off(check) || row == 0) return;
    const struct vr_check_finding finding = {
        .kind = VR_CHECK_MISUSE, .earlier = check->ends[row - 1], .later = vr_check_use_of(check, 0, VR_CHECK_USE, place)};
    vr_check_note(check, &finding);
}

// ---- Collectives.

void vr_check_disagreement(struct vr_check *check, struct vr_check_place place, const char *theirs) {
    if (vr_check_is_off(check)) return;
    const struct vr_check_finding finding = {.kind = VR_CHECK_COLLECTIVE,
                                             .earlier = vr_check_use_of(check, 0, VR_CHECK_USE, (struct vr_check_place){.work = theirs}),
                                             .later = vr_check_use_of(check, 0, VR_CHECK_USE, place)};
    vr_check_note(check, &finding);
}
