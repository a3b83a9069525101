// Copies and fills between addresses, and poisoning of aliases.
#include "sim/sim.h"

// ---- Transfers where contents are kept apart from the addresses (bytes=sparse, bytes=none).

// The memory at an address, and its length: host bytes, or a place in the instance's content.
struct spot {
    unsigned char *host; // NULL: at `place`
    bool foreign;        // device memory of another process, although mapped on the host
    uint64_t place;      // 0: contents are not kept
    uint64_t size_bytes;
};

static struct spot on_host(uint64_t host, uint64_t size_bytes) {
    return (struct spot){.host = (unsigned char *)(uintptr_t)host, .size_bytes = size_bytes};
}

// Finds a spot in memory shared with another process, mapping it on the host at first use. Returns false if the host is out of memory.
static bool find_shared(struct vr_sim *sim, uint32_t shared, uint64_t within, uint64_t size_bytes, struct spot *spot) {
    uint64_t view;
    if (!vr_sim_shared_view(sim, shared, &view)) return false;
    *spot = on_host(view + within, size_bytes);
    spot->foreign = true;
    return true;
}

static bool find_mapped(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, struct spot *spot) {
    const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
    if (mapping == NULL) return false;
    const struct vr_sim_physical *physical =
        (const struct vr_sim_physical *)(const void *)vr_sim_slots_item(&sim->physicals, (uint32_t)mapping->owner);
    const uint64_t within = address - mapping->base, rest = mapping->span - within;
    if (rest < size_bytes) size_bytes = rest;
    if (physical->shared != 0) return find_shared(sim, physical->shared - 1, within, size_bytes, spot);
    *spot = (struct spot){.place = physical->file_offset + within, .size_bytes = size_bytes};
    return true;
}

static bool find_spot(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, struct spot *spot) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, address);
    if (range == NULL) {
        *spot = on_host(address, size_bytes);
        return true;
    }
    if (range->kind == VR_SIM_RESERVATION) return find_mapped(sim, address, size_bytes, spot);
    const uint64_t within = address - range->base, rest = range->span - within;
    if (rest < size_bytes) size_bytes = rest;
    if (range->kind == VR_SIM_IMPORT || range->kind == VR_SIM_POOL_IMPORT)
        return find_shared(sim, (uint32_t)range->read_mask, range->base % VR_SIM_PAGE_BYTES + within, size_bytes, spot);
    *spot = (struct spot){.place = range->read_mask == 0 ? 0 : range->read_mask + within, .size_bytes = size_bytes};
    return true;
}

static bool move_piece(struct vr_sim *sim, const struct spot *to, const struct spot *from, uint64_t size_bytes, bool keep) {
    struct vr_sim_content *content = &sim->content;
    if (to->host != NULL && from->host != NULL) {
        memmove(to->host, from->host, (size_t)size_bytes);
        return true;
    }
    if (to->host != NULL && from->place == 0) {
        vr_sim_content_clear(to->host, size_bytes);
        return true;
    }
    if (to->host != NULL) {
        struct vr_sim_read unseen = {0};
        return vr_sim_content_read(content, from->place, size_bytes, to->host, to->foreign ? &unseen : &sim->read);
    }
    if (to->place == 0 || (from->host == NULL && from->place == 0)) return true;
    if (from->host == NULL) return vr_sim_content_copy(content, to->place, from->place, size_bytes);
    return keep ? vr_sim_content_write(content, to->place, size_bytes, from->host) : vr_sim_content_forget(content, to->place, size_bytes);
}

// --- the bitmap of written addresses --------------------------------------------------------------------------------

// One bit per 2 MiB for 2 TiB of addresses; addresses farther apart share bits. Set where a copy or fill ever wrote, so that a launch skips
// memory that was never written. If the bitmap cannot be allocated, everything counts as written.
#define WRITTEN_BITS ((uint64_t)1 << 20)

static uint64_t written_bit(uint64_t address) { return address / VR_SIM_GRANULARITY % WRITTEN_BITS; }

static void note_written(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (!vr_sim_is_near(&sim->allocated, address) && !vr_sim_is_near(&sim->reserved, address)) return;
    if (sim->written == NULL) sim->written = calloc(WRITTEN_BITS / 64, sizeof *sim->written);
    if (sim->written == NULL) return;
    const uint64_t last = (address + size_bytes - 1) / VR_SIM_GRANULARITY;
    for (uint64_t at = address / VR_SIM_GRANULARITY; at <= last; at++) sim->written[at % WRITTEN_BITS / 64] |= (uint64_t)1 << at % 64;
}

static bool may_be_written(const struct vr_sim *sim, uint64_t address) {
    const uint64_t bit = written_bit(address);
    return sim->written == NULL || (sim->written[bit / 64] >> bit % 64 & 1) != 0;
}

// --- moving ---------------------------------------------------------------------------------------------------------

bool vr_sim_transfer_copy(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes, bool keep) {
    if (size_bytes > 0) note_written(sim, to, size_bytes);
    while (size_bytes > 0) {
        struct spot into, out;
        if (!find_spot(sim, to, size_bytes, &into) || !find_spot(sim, from, into.size_bytes, &out)) return false;
        if (!move_piece(sim, &into, &out, out.size_bytes, keep)) return false;
        to += out.size_bytes;
        from += out.size_bytes;
        size_bytes -= out.size_bytes;
    }
    return true;
}

bool vr_sim_transfer_set(struct vr_sim *sim, uint64_t to, uint64_t size_bytes, uint32_t pattern) {
    if (size_bytes > 0) note_written(sim, to, size_bytes);
    for (uint64_t done = 0; done < size_bytes;) {
        struct spot spot;
        if (!find_spot(sim, to + done, size_bytes - done, &spot)) return false;
        const uint32_t turned = vr_sim_content_word(pattern, 4 - done % 4); // its first byte is the one at to + done
        if (spot.host != NULL)
            vr_sim_content_paint(spot.host, 0, spot.size_bytes, turned);
        else if (spot.place != 0 &&
                 !vr_sim_content_fill(&sim->content, spot.place, spot.size_bytes, vr_sim_content_word(turned, spot.place)))
            return false;
        done += spot.size_bytes;
    }
    return true;
}

void vr_sim_transfer_pass(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool updates) {
    struct spot spot;
    if (VR_LIKELY(!may_be_written(sim, address)) || size_bytes == 0) return;
    // If the host is out of memory, older data stays.
    if (find_spot(sim, address, size_bytes, &spot) && spot.place != 0)
        (void)vr_sim_content_pass(&sim->content, spot.place, spot.size_bytes, updates);
}

void vr_sim_transfer_lose(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    struct spot spot;
    for (uint64_t done = 0; done < size_bytes && find_spot(sim, address + done, size_bytes - done, &spot); done += spot.size_bytes)
        if (spot.place != 0 && !vr_sim_content_lose(&sim->content, spot.place, spot.size_bytes)) return;
}

// --- results of kernels computed on the host ------------------------------------------------------------------------

static bool read_spot(struct vr_sim *sim, const struct spot *spot, uint64_t size_bytes, unsigned char *bytes, uint8_t *levels) {
    if (spot->host == NULL && spot->place != 0) return vr_sim_content_look(&sim->content, spot->place, size_bytes, bytes, levels);
    if (spot->host != NULL)
        memcpy(bytes, spot->host, (size_t)size_bytes);
    else
        memset(bytes, 0, (size_t)size_bytes);
    memset(levels, spot->host != NULL ? VR_SIM_KNOWN : VR_SIM_UNKNOWN, (size_t)size_bytes);
    return true;
}

bool vr_sim_transfer_look(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, unsigned char *bytes, uint8_t *levels) {
    for (uint64_t done = 0; done < size_bytes;) {
        struct spot spot;
        if (!find_spot(sim, address + done, size_bytes - done, &spot)) return false;
        if (!read_spot(sim, &spot, spot.size_bytes, bytes + done, levels + done)) return false;
        done += spot.size_bytes;
    }
    return true;
}

bool vr_sim_transfer_result(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, const unsigned char *bytes, uint8_t level) {
    if (size_bytes > 0) note_written(sim, address, size_bytes);
    for (uint64_t done = 0; done < size_bytes;) {
        struct spot spot;
        if (!find_spot(sim, address + done, size_bytes - done, &spot)) return false;
        const unsigned char *from = bytes == NULL ? NULL : bytes + done;
        if (spot.host != NULL && from != NULL) memcpy(spot.host, from, (size_t)spot.size_bytes);
        if (spot.place != 0 && !vr_sim_content_result(&sim->content, spot.place, spot.size_bytes, from, (enum vr_sim_level)level))
            return false;
        done += spot.size_bytes;
    }
    return true;
}

// ---- The driver's rule for memory mapped at several addresses: a write through one address is visible through another only after the
// operation has ended. A program that relies on more reads bytes that were never written.

enum { LINE = 512, POISON = 0xDB };

// Returns the mapping that contains the address, and in *bytes the rest of it up to `end`. Returns NULL if nothing is mapped there.
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
