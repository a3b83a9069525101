#include "snapshot/keep.h"

#include "snapshot/jsontext.h"
#include "snapshot/rows.h"

static enum vram_status add_kept(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint32_t value) {
    enum vram_status status;
    if (machine->kept_order == UINT32_MAX) return VRAM_LIMIT;
    VR_MACHINE_GROW(machine, kept, machine->kept_capacity, machine->kept_count + 1, status);
    VR_TRY(status);
    machine->kept[machine->kept_count] = (struct vr_kept){row, key, value, machine->kept_order++, (uint8_t)owner};
    machine->kept_count++;
    return VRAM_OK;
}

// The text of a value. LIMIT when it is too much; so is all text together, so that values which contain one another cannot be printed for
// ever.
static enum vram_status text_of_value(struct vr_machine *machine, uint64_t value, uint32_t *id) {
    uint64_t resolved = vr_machine_resolve(machine, value), *place = vr_machine_place(machine, value);
    struct vr_text text = {0};
    if (vr_tag_of(resolved) == VR_TAG_JSON) {
        *id = (uint32_t)vr_payload(resolved);
        return VRAM_OK;
    }
    if (machine->text_bytes > machine->builder.budget.limit_bytes) return VRAM_LIMIT;
    enum vram_status status = vr_json_text_write(&text, machine, value);
    machine->text_bytes += text.length;
    if (status == VRAM_OK) status = vr_builder_string(&machine->builder, text.bytes, text.length, id);
    vr_text_release(&text);
    bool is_container = vr_tag_of(resolved) == VR_TAG_LIST || vr_tag_of(resolved) == VR_TAG_DICT;
    if (!is_container) return status;
    vr_machine_drop(machine, value);
    // Whoever refers to the same container finds the text.
    if (place != NULL && vr_tag_of(*place) == VR_TAG_OPAQUE && status == VRAM_OK) *place = vr_value(VR_TAG_JSON, *id);
    return status;
}

enum vram_status vr_keep(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint64_t value) {
    uint32_t id = 0;
    const bool opaque = vr_tag_of(vr_machine_resolve(machine, value)) == VR_TAG_OPAQUE;
    const enum vram_status status = opaque ? VRAM_LIMIT : text_of_value(machine, value, &id);
    // Too deep is refused; of what is too much a reader can do without, and a writer will say it.
    if (status == VRAM_LIMIT && machine->error->status != VRAM_LIMIT) {
        vr_machine_lose(machine, VR_LOSS_TOO_MUCH, key);
        return VRAM_OK;
    }
    VR_TRY(status);
    return add_kept(machine, owner, row, key, id);
}

enum vram_status vr_keep_text(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint32_t text) {
    return add_kept(machine, owner, row, key, text);
}

enum vram_status vr_keep_cancel(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key) {
    return add_kept(machine, owner, row, key, VR_KEPT_CANCELLED);
}

void vr_keep_settle(struct vr_machine *machine, size_t first, uint64_t row) {
    for (size_t i = first; i < machine->kept_count; i++) {
        if (machine->kept[i].row == VR_ROW_PENDING) machine->kept[i].row = row;
    }
}

void vr_keep_forget(struct vr_machine *machine, size_t first) {
    size_t left = first;
    for (size_t i = first; i < machine->kept_count; i++) {
        if (machine->kept[i].row != VR_ROW_PENDING) machine->kept[left++] = machine->kept[i];
    }
    machine->kept_count = left;
}

static int by_key(const void *left, const void *right) {
    const struct vr_kept *a = left, *b = right;
    int rows = vr_row_compare_kept(a, b);
    if (rows != 0) return rows;
    return a->key != b->key ? VR_ORDER(a->key, b->key) : VR_ORDER(a->order, b->order);
}

static int by_order(const void *left, const void *right) {
    const struct vr_kept *a = left, *b = right;
    int rows = vr_row_compare_kept(a, b);
    return rows != 0 ? rows : VR_ORDER(a->order, b->order);
}

void vr_keep_sort(struct vr_machine *machine) {
    size_t left = 0;
    if (machine->kept_count == 0) return;
    qsort(machine->kept, machine->kept_count, sizeof *machine->kept, by_key);
    for (size_t i = 0; i < machine->kept_count; i++) {
        const struct vr_kept *kept = &machine->kept[i];
        bool is_last = i + 1 == machine->kept_count || vr_row_compare_kept(kept, kept + 1) != 0 || kept->key != kept[1].key;
        if (is_last && kept->value != VR_KEPT_CANCELLED) machine->kept[left++] = *kept;
    }
    machine->kept_count = machine->kept_sorted = left;
    qsort(machine->kept, left, sizeof *machine->kept, by_order);
}

size_t vr_kept_of(const struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint64_t count, size_t *first) {
    *first = vr_row_first_kept(machine, machine->kept_count, owner, row);
    return vr_row_first_kept(machine, machine->kept_count, owner, row + count) - *first;
}
