#include "core/foreign_stacks.h"

#include <stdatomic.h>

#include "os/os.h"

struct vr_foreign_stack {
    const struct vram_event_listener *owner; // NULL: the context was released
    void *context;
    uint32_t history_stack;
    uint32_t references; // 0: unused; `history_stack` is then the next unused entry
};

// Guarded by `held`, a spin lock that needs no initialization and is held only for one access.
static struct {
    struct vr_foreign_stack *items; // items[0] is never used
    size_t count, items_capacity;
    uint32_t unused; // the first unused entry; 0: none
} table;
static _Atomic uint32_t held;

static void lock_stacks(void) {
    uint32_t expected = 0;
    while (!atomic_compare_exchange_weak_explicit(&held, &expected, 1, memory_order_acquire, memory_order_relaxed)) {
        expected = 0;
        vr_os_yield();
    }
}
static void unlock_stacks(void) { atomic_store_explicit(&held, 0, memory_order_release); }

static struct vr_foreign_stack *entry_of(uint32_t number) { return &table.items[number & ~(uint32_t)VR_FOREIGN_STACK]; }

// Returns an unused entry, or 0 if memory or numbers ran out.
static uint32_t take_number_locked(void) {
    if (table.unused != 0) {
        const uint32_t at = table.unused;
        table.unused = table.items[at].history_stack;
        return at;
    }
    if (table.count == VR_FOREIGN_STACK || VR_GROW(&table, items, table.count + 2) != VRAM_OK) return 0;
    if (table.count == 0) table.count = 1;
    return (uint32_t)table.count++;
}

uint32_t vr_foreign_stack_make(const struct vram_event_listener *owner, void *context, uint32_t history_stack) {
    lock_stacks();
    const uint32_t at = take_number_locked();
    if (at != 0) {
        table.items[at] = (struct vr_foreign_stack){.owner = owner, .context = context, .history_stack = history_stack, .references = 1};
    }
    unlock_stacks();
    if (at != 0) return at | VR_FOREIGN_STACK;
    owner->release_context(context, owner->user);
    return history_stack;
}

void vr_foreign_stack_keep(uint32_t number) {
    lock_stacks();
    entry_of(number)->references++;
    unlock_stacks();
}

void vr_foreign_stack_drop(uint32_t number) {
    lock_stacks();
    struct vr_foreign_stack *entry = entry_of(number);
    const struct vr_foreign_stack last = *entry;
    assert(last.references != 0);
    if (--entry->references == 0) {
        *entry = (struct vr_foreign_stack){.history_stack = table.unused};
        table.unused = number & ~(uint32_t)VR_FOREIGN_STACK;
    }
    unlock_stacks();
    if (last.references == 1 && last.owner != NULL) last.owner->release_context(last.context, last.owner->user);
}

// Copies the entry to *entry. Returns false if the number has no context.
static bool find_foreign(uint32_t number, struct vr_foreign_stack *entry) {
    if (!vr_stack_is_foreign(number)) return false;
    lock_stacks();
    *entry = *entry_of(number);
    unlock_stacks();
    return entry->owner != NULL;
}

void *vr_foreign_stack_context(uint32_t number, const struct vram_event_listener *whose) {
    struct vr_foreign_stack entry;
    if (!find_foreign(number, &entry)) return NULL;
    const bool known = whose == NULL || (whose->release_context == entry.owner->release_context && whose->user == entry.owner->user);
    return known ? entry.context : NULL;
}

void *vr_foreign_stack_retain(uint32_t number) {
    struct vr_foreign_stack entry;
    if (!find_foreign(number, &entry)) return NULL;
    entry.owner->retain_context(entry.context, entry.owner->user);
    return entry.context;
}

uint32_t vr_history_stack(uint32_t number) {
    if (!vr_stack_is_foreign(number)) return number;
    lock_stacks();
    const uint32_t stack = entry_of(number)->history_stack;
    unlock_stacks();
    return stack;
}

void vr_foreign_stacks_forget(const struct vram_event_listener *owner) {
    for (size_t i = 1;; i++) {
        lock_stacks();
        while (i < table.count && (table.items[i].references == 0 || table.items[i].owner != owner)) i++;
        void *context = i < table.count ? table.items[i].context : NULL;
        const bool found = i < table.count;
        if (found) table.items[i].owner = NULL;
        unlock_stacks();
        if (!found) return;
        owner->release_context(context, owner->user);
    }
}
