// misplaced.c: see misplaced.h.
#include "snapshot/misplaced.h"

static bool is_recording(struct vr_machine *machine, uint64_t value) {
    const uint64_t *pairs;
    size_t count;
    if (!vr_machine_pairs(machine, vr_machine_resolve(machine, value), &pairs, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        if (pairs[2 * i] == vr_value(VR_TAG_STRING, VR_WORD_SEGMENTS) || pairs[2 * i] == vr_value(VR_TAG_STRING, VR_WORD_DEVICE_TRACES))
            return true;
    }
    return false;
}

enum vram_status vr_misplaced_dict(struct vr_machine *machine, const uint64_t *pairs, size_t count) {
    const struct vr_strings *strings = &machine->builder.strings;
    for (size_t i = 0; i < count; i++) {
        if (vr_tag_of(pairs[2 * i]) != VR_TAG_STRING || !is_recording(machine, pairs[2 * i + 1])) continue;
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT,
                               "not a recording but a dictionary with one, `%.40s`; save that into a file of its own",
                               strings->bytes + strings->offset[vr_payload(pairs[2 * i])]);
    }
    return VRAM_OK;
}

enum vram_status vr_misplaced_list(struct vr_machine *machine, const uint64_t *items, size_t count) {
    const uint64_t *inner;
    size_t inner_count;
    if (count == 0) return VRAM_OK;
    if (is_recording(machine, items[0]))
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "not a recording but a list of %zu; save each into a file of its own", count);
    const uint64_t first = vr_machine_resolve(machine, items[0]);
    const bool lists = vr_machine_items(machine, first, &inner, &inner_count) && (inner_count == 0 || vr_tag_of(inner[0]) == VR_TAG_EVENT);
    if (!lists && vr_tag_of(first) != VR_TAG_EVENT) return VRAM_OK;
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "events without their segments; save all that torch.cuda.memory._snapshot() returns");
}
