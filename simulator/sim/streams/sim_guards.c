#include "sim/streams/sim_guards.h"

#include "sim/streams/sim_checking.h"

// Maximum number of guards at a time. Further copies are not guarded, which can only lose findings.
#define GUARDS_MOST 256

static uint64_t page_of(uint64_t address) { return vr_round_down(address, VR_SIM_PAGE_BYTES); }
static uint64_t page_end(uint64_t address) { return vr_round_up(address, VR_SIM_PAGE_BYTES); }

// ---- Protection of pages.

// Returns what the guards allow at a page, and sets *end to where that may change, at most its old value.
static enum vr_sim_page_access access_at(const struct vr_sim *sim, uint64_t page, uint64_t *end) {
    enum vr_sim_page_access access = VR_SIM_PAGE_OPEN;
    for (size_t i = 0; i < sim->guard_count; i++) {
        const struct vr_sim_guard *guard = &sim->guards[i];
        const uint64_t from = page_of(guard->from), until = page_end(guard->end);
        if (from > page && from < *end) *end = from;
        if (from > page || until <= page) continue;
        if (until < *end) *end = until;
        if (guard->written)
            access = VR_SIM_PAGE_CLOSED;
        else if (access == VR_SIM_PAGE_OPEN)
            access = VR_SIM_PAGE_READABLE;
    }
    return access;
}

// Protects the pages of a range as the guards need.
static void protect(struct vr_sim *sim, uint64_t from, uint64_t end) {
    for (uint64_t page = page_of(from), next; page < page_end(end); page = next) {
        next = page_end(end);
        const enum vr_sim_page_access access = access_at(sim, page, &next);
        sim->checking->protect(page, next - page, access);
    }
}

static void remove_guard(struct vr_sim *sim, size_t at) {
    const struct vr_sim_guard guard = sim->guards[at];
    sim->guards[at] = sim->guards[--sim->guard_count];
    protect(sim, guard.from, guard.end);
}

// ---- Guards.

// Returns whether the range can be guarded.
static bool is_ours(const struct vr_sim *sim, uint64_t from, uint64_t end) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->hosts, from);
    const bool own = range != NULL && (range->kind == VR_SIM_HOST_ALLOCATED || range->kind == VR_SIM_HOST_MANAGED);
    return own && end <= vr_sim_range_end(range);
}

static void add_guard(struct vr_sim *sim, const struct vr_sim_guard *guard) {
    if (!is_ours(sim, guard->from, guard->end)) return;
    if (sim->guard_count >= GUARDS_MOST || VR_GROW(sim, guards, sim->guard_count + 1) != VRAM_OK) return;
    sim->guards[sim->guard_count++] = *guard;
    protect(sim, guard->from, guard->end);
}

void vr_sim_guards_add_accesses(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_check_access *accesses,
                                size_t count) {
    if (sim->checking->protect == NULL || count == 0) return;
    const uint64_t position = vr_check_position(sim->checking->check, stream->serial);
    if (vr_check_host_knows(sim->checking->check, position)) return;
    for (size_t i = 0; i < count; i++) {
        const struct vr_sim_guard guard = {.from = accesses[i].address,
                                           .end = accesses[i].address + (accesses[i].size_bytes == 0 ? 1 : accesses[i].size_bytes),
                                           .position = position,
                                           .written = accesses[i].effect == VR_CHECK_WRITE};
        if (accesses[i].effect != VR_CHECK_USE && !accesses[i].anywhere) add_guard(sim, &guard);
    }
}

void vr_sim_guards_add(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    struct vr_check_access accesses[VR_SIM_WORK_ACCESSES];
    vr_sim_guards_add_accesses(sim, stream, accesses, vr_sim_work_accesses(work, accesses));
}

void vr_sim_guards_refresh(struct vr_sim *sim) {
    for (size_t i = sim->guard_count; i-- > 0;)
        if (vr_check_host_knows(sim->checking->check, sim->guards[i].position)) remove_guard(sim, i);
}

void vr_sim_guards_end(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    for (size_t i = sim->guard_count; i-- > 0;)
        if (page_of(sim->guards[i].from) < page_end(address + size_bytes) && page_of(address) < page_end(sim->guards[i].end))
            remove_guard(sim, i);
}

// ---- The simulator's own accesses.

static void set_pages(struct vr_sim *sim, const struct vr_sim_work *work, bool open) {
    struct vr_check_access accesses[VR_SIM_WORK_ACCESSES];
    if (sim->guard_count == 0) return;
    const size_t count = vr_sim_work_accesses(work, accesses);
    for (size_t i = 0; i < count; i++) {
        const uint64_t from = accesses[i].address, end = from + accesses[i].size_bytes;
        if (!is_ours(sim, from, end)) continue;
        if (open)
            sim->checking->protect(page_of(from), page_end(end) - page_of(from), VR_SIM_PAGE_OPEN);
        else
            protect(sim, from, end);
    }
}

void vr_sim_guards_open(struct vr_sim *sim, const struct vr_sim_work *work) { set_pages(sim, work, true); }
void vr_sim_guards_close(struct vr_sim *sim, const struct vr_sim_work *work) { set_pages(sim, work, false); }

void vr_sim_guards_close_all(struct vr_sim *sim) {
    for (size_t i = 0; i < sim->guard_count; i++) protect(sim, sim->guards[i].from, sim->guards[i].end);
}

// ---- Faults.

bool vr_sim_guards_fault(struct vr_sim *sim, uint64_t address, bool write, struct vr_check_place place) {
    uint64_t end = UINT64_MAX;
    if (access_at(sim, page_of(address), &end) == VR_SIM_PAGE_OPEN) return false;
    const struct vr_check_access access = {.address = address, .size_bytes = 1, .effect = write ? VR_CHECK_WRITE : VR_CHECK_READ};
    vr_check_host_use(sim->checking->check, place, &access);
    vr_sim_guards_end(sim, address, 1);
    return true;
}
