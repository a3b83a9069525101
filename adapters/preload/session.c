// session.c: tracks the program's memory, applies the limit, and records events.
#include "session.h"

#include <stdatomic.h>
#include <string.h>

#include "accounts.h"
#include "config.h"
#include "control.h"
#include "journal.h"
#include "live.h"
#include "lock.h"
#include "notices.h"
#include "vram/accounts.h"
#include "vram/log.h"
#include "vram/stack.h"

// Addresses in the recording for memory without an address: physical memory, arrays and the driver's pools. They are outside all device and
// process addresses.
#define OPAQUE_BASE 0x6000000000000000u
#define POOL_BASE   0x6800000000000000u
#define POOL_SPAN   0x0000100000000000u
#define OPAQUE_UNIT 512u

static struct {
    struct pl_live live;
    uint64_t used[PL_DEVICES]; // counted against the limit: live memory, and charges of calls in progress
    uint64_t next_opaque;
    uint64_t next_pool;
    uint64_t primary[PL_DEVICES]; // primary contexts that the program retained
} session;

// Guards the session and the journal. Do not call the driver with it held. The doors' lock is taken before it, never after.
static _Atomic uint32_t lock;

void pl_session_lock(void) { pl_lock(&lock); }
void pl_session_unlock(void) { pl_unlock(&lock); }
void pl_session_renew(void) { atomic_store(&lock, PL_LOCK_FREE); }

void pl_session_forget(void) {
    pl_live_clear(&session.live);
    memset(&session, 0, sizeof session);
    pl_contexts_changed();
    pl_accounts_forget();
    pl_journal_abandon();
    pl_control_forget();
}

void pl_session_close(void) {
    if (pl_depth > 0) return; // a signal handler ends the program while this thread may hold the lock
    pl_depth++;
    pl_session_lock();
    pl_journal_close();
    pl_session_unlock();
    pl_depth--;
}

// --- live memory -----------------------------------------------------------------------------------------------------------

PL_INLINE enum pl_space space_of(enum pl_kind kind) {
    switch (kind) {
    case PL_PHYSICAL: return PL_SPACE_PHYSICAL;
    case PL_ARRAY: return PL_SPACE_ARRAYS;
    case PL_PINNED:
    case PL_REGISTERED: return PL_SPACE_HOST;
    default: return PL_SPACE_DEVICE;
    }
}

PL_INLINE void write_piece(const struct pl_call *call, const struct pl_piece *piece, enum vram_log_action action, uint32_t stack) {
    const struct pl_entry entry = {.action = action,
                                   .device = piece->device,
                                   .address = piece->address,
                                   .size_bytes = piece->size_bytes,
                                   .stream = piece->stream,
                                   .pool = piece->pool,
                                   .kind = piece->kind,
                                   .stack = stack,
                                   .caller = call->caller.address};
    pl_journal_write(&entry);
}

static void take_back(uint32_t device, uint64_t size) {
    if (device < PL_DEVICES) session.used[device] -= size < session.used[device] ? size : session.used[device];
}

PL_INLINE void end_locked(const struct pl_call *call, struct pl_piece *piece, uint32_t stack) {
    if (!piece->unwritten) write_piece(call, piece, VRAM_LOG_FREE_REQUESTED, stack);
    if (piece->counted) take_back(piece->device, piece->size_bytes);
    pl_live_remove(&session.live, piece);
}

static uint64_t opaque_address(uint64_t size) {
    const uint64_t address = OPAQUE_BASE + session.next_opaque;
    session.next_opaque += (size / OPAQUE_UNIT + 1) * OPAQUE_UNIT;
    return address;
}

static bool is_counted(enum pl_kind kind) { return kind != PL_PINNED && kind != PL_REGISTERED; }

PL_SELDOM static void miss_piece(void) { pl_missed("not enough host memory to record", "an allocation"); }

// Returns NULL if host memory runs out; the recording then lacks this piece.
PL_INLINE struct pl_piece *add_locked(enum pl_space space, uint64_t key) {
    struct pl_piece *piece = pl_live_add(&session.live, space, key);
    if (piece == NULL) {
        miss_piece();
        return NULL;
    }
    piece->address = key;
    piece->serial = pl_birth();
    return piece;
}

// Ends an old piece with the same key. The driver has freed it, but the call that did so has not returned yet.
PL_SELDOM static void forget_locked(const struct pl_call *call, struct pl_piece *old, uint32_t stack) { end_locked(call, old, stack); }

// Returns an address in the recording for memory without an address. For physical memory it is found by the handle.
PL_SELDOM static uint64_t name_locked(enum pl_kind kind, uint64_t key, uint64_t size) {
    const uint64_t address = opaque_address(size);
    if (kind == PL_PHYSICAL) {
        struct pl_piece *handle = pl_live_find(&session.live, PL_SPACE_HANDLES, key);
        if (handle == NULL) handle = add_locked(PL_SPACE_HANDLES, key);
        if (handle != NULL) handle->address = address;
    }
    return address;
}

PL_INLINE void born_locked(const struct pl_call *call, uint64_t key, uint64_t size, uint32_t stack) {
    const enum pl_kind kind = call->kind;
    const enum pl_space space = space_of(kind);
    const bool opaque = kind == PL_PHYSICAL || kind == PL_ARRAY;
    const uint64_t address = opaque ? name_locked(kind, key, size) : key;
    if (kind == PL_PHYSICAL) key = address;
    struct pl_piece *old = pl_live_in(&session.live, pl_live_chain(&session.live, space, key), space, key);
    if (__builtin_expect(old != NULL, 0)) forget_locked(call, old, stack);
    struct pl_piece *piece = add_locked(space, key);
    if (piece != NULL) {
        piece->kind = (uint16_t)kind;
        piece->device = call->target;
        piece->size_bytes = size;
        piece->address = address;
        piece->context = kind == PL_PHYSICAL || kind == PL_REGISTERED ? 0 : call->context; // these outlive their context
        piece->stream = call->stream;
        piece->pool = call->pool;
        piece->references = 1;
        piece->counted = pl_config()->limit_bytes != 0 && is_counted(kind);
        piece->unwritten = pl_journal_paused();
        if (!piece->unwritten) write_piece(call, piece, VRAM_LOG_ALLOC, stack);
    }
}

void pl_died(const struct pl_call *call, enum pl_kind kind, uint64_t key) {
    const uint32_t stack = pl_journal_stack(&call->caller);
    const enum pl_space space = space_of(kind);
    pl_lock(&lock);
    struct pl_piece *piece = pl_live_in(&session.live, pl_live_chain(&session.live, space, key), space, key);
    if (piece != NULL && piece->serial < call->serial) end_locked(call, piece, stack);
    pl_unlock(&lock);
}

void pl_context_gone(const struct pl_call *call, uint64_t context) {
    pl_contexts_changed();
    pl_accounts_context_gone(context);
    const uint32_t stack = pl_journal_stack(&call->caller);
    pl_session_lock();
    for (struct pl_piece *piece = pl_live_next(&session.live, NULL); piece != NULL; piece = pl_live_next(&session.live, piece))
        if (context != 0 && piece->context == context && piece->serial < call->serial) forget_locked(call, piece, stack);
    pl_session_unlock();
}

void pl_primary_context(uint32_t device, uint64_t context) {
    pl_session_lock();
    if (device < PL_DEVICES) session.primary[device] = context;
    pl_session_unlock();
}

uint64_t pl_primary_context_of(uint32_t device) {
    pl_session_lock();
    const uint64_t context = device < PL_DEVICES ? session.primary[device] : 0;
    pl_session_unlock();
    return context;
}

// --- the limit ------------------------------------------------------------------------------------------------------------

static uint64_t left_locked(uint32_t device) {
    const uint64_t limit = pl_config()->limit_bytes;
    return session.used[device] < limit ? limit - session.used[device] : 0;
}

// accounts: the users of the device; NULL: not queried.
static void oom_locked(const struct pl_call *call, uint32_t device, uint64_t size, uint64_t free_bytes, uint32_t stack,
                       struct vram_accounts *accounts) {
    const struct pl_entry entry = {.action = VRAM_LOG_OOM,
                                   .device = device,
                                   .address = free_bytes,
                                   .size_bytes = size,
                                   .stream = call->stream,
                                   .pool = call->pool,
                                   .kind = -1,
                                   .stack = stack,
                                   .caller = call->caller.address};
    const uint64_t time_ns = pl_journal_write(&entry);
    if (accounts != NULL) pl_journal_accounts(accounts, time_ns);
    if (pl_config()->dumps_on_oom) pl_journal_dump();
}

struct refusal {
    struct pl_call *call;
    uint64_t free_bytes;
    uint32_t stack;
};

// Runs on a spare stack, because it is rare and may copy files.
static void record_refusal(void *argument) {
    const struct refusal *refusal = argument;
    const struct pl_call *call = refusal->call;
    pl_session_lock();
    oom_locked(call, call->target, call->charged_bytes, refusal->free_bytes, refusal->stack, NULL); // the device itself may have had room
    pl_session_unlock();
}

PL_SELDOM static bool charge_limit(struct pl_call *call, enum pl_kind kind, uint32_t device, uint64_t size) {
    if (!is_counted(kind) || device >= PL_DEVICES) return true;
    pl_session_lock();
    const uint64_t left = left_locked(device);
    call->refused = size > left;
    if (!call->refused) session.used[device] += size;
    pl_session_unlock();
    if (!call->refused) return true;
    struct refusal refusal = {.call = call, .free_bytes = left, .stack = pl_journal_stack(&call->caller)};
    vram_stack_spare(record_refusal, &refusal);
    return false;
}

bool pl_charge(struct pl_call *call, enum pl_kind kind, uint32_t device, uint64_t size) {
    call->kind = kind;
    call->target = call->limited = device;
    call->charged_bytes = size;
    return pl_config()->limit_bytes == 0 || charge_limit(call, kind, device, size);
}

// Returns the free memory as the program may see it. Do not hold the lock. *total_bytes is the device's total without the limit; 0 if
// unknown.
static uint64_t free_bytes_now(const struct pl_call *call, uint64_t *total_bytes) {
    uint64_t free_bytes = 0, within_limit;
    const struct pl_driver *driver = call->slot->driver;
    if (driver->mem_get_info == NULL || driver->mem_get_info(&free_bytes, total_bytes) != PL_SUCCESS) free_bytes = *total_bytes = 0;
    within_limit = *total_bytes;
    pl_limit_view(call->target, &free_bytes, &within_limit);
    return free_bytes;
}

// Returns the available and total main memory.
static uint64_t host_bytes_now(uint64_t *total_bytes) {
    uint64_t available_bytes = 0;
    if (!vram_main_memory(&available_bytes, total_bytes)) available_bytes = *total_bytes = 0;
    return available_bytes;
}

// A failed allocation.
struct failure {
    struct pl_call *call;
    uint32_t stack;
    bool out_of_memory; // by the driver's result
};

static void settle_failure(void *argument) {
    const struct failure *failure = argument;
    struct pl_call *call = failure->call;
    const bool out_of_memory = failure->out_of_memory;
    uint64_t total_bytes = 0;
    const bool of_host = call->target == VRAM_LOG_HOST;
    const uint64_t free_bytes = !out_of_memory ? 0 : of_host ? host_bytes_now(&total_bytes) : free_bytes_now(call, &total_bytes);
    const bool asks = out_of_memory && !of_host && pl_config()->records; // for the other users of a device
    struct vram_accounts *accounts = asks ? pl_accounts_take(call->slot->driver, call->target) : NULL;
    pl_session_lock();
    // Undo the charge.
    if (pl_config()->limit_bytes != 0 && is_counted(call->kind) && !call->refused) take_back(call->limited, call->charged_bytes);
    if (total_bytes != 0) pl_journal_total(call->target, total_bytes);
    if (out_of_memory) oom_locked(call, call->target, call->charged_bytes, free_bytes, failure->stack, accounts);
    pl_session_unlock();
    if (accounts != NULL) pl_accounts_give();
}

PL_SELDOM static void failed(struct pl_call *call, int32_t result) {
    const bool out_of_memory = result == PL_OUT_OF_MEMORY && !call->refused;
    struct failure failure = {.call = call, .stack = out_of_memory ? pl_journal_stack(&call->caller) : 0, .out_of_memory = out_of_memory};
    if (out_of_memory) // loads NVML, queries other processes, copies files
        vram_stack_spare(settle_failure, &failure);
    else
        settle_failure(&failure);
}

// Replaces the charge by the actual size.
PL_SELDOM static void charge_outcome_locked(const struct pl_call *call, uint64_t size) {
    if (!is_counted(call->kind)) return;
    take_back(call->limited, call->charged_bytes);
    if (call->target < PL_DEVICES) session.used[call->target] += size;
}

void pl_settle(struct pl_call *call, int32_t result, uint64_t key, uint64_t size) {
    if (result == PL_SUCCESS) {
        const uint32_t stack = pl_journal_stack(&call->caller);
        pl_lock(&lock);
        if (pl_config()->limit_bytes != 0) charge_outcome_locked(call, size);
        born_locked(call, key, size, stack);
        pl_unlock(&lock);
    } else {
        failed(call, result);
    }
    pl_end(call);
}

void pl_limit_view(uint32_t device, uint64_t *free_bytes, uint64_t *total_bytes) {
    const uint64_t limit = pl_config()->limit_bytes;
    if (limit == 0 || device >= PL_DEVICES) return;
    pl_session_lock();
    const uint64_t left = left_locked(device);
    pl_session_unlock();
    if (left < *free_bytes) *free_bytes = left;
    if (limit < *total_bytes) *total_bytes = limit;
}

// --- physical memory ------------------------------------------------------------------------------------------------------

static struct pl_piece *physical_of(uint64_t handle) {
    const struct pl_piece *entry = pl_live_find(&session.live, PL_SPACE_HANDLES, handle);
    return entry == NULL ? NULL : pl_live_find(&session.live, PL_SPACE_PHYSICAL, entry->address);
}

static const struct pl_piece *range_holding(uint64_t address) {
    for (const struct pl_piece *at = pl_live_next(&session.live, NULL); at != NULL; at = pl_live_next(&session.live, (struct pl_piece *)at))
        if (at->space == PL_SPACE_RANGES && address >= at->key && address - at->key < at->size_bytes) return at;
    return NULL;
}

// The driver returns the handle of the mapping or, if that was released, a new one.
void pl_retained(uint64_t handle, uint64_t address) {
    pl_session_lock();
    struct pl_piece *piece = physical_of(handle);
    const struct pl_piece *range = piece == NULL ? range_holding(address) : NULL;
    if (range != NULL) {
        const uint64_t name = range->address;
        struct pl_piece *entry = add_locked(PL_SPACE_HANDLES, handle);
        if (entry != NULL) entry->address = name;
        piece = pl_live_find(&session.live, PL_SPACE_PHYSICAL, name);
    }
    if (piece != NULL) piece->references++;
    pl_session_unlock();
}

static void end_if_unused(const struct pl_call *call, struct pl_piece *piece, uint32_t stack) {
    if (piece != NULL && piece->references == 0 && piece->mappings == 0) forget_locked(call, piece, stack);
}

void pl_released(const struct pl_call *call, uint64_t handle) {
    const uint32_t stack = pl_journal_stack(&call->caller);
    pl_session_lock();
    struct pl_piece *piece = physical_of(handle);
    if (piece != NULL && piece->serial < call->serial && piece->references > 0) {
        piece->references--;
        if (piece->references == 0) pl_live_remove(&session.live, pl_live_find(&session.live, PL_SPACE_HANDLES, handle));
        end_if_unused(call, piece, stack);
    }
    pl_session_unlock();
}

static void write_range(const struct pl_call *call, enum vram_log_action action, uint32_t device, uint64_t address, uint64_t size,
                        uint32_t stack) {
    const struct pl_entry entry = {.action = action,
                                   .device = device,
                                   .address = address,
                                   .size_bytes = size,
                                   .kind = -1,
                                   .stack = stack,
                                   .caller = call->caller.address};
    pl_journal_write(&entry);
}

void pl_mapped(const struct pl_call *call, uint64_t address, uint64_t size, uint64_t handle) {
    const uint32_t stack = pl_journal_stack(&call->caller);
    pl_session_lock();
    // Add the range first: adding may move pieces.
    struct pl_piece *range = add_locked(PL_SPACE_RANGES, address);
    struct pl_piece *piece = physical_of(handle);
    if (piece != NULL) piece->mappings++;
    const uint32_t device = piece != NULL ? piece->device : call->device;
    if (range != NULL) {
        range->address = piece != NULL ? piece->key : 0;
        range->size_bytes = size;
        range->device = device;
    }
    write_range(call, VRAM_LOG_SEGMENT_MAP, device, address, size, stack);
    pl_session_unlock();
}

// One call may remove several adjacent mappings.
void pl_unmapped(const struct pl_call *call, uint64_t address, uint64_t size) {
    const uint32_t stack = pl_journal_stack(&call->caller);
    pl_session_lock();
    for (uint64_t at = address; at - address < size;) {
        struct pl_piece *range = pl_live_find(&session.live, PL_SPACE_RANGES, at);
        if (range == NULL || range->size_bytes == 0) break;
        write_range(call, VRAM_LOG_SEGMENT_UNMAP, range->device, at, range->size_bytes, stack);
        struct pl_piece *piece = pl_live_find(&session.live, PL_SPACE_PHYSICAL, range->address);
        at += range->size_bytes;
        pl_live_remove(&session.live, range);
        if (piece != NULL && piece->mappings > 0) piece->mappings--;
        end_if_unused(call, piece, stack);
    }
    pl_session_unlock();
}

// --- pools of the driver --------------------------------------------------------------------------------------------------

// A pool's memory is recorded as one range that grows and shrinks at its end.
void pl_pool_holds(const struct pl_call *call, uint32_t device, uint64_t pool, uint64_t bytes) {
    const uint32_t stack = pl_journal_stack(&call->caller);
    pl_session_lock();
    struct pl_piece *piece = pl_live_find(&session.live, PL_SPACE_POOLS, pool);
    if (piece == NULL && bytes != 0) {
        piece = add_locked(PL_SPACE_POOLS, pool);
        if (piece != NULL) {
            piece->address = POOL_BASE + session.next_pool++ * POOL_SPAN;
            piece->device = device;
        }
    }
    if (piece != NULL && bytes > piece->size_bytes)
        write_range(call, VRAM_LOG_SEGMENT_MAP, piece->device, piece->address + piece->size_bytes, bytes - piece->size_bytes, stack);
    if (piece != NULL && bytes < piece->size_bytes)
        write_range(call, VRAM_LOG_SEGMENT_UNMAP, piece->device, piece->address + bytes, piece->size_bytes - bytes, stack);
    if (piece != NULL) piece->size_bytes = bytes;
    pl_session_unlock();
}
