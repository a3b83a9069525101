// What the values of a machine are: numbers and containers.
#include <math.h>

#include "snapshot/pickle_vm.h"

const char *vr_tag_text(enum vr_tag tag) {
    static const char *const texts[] = {
#define TAG_TEXT(name, text) text,
        VR_TAGS(TAG_TEXT)
#undef TAG_TEXT
    };
    return (size_t)tag < VR_COUNT_OF(texts) ? texts[tag] : "nothing";
}

double vr_machine_float(const struct vr_machine *machine, uint64_t resolved) {
    double number;
    memcpy(&number, &machine->wide[vr_payload(resolved)], sizeof number);
    return number;
}

// JSON made by others may write whole numbers as 1e9 or 5.0.
static bool whole_float(double number, uint64_t *bits, bool *negative) {
    if (!(number > -0x1p63 && number < 0x1p63) || number != floor(number)) return false;
    *negative = number < 0;
    *bits = (uint64_t)(int64_t)number;
    return true;
}

bool vr_machine_number(const struct vr_machine *machine, uint64_t resolved, uint64_t *number, bool *negative) {
    switch (vr_tag_of(resolved)) {
    case VR_TAG_INT:
        *number = (uint64_t)vr_int_of(resolved);
        *negative = vr_int_of(resolved) < 0;
        return true;
    case VR_TAG_BOOL:
        *number = vr_payload(resolved);
        *negative = false;
        return true;
    case VR_TAG_WIDE:
        *number = machine->wide[vr_payload(resolved)];
        *negative = (int64_t)*number < 0;
        return true;
    case VR_TAG_UNSIGNED:
        *number = machine->wide[vr_payload(resolved)];
        *negative = false;
        return true;
    case VR_TAG_FLOAT: return whole_float(vr_machine_float(machine, resolved), number, negative);
    default: return false;
    }
}

const char *vr_machine_what(const struct vr_machine *machine, uint64_t value) {
    const uint64_t resolved = vr_machine_resolve((struct vr_machine *)(uintptr_t)machine, value);
    const struct vr_strings *strings = &machine->builder.strings;
    if (vr_tag_of(resolved) != VR_TAG_JSON) return vr_tag_text(vr_tag_of(resolved));
    const char first = strings->bytes[strings->offset[vr_payload(resolved)]];
    return first == '-' || (first >= '0' && first <= '9') ? "a number of more than 64 bits" : vr_tag_text(VR_TAG_JSON);
}

// ---- containers

bool vr_machine_items(const struct vr_machine *machine, uint64_t resolved, const uint64_t **items, size_t *count) {
    if (vr_tag_of(resolved) == VR_TAG_NO_ITEMS) {
        *items = NULL;
        *count = 0;
        return true;
    }
    if (vr_tag_of(resolved) != VR_TAG_LIST) return false;
    *items = machine->nodes[vr_payload(resolved)].items;
    *count = machine->nodes[vr_payload(resolved)].count;
    return true;
}

void vr_machine_note_items(struct vr_machine *machine, const char *key, uint64_t resolved) {
    uint32_t id = 0;
    if (vr_machine_items_of(machine, resolved) == VR_ITEMS_LIST) return;
    (void)vr_builder_find_string(&machine->builder, key, strlen(key), &id);
    vr_machine_lose(machine, VR_LOSS_NOT_A_LIST, id);
}

void vr_machine_release_node(struct vr_machine *machine, size_t index) {
    struct vr_node *node = &machine->nodes[index];
    free(node->items);
    machine->builder.budget.used_bytes -= (uint64_t)node->capacity * sizeof *node->items;
    memset(node, 0, sizeof *node);
    if (index + 1 == machine->node_count) machine->node_count--;
}

void vr_machine_drop(struct vr_machine *machine, uint64_t value) {
    uint64_t *place = vr_machine_place(machine, value);
    uint64_t resolved = vr_machine_resolve(machine, value);
    if (vr_tag_of(resolved) != VR_TAG_LIST && vr_tag_of(resolved) != VR_TAG_DICT) return;
    if (machine->nodes[vr_payload(resolved)].busy) return;
    vr_machine_release_node(machine, (size_t)vr_payload(resolved));
    if (place != NULL) *place = vr_value(VR_TAG_OPAQUE, 0);
}
