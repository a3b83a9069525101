// Blocks allocated directly from the driver while caching is off. The table's slots contain the blocks themselves, so that a look-up
// touches one cache line; base/map.h would add another.
#include "base/hash.h"
#include "core/device.h"
#include "core/source/backend.h"

void vr_raw_init(struct vr_raw *raw) {
    *raw = (struct vr_raw){.secret = vr_hash_secret(raw)};
    vr_mutex_init(&raw->mutex);
}

static size_t raw_slot_of(const struct vr_raw *raw, uint64_t address) {
    size_t at = (size_t)vr_mix64(address ^ raw->secret) & (raw->capacity - 1);
    while (raw->slots[at].address != 0 && raw->slots[at].address != address) at = (at + 1) & (raw->capacity - 1);
    return at;
}

static enum vram_status make_room_in_table(struct vr_raw *raw) {
    if (raw->capacity != 0 && (raw->count + 1) * 2 <= raw->capacity) return VRAM_OK;
    const struct vr_raw old = {.slots = raw->slots, .capacity = raw->capacity};
    const size_t capacity = old.capacity == 0 ? 64 : old.capacity * 2;
    struct vr_raw_block *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) return VRAM_NO_HOST_MEMORY;
    raw->slots = slots;
    raw->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].address != 0) raw->slots[raw_slot_of(raw, old.slots[i].address)] = old.slots[i];
    }
    free(old.slots);
    return VRAM_OK;
}

enum vram_status vr_raw_remember(struct vram_allocator *allocator, const struct vr_raw_block *block) {
    struct vr_raw *raw = &allocator->raw;
    vr_mutex_lock(&raw->mutex);
    const enum vram_status status = make_room_in_table(raw);
    if (status == VRAM_OK) {
        raw->slots[raw_slot_of(raw, block->address)] = *block;
        raw->slots[raw_slot_of(raw, block->address)].stack = vr_stack_keep(block->stack);
        raw->count++;
        atomic_store_explicit(&raw->any, 1, memory_order_relaxed);
    }
    vr_mutex_unlock(&raw->mutex);
    return status;
}

// Backward-shift deletion: moves entries that were displaced past the gap back into it.
static void erase_locked(struct vr_raw *raw, size_t gap) {
    const size_t mask = raw->capacity - 1;
    for (size_t at = (gap + 1) & mask; raw->slots[at].address != 0; at = (at + 1) & mask) {
        const size_t home = (size_t)vr_mix64(raw->slots[at].address ^ raw->secret) & mask;
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        raw->slots[gap] = raw->slots[at];
        gap = at;
    }
    raw->slots[gap] = (struct vr_raw_block){0};
    raw->count--;
}

static bool find_locked(const struct vr_raw *raw, uint64_t address, struct vr_raw_block *block) {
    if (raw->capacity == 0) return false;
    *block = raw->slots[raw_slot_of(raw, address)];
    return block->address != 0;
}

bool vr_raw_find(struct vram_allocator *allocator, uint64_t address, struct vr_raw_block *block) {
    struct vr_raw *raw = &allocator->raw;
    if (atomic_load_explicit(&raw->any, memory_order_relaxed) == 0) return false;
    vr_mutex_lock(&raw->mutex);
    const bool found = find_locked(raw, address, block) && !block->postponed;
    vr_mutex_unlock(&raw->mutex);
    return found;
}

void vr_raw_change(struct vram_allocator *allocator, const struct vr_raw_block *block) {
    struct vr_raw *raw = &allocator->raw;
    vr_mutex_lock(&raw->mutex);
    raw->slots[raw_slot_of(raw, block->address)] = *block;
    vr_mutex_unlock(&raw->mutex);
}

void vr_raw_forget(struct vram_allocator *allocator, uint64_t address) {
    struct vr_raw *raw = &allocator->raw;
    vr_mutex_lock(&raw->mutex);
    const uint32_t stack = raw->slots[raw_slot_of(raw, address)].stack;
    erase_locked(raw, raw_slot_of(raw, address));
    vr_mutex_unlock(&raw->mutex);
    vr_stack_drop(stack);
}

void vr_raw_forget_stacks(struct vram_allocator *allocator) {
    struct vr_raw *raw = &allocator->raw;
    vr_mutex_lock(&raw->mutex);
    for (size_t i = 0; i < raw->capacity; i++) raw->slots[i].stack = vr_stack_end(raw->slots[i].stack);
    vr_mutex_unlock(&raw->mutex);
}

bool vr_raw_context(struct vram_allocator *allocator, uint64_t address, void **context) {
    struct vr_raw *raw = &allocator->raw;
    struct vr_raw_block block;
    if (atomic_load_explicit(&raw->any, memory_order_relaxed) == 0) return false;
    vr_mutex_lock(&raw->mutex);
    const bool found = find_locked(raw, address, &block) && !block.postponed;
    if (found) *context = vr_foreign_stack_retain(block.stack);
    vr_mutex_unlock(&raw->mutex);
    return found;
}

bool vr_raw_next_postponed(struct vram_allocator *allocator, uint32_t device, size_t *at, struct vr_raw_block *block) {
    struct vr_raw *raw = &allocator->raw;
    bool found = false;
    vr_mutex_lock(&raw->mutex);
    for (; *at < raw->capacity && !found; ++*at) {
        found = raw->slots[*at].address != 0 && raw->slots[*at].postponed && raw->slots[*at].device == device;
        if (found) *block = raw->slots[*at];
    }
    vr_mutex_unlock(&raw->mutex);
    return found;
}

static int raw_by_address(const void *a, const void *b) {
    const struct vr_raw_block *x = a, *y = b;
    return VR_ORDER(x->address, y->address);
}

enum vram_status vr_raw_copy(const struct vr_device *device, const struct vram_pool *only, struct vr_raw_block **blocks, size_t *count) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vr_raw *raw = &device->allocator->raw;
    size_t found = 0;
    vr_mutex_lock(&raw->mutex);
    struct vr_raw_block *copy = malloc((raw->count + 1) * sizeof *copy);
    for (size_t i = 0; i < raw->capacity && copy != NULL; i++) {
        const struct vr_raw_block *block = &raw->slots[i];
        if (block->address == 0 || block->device != device->ordinal) continue;
        if (only != NULL && (only->id.first != block->pool.first || only->id.second != block->pool.second)) continue;
        copy[found++] = *block;
    }
    vr_mutex_unlock(&raw->mutex);
    if (copy == NULL) return VRAM_NO_HOST_MEMORY;
    qsort(copy, found, sizeof *copy, raw_by_address);
    *blocks = copy;
    *count = found;
    return VRAM_OK;
}

void vr_raw_sum(const struct vr_device *device, struct vr_raw_sums *sums) {
    struct vr_raw *raw = &device->allocator->raw;
    *sums = (struct vr_raw_sums){0};
    vr_mutex_lock(&raw->mutex);
    for (size_t i = 0; i < raw->capacity; i++) {
        const struct vr_raw_block *block = &raw->slots[i];
        if (block->address == 0 || block->device != device->ordinal || !block->driver_pool) continue;
        sums->requested += (int64_t)block->size;
        sums->postponed += block->postponed;
        if (!block->postponed) sums->count++, sums->bytes += (int64_t)block->size;
    }
    vr_mutex_unlock(&raw->mutex);
}

bool vr_raw_find_containing(struct vram_allocator *allocator, uint64_t address, struct vr_raw_block *block) {
    struct vr_raw *raw = &allocator->raw;
    bool found = false;
    vr_mutex_lock(&raw->mutex);
    for (size_t i = 0; i < raw->capacity && !found; i++) {
        const struct vr_raw_block *candidate = &raw->slots[i];
        found = candidate->address != 0 && !candidate->postponed && address >= candidate->address &&
                address - candidate->address < candidate->size;
        if (found) *block = *candidate;
    }
    vr_mutex_unlock(&raw->mutex);
    return found;
}

// --- allocating and freeing ------------------------------------------------------------------------------------------------------

// Enters a new block and sends its record, under the device's locks, so that snapshots and the history agree.
static enum vram_status enter_raw(struct vr_device *device, struct vr_raw_block *block) {
    vr_device_lock(device);
    if (vr_has_listener(device)) block->stack = vr_current_stack;
    const enum vram_status status = vr_raw_remember(device->allocator, block);
    if (status == VRAM_OK) vr_notify_raw(device, VR_RECORD_ALLOC, block);
    vr_device_unlock(device);
    return status;
}

enum vram_status vr_raw_malloc(struct vr_device *device, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    struct vr_raw_block block = {.size = size_bytes, .stream = stream, .device = device->ordinal};
    uint64_t base = 0;
    const vr_cu_result result = vr_cu(allocator->driver, mem_alloc, &base, size_bytes + 2 * allocator->front_redzone);
    block.address = base + allocator->front_redzone;
    enum vram_status status = result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY : vr_driver_status(result);
    if (status == VRAM_OK) {
        status = enter_raw(device, &block);
        if (status != VRAM_OK) VR_CU_INSIST(allocator->driver, mem_free, base);
    }
    vr_context_leave(&guard);
    if (status == VRAM_OK) *address = block.address;
    return status;
}

static enum vram_status give_back_raw(struct vram_allocator *allocator, const struct vr_raw_block *block) {
    struct vr_device *device = vr_device_if_used(allocator, block->device);
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    const enum vram_status status = vr_driver_status(vr_cu(allocator->driver, mem_free, block->address - allocator->front_redzone));
    vr_context_leave(&guard);
    return status;
}

// Calls the driver under the device's locks, so that no listener sees the next block at this address before the end of this one.
static enum vram_status free_direct(struct vr_device *device, uint64_t address) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_raw_block block;
    vr_device_lock(device);
    // Another thread may have freed the block meanwhile.
    enum vram_status status = vr_raw_find(allocator, address, &block) ? give_back_raw(allocator, &block) : VRAM_INVALID_POINTER;
    if (status == VRAM_OK) {
        vr_notify_raw(device, VR_RECORD_FREE_REQUESTED, &block);
        vr_notify_raw(device, VR_RECORD_FREE_COMPLETED, &block);
        vr_raw_forget(allocator, address);
    }
    vr_device_unlock(device);
    return status;
}

enum vram_status vr_raw_free(struct vram_allocator *allocator, uint64_t address) {
    if (allocator->backend->free != NULL) {
        const enum vram_status status = allocator->backend->free(allocator, address);
        if (status != VRAM_INVALID_POINTER) return status;
    }
    struct vr_raw_block block;
    if (!vr_raw_find(allocator, address, &block) || block.driver_pool) return VRAM_INVALID_POINTER;
    struct vr_device *device = vr_device_if_used(allocator, block.device);
    vr_gather(device, VR_LEVEL_ALL, 2);
    return free_direct(device, address);
}

void vr_raw_release(struct vram_allocator *allocator) {
    struct vr_raw *raw = &allocator->raw;
    for (size_t i = 0; i < raw->capacity; i++) {
        int tries = raw->slots[i].address == 0 ? VR_CU_TRIES : 0;
        while (tries < VR_CU_TRIES && give_back_raw(allocator, &raw->slots[i]) != VRAM_OK) tries++;
    }
    free(raw->slots);
    vr_mutex_destroy(&raw->mutex);
    *raw = (struct vr_raw){0};
}
