// sim_memory.h: device memory, address space and the host's memory: where they lie, what bytes stand behind them, who else has them.
#ifndef VR_SIM_MEMORY_SIM_MEMORY_H
#define VR_SIM_MEMORY_SIM_MEMORY_H

#include "os/os.h"
#include "sim/sim_calls.h"
#include "sim/sim_ranges.h"
#include "sim/sim_slots.h"

#define VR_SIM_GRANULARITY (2 * VR_MIB)        // of cuMemCreate, cuMemMap and reservations
#define VR_SIM_LIMIT       ((uint64_t)1 << 56) // no device address at or above
#define VR_SIM_PAGE_BYTES  vr_os_page_bytes()  // host page: backed memory comes in these

// What occupies device address space.
enum vr_sim_kind {
    VR_SIM_ALLOCATION,
    VR_SIM_RESERVATION,
    VR_SIM_IMPORT /* an allocation of another process */,
    VR_SIM_CHUNK /* of a pool */,
    VR_SIM_GRAPH_MEMORY,
    VR_SIM_POOL_IMPORT /* a piece of a pool of another process */,
    VR_SIM_INNER /* the driver's own, for an object of the program */
};
// What a range of the host is.
enum vr_sim_host_kind { VR_SIM_HOST_ALLOCATED, VR_SIM_HOST_REGISTERED, VR_SIM_HOST_MANAGED /* see sim_managed.h */ };

// A physical allocation of cuMemCreate. It lives while its handle or a mapping lives.
struct vr_sim_physical {
    struct vr_sim_slot slot;
    uint32_t device;
    uint64_t size_bytes;
    uint64_t mappings;
    uint64_t file_offset;   // where its bytes lie in the instance's file, or in that of the other process
    uint64_t references;    // of the handle: how often it must be released
    int32_t handle_types;   // that it was asked for with
    uint64_t ticket;        // where its ticket lies in the file; 0: never exported
    uint32_t shared;        // imported: number of its struct vr_sim_shared, plus one; 0: made here
    uint8_t rdma, compress; // as asked for
    uint64_t bindings;      // of it to multicast objects
    uint32_t team;          // a multicast object: of how many devices; it takes no memory. 0: memory
    uint64_t members;       // devices of this process that were added
};

// Memory, whole or a part, that a multicast object has at an offset of its own.
struct vr_sim_binding {
    uint32_t object, memory; // slots of struct vr_sim_physical
    uint64_t offset_bytes, size_bytes;
};

// Memory of another process, or of this one imported again. Holds the ticket's byte in the file, so that its bytes stay.
struct vr_sim_shared {
    uint64_t references; // objects that name it; 0: unused entry
    uint32_t file;       // entry in the instance's list of foreign files
    uint64_t ticket;     // its place in that file, and of the memory
    uint64_t offset, size_bytes;
    bool lent;     // the memory is a pool's, which alone gives it back
    uint64_t view; // where the host sees it, 0 until somebody looks
};

// A memory file of another instance.
struct vr_sim_file {
    uint64_t references; // entries of vr_sim_shared; 0: unused entry
    uint64_t volume, number;
    int file;
};

struct vr_sim_queue {
    uint64_t *items;
    size_t items_capacity, count, next; // items[next..count) are waiting
};

// --- sim_alloc.c, sim_alloc.c, sim_vmm.c -----------------------------------------------------------------------------

// Frees every cuMemAlloc allocation (every host allocation and registration) of the context; 0: of every context.
void vr_sim_free_allocations(struct vr_sim *sim, uint64_t context);
void vr_sim_free_hosts(struct vr_sim *sim, uint64_t context);
// Takes down every mapping, reservation and physical allocation, when the simulator ends.
void vr_sim_free_vmm(struct vr_sim *sim);

// --- sim_vmm.c -------------------------------------------------------------------------------------------------

// --- sim_regions.c ----------------------------------------------------------------------------------------------------

// [lowest, highest): what lies in it was once near device memory, so that it is not the host's. lowest is UINT64_MAX at first.
struct vr_sim_extent {
    uint64_t lowest, highest;
};
VR_INLINE bool vr_sim_is_near(const struct vr_sim_extent *extent, uint64_t address) {
    return address >= extent->lowest && address < extent->highest;
}

// Where something goes in device address space.
struct vr_sim_place {
    uint64_t address;
    uint64_t span;      // bytes that it occupies
    uint64_t alignment; // that another address would need
    bool fixed;         // the address was queued or hinted: there or nowhere
};
// SUCCESS; INVALID_VALUE when a queued address (which is used up then) overlaps something; OUT_OF_MEMORY when the address space is
// full. The address counts as given out: the next one differs. span is size_bytes for a queued address.
vr_cu_result vr_sim_place_alloc(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, struct vr_sim_place *place);
// For a chunk of a pool, which takes no queued address.
vr_cu_result vr_sim_place_chunk(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, struct vr_sim_place *place);
// What one of these two placed is gone from the table of address space.
void vr_sim_place_freed(struct vr_sim *sim, uint32_t device, uint64_t address, uint64_t span);
// What was placed does not come to lie there after all; or something comes to lie there by no rule of the device's.
void vr_sim_place_lost(struct vr_sim *sim, const struct vr_sim_place *place);
// alignment is a power of two; a hint (0: none) that cannot be had is ignored.
vr_cu_result vr_sim_place_reservation(struct vr_sim *sim, uint64_t size_bytes, uint64_t alignment, uint64_t hint,
                                      struct vr_sim_place *place);
vr_cu_result vr_sim_queue_push(struct vr_sim_queue *queue, uint64_t address);

// --- sim_backing.c: the memory file. Not opened when the simulator keeps nothing ---------------------------------------

vr_cu_result vr_sim_back_open(struct vr_sim *sim);
void vr_sim_back_close(struct vr_sim *sim);
uint64_t vr_sim_first_page(uint64_t address);

// --- sim_backing.c: bytes behind the addresses, or kept apart from them. All of it succeeds and does nothing when nothing is kept ---

// Puts memory (or, for a reservation, inaccessible address space) there. Moves place->address when it is not fixed and the host has
// something else at it.
vr_cu_result vr_sim_back_place(struct vr_sim *sim, struct vr_sim_place *place, bool accessible);
void vr_sim_back_remove(struct vr_sim *sim, uint64_t address, uint64_t span);
// Puts bytes of the memory file behind [address, address + span) of vr_sim_back_place(); *offset is where its first page lies there.
vr_cu_result vr_sim_back_fill(struct vr_sim *sim, uint64_t address, uint64_t span, uint64_t *offset);
// Of a range that no other process can have: where what it holds is kept; 0 where that is behind the addresses, or not kept.
uint64_t vr_sim_back_keep(struct vr_sim *sim, uint64_t span);
// [address, address + size_bytes) of such a range is free, so that what it holds is gone.
void vr_sim_back_drop(struct vr_sim *sim, const struct vr_sim_range *range, uint64_t address, uint64_t size_bytes);
// What vr_sim_back_fill() gave goes back, unless another process has it. `ticket`: 0 when none was written.
void vr_sim_back_give(struct vr_sim *sim, uint64_t ticket, uint64_t offset, uint64_t size_bytes);
// Other processes are about to have it: its bytes lie in the file from now on.
vr_cu_result vr_sim_back_share(struct vr_sim *sim, uint64_t offset, uint64_t size_bytes);
// Bytes of the file that it has of a range of vr_sim_back_fill(): whole pages.
uint64_t vr_sim_back_span(const struct vr_sim *sim, const struct vr_sim_range *range);
// Gives a physical allocation its part of the memory file, and takes the memory of it back.
vr_cu_result vr_sim_back_create(struct vr_sim *sim, struct vr_sim_physical *physical);
void vr_sim_back_discard(struct vr_sim *sim, const struct vr_sim_physical *physical);
vr_cu_result vr_sim_back_map(struct vr_sim *sim, const struct vr_sim_physical *physical, uint64_t address, uint64_t size_bytes);
vr_cu_result vr_sim_back_unmap(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
vr_cu_result vr_sim_back_protect(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool read, bool write);

// --- sim_transfer.c: bytes from address to address, where they are kept apart from the addresses (vr_sim_keeps()) ----

// After a copy: what it read and wrote through two addresses of one physical allocation is spoiled (poison_aliases).
void vr_sim_poison_aliases(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes);

// Addresses of the host or of devices, all valid. False when the host has no memory. Unless `keep`, what comes from the host is not kept.
bool vr_sim_transfer_copy(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes, bool keep);
// Four bytes over and over.
bool vr_sim_transfer_set(struct vr_sim *sim, uint64_t to, uint64_t size_bytes, uint32_t pattern);
// A kernel is given an address near a device's memory, and writes there; at most size_bytes. `updates`: what it fills, it may have read.
void vr_sim_transfer_pass(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool updates);
// The bytes at an address and a level for each (enum vr_sim_level), as a read that is not listed.
bool vr_sim_transfer_look(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, unsigned char *bytes, uint8_t *levels);
// A kernel's result, all of one level.
bool vr_sim_transfer_result(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, const unsigned char *bytes, uint8_t level);

// --- sim_backing.c: what one process tells another about memory in its file -----------------------------------------

// A page of the file says what lies where. Whoever uses the memory (its owner, a descriptor under way, an importer) holds a byte of the
// file; who lets go last gives the memory back. A process that dies lets go.
enum vr_sim_ticket_kind {
    VR_SIM_TICKET_PHYSICAL = 1,
    VR_SIM_TICKET_ALLOCATION,
    VR_SIM_TICKET_EVENT,
    VR_SIM_TICKET_POOL,
    VR_SIM_TICKET_PIECE
};
struct vr_sim_ticket {
    char magic[8];
    uint64_t nonce; // no other ticket of this machine has it
    uint64_t offset, size_bytes;
    uint64_t within;       // where in the first page an allocation starts
    uint32_t kind, device; // the device by its number in the machine
    int32_t handle_types;
    uint8_t rdma, compress;
    uint16_t beyond; // of a piece: bytes behind its end in the last page; of a multicast object: of how many devices it is
};
// Writes a ticket (magic and nonce are filled in) to a new page at *place and holds it. OUT_OF_MEMORY; NOT_SUPPORTED where nothing is kept.
vr_cu_result vr_sim_ticket_write(struct vr_sim *sim, struct vr_sim_ticket *ticket, uint64_t *place);
// A ticket of a file, checked: a lie about places in it cannot reach beyond it. INVALID_VALUE.
vr_cu_result vr_sim_ticket_read(int file, uint64_t place, enum vr_sim_ticket_kind kind, struct vr_sim_ticket *ticket);
// The owner is done: gives the bytes and the ticket back unless somebody else still holds them.
void vr_sim_ticket_end(struct vr_sim *sim, uint64_t place, uint64_t offset, uint64_t size_bytes);
// A descriptor of the file whose position is the ticket's place, and which holds the ticket. OPERATING_SYSTEM.
vr_cu_result vr_sim_ticket_descriptor(int file, uint64_t place, int *descriptor);
// Takes part in a ticket of `file`, which is consumed also on failure. One entry per ticket, counted. *index of the entry.
vr_cu_result vr_sim_shared_take(struct vr_sim *sim, int file, uint64_t place, enum vr_sim_ticket_kind kind, uint32_t *index);
// The same of the ticket that a descriptor, which stays the caller's, stands for.
vr_cu_result vr_sim_shared_take_descriptor(struct vr_sim *sim, void *descriptor, enum vr_sim_ticket_kind kind, uint32_t *index);
void vr_sim_shared_give(struct vr_sim *sim, uint32_t index);
int vr_sim_shared_file(const struct vr_sim *sim, uint32_t index);
// Where the host sees the entry's memory. False when the host has no memory.
bool vr_sim_shared_view(struct vr_sim *sim, uint32_t index, uint64_t *host);

// --- sim_ipc.c ------------------------------------------------------------------------------------------------------

// Puts the memory of the entry `like->read_mask` into address space, where `like` says of what kind it is and whose. What it is starts
// `within` the first page and ends `beyond` bytes before the end of the last.
vr_cu_result vr_sim_import_place(struct vr_sim *sim, const struct vr_sim_range *like, uint64_t within, uint64_t beyond, uint64_t *address);
// Where that is already, or NULL. Of an import, read_mask is the entry and write_mask how often it is open: each time takes part in the
// entry.
struct vr_sim_range *vr_sim_import_find(const struct vr_sim *sim, const struct vr_sim_range *like);
// One of these times is over.
void vr_sim_import_close(struct vr_sim *sim, struct vr_sim_range *range);
// Such a range goes, however often it is open.
void vr_sim_import_end(struct vr_sim *sim, const struct vr_sim_range *range);

// Closes what the context (0: every one) opened by cuIpcOpenMemHandle.
void vr_sim_close_imports(struct vr_sim *sim, uint64_t context);

// ---- Device memory that a driver takes inside a context for objects of the program: variables of modules, arrays. It lies in the device's
// address space, is accounted, and ends with what it belongs to.

// OUT_OF_MEMORY; size_bytes is not 0.
vr_cu_result vr_sim_inner_alloc(struct vr_sim *sim, uint64_t context, uint64_t size_bytes, uint64_t *address);
void vr_sim_inner_free(struct vr_sim *sim, uint64_t address);

#endif
