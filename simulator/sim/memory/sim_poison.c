// The driver's rule for memory that is mapped at several addresses: what an operation writes through one is seen through another after it
// has ended. Who relies on more than that gets bytes that nobody wrote.
#include "sim/sim.h"

enum { LINE = 512, POISON = 0xDB };

// The rest of the mapping that holds the address; NULL: none does.
static const struct vr_sim_range *mapping_at(const struct vr_sim *sim, uint64_t address, uint64_t end, uint64_t *bytes) {
    const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
    if (mapping == NULL) return NULL;
    const uint64_t stop = vr_sim_range_end(mapping) < end ? vr_sim_range_end(mapping) : end;
    *bytes = stop - address;
    return mapping;
}

static void spoil_range(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (vr_sim_keeps(sim)) {
        (void)vr_sim_transfer_set(sim, address, size_bytes, POISON * 0x01010101u);
    } else {
        memset((void *)(uintptr_t)address, POISON, (size_t)size_bytes);
    }
}

void vr_sim_poison_aliases(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes) {
    uint64_t written = 0, read = 0;
    for (uint64_t a = to; a < to + size_bytes; a += written) {
        const struct vr_sim_range *one = mapping_at(sim, a, to + size_bytes, &written);
        if (one == NULL) return;
        for (uint64_t b = from; b < from + size_bytes; b += read) {
            const struct vr_sim_range *other = mapping_at(sim, b, from + size_bytes, &read);
            if (other == NULL) break;
            if (other == one || other->owner != one->owner) continue;
            const uint64_t low = a - one->base > b - other->base ? a - one->base : b - other->base;
            const uint64_t high = a - one->base + written < b - other->base + read ? a - one->base + written : b - other->base + read;
            if (low < high) spoil_range(sim, one->base + low / LINE * LINE, (high + LINE - 1) / LINE * LINE - low / LINE * LINE);
        }
    }
}
