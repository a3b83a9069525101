// verify.h: the sanitizer of verify:True: its records of blocks, and the functions of its files.
//
//   verifiers.c       attaches a verifier to an allocator, and ends it
//   verified_calls.c  the work at a malloc, a free and a call with a dead address
//   on_demand.c       vram_verify(): all blocks at once
//   quarantine.c      freed blocks, until they may be reused
//   traps.c           pages of quarantined blocks, which nothing may access
//   redzones.c        driver calls: fills memory with the poison and finds what changed
//   blocks.c          the records of blocks, live and freed
//   faults.c          the report of a fault
//   verifier_list.c   the verifiers of the process
//
// Locks: the mutex below is a leaf; it guards the table of records and each record's state. The rest of a record, and the quarantine of a
// device, are guarded by all locks of the block's device.
#ifndef VR_VERIFY_VERIFY_H
#define VR_VERIFY_VERIFY_H

#include "base/hash.h"
#include "core/alloc.h"
#include "core/verifier.h"
#include "vram/verify.h"

enum vr_verified_state { VR_VERIFIED_LIVE, VR_VERIFIED_QUARANTINED, VR_VERIFIED_FREED };

// Number of freed blocks that are remembered after they left the quarantine, to recognize a second free.
enum { VR_REMEMBERED_FREES = 16384 };

struct vr_verified_block {
    uint64_t address;
    uint64_t requested;
    uint64_t size; // of the pool's block; of a raw block up to the end of its redzone
    uint64_t stream;
    uint32_t device;
    uint32_t allocated, freed;      // stacks
    uint8_t state;                  // enum vr_verified_state
    bool guarded;                   // the redzone after it was filled
    bool raw;                       // allocated directly from the driver (core/source/raw.h)
    bool unchecked;                 // in the quarantine, but not poisoned: when it was freed, nothing could be checked
    uint32_t number;                // in the quarantine: the number of the pool's block
    uint64_t serial;                // number of its free
    uint64_t trap_low, trap_high;   // in the quarantine: the range of pages without access; equal: no such pages
    struct vr_verified_block *next; // in the quarantine
};

struct vr_verified_device {
    struct vr_verified_block *first, *last; // the quarantine, oldest first
    uint64_t quarantined_bytes;
    unsigned char *bounce;                                         // VR_BOUNCE_BYTES; NULL before the first read
    enum { VR_BYTES_UNKNOWN, VR_BYTES_KEPT, VR_BYTES_LOST } bytes; // whether the driver's memory holds what is written to it
};
enum { VR_BOUNCE_BYTES = 1 << 20 };

struct vr_verify {
    struct vr_verifier seam; // first member
    struct vram_allocator *allocator;
    struct vram_stacks *stacks; // of all verifiers of the process
    bool halts, reports_leaks;
    uint64_t quarantine_limit;
    _Atomic(vram_fault_handler) handler;
    void *_Atomic user;
    _Atomic uint64_t faults;
    struct vr_mutex mutex;
    struct vr_map blocks; // address -> record
    struct vr_remembered_free {
        struct vr_verified_block *block;
        uint64_t serial;
    } remembered[VR_REMEMBERED_FREES]; // a ring
    uint64_t frees;
    struct vr_verify *next; // of the process
    struct vr_verified_device devices[VRAM_MAX_DEVICES];
};

VR_INLINE struct vr_verify *vr_verify_of(const struct vram_allocator *allocator) { return (struct vr_verify *)(void *)allocator->verifier; }

// --- verifiers.c
// ------------------------------------------------------------------------------------------------------------------------------

// Attaches a verifier if the options say verify:True. NO_HOST_MEMORY.
enum vram_status vr_verify_open(struct vram_allocator *allocator);
// Checks all blocks a last time and reports leaks. NULL is ignored. Called before the allocator ends.
void vr_verify_end(struct vr_verify *verify);
// Frees the verifier. NULL is ignored. Called after the allocator ended.
void vr_verify_release(struct vr_verify *verify);

// --- verifier_list.c ---------------------------------------------------------------------------------------------------------------------

// Adds a verifier to the list of the process and gives it the shared table of stacks. The last verifier to leave destroys the table.
// NO_HOST_MEMORY.
enum vram_status vr_verifier_enter(struct vr_verify *verify);
void vr_verifier_leave(struct vr_verify *verify);
// Copies another verifier's record of a live block at the address. Returns false if no other verifier has one.
bool vr_verify_find_foreign(const struct vr_verify *verify, uint64_t address, struct vr_verified_block *found);

// --- blocks.c ----------------------------------------------------------------------------------------------------------------------------

// Adds the record of a live block, and ends an older record of its address. Returns NULL if the host is out of memory; the block is then
// not verified.
struct vr_verified_block *vr_verified_enter(struct vr_verify *verify, const struct vr_verified_block *facts);
// Claims the live block at the address for its free. Returns NULL if there is none. *known then says whether the address has an older
// record, which is copied to *found.
struct vr_verified_block *vr_verified_claim(struct vr_verify *verify, uint64_t address, uint32_t stack, struct vr_verified_block *found,
                                            bool *known);
// Undoes the claim: the block is live again.
void vr_verified_unclaim(struct vr_verify *verify, struct vr_verified_block *block);
// Ends the record of a claimed block that left the allocator or may be reused. The record is remembered for a while.
void vr_verified_retire(struct vr_verify *verify, struct vr_verified_block *block);
// Copy the record of the block that begins at the address, or of a block that contains it, preferably a live one. Return false if there is
// none.
bool vr_verified_at(struct vr_verify *verify, uint64_t address, struct vr_verified_block *found);
bool vr_verified_containing(struct vr_verify *verify, uint64_t address, struct vr_verified_block *found);
// Copies all live records, by ascending address. The caller frees *blocks. NO_HOST_MEMORY.
enum vram_status vr_verified_live(struct vr_verify *verify, struct vr_verified_block **blocks, size_t *count);
void vr_verified_release(struct vr_verify *verify);

// --- redzones.c: all under the device's locks, context current
// -----------------------------------------------------------------------------

// The bytes of a range that differ from the poison.
struct vr_damage {
    uint64_t first, last; // addresses
};
// Returns whether driver calls on the stream are allowed now, because no capture is in progress.
bool vr_may_touch(const struct vr_device *device, uint64_t stream);
// Fills a range, in the stream's order. Returns false if the driver refuses.
bool vr_poison_fill(const struct vr_device *device, uint64_t stream, uint64_t address, uint64_t size);
// Waits for the stream and compares a range with the poison. Returns whether a byte differs; false if the range cannot be read.
bool vr_poison_differs(struct vr_verify *verify, const struct vr_device *device, uint64_t stream, uint64_t address, uint64_t size,
                       struct vr_damage *damage);
// Returns whether the driver's memory keeps what is written to it. Found out once per device, with a range that was just poisoned.
bool vr_keeps_bytes(struct vr_verify *verify, const struct vr_device *device, uint64_t stream, uint64_t address, uint64_t size);
// Checks the redzones around a guarded block, reports each one that changed, and repairs it. item: the pool's block; NULL for a raw one.
void vr_redzones_check(struct vr_verify *verify, const struct vr_device *device, const struct vr_verified_block *block,
                       const struct vr_block *item);

// --- quarantine.c ------------------------------------------------------------------------------------------------------------------------

// Puts a claimed block of the pools into the quarantine, and takes the oldest blocks out while it is too full. Under all locks, context
// current.
void vr_quarantine_add(struct vr_verify *verify, struct vr_device *device, struct vr_verified_block *block, uint32_t number);
void vr_quarantine_release(struct vr_verifier *verifier, struct vr_device *device, bool all, const struct vram_pool *only);
// Compares all quarantined blocks with the poison.
void vr_quarantine_check(struct vr_verify *verify, struct vr_device *device);

// --- traps.c: under all locks, context current
// --------------------------------------------------------------------------------------------

// Remove and restore access to the whole pages in a poisoned block, if its segment is made of pages.
void vr_trap_set(const struct vr_device *device, struct vr_verified_block *block, const struct vr_block *item);
void vr_trap_clear(const struct vr_device *device, struct vr_verified_block *block);

// --- verified_calls.c
// -----------------------------------------------------------------------------------------------------------------------------

void vr_verify_handed_out(struct vr_verifier *verifier, struct vr_device *device, uint64_t address);
enum vram_status vr_verify_free(struct vr_verifier *verifier, struct vr_device *device, uint64_t address);
void vr_verify_refused(struct vr_verifier *verifier, uint64_t address);
bool vr_verify_poison(struct vr_verifier *verifier, struct vr_shard *shard, uint64_t address, uint64_t size);

// --- on_demand.c -------------------------------------------------------------------------------------------------------------------------

void vr_verify_all(struct vr_verify *verify);

// --- faults.c ----------------------------------------------------------------------------------------------------------------------------

uint32_t vr_verify_stack(const struct vr_verify *verify);
// Reports a fault that concerns a block (NULL: no block). Passes it to the handler or, without one, prints it, which may end the process.
// The caller sets the fault's kind, address, wrong_bytes and current stack, and the sums of a leak; the rest comes from the block.
void vr_fault_report(struct vr_verify *verify, struct vram_fault *fault, const struct vr_verified_block *block);

#endif
