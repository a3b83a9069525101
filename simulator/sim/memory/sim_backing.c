// Backing of device memory: the memory file, real bytes at device addresses, and tickets through which other processes reach them.
#include <stdlib.h>

#include "sim/sim.h"
#include "vram/sim.h"

// ---- The memory file of an instance. It holds all device memory that has bytes, and other processes can map it.

vr_cu_result vr_sim_back_open(struct vr_sim *sim) {
    sim->file = -1;
    if (!sim->options.backed && sim->options.bytes == VRAM_SIM_BYTES_BACKED) return VR_CU_SUCCESS;
    sim->file_bytes = VR_SIM_PAGE_BYTES; // keeps offset 0 free: it means no ticket
    if (vr_os_shared_open(&sim->file) != VRAM_OK) return VR_CU_OPERATING_SYSTEM;
    vr_sim_content_open(&sim->content, sim->file);
    return VR_CU_SUCCESS;
}

void vr_sim_back_close(struct vr_sim *sim) {
    vr_sim_content_release(&sim->content);
    free(sim->written);
    sim->written = NULL;
    free(sim->captured);
    sim->captured = NULL;
    sim->captured_count = sim->captured_capacity = 0;
    if (sim->file >= 0) vr_os_shared_close(sim->file);
    sim->file = -1;
}

// Returns the start of the host page that contains the address.
uint64_t vr_sim_first_page(uint64_t address) { return vr_round_down(address, VR_SIM_PAGE_BYTES); }

// Returns the length of the host pages that contain a range.
static uint64_t sim_page_span(uint64_t address, uint64_t span) {
    return vr_round_up(address + span, VR_SIM_PAGE_BYTES) - vr_sim_first_page(address);
}

// Allocates unused whole pages of the memory file at *offset. In a backed simulator the file is extended to their end.
static vr_cu_result sim_back_extend(struct vr_sim *sim, uint64_t size_bytes, uint64_t *offset) {
    if (vr_sim_keeps(sim)) {
        *offset = vr_sim_content_place(&sim->content, size_bytes);
        return VR_CU_SUCCESS;
    }
    uint64_t end;
    if (!vr_add_u64(sim->file_bytes, size_bytes, &end) || vr_os_shared_resize(sim->file, end) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    *offset = sim->file_bytes;
    sim->file_bytes = end;
    return VR_CU_SUCCESS;
}

// ---- Sharing memory between instances.

static const char magic[8] = "vramtkt1";

// --- the owner's side -----------------------------------------------------------------------------------------------

vr_cu_result vr_sim_ticket_write(struct vr_sim *sim, struct vr_sim_ticket *ticket, uint64_t *place) {
    uint64_t at;
    if (sim->file < 0) return VR_CU_NOT_SUPPORTED;
    const vr_cu_result result = sim_back_extend(sim, VR_SIM_PAGE_BYTES, &at);
    if (result != VR_CU_SUCCESS) return result;
    if (!vr_sim_windows_lengthen(&sim->content.windows, vr_sim_keeps(sim) ? at + VR_SIM_PAGE_BYTES : 0)) return VR_CU_OUT_OF_MEMORY;
    memcpy(ticket->magic, magic, sizeof magic);
    ticket->nonce = vr_mix64(vr_os_monotonic_ns() ^ vr_mix64(vr_os_process_id() << 32 ^ sim->serial) ^ at);
    if (vr_os_shared_write(sim->file, at, ticket, sizeof *ticket) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    if (vr_os_shared_hold(sim->file, at) != VRAM_OK) return VR_CU_OPERATING_SYSTEM;
    *place = at;
    return VR_CU_SUCCESS;
}

// Releases the ticket. The last holder frees the memory.
static void let_go(int file, uint64_t place, uint64_t offset, uint64_t size_bytes) {
    if (vr_os_shared_let_go(file, place)) {
        vr_os_shared_discard(file, offset, size_bytes);
        vr_os_shared_discard(file, place, VR_SIM_PAGE_BYTES);
    }
    vr_os_shared_forget(file, place);
}

void vr_sim_ticket_end(struct vr_sim *sim, uint64_t place, uint64_t offset, uint64_t size_bytes) {
    // A forked child holds neither the memory nor the ticket.
    if (sim->content.windows.process != vr_os_process_id()) return;
    if (place == 0)
        vr_os_shared_discard(sim->file, offset, size_bytes);
    else
        let_go(sim->file, place, offset, size_bytes);
}

vr_cu_result vr_sim_ticket_descriptor(int file, uint64_t place, int *descriptor) {
    int made;
    if (vr_os_shared_reopen(file, &made) != VRAM_OK) return VR_CU_OPERATING_SYSTEM;
    if (vr_os_shared_hold(made, place) != VRAM_OK || vr_os_shared_seek(made, place) != VRAM_OK) {
        vr_os_shared_close(made);
        return VR_CU_OPERATING_SYSTEM;
    }
    *descriptor = made;
    return VR_CU_SUCCESS;
}

// --- the importer's side --------------------------------------------------------------------------------------------

static bool lies_in(uint64_t offset, uint64_t size_bytes, uint64_t file_bytes) {
    return size_bytes <= file_bytes && offset <= file_bytes - size_bytes && offset % VR_SIM_PAGE_BYTES == 0;
}

vr_cu_result vr_sim_ticket_read(int file, uint64_t place, enum vr_sim_ticket_kind kind, struct vr_sim_ticket *ticket) {
    struct vr_shared_facts facts;
    struct vr_sim_ticket read;
    if (vr_os_shared_facts(file, &facts) != VRAM_OK || !lies_in(place, VR_SIM_PAGE_BYTES, facts.size_bytes)) return VR_CU_INVALID_VALUE;
    if (vr_os_shared_read(file, place, &read, sizeof read) != VRAM_OK) return VR_CU_INVALID_VALUE;
    if (memcmp(read.magic, magic, sizeof magic) != 0 || read.kind != (uint32_t)kind) return VR_CU_INVALID_VALUE;
    if (!lies_in(read.offset, read.size_bytes, facts.size_bytes) || read.size_bytes % VR_SIM_PAGE_BYTES != 0) return VR_CU_INVALID_VALUE;
    const bool empty = kind == VR_SIM_TICKET_EVENT || kind == VR_SIM_TICKET_POOL;
    if (read.within >= VR_SIM_PAGE_BYTES || read.beyond >= VR_SIM_PAGE_BYTES || empty != (read.size_bytes == 0)) return VR_CU_INVALID_VALUE;
    if (!empty && read.within + read.beyond >= read.size_bytes) return VR_CU_INVALID_VALUE;
    if (kind == VR_SIM_TICKET_PHYSICAL && read.size_bytes % VR_SIM_GRANULARITY != 0) return VR_CU_INVALID_VALUE;
    *ticket = read;
    return VR_CU_SUCCESS;
}

// Finds or adds the entry of the file. Keeps `file` open in a new entry, otherwise closes it.
static vr_cu_result take_file(struct vr_sim *sim, int file, uint32_t *index) {
    struct vr_shared_facts facts;
    size_t unused = sim->file_count;
    vr_cu_result result = vr_os_shared_facts(file, &facts) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
    for (size_t i = 0; result == VR_CU_SUCCESS && i < sim->file_count; i++) {
        struct vr_sim_file *known = &sim->files[i];
        if (known->references == 0) {
            unused = i;
        } else if (known->volume == facts.volume && known->number == facts.number) {
            vr_os_shared_close(file);
            known->references++;
            *index = (uint32_t)i;
            return VR_CU_SUCCESS;
        }
    }
    if (result == VR_CU_SUCCESS && VR_GROW(sim, files, unused + 1) != VRAM_OK) result = VR_CU_OUT_OF_MEMORY;
    if (result != VR_CU_SUCCESS) {
        vr_os_shared_close(file);
        return result;
    }
    if (unused == sim->file_count) sim->file_count++;
    sim->files[unused] = (struct vr_sim_file){1, facts.volume, facts.number, file};
    *index = (uint32_t)unused;
    return VR_CU_SUCCESS;
}

static void give_file(struct vr_sim *sim, uint32_t index) {
    if (--sim->files[index].references == 0) vr_os_shared_close(sim->files[index].file);
}

// Finds the ticket's entry, or an unused one (*known is false then). Returns SIZE_MAX if the host is out of memory.
static size_t entry_of(struct vr_sim *sim, uint32_t file, uint64_t place, bool *known) {
    size_t unused = sim->shared_count;
    *known = false;
    for (size_t i = 0; i < sim->shared_count; i++) {
        if (sim->shared[i].references == 0)
            unused = i;
        else if (sim->shared[i].file == file && sim->shared[i].ticket == place) {
            *known = true;
            return i;
        }
    }
    if (unused < sim->shared_count) return unused;
    if (VR_GROW(sim, shared, unused + 1) != VRAM_OK) return SIZE_MAX;
    sim->shared[sim->shared_count++] = (struct vr_sim_shared){.references = 0};
    return unused;
}

// Called with the ticket held, so that the ticket cannot disappear between the check and its use.
static vr_cu_result look_at_ticket(struct vr_sim *sim, int file, uint64_t place, enum vr_sim_ticket_kind kind,
                                   struct vr_sim_ticket *ticket) {
    const vr_cu_result result = vr_sim_ticket_read(file, place, kind, ticket);
    if (result != VR_CU_SUCCESS) return result;
    return ticket->device < sim->machine_devices ? VR_CU_SUCCESS : VR_CU_INVALID_DEVICE;
}

static vr_cu_result enter_ticket(struct vr_sim *sim, uint32_t file, uint64_t place, enum vr_sim_ticket_kind kind, uint32_t *index) {
    bool known;
    struct vr_sim_ticket ticket;
    const int opened = sim->files[file].file;
    const size_t entry = entry_of(sim, file, place, &known);
    if (entry == SIZE_MAX) return VR_CU_OUT_OF_MEMORY;
    if (!known && vr_os_shared_hold(opened, place) != VRAM_OK) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = look_at_ticket(sim, opened, place, kind, &ticket);
    if (result != VR_CU_SUCCESS) {
        if (!known) vr_os_shared_forget(opened, place);
        return result;
    }
    struct vr_sim_shared *shared = &sim->shared[entry];
    if (!known)
        *shared = (struct vr_sim_shared){
            .file = file, .ticket = place, .offset = ticket.offset, .size_bytes = ticket.size_bytes, .lent = kind == VR_SIM_TICKET_PIECE};
    shared->references++;
    *index = (uint32_t)entry;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_shared_take(struct vr_sim *sim, int file, uint64_t place, enum vr_sim_ticket_kind kind, uint32_t *index) {
    uint32_t number;
    vr_cu_result result = take_file(sim, file, &number);
    if (result != VR_CU_SUCCESS) return result;
    result = enter_ticket(sim, number, place, kind, index);
    // An entry references its file once, whatever its own number of references.
    if (result != VR_CU_SUCCESS || sim->shared[*index].references > 1) give_file(sim, number);
    return result;
}

vr_cu_result vr_sim_shared_take_descriptor(struct vr_sim *sim, void *descriptor, enum vr_sim_ticket_kind kind, uint32_t *index) {
    const uint64_t number = (uint64_t)(uintptr_t)descriptor;
    struct vr_shared_facts facts;
    int file;
    if (number > INT32_MAX || vr_os_shared_facts((int)number, &facts) != VRAM_OK) return VR_CU_INVALID_VALUE;
    if (vr_os_shared_reopen((int)number, &file) != VRAM_OK) return VR_CU_OPERATING_SYSTEM;
    return vr_sim_shared_take(sim, file, facts.position, kind, index);
}

void vr_sim_shared_give(struct vr_sim *sim, uint32_t index) {
    struct vr_sim_shared *shared = &sim->shared[index];
    if (--shared->references > 0) return;
    if (shared->view != 0) vr_os_unmap(shared->view, shared->size_bytes);
    let_go(sim->files[shared->file].file, shared->ticket, shared->offset, shared->lent ? 0 : shared->size_bytes);
    give_file(sim, shared->file);
}

int vr_sim_shared_file(const struct vr_sim *sim, uint32_t index) { return sim->files[sim->shared[index].file].file; }

bool vr_sim_shared_view(struct vr_sim *sim, uint32_t index, uint64_t *host) {
    struct vr_sim_shared *shared = &sim->shared[index];
    uint64_t view = shared->view;
    if (view == 0) {
        if (vr_os_map(0, shared->size_bytes, 0, false, &view) != VRAM_OK) return false;
        const bool shown = vr_os_shared_map(sim->files[shared->file].file, shared->offset, shared->size_bytes, view) == VRAM_OK &&
                           vr_os_protect(view, shared->size_bytes, true, true) == VRAM_OK;
        if (!shown) {
            vr_os_unmap(view, shared->size_bytes);
            return false;
        }
        shared->view = view;
    }
    *host = view;
    return true;
}

// ---- Real bytes at the simulated addresses. All device memory of an instance is in one memory file. An allocation maps its part at its
// address; a mapping maps the part of its handle, so two mappings of one handle share bytes in any process. If contents are kept apart
// (sim_content.h), a part of the file is only a place and nothing is mapped.

vr_cu_result vr_sim_back_place(struct vr_sim *sim, struct vr_sim_place *place, bool accessible) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    uint64_t mapped, first = vr_sim_first_page(place->address), span = sim_page_span(place->address, place->span);
    if (vr_os_map(first, span, 0, accessible, &mapped) == VRAM_OK) return VR_CU_SUCCESS;
    if (place->fixed) return VR_CU_INVALID_VALUE;
    if (vr_os_map(0, span, place->alignment, accessible, &mapped) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    place->address = mapped;
    return VR_CU_SUCCESS;
}

void vr_sim_back_remove(struct vr_sim *sim, uint64_t address, uint64_t span) {
    if (sim->options.backed) vr_os_unmap(vr_sim_first_page(address), sim_page_span(address, span));
}

vr_cu_result vr_sim_back_fill(struct vr_sim *sim, uint64_t address, uint64_t span, uint64_t *offset) {
    if (vr_sim_keeps(sim)) return sim_back_extend(sim, span, offset);
    if (!sim->options.backed) return VR_CU_SUCCESS;
    const uint64_t first = vr_sim_first_page(address), size_bytes = sim_page_span(address, span);
    vr_cu_result result = sim_back_extend(sim, size_bytes, offset);
    if (result == VR_CU_SUCCESS && vr_os_shared_map(sim->file, *offset, size_bytes, first) != VRAM_OK) result = VR_CU_OUT_OF_MEMORY;
    return result == VR_CU_SUCCESS ? vr_sim_back_protect(sim, first, size_bytes, true, true) : result;
}

uint64_t vr_sim_back_span(const struct vr_sim *sim, const struct vr_sim_range *range) {
    return sim->options.backed ? sim_page_span(range->base, range->span) : vr_round_up(range->span, VR_SIM_PAGE_BYTES);
}

uint64_t vr_sim_back_keep(struct vr_sim *sim, uint64_t span) { return vr_sim_keeps(sim) ? vr_sim_content_place(&sim->content, span) : 0; }

void vr_sim_back_drop(struct vr_sim *sim, const struct vr_sim_range *range, uint64_t address, uint64_t size_bytes) {
    if (vr_sim_keeps(sim)) vr_sim_content_drop(&sim->content, range->read_mask + (address - range->base), size_bytes, false);
}

void vr_sim_back_give(struct vr_sim *sim, uint64_t ticket, uint64_t offset, uint64_t size_bytes) {
    if (sim->file < 0) return;
    if (vr_sim_keeps(sim)) vr_sim_content_drop(&sim->content, offset, size_bytes, ticket != 0);
    if (!vr_sim_keeps(sim) || ticket != 0) vr_sim_ticket_end(sim, ticket, offset, size_bytes);
}

vr_cu_result vr_sim_back_share(struct vr_sim *sim, uint64_t offset, uint64_t size_bytes) {
    if (sim->file < 0) return VR_CU_NOT_SUPPORTED;
    return !vr_sim_keeps(sim) || vr_sim_content_share(&sim->content, offset, size_bytes) ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_create(struct vr_sim *sim, struct vr_sim_physical *physical) {
    return sim->file >= 0 ? sim_back_extend(sim, physical->size_bytes, &physical->file_offset) : VR_CU_SUCCESS;
}

void vr_sim_back_discard(struct vr_sim *sim, const struct vr_sim_physical *physical) {
    if (physical->shared != 0)
        vr_sim_shared_give(sim, physical->shared - 1);
    else
        vr_sim_back_give(sim, physical->ticket, physical->file_offset, physical->size_bytes);
}

vr_cu_result vr_sim_back_map(struct vr_sim *sim, const struct vr_sim_physical *physical, uint64_t address, uint64_t size_bytes) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    const int file = physical->shared != 0 ? vr_sim_shared_file(sim, physical->shared - 1) : sim->file;
    return vr_os_shared_map(file, physical->file_offset, size_bytes, address) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_unmap(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_shared_unmap(address, size_bytes) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_protect(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool read, bool write) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_protect(address, size_bytes, read, write) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}
