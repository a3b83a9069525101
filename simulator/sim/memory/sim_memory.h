// sim_memory.h: device memory, address space and host memory: placement, backing bytes, and sharing with other processes.
#ifndef VR_SIM_MEMORY_SIM_MEMORY_H
#define VR_SIM_MEMORY_SIM_MEMORY_H

#include "os/os.h"
#include "sim/sim_calls.h"
#include "sim/sim_ranges.h"
#include "sim/sim_slots.h"

#define VR_SIM_GRANULARITY (2 * VR_MIB)        // of cuMemCreate, cuMemMap and reservations
#define VR_SIM_LIMIT       ((uint64_t)1 << 56) // device addresses are below this
#define VR_SIM_PAGE_BYTES  vr_os_page_bytes()  // host page: unit of backed memory

// Uses of a range of device address space.
enum vr_sim_kind {
    VR_SIM_ALLOCATION,
    VR_SIM_RESERVATION,
    VR_SIM_IMPORT /* an allocation of another process */,
    VR_SIM_CHUNK /* of a pool */,
    VR_SIM_GRAPH_MEMORY,
    VR_SIM_POOL_IMPORT /* a piece of a pool of another process */,
    VR_SIM_INNER /* the driver's own, for an object of the program */
};
// Kinds of ranges of host memory.
enum vr_sim_host_kind { VR_SIM_HOST_ALLOCATED, VR_SIM_HOST_REGISTERED, VR_SIM_HOST_MANAGED /* see sim_managed.h */ };

// A physical allocation of cuMemCreate. It lives while its handle, a mapping or a binding exists.
struct vr_sim_physical {
    struct vr_sim_slot slot;
    uint32_t device;
    uint64_t size_bytes;
    uint64_t mappings;
    uint64_t file_offset;   // offset of its bytes in the instance's file, or in the exporting process's
    uint64_t references;    // of the handle: number of releases it needs
    int32_t handle_types;   // requested at creation
    uint64_t ticket;        // offset of its ticket in the file; 0: never exported
    uint32_t shared;        // imported: index of its struct vr_sim_shared, plus one; 0: created here
    uint8_t rdma, compress; // as requested
    uint64_t bindings;      // its bindings to multicast objects
    uint32_t team;          // of a multicast object, which takes no memory: its number of devices. 0: memory
    uint64_t members;       // mask of this process's devices that were added
};

// Memory, or a part of it, bound to a multicast object at an offset.
struct vr_sim_binding {
    uint32_t object, memory; // slots of struct vr_sim_physical
    uint64_t offset_bytes, size_bytes;
};

// Memory imported from another process, or exported by this one and imported again. Holds the ticket's lock byte in the file, so that its
// bytes stay.
struct vr_sim_shared {
    uint64_t references; // objects that refer to it; 0: unused entry
    uint32_t file;       // index in the instance's list of foreign files
    uint64_t ticket;     // offset of the ticket in that file
    uint64_t offset, size_bytes;
    bool lent;     // the memory belongs to a pool, and only the pool frees it
    uint64_t view; // host address, 0 until first used
};

// A memory file of another instance.
struct vr_sim_file {
    uint64_t references; // entries of vr_sim_shared; 0: unused entry
    uint64_t volume, number;
    int file;
};

struct vr_sim_queue {
    uint64_t *items;
    size_t items_capacity, count, next; // items[next..count) are queued
};

// --- sim_alloc.c, sim_vmm.c -----------------------------------------------------------------------------------------

// These free all cuMemAlloc allocations, and all host allocations and registrations, of a context (0: of all contexts).
void vr_sim_free_allocations(struct vr_sim *sim, uint64_t context);
void vr_sim_free_hosts(struct vr_sim *sim, uint64_t context);
// Removes every mapping, reservation and physical allocation when the simulator is destroyed.
void vr_sim_free_vmm(struct vr_sim *sim);

// --- sim_regions.c ----------------------------------------------------------------------------------------------------

// [lowest, highest): everything in it was once near device memory, so it is not host memory. lowest is UINT64_MAX at first.
struct vr_sim_extent {
    uint64_t lowest, highest;
};
VR_INLINE bool vr_sim_is_near(const struct vr_sim_extent *extent, uint64_t address) {
    return address >= extent->lowest && address < extent->highest;
}

// A place for something in device address space.
struct vr_sim_place {
    uint64_t address;
    uint64_t span;      // bytes occupied
    uint64_t alignment; // for another address if this one fails
    bool fixed;         // the address was queued or hinted: use it or fail
};
// Places an allocation. Fails with INVALID_VALUE if a queued address overlaps something (the address is used up), and with OUT_OF_MEMORY if
// the address space is full. The address counts as used: the next one differs. span is size_bytes for a queued address.
vr_cu_result vr_sim_place_alloc(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, struct vr_sim_place *place);
// Places a chunk of a pool, which never takes a queued address.
vr_cu_result vr_sim_place_chunk(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, struct vr_sim_place *place);
// Call after a range placed by one of the two functions above was removed from the table of address space.
void vr_sim_place_freed(struct vr_sim *sim, uint32_t device, uint64_t address, uint64_t span);
// Call if a place goes unused after all, or if something was placed by a rule other than the device's.
void vr_sim_place_lost(struct vr_sim *sim, const struct vr_sim_place *place);
// Places a reservation. alignment is a power of two. A hint (0: none) is ignored if it is not free.
vr_cu_result vr_sim_place_reservation(struct vr_sim *sim, uint64_t size_bytes, uint64_t alignment, uint64_t hint,
                                      struct vr_sim_place *place);
vr_cu_result vr_sim_queue_push(struct vr_sim_queue *queue, uint64_t address);

// --- sim_backing.c: the memory file, opened only if the simulator keeps contents ------------------------------------

vr_cu_result vr_sim_back_open(struct vr_sim *sim);
void vr_sim_back_close(struct vr_sim *sim);
uint64_t vr_sim_first_page(uint64_t address);

// --- sim_backing.c: bytes behind addresses, or apart from them. These succeed without effect if nothing is kept -----

// Maps memory (or, for a reservation, inaccessible address space) at the place. Moves place->address if it is not fixed and the host uses
// that address.
vr_cu_result vr_sim_back_place(struct vr_sim *sim, struct vr_sim_place *place, bool accessible);
void vr_sim_back_remove(struct vr_sim *sim, uint64_t address, uint64_t span);
// Backs [address, address + span) of vr_sim_back_place() with the memory file. *offset is that of the first page.
vr_cu_result vr_sim_back_fill(struct vr_sim *sim, uint64_t address, uint64_t span, uint64_t *offset);
// Allocates places for the contents of a range that is never shared. Returns 0 if its bytes are behind the addresses or are not kept.
uint64_t vr_sim_back_keep(struct vr_sim *sim, uint64_t span);
// Drops the contents of [address, address + size_bytes) of such a range.
void vr_sim_back_drop(struct vr_sim *sim, const struct vr_sim_range *range, uint64_t address, uint64_t size_bytes);
// Frees what vr_sim_back_fill() allocated, unless another process holds it. ticket is 0 if none was written.
void vr_sim_back_give(struct vr_sim *sim, uint64_t ticket, uint64_t offset, uint64_t size_bytes);
// Puts the range's bytes into the file, so that other processes can use them.
vr_cu_result vr_sim_back_share(struct vr_sim *sim, uint64_t offset, uint64_t size_bytes);
// Returns the bytes of the file that a range of vr_sim_back_fill() takes, in whole pages.
uint64_t vr_sim_back_span(const struct vr_sim *sim, const struct vr_sim_range *range);
// vr_sim_back_create() allocates a physical allocation's part of the memory file; vr_sim_back_discard() frees it.
vr_cu_result vr_sim_back_create(struct vr_sim *sim, struct vr_sim_physical *physical);
void vr_sim_back_discard(struct vr_sim *sim, const struct vr_sim_physical *physical);
vr_cu_result vr_sim_back_map(struct vr_sim *sim, const struct vr_sim_physical *physical, uint64_t address, uint64_t size_bytes);
vr_cu_result vr_sim_back_unmap(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
vr_cu_result vr_sim_back_protect(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool read, bool write);

// --- sim_transfer.c: copies between addresses whose contents are kept apart (vr_sim_keeps()) ------------------------

// Poisons the bytes of one physical allocation that a copy has just read and written through two addresses (poison_aliases).
void vr_sim_poison_aliases(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes);

// Copies between valid addresses of the host or of devices. Returns false if the host is out of memory. Unless `keep`, data from the host
// is not kept.
bool vr_sim_transfer_copy(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes, bool keep);
// Repeats four bytes.
bool vr_sim_transfer_set(struct vr_sim *sim, uint64_t to, uint64_t size_bytes, uint32_t pattern);
// Marks an address near device memory, and at most size_bytes from it, as passed to a kernel for writing. `updates`: the kernel may also
// read it.
void vr_sim_transfer_pass(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool updates);
// Does the same for exactly the range.
void vr_sim_transfer_lose(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// Reads the bytes at an address and a level for each (enum vr_sim_level) without reporting the read.
bool vr_sim_transfer_look(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, unsigned char *bytes, uint8_t *levels);
// Stores a kernel's result, all of one level.
bool vr_sim_transfer_result(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, const unsigned char *bytes, uint8_t level);

// --- sim_backing.c: tickets, which describe memory in a process's file to other processes ---------------------------

// A page of the file that describes the places of memory in it. Each user of the memory (owner, descriptor in transit, importer) locks a
// byte of the file; the last to release it frees the memory. A process that dies releases its locks.
enum vr_sim_ticket_kind {
    VR_SIM_TICKET_PHYSICAL = 1,
    VR_SIM_TICKET_ALLOCATION,
    VR_SIM_TICKET_EVENT,
    VR_SIM_TICKET_POOL,
    VR_SIM_TICKET_PIECE
};
struct vr_sim_ticket {
    char magic[8];
    uint64_t nonce; // unique on this machine
    uint64_t offset, size_bytes;
    uint64_t within;       // start of an allocation in its first page
    uint32_t kind, device; // device: ordinal in the machine
    int32_t handle_types;
    uint8_t rdma, compress;
    uint16_t beyond; // of a piece: bytes after its end in the last page; of a multicast object: its number of devices
};
// Fills in the ticket's magic and nonce, writes it to a new page at *place and holds it. OUT_OF_MEMORY; NOT_SUPPORTED if nothing is kept.
vr_cu_result vr_sim_ticket_write(struct vr_sim *sim, struct vr_sim_ticket *ticket, uint64_t *place);
// Reads a ticket of a file and checks it: a forged one cannot refer to anything outside of the file. INVALID_VALUE.
vr_cu_result vr_sim_ticket_read(int file, uint64_t place, enum vr_sim_ticket_kind kind, struct vr_sim_ticket *ticket);
// Releases the owner's hold. Frees the bytes and the ticket unless another process holds them.
void vr_sim_ticket_end(struct vr_sim *sim, uint64_t place, uint64_t offset, uint64_t size_bytes);
// Opens a descriptor of the file that holds the ticket; its file position is the ticket's place. OPERATING_SYSTEM.
vr_cu_result vr_sim_ticket_descriptor(int file, uint64_t place, int *descriptor);
// Takes a reference to the ticket's entry, creating and holding it at first. Consumes `file`, even on failure. *index is the entry's.
vr_cu_result vr_sim_shared_take(struct vr_sim *sim, int file, uint64_t place, enum vr_sim_ticket_kind kind, uint32_t *index);
// Like vr_sim_shared_take(), for the ticket of a descriptor, which stays the caller's.
vr_cu_result vr_sim_shared_take_descriptor(struct vr_sim *sim, void *descriptor, enum vr_sim_ticket_kind kind, uint32_t *index);
void vr_sim_shared_give(struct vr_sim *sim, uint32_t index);
int vr_sim_shared_file(const struct vr_sim *sim, uint32_t index);
// Gets the host address of the entry's memory. Returns false if the host is out of memory.
bool vr_sim_shared_view(struct vr_sim *sim, uint32_t index, uint64_t *host);

// --- sim_ipc.c ------------------------------------------------------------------------------------------------------

// Places the memory of entry `like->read_mask` in address space, with the kind and owner of `like`. The object starts `within` bytes into
// the first page and ends `beyond` bytes before the end of the last.
vr_cu_result vr_sim_import_place(struct vr_sim *sim, const struct vr_sim_range *like, uint64_t within, uint64_t beyond, uint64_t *address);
// Returns the range where it is already placed, or NULL. An import's read_mask is the entry's index and its write_mask the number of opens;
// each open holds a reference to the entry.
struct vr_sim_range *vr_sim_import_find(const struct vr_sim *sim, const struct vr_sim_range *like);
// Closes one open of an import.
void vr_sim_import_close(struct vr_sim *sim, struct vr_sim_range *range);
// Removes an import, whatever its number of opens.
void vr_sim_import_end(struct vr_sim *sim, const struct vr_sim_range *range);

// Closes everything that a context (0: all contexts) opened with cuIpcOpenMemHandle.
void vr_sim_close_imports(struct vr_sim *sim, uint64_t context);

// ---- Device memory that the driver allocates inside a context for objects of the program: variables of modules, arrays. It is in the
// device's address space, counts as used, and is freed with its object.

// size_bytes must not be 0. OUT_OF_MEMORY.
vr_cu_result vr_sim_inner_alloc(struct vr_sim *sim, uint64_t context, uint64_t size_bytes, uint64_t *address);
void vr_sim_inner_free(struct vr_sim *sim, uint64_t address);

#endif
