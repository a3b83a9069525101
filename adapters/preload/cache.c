// cache.c: serves cuMemAlloc() and cuMemAllocAsync() from our allocator.
//
// The allocator uses the driver's own functions: while it loads them, this thread is inside (pl_depth), and the doors return the driver's
// functions. Its memory belongs to primary contexts, so only calls from those are served.
#include "cache.h"
#include "notices.h"

#include <stdatomic.h>

#include "config.h"
#include "vram/allocator.h"

static _Atomic(struct vram_allocator *) allocator;
static atomic_bool failed;

// Takes no lock: creating the allocator loads libraries, and a thread that does so may get here from a constructor.
static struct vram_allocator *get_allocator(void) {
    struct vram_allocator *made = atomic_load_explicit(&allocator, memory_order_acquire), *none = NULL;
    if (made != NULL || atomic_load(&failed)) return made;
    struct vram_error error = {.status = VRAM_OK};
    if (vram_create(NULL, &made, &error) != VRAM_OK) {
        atomic_store(&failed, true);
        pl_missed("--cache is off:", error.message);
        return NULL;
    }
    if (atomic_compare_exchange_strong(&allocator, &none, made)) return made;
    vram_destroy(made); // another thread was faster
    return none;
}

bool pl_cache_serve(const struct pl_call *call, uint64_t size, uint64_t stream, uint64_t *address, int32_t *result) {
    if (size == 0 || !call->has_device || call->context == 0 || call->context != pl_primary_context_of(call->device)) return false;
    struct vram_allocator *from = get_allocator();
    if (from == NULL) return false;
    const enum vram_status status = vram_malloc(from, call->device, size, stream, address);
    if (status == VRAM_OUT_OF_MEMORY) *result = PL_OUT_OF_MEMORY;
    if (status == VRAM_OK) *result = PL_SUCCESS;
    return status == VRAM_OK || status == VRAM_OUT_OF_MEMORY;
}

// Searches for an address in our memory that is not a live block: it was freed before, or never returned.
struct search {
    uint64_t address;
    bool found;
};

static bool look_at(const struct vram_block_view *view, void *user) {
    struct search *search = user;
    search->found = search->address - view->block.address < view->block.size_bytes;
    return !search->found;
}

static bool is_stale(struct vram_allocator *from, uint64_t address, uint32_t device) {
    struct search search = {.address = address};
    return vram_walk(from, device, look_at, &search) == VRAM_OK && search.found;
}

// Returns whether the allocator handles the free of this address: it is a live block, or an invalid address in our memory, which gives the
// driver's error. The driver does not see the call, because the address may be that of a whole segment.
static bool is_ours(struct vram_allocator *from, const struct pl_call *call, uint64_t address, int32_t *result) {
    if (from == NULL || address == 0) return false;
    *result = PL_SUCCESS;
    if (vram_allocated_size(from, address) != 0) return true;
    *result = PL_INVALID_VALUE;
    return call->has_device && is_stale(from, address, call->device);
}

bool pl_cache_take_back(const struct pl_call *call, uint64_t address, int32_t *result) {
    struct vram_allocator *from = atomic_load_explicit(&allocator, memory_order_acquire);
    if (!is_ours(from, call, address, result)) return false;
    if (*result != PL_SUCCESS) return true;
    *result = call->slot->driver->ctx_synchronize == NULL ? PL_SUCCESS : call->slot->driver->ctx_synchronize();
    if (*result == PL_SUCCESS && vram_free(from, address) != VRAM_OK) *result = PL_INVALID_VALUE;
    return true;
}

bool pl_cache_free_async(const struct pl_call *call, uint64_t address, int32_t *result) {
    struct vram_allocator *from = atomic_load_explicit(&allocator, memory_order_acquire);
    if (!is_ours(from, call, address, result)) return false;
    if (*result != PL_SUCCESS) return true;
    // Wait for the freeing stream's work before the memory is reused.
    if (vram_record_stream(from, address, call->stream) != VRAM_OK || vram_free(from, address) != VRAM_OK) *result = PL_INVALID_VALUE;
    return true;
}

void pl_cache_forget(void) { vram_destroy(atomic_exchange(&allocator, NULL)); }

void pl_cache_abandon(void) {
    atomic_store(&allocator, NULL);
    atomic_store(&failed, false);
}
